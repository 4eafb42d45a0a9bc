// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* All stays as it is: what others are measured by. */
#include "predict_private.h"

struct last {
	double value;
};

static void begin(void *state, const struct predict_options *o)
{
	*(struct last *)state = (struct last){ 0 };
}

static void observe(void *state, double steps, double value)
{
	((struct last *)state)->value = value;
}

static double forecast(const void *state, double steps)
{
	return fmax(0, ((const struct last *)state)->value);
}

const struct predictor PREDICT_LAST = {
	.name = "last",
	.what = "the last value",
	.bytes = sizeof(struct last),
	.begin = begin,
	.observe = observe,
	.forecast = forecast,
};
