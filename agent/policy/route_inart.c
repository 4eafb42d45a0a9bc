// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What needs a linear program: tallyd, which is not linked with GLPK, has none of it. */
#include <errno.h>
#include <stdlib.h>

#include "common/owned.h"
#include "rounding.h"
#include "route_private.h"

int route_mix(const struct route_menu *m, bool with_links, unsigned int steps_max,
	      double *ret_share, double *ret_bound)
{
	_cleanup_(route_menu_close) struct route_menu origins = { 0 };
	_cleanup_(freep) double *share = NULL;
	uint32_t count = 0;
	double rate;
	int r = route_menu_open(m->ways, true, with_links, &origins);

	if (r < 0)
		return r;
	share = calloc(origins.options, sizeof(*share));
	if (!share)
		return -ENOMEM;
	r = choices_mix(&origins.choices, false, steps_max, share, &rate);
	if (r < 0)
		return r;
	/* Choices by origin have each option once, in order: a share has its option's place. */
	for (uint32_t i = 0; i < m->choices.count; i++)
		for (unsigned int k = 0; k < m->choice[i].options; k++)
			ret_share[count++] = share[m->choice[i].option - m->option + k];
	*ret_bound = rate * origins.unit;
	return 0;
}

int route_round(const struct route_menu *m, const struct route_options *o, struct route **ret)
{
	_cleanup_(freep) double *share = calloc(choices_options(&m->choices), sizeof(*share));
	_cleanup_(freep) uint32_t *taken = calloc(m->choices.count, sizeof(*taken));
	double bound, rate;
	int r;

	if (!share || !taken)
		return -ENOMEM;
	r = route_mix(m, true, o->steps_max, share, &bound);
	if (r < 0)
		return r;
	r = rounding_best(&m->choices, share, o->seed, o->draws, o->tries, true, taken, &rate);
	return r < 0 ? r : route_of(m, taken, bound, ret);
}

int route_inart(const struct route_problem *p, const struct route_options *o, struct route **ret)
{
	_cleanup_(route_offer_close) struct route_offer offer = { 0 };
	int r = route_offer_open(p, o, &offer);

	return r < 0 ? r : route_round(&offer.menu, o, ret);
}

/* Of each choice the option that has the whole share. */
static void take_whole(const struct choices *c, const double *share, uint32_t *ret_taken)
{
	for (uint32_t i = 0; i < c->count; i++)
		for (unsigned int k = 0; k < c->choice[i].options; k++)
			if (*share++ > 0.5)
				ret_taken[i] = k;
}

int route_exact(const struct route_problem *p, const struct route_options *o, struct route **ret)
{
	_cleanup_(route_offer_close) struct route_offer offer = { 0 };
	const struct choices *c = &offer.menu.choices;
	_cleanup_(freep) uint32_t *taken = NULL;
	_cleanup_(freep) double *share = NULL;
	double rate;
	int r = route_offer_open(p, o, &offer);

	if (r < 0)
		return r;
	share = calloc(choices_options(c), sizeof(*share));
	taken = calloc(c->count, sizeof(*taken));
	if (!share || !taken)
		return -ENOMEM;
	r = choices_mix(c, true, o->steps_max, share, &rate);
	if (r < 0)
		return r;
	take_whole(c, share, taken);
	return route_of(&offer.menu, taken, rate * offer.menu.unit, ret);
}
