// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Learned: the next value is a weighted sum of the last ones, with weights by recursive least
 * squares that forget (L. Ljung, T. Soderstrom, "Theory and Practice of Recursive Identification",
 * 1983). What lies further ahead is forecast from forecasts.
 */
#include "predict_private.h"

#include <string.h>

enum {
	LAGS = 24,
	INPUTS = LAGS + 1, /* and a constant */
};

static const double KEPT = 0.998; /* of what was learned, at each step */
static const double UNSURE = 10; /* of weights, before anything is learned */
static const double MOST = 1.5; /* a forecast is at most so many times the largest value */

struct learned {
	double past[LAGS]; /* the last value first; in units */
	double weight[INPUTS];
	double p[INPUTS][INPUTS];
	double unit; /* the first value that is not 0; 0: there was none */
	double largest; /* in units */
	unsigned int seen;
};

static void begin(void *state, const struct predict_options *o)
{
	struct learned *l = state;

	memset(l, 0, sizeof(*l));
	for (int i = 0; i < INPUTS; i++)
		l->p[i][i] = UNSURE;
	l->weight[0] = 1; /* the last value, until more is known */
}

static double guess(const struct learned *l, const double *past)
{
	double sum = l->weight[LAGS];

	for (int i = 0; i < LAGS; i++)
		sum += l->weight[i] * past[i];
	return fmin(fmax(sum, 0), MOST * l->largest);
}

static double input_of(const struct learned *l, int i) { return i < LAGS ? l->past[i] : 1; }

static void learn(struct learned *l, double value)
{
	double gain[INPUTS], error = value, scale = KEPT;

	for (int i = 0; i < INPUTS; i++) {
		gain[i] = 0;
		for (int k = 0; k < INPUTS; k++)
			gain[i] += l->p[i][k] * input_of(l, k);
		scale += input_of(l, i) * gain[i];
		error -= l->weight[i] * input_of(l, i);
	}
	for (int i = 0; i < INPUTS; i++)
		l->weight[i] += gain[i] / scale * error;
	for (int i = 0; i < INPUTS; i++)
		for (int k = 0; k <= i; k++) {
			l->p[i][k] = (l->p[i][k] - gain[i] * gain[k] / scale) / KEPT;
			l->p[k][i] = l->p[i][k];
		}
	/* What is never excited must not become ever less sure. */
	for (int i = 0; i < INPUTS; i++)
		l->p[i][i] = fmin(l->p[i][i], UNSURE * 100);
}

static void shift(double *past, double value)
{
	memmove(&past[1], past, (LAGS - 1) * sizeof(*past));
	past[0] = value;
}

static void observe(void *state, double steps, double value)
{
	struct learned *l = state;

	if (steps <= 0 && l->seen)
		return;
	if (l->unit == 0)
		l->unit = value;
	value = l->unit > 0 ? value / l->unit : 0;
	l->largest = fmax(l->largest, value);
	for (unsigned int i = 0; i < predict_steps(steps); i++) {
		if (l->seen >= LAGS)
			learn(l, value);
		shift(l->past, value);
		l->seen++;
	}
}

static double forecast(const void *state, double steps)
{
	const struct learned *l = state;
	double past[LAGS];

	memcpy(past, l->past, sizeof(past));
	for (unsigned int i = 0; i < predict_steps(steps); i++)
		shift(past, guess(l, past));
	return past[0] * l->unit;
}

const struct predictor PREDICT_LEARNED = {
	.name = "learned",
	.what = "a weighted sum of the last values",
	.bytes = sizeof(struct learned),
	.begin = begin,
	.observe = observe,
	.forecast = forecast,
};
