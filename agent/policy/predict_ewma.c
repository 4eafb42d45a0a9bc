// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "predict_private.h"

static void begin(void *state, const struct predict_options *o)
{
	*(struct predict_ewma *)state = (struct predict_ewma){ .weight = o->level };
}

static void observe(void *state, double steps, double value)
{
	struct predict_ewma *e = state;

	if (!e->known)
		e->mean = value;
	else if (steps > 0)
		e->mean += predict_weight(e->weight, steps) * (value - e->mean);
	e->known = true;
}

static double forecast(const void *state, double steps)
{
	return fmax(0, ((const struct predict_ewma *)state)->mean);
}

const struct predictor PREDICT_EWMA = {
	.name = "ewma",
	.what = "the weighted mean",
	.usual = { .level = 0.5 },
	.bytes = sizeof(struct predict_ewma),
	.begin = begin,
	.observe = observe,
	.forecast = forecast,
};
