/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a value will be: the load of a link, what a job sends. Predictors are behind one interface,
 * each in a file predict_NAME.c with a line in predict.c. The agent (agent/core/traffic.c)
 * forecasts with PREDICT_HOLT. Pure.
 *
 * A predictor sees values, one after another, and knows no clock: time is in steps, of whatever
 * length (the agent's are seconds). Values may come at irregular times; weights are those of one
 * step, and are raised to the steps that have passed. Values are rates or volumes: a forecast is
 * never below 0.
 */
#ifndef TALLY_POLICY_PREDICT_H
#define TALLY_POLICY_PREDICT_H

#include <stdbool.h>
#include <stddef.h>

enum {
	PREDICT_PAST = 512, /* values that a season is looked for in */
	PREDICT_SEASON_MAX = PREDICT_PAST / 2,
};

struct predict_options {
	double level, trend, seasonal; /* weights of a new value; above 0, at most 1 */
	unsigned int season; /* steps, at most PREDICT_SEASON_MAX; 0: to be found */
};

struct predictor {
	const char *name, *what;
	struct predict_options usual; /* all 0: it has no use for them */
	size_t bytes; /* of the state, which is the caller's, and needs no end */
	void (*begin)(void *state, const struct predict_options *o);
	/* The value that held for the last `steps` steps; 0 of them: ignored, unless it is the
	 * first one. */
	void (*observe)(void *state, double steps, double value);
	/* So many steps from the last value on; 0 while there was none. */
	double (*forecast)(const void *state, double steps);
};

extern const struct predictor PREDICT_LAST, PREDICT_EWMA, PREDICT_HOLT, PREDICT_SEASONAL,
	PREDICT_LEARNED;

extern const struct predictor *const PREDICTORS[];
extern const unsigned int PREDICTORS_COUNT;

const struct predictor *predictor_find(const char *name); /* or NULL */

/* --- states that others keep by value -------------------------------------------------------- */

/*
 * The exponentially weighted mean (A. Eckner, "Algorithms for Unevenly Spaced Time Series: Moving
 * Averages and Other Rolling Operators", 2012; the kernel's load average has this weight, too):
 *
 *	mean += (1 - (1 - level)^steps) * (value - mean)
 */
struct predict_ewma {
	double weight;
	bool known; /* there was a value */
	double mean; /* 0 until known */
};

/*
 * Level and trend, by Holt's method (C. C. Holt, "Forecasting seasonals and trends by exponentially
 * weighted moving averages", 1957, reprinted in Int. J. of Forecasting 20, 2004), with its weights
 * for one step raised to the steps that have passed (compare D. J. Wright, "Forecasting data
 * published at irregular time intervals using an extension of Holt's method", 1986):
 *
 *	a = 1 - (1 - level)^steps	b = 1 - (1 - trend)^steps
 *	level' = a * value + (1 - a) * (level + slope * steps)
 *	slope' = b * (level' - level) / steps + (1 - b) * slope
 *	forecast(h) = max(0, level + slope * h)
 *
 * At one value a step that is Holt's own form. The first value is the first level; the slope
 * begins at 0, so that a job's start is not taken for a ramp.
 */
struct predict_holt {
	double weight_level, weight_trend;
	bool known; /* there was a value */
	double level; /* may fall below 0 for a while; a forecast does not */
	double slope; /* of a step */
};

#endif
