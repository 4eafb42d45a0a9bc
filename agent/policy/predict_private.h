/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What predictors share. */
#ifndef TALLY_POLICY_PREDICT_PRIVATE_H
#define TALLY_POLICY_PREDICT_PRIVATE_H

#include <math.h>

#include "predict.h"

/* 1 - (1 - weight)^steps; expm1, since 1 - exp() of a very short time is all rounding. */
static inline double predict_weight(double weight, double steps)
{
	return -expm1(steps * log1p(-weight));
}

/* For those that know whole steps only: how many values a value counts for. */
static inline unsigned int predict_steps(double steps)
{
	return steps < 1.5 ? 1 : steps > PREDICT_PAST ? PREDICT_PAST : (unsigned int)lround(steps);
}

/* The last PREDICT_PAST values, for those that learn from more than the last one. */
struct predict_past {
	unsigned int count, next;
	double value[PREDICT_PAST];
};

static inline void predict_past_put(struct predict_past *p, double value)
{
	p->value[p->next] = value;
	p->next = (p->next + 1) % PREDICT_PAST;
	p->count += p->count < PREDICT_PAST;
}

/* The value `back` steps ago; 0: the last one. Below p->count. */
static inline double predict_past_at(const struct predict_past *p, unsigned int back)
{
	return p->value[(p->next + 2 * PREDICT_PAST - 1 - back) % PREDICT_PAST];
}

#endif
