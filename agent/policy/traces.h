/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traces of load to judge predictors by: values, one a step, of kinds that TRACE_KINDS has with
 * what each models. A kind and a seed give the same values on every machine but for the last digits
 * of sin() and pow(). Values are not below 0, and of the order of 1. Pure.
 */
#ifndef TALLY_POLICY_TRACES_H
#define TALLY_POLICY_TRACES_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TRACE_SOURCES = 16, /* of bursts; jobs at a time are as many at most */
	TRACE_DAY = 144, /* steps of a day: ten minutes each */
	TRACE_ITERATION = 20, /* steps of a training iteration on average: 0.1 s each */
};

struct trace {
	const struct trace_kind *kind;
	uint64_t seed; /* goes on */
	unsigned int step;
	double level, slope; /* of a ramp */
	unsigned int left; /* steps of what is now: ramp, plateau, part of an iteration */
	bool on; /* it communicates */
	struct {
		unsigned int left; /* steps until it turns on or off, or the job's end */
		bool on;
		double rate;
	} source[TRACE_SOURCES];
};

struct trace_kind {
	const char *name, *what;
	double (*next)(struct trace *t);
};

extern const struct trace_kind TRACE_KINDS[];
extern const unsigned int TRACE_KINDS_COUNT;

const struct trace_kind *trace_find(const char *name); /* or NULL */

void trace_begin(struct trace *t, const struct trace_kind *kind, uint64_t seed);
double trace_next(struct trace *t);

#endif
