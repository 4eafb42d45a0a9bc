// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The best mixture of options, by a linear program. */
#include "choices.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/owned.h"
#include "lp.h"

/* The program has a variable for each option, with its number, and then one for 1 / rate. */
struct mixture {
	const struct choices *c;
	struct lp *lp;
	uint32_t *first; /* option of each choice */
};

static void mixture_close(struct mixture *m) { free(m->first); }

/* Each choice is made once, or not more often than that. */
static void add_choices(struct mixture *m, bool whole)
{
	for (uint32_t i = 0; i < m->c->count; i++) {
		const struct choice *choice = &m->c->choice[i];
		uint32_t row = lp_row(m->lp, choice->always ? 1 : 0, 1);

		for (unsigned int k = 0; k < choice->options; k++) {
			uint32_t share = (whole ? lp_whole : lp_variable)(m->lp, 0, 1, 0);

			if (k == 0)
				m->first[i] = share;
			lp_term(m->lp, row, share, 1);
		}
	}
}

/* What is used at a rate of 1 is at most room / rate. */
static void add_resources(struct mixture *m, uint32_t inverse)
{
	for (uint32_t i = 0; i < m->c->resources; i++)
		lp_term(m->lp, lp_row(m->lp, -INFINITY, 0), inverse, -m->c->room[i]);
}

static bool leads_earlier(const struct choice *choice, unsigned int option)
{
	for (unsigned int k = 0; k < option; k++)
		if (choice->option[k].then == choice->option[option].then)
			return true;
	return false;
}

/* Of where options of choice i lead there is as much as of these options together. */
static void add_row_then(struct mixture *m, uint32_t i, uint32_t then)
{
	const struct choice *choice = &m->c->choice[i], *next = &m->c->choice[then];
	uint32_t row = lp_row(m->lp, 0, INFINITY);

	for (unsigned int k = 0; k < next->options; k++)
		lp_term(m->lp, row, m->first[then] + k, 1);
	for (unsigned int k = 0; k < choice->options; k++)
		if (choice->option[k].then == then)
			lp_term(m->lp, row, m->first[i] + k, -1);
}

/* `resources` is the row of resource 0. */
static void add_options(struct mixture *m, uint32_t i, uint32_t resources)
{
	const struct choice *choice = &m->c->choice[i];

	for (unsigned int k = 0; k < choice->options; k++) {
		const struct choices_option *o = &choice->option[k];

		for (unsigned int n = 0; n < o->uses; n++)
			lp_term(m->lp, resources + o->use[n].resource, m->first[i] + k,
				o->use[n].amount);
		if (o->then != CHOICES_NONE && !leads_earlier(choice, k))
			add_row_then(m, i, o->then);
	}
}

int choices_mix(const struct choices *c, bool whole, unsigned int steps_max, double *ret_share,
		double *ret_rate)
{
	_cleanup_(mixture_close) struct mixture m = { .c = c };
	_cleanup_(lp_closep) struct lp *lp = NULL;
	enum lp_outcome outcome;
	uint32_t inverse;
	int r;

	r = lp_open(&lp);
	if (r < 0)
		return r;
	m.lp = lp;
	m.first = calloc(c->count + 1, sizeof(*m.first));
	if (!m.first)
		return -ENOMEM;
	add_choices(&m, whole);
	inverse = lp_variable(lp, 0, INFINITY, 1);
	add_resources(&m, inverse);
	for (uint32_t i = 0; i < c->count; i++)
		add_options(&m, i, c->count);
	r = lp_minimise(lp, steps_max, &outcome);
	if (r < 0)
		return r;
	if (outcome == LP_UNFINISHED)
		return -EAGAIN;
	for (uint32_t i = 0; i < inverse; i++)
		ret_share[i] = outcome == LP_OPTIMAL ? lp_value(lp, i) : 0;
	if (outcome == LP_OPTIMAL)
		*ret_rate = lp_cost(lp) > 0 ? 1 / lp_cost(lp) : INFINITY;
	else
		*ret_rate = 0;
	return 0;
}
