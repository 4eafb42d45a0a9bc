// SPDX-License-Identifier: GPL-2.0-only
/* Trees of nodes for jobs: what they cost, and the table of policies; TALLY_SEED=n runs one case.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/place.h"
#include "agent/policy/place_private.h"
#include "common/owned.h"
#include "place_world.h"
#include "random.h"
#include "scarce.h"
#include "tapina.h"

enum {
	CASES = 300,
	CANDIDATES = 6,
};

static const struct place_tree NOWHERE = { 0 };

static void assert_about(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-9 * fmax(1, fabs(expected))))
		fail_msg("%.17g is not %.17g", value, expected);
}

static struct place_tree tree_of(unsigned int nodes, const uint32_t *machine,
				 const uint32_t *parent)
{
	struct place_tree tree = { .nodes = nodes };

	for (unsigned int i = 0; i < nodes; i++)
		tree.node[i] = (struct place_node){ machine[i], i ? parent[i] : GRAPH_NONE };
	return tree;
}

/* Every fourth node sends to the root, if there is one. */
static struct place_tree random_tree(uint64_t *random, const struct graph *g, uint32_t root,
				     unsigned int nodes)
{
	struct place_tree tree = { 0 };

	while (tree.nodes < nodes) {
		uint32_t m = random_below(random, g->machines), i = tree.nodes;

		tree.node[i] = (struct place_node){ m, i ? random_below(random, i) : GRAPH_NONE };
		if (root != GRAPH_NONE && chance(random, 250))
			tree.node[i].parent = GRAPH_NONE;
		for (uint32_t k = 0; k < i; k++)
			if (tree.node[k].machine == m)
				m = GRAPH_NONE;
		tree.nodes += m != GRAPH_NONE && g->machine[m].kind == GRAPH_NODE;
	}
	return tree;
}

/* --- what trees cost ------------------------------------------------------------------------- */

/* Links there and back, by searches of graph.h. */
static double both_ways(const struct graph *g, uint32_t a, uint32_t b)
{
	_cleanup_(freep) uint32_t *far = calloc(g->machines, sizeof(*far));
	double links;

	assert_int_equal(graph_distances(g, b, far), 0);
	links = far[a];
	assert_int_equal(graph_distances(g, a, far), 0);
	return links + far[b];
}

/* The hop formula: what each message of the tree costs, one by one. */
static double links_by_formula(const struct graph *g, const struct place_job *j,
			       const struct place_tree *t)
{
	double links = 0;

	for (unsigned int w = 0; w < j->workers; w++) {
		double least = j->root == GRAPH_NONE ? INFINITY
						     : both_ways(g, j->worker[w], j->root);

		for (unsigned int i = 0; i < t->nodes; i++)
			least = fmin(least, both_ways(g, j->worker[w], t->node[i].machine));
		links += least;
	}
	for (unsigned int i = 0; i < t->nodes; i++) {
		uint32_t parent = t->node[i].parent;
		uint32_t to = parent == GRAPH_NONE ? j->root : t->node[parent].machine;

		links += to == GRAPH_NONE ? 0 : both_ways(g, t->node[i].machine, to);
	}
	return links;
}

static const char *links_are_not_the_formula(uint64_t seed)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[PLACE_WORLD_JOBS];
	struct place_job_cost cost[PLACE_WORLD_JOBS];
	struct place_cost all;

	place_world_any(&seed, 4, &w);
	for (unsigned int j = 0; j < w.p.jobs; j++)
		tree[j] = random_tree(&seed, w.t->graph, w.job[j].root,
				      random_below(&seed, 4) + (w.job[j].root == GRAPH_NONE));
	assert_int_equal(place_cost(&w.p, tree, &all, cost), 0);
	for (unsigned int j = 0; j < w.p.jobs; j++) {
		double links = links_by_formula(w.t->graph, &w.job[j], &tree[j]);

		if (cost[j].failed || cost[j].bytes != links * w.job[j].bytes)
			return "a job's bytes on links are not what the formula says";
		if (cost[j].iteration_s < cost[j].alone_s * (1 - 1e-9))
			return "a job is faster than it is alone";
	}
	return all.failed ? "a job failed" : NULL;
}

static void bytes_on_links_are_the_hop_formula(void **state)
{
	run_seeds(CASES, links_are_not_the_formula);
}

/* Two racks of two hosts, one spine; 100 bytes a second each way. */
static void two_racks(struct place_world *w)
{
	place_world_open("leaf-spine:leaves=2,spines=1,hosts=2,rate=800bit,slots=10", w);
}

static uint32_t machine(const struct place_world *w, const char *name)
{
	uint32_t m = topology_machine(w->t, name);

	if (m == GRAPH_NONE)
		fail_msg("no machine %s", name);
	return m;
}

/* A job of all four hosts; the first one makes the results. */
static void all_hosts(struct place_world *w)
{
	struct place_job *job = place_world_job(w, 4, 100);

	memcpy(w->worker[w->p.jobs - 1], w->t->host, 4 * sizeof(uint32_t));
	job->root = w->t->host[0];
	job->compute_s = 1;
	job->slots = 4;
}

/* Worked out by hand: who shares which link, and how long that takes. */
static void terms_are_what_they_say(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[2] = { 0 };
	struct place_job_cost cost[2];
	struct place_cost c;

	two_racks(&w);
	all_hosts(&w);
	assert_int_equal(place_cost(&w.p, tree, &c, cost), 0);
	/* Three workers send to the first one's host, and get a result each. */
	assert_about(cost[0].bytes, 100 * 2 * (2 + 4 + 4));
	assert_about(cost[0].rate, 100 / 3.0);
	assert_about(cost[0].alone_s, 1 + 1);
	assert_about(cost[0].iteration_s, 1 + 3);
	assert_about(c.value.time, 1);
	assert_about(c.value.fair, 1);
	assert_about(c.value.use, 3 * 0.5);
	assert_about(c.value.bytes, 1);
	assert_true(c.value.nodes == 0 && c.value.moves == 0 && c.failed == 0);
	assert_int_equal(w.t->graph->link[cost[0].narrowest].from == w.t->host[0] ||
				 w.t->graph->link[cost[0].narrowest].to == w.t->host[0],
			 1);

	/* The tops of both racks: to the host that makes the results one stream comes, and one
	 * goes. */
	tree[0] = tree_of(2, (uint32_t[]){ machine(&w, "l0"), machine(&w, "l1") },
			  (uint32_t[]){ 0, 0 });
	assert_int_equal(place_cost(&w.p, tree, &c, cost), 0);
	assert_about(cost[0].bytes, 100 * 2 * (3 + 2 + 1));
	assert_about(cost[0].rate, 100);
	assert_about(c.value.nodes, 2 / 3.0);
	assert_about(c.value.time, 0);
	assert_int_equal(c.nodes, 2);

	/* The second rack's top sends to the root, too: two streams come there. */
	tree[0].node[1].parent = GRAPH_NONE;
	assert_int_equal(place_cost(&w.p, tree, &c, cost), 0);
	assert_about(cost[0].bytes, 100 * 2 * (3 + 3 + 1));
	assert_about(cost[0].rate, 50);
	assert_about(c.value.time, 0.5);

	/* Others fill half of all links. */
	for (uint32_t l = 0; l < w.t->graph->links; l++)
		w.t->graph->link[l].load = 50;
	assert_int_equal(place_cost(&w.p, tree, &c, cost), 0);
	assert_about(cost[0].rate, 25);
	assert_about(c.value.use, (50 + 2 * 50) / 100.0);
}

/* Who needs no link is as fast as it is alone, and who shares a host's link is alone on it, too. */
static void jobs_on_few_machines_are_not_faster_than_alone(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	const uint32_t none = GRAPH_NONE;
	struct place_job_cost cost[1];
	struct place_tree on_leaf;
	struct place_cost c;

	two_racks(&w);
	on_leaf = tree_of(1, (uint32_t[]){ machine(&w, "l0") }, &none);
	place_world_job(&w, 2, 100)->compute_s = 1;
	w.worker[0][0] = w.worker[0][1] = w.job[0].root = w.t->host[0];
	assert_int_equal(place_cost(&w.p, &NOWHERE, &c, cost), 0);
	assert_true(cost[0].alone_s == 1 && cost[0].iteration_s == 1 && c.value.time == 0);
	w.job[0].compute_s = 0;
	assert_int_equal(place_cost(&w.p, &NOWHERE, &c, cost), 0);
	assert_true(cost[0].slowdown == 1 && c.total == 0);
	/* A node that nobody needs uses links; what an iteration of no time offers is nothing. */
	assert_int_equal(place_cost(&w.p, &on_leaf, &c, cost), 0);
	assert_true(c.value.use == 0 && isfinite(c.total));

	w.job[0].compute_s = 1;
	w.job[0].root = GRAPH_NONE;
	assert_int_equal(place_cost(&w.p, &on_leaf, &c, cost), 0);
	assert_about(cost[0].alone_s, 1 + 2);
	assert_about(cost[0].slowdown, 1);

	/* On a machine that sums, and then on one that need send no more than a sum. */
	w.worker[0][0] = w.worker[0][1] = on_leaf.node[0].machine;
	assert_int_equal(place_cost(&w.p, &on_leaf, &c, cost), 0);
	assert_true(cost[0].alone_s == 1 && cost[0].slowdown == 1);
	w.job[0].root = w.t->host[0];
	assert_int_equal(place_cost(&w.p, &on_leaf, &c, cost), 0);
	assert_about(cost[0].alone_s, 1 + 1);
	assert_about(cost[0].slowdown, 1);
}

static void the_slowest_tenant_counts(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[3] = { 0 };
	struct place_job_cost cost[3];
	struct place_cost c;

	two_racks(&w);
	for (unsigned int j = 0; j < 3; j++) {
		place_world_job(&w, 1, 100)->root = w.t->host[1];
		w.worker[j][0] = w.t->host[0];
		w.job[j].compute_s = 0;
		w.job[j].tenant = j != 2;
		w.job[j].weight = j == 0 ? 2 : 1;
	}
	assert_int_equal(place_cost(&w.p, tree, &c, cost), 0);
	/* One link of 100 is shared by 2, 1 and 1; alone, each takes a second. */
	assert_about(cost[0].slowdown, 2);
	assert_about(cost[1].slowdown, 4);
	assert_about(cost[2].slowdown, 4);
	assert_about(c.value.time, (2 * 1 + 3 + 3) / 4.0);
	assert_about(c.value.fair, 3);
	assert_about(c.value.use, 3);
}

static void a_job_that_moves_loses_time(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[1] = { 0 };
	struct place_cost c;

	two_racks(&w);
	all_hosts(&w);
	w.now[0] = tree_of(2, (uint32_t[]){ machine(&w, "l0"), machine(&w, "l1") },
			   (uint32_t[]){ 0, 0 });
	w.job[0].now = &w.now[0];
	w.job[0].iterations = 10;
	w.p.options.move_s = 4;
	assert_int_equal(place_cost(&w.p, tree, &c, NULL), 0);
	assert_about(c.value.moves, 4 / (10 * 2.0));
	assert_int_equal(c.moved, 1);
	assert_int_equal(place_cost(&w.p, w.now, &c, NULL), 0);
	assert_true(c.value.moves == 0 && c.moved == 0);
	/* The other way round it is another tree. */
	tree[0] = tree_of(2, (uint32_t[]){ machine(&w, "l1"), machine(&w, "l0") },
			  (uint32_t[]){ 0, 0 });
	assert_int_equal(place_cost(&w.p, tree, &c, NULL), 0);
	assert_int_equal(c.moved, 1);
}

/* More or fewer nodes are another tree, and the last iteration still counts as one. */
static void a_larger_tree_is_another_one(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree large, small;
	struct place_cost c;

	two_racks(&w);
	all_hosts(&w);
	large = tree_of(2, (uint32_t[]){ machine(&w, "l0"), machine(&w, "l1") },
			(uint32_t[]){ 0, 0 });
	small = tree_of(1, (uint32_t[]){ machine(&w, "l0") }, (uint32_t[]){ 0 });
	w.job[0].now = &small;
	w.job[0].iterations = 0;
	w.p.options.move_s = 4;
	assert_int_equal(place_cost(&w.p, &large, &c, NULL), 0);
	assert_true(c.moved == 1);
	assert_about(c.value.moves, 4 / 2.0);
	w.job[0].now = &large;
	assert_int_equal(place_cost(&w.p, &small, &c, NULL), 0);
	assert_true(c.moved == 1);
}

static void the_roots_own_link_holds_a_job_up(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_job_cost cost[1];
	struct place_cost c;

	two_racks(&w);
	all_hosts(&w);
	for (uint32_t l = 0; l < w.t->graph->links; l++)
		if (w.t->graph->link[l].from == w.job[0].root)
			w.t->graph->link[l].capacity = 50;
	assert_int_equal(place_cost(&w.p, &NOWHERE, &c, cost), 0);
	assert_about(cost[0].alone_s, 1 + 2);
}

/* Bytes are compared with what they would be if the first worker made the results. */
static void without_a_root_the_first_worker_stands_in(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	const uint32_t none = GRAPH_NONE;
	struct place_tree tree;
	struct place_cost c;

	two_racks(&w);
	place_world_job(&w, 3, 100);
	w.worker[0][0] = w.t->host[0];
	w.worker[0][1] = w.t->host[2];
	w.worker[0][2] = w.t->host[3];
	tree = tree_of(1, (uint32_t[]){ machine(&w, "l1") }, &none);
	assert_int_equal(place_cost(&w.p, &tree, &c, NULL), 0);
	assert_about(c.value.bytes, (3 + 1 + 1) / (4 + 4.0));
}

/* A link that others fill still carries a hundredth; one that carries nothing fails the job. */
static void full_links_and_dead_ones_differ(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_job_cost cost[2];
	struct place_cost c;

	two_racks(&w);
	all_hosts(&w);
	for (uint32_t l = 0; l < w.t->graph->links; l++)
		w.t->graph->link[l].load = 1000;
	assert_int_equal(place_cost(&w.p, &NOWHERE, &c, cost), 0);
	assert_about(cost[0].rate, 1 / 3.0);
	for (uint32_t l = 0; l < w.t->graph->links; l++)
		w.t->graph->link[l].capacity = 0;
	assert_int_equal(place_cost(&w.p, &NOWHERE, &c, cost), 0);
	assert_true(c.failed == 1 && isinf(c.total) && cost[0].failed);
}

static void without_root_and_tree_a_job_fails(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_cost c;
	struct fair_use *use;
	unsigned int uses;

	two_racks(&w);
	all_hosts(&w);
	w.job[0].root = GRAPH_NONE;
	assert_int_equal(place_cost(&w.p, &NOWHERE, &c, NULL), 0);
	assert_true(c.failed == 1 && isinf(c.total));
	assert_int_equal(place_uses(&w.p, 0, &NOWHERE, &use, &uses), -EHOSTUNREACH);
}

/* Both tops of racks are as far from both hosts. */
static void of_equally_near_nodes_the_first_sums(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	_cleanup_(freep) struct fair_use *use = NULL;
	struct place_tree tree;
	unsigned int uses;

	place_world_open("leaf-spine:leaves=2,spines=2,hosts=2,rate=800bit", &w);
	all_hosts(&w);
	tree = tree_of(2, (uint32_t[]){ machine(&w, "s1"), machine(&w, "s0") },
		       (uint32_t[]){ 0, 0 });
	assert_int_equal(place_uses(&w.p, 0, &tree, &use, &uses), 0);
	/* All hosts' messages come to s1; what leaves s0, and what comes to the root, is one sum.
	 */
	for (unsigned int i = 0; i < uses; i++)
		if (w.t->graph->link[use[i].link].from == machine(&w, "s0") ||
		    w.t->graph->link[use[i].link].to == w.job[0].root)
			assert_true(use[i].times == 1);
}

static void uses_are_by_link_and_as_often_as_it_is_taken(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	_cleanup_(freep) struct fair_use *use = NULL;
	unsigned int uses;
	double times = 0;

	two_racks(&w);
	all_hosts(&w);
	assert_int_equal(place_uses(&w.p, 0, &NOWHERE, &use, &uses), 0);
	for (unsigned int i = 0; i < uses; i++) {
		assert_true(i == 0 || use[i].link > use[i - 1].link);
		times += use[i].times;
	}
	assert_true(times == 2 * (2 + 4 + 4));
}

/* --- what is refused ------------------------------------------------------------------------- */

static void what_is_no_problem_is_refused(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_job good;
	struct place_tree bad = { .nodes = 1, .node = { { 0, GRAPH_NONE } } };

	two_racks(&w);
	all_hosts(&w);
	good = w.job[0];
	assert_int_equal(place_check(&w.p), 0);
#define REFUSED(change)                               \
	change;                                       \
	assert_int_equal(place_check(&w.p), -EINVAL); \
	w.job[0] = good;                              \
	w.p.options = PLACE_OPTIONS
	REFUSED(w.job[0].workers = 0);
	REFUSED(w.job[0].workers = PLACE_WORKERS_MAX + 1);
	REFUSED(w.job[0].root = w.t->graph->machines);
	REFUSED(w.job[0].bytes = 0);
	REFUSED(w.job[0].bytes = NAN);
	REFUSED(w.job[0].compute_s = -1);
	REFUSED(w.job[0].weight = 0);
	REFUSED(w.job[0].iterations = INFINITY);
	REFUSED(w.job[0].stays = true);
	REFUSED(w.job[0].tenant = PLACE_TENANTS_MAX);
	REFUSED(w.p.options.tree_max = PLACE_NODES_MAX + 1);
	REFUSED(w.p.options.weight.fair = -1);
	REFUSED(w.p.options.distance_max = NAN);
	bad.node[0].machine = w.t->host[0];
	REFUSED(w.job[0].now = &bad);
	w.worker[0][2] = w.t->graph->machines;
	REFUSED();
#undef REFUSED
	w.p.jobs = PLACE_JOBS_MAX + 1;
	assert_int_equal(place_check(&w.p), -E2BIG);
}

static void what_is_no_tree_is_refused(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree;
	struct place_cost c;
	uint32_t l0, l1;

	two_racks(&w);
	all_hosts(&w);
	l0 = machine(&w, "l0");
	l1 = machine(&w, "l1");
#define NO_TREE(...)                                           \
	tree = (struct place_tree)__VA_ARGS__;                 \
	assert_int_equal(place_allowed(&w.p, &tree), -EINVAL); \
	assert_int_equal(place_cost(&w.p, &tree, &c, NULL), -EINVAL)
	NO_TREE({ .nodes = PLACE_NODES_MAX + 1 });
	NO_TREE({ 1, { { w.t->graph->machines, GRAPH_NONE } } });
	NO_TREE({ 1, { { w.t->host[0], GRAPH_NONE } } });
	NO_TREE({ 1, { { l0, 0 } } });
	NO_TREE({ 2, { { l0, GRAPH_NONE }, { l1, 1 } } });
	NO_TREE({ 2, { { l0, GRAPH_NONE }, { l0, 0 } } });
	tree = (struct place_tree){ 2, { { l0, GRAPH_NONE }, { l1, GRAPH_NONE } } };
	assert_int_equal(place_allowed(&w.p, &tree), 0);
	w.job[0].root = GRAPH_NONE;
	NO_TREE({ 2, { { l0, GRAPH_NONE }, { l1, GRAPH_NONE } } });
#undef NO_TREE
	tree = (struct place_tree){ 2, { { l0, GRAPH_NONE }, { l1, 0 } } };
	assert_int_equal(place_allowed(&w.p, &tree), 0);
}

static void limits_are_limits(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[2];

	two_racks(&w);
	all_hosts(&w);
	all_hosts(&w);
	tree[0] = tree[1] = tree_of(2, (uint32_t[]){ machine(&w, "l0"), machine(&w, "l1") },
				    (uint32_t[]){ 0, 0 });
	assert_int_equal(place_allowed(&w.p, tree), 0);
	w.job[1].slots = 7; /* of 10, beside 4 */
	assert_int_equal(place_allowed(&w.p, tree), -ENOSPC);
	w.job[1].slots = 6;
	w.p.options.jobs_max = 1;
	assert_int_equal(place_allowed(&w.p, tree), -ENOSPC);
	w.p.options.jobs_max = 2;
	w.p.options.tree_max = 1;
	assert_int_equal(place_allowed(&w.p, tree), -ENOSPC);
	w.p.options.tree_max = 2;
	w.p.options.nodes_max = 1;
	assert_int_equal(place_allowed(&w.p, tree), -ENOSPC);
	w.p.options.nodes_max = 2;
	assert_int_equal(place_allowed(&w.p, tree), 0);
}

/* --- policies -------------------------------------------------------------------------------- */

/* Bytes times links from workers to their node, or to the server: what TAPINA counts. */
static double tapinas_cost(const struct place_problem *p, const struct place_tree *tree)
{
	double cost = 0;

	for (uint32_t j = 0; j < p->jobs; j++)
		for (unsigned int w = 0; w < p->job[j].workers; w++)
			cost += p->job[j].bytes * reach_distance(p->reach, p->job[j].worker[w],
								 tree[j].nodes
									 ? tree[j].node[0].machine
									 : p->job[j].root);
	return cost;
}

static double decided(const char *name, const struct place_problem *p)
{
	struct place_tree tree[JOBS];
	unsigned int without;

	assert_int_equal(place_decide(place_policy_find(name), p, tree, &without), 0);
	assert_int_equal(without, 0);
	assert_int_equal(place_allowed(p, tree), 0);
	return tapinas_cost(p, tree);
}

static void the_authors_jobs_cost_what_they_say(void **state)
{
	_cleanup_(graph_freep) struct graph *g = tapina();
	_cleanup_(reach_freep) struct reach *reach = NULL;
	uint32_t worker[JOBS][WORKERS_MAX];
	struct place_job job[JOBS];
	struct place_problem p = { .job = job, .jobs = JOBS, .options = PLACE_OPTIONS };

	assert_int_equal(reach_make(g, &reach), 0);
	for (unsigned int j = 0; j < JOBS; j++)
		job[j] = (struct place_job){ .worker = worker[j],
					     .workers = tapina_workers(j, worker[j]),
					     .root = SERVER,
					     .bytes = 1,
					     .weight = 1 };
	p.reach = reach;
	p.options.nodes_max = 3;
	p.options.jobs_max = 2;
	assert_true(decided("none", &p) == 93);
	assert_true(decided("tapina-mg", &p) == 67);
	assert_true(decided("tapina", &p) == 64);
	p.options.distance_max = 3.5;
	assert_true(decided("tapina", &p) == 67);
	assert_true(decided("exact", &p) == 63);
}

static void names_find_their_policies(void **state)
{
	for (unsigned int i = 0; i < PLACE_POLICIES_COUNT; i++) {
		const struct place_policy *policy = &PLACE_POLICIES[i];

		assert_ptr_equal(place_policy_find(policy->name), policy);
		assert_true(policy->knows[0] && policy->what[0]);
	}
	assert_null(place_policy_find("no-such-policy"));
}

static const char *a_policy_breaks_a_rule(uint64_t seed)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[PLACE_WORLD_JOBS], again[PLACE_WORLD_JOBS];
	unsigned int without;

	place_world_any(&seed, 6, &w);
	w.p.options.steps_max = 1000000;
	for (unsigned int i = 0; i < PLACE_POLICIES_COUNT; i++) {
		const struct place_policy *policy = &PLACE_POLICIES[i];

		if (strcmp(policy->name, "least") == 0)
			continue; /* there are too many trees */
		memset(tree, 0x11, sizeof(tree));
		memset(again, 0x77, sizeof(again));
		assert_int_equal(place_decide(policy, &w.p, tree, &without), 0);
		assert_int_equal(place_decide(policy, &w.p, again, &without), 0);
		if (place_allowed(&w.p, tree) != 0)
			return "a policy does not keep the limits";
		for (unsigned int j = 0; j < w.p.jobs; j++)
			if (tree[j].nodes != again[j].nodes ||
			    memcmp(tree[j].node, again[j].node,
				   tree[j].nodes * sizeof(*tree[j].node)) != 0)
				return "a policy decides otherwise the second time";
	}
	return NULL;
}

static void policies_keep_limits_and_decide_the_same_again(void **state)
{
	run_seeds(CASES / 3, a_policy_breaks_a_rule);
}

static int on_the_first_leaf(const struct place_problem *p, struct place_tree *ret)
{
	uint32_t m = 0;

	while (p->reach->graph->machine[m].kind != GRAPH_NODE)
		m++;
	for (uint32_t j = 0; j < p->jobs; j++)
		ret[j] = (struct place_tree){ 1, { { m, GRAPH_NONE } } };
	return 0;
}

/* All is as it should be but for what it returns. */
static int with_one(const struct place_problem *p, struct place_tree *ret)
{
	memset(ret, 0, p->jobs * sizeof(*ret));
	return 1;
}

static int on_a_host(const struct place_problem *p, struct place_tree *ret)
{
	for (uint32_t j = 0; j < p->jobs; j++)
		ret[j] = (struct place_tree){ 1, { { p->job[j].worker[0], GRAPH_NONE } } };
	return 0;
}

static void what_does_not_fit_goes_without_nodes(void **state)
{
	static const struct place_policy first = { .decide = on_the_first_leaf };
	static const struct place_policy wrong = { .decide = on_a_host };
	static const struct place_policy odd = { .decide = with_one };
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[3] = { [2] = { .nodes = 77 } };
	struct place_fault fault;
	unsigned int without;
	bool each[3];

	two_racks(&w);
	all_hosts(&w);
	all_hosts(&w);
	all_hosts(&w);
	w.job[1].slots = 7;
	assert_int_equal(place_decide(&wrong, &w.p, tree, &without), -EINVAL);
	assert_int_equal(tree[2].nodes, 77);
	assert_int_equal(place_decide(&first, &w.p, tree, &without), 0);
	assert_int_equal(without, 1);
	assert_true(tree[0].nodes == 1 && tree[1].nodes == 0 && tree[2].nodes == 1);
	assert_int_equal(place_decide_each(&first, &w.p, tree, each, &fault), 0);
	assert_true(!each[0] && each[1] && !each[2] && !fault.rule);
	w.now[1] = tree[0]; /* who stays comes before the first */
	w.job[1].now = &w.now[1];
	w.job[1].stays = true;
	assert_int_equal(place_decide_each(&first, &w.p, tree, each, &fault), 0);
	assert_true(each[0] && !each[1] && each[2] && tree[1].nodes == 1);
	assert_int_equal(place_decide_each(&odd, &w.p, tree, each, &fault), -EINVAL);
	assert_true(fault.job == GRAPH_NONE && strstr(fault.rule, "above 0"));
}

/* What the policy below says of the second of three jobs. */
static struct place_tree wrong_tree;

static int wrong_for_the_second(const struct place_problem *p, struct place_tree *ret)
{
	ret[1] = wrong_tree;
	return 0;
}

static void a_broken_rule_is_named(void **state)
{
	static const struct place_policy wrong = { .decide = wrong_for_the_second };
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[3];
	struct place_fault fault;
	uint32_t l0, l1, host;
	bool each[3];

	two_racks(&w);
	all_hosts(&w);
	all_hosts(&w);
	all_hosts(&w);
	w.job[1].root = GRAPH_NONE;
	l0 = machine(&w, "l0");
	l1 = machine(&w, "l1");
	host = w.t->host[0];
#define BREAKS(words, its_node, its_machine, ...)                                       \
	wrong_tree = (struct place_tree)__VA_ARGS__;                                    \
	assert_int_equal(place_decide_each(&wrong, &w.p, tree, each, &fault), -EINVAL); \
	assert_non_null(strstr(fault.rule, words));                                     \
	assert_true(fault.job == 1 && fault.node == (its_node) && fault.machine == (its_machine))
	BREAKS("more nodes", GRAPH_NONE, GRAPH_NONE, { .nodes = PLACE_NODES_MAX + 1 });
	BREAKS("no such machine", 0, 999, { 1, { { 999, GRAPH_NONE } } });
	BREAKS("does not sum", 0, host, { 1, { { host, GRAPH_NONE } } });
	BREAKS("not come before", 1, l1, { 2, { { l0, GRAPH_NONE }, { l1, 1 } } });
	BREAKS("twice", 1, l0, { 2, { { l0, GRAPH_NONE }, { l0, 0 } } });
	BREAKS("no parent", 1, l1, { 2, { { l0, GRAPH_NONE }, { l1, GRAPH_NONE } } });
#undef BREAKS
	w.job[2].bytes = 0; /* a problem that is none is not the policy's fault */
	assert_int_equal(place_decide_each(&wrong, &w.p, tree, each, &fault), -EINVAL);
	assert_null(fault.rule);
}

/* Of policies that give a job the nearest node: is there none nearer that has room? */
static bool is_nearest(const struct place_problem *p, struct place_tree *tree, uint32_t job)
{
	const struct place_tree its = tree[job];
	uint32_t machine = its.nodes ? its.node[0].machine : p->job[job].root;
	double far = place_far(p, job, machine);
	bool nearest = true;

	for (uint32_t m = 0; m < p->reach->graph->machines; m++) {
		if (p->reach->graph->machine[m].kind != GRAPH_NODE)
			continue;
		tree[job] = place_single(m);
		if (place_far(p, job, m) < far && place_allowed(p, tree) == 0)
			nearest = false;
	}
	tree[job] = its;
	return nearest;
}

/* All but the last job stay where the policy had placed them, which comes to the end of a play. */
static const char *who_stays_is_moved(const struct place_policy *policy, struct place_world *w)
{
	struct place_tree before[PLACE_WORLD_JOBS], after[PLACE_WORLD_JOBS];
	const unsigned int last = w->p.jobs - 1;
	bool without[PLACE_WORLD_JOBS];
	struct place_fault fault;
	unsigned int ignored;

	w->p.jobs = last;
	assert_int_equal(place_decide(policy, &w->p, before, &ignored), 0);
	w->p.jobs = last + 1;
	for (unsigned int j = 0; j < last; j++) {
		w->job[j].now = &before[j];
		w->job[j].stays = true;
	}
	memset(after, 0x55, sizeof(after));
	assert_int_equal(place_decide_each(policy, &w->p, after, without, &fault), 0);
	for (unsigned int j = 0; j < last; j++) {
		w->job[j].now = NULL;
		w->job[j].stays = false;
		if (without[j] || after[j].nodes != before[j].nodes ||
		    memcmp(after[j].node, before[j].node,
			   before[j].nodes * sizeof(*before[j].node)) != 0)
			return "a job that stays has another tree";
	}
	if (place_allowed(&w->p, after) != 0)
		return "limits are not kept beside those who stay";
	if (without[last])
		return "who comes gets a tree that has no room";
	if (strcmp(policy->name, "exact") != 0 && strcmp(policy->name, "tapina-mg") != 0)
		return NULL;
	return is_nearest(&w->p, after, last) ? NULL : "who comes does not get the nearest node";
}

static const char *a_policy_moves_who_stays(uint64_t seed)
{
	_cleanup_(place_world_close) struct place_world w;
	const char *wrong = NULL;

	place_world_any(&seed, 5, &w);
	w.p.options.steps_max = 100000;
	for (unsigned int j = 0; j < w.p.jobs; j++)
		w.job[j].slots = 0; /* some look at the number of jobs alone */
	for (unsigned int i = 0; i < PLACE_POLICIES_COUNT && !wrong; i++)
		if (strcmp(PLACE_POLICIES[i].name, "least") != 0)
			wrong = who_stays_is_moved(&PLACE_POLICIES[i], &w);
	return wrong;
}

static void who_stays_is_where_it_was(void **state)
{
	run_seeds(CASES / 3, a_policy_moves_who_stays);
}

/* --- why a job lies where it lies ------------------------------------------------------------ */

static const char *an_explanation_is_wrong(uint64_t seed)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[PLACE_WORLD_JOBS];
	struct place_candidate why[CANDIDATES];
	struct place_cost cost;
	unsigned int without, job;
	int count;

	place_world_any(&seed, 4, &w);
	assert_int_equal(place_decide(place_policy_find("tapina"), &w.p, tree, &without), 0);
	job = random_below(&seed, w.p.jobs);
	count = place_explain(&w.p, tree, job, CANDIDATES, why);
	if (count < 1 || !why[0].chosen || why[0].tree.nodes != tree[job].nodes)
		return "the tree that the job has does not come first";
	for (int i = 0; i < count; i++) {
		tree[job] = why[i].tree;
		if (place_allowed(&w.p, tree) != 0)
			return "a candidate is not within the limits";
		assert_int_equal(place_cost(&w.p, tree, &cost, NULL), 0);
		if (!(cost.total == why[i].cost.total))
			return "a candidate does not cost what is said";
		if (i > 1 && why[i].cost.total < why[i - 1].cost.total)
			return "a cheaper candidate comes later";
	}
	return NULL;
}

static void explanations_are_true(void **state) { run_seeds(CASES / 3, an_explanation_is_wrong); }

/* --- memory ---------------------------------------------------------------------------------- */

static int do_all(void *context)
{
	const struct place_world *w = context;
	struct place_tree tree[PLACE_WORLD_JOBS] = { 0 };
	struct place_candidate why[CANDIDATES];
	struct place_cost cost;
	unsigned int without;
	int r = 0;

	for (unsigned int i = 0; i < PLACE_POLICIES_COUNT && r >= 0; i++)
		if (strcmp(PLACE_POLICIES[i].name, "exact") != 0 &&
		    strcmp(PLACE_POLICIES[i].name, "least") != 0)
			r = place_decide(&PLACE_POLICIES[i], &w->p, tree, &without);
	if (r >= 0)
		r = place_cost(&w->p, tree, &cost, NULL);
	if (r >= 0)
		r = place_explain(&w->p, tree, 0, CANDIDATES, why);
	return r < 0 ? r : 0;
}

static void memory_may_run_out_anywhere(void **state)
{
	_cleanup_(place_world_close) struct place_world w;

	two_racks(&w);
	all_hosts(&w);
	w.p.options.steps_max = 20000;
	run_out_of_memory(do_all, &w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_on_links_are_the_hop_formula),
		cmocka_unit_test(terms_are_what_they_say),
		cmocka_unit_test(jobs_on_few_machines_are_not_faster_than_alone),
		cmocka_unit_test(the_slowest_tenant_counts),
		cmocka_unit_test(a_job_that_moves_loses_time),
		cmocka_unit_test(a_larger_tree_is_another_one),
		cmocka_unit_test(the_roots_own_link_holds_a_job_up),
		cmocka_unit_test(without_a_root_the_first_worker_stands_in),
		cmocka_unit_test(full_links_and_dead_ones_differ),
		cmocka_unit_test(without_root_and_tree_a_job_fails),
		cmocka_unit_test(of_equally_near_nodes_the_first_sums),
		cmocka_unit_test(uses_are_by_link_and_as_often_as_it_is_taken),
		cmocka_unit_test(what_is_no_problem_is_refused),
		cmocka_unit_test(what_is_no_tree_is_refused),
		cmocka_unit_test(limits_are_limits),
		cmocka_unit_test(the_authors_jobs_cost_what_they_say),
		cmocka_unit_test(names_find_their_policies),
		cmocka_unit_test(policies_keep_limits_and_decide_the_same_again),
		cmocka_unit_test(what_does_not_fit_goes_without_nodes),
		cmocka_unit_test(who_stays_is_where_it_was),
		cmocka_unit_test(a_broken_rule_is_named),
		cmocka_unit_test(explanations_are_true),
		cmocka_unit_test(memory_may_run_out_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
