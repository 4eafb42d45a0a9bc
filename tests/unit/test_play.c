// SPDX-License-Identifier: GPL-2.0-only
/* Workloads in networks under policies: what must hold whatever a policy does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "play_world.h"
#include "sim/play_private.h"

static struct play_options options_of(const char *policy)
{
	struct play_options o = { .policy = place_policy_find(policy),
				  .place = PLACE_OPTIONS,
				  .explain = UINT32_MAX };

	assert_non_null(o.policy);
	return o;
}

static struct play_result *run(const struct topology *t, const struct workload *w,
			       const struct play_options *o)
{
	struct play_result *r = NULL;

	if (play(t, w, o, &r, &why) != 0)
		fail_msg("%s: %s", o->policy->name, why.text);
	return r;
}

/* `least` tries all trees of all jobs: for fewer jobs than here. */
static bool is_too_slow(const struct place_policy *p) { return strcmp(p->name, "least") == 0; }

/* The workers of each job are in one rack, the links are wide, and each node has room for all. */
static const char racks[] = "job a workers=h1,h2 root=none bytes=10M iterations=9\n"
			    "job b workers=h4,h5,h6 root=none bytes=20M arrives=1 iterations=5\n"
			    "job c workers=h7,h8 root=none bytes=30M arrives=2 iterations=3\n";

/* Of those policies that let a node sum: with unlimited nodes each finds its rack's switch. */
static void with_room_for_all_it_does_not_matter_who_decides(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(t, racks);
	unsigned int tied = 0;

	for (unsigned int p = 0; p < PLACE_POLICIES_COUNT; p++) {
		struct play_options o = options_of(PLACE_POLICIES[p].name);
		_cleanup_(play_freep) struct play_result *r = NULL;

		o.place.distance_max = 1;
		if (strcmp(o.policy->name, "none") == 0 || strcmp(o.policy->name, "random") == 0 ||
		    is_too_slow(o.policy))
			continue;
		r = run(t, w, &o);
		for (unsigned int i = 0; i < w->jobs; i++) {
			const struct workload_job *j = &w->job[i];

			assert_about(r->job[i].ended_s - j->arrives_s,
				     j->iterations * (j->compute_s + j->bytes / 1.25e9));
			assert_about(r->job[i].ideal_s, r->job[i].ended_s - j->arrives_s);
			assert_about(r->job[i].links, 2 * j->workers);
		}
		tied++;
	}
	assert_true(tied >= 3);
}

static const char crowd[] = "jobs j count=12 every=2 model=resnet50,alexnet workers=3..6 "
			    "iterations=5..20\n";

/* No node may sum: every policy is the one that lets none sum. */
static void without_nodes_all_policies_are_one(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina:slots=0");
	_cleanup_(workload_freep) struct workload *w = parse(t, crowd);
	const struct play_options none = options_of("none");
	_cleanup_(play_freep) struct play_result *expected = run(t, w, &none);

	for (unsigned int p = 0; p < PLACE_POLICIES_COUNT; p++) {
		const struct play_options o = options_of(PLACE_POLICIES[p].name);
		_cleanup_(play_freep) struct play_result *r = NULL;

		if (is_too_slow(o.policy))
			continue;
		r = run(t, w, &o);
		for (unsigned int i = 0; i < w->jobs; i++)
			assert_true(r->job[i].ended_s == expected->job[i].ended_s);
		for (uint32_t l = 0; l < t->graph->links; l++)
			assert_true(r->link_bytes[l] == expected->link_bytes[l]);
		assert_int_equal(r->nodes, 0);
	}
}

/*
 * The hop formula, without the simulator's paths: each worker's bytes go as far as the nearest node
 * of the tree is, or the root; each node's to its parent, or to the root; and results go back.
 */
static double hops(const struct topology *t, const struct workload_job *j,
		   const struct place_tree *tree)
{
	_cleanup_(freep) uint32_t *far = calloc(t->graph->machines + 1, sizeof(*far));
	uint32_t nearest[WORKLOAD_WORKERS_MAX] = { 0 };
	double links = 0;

	assert_non_null(far);
	assert_int_equal(graph_distances(t->graph, j->root, far), 0);
	for (unsigned int w = 0; w < j->workers; w++)
		nearest[w] = far[j->worker[w]];
	for (unsigned int n = 0; n < tree->nodes; n++) {
		uint32_t parent = tree->node[n].parent;

		assert_int_equal(graph_distances(t->graph, tree->node[n].machine, far), 0);
		links += far[parent == GRAPH_NONE ? j->root : tree->node[parent].machine];
		for (unsigned int w = 0; w < j->workers; w++)
			if (far[j->worker[w]] < nearest[w])
				nearest[w] = far[j->worker[w]];
	}
	for (unsigned int w = 0; w < j->workers; w++)
		links += nearest[w];
	return 2 * links;
}

static void bytes_on_links_are_what_the_hop_formula_says(void **state)
{
	static const char *const names[] = { "tapina", "fat-tree:k=4", "leaf-spine", "dragonfly" };

	for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
		_cleanup_(topology_freep) struct topology *t = network(names[n]);
		_cleanup_(workload_freep) struct workload *w = parse(t, crowd);

		for (unsigned int p = 0; p < PLACE_POLICIES_COUNT; p++) {
			const struct play_options o = options_of(PLACE_POLICIES[p].name);
			_cleanup_(play_freep) struct play_result *r = NULL;
			double due = 0, carried = 0;

			if (is_too_slow(o.policy))
				continue;
			r = run(t, w, &o);
			for (unsigned int i = 0; i < w->jobs; i++) {
				const struct workload_job *j = &w->job[i];
				double links = hops(t, j, &r->job[i].tree);

				assert_about(r->job[i].links, links);
				due += links * j->bytes * j->iterations;
			}
			for (uint32_t l = 0; l < t->graph->links; l++)
				carried += r->link_bytes[l];
			assert_about(carried / due, 1);
		}
	}
}

/* What s5 and s6 carry of 20 iterations of a job between two racks, whose paths ways say. */
static void paths_follow_ways_until_something_fails(void **state)
{
	static const char network[] = "host h1 h2 h4\nnode s1 s2 s5 s6\n"
				      "link h1 s1\nlink h2 s1\nlink h4 s2\n"
				      "link s1 s5\nlink s1 s6\nlink s2 s5\nlink s2 s6\n";
	static const char *const ways[] = { "way s2 h2 s5\nway s1 h4 s6\n",
					    "way s2 h2 s6\nway s1 h4 s5\n" };
	static const char job[] = "job j workers=h1,h4 root=h2 bytes=1M iterations=20\n";
	const struct play_options o = options_of("none");

	for (unsigned int i = 0; i < 4; i++) {
		char text[512], crowd[256];
		struct topology *made = NULL;
		struct why why;

		snprintf(text, sizeof(text), "%s%s", network, ways[i % 2]);
		snprintf(crowd, sizeof(crowd), "%s%s", job,
			 i < 2 ? "" : "fail s1 s5 at=0 for=99\n");
		assert_int_equal(
			topology_testbed(text, strlen(text), &TOPOLOGY_DEFAULTS, &made, &why), 0);
		_cleanup_(topology_freep) struct topology *t = made;
		_cleanup_(workload_freep) struct workload *w = parse(t, crowd);
		_cleanup_(play_freep) struct play_result *r = run(t, w, &o);

		for (uint32_t l = 0; l < t->graph->links; l++) {
			const bool up = t->graph->link[l].from == topology_machine(t, "s2");
			const bool down = t->graph->link[l].from == topology_machine(t, "s1");
			const bool by5 = t->graph->link[l].to == topology_machine(t, "s5");
			const bool by6 = t->graph->link[l].to == topology_machine(t, "s6");
			double due = -1;

			if (i >= 2 && (up || down))
				due = by5 ? 0 : by6 ? 20e6 : -1;
			else if (up)
				due = by5 ? 20e6 * (i == 0) : by6 ? 20e6 * (i == 1) : -1;
			else if (down)
				due = by6 ? 20e6 * (i == 0) : by5 ? 20e6 * (i == 1) : -1;
			if (due >= 0)
				assert_true(fabs(r->link_bytes[l] - due) < 1);
		}
	}
}

/* --- failures -------------------------------------------------------------------------------- */

/* 125 MB at 1.25 GB/s and 0.4 s: 0.5 s an iteration. */
#define JOB "workers=h1,h4 root=h2 bytes=125M compute=0.4 iterations=20\n"

static void a_job_goes_around_a_link_that_fails(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "job j " JOB "fail s1 s5 at=0.45 for=99\nfail s2 s5 at=0.45 for=99\n");
	const struct play_options o = options_of("none");
	_cleanup_(play_freep) struct play_result *r = run(t, w, &o);
	uint32_t above = topology_machine(t, "s6");
	double by_s6 = 0;

	/* the root's one link has both contributions: 0.2 s an iteration */
	assert_about(r->job[0].ended_s, 20 * (0.4 + 0.2));
	for (uint32_t l = 0; l < t->graph->links; l++)
		by_s6 += t->graph->link[l].to == above ? r->link_bytes[l] : 0;
	assert_true(by_s6 > 19.5 * 2 * 125e6);
}

/* Of a cable both directions fail, of a machine all links; and then all is as it was, ways too. */
static void what_fails_carries_nothing_until_it_is_repaired(void **state)
{
	static const char text[] = "host h1 h2\nnode s1 s2 s3\nlink h1 s1\nlink h2 s2\n"
				   "link s1 s2\nlink s1 s3\nlink s3 s2\nway s1 h2 s3\n";
	struct topology *made = NULL;
	struct play_network n;

	assert_int_equal(topology_testbed(text, strlen(text), &TOPOLOGY_DEFAULTS, &made, &why), 0);
	_cleanup_(topology_freep) struct topology *t = made;
	assert_int_equal(play_network_open(t, &n), 0);
	for (uint32_t i = 0; i < t->graph->links + t->graph->machines; i++) {
		struct workload_failure f = { .link = GRAPH_NONE, .machine = GRAPH_NONE };
		unsigned int failed = 0;

		if (i < t->graph->links)
			f.link = i;
		else
			f.machine = i - t->graph->links;
		assert_int_equal(play_network_fail(&n, &f, true), 0);
		for (uint32_t l = 0; l < t->graph->links; l++) {
			const struct graph_link *link = &t->graph->link[l];
			bool fails = link->from == f.machine || link->to == f.machine ||
				     l / 2 == f.link / 2;

			assert_int_equal(n.failed_links[l], fails);
			failed += fails;
		}
		assert_true(n.graph->links == t->graph->links - failed && n.reach->ways == 0);
		for (uint32_t l = 0; l < n.graph->links; l++)
			assert_int_equal(n.failed_links[n.origin[l]], 0);
		assert_int_equal(play_network_fail(&n, &f, false), 0);
		assert_true(n.graph->links == t->graph->links && n.reach->ways == t->ways);
	}
	play_network_close(&n);
}

/* The larger job would have the rack's switch, which the smaller one has: it gets another one. */
static void who_comes_is_placed_beside_those_who_stay(void **state)
{
	static const char *const names[] = { "tapina", "tapina-mg", "exact",
					     "tor",    "soar",	    "traffic" };
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "job a workers=h1,h2,h3 root=h12 bytes=100M iterations=50\n"
		   "job b workers=h1,h2,h3 root=h12 bytes=200M iterations=50 arrives=1\n");

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct play_options o = options_of(names[i]);
		_cleanup_(play_freep) struct play_result *r = NULL;
		struct place_tree first;

		o.place.jobs_max = 1;
		o.place.tree_max = 1;
		o.place.nodes_max = 22;
		o.explain = 0;
		r = run(t, w, &o);
		first = r->explained->candidate[0].tree;
		assert_true(first.nodes == 1 && r->job[0].moved == 0);
		assert_int_equal(r->job[0].tree.node[0].machine, first.node[0].machine);
		assert_true(r->job[1].tree.nodes == 1 && !r->job[1].without);
		assert_true(r->job[1].tree.node[0].machine != first.node[0].machine);
	}
}

/* What happens to links when all jobs have ended says nothing of them. */
static void the_end_is_that_of_the_last_job(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "job j workers=h1 root=h2 bytes=125M compute=0 iterations=10\n"
		   "fail s2 s5 at=50 for=1000\n");
	const struct play_options o = options_of("none");
	_cleanup_(play_freep) struct play_result *r = run(t, w, &o);
	struct play_figures f;

	assert_about(r->ended_s, 10 * 0.1);
	assert_int_equal(play_figures(t, w, r, &f), 0);
	assert_about(f.busiest, 1);
}

static void a_job_stands_still_while_its_host_is_cut_off(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(t, "job j " JOB
								"fail h1 s1 at=0.5 for=7\n"
								"fail h1 s1 at=2 for=1\n");
	const struct play_options o = options_of("none");
	_cleanup_(play_freep) struct play_result *r = run(t, w, &o);

	assert_about(r->job[0].ended_s, 20 * 0.6 + 7);
}

static void sums_move_when_their_node_fails(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "job j workers=h1,h4 root=none bytes=125M compute=0.4 iterations=20\n"
		   "fail s5 at=0.2 for=99\n");
	struct play_options o = options_of("tapina-mg");
	_cleanup_(play_freep) struct play_result *r = NULL;

	o.place.move_s = 3;
	o.explain = 0;
	r = run(t, w, &o);
	assert_int_equal(r->explained->candidate[0].tree.node[0].machine,
			 topology_machine(t, "s1"));
	assert_int_equal(r->job[0].moved, 0); /* s1 sums, and the way to it leads by s6 now */
	assert_about(r->job[0].ended_s, 20 * 0.5);
	workload_free(TAKE_PTR(w));
	w = parse(t, "job j workers=h1,h4 root=none bytes=125M compute=0.4 iterations=20\n"
		     "fail s1 at=0.2 for=0.5\n");
	play_free(TAKE_PTR(r));
	r = run(t, w, &o);
	/* h1 has no other switch: the job stands still until s1 is back, and gets a tree anew */
	assert_int_equal(r->job[0].tree.nodes, 1);
	assert_true(r->job[0].ended_s > 20 * 0.5 + 0.3);
}

/* A job that nobody can place while it has no way is placed when it has one again. */
static void who_has_a_way_again_is_summed_for_again(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	static const char *const texts[] = {
		"job a workers=h1,h2,h4,h5 root=h12 bytes=125M compute=1 iterations=100\n"
		"fail s1 at=10 for=0.001\n",
		"job a arrives=10 workers=h1,h2,h4,h5 root=h12 bytes=125M compute=1 iterations=100\n"
		"fail s1 at=9 for=2\n",
	};
	struct play_options o = options_of("soar");

	o.place.move_s = 0;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		_cleanup_(workload_freep) struct workload *w = parse(t, texts[i]);
		_cleanup_(play_freep) struct play_result *r = run(t, w, &o);

		assert_true(r->job[0].tree.nodes > 0);
		/* 1.1 s an iteration: it computes while it has no way */
		assert_about(r->job[0].ended_s - w->job[0].arrives_s, 110);
	}
}

static void a_job_that_can_never_end_is_named(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(t, "job j " JOB);
	_cleanup_(workload_freep) struct workload *rootless = parse(
		t, "job k workers=h1,h4 root=none bytes=1\n");
	_cleanup_(topology_freep) struct topology *apart = NULL;
	static const char two[] =
		"host h1 h4\nnode s1 s2\nhost h2\nlink h1 s1\nlink h4 s2\nlink h2 s1\n";
	const struct play_options o = options_of("none");
	struct play_result *r = NULL;

	assert_int_equal(play(t, rootless, &o, &r, &why), -EINVAL);
	assert_non_null(
		strstr(why.text, "job k: policy none gives it no node, and it has no root"));
	assert_int_equal(topology_testbed(two, strlen(two), &TOPOLOGY_DEFAULTS, &apart, &why), 0);
	workload_free(TAKE_PTR(w));
	w = parse(apart, "job j " JOB);
	assert_int_equal(play(apart, w, &o, &r, &why), -EINVAL);
	assert_non_null(strstr(why.text, "job j: policy none: the network has no way for it"));
	assert_null(r);
}

/* `tapina` looks at no slots: two jobs of a rack get its switch, which has slots for one of them.
 */
static void who_has_no_slots_reads_of_an_option(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina:slots=256");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "job a workers=h1,h2 root=none bytes=1M iterations=1\n"
		   "job b workers=h2,h3 root=none bytes=1M iterations=1\n");
	static const char *const names[] = { "tapina", "tapina-mg", "exact" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct play_options o = options_of(names[i]);
		struct play_result *r = NULL;

		assert_int_equal(play(t, w, &o, &r, &why), -EINVAL);
		assert_non_null(strstr(why.text, " gives it no node that has room for it, and it "
						 "has no root"));
		assert_non_null(strstr(why.text, "--node-jobs"));
		o.place.jobs_max = 1;
		r = run(t, w, &o);
		assert_int_equal(r->nodes, 2);
		play_free(r);
	}
}

static int on_the_first_worker(const struct place_problem *p, struct place_tree *ret)
{
	for (uint32_t j = 1; j < p->jobs; j++)
		ret[j] = (struct place_tree){ 1, { { p->job[j].worker[0], GRAPH_NONE } } };
	return 0;
}

static int with_a_number(const struct place_problem *p, struct place_tree *ret) { return 7; }

static void a_policys_mistake_is_named(void **state)
{
	static const struct place_policy wrong = { .name = "mine", .decide = on_the_first_worker };
	static const struct place_policy odd = { .name = "odd", .decide = with_a_number };
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "job a workers=h1 root=h2 bytes=1M\njob b workers=h3 root=h2 bytes=1M\n");
	struct play_options o = options_of("none");
	struct play_result *r = NULL;

	o.policy = &wrong;
	assert_int_equal(play(t, w, &o, &r, &why), -EINVAL);
	assert_string_equal(
		why.text, "policy mine: the tree of job b, node 0 (h3): that machine does not sum");
	o.policy = &odd;
	assert_int_equal(play(t, w, &o, &r, &why), -EINVAL);
	assert_string_equal(why.text, "policy odd, when 2 jobs ran: it returned a number above 0");
	assert_null(r);
}

/* --- figures --------------------------------------------------------------------------------- */

static void figures_are_those_of_their_formulas(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "job a workers=h1 root=h2 bytes=125M compute=0 iterations=10\n"
		   "job b workers=h3 root=h2 bytes=125M compute=0 iterations=10\n");
	const struct play_options o = options_of("none");
	_cleanup_(play_freep) struct play_result *r = run(t, w, &o);
	struct play_figures f;

	assert_int_equal(play_figures(t, w, r, &f), 0);
	/* both at half of the root's rate: two seconds each, where one would do */
	assert_about(f.mean_s, 2);
	assert_about(f.median_s, 2);
	assert_about(f.slowdown, 2);
	assert_about(f.fairness, 1);
	assert_about(f.busiest, 1);
	assert_about(f.bytes, 2 * 10 * 125e6 * 4);
	assert_true(r->link_bytes[f.busiest_link] == 2 * 10 * 125e6);
	r->link_bytes[f.busiest_link] *= 1 + 1e-12; /* rounding makes no link fuller than full */
	assert_int_equal(play_figures(t, w, r, &f), 0);
	assert_true(f.busiest == 1);
	r->job[0].ended_s = 4; /* speeds of 1/4 and 1/2 */
	assert_int_equal(play_figures(t, w, r, &f), 0);
	assert_about(f.fairness, 0.75 * 0.75 / (2 * (0.0625 + 0.25)));
	assert_about(f.p95_s, 4);
}

static void workers_on_the_roots_host_need_no_link(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "job a workers=h1 root=h1 bytes=1M compute=0 iterations=1\n"
		   "job b workers=h4,h4,h5 root=h4 bytes=125M compute=0 iterations=10\n");
	const struct play_options o = options_of("none");
	_cleanup_(play_freep) struct play_result *r = run(t, w, &o);
	struct play_figures f;

	assert_int_equal(play_figures(t, w, r, &f), 0);
	assert_about(r->job[0].ideal_s, 0);
	assert_about(r->job[1].ideal_s, 1);
	assert_about(f.slowdown, 1);
	assert_about(f.fairness, 1);
	workload_free(TAKE_PTR(w));
	play_free(TAKE_PTR(r));
	w = parse(t, "job a workers=h1 root=h1 bytes=1M compute=0 iterations=1\n");
	r = run(t, w, &o);
	assert_int_equal(play_figures(t, w, r, &f), 0);
	assert_true(r->ended_s == 0 && f.busiest == 0 && f.busiest_link == GRAPH_NONE);
}

/* --- how far the faster way is off ------------------------------------------------------------ */

static void rates_of_few_are_near_enough(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("fat-tree:k=4");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "jobs j count=40 every=1 model=resnet50,vgg19 workers=3..6 iterations=20..60 "
		   "compute=0.1..0.4\n");
	const struct play_options exact = options_of("none");
	_cleanup_(play_freep) struct play_result *r = run(t, w, &exact);
	double worst = 0, sum = 0;

	for (unsigned int near = 16; near; near -= 8) {
		struct play_options o = options_of("none");
		_cleanup_(play_freep) struct play_result *fast = NULL;

		o.near = near;
		fast = run(t, w, &o);
		worst = sum = 0;
		for (unsigned int i = 0; i < w->jobs; i++) {
			double took = r->job[i].ended_s - w->job[i].arrives_s;
			double off = fabs(fast->job[i].ended_s - r->job[i].ended_s) / took;

			worst = fmax(worst, off);
			sum += off / w->jobs;
		}
		print_message("with %u jobs near: %.2f %% off on average, %.2f %% at worst\n", near,
			      100 * sum, 100 * worst);
		assert_true(worst < 0.05);
	}
	assert_true(worst > 0); /* it is another way */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_room_for_all_it_does_not_matter_who_decides),
		cmocka_unit_test(without_nodes_all_policies_are_one),
		cmocka_unit_test(bytes_on_links_are_what_the_hop_formula_says),
		cmocka_unit_test(paths_follow_ways_until_something_fails),
		cmocka_unit_test(a_job_goes_around_a_link_that_fails),
		cmocka_unit_test(what_fails_carries_nothing_until_it_is_repaired),
		cmocka_unit_test(who_comes_is_placed_beside_those_who_stay),
		cmocka_unit_test(the_end_is_that_of_the_last_job),
		cmocka_unit_test(a_job_stands_still_while_its_host_is_cut_off),
		cmocka_unit_test(sums_move_when_their_node_fails),
		cmocka_unit_test(who_has_a_way_again_is_summed_for_again),
		cmocka_unit_test(a_job_that_can_never_end_is_named),
		cmocka_unit_test(who_has_no_slots_reads_of_an_option),
		cmocka_unit_test(a_policys_mistake_is_named),
		cmocka_unit_test(figures_are_those_of_their_formulas),
		cmocka_unit_test(workers_on_the_roots_host_need_no_link),
		cmocka_unit_test(rates_of_few_are_near_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
