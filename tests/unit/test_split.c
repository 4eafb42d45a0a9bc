// SPDX-License-Identifier: GPL-2.0-only
/* How a vector is split over roots; TALLY_SEED=n runs one random problem. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "agent/policy/lp.h"
#include "agent/policy/split.h"
#include "common/owned.h"
#include "random.h"
#include "scarce.h"

enum {
	ROOTS_MAX = 4,
	NODES_MAX = 3,
	PROBLEMS = 300,
	ROUNDS = 2000,
};

static void is_near(double a, double b) { assert_true(fabs(a - b) < 5e-6); }

static bool is_close(double a, double b) { return fabs(a - b) <= 1e-6 * fmax(a, b); }

/* --- an obvious version ---------------------------------------------------------------------- */

/*
 * The program of split.h as it stands there, with a rate for each worker, root and node. The last
 * variable is the rate to all roots; with `share` each root has that much of it.
 */
static double by_program(const struct split_problem *p, const double *share)
{
	_cleanup_(lp_closep) struct lp *l = NULL;
	uint32_t node[NODES_MAX], all, rate;
	enum lp_outcome outcome;

	assert_int_equal(lp_open(&l), 0);
	rate = lp_variable(l, 0, INFINITY, -1);
	all = lp_row(l, 0, 0);
	lp_term(l, all, rate, -1);
	for (uint32_t v = 0; v < p->nodes; v++)
		node[v] = lp_row(l, -INFINITY, p->node_room[v]);
	for (uint32_t s = 0; s < p->roots; s++) {
		uint32_t root = lp_row(l, -INFINITY, p->root_room[s]), on[NODES_MAX];
		uint32_t part = lp_variable(l, 0, INFINITY, 0), of_all = lp_row(l, 0, 0);

		lp_term(l, all, part, 1);
		if (share) {
			lp_term(l, of_all, part, 1);
			lp_term(l, of_all, rate, -share[s]);
		}
		for (uint32_t v = 0; v < p->nodes; v++) {
			on[v] = lp_variable(l, 0, INFINITY, 0);
			lp_term(l, root, on[v], 1);
		}
		for (uint32_t w = 0; w < p->workers; w++) {
			uint32_t straight = lp_variable(l, 0, INFINITY, 0), whole = lp_row(l, 0, 0);

			lp_term(l, root, straight, 1);
			lp_term(l, whole, straight, 1);
			lp_term(l, whole, part, -1);
			for (uint32_t v = 0; v < p->nodes; v++) {
				uint32_t summed = lp_variable(l, 0, INFINITY, 0);
				uint32_t row = lp_row(l, -INFINITY, 0);

				lp_term(l, whole, summed, 1);
				lp_term(l, node[v], summed, 1);
				lp_term(l, row, summed, 1);
				lp_term(l, row, on[v], -1);
			}
		}
	}
	assert_int_equal(lp_minimise(l, 0, &outcome), 0);
	assert_int_equal(outcome, LP_OPTIMAL);
	return -lp_cost(l);
}

struct world {
	struct split_problem p;
	double root[ROOTS_MAX], node[NODES_MAX], share[ROOTS_MAX];
};

static void random_world(uint64_t *random, struct world *w)
{
	double all = 0;

	w->p = (struct split_problem){ 1 + random_below(random, 6),
				       1 + random_below(random, ROOTS_MAX),
				       random_below(random, NODES_MAX + 1), w->root, w->node };
	for (unsigned int s = 0; s < w->p.roots; s++) {
		w->root[s] = s && chance(random, 100) ? 0 : 1 + random_below(random, 20);
		w->share[s] = s && chance(random, 200) ? 0 : 1 + random_below(random, 9);
		all += w->share[s];
	}
	for (unsigned int s = 0; s < w->p.roots; s++)
		w->share[s] /= all;
	for (unsigned int v = 0; v < w->p.nodes; v++)
		w->node[v] = chance(random, 100) ? 0 : 1 + random_below(random, 40);
}

static double worst_by_prices = 1;

static const char *formulas_are_the_program(uint64_t seed)
{
	double bound, rate, share[ROOTS_MAX];
	struct world w;

	random_world(&seed, &w);
	assert_int_equal(split_bound(&w.p, &bound), 0);
	if (!is_close(bound, by_program(&w.p, NULL)))
		return "the bound is not the program's optimum";
	assert_int_equal(split_rate(&w.p, w.share, &rate), 0);
	if (!is_close(rate, by_program(&w.p, w.share)))
		return "the rate of a split is not the program's";
	if (rate > bound && !is_close(rate, bound))
		return "a split is better than all splits";
	assert_int_equal(split_by_room(&w.p, share), 0);
	assert_int_equal(split_rate(&w.p, share, &rate), 0);
	if (!is_close(rate, bound))
		return "the split by room has not the highest rate";
	assert_int_equal(split_by_prices(&w.p, ROUNDS, share), 0);
	assert_int_equal(split_rate(&w.p, share, &rate), 0);
	worst_by_prices = fmin(worst_by_prices, rate / bound);
	return rate < 0.95 * bound ? "the split by prices is far from the highest rate" : NULL;
}

static void random_problems_have_the_programs_rates(void **state)
{
	run_seeds(PROBLEMS, formulas_are_the_program);
	print_message("%d rounds of prices: at worst %.1f %% of the highest rate\n", ROUNDS,
		      100 * worst_by_prices);
}

/* --- known answers --------------------------------------------------------------------------- */

static void bound_is(unsigned int workers, const double *root, const double *node, double want)
{
	struct split_problem p = { workers, 2, 2, root, node };
	double rate;

	assert_int_equal(split_bound(&p, &rate), 0);
	is_near(rate, want);
}

/* InArt's example (figure 1), roots that differ, and larger ones. */
static void examples_have_their_bounds(void **state)
{
	bound_is(6, (double[]){ 4, 4 }, (double[]){ 6, 6 }, 3);
	bound_is(6, (double[]){ 6, 2 }, (double[]){ 6, 6 }, 3);
	bound_is(8, (double[]){ 10, 10 }, (double[]){ 10, 20 }, 5.78125);
	bound_is(48, (double[]){ 20, 20 }, (double[]){ 9, 9 }, 1.2005208);
	bound_is(1, (double[]){ 3, 4 }, (double[]){ 9, 9 }, 7);
}

/* Of 6 and 2: equal parts reach what the smaller root bears, and more splits than one are best. */
static void many_splits_are_best_and_some_are_not(void **state)
{
	static const double root[] = { 6, 2 }, node[] = { 6, 6 };
	struct split_problem p = { 6, 2, 2, root, node };
	double rate;

	for (int i = 0; i <= 20; i++) {
		double first = i / 20.0;

		assert_int_equal(split_rate(&p, (double[]){ first, 1 - first }, &rate), 0);
		assert_true(rate <= 3 + 1e-9);
		/* Summed at 0 to 2 of root 0: 1 to 2.667 of 3 go there; of root 1 the others. */
		assert_true((rate > 3 - 1e-9) == (first >= 1 / 3.0 && first <= 8 / 9.0));
	}
}

static void prices_come_nearer_in_more_rounds(void **state)
{
	static const double root[] = { 1, 8, 7 }, node[] = { 27, 40, 0 };
	struct split_problem p = { 4, 3, 3, root, node };
	double bound, few, many, share[3];

	assert_int_equal(split_bound(&p, &bound), 0);
	assert_int_equal(split_by_prices(&p, 10, share), 0);
	assert_int_equal(split_rate(&p, share, &few), 0);
	assert_int_equal(split_by_prices(&p, 100000, share), 0);
	assert_int_equal(split_rate(&p, share, &many), 0);
	is_near(share[0] + share[1] + share[2], 1);
	print_message("rates by prices: 10 rounds %.4f, 100,000 rounds %.4f of %.4f\n", few, many,
		      bound);
	assert_true(many > few && many > 0.999 * bound);
}

static void roots_that_are_alike_have_equal_shares(void **state)
{
	static const double root[] = { 4, 4 }, node[] = { 6, 6 };
	struct split_problem p = { 6, 2, 2, root, node };
	double share[2];

	assert_int_equal(split_by_prices(&p, 100, share), 0);
	assert_true(share[0] == share[1]);
	assert_int_equal(split_by_room(&p, share), 0);
	assert_true(share[0] == 0.5 && share[1] == 0.5);
}

/* --- trying ---------------------------------------------------------------------------------- */

/* How near a split is to one that is wanted. */
struct wish {
	double share[3];
	unsigned int asked, fails_at;
};

static int nearness(void *context, const double *share, double *ret)
{
	struct wish *w = context;

	if (++w->asked == w->fails_at)
		return -EPROTO;
	*ret = 3;
	for (int s = 0; s < 3; s++)
		*ret -= fabs(share[s] - w->share[s]);
	return 0;
}

static int no_difference(void *context, const double *share, double *ret)
{
	*ret = 1;
	return 0;
}

static const double THREE[] = { 1, 2, 5 };

/* Of each split of 7 parts: all of them are tried, once. */
static void all_splits_of_a_grid_are_tried(void **state)
{
	static const struct split_problem p = { 4, 3, 0, THREE, NULL };
	double share[3], rate;

	for (int a = 0; a <= 7; a++)
		for (int b = 0; a + b <= 7; b++) {
			struct wish w = { { a / 7.0, b / 7.0, (7 - a - b) / 7.0 }, 0, 0 };

			assert_int_equal(split_search(&p, 7, nearness, &w, share, &rate), 0);
			assert_int_equal(w.asked, 36 + 1);
			is_near(rate, 3);
			for (int s = 0; s < 3; s++)
				is_near(share[s], w.share[s]);
		}
}

static void of_equals_the_split_by_room_is_taken(void **state)
{
	static const struct split_problem p = { 4, 3, 0, THREE, NULL };
	double share[3], rate;

	assert_int_equal(split_search(&p, 7, no_difference, NULL, share, &rate), 0);
	assert_true(share[0] == 1 / 8.0 && share[1] == 2 / 8.0 && share[2] == 5 / 8.0);
}

static void what_goes_wrong_in_a_trial_ends_the_search(void **state)
{
	static const struct split_problem p = { 4, 3, 0, THREE, NULL };
	double share[3] = { 7, 7, 7 }, rate = 7;

	for (unsigned int at = 1; at <= 37; at++) {
		struct wish w = { .fails_at = at };

		assert_int_equal(split_search(&p, 7, nearness, &w, share, &rate), -EPROTO);
		assert_int_equal(w.asked, at);
	}
	assert_int_equal(split_search(&p, 3000, no_difference, NULL, share, &rate), -E2BIG);
	assert_true(share[0] == 7 && share[2] == 7 && rate == 7);
}

/* --- what goes wrong ------------------------------------------------------------------------- */

static void is_refused(const struct split_problem *p, const double *share)
{
	double rate = 7;

	assert_int_equal(split_rate(p, share, &rate), -EINVAL);
	assert_true(rate == 7);
}

static void problem_is_refused(const struct split_problem *p)
{
	double rate = 7, split[ROOTS_MAX] = { 7, 7, 7, 7 };

	is_refused(p, (double[]){ 0.5, 0.5 });
	assert_int_equal(split_bound(p, &rate), -EINVAL);
	assert_int_equal(split_by_room(p, split), -EINVAL);
	assert_int_equal(split_by_prices(p, 9, split), -EINVAL);
	assert_int_equal(split_search(p, 9, no_difference, NULL, split, &rate), -EINVAL);
	assert_true(rate == 7 && split[0] == 7 && split[1] == 7);
}

static void problems_that_cannot_be_are_refused(void **state)
{
	double root[2] = { 4, 4 }, node[2] = { 6, 6 }, rate = 7, split[2] = { 7, 7 };
	struct split_problem p = { 6, 2, 2, root, node };

#define REFUSED(field, value)                  \
	do {                                   \
		__typeof__(field) was = field; \
		field = (value);               \
		problem_is_refused(&p);        \
		field = was;                   \
	} while (0)
	REFUSED(p.workers, 0);
	REFUSED(p.roots, 0);
	REFUSED(p.roots, SPLIT_ROOTS_MAX + 1);
	REFUSED(root[1], -1);
	REFUSED(root[1], NAN);
	REFUSED(root[0], INFINITY);
	REFUSED(node[1], -1);
	REFUSED(node[0], INFINITY);
	root[0] = 0;
	REFUSED(root[1], 0);
	root[0] = 4;
	is_refused(&p, (double[]){ 0.5, 0.4 });
	is_refused(&p, (double[]){ 1.5, -0.5 });
	is_refused(&p, (double[]){ NAN, 0.5 });
	assert_int_equal(split_by_prices(&p, 0, split), -EINVAL);
	assert_int_equal(split_search(&p, 0, no_difference, NULL, split, &rate), -EINVAL);
	assert_true(rate == 7 && split[0] == 7);
}

static int by_prices(void *context)
{
	double split[2] = { 7, 7 };
	int r = split_by_prices(context, 3, split);

	assert_true(r == 0 || (split[0] == 7 && split[1] == 7));
	return r;
}

static int by_search(void *context)
{
	double split[2] = { 7, 7 }, rate = 7;
	int r = split_search(context, 3, no_difference, NULL, split, &rate);

	assert_true(r == 0 || (split[0] == 7 && split[1] == 7 && rate == 7));
	return r;
}

static void too_little_memory_is_an_error(void **state)
{
	static const double root[] = { 6, 2 }, node[] = { 6, 6 };
	struct split_problem p = { 6, 2, 2, root, node };

	run_out_of_memory(by_prices, &p);
	run_out_of_memory(by_search, &p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_problems_have_the_programs_rates),
		cmocka_unit_test(examples_have_their_bounds),
		cmocka_unit_test(many_splits_are_best_and_some_are_not),
		cmocka_unit_test(prices_come_nearer_in_more_rounds),
		cmocka_unit_test(roots_that_are_alike_have_equal_shares),
		cmocka_unit_test(all_splits_of_a_grid_are_tried),
		cmocka_unit_test(of_equals_the_split_by_room_is_taken),
		cmocka_unit_test(what_goes_wrong_in_a_trial_ends_the_search),
		cmocka_unit_test(problems_that_cannot_be_are_refused),
		cmocka_unit_test(too_little_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
