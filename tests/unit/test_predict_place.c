// SPDX-License-Identifier: GPL-2.0-only
/* Jobs placed by forecasts of what others send: what must hold between forecast and decision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/predict.h"
#include "common/owned.h"
#include "place_world.h"

enum {
	LINKS_MAX = 64,
	AHEAD = 5, /* steps */
	SEEDS = 8,
	SEEDS_LEAST = 20,
};

#define SMALL "leaf-spine:leaves=2,spines=2,hosts=2"

/* What others send on each link, in parts of its capacity, and what a predictor makes of it. */
struct forecasts {
	const struct predictor *predictor;
	void *state[LINKS_MAX];
};

static void forecasts_open(struct forecasts *f, const struct predictor *predictor)
{
	f->predictor = predictor;
	for (unsigned int l = 0; l < LINKS_MAX; l++) {
		f->state[l] = calloc(1, predictor->bytes);
		assert_non_null(f->state[l]);
		predictor->begin(f->state[l], &predictor->usual);
	}
}

static void forecasts_close(struct forecasts *f)
{
	for (unsigned int l = 0; l < LINKS_MAX; l++)
		free(f->state[l]);
}

static void loads_put(struct place_world *w, const double *part)
{
	const struct graph *g = w->t->graph;

	assert_true(g->links <= LINKS_MAX);
	for (uint32_t l = 0; l < g->links; l++)
		g->link[l].load = g->link[l].capacity * fmin(part[l], 0.95);
}

static void loads_forecast(struct place_world *w, const struct forecasts *f)
{
	double part[LINKS_MAX];

	for (uint32_t l = 0; l < w->t->graph->links; l++)
		part[l] = f->predictor->forecast(f->state[l], AHEAD);
	loads_put(w, part);
}

static void decide(struct place_world *w, const char *policy, struct place_tree *ret)
{
	unsigned int without;
	const struct place_policy *p = place_policy_find(policy);

	memset(ret, 0, w->p.jobs * sizeof(*ret));
	assert_int_equal(place_decide(p, &w->p, ret, &without), 0);
}

static double cost_of(const struct place_world *w, const struct place_tree *tree)
{
	struct place_cost cost;

	assert_int_equal(place_cost(&w->p, tree, &cost, NULL), 0);
	return cost.total;
}

static bool is_same(const struct place_tree *a, const struct place_tree *b, unsigned int jobs)
{
	for (unsigned int j = 0; j < jobs; j++)
		if (a[j].nodes != b[j].nodes ||
		    memcmp(a[j].node, b[j].node, a[j].nodes * sizeof(*a[j].node)) != 0)
			return false;
	return true;
}

/* --- facts ----------------------------------------------------------------------------------- */

/* Whoever is asked: what never changes is known after a while. */
static void of_constant_loads_all_decide_as_the_truth(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct place_world w;
		struct place_tree truth[PLACE_WORLD_JOBS], said[PLACE_WORLD_JOBS];
		double part[LINKS_MAX];
		uint64_t random = seed;

		place_world_open(SMALL, &w);
		place_world_random(&random, 4, &w);
		for (unsigned int l = 0; l < LINKS_MAX; l++)
			part[l] = random_below(&random, 10) / 16.0;
		loads_put(&w, part);
		decide(&w, "traffic", truth);
		for (unsigned int p = 0; p < PREDICTORS_COUNT; p++) {
			struct forecasts f;

			forecasts_open(&f, PREDICTORS[p]);
			for (unsigned int step = 0; step < 200; step++)
				for (unsigned int l = 0; l < LINKS_MAX; l++)
					f.predictor->observe(f.state[l], 1, part[l]);
			loads_forecast(&w, &f);
			decide(&w, "traffic", said);
			if (!is_same(said, truth, w.p.jobs))
				fail_msg("seed %lu: %s decides otherwise than the truth",
					 (unsigned long)seed, f.predictor->name);
			forecasts_close(&f);
		}
		place_world_close(&w);
	}
}

/* By the least cost of all trees: nobody who guesses is better than who knows. */
static void who_knows_the_truth_is_never_worse(void **state)
{
	unsigned int worse = 0;

	for (uint64_t seed = 1; seed <= SEEDS_LEAST; seed++) {
		struct place_world w;
		struct place_tree truth[PLACE_WORLD_JOBS], said[PLACE_WORLD_JOBS];
		double part[LINKS_MAX] = { 0 };
		uint64_t random = seed;
		double least;

		place_world_open(SMALL, &w);
		place_world_random(&random, 2, &w);
		w.p.options.tree_max = 2;
		for (unsigned int p = 0; p < PREDICTORS_COUNT; p++) {
			struct forecasts f;

			forecasts_open(&f, PREDICTORS[p]);
			for (unsigned int step = 0; step < 40 + AHEAD; step++)
				for (unsigned int l = 0; l < LINKS_MAX; l++) {
					part[l] = random_below(&random, 15) / 16.0;
					if (step < 40)
						f.predictor->observe(f.state[l], 1, part[l]);
				}
			loads_forecast(&w, &f);
			decide(&w, "least", said);
			loads_put(&w, part);
			decide(&w, "least", truth);
			least = cost_of(&w, truth);
			assert_true(cost_of(&w, said) >= least * (1 - 1e-9));
			worse += cost_of(&w, said) > least * (1 + 1e-9);
			forecasts_close(&f);
		}
		place_world_close(&w);
	}
	print_message("of %u decisions by forecasts of noise %u cost more than by the truth\n",
		      SEEDS_LEAST * PREDICTORS_COUNT, worse);
	assert_true(worse > SEEDS_LEAST); /* otherwise loads do not matter here */
}

static uint32_t machine_named(const struct topology *t, const char *name)
{
	for (uint32_t m = 0; m < t->graph->machines; m++)
		if (!strcmp(t->name[m], name))
			return m;
	fail_msg("no machine %s", name);
	return 0;
}

/* Of spine s0 the links fill; those of s1 are fuller, for now. A job needs one of the two. */
static void a_trend_that_is_seen_is_gone_around(void **state)
{
	struct place_world w;
	struct place_tree by_last, by_holt;
	struct forecasts last, holt;
	double part[LINKS_MAX];
	uint32_t filling;

	place_world_open(SMALL, &w);
	filling = machine_named(w.t, "s0");
	place_world_job(&w, 2, 1e8);
	w.worker[0][0] = w.t->host[0];
	w.worker[0][1] = w.t->host[2];
	forecasts_open(&last, &PREDICT_LAST);
	forecasts_open(&holt, &PREDICT_HOLT);
	for (unsigned int step = 0; step <= 20 + AHEAD; step++)
		for (uint32_t l = 0; l < w.t->graph->links; l++) {
			const struct graph_link *link = &w.t->graph->link[l];
			bool at_host = w.t->graph->machine[link->from].kind == GRAPH_HOST ||
				       w.t->graph->machine[link->to].kind == GRAPH_HOST;
			bool fills = link->from == filling || link->to == filling;

			part[l] = at_host ? 0 : fills ? 0.03 * step : 0.65;
			if (step > 20)
				continue;
			last.predictor->observe(last.state[l], 1, part[l]);
			holt.predictor->observe(holt.state[l], 1, part[l]);
		}
	loads_forecast(&w, &last);
	decide(&w, "least", &by_last);
	loads_forecast(&w, &holt);
	decide(&w, "least", &by_holt);
	loads_put(&w, part);
	if (!(cost_of(&w, &by_holt) < cost_of(&w, &by_last)))
		fail_msg("holt %g, last %g", cost_of(&w, &by_holt), cost_of(&w, &by_last));
	forecasts_close(&last);
	forecasts_close(&holt);
	place_world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_constant_loads_all_decide_as_the_truth),
		cmocka_unit_test(who_knows_the_truth_is_never_worse),
		cmocka_unit_test(a_trend_that_is_seen_is_gone_around),
	};

	return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
