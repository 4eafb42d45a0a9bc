// SPDX-License-Identifier: GPL-2.0-only
/*
 * The example of docs/policies.md, from a file and a line to figures: a policy decides, its
 * decision is simulated, and it is compared with others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "common/owned.h"
#include "place_world.h"
#include "sim/phases.h"

enum {
	JOBS = 6,
	ITERATIONS = 20,
};

/* The file: place_switch.c. */
int place_switch(const struct place_problem *p, struct place_tree *ret);

/* The line. In agent/policy/place.c it would stand in PLACE_POLICIES. */
static const struct place_policy MINE = { "switch", "workers", "the switch of all workers, if any",
					  place_switch };

/* Six jobs of four workers: four jobs with a rack each, and two that lie across two racks. */
static void open_world(struct place_world *ret)
{
	place_world_open("leaf-spine:leaves=4,spines=2,hosts=8", ret);
	for (unsigned int j = 0; j < JOBS; j++) {
		struct place_job *job = place_world_job(ret, 4, 1e8);

		for (unsigned int w = 0; w < 4; w++)
			ret->worker[j][w] =
				ret->t->host[j < 4 ? 8 * j + w
						   : 16 * (j - 4) + 4 + 6 * (w / 2) + w];
		job->root = ret->t->host[31 - j];
	}
}

/* When the last job ends, in seconds. */
static double simulated(const struct place_world *w, const struct place_tree *tree)
{
	const struct graph *g = w->t->graph;
	_cleanup_(freep) double *capacity = calloc(g->links, sizeof(*capacity));
	struct phases_result result[JOBS];
	struct phases_job job[JOBS];
	struct fair_use *use[JOBS];
	double last = 0;

	for (uint32_t l = 0; l < g->links; l++)
		capacity[l] = g->link[l].capacity;
	for (uint32_t j = 0; j < JOBS; j++) {
		job[j] = (struct phases_job){ .compute_s = w->job[j].compute_s,
					      .bytes = w->job[j].bytes,
					      .iterations = ITERATIONS,
					      .flow = { .weight = 1, .limit = INFINITY } };
		assert_int_equal(place_uses(&w->p, j, &tree[j], &use[j], &job[j].flow.uses), 0);
		job[j].flow.use = use[j];
	}
	assert_int_equal(phases_run(capacity, g->links, job, JOBS, result, NULL), 0);
	for (uint32_t j = 0; j < JOBS; j++) {
		last = fmax(last, result[j].ended_s);
		free(use[j]);
	}
	return last;
}

static double compare(const struct place_policy *policy, const struct place_world *w)
{
	struct place_tree tree[JOBS];
	struct place_cost cost;
	unsigned int without;
	double ended_s;

	assert_int_equal(place_decide(policy, &w->p, tree, &without), 0);
	assert_int_equal(place_cost(&w->p, tree, &cost, NULL), 0);
	ended_s = simulated(w, tree);
	print_message("%-10s cost %6.3f  nodes %u  all ended after %6.2f s\n", policy->name,
		      cost.total, cost.nodes, ended_s);
	return ended_s;
}

static void a_policy_is_written_simulated_and_compared(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	double mine, none, traffic;

	open_world(&w);
	mine = compare(&MINE, &w);
	none = compare(place_policy_find("none"), &w);
	compare(place_policy_find("tor"), &w);
	compare(place_policy_find("soar"), &w);
	traffic = compare(place_policy_find("traffic"), &w);
	/* Jobs across racks are as slow with it as without nodes, and hold up the end. */
	assert_true(mine <= none && traffic < mine);
}

static void it_takes_the_switch_of_all_workers(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[JOBS];
	unsigned int without;

	open_world(&w);
	assert_int_equal(place_decide(&MINE, &w.p, tree, &without), 0);
	for (unsigned int j = 0; j < JOBS; j++) {
		assert_int_equal(tree[j].nodes, j < 4);
		if (j < 4)
			assert_int_equal(
				reach_distance(w.reach, w.worker[j][0], tree[j].node[0].machine),
				1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_takes_the_switch_of_all_workers),
		cmocka_unit_test(a_policy_is_written_simulated_and_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
