// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <math.h>

#include "forecast.h"

static const double NS_PER_S = 1e9;

void forecast_rate_init(struct forecast_rate *r, double tau_s)
{
	const struct predict_options o = { .level = -expm1(-1 / tau_s) };

	*r = (struct forecast_rate){ 0 };
	PREDICT_EWMA.begin(&r->mean, &o);
}

bool forecast_rate_reading(struct forecast_rate *r, uint64_t now_ns, uint64_t counter)
{
	double elapsed_s;

	if (!r->begun) {
		r->begun = true;
		r->counter = counter;
		r->at_ns = now_ns;
		return false;
	}
	r->waiting += counter >= r->counter ? counter - r->counter : counter;
	r->counter = counter;
	if (now_ns <= r->at_ns)
		return false;
	elapsed_s = (double)(now_ns - r->at_ns) / NS_PER_S;
	r->interval_per_second = (double)r->waiting / elapsed_s;
	PREDICT_EWMA.observe(&r->mean, elapsed_s, r->interval_per_second);
	r->per_second = PREDICT_EWMA.forecast(&r->mean, 0);
	r->waiting = 0;
	r->at_ns = now_ns;
	return true;
}
