// SPDX-License-Identifier: GPL-2.0-only
/*
 * How good placements are, and how long they take.
 *
 *   place small [CASES]   `traffic` against the least cost there is, on small random networks
 *   place large [POLICY]  milliseconds on a fat-tree of 980 nodes and 5,488 hosts, with 500 jobs
 *   place roots           the same for the roots of one job
 *   place compare         what each policy's decisions cost, by term
 */
#include <err.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/policy/roots.h"
#include "common/owned.h"
#include "tests/bench/place_cases.h"

enum {
	CASES = 200,
	RUNS = 5,
	LARGE_JOBS = 500,
	SEEDS = 10,
};

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

/* Returns what the decision costs, and in *ret_ms how long it took. */
static double decide(const char *name, const struct place_problem *p, struct place_cost *ret,
		     double *ret_ms)
{
	_cleanup_(freep) struct place_tree *tree = calloc(p->jobs, sizeof(*tree));
	double begin = now_ms();
	unsigned int without;

	must(place_decide(place_policy_find(name), p, tree, &without), name);
	*ret_ms = now_ms() - begin;
	must(place_cost(p, tree, ret, NULL), "cost");
	return ret->total;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* --- small ----------------------------------------------------------------------------------- */

static void small(unsigned int cases)
{
	_cleanup_(freep) double *over = calloc(cases + 1, sizeof(*over));
	unsigned int within = 0, equal = 0;
	double ms, all_ms = 0, all = 0;

	for (unsigned int i = 0; i < cases; i++) {
		_cleanup_(place_case_close) struct place_case c;
		struct place_cost cost;
		double least;

		place_case_small(i + 1, &c);
		least = decide("least", &c.p, &cost, &ms);
		over[i] = decide("traffic", &c.p, &cost, &ms) / least - 1;
		all_ms += ms;
		all += over[i];
		within += over[i] <= 0.05;
		equal += over[i] <= 1e-6;
	}
	qsort(over, cases, sizeof(*over), by_size);
	printf("%u small random networks: traffic's cost above the least one\n", cases);
	printf("  the same %u, within 5 %% %u; mean %.2f %%, median %.2f %%, 90 of 100 %.2f %%, "
	       "99 of 100 %.2f %%, worst %.2f %%\n",
	       equal, within, 100 * all / cases, 100 * over[cases / 2], 100 * over[cases * 9 / 10],
	       100 * over[cases * 99 / 100], 100 * over[cases - 1]);
	printf("  %.1f ms each\n", all_ms / cases);
}

/* --- large ----------------------------------------------------------------------------------- */

static void time_policy(const char *name, const struct place_problem *p)
{
	double ms[RUNS];
	struct place_cost cost;

	for (unsigned int i = 0; i < RUNS; i++)
		decide(name, p, &cost, &ms[i]);
	qsort(ms, RUNS, sizeof(*ms), by_size);
	printf("  %-10s %8.1f ms (%.1f to %.1f)   cost %.4f\n", name, ms[RUNS / 2], ms[0],
	       ms[RUNS - 1], cost.total);
	fflush(stdout);
}

static void large(const char *only)
{
	static const char *const names[] = { "traffic", "none",	    "tapina", "tapina-mg",
					     "tor",	"k-median", "soar" };
	_cleanup_(place_case_close) struct place_case c;
	struct reach *again;
	double begin;

	place_case_large(1, LARGE_JOBS, &c);
	printf("%u machines, %u jobs; milliseconds of one core, median of %u (range)\n",
	       c.t->graph->machines, c.p.jobs, RUNS);
	begin = now_ms();
	must(reach_make(c.t->graph, &again), "distances");
	printf("  distances, once for a network: %.1f ms\n", now_ms() - begin);
	reach_free(again);
	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!only || !strcmp(only, names[i]))
			time_policy(names[i], &c.p);
}

/* --- several roots --------------------------------------------------------------------------- */

/* All jobs but the last `parts` lie; those are one job's roots, with the workers of the first. */
static double time_roots(struct place_case *c, struct place_tree *tree, unsigned int parts)
{
	const unsigned int others = c->p.jobs - parts;
	uint32_t part[16];
	double rate[16], begin;

	for (unsigned int i = 0; i < parts; i++) {
		part[i] = others + i;
		c->job[others + i] = c->job[others];
		c->job[others + i].root = GRAPH_NONE;
		c->job[others + i].weight = 1.0 / parts;
		tree[others + i] = (struct place_tree){ 0 };
	}
	begin = now_ms();
	must(roots_choose(&c->p, part, parts, tree, rate), "roots");
	return now_ms() - begin;
}

static void roots(void)
{
	static const unsigned int parts[] = { 2, 4, 16 };
	_cleanup_(place_case_close) struct place_case c;
	_cleanup_(freep) struct place_tree *tree = NULL;
	unsigned int without;

	place_case_large(1, LARGE_JOBS, &c);
	tree = calloc(c.p.jobs, sizeof(*tree));
	must(tree ? 0 : -ENOMEM, "memory");
	must(place_decide(place_policy_find("tor"), &c.p, tree, &without), "tor");
	printf("%u machines, %u jobs; milliseconds of one core\n", c.t->graph->machines, c.p.jobs);
	for (unsigned int i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		printf("  %2u roots %8.1f ms\n", parts[i], time_roots(&c, tree, parts[i]));
}

/* --- all policies ---------------------------------------------------------------------------- */

static void compare_one(const char *name)
{
	struct place_terms sum = { 0 };
	double total = 0, ms;

	for (unsigned int i = 0; i < SEEDS; i++) {
		_cleanup_(place_case_close) struct place_case c;
		struct place_cost cost;

		place_case_middle(i + 1, &c);
		total += decide(name, &c.p, &cost, &ms) / SEEDS;
#define PLACE_TERM(term) sum.term += cost.value.term / SEEDS;
		PLACE_TERMS(PLACE_TERM)
#undef PLACE_TERM
	}
	printf("  %-10s %7.3f %7.3f %7.3f %7.3f %7.3f %7.3f\n", name, total, sum.bytes, sum.use,
	       sum.time, sum.fair, sum.nodes);
}

static void compare(void)
{
	printf("fat-tree of k = 8, 40 jobs, loads of others, 12 nodes of 8 jobs; mean of %u\n",
	       SEEDS);
	printf("  %-10s %7s %7s %7s %7s %7s %7s\n", "", "cost", "bytes", "use", "time", "fair",
	       "nodes");
	for (unsigned int i = 0; i < PLACE_POLICIES_COUNT; i++)
		if (strcmp(PLACE_POLICIES[i].name, "exact") != 0 &&
		    strcmp(PLACE_POLICIES[i].name, "least") != 0)
			compare_one(PLACE_POLICIES[i].name);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "small"))
		small(argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : CASES);
	else if (!strcmp(what, "large"))
		large(argc > 2 ? argv[2] : NULL);
	else if (!strcmp(what, "roots"))
		roots();
	else if (!strcmp(what, "compare"))
		compare();
	else
		errx(2, "place small [CASES] | large [POLICY] | roots | compare");
	return 0;
}
