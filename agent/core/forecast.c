// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <math.h>

#include "forecast.h"

static const double NS_PER_S = 1e9;

void forecast_rate_init(struct forecast_rate *r, double tau_s)
{
	*r = (struct forecast_rate){ .tau_s = tau_s };
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
	/* expm1, since 1 - exp() of a very short time is all rounding */
	r->per_second += (r->known ? -expm1(-elapsed_s / r->tau_s) : 1) *
			 (r->interval_per_second - r->per_second);
	r->known = true;
	r->waiting = 0;
	r->at_ns = now_ns;
	return true;
}

void forecast_trend_init(struct forecast_trend *t, double alpha, double beta)
{
	*t = (struct forecast_trend){ .alpha = alpha, .beta = beta };
}

/* 1 - (1 - weight)^seconds */
static double weight_over(double weight, double seconds)
{
	return -expm1(seconds * log1p(-weight));
}

void forecast_trend_value(struct forecast_trend *t, uint64_t elapsed_ns, double value)
{
	double elapsed_s = (double)elapsed_ns / NS_PER_S;
	double a, b, level;

	if (!t->known) {
		t->level = value;
		t->known = true;
		return;
	}
	if (elapsed_ns == 0)
		return;
	a = weight_over(t->alpha, elapsed_s);
	b = weight_over(t->beta, elapsed_s);
	level = a * value + (1 - a) * (t->level + t->per_second * elapsed_s);
	t->per_second = b * (level - t->level) / elapsed_s + (1 - b) * t->per_second;
	t->level = level;
}

double forecast_trend_ahead(const struct forecast_trend *t, double seconds)
{
	double value = t->level + t->per_second * seconds;

	return value > 0 ? value : 0;
}
