// SPDX-License-Identifier: GPL-2.0-only
/* Placements that others are compared with; TALLY_SEED=n runs one case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "agent/policy/place.h"
#include "common/owned.h"
#include "place_world.h"
#include "random.h"

enum {
	CASES = 200,
	NODES_MAX = 20, /* of all networks here */
};

static void decide(const char *name, const struct place_problem *p, struct place_tree *ret)
{
	unsigned int without;

	assert_int_equal(place_decide(place_policy_find(name), p, ret, &without), 0);
	assert_int_equal(without, 0);
	assert_int_equal(place_allowed(p, ret), 0);
}

static unsigned int all_nodes(const struct graph *g, uint32_t *ret)
{
	unsigned int nodes = 0;

	for (uint32_t m = 0; m < g->machines; m++)
		if (g->machine[m].kind == GRAPH_NODE)
			ret[nodes++] = m;
	assert_in_range(nodes, 1, NODES_MAX);
	return nodes;
}

static bool is_in(const struct place_tree *tree, uint32_t machine)
{
	for (unsigned int i = 0; i < tree->nodes; i++)
		if (tree->node[i].machine == machine)
			return true;
	return false;
}

/* --- SOAR ------------------------------------------------------------------------------------ */

static uint32_t next_machine(const struct place_problem *p, uint32_t from, uint32_t root)
{
	uint32_t link[GRAPH_PATH_MAX];

	assert_true(reach_path(p->reach, from, root, p->options.seed, link) != GRAPH_NONE);
	return p->reach->graph->link[link[0]].to;
}

/*
 * Messages times links on the way up, where these machines sum: worker by worker and node by node,
 * each up to the next one that sums.
 */
static unsigned int messages(const struct place_problem *p, const struct place_job *j,
			     const bool *sums)
{
	const struct graph *g = p->reach->graph;
	_cleanup_(freep) bool *reached = calloc(g->machines, sizeof(*reached));
	unsigned int links = 0;

	for (unsigned int w = 0; w < j->workers; w++) {
		uint32_t m = j->worker[w];

		while (m != j->root) {
			links++;
			m = next_machine(p, m, j->root);
			if (m != j->root && sums[m] && reached[m])
				break;
			reached[m] |= sums[m];
		}
	}
	return links;
}

/* The least of all sets of at most `budget` of the nodes. */
static unsigned int least_messages(const struct place_problem *p, const struct place_job *j,
				   const uint32_t *node, unsigned int nodes, unsigned int budget,
				   bool *sums)
{
	unsigned int least = messages(p, j, sums);

	for (unsigned int i = 0; i < nodes && budget > 0; i++) {
		unsigned int more;

		sums[node[i]] = true;
		more = least_messages(p, j, node + i + 1, nodes - i - 1, budget - 1, sums);
		sums[node[i]] = false;
		least = more < least ? more : least;
	}
	return least;
}

static const char *soar_is_not_the_best(uint64_t seed)
{
	_cleanup_(place_world_close) struct place_world w;
	_cleanup_(freep) bool *sums = NULL;
	struct place_tree tree;
	uint32_t node[NODES_MAX];
	unsigned int nodes, least, mine;

	place_world_any(&seed, 1, &w);
	w.job[0].slots = 0;
	w.job[0].root = random_host(&seed, w.t);
	w.p.options.nodes_max = UINT32_MAX;
	w.p.options.tree_max = 1 + random_below(&seed, 3);
	decide("soar", &w.p, &tree);
	nodes = all_nodes(w.t->graph, node);
	sums = calloc(w.t->graph->machines, sizeof(*sums));
	least = least_messages(&w.p, &w.job[0], node, nodes, w.p.options.tree_max, sums);
	for (unsigned int i = 0; i < tree.nodes; i++)
		sums[tree.node[i].machine] = true;
	mine = messages(&w.p, &w.job[0], sums);
	if (mine != least)
		return "a set of nodes has fewer messages times links";
	for (unsigned int i = 0; i < tree.nodes; i++) {
		uint32_t m = next_machine(&w.p, tree.node[i].machine, w.job[0].root);
		uint32_t parent = tree.node[i].parent;

		while (m != w.job[0].root && !sums[m])
			m = next_machine(&w.p, m, w.job[0].root);
		if (m != (parent == GRAPH_NONE ? w.job[0].root : tree.node[parent].machine))
			return "a node's parent is not the next node on the way to the root";
	}
	return NULL;
}

static void no_set_of_nodes_is_better_than_soars(void **state)
{
	run_seeds(CASES, soar_is_not_the_best);
}

/* With no further nodes, jobs share those that are in use. */
static const char *soar_breaks_a_limit(uint64_t seed)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[PLACE_WORLD_JOBS];

	place_world_any(&seed, 6, &w);
	decide("soar", &w.p, tree);
	return NULL;
}

static void soar_keeps_limits_by_itself(void **state) { run_seeds(CASES, soar_breaks_a_limit); }

/* --- a fixed set of nodes -------------------------------------------------------------------- */

static double far(const struct place_problem *p, uint32_t j, uint32_t machine)
{
	double links = 0;

	if (machine == GRAPH_NONE)
		return INFINITY;
	for (unsigned int w = 0; w < p->job[j].workers; w++)
		links += reach_distance(p->reach, p->job[j].worker[w], machine);
	return p->job[j].bytes * links;
}

/* With the best of these nodes, or without. */
static double least_far(const struct place_problem *p, const uint32_t *node, unsigned int nodes)
{
	double all = 0;

	for (uint32_t j = 0; j < p->jobs; j++) {
		double least = far(p, j, p->job[j].root);

		for (unsigned int i = 0; i < nodes; i++)
			least = fmin(least, far(p, j, node[i]));
		all += least;
	}
	return all;
}

/* The least of all sets of k nodes; taken[0 .. got - 1] have been chosen. */
static double least_of_sets(const struct place_problem *p, const uint32_t *node, unsigned int nodes,
			    uint32_t *taken, unsigned int got, unsigned int k)
{
	double least = least_far(p, taken, got);

	for (unsigned int i = 0; i < nodes && got < k; i++) {
		taken[got] = node[i];
		least = fmin(least,
			     least_of_sets(p, node + i + 1, nodes - i - 1, taken, got + 1, k));
	}
	return least;
}

static double decided_far(const struct place_problem *p, const struct place_tree *tree)
{
	double all = 0;

	for (uint32_t j = 0; j < p->jobs; j++)
		all += far(p, j, tree[j].nodes ? tree[j].node[0].machine : p->job[j].root);
	return all;
}

static double worst = 1;
static unsigned int as_good;

static const char *k_median_is_wrong(uint64_t seed)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[PLACE_WORLD_JOBS];
	uint32_t node[NODES_MAX], taken[NODES_MAX];
	unsigned int nodes;
	double least, mine;

	place_world_any(&seed, 6, &w);
	w.p.options.nodes_max = 1 + random_below(&seed, 2);
	w.p.options.jobs_max = UINT32_MAX;
	for (unsigned int j = 0; j < w.p.jobs; j++) {
		w.job[j].slots = 0;
		w.job[j].root = random_host(&seed, w.t);
	}
	nodes = all_nodes(w.t->graph, node);
	least = least_of_sets(&w.p, node, nodes, taken, 0, w.p.options.nodes_max);
	decide("k-median", &w.p, tree);
	mine = decided_far(&w.p, tree);
	if (mine < least)
		return "a set is better than the best one";
	worst = fmax(worst, mine / least);
	as_good += mine == least;
	return mine > 1.05 * least ? "a set of nodes is better by a twentieth" : NULL;
}

static void k_median_is_nearly_the_best_set(void **state)
{
	run_seeds(CASES, k_median_is_wrong);
	print_message("k-median: as good as the best set in %u of %u cases, worst %.3f\n", as_good,
		      CASES, worst);
}

static const char *a_nearer_node_had_room(uint64_t seed)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[PLACE_WORLD_JOBS];
	uint32_t node[NODES_MAX];
	unsigned int nodes;

	place_world_any(&seed, 1, &w);
	w.job[0].slots = 0;
	nodes = all_nodes(w.t->graph, node);
	w.p.options.nodes_max = nodes;
	decide("random", &w.p, tree);
	if (decided_far(&w.p, tree) != least_far(&w.p, node, nodes))
		return "of all nodes the nearest one was not taken";
	w.p.options.nodes_max = 1 + random_below(&seed, 2);
	decide("tor", &w.p, tree);
	for (unsigned int i = 0; i < tree[0].nodes; i++) {
		uint32_t first = GRAPH_NONE, second = GRAPH_NONE;

		/* Hosts' switches come in the order of the hosts' numbers here. */
		for (unsigned int h = 0; h < w.t->hosts; h++) {
			const struct graph *g = w.t->graph;
			uint32_t top = g->link[g->leaving[g->leaving_at[w.t->host[h]]]].to;

			first = top < first ? top : first;
		}
		for (unsigned int h = 0; h < w.t->hosts; h++) {
			const struct graph *g = w.t->graph;
			uint32_t top = g->link[g->leaving[g->leaving_at[w.t->host[h]]]].to;

			second = top != first && top < second ? top : second;
		}
		if (!is_in(&tree[0], first) &&
		    (w.p.options.nodes_max == 1 || !is_in(&tree[0], second)))
			return "it is not one of the first tops of rack";
	}
	return NULL;
}

static void fixed_sets_are_what_they_say(void **state) { run_seeds(CASES, a_nearer_node_had_room); }

static void chance_takes_all_nodes(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[1];
	unsigned int times[NODES_MAX] = { 0 };
	uint32_t node[NODES_MAX];
	unsigned int nodes;
	uint64_t random = 1;

	place_world_open("tapina", &w);
	place_world_random(&random, 1, &w);
	w.job[0].root = GRAPH_NONE;
	w.p.options.nodes_max = 1;
	nodes = all_nodes(w.t->graph, node);
	for (w.p.options.seed = 0; w.p.options.seed < 1000; w.p.options.seed++) {
		decide("random", &w.p, tree);
		for (unsigned int i = 0; i < nodes; i++)
			times[i] += is_in(&tree[0], node[i]);
	}
	for (unsigned int i = 0; i < nodes; i++)
		assert_in_range(times[i], 60, 140);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_set_of_nodes_is_better_than_soars),
		cmocka_unit_test(soar_keeps_limits_by_itself),
		cmocka_unit_test(k_median_is_nearly_the_best_set),
		cmocka_unit_test(fixed_sets_are_what_they_say),
		cmocka_unit_test(chance_takes_all_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
