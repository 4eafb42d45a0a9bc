// SPDX-License-Identifier: GPL-2.0-only
/* Jobs that lie somewhere already: who moves, and who stays; TALLY_SEED=n runs one sequence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/place.h"
#include "common/owned.h"
#include "place_world.h"
#include "random.h"
#include "scarce.h"

enum {
	SEQUENCES = 60,
	ROUNDS = 12,
	NOISY_ROUNDS = 10,
};

static void load_links(uint64_t *random, const struct graph *g)
{
	for (uint32_t l = 0; l < g->links; l++)
		g->link[l].load = chance(random, 300)
					  ? g->link[l].capacity * random_below(random, 90) / 100
					  : 0;
}

static void lie(struct place_world *w, const struct place_tree *tree)
{
	for (uint32_t j = 0; j < w->p.jobs; j++) {
		w->now[j] = tree[j];
		w->job[j].now = &w->now[j];
	}
}

/* Someone comes or goes, or the loads change. Returns whether all jobs lie somewhere. */
static bool something_happens(uint64_t *random, struct place_world *w)
{
	uint32_t gone = random_below(random, w->p.jobs);

	switch (random_below(random, 3)) {
	case 0:
		if (w->p.jobs == PLACE_WORLD_JOBS)
			return true;
		place_world_random(random, 1, w);
		return false;
	case 1:
		if (w->p.jobs == 1)
			return true;
		/* The last job takes the number of the one that is gone. */
		w->p.jobs--;
		memcpy(w->worker[gone], w->worker[w->p.jobs], sizeof(w->worker[gone]));
		w->job[gone] = w->job[w->p.jobs];
		w->job[gone].worker = w->worker[gone];
		w->now[gone] = w->now[w->p.jobs];
		w->job[gone].now = &w->now[gone];
		return true;
	default:
		load_links(random, w->t->graph);
		return true;
	}
}

static bool is_same(const struct place_tree *a, const struct place_tree *b)
{
	return a->nodes == b->nodes && memcmp(a->node, b->node, a->nodes * sizeof(*a->node)) == 0;
}

static unsigned int moves, rounds;

static const char *a_decision_is_wrong(struct place_world *w, bool all_lie)
{
	struct place_tree tree[PLACE_WORLD_JOBS], again[PLACE_WORLD_JOBS];
	struct place_cost before, after;
	unsigned int moved, count = 0;

	assert_int_equal(place_again(&w->p, tree, &moved), 0);
	if (place_allowed(&w->p, tree) != 0)
		return "a decision does not keep the limits";
	assert_int_equal(place_cost(&w->p, tree, &after, NULL), 0);
	for (uint32_t j = 0; j < w->p.jobs; j++)
		count += w->job[j].now && !is_same(&w->now[j], &tree[j]);
	if (count < moved)
		return "more jobs moved than have other trees";
	if (all_lie && place_allowed(&w->p, w->now) == 0) {
		assert_int_equal(place_cost(&w->p, w->now, &before, NULL), 0);
		if (!(after.total <= before.total))
			return "staying would have cost less";
		if (moved && isfinite(before.total) &&
		    after.total > before.total * (1 - w->p.options.margin) + 1e-9)
			return "jobs moved for less than the margin";
	}
	moves += moved;
	rounds++;
	lie(w, tree);
	assert_int_equal(place_again(&w->p, again, &moved), 0);
	return moved ? "who has just been placed moves again" : NULL;
}

static const char *a_sequence_goes_wrong(uint64_t seed)
{
	_cleanup_(place_world_close) struct place_world w;
	const char *wrong;

	place_world_any(&seed, 4, &w);
	w.p.options.move_s = 0.01 * random_below(&seed, 100);
	wrong = a_decision_is_wrong(&w, false);
	for (unsigned int i = 0; i < ROUNDS && !wrong; i++) {
		bool all_lie = something_happens(&seed, &w);

		wrong = a_decision_is_wrong(&w, all_lie);
	}
	return wrong;
}

static void no_move_costs_more_than_staying(void **state)
{
	run_seeds(SEQUENCES, a_sequence_goes_wrong);
	print_message("%u moves in %u rounds\n", moves, rounds);
	assert_true(getenv("TALLY_SEED") || moves > 0);
}

/* Loads, half of a link at most, go up and down by a twentieth. Returns how often a job came back
 * to where it had been. */
static unsigned int returns(struct place_world *w, uint64_t random)
{
	struct place_tree been[NOISY_ROUNDS + 1][PLACE_WORLD_JOBS];
	struct graph *g = w->t->graph;
	_cleanup_(freep) double *load = calloc(g->links, sizeof(*load));
	unsigned int moved, count = 0;

	for (uint32_t l = 0; l < g->links; l++)
		load[l] = g->link[l].load / 2;
	for (unsigned int i = 0; i <= NOISY_ROUNDS; i++) {
		assert_int_equal(place_again(&w->p, been[i], &moved), 0);
		for (uint32_t j = 0; j < w->p.jobs && i > 0; j++)
			for (unsigned int k = 0; k + 1 < i; k++)
				count += !is_same(&been[i - 1][j], &been[i][j]) &&
					 is_same(&been[k][j], &been[i][j]);
		lie(w, been[i]);
		for (uint32_t l = 0; l < g->links; l++)
			g->link[l].load = load[l] * (1 + (random_below(&random, 3) - 1.0) / 20);
	}
	return count;
}

static unsigned int returned_without_margin;

static const char *a_job_goes_to_and_fro(uint64_t seed)
{
	for (unsigned int margin = 0; margin < 2; margin++) {
		_cleanup_(place_world_close) struct place_world w;
		uint64_t random = seed;
		unsigned int count;

		place_world_any(&random, 6, &w);
		w.p.options.move_s = 0;
		w.p.options.margin = margin ? 0.1 : 0;
		count = returns(&w, seed);
		if (margin && count)
			return "a job went to and fro for noise";
		if (!margin)
			returned_without_margin += count;
	}
	return NULL;
}

static void noise_below_the_margin_moves_nobody_to_and_fro(void **state)
{
	run_seeds(SEQUENCES, a_job_goes_to_and_fro);
	print_message("without a margin: %u times\n", returned_without_margin);
	assert_true(getenv("TALLY_SEED") || returned_without_margin > 0);
}

/* Two racks, a spine that others fill meanwhile: leaving pays for those who go on for long. */
static void a_job_moves_if_that_pays_before_it_ends(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[1];
	unsigned int moved;
	uint32_t spine;

	place_world_open("leaf-spine:leaves=2,spines=2,hosts=2,rate=800bit", &w);
	place_world_job(&w, 2, 100);
	w.worker[0][0] = w.t->host[0];
	w.worker[0][1] = w.t->host[2];
	w.p.options.tree_max = 1;
	w.p.options.move_s = 20;
	assert_int_equal(place_again(&w.p, tree, &moved), 0);
	assert_true(tree[0].nodes == 1 && moved == 0);
	lie(&w, tree);
	spine = tree[0].node[0].machine;
	for (uint32_t l = 0; l < w.t->graph->links; l++)
		if (w.t->graph->link[l].from != w.t->host[0] &&
		    w.t->graph->link[l].to != w.t->host[0] &&
		    (w.t->graph->link[l].from == spine || w.t->graph->link[l].to == spine))
			w.t->graph->link[l].load = 90;
	w.job[0].iterations = 1;
	assert_int_equal(place_again(&w.p, tree, &moved), 0);
	assert_int_equal(moved, 0);
	w.job[0].iterations = 1000;
	assert_int_equal(place_again(&w.p, tree, &moved), 0);
	assert_int_equal(moved, 1);
	assert_true(tree[0].node[0].machine != spine);
}

/* A large gain of one job takes no other one along: each move has to pay by itself. */
static void each_move_is_above_the_margin(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[2];
	unsigned int moved;
	uint32_t spine;

	place_world_open("leaf-spine:leaves=4,spines=2,hosts=2,rate=800bit", &w);
	spine = topology_machine(w.t, "s0");
	for (unsigned int j = 0; j < 2; j++) {
		place_world_job(&w, 2, 100);
		w.worker[j][0] = w.t->host[4 * j];
		w.worker[j][1] = w.t->host[4 * j + 2];
		tree[j] = (struct place_tree){ 1, { { spine, GRAPH_NONE } } };
	}
	lie(&w, tree);
	w.p.options.tree_max = 1;
	w.p.options.move_s = 0;
	for (uint32_t l = 0; l < w.t->graph->links; l++) {
		struct graph_link *link = &w.t->graph->link[l];
		uint32_t leaf = link->from == spine ? link->to : link->from;

		if (link->from == spine || link->to == spine)
			link->load = leaf == topology_machine(w.t, "l0") ||
						     leaf == topology_machine(w.t, "l1")
					     ? 90
					     : 5;
	}
	for (unsigned int margin = 0; margin < 2; margin++) {
		w.p.options.margin = margin ? 0.3 : 0;
		assert_int_equal(place_again(&w.p, tree, &moved), 0);
		assert_int_equal(moved, margin ? 1 : 2);
		assert_true(tree[0].node[0].machine != spine);
	}
}

/* A place that is too small now is left at once, whatever the margin is. */
static void who_cannot_stay_is_placed_anew(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	struct place_tree tree[1];
	unsigned int moved;

	place_world_open("leaf-spine:leaves=2,spines=1,hosts=2", &w);
	place_world_job(&w, 4, 1e6);
	memcpy(w.worker[0], w.t->host, 4 * sizeof(uint32_t));
	w.job[0].slots = 16;
	w.p.options.tree_max = 1;
	w.p.options.margin = 10;
	assert_int_equal(place_again(&w.p, tree, &moved), 0);
	lie(&w, tree);
	w.t->graph->machine[tree[0].node[0].machine].slots = 15;
	assert_int_equal(place_again(&w.p, tree, &moved), 0);
	assert_int_equal(moved, 1);
	assert_true(tree[0].nodes == 1);
	assert_int_equal(place_allowed(&w.p, tree), 0);
}

static int do_it(void *context)
{
	const struct place_world *w = context;
	struct place_tree tree[PLACE_WORLD_JOBS];
	unsigned int moved;

	return place_again(&w->p, tree, &moved);
}

static void memory_may_run_out_anywhere(void **state)
{
	_cleanup_(place_world_close) struct place_world w;
	uint64_t seed = 5;

	place_world_any(&seed, 4, &w);
	run_out_of_memory(do_it, &w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_move_costs_more_than_staying),
		cmocka_unit_test(noise_below_the_margin_moves_nobody_to_and_fro),
		cmocka_unit_test(a_job_moves_if_that_pays_before_it_ends),
		cmocka_unit_test(each_move_is_above_the_margin),
		cmocka_unit_test(who_cannot_stay_is_placed_anew),
		cmocka_unit_test(memory_may_run_out_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
