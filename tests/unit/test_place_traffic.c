// SPDX-License-Identifier: GPL-2.0-only
/* Placement by all that a decision costs; TALLY_SEED=n runs one case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/place_estimate.h"
#include "common/owned.h"
#include "place_world.h"
#include "random.h"
#include "tests/bench/place_cases.h"

enum {
	CASES = 100,
	EXACT_CASES = 12, /* of 200: tests/bench/place has them all */
	STEPS = 40,
};

/* --- the estimate ---------------------------------------------------------------------------- */

/* What fair.h would say if each link gave each flow its share, whether others take theirs or not.
 */
static double slow_of(const struct place_problem *p, const struct place_tree *tree,
		      const bool *placed, uint32_t job)
{
	const struct graph *g = p->reach->graph;
	_cleanup_(freep) double *weight = calloc(g->links, sizeof(*weight));
	_cleanup_(freep) struct fair_use *use = NULL;
	unsigned int uses;
	double level = 0;

	for (uint32_t j = 0; j < p->jobs; j++) {
		if (!placed[j])
			continue;
		assert_int_equal(place_uses(p, j, &tree[j], &use, &uses), 0);
		for (unsigned int i = 0; i < uses; i++)
			weight[use[i].link] += use[i].times * p->job[j].weight;
		free(TAKE_PTR(use));
	}
	assert_int_equal(place_uses(p, job, &tree[job], &use, &uses), 0);
	for (unsigned int i = 0; i < uses; i++)
		level = fmax(level, weight[use[i].link] / place_link_room(&g->link[use[i].link]));
	return (p->job[job].compute_s + p->job[job].bytes / p->job[job].weight * level) /
		       place_alone_s(p, job) -
	       1;
}

static bool is_about(double a, double b) { return fabs(a - b) <= 1e-6 * fmax(1, fabs(b)); }

/* Without the terms of times, the estimate is what place_cost() says. */
static const char *an_estimate_is_off(struct place_world *w, const struct place_tree *tree,
				      const bool *placed, struct estimate *e)
{
	for (uint32_t j = 0; j < w->p.jobs; j++)
		if (placed[j] && !is_about(e->job[j].slow, slow_of(&w->p, tree, placed, j)))
			return "a job's time is not what its links say";
	for (unsigned int t = 0; t < e->tenants; t++) {
		double slow = 0;

		for (uint32_t j = 0; j < w->p.jobs; j++)
			slow += placed[j] && w->job[j].tenant == t
					? w->job[j].weight * e->job[j].slow
					: 0;
		if (!is_about(e->slow[t], slow))
			return "a tenant's time is not the sum of its jobs";
	}
	return NULL;
}

static const char *an_estimate_drifts(uint64_t seed)
{
	_cleanup_(place_world_close) struct place_world w;
	_cleanup_(estimate_close) struct estimate e;
	struct place_tree tree[PLACE_WORLD_JOBS] = { 0 };
	struct place_menu *menu = calloc(1, sizeof(*menu));
	bool placed[PLACE_WORLD_JOBS] = { false };
	const char *wrong = NULL;
	struct place_cost cost;
	double said = 0;

	place_world_any(&seed, 6, &w);
	w.p.options.weight.time = w.p.options.weight.fair = 0;
	assert_int_equal(estimate_open(&w.p, &e), 0);
	for (unsigned int i = 0; i < STEPS && !wrong && w.p.jobs > 0; i++) {
		uint32_t j = i < w.p.jobs ? i : random_below(&seed, w.p.jobs);

		if (placed[j])
			estimate_remove(&e, j, &tree[j]);
		place_candidates(&w.p, j, NULL, menu);
		tree[j] = menu->tree[random_below(&seed, menu->count)];
		said = estimate_try(&e, j, &tree[j]);
		assert_int_equal(estimate_add(&e, j, &tree[j]), 0);
		placed[j] = true;
		wrong = an_estimate_is_off(&w, tree, placed, &e);
		if (wrong || i + 1 < w.p.jobs)
			continue;
		assert_int_equal(place_cost(&w.p, tree, &cost, NULL), 0);
		if (!is_about(said, cost.total))
			wrong = "what was tried is not what it costs";
	}
	free(menu);
	return wrong;
}

static void estimates_stay_true_whoever_comes_and_goes(void **state)
{
	run_seeds(CASES, an_estimate_drifts);
}

/* What is said before a job comes is what is there afterwards, times and all. */
static const char *a_try_is_wrong(uint64_t seed)
{
	_cleanup_(place_world_close) struct place_world w;
	_cleanup_(estimate_close) struct estimate e;
	struct place_tree tree[PLACE_WORLD_JOBS] = { 0 };
	_cleanup_(freep) struct place_menu *menu = calloc(1, sizeof(*menu));
	struct place_terms only = { .time = 1, .fair = 0.5 };
	double said = 0, slow = 0, weight = 0, most = 0;

	place_world_any(&seed, 6, &w);
	w.p.options.weight = only;
	assert_int_equal(estimate_open(&w.p, &e), 0);
	for (uint32_t j = 0; j < w.p.jobs; j++) {
		place_candidates(&w.p, j, NULL, menu);
		tree[j] = menu->tree[random_below(&seed, menu->count)];
		said = estimate_try(&e, j, &tree[j]);
		assert_int_equal(estimate_add(&e, j, &tree[j]), 0);
	}
	for (unsigned int t = 0; t < e.tenants; t++) {
		double its = 0, its_slow = 0;

		for (uint32_t j = 0; j < w.p.jobs; j++)
			if (w.job[j].tenant == t) {
				its += w.job[j].weight;
				its_slow += w.job[j].weight * e.job[j].slow;
			}
		slow += its_slow;
		weight += its;
		most = its > 0 ? fmax(most, its_slow / its) : most;
	}
	return is_about(said, slow / weight + 0.5 * most) ? NULL : "a try is not what came of it";
}

static void a_try_says_what_will_be(void **state) { run_seeds(CASES, a_try_is_wrong); }

/* --- the policy ------------------------------------------------------------------------------ */

static double decided(const char *name, const struct place_problem *p)
{
	struct place_tree tree[PLACE_WORLD_JOBS];
	struct place_cost cost;
	unsigned int without;

	assert_int_equal(place_decide(place_policy_find(name), p, tree, &without), 0);
	assert_int_equal(without, 0);
	assert_int_equal(place_cost(p, tree, &cost, NULL), 0);
	return cost.total;
}

static const char *it_is_far_from_the_least(uint64_t seed)
{
	struct place_case c;
	double least, mine;

	place_case_small(seed, &c);
	least = decided("least", &c.p);
	mine = decided("traffic", &c.p);
	place_case_close(&c);
	if (mine < least * (1 - 1e-9))
		return "a decision is better than the best one";
	return mine > 1.05 * least ? "a decision is more than a twentieth above the least" : NULL;
}

static void it_is_near_the_least_cost(void **state)
{
	run_seeds(EXACT_CASES, it_is_far_from_the_least);
}

/* A job that takes more slots of a node than there are, between the others. */
static const char *a_lost_job_changes_the_others(uint64_t seed)
{
	static const char *const names[] = { "traffic", "least" };
	const char *wrong = NULL;

	for (unsigned int n = 0; n < 2 && !wrong; n++) {
		struct place_tree alone[2], beside[3];
		struct place_job job[3];
		struct place_case c;
		unsigned int without;

		place_case_small(seed, &c);
		c.p.jobs = 2;
		assert_int_equal(place_decide(place_policy_find(names[n]), &c.p, alone, &without),
				 0);
		job[0] = c.p.job[0];
		job[1] = job[2] = c.p.job[1];
		job[1].root = GRAPH_NONE;
		job[1].slots = UINT32_MAX;
		c.p.job = job;
		c.p.jobs = 3;
		assert_int_equal(place_decide(place_policy_find(names[n]), &c.p, beside, &without),
				 0);
		if (beside[1].nodes || without)
			wrong = "a job that nobody can serve has a tree";
		if (!place_same(&alone[0], &beside[0]) || !place_same(&alone[1], &beside[2]))
			wrong = "a job that nobody can serve changes others' trees";
		place_case_close(&c);
	}
	return wrong;
}

static void who_cannot_be_served_is_left_out(void **state)
{
	run_seeds(EXACT_CASES, a_lost_job_changes_the_others);
}

/* Of those with way and root: without either, with one, and with the other. */
static void who_can_be_served_is_not_left_out(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	uint32_t leaf;

	place_world_open("leaf-spine:leaves=2,spines=1,hosts=2,slots=10", &w);
	leaf = topology_machine(w.t, "l1");
	place_world_job(&w, 2, 100)->root = w.t->host[2];
	w.worker[0][0] = w.t->host[0];
	w.worker[0][1] = w.t->host[3];
	w.job[0].slots = 11;
	assert_true(isfinite(decided("least", &w.p)) && isfinite(decided("traffic", &w.p)));
	w.job[0].root = GRAPH_NONE;
	assert_true(isinf(decided("least", &w.p)) && isinf(decided("traffic", &w.p)));
	w.t->graph->machine[leaf].slots = 11;
	assert_true(isfinite(decided("least", &w.p)) && isfinite(decided("traffic", &w.p)));
	w.p.options.tree_max = 0;
	assert_true(isinf(decided("least", &w.p)) && isinf(decided("traffic", &w.p)));
}

/* The last of three jobs comes to two that stay: its tree is the best one beside theirs. */
static const char *it_is_far_from_the_least_beside(uint64_t seed)
{
	struct place_tree now[2], tree[3];
	struct place_case c;
	struct place_cost cost[2];
	unsigned int without;
	bool kept = true;

	place_case_small(seed, &c);
	c.p.jobs = 2;
	assert_int_equal(place_decide(place_policy_find("tor"), &c.p, now, &without), 0);
	c.p.jobs = 3;
	for (unsigned int j = 0; j < 2; j++) {
		c.job[j].now = &now[j];
		c.job[j].stays = true;
	}
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(place_decide(place_policy_find(i ? "traffic" : "least"), &c.p,
					      tree, &without),
				 0);
		kept = kept && place_same(&tree[0], &now[0]) && place_same(&tree[1], &now[1]);
		assert_int_equal(place_cost(&c.p, tree, &cost[i], NULL), 0);
	}
	place_case_close(&c);
	if (!kept)
		return "a job that stays has another tree";
	if (cost[1].total < cost[0].total * (1 - 1e-9))
		return "a decision is better than the best one";
	return cost[1].total > 1.05 * cost[0].total ? "it is more than a twentieth above the least"
						    : NULL;
}

static void beside_those_who_stay_it_is_near_the_least_cost(void **state)
{
	run_seeds(CASES, it_is_far_from_the_least_beside);
}

/* Two racks; the job's own paths go by either spine, and one of them is full. */
static void loads_are_looked_at(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree;
	unsigned int without;

	place_world_open("leaf-spine:leaves=2,spines=2,hosts=2,rate=800bit", &w);
	place_world_job(&w, 2, 100);
	w.worker[0][0] = w.t->host[0];
	w.worker[0][1] = w.t->host[2];
	w.p.options.tree_max = 1;
	for (unsigned int full = 0; full < 2; full++) {
		uint32_t spine = topology_machine(w.t, full ? "s1" : "s0");

		for (uint32_t l = 0; l < w.t->graph->links; l++) {
			struct graph_link *link = &w.t->graph->link[l];

			link->load = link->from == spine || link->to == spine ? 90 : 0;
		}
		assert_int_equal(place_decide(place_policy_find("traffic"), &w.p, &tree, &without),
				 0);
		assert_true(tree.nodes == 1 && tree.node[0].machine != spine);
	}
}

/* Six workers in three racks, the root in a fourth: racks' tops, and one node above them. */
static void trees_have_several_levels(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree;
	struct place_cost one, many;
	unsigned int without, below = 0;

	place_world_open("leaf-spine:leaves=4,spines=1,hosts=2,rate=800bit", &w);
	place_world_job(&w, 6, 100)->root = w.t->host[7];
	memcpy(w.worker[0], w.t->host, 6 * sizeof(uint32_t));
	w.p.options.weight.nodes = 0;
	assert_int_equal(place_decide(place_policy_find("traffic"), &w.p, &tree, &without), 0);
	for (unsigned int i = 1; i < tree.nodes; i++)
		below += tree.node[i].parent != GRAPH_NONE;
	assert_true(tree.nodes >= 4 && below >= 3);
	assert_int_equal(place_cost(&w.p, &tree, &many, NULL), 0);
	assert_int_equal(place_decide(place_policy_find("tapina-mg"), &w.p, &tree, &without), 0);
	assert_int_equal(place_cost(&w.p, &tree, &one, NULL), 0);
	assert_true(many.total < one.total);
}

/* A node costs what it is said to cost: where that is much, nobody sums. */
static void what_nodes_cost_counts(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree;
	unsigned int without;

	place_world_open("leaf-spine:leaves=2,spines=1,hosts=2,rate=800bit", &w);
	place_world_job(&w, 3, 100)->root = w.t->host[3];
	memcpy(w.worker[0], w.t->host, 3 * sizeof(uint32_t));
	assert_int_equal(place_decide(place_policy_find("traffic"), &w.p, &tree, &without), 0);
	assert_true(tree.nodes > 0);
	w.p.options.weight.nodes = 100;
	assert_int_equal(place_decide(place_policy_find("traffic"), &w.p, &tree, &without), 0);
	assert_int_equal(tree.nodes, 0);
}

/* Six jobs that need a node, and room for just so many: larger trees must not take it. */
static void who_needs_a_node_gets_one(void **state)
{
	_cleanup_(place_world_close) struct place_world w;

	place_world_open("leaf-spine:leaves=4,spines=2,hosts=2", &w);
	for (unsigned int j = 0; j < 6; j++) {
		place_world_job(&w, 4, 1e6);
		for (unsigned int i = 0; i < 4; i++)
			w.worker[j][i] = w.t->host[(2 * j + i) % 8];
	}
	w.p.options.nodes_max = 3;
	w.p.options.jobs_max = 2;
	w.p.options.weight.nodes = 0;
	w.p.options.steps_max = 0; /* kicks would mend it, on a network as small as this */
	assert_true(isfinite(decided("traffic", &w.p)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(estimates_stay_true_whoever_comes_and_goes),
		cmocka_unit_test(a_try_says_what_will_be),
		cmocka_unit_test(it_is_near_the_least_cost),
		cmocka_unit_test(beside_those_who_stay_it_is_near_the_least_cost),
		cmocka_unit_test(who_cannot_be_served_is_left_out),
		cmocka_unit_test(who_can_be_served_is_not_left_out),
		cmocka_unit_test(loads_are_looked_at),
		cmocka_unit_test(trees_have_several_levels),
		cmocka_unit_test(what_nodes_cost_counts),
		cmocka_unit_test(who_needs_a_node_gets_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
