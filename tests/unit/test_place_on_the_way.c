// SPDX-License-Identifier: GPL-2.0-only
/* Nodes that sum on the way to one that is given: agent/policy/place_on_the_way.c; TALLY_SEED=n
 * runs one case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "place_world.h"

enum {
	MACHINES_MAX = 1024,
	CASES = 500,
};

/*
 * Nodes 0 to 5 and hosts 6 to 10:
 *
 *	6, 7 ── 2 ──┐
 *	            1 ── 0 ── 10
 *	8 ───── 3 ──┘    │
 *	9 ── 5 ── 4 ─────┘
 */
static const uint32_t cables[][2] = { { 6, 2 }, { 7, 2 }, { 8, 3 }, { 2, 1 }, { 3, 1 },
				      { 1, 0 }, { 9, 5 }, { 5, 4 }, { 4, 0 }, { 10, 0 } };

struct world {
	struct graph *graph;
	struct reach *reach;
	uint32_t worker[PLACE_WORKERS_MAX];
	struct place_job job;
	struct place_problem p;
	bool may[MACHINES_MAX];
};

static int world_open(void **state)
{
	struct world *w = *state = calloc(1, sizeof(*w));
	struct graph_machine machine[11] = { 0 };
	struct graph_link link[20];

	for (unsigned int i = 0; i < 11; i++)
		machine[i].kind = i < 6 ? GRAPH_NODE : GRAPH_HOST;
	for (unsigned int i = 0; i < 10; i++)
		for (unsigned int end = 0; end < 2; end++)
			link[2 * i + end] = (struct graph_link){ .from = cables[i][end],
								 .to = cables[i][!end],
								 .capacity = 1 };
	assert_int_equal(graph_make(machine, 11, link, 20, &w->graph), 0);
	assert_int_equal(reach_make(w->graph, &w->reach), 0);
	memset(w->may, true, sizeof(w->may));
	w->job = (struct place_job){ .worker = w->worker, .root = GRAPH_NONE };
	w->p = (struct place_problem){
		.reach = w->reach, .job = &w->job, .jobs = 1, .options = PLACE_OPTIONS
	};
	return 0;
}

static int world_close(void **state)
{
	struct world *w = *state;

	reach_free(w->reach);
	graph_free(w->graph);
	free(w);
	return 0;
}

/* As "0 1 2/1": machines, and their parents if these are not the first one. */
static void assert_tree(struct world *w, uint32_t top, unsigned int workers, const uint32_t *worker,
			const char *expected)
{
	struct place_tree tree;
	char text[256] = "";

	memcpy(w->worker, worker, workers * sizeof(*worker));
	w->job.workers = workers;
	assert_int_equal(place_on_the_way(&w->p, 0, top, w->may, &tree), 0);
	for (unsigned int i = 0; i < tree.nodes; i++) {
		const size_t length = strlen(text);
		const uint32_t parent = tree.node[i].parent;

		snprintf(text + length, sizeof(text) - length, parent + 1 > 1 ? " %u/%u" : " %u",
			 tree.node[i].machine, parent + 1 > 1 ? tree.node[parent].machine : 0);
	}
	assert_string_equal(text + 1, expected);
}

#define WORKERS(...) \
	(sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t)), (uint32_t[]) { __VA_ARGS__ }

static void who_gets_two_streams_sums(void **state)
{
	assert_tree(*state, 0, WORKERS(6, 7, 8, 9), "0 1 2/1");
	assert_tree(*state, 0, WORKERS(6, 8), "0 1");
	assert_tree(*state, 0, WORKERS(6, 7), "0 2");
	assert_tree(*state, 0, WORKERS(9, 9), "0 5");
	assert_tree(*state, 0, WORKERS(10, 10, 0), "0");
	assert_tree(*state, 0, WORKERS(6, 9), "0");
	assert_tree(*state, 3, WORKERS(6, 7, 9, 10, 8), "3 1 2/1 0/1");
}

/* A sum that only passes is no second stream. */
static void who_has_nothing_to_add_is_left_out(void **state)
{
	struct world *w = *state;

	assert_tree(w, 4, WORKERS(6, 7), "4 2");
	assert_tree(w, 4, WORKERS(6, 7, 10), "4 0 2/0");
	w->may[2] = false;
	assert_tree(w, 4, WORKERS(6, 7), "4 1");
	w->may[1] = false;
	assert_tree(w, 4, WORKERS(6, 7), "4 0");
	w->may[0] = false;
	assert_tree(w, 4, WORKERS(6, 7), "4");
}

static void the_top_is_a_node(void **state)
{
	struct world *w = *state;
	struct place_tree tree = { .nodes = 7 };

	assert_int_equal(place_on_the_way(&w->p, 0, 6, w->may, &tree), -EINVAL);
	assert_int_equal(place_on_the_way(&w->p, 0, 99, w->may, &tree), -EINVAL);
	assert_int_equal(place_on_the_way(&w->p, 1, 0, w->may, &tree), -EINVAL);
	assert_int_equal(tree.nodes, 7);
}

/* --- any network ----------------------------------------------------------------------------- */

static bool is_in(const struct place_tree *tree, uint32_t machine)
{
	for (unsigned int i = 0; i < tree->nodes; i++)
		if (tree->node[i].machine == machine)
			return true;
	return false;
}

/* Messages times links, both ways. */
static double messages(const struct place_problem *p, uint32_t job, const struct place_tree *tree)
{
	_cleanup_(freep) struct fair_use *use = NULL;
	unsigned int uses = 0;
	double all = 0;

	assert_int_equal(place_uses(p, job, tree, &use, &uses), 0);
	for (unsigned int i = 0; i < uses; i++)
		all += use[i].times;
	return all;
}

/* Whoever sums may, has two streams at least, and lies on a way; and it never takes more messages
 * than the top alone. */
static unsigned int check(struct place_world *w, uint32_t job, uint32_t top, const bool *may)
{
	const struct place_job *j = &w->job[job];
	unsigned int streams[PLACE_NODES_MAX] = { 0 };
	struct place_tree tree, alone = { .nodes = 1, .node = { { top, GRAPH_NONE } } };

	assert_int_equal(place_on_the_way(&w->p, job, top, may, &tree), 0);
	assert_true(tree.nodes >= 1 && tree.nodes <= PLACE_NODES_MAX);
	assert_int_equal(tree.node[0].machine, top);
	for (unsigned int i = 0; i < j->workers; i++)
		streams[place_nearest(w->reach, j->worker[i], GRAPH_NONE, &tree)]++;
	for (unsigned int i = 1; i < tree.nodes; i++) {
		assert_true(tree.node[i].parent < i);
		streams[tree.node[i].parent]++;
		assert_true(may[tree.node[i].machine]);
	}
	for (unsigned int i = 1; i < tree.nodes; i++)
		assert_true(streams[i] >= 2);
	assert_true(messages(&w->p, job, &tree) <= messages(&w->p, job, &alone));

	/* Each worker sends to the first of them on its own path, or its path joins another one. */
	for (unsigned int i = 0; i < j->workers; i++) {
		uint32_t link[GRAPH_PATH_MAX];
		const uint32_t links = reach_path(w->reach, j->worker[i], top, w->p.options.seed,
						  link);
		const uint32_t nearest =
			tree.node[place_nearest(w->reach, j->worker[i], GRAPH_NONE, &tree)].machine;

		assert_int_not_equal(links, GRAPH_NONE);
		for (uint32_t k = 0; k < links && i == 0; k++) {
			const uint32_t to = w->reach->graph->link[link[k]].to;

			if (!is_in(&tree, to))
				continue;
			assert_int_equal(to, nearest);
			break;
		}
	}
	return tree.nodes;
}

static void trees_of_any_network_are_on_the_way(void **state)
{
	const char *one = getenv("TALLY_SEED");
	unsigned int inner = 0;

	for (uint64_t seed = one ? strtoull(one, NULL, 0) : 1;
	     seed <= (one ? strtoull(one, NULL, 0) : CASES); seed++) {
		_cleanup_(place_world_close) struct place_world w;
		uint64_t random = seed;
		bool may[MACHINES_MAX];
		uint32_t top;

		place_world_any(&random, 3, &w);
		assert_true(w.t->graph->machines <= MACHINES_MAX);
		for (uint32_t m = 0; m < w.t->graph->machines; m++)
			may[m] = w.t->graph->machine[m].kind == GRAPH_NODE && chance(&random, 800);
		for (uint32_t job = 0; job < w.p.jobs; job++) {
			w.job[job].root = GRAPH_NONE;
			do
				top = random_below(&random, w.t->graph->machines);
			while (w.t->graph->machine[top].kind != GRAPH_NODE);
			inner += check(&w, job, top, may) > 1;
		}
	}
	assert_true(one || inner > CASES / 4);
}

#define FACT(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(who_gets_two_streams_sums),
		FACT(who_has_nothing_to_add_is_left_out),
		FACT(the_top_is_a_node),
		cmocka_unit_test(trees_of_any_network_are_on_the_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
