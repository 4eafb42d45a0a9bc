// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "predict_private.h"

static void begin(void *state, const struct predict_options *o)
{
	*(struct predict_holt *)state = (struct predict_holt){
		.weight_level = o->level,
		.weight_trend = o->trend,
	};
}

static void observe(void *state, double steps, double value)
{
	struct predict_holt *h = state;
	double a, b, level;

	if (!h->known) {
		h->level = value;
		h->known = true;
		return;
	}
	if (steps <= 0)
		return;
	a = predict_weight(h->weight_level, steps);
	b = predict_weight(h->weight_trend, steps);
	level = a * value + (1 - a) * (h->level + h->slope * steps);
	h->slope = b * (level - h->level) / steps + (1 - b) * h->slope;
	h->level = level;
}

static double forecast(const void *state, double steps)
{
	const struct predict_holt *h = state;

	return fmax(0, h->level + h->slope * steps);
}

const struct predictor PREDICT_HOLT = {
	.name = "holt",
	.what = "level and trend",
	.usual = { .level = 0.5, .trend = 0.1 },
	.bytes = sizeof(struct predict_holt),
	.begin = begin,
	.observe = observe,
	.forecast = forecast,
};
