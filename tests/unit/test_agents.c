// SPDX-License-Identifier: GPL-2.0-only
/* Jobs of a simulated network at the agents of its nodes: the cores say who has which slots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "play_world.h"

#define NODE "ports: [eth1]\nservice: [10.0.0.1]\nslots: 65536\n"

/* NULL as a configuration: jobs come to no agents. */
static struct play_result *run(const struct topology *t, const struct workload *w,
			       const char *policy, const char *config)
{
	_cleanup_(agents_freep) struct agents *agents = NULL;
	struct play_options o = { .policy = place_policy_find(policy),
				  .place = PLACE_OPTIONS,
				  .explain = UINT32_MAX };
	struct play_result *r = NULL;

	assert_non_null(o.policy);
	if (config && agents_open(t, w, "tallyd.yaml", config, strlen(config), 1, &agents, &why))
		fail_msg("%s", why.text);
	o.agents = agents;
	if (play(t, w, &o, &r, &why) != 0)
		fail_msg("%s: %s", policy, why.text);
	return r;
}

/* --- where there is enough ------------------------------------------------------------------- */

static const char crowd[] = "jobs j count=40 every=2 model=resnet50,alexnet workers=3..6 "
			    "iterations=5..20 slots=128..600\n";

/* Each job has all slots at each node, and so nothing is another than without agents. */
static void with_slots_for_all_agents_change_nothing(void **state)
{
	static const char *const policies[] = { "none", "tapina-mg", "tapina", "tor", "random" };
	_cleanup_(topology_freep) struct topology *t = network("fat-tree:k=4");
	_cleanup_(workload_freep) struct workload *w = parse(t, crowd);

	for (size_t p = 0; p < sizeof(policies) / sizeof(*policies); p++) {
		_cleanup_(play_freep) struct play_result *alone = run(t, w, policies[p], NULL);
		_cleanup_(play_freep) struct play_result *r = run(t, w, policies[p], NODE);
		unsigned int nodes = 0;

		for (unsigned int i = 0; i < w->jobs; i++) {
			nodes += alone->job[i].tree.nodes;
			assert_true(r->job[i].ended_s == alone->job[i].ended_s);
		}
		for (uint32_t l = 0; l < t->graph->links; l++)
			assert_true(r->link_bytes[l] == alone->link_bytes[l]);
		assert_int_equal(r->agents.whole, nodes);
		assert_int_equal(r->agents.smaller + r->agents.borrowed + r->agents.none, 0);
		assert_int_equal(r->agents.refused, 0);
	}
}

/* --- where there is not ---------------------------------------------------------------------- */

/* Of the tenant behind the default. The root's cable is wide: trees do not help there. */
static const char two[] =
	"job a workers=h1,h2 root=none bytes=10M iterations=20 tenant=1 compute=1\n"
	"job b workers=h1,h2 root=none bytes=10M iterations=90 tenant=1 compute=1 "
	"arrives=0.5\n";

/*
 * The quota is enough for one job: the other one's sums are made in software, at the same node,
 * and by slots 10 s at most after the first one has ended.
 */
static void a_quota_holds_and_what_waits_comes_to_it(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(t, two);
	_cleanup_(play_freep) struct play_result *alone = run(t, w, "tapina-mg", NULL);
	_cleanup_(play_freep) struct play_result *r = run(
		t, w, "tapina-mg", NODE "tenants: [{name: red, slots: 256}]\n");

	assert_int_equal(r->agents.whole, 1);
	assert_int_equal(r->agents.none, 1);
	assert_int_equal(r->agents.refilled, 1);
	for (unsigned int i = 0; i < w->jobs; i++) /* the top sums in any case */
		assert_true(r->job[i].ended_s == alone->job[i].ended_s);
}

/* The same with loans: nobody else is there. */
static void what_nobody_uses_is_lent(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(t, two);
	_cleanup_(play_freep) struct play_result *r = run(
		t, w, "tapina-mg", NODE "quotas: lend\ntenants: [{name: red, slots: 256}]\n");

	assert_int_equal(r->agents.whole, 2);
	assert_int_equal(r->agents.loans, 1);
}

/* A quota that is too small for the whole window gives no slots: then software has that window. */
static void a_quota_that_is_too_small_gives_none(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "job a workers=h1,h2 root=none bytes=10M iterations=2 tenant=1\n"
		   "job b workers=h1,h2 root=none bytes=10M iterations=2\n");
	_cleanup_(play_freep) struct play_result *r = run(
		t, w, "tapina-mg", NODE "tenants: [{name: red, slots: 255}]\n");

	assert_int_equal(r->agents.none, 1);
	assert_int_equal(r->agents.whole, 1);
}

/* h9 makes the results; the workers are in one rack, whose cable is what holds them up. */
static const char racks[] =
	"job a workers=h1,h2,h3 root=h9 bytes=125M iterations=10 tenant=1 compute=0\n";

/* A node below the root that has no slots passes on: the job is as without nodes. */
static void a_node_without_slots_passes_on(void **state)
{
	static const struct {
		const char *config;
		bool sums;
		unsigned int whole, borrowed, none;
	} cases[] = {
		{ NODE "tenants: [{name: red, slots: 256}]\n", true, 1, 0, 0 },
		{ NODE "tenants: [{name: red, slots: 128}]\n", false, 0, 0, 1 },
		{ NODE "pool: {slots: 64}\ntenants: [{name: red, slots: 128}]\n", true, 0, 1, 0 },
	};
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(t, racks);
	_cleanup_(play_freep) struct play_result *none = run(t, w, "none", NULL);
	_cleanup_(play_freep) struct play_result *tree = run(t, w, "tor", NULL);

	assert_int_equal(tree->job[0].tree.nodes, 1);
	assert_true(tree->job[0].ended_s < none->job[0].ended_s / 2);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(play_freep) struct play_result *r = run(t, w, "tor", cases[i].config);

		assert_about(r->job[0].ended_s, (cases[i].sums ? tree : none)->job[0].ended_s);
		assert_int_equal(r->agents.whole, cases[i].whole);
		assert_int_equal(r->agents.borrowed, cases[i].borrowed);
		assert_int_equal(r->agents.none, cases[i].none);
	}
}

/* As soon as there are slots, it sums: the second job is faster from then on. */
static void a_node_below_the_root_gets_slots_later(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "job a workers=h1,h2 root=h9 bytes=125M iterations=100 tenant=1 compute=0\n"
		   "job b workers=h1,h2 root=h9 bytes=125M iterations=1000 tenant=1 compute=0 "
		   "arrives=1\n");
	_cleanup_(play_freep) struct play_result *none = run(t, w, "none", NULL);
	_cleanup_(play_freep) struct play_result *tree = run(t, w, "tor", NULL);
	_cleanup_(play_freep) struct play_result *r = run(
		t, w, "tor", NODE "tenants: [{name: red, slots: 256}]\n");

	assert_int_equal(r->agents.whole, 1);
	assert_int_equal(r->agents.none, 1);
	assert_int_equal(r->agents.refilled, 1);
	assert_true(r->job[1].ended_s < 0.9 * none->job[1].ended_s);
	assert_true(r->job[1].ended_s > 1.02 * tree->job[1].ended_s);
}

/* What a job had, at its root and at the nodes below, the next one gets. */
static void a_job_that_ends_leaves_nothing_behind(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "job a workers=h1,h2,h3 root=h9 bytes=1M iterations=10 tenant=1\n"
		   "job b workers=h1,h2,h3 root=h9 bytes=1M iterations=10 tenant=1 arrives=999\n"
		   "job c workers=h1,h2 root=none bytes=1M iterations=10 tenant=1 arrives=1999\n"
		   "job d workers=h1,h2 root=none bytes=1M iterations=10 tenant=1 arrives=2999\n");
	_cleanup_(play_freep) struct play_result *r = run(
		t, w, "tor", NODE "tenants: [{name: red, slots: 256}]\n");

	assert_int_equal(r->agents.whole, 4);
	assert_int_equal(r->agents.none, 0);
}

/* Agents say why, and the job goes on without nodes. */
static void a_job_that_is_refused_goes_on_without_nodes(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(t, racks);
	_cleanup_(play_freep) struct play_result *none = run(t, w, "none", NULL);
	_cleanup_(play_freep) struct play_result *r = run(
		t, w, "tor", NODE "ingress: required\ntenants: [{name: red, slots: 256}]\n");

	assert_int_equal(r->agents.refused, 1);
	assert_true(r->job[0].ended_s == none->job[0].ended_s);
	assert_non_null(strstr(r->agents.refusal.text, "job a at h9: ingress: required"));
}

/* --- what is wrong --------------------------------------------------------------------------- */

static void assert_refused(const struct topology *t, const struct workload *w, const char *config,
			   const char *text)
{
	struct agents *agents = NULL;

	assert_int_not_equal(
		agents_open(t, w, "day.yaml", config, strlen(config), 1, &agents, &why), 0);
	assert_null(agents);
	if (!strstr(why.text, text))
		fail_msg("'%s' is not in '%s'", text, why.text);
}

static void what_does_not_fit_is_said(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina:slots=1000");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "jobs j count=3 bytes=1M workers=2 tenants=3\n");

	assert_refused(t, w, "ports: [eth1]\n", "day.yaml: the key 'service' is needed");
	assert_refused(t, w, NODE,
		       "job j.1 is of tenant 1, and day.yaml has the default tenant "
		       "alone, which is 0");
	assert_refused(t, w, NODE "tenants: [{name: a, slots: 1}]\n",
		       "job j.2 is of tenant 2, and day.yaml has tenants 0 (default) to 1 (a)");
	assert_refused(t, w, NODE "tenants: [{name: a, slots: 900}, {name: b, slots: 101}]\n",
		       "day.yaml: its tenants reserve 1001 slots, and node");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_slots_for_all_agents_change_nothing),
		cmocka_unit_test(a_quota_holds_and_what_waits_comes_to_it),
		cmocka_unit_test(what_nobody_uses_is_lent),
		cmocka_unit_test(a_quota_that_is_too_small_gives_none),
		cmocka_unit_test(a_node_without_slots_passes_on),
		cmocka_unit_test(a_node_below_the_root_gets_slots_later),
		cmocka_unit_test(a_job_that_ends_leaves_nothing_behind),
		cmocka_unit_test(a_job_that_is_refused_goes_on_without_nodes),
		cmocka_unit_test(what_does_not_fit_is_said),
	};

	return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
