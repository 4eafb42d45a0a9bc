// SPDX-License-Identifier: GPL-2.0-only
/*
 * What forecasts do to placement: `traffic` (agent/policy/place.h) places jobs by what each
 * predictor says that others will send, and what that costs is counted with what they send then
 * (agent/policy/traces.h), beside a decision by the truth. Also by the loads of nobody, to see
 * whether loads matter at all. Each link between switches has a trace of its own, and 25 % of its
 * capacity is a value of 1. Median of the seeds, and the most.
 *
 *	predict_place [FIRST [SEEDS]]	seeds 101 to 110, which no weight was chosen by
 */
#include <err.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/predict.h"
#include "agent/policy/traces.h"
#include "place_cases.h"

enum {
	STEPS = 900,
	WARM = 600, /* four days, or 30 iterations */
	EVERY = 30, /* steps between two decisions */
	AHEAD = 5, /* steps that a decision looks ahead */
	JOBS = 8,
	WORKERS = 6,
	PREDICTORS_MAX = 8,
	FIRST = 101,
	SEEDS = 10,
	SEEDS_MAX = 100,
	NOBODY = PREDICTORS_MAX, /* as if there were no loads */
	VARIANTS,
};

#define NETWORK "leaf-spine:leaves=16,spines=10,hosts=4"

static const double SCALE = 0.25, MOST = 0.9; /* of a link's capacity */

struct world {
	struct place_case of;
	uint32_t links; /* between switches, */
	uint32_t *link; /* these */
	double *value; /* [links][STEPS] */
	void **state; /* [PREDICTORS_COUNT][links] */
};

/* --- the world ------------------------------------------------------------------------------- */

static void *room(size_t count, size_t size)
{
	void *memory = calloc(count + 1, size);

	if (!memory)
		err(1, "memory");
	return memory;
}

static void world_open(struct world *w, const struct trace_kind *kind, uint64_t seed)
{
	const struct graph *g;
	struct trace trace;

	memset(w, 0, sizeof(*w));
	place_case_open(NETWORK, JOBS, seed, &w->of);
	g = w->of.t->graph;
	w->link = room(g->links, sizeof(*w->link));
	for (uint32_t l = 0; l < g->links; l++)
		if (g->machine[g->link[l].from].kind != GRAPH_HOST &&
		    g->machine[g->link[l].to].kind != GRAPH_HOST)
			w->link[w->links++] = l;
	w->value = room((size_t)w->links * STEPS, sizeof(*w->value));
	for (uint32_t i = 0; i < w->links; i++) {
		trace_begin(&trace, kind, seed * 1000000 + i);
		for (unsigned int s = 0; s < STEPS; s++)
			w->value[(size_t)i * STEPS + s] = trace_next(&trace);
	}
	w->state = room((size_t)PREDICTORS_COUNT * w->links, sizeof(*w->state));
	for (unsigned int p = 0; p < PREDICTORS_COUNT; p++)
		for (uint32_t i = 0; i < w->links; i++) {
			void *state = room(1, PREDICTORS[p]->bytes);

			PREDICTORS[p]->begin(state, &PREDICTORS[p]->usual);
			w->state[p * w->links + i] = state;
		}
}

static void world_close(struct world *w)
{
	for (unsigned int i = 0; i < PREDICTORS_COUNT * w->links; i++)
		free(w->state[i]);
	free(w->state);
	free(w->value);
	free(w->link);
	place_case_close(&w->of);
}

static void observe(struct world *w, unsigned int step)
{
	for (unsigned int p = 0; p < PREDICTORS_COUNT; p++)
		for (uint32_t i = 0; i < w->links; i++)
			PREDICTORS[p]->observe(w->state[p * w->links + i], 1,
					       w->value[(size_t)i * STEPS + step]);
}

/* --- decisions ------------------------------------------------------------------------------- */

static void load_put(struct world *w, uint32_t i, double value)
{
	struct graph_link *link = &w->of.t->graph->link[w->link[i]];

	link->load = link->capacity * fmin(fmax(value * SCALE, 0), MOST);
}

static void loads_true(struct world *w, unsigned int step)
{
	for (uint32_t i = 0; i < w->links; i++)
		load_put(w, i, w->value[(size_t)i * STEPS + step]);
}

static void loads_forecast(struct world *w, unsigned int variant)
{
	for (uint32_t i = 0; i < w->links; i++)
		load_put(w, i,
			 variant == NOBODY ? 0
					   : PREDICTORS[variant]->forecast(
						     w->state[variant * w->links + i], AHEAD));
}

static void decide(struct world *w, struct place_tree *ret)
{
	unsigned int without;
	int r = place_decide(place_policy_find("traffic"), &w->of.p, ret, &without);

	if (r < 0)
		errx(1, "traffic: %s", strerror(-r));
}

/* With the loads that there are. */
static double cost_of(struct world *w, const struct place_tree *tree)
{
	struct place_cost cost;
	int r = place_cost(&w->of.p, tree, &cost, NULL);

	if (r < 0)
		errx(1, "cost: %s", strerror(-r));
	return cost.total;
}

/* ret[v]: cost of the decisions of variant v by that of decisions that know the truth. */
static void play(const struct trace_kind *kind, uint64_t seed, double ret[VARIANTS])
{
	static struct place_tree tree[VARIANTS][JOBS], best[JOBS];
	double sum[VARIANTS] = { 0 }, least = 0;
	struct world w;

	world_open(&w, kind, seed);
	for (unsigned int s = 0; s + AHEAD < STEPS; s++) {
		observe(&w, s);
		if (s < WARM || (s - WARM) % EVERY)
			continue;
		for (uint32_t j = 0; j < JOBS; j++)
			place_case_job(&w.of, j, WORKERS);
		for (unsigned int v = 0; v < VARIANTS; v++) {
			if (v >= PREDICTORS_COUNT && v != NOBODY)
				continue;
			loads_forecast(&w, v);
			decide(&w, tree[v]);
		}
		loads_true(&w, s + AHEAD);
		decide(&w, best);
		least += cost_of(&w, best);
		for (unsigned int v = 0; v < VARIANTS; v++)
			if (v < PREDICTORS_COUNT || v == NOBODY)
				sum[v] += cost_of(&w, tree[v]);
	}
	for (unsigned int v = 0; v < VARIANTS; v++)
		ret[v] = sum[v] / least;
	world_close(&w);
}

/* --- the table ------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_kind(const struct trace_kind *kind, uint64_t first, unsigned int seeds)
{
	static double ratio[SEEDS_MAX][VARIANTS], of[SEEDS_MAX];

	for (unsigned int i = 0; i < seeds; i++)
		play(kind, first + i, ratio[i]);
	printf("| %s |", kind->name);
	for (unsigned int v = 0; v < VARIANTS; v++) {
		if (v >= PREDICTORS_COUNT && v != NOBODY)
			continue;
		for (unsigned int i = 0; i < seeds; i++)
			of[i] = ratio[i][v];
		qsort(of, seeds, sizeof(*of), by_size);
		printf(" %.2f (%.2f) |", of[seeds / 2], of[seeds - 1]);
	}
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : FIRST;
	unsigned long seeds = argc > 2 ? strtoul(argv[2], NULL, 0) : SEEDS;

	if (seeds < 1 || seeds > SEEDS_MAX)
		errx(1, "SEEDS is '%s'; give a number from 1 to %d", argv[2], SEEDS_MAX);
	if (PREDICTORS_COUNT > PREDICTORS_MAX)
		errx(1, "%u predictors: there is room for %d", PREDICTORS_COUNT, PREDICTORS_MAX);
	printf("| trace |");
	for (unsigned int p = 0; p < PREDICTORS_COUNT; p++)
		printf(" `%s` |", PREDICTORS[p]->name);
	printf(" no loads |\n| --- |");
	for (unsigned int p = 0; p < PREDICTORS_COUNT; p++)
		printf(" --- |");
	printf(" --- |\n");
	for (unsigned int k = 0; k < TRACE_KINDS_COUNT; k++)
		print_kind(&TRACE_KINDS[k], first, seeds);
	return 0;
}
