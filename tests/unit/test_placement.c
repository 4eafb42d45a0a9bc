// SPDX-License-Identifier: GPL-2.0-only
/* Which node makes a job's sums; TALLY_SEED=n runs one random set of jobs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "agent/policy/graph.h"
#include "agent/policy/placement.h"
#include "common/owned.h"
#include "random.h"
#include "tapina.h"

enum {
	RANDOM_JOBS = 200,
};

struct world {
	struct graph *g;
	unsigned int jobs;
	struct placement_job job[JOBS];
	uint32_t worker[JOBS][WORKERS_MAX];
	double cost[JOBS * SWITCHES], without[JOBS], size[JOBS];
	struct placement p;
};

static void measure(struct world *w, unsigned int nodes_max, unsigned int jobs_max)
{
	static const uint32_t server = SERVER;
	uint32_t node[SWITCHES];

	for (uint32_t s = 0; s < SWITCHES; s++)
		node[s] = S1 + s;
	for (unsigned int j = 0; j < w->jobs; j++)
		w->size[j] = w->job[j].bytes * w->job[j].workers;
	assert_int_equal(placement_costs(w->g, w->job, w->jobs, node, SWITCHES, w->cost), 0);
	assert_int_equal(placement_costs(w->g, w->job, w->jobs, &server, 1, w->without), 0);
	w->p = (struct placement){ w->jobs,    SWITCHES,  w->size, w->cost,
				   w->without, nodes_max, jobs_max };
}

static void authors_jobs(struct world *w)
{
	*w = (struct world){ .g = tapina(), .jobs = JOBS };
	for (unsigned int j = 0; j < JOBS; j++)
		w->job[j] = (struct placement_job){ .worker = w->worker[j],
						    .workers = tapina_workers(j, w->worker[j]),
						    .bytes = 1 };
	measure(w, 3, 2);
}

static void world_close(struct world *w) { graph_free(w->g); }

static void costs_are_those_of_the_authors_jobs(void **state)
{
	static const double want[][JOBS] = {
		[0] = { 22, 14, 7, 18, 16 },  [2] = { 22, 14, 11, 24, 10 },
		[4] = { 18, 12, 8, 16, 14 },  [5] = { 18, 12, 8, 16, 14 },
		[6] = { 18, 12, 10, 20, 10 }, [7] = { 18, 12, 10, 20, 10 },
		[8] = { 18, 12, 9, 18, 12 },  [9] = { 18, 12, 9, 18, 12 },
	};
	static const double without[] = { 24, 16, 13, 26, 14 };
	_cleanup_(world_close) struct world w;

	authors_jobs(&w);
	for (unsigned int j = 0; j < JOBS; j++) {
		assert_true(w.without[j] == without[j]);
		for (unsigned int s = 0; s < SWITCHES; s++)
			assert_true(want[s][j] == 0 || w.cost[j * SWITCHES + s] == want[s][j]);
	}
}

static void is_placed(const struct world *w, const uint32_t *node, double cost)
{
	assert_true(placement_cost(&w->p, node) == cost);
}

static void the_authors_jobs_are_placed_as_they_say(void **state)
{
	static const uint32_t nowhere[JOBS] = { [0 ... JOBS - 1] = PLACEMENT_NONE };
	static const uint32_t matched[JOBS] = { 4, 5, 0, 4, 5 };
	_cleanup_(world_close) struct world w;
	uint32_t node[JOBS];

	authors_jobs(&w);
	is_placed(&w, nowhere, 93);
	assert_int_equal(placement_match(&w.p, node), 0);
	is_placed(&w, node, 67);
	assert_memory_equal(node, matched, sizeof(node));
	for (int distance = 20; distance <= 30; distance++) {
		assert_int_equal(placement_reuse(&w.p, distance / 10.0, node), 0);
		is_placed(&w, node, 64);
	}
	assert_int_equal(placement_reuse(&w.p, 3.5, node), 0);
	is_placed(&w, node, 67);
	assert_int_equal(placement_exact(&w.p, 0, node), 0);
	is_placed(&w, node, 63);
}

static void without_nodes_or_room_nobody_sums(void **state)
{
	_cleanup_(world_close) struct world w;
	uint32_t node[JOBS];

	authors_jobs(&w);
	for (int i = 0; i < 2; i++) {
		w.p.nodes_max = i;
		w.p.jobs_max = 1 - i;
		assert_int_equal(placement_match(&w.p, node), 0);
		is_placed(&w, node, 93);
		assert_int_equal(placement_reuse(&w.p, 3, node), 0);
		is_placed(&w, node, 93);
		assert_int_equal(placement_exact(&w.p, 0, node), 0);
		is_placed(&w, node, 93);
	}
}

/* A node that some worker has no way to is not taken, whatever else there is. */
static void a_node_without_a_way_is_not_taken(void **state)
{
	static const double size[] = { 1 }, cost[] = { INFINITY }, without[] = { 5 };
	static const struct placement p = { 1, 1, size, cost, without, 1, 1 };
	uint32_t node[1] = { 7 };

	assert_int_equal(placement_match(&p, node), 0);
	assert_int_equal(node[0], PLACEMENT_NONE);
	assert_int_equal(placement_reuse(&p, 3, node), 0);
	assert_int_equal(node[0], PLACEMENT_NONE);
	assert_int_equal(placement_exact(&p, 0, node), 0);
	assert_int_equal(node[0], PLACEMENT_NONE);
}

/* UINT32_MAX is what options have where nobody gives a limit. */
static void no_limit_is_as_good_as_one_that_nobody_reaches(void **state)
{
	_cleanup_(world_close) struct world w;
	uint32_t node[JOBS], limited[JOBS];

	authors_jobs(&w);
	w.p.nodes_max = SWITCHES;
	w.p.jobs_max = JOBS;
	assert_int_equal(placement_exact(&w.p, 0, limited), 0);
	w.p.nodes_max = w.p.jobs_max = UINT32_MAX;
	assert_int_equal(placement_exact(&w.p, 0, node), 0);
	is_placed(&w, node, placement_cost(&w.p, limited));
}

static void no_room_is_not_too_few_steps(void **state)
{
	static const double size[] = { 1, 1 }, cost[] = { 1, 1 },
			    rootless[] = { INFINITY, INFINITY };
	static const struct placement p = { 2, 1, size, cost, rootless, 1, 1 };
	_cleanup_(world_close) struct world w;
	uint32_t node[JOBS] = { 7, 7 };

	assert_int_equal(placement_exact(&p, 0, node), -ENOSPC);
	authors_jobs(&w);
	assert_int_equal(placement_exact(&w.p, 1, node), -EAGAIN);
	assert_true(node[0] == 7 && node[1] == 7);
}

/* One that has no way to a node nor to a root, as while its host is cut off. */
static void a_job_without_a_way_keeps_no_other_from_a_node(void **state)
{
	static const double size[] = { 1, 1 }, cost[] = { INFINITY, 1 },
			    without[] = { INFINITY, 5 };
	static const struct placement p = { 2, 1, size, cost, without, 1, 1 };
	uint32_t node[2] = { 7, 7 };

	assert_int_equal(placement_exact(&p, 0, node), 0);
	assert_true(node[0] == PLACEMENT_NONE && node[1] == 0);
}

static void a_job_gives_way_to_larger_ones_only(void **state)
{
	static const double cost[] = { 1, 1, 1 }, without[] = { 5, 5, 5 };
	struct placement p = { 2, 1, (const double[]){ 2, 2, 3 }, cost, without, 1, 1 };
	uint32_t node[3];

	assert_int_equal(placement_match(&p, node), 0);
	assert_true(node[0] == 0 && node[1] == PLACEMENT_NONE);
	p.jobs = 3;
	assert_int_equal(placement_match(&p, node), 0);
	assert_true(node[0] == PLACEMENT_NONE && node[1] == PLACEMENT_NONE && node[2] == 0);
}

static void machines_that_are_not_there_are_refused(void **state)
{
	_cleanup_(world_close) struct world w;
	uint32_t machine = MACHINES;
	double cost[JOBS];

	authors_jobs(&w);
	assert_int_equal(placement_costs(w.g, w.job, JOBS, &machine, 1, cost), -EINVAL);
	machine = S1;
	w.worker[2][0] = MACHINES;
	assert_int_equal(placement_costs(w.g, w.job, JOBS, &machine, 1, cost), -EINVAL);
}

/* --- random jobs ----------------------------------------------------------------------------- */

static void random_jobs(uint64_t *random, struct world *w)
{
	*w = (struct world){ .g = tapina(), .jobs = JOBS };
	for (unsigned int j = 0; j < JOBS; j++) {
		w->job[j] = (struct placement_job){ w->worker[j], 3 + random_below(random, 4),
						    1 + random_below(random, 19) };
		for (unsigned int i = 0; i < w->job[j].workers; i++)
			w->worker[j][i] = random_below(random, HOSTS);
	}
	measure(w, 1 + random_below(random, 4), 1 + random_below(random, 3));
}

static const char *is_within_limits(const struct placement *p, const uint32_t *node)
{
	unsigned int held[SWITCHES] = { 0 }, used = 0;

	for (unsigned int j = 0; j < p->jobs; j++)
		if (node[j] != PLACEMENT_NONE && ++held[node[j]] > p->jobs_max)
			return "a node has too many jobs";
	for (unsigned int n = 0; n < p->nodes; n++)
		used += held[n] > 0;
	return used > p->nodes_max ? "too many nodes are in use" : NULL;
}

static double over_best, worst_over_best;
static unsigned int placed;

static const char *nothing_is_better_than_exact(uint64_t seed)
{
	_cleanup_(world_close) struct world w;
	uint32_t exact[JOBS], matched[JOBS], reused[JOBS];
	const char *wrong;
	double best;

	random_jobs(&seed, &w);
	assert_int_equal(placement_exact(&w.p, 0, exact), 0);
	assert_int_equal(placement_match(&w.p, matched), 0);
	assert_int_equal(placement_reuse(&w.p, 3, reused), 0);
	wrong = is_within_limits(&w.p, exact);
	wrong = wrong ? wrong : is_within_limits(&w.p, matched);
	wrong = wrong ? wrong : is_within_limits(&w.p, reused);
	best = placement_cost(&w.p, exact);
	if (placement_cost(&w.p, matched) < best || placement_cost(&w.p, reused) < best)
		return "a placement is better than the best one";
	placed++;
	over_best += placement_cost(&w.p, matched) / best;
	worst_over_best = fmax(worst_over_best, placement_cost(&w.p, matched) / best);
	return wrong;
}

static void no_placement_is_better_than_the_exact_one(void **state)
{
	run_seeds(RANDOM_JOBS, nothing_is_better_than_exact);
	print_message("TAPINA-MG's cost by the least: mean %.3f, worst %.3f\n", over_best / placed,
		      worst_over_best);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_are_those_of_the_authors_jobs),
		cmocka_unit_test(the_authors_jobs_are_placed_as_they_say),
		cmocka_unit_test(without_nodes_or_room_nobody_sums),
		cmocka_unit_test(a_node_without_a_way_is_not_taken),
		cmocka_unit_test(no_limit_is_as_good_as_one_that_nobody_reaches),
		cmocka_unit_test(no_room_is_not_too_few_steps),
		cmocka_unit_test(a_job_without_a_way_keeps_no_other_from_a_node),
		cmocka_unit_test(a_job_gives_way_to_larger_ones_only),
		cmocka_unit_test(machines_that_are_not_there_are_refused),
		cmocka_unit_test(no_placement_is_better_than_the_exact_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
