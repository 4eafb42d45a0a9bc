// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program is kept in plain arrays. GLPK gets all of it when it is to be solved, and keeps nothing
 * afterwards. GLPK ends the process when it runs out of memory or finds a mistake of its caller: it
 * is given no mistakes, and its way out leads back here.
 */
#include "lp.h"

#include <errno.h>
#include <glpk.h>
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/owned.h"

struct bounds {
	double low, high;
};

struct variable {
	struct bounds bounds;
	double cost, value;
	bool whole;
};

struct term {
	uint32_t row, variable;
	double factor;
};

struct lp {
	int error; /* the first one, negative errno */
	uint32_t variables, rows, terms;
	uint32_t variables_room, rows_room, terms_room;
	struct variable *variable;
	struct bounds *row;
	struct term *term;
	bool has_whole, is_solved;
	bool is_empty; /* a whole number has bounds that no whole number is between */
	double cost;
};

/* --- building -------------------------------------------------------------------------------- */

int lp_open(struct lp **ret)
{
	struct lp *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	*ret = l;
	return 0;
}

void lp_close(struct lp *l)
{
	if (!l)
		return;
	free(l->variable);
	free(l->row);
	free(l->term);
	free(l);
}

void lp_closep(struct lp **l) { lp_close(*l); }

/* True: `array` has room for one more. False: there is an error. */
static bool has_room(struct lp *l, void *array, uint32_t count, uint32_t *room, size_t size)
{
	uint32_t more = *room ? 2 * *room : 64;
	void *grown;

	l->is_solved = false;
	if (l->error < 0)
		return false;
	if (count < *room)
		return true;
	if (count >= LP_COUNT_MAX) {
		l->error = -E2BIG;
		return false;
	}
	grown = reallocarray(*(void **)array, more, size);
	if (!grown) {
		l->error = -ENOMEM;
		return false;
	}
	*(void **)array = grown;
	*room = more;
	return true;
}

static bool is_range(double low, double high)
{
	return low <= high && low < INFINITY && high > -INFINITY;
}

static uint32_t add_variable(struct lp *l, const struct variable *v)
{
	if (!is_range(v->bounds.low, v->bounds.high) || !isfinite(v->cost))
		l->error = l->error ? l->error : -EINVAL;
	if (!has_room(l, &l->variable, l->variables, &l->variables_room, sizeof(*l->variable)))
		return 0;
	l->variable[l->variables] = *v;
	l->has_whole = l->has_whole || v->whole;
	return l->variables++;
}

uint32_t lp_variable(struct lp *l, double low, double high, double cost)
{
	return add_variable(l, &(struct variable){ .bounds = { low, high }, .cost = cost });
}

uint32_t lp_whole(struct lp *l, double low, double high, double cost)
{
	struct variable v = { .bounds = { low, high }, .cost = cost, .whole = true };

	if (ceil(low) <= floor(high))
		v.bounds = (struct bounds){ ceil(low), floor(high) };
	else
		l->is_empty = true;
	return add_variable(l, &v);
}

uint32_t lp_row(struct lp *l, double low, double high)
{
	if (!is_range(low, high))
		l->error = l->error ? l->error : -EINVAL;
	if (!has_room(l, &l->row, l->rows, &l->rows_room, sizeof(*l->row)))
		return 0;
	l->row[l->rows] = (struct bounds){ low, high };
	return l->rows++;
}

void lp_term(struct lp *l, uint32_t row, uint32_t variable, double factor)
{
	if (row >= l->rows || variable >= l->variables || !isfinite(factor))
		l->error = l->error ? l->error : -EINVAL;
	if (!has_room(l, &l->term, l->terms, &l->terms_room, sizeof(*l->term)))
		return;
	l->term[l->terms++] = (struct term){ row, variable, factor };
}

/* --- what GLPK gets -------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct term *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return (x->variable > y->variable) - (x->variable < y->variable);
}

/* Of each row and variable one term: GLPK takes no two. */
static void merge_terms(struct lp *l)
{
	uint32_t kept = 0;

	if (l->terms)
		qsort(l->term, l->terms, sizeof(*l->term), by_place);
	for (uint32_t i = 0; i < l->terms; i++) {
		if (kept && by_place(&l->term[kept - 1], &l->term[i]) == 0)
			l->term[kept - 1].factor += l->term[i].factor;
		else
			l->term[kept++] = l->term[i];
	}
	l->terms = kept;
}

static int kind_of(const struct bounds *b)
{
	if (b->low == b->high)
		return GLP_FX;
	if (isinf(b->low))
		return isinf(b->high) ? GLP_FR : GLP_UP;
	return isinf(b->high) ? GLP_LO : GLP_DB;
}

static void set_variables(const struct lp *l, glp_prob *p)
{
	if (l->variables)
		glp_add_cols(p, (int)l->variables);
	for (uint32_t i = 0; i < l->variables; i++) {
		const struct variable *v = &l->variable[i];

		glp_set_col_bnds(p, (int)i + 1, kind_of(&v->bounds), v->bounds.low, v->bounds.high);
		glp_set_obj_coef(p, (int)i + 1, v->cost);
		glp_set_col_kind(p, (int)i + 1, v->whole ? GLP_IV : GLP_CV);
	}
}

/* The terms of one row after another. Both arrays have room for a row, behind a place unused. */
static void set_rows(const struct lp *l, glp_prob *p, int *place, double *factor)
{
	uint32_t next = 0;

	if (l->rows)
		glp_add_rows(p, (int)l->rows);
	for (uint32_t i = 0; i < l->rows; i++) {
		int length = 0;

		glp_set_row_bnds(p, (int)i + 1, kind_of(&l->row[i]), l->row[i].low, l->row[i].high);
		for (; next < l->terms && l->term[next].row == i; next++) {
			place[++length] = (int)l->term[next].variable + 1;
			factor[length] = l->term[next].factor;
		}
		glp_set_mat_row(p, (int)i + 1, length, place, factor);
	}
}

/* --- solving --------------------------------------------------------------------------------- */

static int be_silent(void *unused, const char *text) { return 1; }

static void get_out(void *place)
{
	jmp_buf *out = place;

	longjmp(*out, 1);
}

static void count_node(glp_tree *tree, void *left)
{
	unsigned int *nodes = left;

	if (glp_ios_reason(tree) != GLP_ISELECT || *nodes == 0)
		return;
	*nodes -= 1;
	if (*nodes == 0)
		glp_ios_terminate(tree);
}

static int outcome_of(int status, int failure, enum lp_outcome *ret)
{
	if (failure == GLP_EITLIM || failure == GLP_ESTOP)
		*ret = LP_UNFINISHED;
	else if (failure)
		return -EIO;
	else if (status == GLP_OPT)
		*ret = LP_OPTIMAL;
	else if (status == GLP_NOFEAS)
		*ret = LP_INFEASIBLE;
	else if (status == GLP_UNBND)
		*ret = LP_UNBOUNDED;
	else
		return -EIO;
	return 0;
}

static int solve_real(glp_prob *p, unsigned int steps_max, enum lp_outcome *ret)
{
	glp_smcp options;
	int failure;

	glp_init_smcp(&options);
	if (steps_max && steps_max < INT32_MAX)
		options.it_lim = (int)steps_max;
	glp_adv_basis(p, 0);
	failure = glp_simplex(p, &options);
	return outcome_of(glp_get_status(p), failure, ret);
}

/* What is best without whole numbers is solved already. */
static int solve_whole(glp_prob *p, unsigned int steps_max, enum lp_outcome *ret)
{
	glp_iocp options;
	int failure;

	glp_init_iocp(&options);
	options.cb_func = count_node;
	options.cb_info = &steps_max;
	failure = glp_intopt(p, &options);
	return outcome_of(glp_mip_status(p), failure, ret);
}

static void take_values(struct lp *l, glp_prob *p)
{
	l->cost = 0;
	for (uint32_t i = 0; i < l->variables; i++) {
		struct variable *v = &l->variable[i];

		if (v->whole)
			v->value = round(glp_mip_col_val(p, (int)i + 1));
		else
			v->value = l->has_whole ? glp_mip_col_val(p, (int)i + 1)
						: glp_get_col_prim(p, (int)i + 1);
		l->cost += v->cost * v->value;
	}
	l->is_solved = true;
}

static int solve(struct lp *l, glp_prob *p, unsigned int steps_max, enum lp_outcome *ret)
{
	int r = solve_real(p, steps_max, ret);

	if (r == 0 && *ret == LP_OPTIMAL && l->has_whole)
		r = solve_whole(p, steps_max, ret);
	if (r == 0 && *ret == LP_OPTIMAL)
		take_values(l, p);
	return r;
}

static int minimise(struct lp *l, unsigned int steps_max, int *place, double *factor,
		    enum lp_outcome *ret)
{
	glp_prob *p;
	jmp_buf out;
	int r;

	glp_term_hook(be_silent, NULL);
	if (setjmp(out)) {
		glp_free_env(); /* with all that was allocated */
		return -ENOMEM;
	}
	glp_error_hook(get_out, &out);
	p = glp_create_prob();
	set_variables(l, p);
	set_rows(l, p, place, factor);
	r = solve(l, p, steps_max, ret);
	glp_delete_prob(p);
	glp_free_env();
	return r;
}

int lp_minimise(struct lp *l, unsigned int steps_max, enum lp_outcome *ret)
{
	_cleanup_(freep) double *factor = NULL;
	_cleanup_(freep) int *place = NULL;
	enum lp_outcome outcome = LP_INFEASIBLE;
	int r = 0;

	if (l->error < 0)
		return l->error;
	l->is_solved = false;
	place = calloc(l->variables + 1, sizeof(*place));
	factor = calloc(l->variables + 1, sizeof(*factor));
	if (!place || !factor)
		return -ENOMEM;
	merge_terms(l);
	if (!l->is_empty)
		r = minimise(l, steps_max, place, factor, &outcome);
	if (r == 0)
		*ret = outcome;
	return r;
}

double lp_value(const struct lp *l, uint32_t variable)
{
	return l->is_solved && variable < l->variables ? l->variable[variable].value : 0;
}

double lp_cost(const struct lp *l) { return l->is_solved ? l->cost : 0; }
