// SPDX-License-Identifier: GPL-2.0-only
/* Where several roots of one job are, against all pairs of nodes; TALLY_SEED=n runs one case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "agent/policy/roots.h"
#include "common/owned.h"
#include "place_world.h"

enum {
	CASES = 200,
	JOBS = PLACE_WORLD_JOBS,
};

/* Two jobs that are one job's roots, behind some that lie. */
static void world_random(uint64_t *random, struct place_world *w, struct place_tree *tree,
			 uint32_t *part)
{
	unsigned int networks = sizeof(place_world_words) / sizeof(*place_world_words), others;

	place_world_open(place_world_words[random_below(random, networks)], w);
	place_world_random(random, 1 + random_below(random, 3), w);
	others = w->p.jobs;
	for (unsigned int j = 0; j < others; j++) {
		uint32_t node = w->job[j].root;

		while (node == GRAPH_NONE || w->t->graph->machine[node].kind != GRAPH_NODE)
			node = random_below(random, w->t->graph->machines);
		w->job[j].root = GRAPH_NONE;
		w->job[j].slots = 0;
		tree[j] = (struct place_tree){ .nodes = 1, .node = { { node, GRAPH_NONE } } };
	}
	for (unsigned int i = 0; i < 2; i++) {
		struct place_job *job = place_world_job(w, 4, 32e6);

		for (unsigned int k = 0; k < 4; k++)
			w->worker[others + i][k] = i ? w->worker[others][k]
						     : random_host(random, w->t);
		job->weight = 0.5;
		job->slots = 256;
		part[i] = others + i;
		tree[part[i]] = (struct place_tree){ 0 };
	}
}

static double rate_of(const struct place_world *w, const struct place_tree *tree,
		      const uint32_t *part)
{
	struct place_job_cost cost[JOBS];
	struct place_cost all;

	assert_int_equal(place_cost(&w->p, tree, &all, cost), 0);
	return cost[part[0]].rate + cost[part[1]].rate;
}

static double best_of_all(const struct place_world *w, const struct place_tree *lies,
			  const uint32_t *part)
{
	const struct graph *g = w->t->graph;
	struct place_tree tree[JOBS];
	double best = 0;

	memcpy(tree, lies, sizeof(tree));
	for (uint32_t a = 0; a < g->machines; a++)
		for (uint32_t b = 0; b < g->machines; b++) {
			if (a == b || g->machine[a].kind != GRAPH_NODE ||
			    g->machine[b].kind != GRAPH_NODE)
				continue;
			tree[part[0]] = (struct place_tree){ .nodes = 1,
							     .node = { { a, GRAPH_NONE } } };
			tree[part[1]] = (struct place_tree){ .nodes = 1,
							     .node = { { b, GRAPH_NONE } } };
			best = fmax(best, rate_of(w, tree, part));
		}
	return best;
}

static void two_roots_are_about_as_good_as_the_best_two(void **state)
{
	double worst = 1, sum = 0;
	unsigned int best = 0;

	for (unsigned int i = 0; i < CASES; i++) {
		uint64_t random = i + 1;
		struct place_world w;
		struct place_tree tree[JOBS], before[JOBS];
		uint32_t part[2];
		double rate[2], most, ratio;

		world_random(&random, &w, tree, part);
		memcpy(before, tree, sizeof(tree));
		most = best_of_all(&w, tree, part);
		assert_int_equal(roots_choose(&w.p, part, 2, tree, rate), 0);
		assert_int_not_equal(tree[part[0]].node[0].machine, tree[part[1]].node[0].machine);
		assert_memory_equal(tree, before, part[0] * sizeof(*tree));
		assert_true(fabs(rate[0] + rate[1] - rate_of(&w, tree, part)) < 1e-3);
		ratio = (rate[0] + rate[1]) / most;
		assert_true(ratio <= 1 + 1e-9);
		worst = fmin(worst, ratio);
		sum += ratio;
		best += ratio > 1 - 1e-9;
		place_world_close(&w);
	}
	print_message("# of the best rate: mean %.4f, worst %.4f; the best in %u of %u\n",
		      sum / CASES, worst, best, CASES);
	assert_true(sum / CASES > 0.98);
	assert_true(worst > 0.7);
}

enum {
	W0,
	W1,
	W2,
	W3,
	A,
	B,
	WIDE,
	THIN,
	MACHINES
};

/* Two ways between two groups of two workers: one carries four times as much. */
static struct graph *two_ways(void)
{
	struct graph_machine machine[MACHINES] = { 0 };
	struct graph_link link[16];
	static const struct {
		uint32_t a, b;
		double rate;
	} cable[] = { { W0, A, 100 },  { W1, A, 100 },	{ W2, B, 100 },	 { W3, B, 100 },
		      { A, WIDE, 40 }, { B, WIDE, 40 }, { A, THIN, 10 }, { B, THIN, 10 } };
	struct graph *g = NULL;

	for (unsigned int i = 0; i < MACHINES; i++)
		machine[i] = i < A ? (struct graph_machine){ .kind = GRAPH_HOST }
				   : (struct graph_machine){ .kind = GRAPH_NODE, .slots = 1024 };
	for (unsigned int i = 0; i < 8; i++) {
		link[2 * i] = (struct graph_link){ cable[i].a, cable[i].b, cable[i].rate, 0 };
		link[2 * i + 1] = (struct graph_link){ cable[i].b, cable[i].a, cable[i].rate, 0 };
	}
	assert_int_equal(graph_make(machine, MACHINES, link, 16, &g), 0);
	return g;
}

static void the_second_root_is_where_there_is_room(void **state)
{
	static const uint32_t worker[] = { W0, W1, W2, W3 }, part[] = { 0, 1 };
	struct place_job job[2];
	struct place_tree tree[2] = { { 0 } };
	_cleanup_(reach_freep) struct reach *reach = NULL;
	struct graph *g = two_ways();
	struct place_problem p;
	double rate[2];

	assert_int_equal(reach_make(g, &reach), 0);
	for (unsigned int i = 0; i < 2; i++)
		job[i] = (struct place_job){ .worker = worker,
					     .workers = 4,
					     .root = GRAPH_NONE,
					     .bytes = 1,
					     .weight = 0.5,
					     .slots = 256,
					     .iterations = 1 };
	p = (struct place_problem){
		.reach = reach, .job = job, .jobs = 2, .options = PLACE_OPTIONS
	};
	assert_int_equal(roots_choose(&p, part, 2, tree, rate), 0);
	assert_int_equal(tree[0].node[0].machine, WIDE);
	assert_int_equal(tree[1].node[0].machine, THIN);
	assert_true(fabs(rate[0] - 20) < 1e-6);
	assert_true(fabs(rate[1] - 5) < 1e-6);

	/* One that is given stays, also where it is no good. */
	tree[0] = (struct place_tree){ .nodes = 1, .node = { { THIN, GRAPH_NONE } } };
	tree[1] = (struct place_tree){ 0 };
	assert_int_equal(roots_choose(&p, part, 2, tree, rate), 0);
	assert_int_equal(tree[0].node[0].machine, THIN);
	assert_int_equal(tree[1].node[0].machine, WIDE);

	/* Where one node alone has room, it is both. */
	for (unsigned int i = A; i < MACHINES; i++)
		g->machine[i].slots = i == B ? 512 : 0;
	memset(tree, 0, sizeof(tree));
	assert_int_equal(roots_choose(&p, part, 2, tree, rate), 0);
	assert_int_equal(tree[0].node[0].machine, B);
	assert_int_equal(tree[1].node[0].machine, B);

	g->machine[B].slots = 255;
	memset(tree, 0, sizeof(tree));
	assert_int_equal(roots_choose(&p, part, 2, tree, rate), -ENOSPC);
	assert_int_equal(tree[0].nodes, 0);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_roots_are_about_as_good_as_the_best_two),
		cmocka_unit_test(the_second_root_is_where_there_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
