// SPDX-License-Identifier: GPL-2.0-only
/*
 * How well predictors (agent/policy/predict.h) forecast traces (agent/policy/traces.h): the mean
 * absolute error, and that error in parts of what the last value has at the same distance. Of 4,000
 * steps of each seed the last 3,000 count.
 *
 *	predict [FIRST [SEEDS]]	seeds 101 to 110, which no weight was chosen by
 */
#include <err.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/policy/predict.h"
#include "agent/policy/traces.h"

enum {
	STEPS = 4000,
	WARM = 1000,
	FIRST = 101,
	SEEDS = 10,
	DISTANCES = 3,
};

static const unsigned int distance[DISTANCES] = { 1, 5, 20 };

static void add_errors(const struct predictor *p, const double *value, double *error)
{
	void *state = malloc(p->bytes);

	if (!state)
		err(1, "memory for %s", p->name);
	p->begin(state, &p->usual);
	for (unsigned int i = 0; i < STEPS; i++) {
		p->observe(state, 1, value[i]);
		for (unsigned int d = 0; d < DISTANCES; d++)
			if (i >= WARM && i + distance[d] < STEPS)
				error[d] += fabs(p->forecast(state, distance[d]) -
						 value[i + distance[d]]) /
					    (STEPS - WARM - distance[d]);
	}
	free(state);
}

static void print_kind(const struct trace_kind *kind, uint64_t first, unsigned int seeds)
{
	static double value[STEPS];
	double error[16][DISTANCES] = { 0 };

	if (PREDICTORS_COUNT > 16)
		errx(1, "%u predictors are too many: there is room for 16", PREDICTORS_COUNT);
	for (uint64_t seed = first; seed < first + seeds; seed++) {
		struct trace trace;

		trace_begin(&trace, kind, seed);
		for (unsigned int i = 0; i < STEPS; i++)
			value[i] = trace_next(&trace);
		for (unsigned int p = 0; p < PREDICTORS_COUNT; p++)
			add_errors(PREDICTORS[p], value, error[p]);
	}
	for (unsigned int p = 0; p < PREDICTORS_COUNT; p++) {
		printf("| %s | %s |", p ? "" : kind->name, PREDICTORS[p]->name);
		for (unsigned int d = 0; d < DISTANCES; d++)
			printf(" %.3f (%.2f) |", error[p][d] / seeds, error[p][d] / error[0][d]);
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : FIRST;
	unsigned int seeds = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 0) : SEEDS;

	if (seeds == 0)
		errx(1, "SEEDS is '%s'; give a number from 1 on", argv[2]);
	printf("| trace | predictor |");
	for (unsigned int d = 0; d < DISTANCES; d++)
		printf(" %u ahead |", distance[d]);
	printf("\n| --- | --- | --- | --- | --- |\n");
	for (unsigned int k = 0; k < TRACE_KINDS_COUNT; k++)
		print_kind(&TRACE_KINDS[k], first, seeds);
	return 0;
}
