// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "common/owned.h"
#include "rounding.h"
#include "route_private.h"

int route_grid(const struct route_problem *p, const struct route_options *o, struct route **ret)
{
	_cleanup_(route_offer_close) struct route_offer offer = { 0 };
	const struct route_menu *m = &offer.menu;
	_cleanup_(freep) uint32_t *taken = NULL;
	_cleanup_(freep) double *share = NULL;
	struct route_options shortest = *o;
	uint64_t seed = o->seed;
	double bound;
	int r;

	shortest.paths_max = 1;
	r = route_check(p, o);
	if (r == 0)
		r = route_offer_open(p, &shortest, &offer);
	if (r < 0)
		return r;
	share = calloc(choices_options(&m->choices), sizeof(*share));
	taken = calloc(m->choices.count + 1, sizeof(*taken));
	if (!share || !taken)
		return -ENOMEM;
	r = route_mix(m, false, o->steps_max, share, &bound);
	if (r < 0)
		return r;
	rounding_draw(&m->choices, share, &seed, taken);
	return route_of(m, taken, bound, ret);
}
