// SPDX-License-Identifier: GPL-2.0-only
/* Linear programs with known answers; TALLY_SEED=n runs one random program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glpk.h>
#include <math.h>
#include <stdlib.h>

#include "agent/policy/lp.h"
#include "common/owned.h"
#include "random.h"

enum {
	PROGRAMS = 300,
	UP_TO = 4, /* each variable of a random program is 0 to so much */
	VARIABLES = 3,
	ROWS = 4,
	PLANES = ROWS + 2 * VARIABLES,
};

static struct lp *open_lp(void)
{
	struct lp *l;

	assert_int_equal(lp_open(&l), 0);
	return l;
}

static enum lp_outcome minimised(struct lp *l)
{
	enum lp_outcome outcome;

	assert_int_equal(lp_minimise(l, 0, &outcome), 0);
	return outcome;
}

static void is_near(double a, double b) { assert_true(fabs(a - b) < 1e-7); }

/* A row of two variables. */
static void row(struct lp *l, double low, double high, uint32_t a, double by_a, uint32_t b,
		double by_b)
{
	uint32_t at = lp_row(l, low, high);

	lp_term(l, at, a, by_a);
	lp_term(l, at, b, by_b);
}

/* --- known answers --------------------------------------------------------------------------- */

/* The most of 3x + 5y with x <= 4, 2y <= 12, 3x + 2y <= 18: Hillier and Lieberman's first. */
static void a_small_program_has_its_optimum(void **state)
{
	_cleanup_(lp_closep) struct lp *l = open_lp();
	uint32_t x = lp_variable(l, 0, 4, -3), y = lp_variable(l, 0, INFINITY, -5);

	row(l, -INFINITY, 12, x, 0, y, 2);
	row(l, -INFINITY, 18, x, 3, y, 2);
	assert_int_equal(minimised(l), LP_OPTIMAL);
	is_near(lp_value(l, x), 2);
	is_near(lp_value(l, y), 6);
	is_near(lp_cost(l), -36);
}

/* E. M. L. Beale's program, on which a simplex method without care goes round for ever. */
static void a_degenerate_program_ends(void **state)
{
	_cleanup_(lp_closep) struct lp *l = open_lp();
	static const double cost[] = { -0.75, 150, -0.02, 6 };
	static const double factor[2][4] = { { 0.25, -60, -0.04, 9 }, { 0.5, -90, -0.02, 3 } };
	uint32_t at;

	for (int i = 0; i < 4; i++)
		lp_variable(l, 0, i == 2 ? 1 : INFINITY, cost[i]);
	for (int k = 0; k < 2; k++) {
		at = lp_row(l, -INFINITY, 0);
		for (uint32_t i = 0; i < 4; i++)
			lp_term(l, at, i, factor[k][i]);
	}
	assert_int_equal(minimised(l), LP_OPTIMAL);
	is_near(lp_cost(l), -0.05);
}

static void free_variables_and_equal_bounds_hold(void **state)
{
	_cleanup_(lp_closep) struct lp *l = open_lp();
	uint32_t x = lp_variable(l, -INFINITY, INFINITY, 1), y = lp_variable(l, 3, 3, 0);

	row(l, -4, -4, x, 1, y, -1);
	assert_int_equal(minimised(l), LP_OPTIMAL);
	is_near(lp_value(l, x), -1);
	is_near(lp_value(l, y), 3);
}

static void terms_of_one_place_are_added_up(void **state)
{
	_cleanup_(lp_closep) struct lp *l = open_lp();
	uint32_t x = lp_variable(l, 0, 100, -1), y = lp_variable(l, 0, 0, 0);

	row(l, -INFINITY, 12, x, 1, y, 5);
	lp_term(l, 0, x, 2);
	assert_int_equal(minimised(l), LP_OPTIMAL);
	is_near(lp_value(l, x), 4);
	lp_term(l, 0, x, 1);
	assert_true(lp_value(l, x) == 0 && lp_cost(l) == 0);
	assert_int_equal(minimised(l), LP_OPTIMAL);
	is_near(lp_value(l, x), 3);
}

static void what_cannot_be_is_said(void **state)
{
	_cleanup_(lp_closep) struct lp *l = open_lp();
	uint32_t x = lp_variable(l, 0, 1, 1), y = lp_variable(l, 0, 1, 1);

	row(l, 3, INFINITY, x, 1, y, 1);
	assert_int_equal(minimised(l), LP_INFEASIBLE);
	assert_true(lp_value(l, x) == 0 && lp_cost(l) == 0);
}

static void what_has_no_end_is_said(void **state)
{
	_cleanup_(lp_closep) struct lp *l = open_lp();
	uint32_t x = lp_whole(l, 0, INFINITY, -1), y = lp_variable(l, 0, INFINITY, 0);

	row(l, -INFINITY, 1, x, 1, y, -1);
	assert_int_equal(minimised(l), LP_UNBOUNDED);
}

static void a_program_of_nothing_costs_nothing(void **state)
{
	_cleanup_(lp_closep) struct lp *l = open_lp(), *row_only = open_lp(), *whole = open_lp();

	assert_int_equal(minimised(l), LP_OPTIMAL);
	lp_row(row_only, 1, 2);
	assert_int_equal(minimised(row_only), LP_INFEASIBLE);
	lp_whole(whole, -2.5, 7.5, 2);
	assert_int_equal(minimised(whole), LP_OPTIMAL);
	assert_true(lp_cost(whole) == -4);
}

/* --- whole numbers --------------------------------------------------------------------------- */

/* A knapsack of 50: without whole numbers it would be worth 240. */
static void a_knapsack_holds_whole_things(void **state)
{
	_cleanup_(lp_closep) struct lp *l = open_lp();
	static const double worth[] = { 60, 100, 120 }, weight[] = { 10, 20, 30 };
	uint32_t sack = lp_row(l, -INFINITY, 50);

	for (uint32_t i = 0; i < 3; i++)
		lp_term(l, sack, lp_whole(l, 0, 1, -worth[i]), weight[i]);
	assert_int_equal(minimised(l), LP_OPTIMAL);
	assert_true(lp_cost(l) == -220);
	assert_true(lp_value(l, 0) == 0 && lp_value(l, 1) == 1 && lp_value(l, 2) == 1);
}

static void no_whole_number_between_is_infeasible(void **state)
{
	_cleanup_(lp_closep) struct lp *bounds = open_lp(), *rows = open_lp();
	uint32_t x, y;

	lp_whole(bounds, 0.4, 0.6, 1);
	assert_int_equal(minimised(bounds), LP_INFEASIBLE);
	x = lp_whole(rows, 0, 5, 1);
	y = lp_variable(rows, 0, 0, 0);
	row(rows, 1.2, 1.8, x, 1, y, 1);
	assert_int_equal(minimised(rows), LP_INFEASIBLE);
}

/* Forty numbers that come to a half more than a whole: branch and bound would walk for long. */
static void steps_have_an_end(void **state)
{
	_cleanup_(lp_closep) struct lp *l = open_lp();
	enum lp_outcome outcome;
	uint32_t at = lp_row(l, 21, 21);

	for (int i = 0; i < 40; i++)
		lp_term(l, at, lp_whole(l, 0, 1, 1), 2);
	assert_int_equal(lp_minimise(l, 50, &outcome), 0);
	assert_int_equal(outcome, LP_UNFINISHED);
	assert_true(lp_value(l, 0) == 0);
}

/* --- random programs ------------------------------------------------------------------------- */

struct program {
	double cost[VARIABLES];
	double factor[ROWS][VARIABLES], high[ROWS];
};

static void random_program(uint64_t *random, struct program *p)
{
	for (int v = 0; v < VARIABLES; v++)
		p->cost[v] = (int)random_below(random, 11) - 5;
	for (int r = 0; r < ROWS; r++) {
		p->high[r] = (int)random_below(random, 16) - 4;
		for (int v = 0; v < VARIABLES; v++)
			p->factor[r][v] = (int)random_below(random, 9) - 4;
	}
}

static struct lp *lp_of(const struct program *p, bool whole)
{
	struct lp *l = open_lp();

	for (int v = 0; v < VARIABLES; v++)
		(whole ? lp_whole : lp_variable)(l, 0, UP_TO, p->cost[v]);
	for (uint32_t r = 0; r < ROWS; r++) {
		lp_row(l, -INFINITY, p->high[r]);
		for (uint32_t v = 0; v < VARIABLES; v++)
			lp_term(l, r, v, p->factor[r][v]);
	}
	return l;
}

static double dot(const double *a, const double *b)
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static bool is_feasible(const struct program *p, const double *x)
{
	for (int v = 0; v < VARIABLES; v++)
		if (x[v] < -1e-7 || x[v] > UP_TO + 1e-7)
			return false;
	for (int r = 0; r < ROWS; r++)
		if (dot(p->factor[r], x) > p->high[r] + 1e-7)
			return false;
	return true;
}

/* The cheapest of all whole points; INFINITY: there is none. */
static double best_whole(const struct program *p)
{
	double best = INFINITY, x[VARIABLES];

	for (x[0] = 0; x[0] <= UP_TO; x[0]++)
		for (x[1] = 0; x[1] <= UP_TO; x[1]++)
			for (x[2] = 0; x[2] <= UP_TO; x[2]++)
				if (is_feasible(p, x))
					best = fmin(best, dot(p->cost, x));
	return best;
}

/* Rows and bounds as planes: factor * x = high. */
static void plane(const struct program *p, int i, double *factor, double *high)
{
	for (int v = 0; v < VARIABLES; v++)
		factor[v] = i < ROWS ? p->factor[i][v] : (i - ROWS) / 2 == v;
	*high = i < ROWS ? p->high[i] : (i - ROWS) % 2 * UP_TO;
}

static double det(const double *a, const double *b, const double *c)
{
	return a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0]) +
	       a[2] * (b[0] * c[1] - b[1] * c[0]);
}

/* Where three planes meet, by Cramer's rule. False: nowhere, or in more than a point. */
static bool corner(const struct program *p, const int *of, double *x)
{
	double m[3][VARIABLES], high[3], all;

	for (int i = 0; i < 3; i++)
		plane(p, of[i], m[i], &high[i]);
	all = det(m[0], m[1], m[2]);
	if (all == 0)
		return false;
	for (int v = 0; v < VARIABLES; v++) {
		double c[3][VARIABLES];

		for (int i = 0; i < 3; i++)
			for (int k = 0; k < VARIABLES; k++)
				c[i][k] = k == v ? high[i] : m[i][k];
		x[v] = det(c[0], c[1], c[2]) / all;
	}
	return true;
}

/* The cheapest corner: all is bounded, so there is the optimum. */
static double best_corner(const struct program *p)
{
	double best = INFINITY, x[VARIABLES];
	int of[3];

	for (of[0] = 0; of[0] < PLANES; of[0]++)
		for (of[1] = 0; of[1] < of[0]; of[1]++)
			for (of[2] = 0; of[2] < of[1]; of[2]++)
				if (corner(p, of, x) && is_feasible(p, x))
					best = fmin(best, dot(p->cost, x));
	return best;
}

static const char *is_answered(const struct program *p, bool whole, double best)
{
	_cleanup_(lp_closep) struct lp *l = lp_of(p, whole);
	enum lp_outcome outcome = minimised(l);
	double x[VARIABLES];

	if (isinf(best))
		return outcome == LP_INFEASIBLE ? NULL : "there is no answer, and one was found";
	if (outcome != LP_OPTIMAL)
		return "there is an answer, and none was found";
	for (uint32_t v = 0; v < VARIABLES; v++)
		x[v] = lp_value(l, v);
	if (!is_feasible(p, x))
		return "the answer breaks a row or a bound";
	if (fabs(lp_cost(l) - best) > 1e-6 || fabs(dot(p->cost, x) - best) > 1e-6)
		return "the answer is not the best one";
	return NULL;
}

static const char *programs_are_answered(uint64_t seed)
{
	struct program p;
	const char *wrong;

	random_program(&seed, &p);
	wrong = is_answered(&p, true, best_whole(&p));
	return wrong ? wrong : is_answered(&p, false, best_corner(&p));
}

static void random_programs_have_the_best_corner_or_point(void **state)
{
	run_seeds(PROGRAMS, programs_are_answered);
}

/* --- what goes wrong ------------------------------------------------------------------------- */

static void mistakes_are_remembered(void **state)
{
	enum lp_outcome outcome = LP_UNBOUNDED;

#define REFUSED(mistake)                                                \
	do {                                                            \
		_cleanup_(lp_closep) struct lp *l = open_lp();          \
		lp_variable(l, 0, 1, 1);                                \
		lp_row(l, 0, 1);                                        \
		mistake;                                                \
		lp_variable(l, 0, 1, 1);                                \
		assert_int_equal(lp_minimise(l, 0, &outcome), -EINVAL); \
		assert_int_equal(outcome, LP_UNBOUNDED);                \
	} while (0)
	REFUSED(lp_variable(l, 1, 0, 1));
	REFUSED(lp_variable(l, 0, NAN, 1));
	REFUSED(lp_variable(l, INFINITY, INFINITY, 1));
	REFUSED(lp_whole(l, 0, 1, INFINITY));
	REFUSED(lp_row(l, NAN, 1));
	REFUSED(lp_row(l, -INFINITY, -INFINITY));
	REFUSED(lp_term(l, 1, 0, 1));
	REFUSED(lp_term(l, 0, 1, 1));
	REFUSED(lp_term(l, 0, 0, NAN));
}

/* Where GLPK has too little memory, it would end the process. */
static void too_little_memory_is_an_error(void **state)
{
	_cleanup_(lp_closep) struct lp *l = open_lp();
	enum lp_outcome outcome;
	uint32_t at = lp_row(l, 1, 1);

	for (int i = 0; i < 20000; i++)
		lp_term(l, at, lp_variable(l, 0, 1, 1), 1);
	glp_mem_limit(1);
	assert_int_equal(lp_minimise(l, 0, &outcome), -ENOMEM);
	assert_int_equal(minimised(l), LP_OPTIMAL);
	is_near(lp_cost(l), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_program_has_its_optimum),
		cmocka_unit_test(a_degenerate_program_ends),
		cmocka_unit_test(free_variables_and_equal_bounds_hold),
		cmocka_unit_test(terms_of_one_place_are_added_up),
		cmocka_unit_test(what_cannot_be_is_said),
		cmocka_unit_test(what_has_no_end_is_said),
		cmocka_unit_test(a_program_of_nothing_costs_nothing),
		cmocka_unit_test(a_knapsack_holds_whole_things),
		cmocka_unit_test(no_whole_number_between_is_infeasible),
		cmocka_unit_test(steps_have_an_end),
		cmocka_unit_test(random_programs_have_the_best_corner_or_point),
		cmocka_unit_test(mistakes_are_remembered),
		cmocka_unit_test(too_little_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
