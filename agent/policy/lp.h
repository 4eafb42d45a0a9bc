/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Linear programs, also with whole numbers: build one, minimise its cost, read the values. By GLPK;
 * nothing of GLPK is seen from outside. Pure.
 *
 *	minimise  sum of cost * variable
 *	so that   low <= sum of factor * variable <= high	for each row
 *	          low <= variable <= high			for each variable
 *
 * Who wants the most of something gives it a negative cost. A bound may be -INFINITY or INFINITY;
 * where low is high there is one value. What goes wrong while a program is built is remembered:
 * lp_minimise() returns it, and nothing needs to be checked before.
 */
#ifndef TALLY_POLICY_LP_H
#define TALLY_POLICY_LP_H

#include <stdint.h>

enum {
	LP_COUNT_MAX = 1 << 24, /* variables, rows, and terms: of each */
};

struct lp;

/* *ret is the caller's to lp_close(). -ENOMEM. */
int lp_open(struct lp **ret);
void lp_close(struct lp *l); /* or NULL */
void lp_closep(struct lp **l);

/* Variables and rows have numbers from 0 on, each of their own. */
uint32_t lp_variable(struct lp *l, double low, double high, double cost);
uint32_t lp_whole(struct lp *l, double low, double high, double cost); /* a whole number */
uint32_t lp_row(struct lp *l, double low, double high);

/* Puts factor * variable into the row, beside what the row has of that variable already. */
void lp_term(struct lp *l, uint32_t row, uint32_t variable, double factor);

enum lp_outcome {
	LP_OPTIMAL,
	LP_INFEASIBLE, /* nothing meets all rows and bounds */
	LP_UNBOUNDED, /* the cost falls for ever, at least where numbers need not be whole */
	LP_UNFINISHED, /* steps_max was not enough */
};

/*
 * steps_max: of the simplex method, and as many nodes of branch and bound; 0: no limit. Steps and
 * not seconds, so that the answer is the same on all machines. The same program gives the same
 * values. May be called again, also after more has been added. Returns 0, or what went wrong:
 * -EINVAL (a number that is none, low above high, a row or variable that is not there), -E2BIG,
 * -ENOMEM, -EIO: the solver failed.
 */
int lp_minimise(struct lp *l, unsigned int steps_max, enum lp_outcome *ret);

/* After LP_OPTIMAL, until something is added; otherwise 0. Whole numbers are exactly whole. */
double lp_value(const struct lp *l, uint32_t variable);
double lp_cost(const struct lp *l);

#endif
