// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long jobs take where slots are scarce, by simulation, packet by packet (sim/slots.h).
 *
 * Eight jobs of eight workers share one node. Four communicate much and compute little, four the
 * other way. A round trip is 100 ticks, which is the bandwidth-delay product. Memory is in units of
 * jobs x bandwidth-delay product: 800 slots.
 *
 *	memory [SEEDS [SPREAD...]]	each spread is a table
 */
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/slots.h"

enum {
	JOBS = 8,
	WORKERS = 8,
	HOP = 25, /* ticks from worker to node, and from node to root */
	WINDOW = 256,
	ITERATIONS = 4,
	UNIT = JOBS * 4 * HOP, /* of memory, in slots */
	PLENTY = 8 * UNIT,
	SEEDS_MAX = 64,
	POLICIES_MAX = 16,
	TICKS_MAX = 10 * 1000 * 1000, /* of a run: it does not end */
	MEMORIES = 6,
};

static const double memories[MEMORIES] = { 0.125, 0.25, 0.5, 1, 2, 4 };

/* Average completion time of the jobs, in ticks; *ret_load: packets to roots for each chunk. */
static double run(const struct slots_policy *policy, uint32_t slots, uint32_t spread, uint64_t seed,
		  double *ret_load)
{
	struct slots_job job[JOBS];
	const struct slots_options o = { .policy = policy,
					 .job = job,
					 .jobs = JOBS,
					 .slots = slots,
					 .window = WINDOW,
					 .hop = HOP,
					 .spread = spread,
					 .seed = seed,
					 .ticks_max = TICKS_MAX };
	struct slots_result result;
	struct why why = { "" };
	int r;

	for (int i = 0; i < JOBS; i++)
		job[i] = (struct slots_job){ .workers = WORKERS,
					     .iterations = ITERATIONS,
					     .chunks = i % 2 ? 200 : 800,
					     .compute = i % 2 ? 1000 : 150,
					     .compute_more = (i % 2 ? 1000 : 150) / 4 };
	r = slots_run(&o, &result, &why);
	if (r < 0)
		errx(1, "spread %u, seed %llu: %s", spread, (unsigned long long)seed,
		     *why.text ? why.text : strerror(-r));
	free(result.ended);
	*ret_load = result.to_roots;
	return result.mean;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of a policy with this memory, by seed: completion time beside the best, and load. */
static void measure(const struct slots_policy *policy, double memory, uint32_t spread,
		    const double *best, int seeds, double *ret_time, double *ret_load)
{
	for (int seed = 0; seed < seeds; seed++)
		ret_time[seed] = run(policy, memory * UNIT, spread, seed + 1, &ret_load[seed]) /
				 best[seed];
	qsort(ret_time, seeds, sizeof(double), compare);
	qsort(ret_load, seeds, sizeof(double), compare);
}

static bool are_same(const double *a, const double *b)
{
	bool same = true;

	for (int m = 0; m < MEMORIES; m++)
		same &= a[m] == b[m];
	return same;
}

/* Two policies of which all figures are the same: what one has and the other lacks does nothing. */
static void distinguish(double load[POLICIES_MAX][MEMORIES])
{
	for (unsigned int a = 0; a < SLOTS_POLICIES_COUNT; a++)
		for (unsigned int b = a + 1; b < SLOTS_POLICIES_COUNT; b++)
			if (are_same(load[a], load[b]))
				errx(1, "\"%s\" does what \"%s\" does", SLOTS_POLICIES[b].name,
				     SLOTS_POLICIES[a].name);
}

/* Best: rings for all. */
static void table(uint32_t spread, int seeds)
{
	double best[SEEDS_MAX], time[SEEDS_MAX], load[POLICIES_MAX][MEMORIES], all[SEEDS_MAX];

	for (int seed = 0; seed < seeds; seed++)
		best[seed] = run(&SLOTS_POLICIES[0], PLENTY, spread, seed + 1, &all[seed]);
	printf("\nspread %u\n%-9s", spread, "memory");
	for (int m = 0; m < MEMORIES; m++)
		printf(" %-16g", memories[m]);
	for (unsigned int p = 0; p < SLOTS_POLICIES_COUNT; p++) {
		printf("\n%-9s", SLOTS_POLICIES[p].name);
		for (int m = 0; m < MEMORIES; m++) {
			measure(&SLOTS_POLICIES[p], memories[m], spread, best, seeds, time, all);
			printf(" %4.2f (%4.2f-%4.2f)", time[seeds / 2], time[0], time[seeds - 1]);
			load[p][m] = all[seeds / 2];
		}
		fflush(stdout);
	}
	printf("\npackets to the root for each chunk");
	for (unsigned int p = 0; p < SLOTS_POLICIES_COUNT; p++) {
		printf("\n%-9s", SLOTS_POLICIES[p].name);
		for (int m = 0; m < MEMORIES; m++)
			printf(" %-16.1f", load[p][m]);
	}
	printf("\n");
	distinguish(load);
}

int main(int argc, char **argv)
{
	static char *usual[] = { "50", "200", "800" };
	unsigned long seeds = argc > 1 ? strtoul(argv[1], NULL, 0) : 10;
	char **spread = argc > 2 ? argv + 2 : usual;

	if (seeds < 1 || seeds > SEEDS_MAX)
		errx(1, "seeds: 1 to %d", SEEDS_MAX);
	if (SLOTS_POLICIES_COUNT > POLICIES_MAX)
		errx(1, "%u policies: there is room for %d", SLOTS_POLICIES_COUNT, POLICIES_MAX);
	for (int i = 0; i < (argc > 2 ? argc - 2 : 3); i++)
		table(strtoul(spread[i], NULL, 0), seeds);
	return 0;
}
