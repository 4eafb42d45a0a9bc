// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "route.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "rounding.h"
#include "route_private.h"

/* --- two routes ------------------------------------------------------------------------------ */

static bool is_same(const struct route *a, const struct route *b, size_t pair)
{
	const struct route_way *x = &a->way[pair], *y = &b->way[pair];
	size_t root = pair % a->roots;

	if (x->node != y->node || graph_path_compare(&x->path, &y->path) != 0)
		return false;
	return x->node == ROUTE_NONE ||
	       graph_path_compare(&a->on[(size_t)x->node * a->roots + root],
				  &b->on[(size_t)x->node * a->roots + root]) == 0;
}

unsigned int route_moves(const struct route *a, const struct route *b)
{
	unsigned int moves = 0;

	for (size_t i = 0; i < (size_t)a->workers * a->roots; i++)
		moves += !is_same(a, b, i);
	return moves;
}

static int copy(const struct route_problem *p, const struct route *from, struct route **ret)
{
	struct route *route;
	int r = route_new(p, &route);

	if (r < 0)
		return r;
	memcpy(route->way, from->way, (size_t)p->workers * p->roots * sizeof(*route->way));
	if (p->nodes)
		memcpy(route->on, from->on, (size_t)p->nodes * p->roots * sizeof(*route->on));
	*ret = route;
	return 0;
}

/* --- from the route before ------------------------------------------------------------------- */

/* What repair makes of it; *ret stays NULL where it cannot begin. */
static int repaired(const struct route_menu *m, const struct route *before, double bound,
		    struct route **ret)
{
	_cleanup_(freep) uint32_t *taken = calloc(m->choices.count, sizeof(*taken));
	double rate;
	int r;

	if (!taken)
		return -ENOMEM;
	if (!route_taken(m, before, taken))
		return 0;
	r = rounding_repair(&m->choices, taken, &rate);
	return r < 0 ? r : route_of(m, taken, bound, ret);
}

/* --- which one ------------------------------------------------------------------------------- */

static bool pays(const struct route *now, const struct route *next, double factor)
{
	return next && next->rate > now->rate && next->rate >= factor * now->rate;
}

int route_again(const struct route_problem *p, const struct route_options *o,
		const struct route *before, double factor, struct route **ret)
{
	_cleanup_(route_offer_close) struct route_offer offer = { 0 };
	_cleanup_(route_freep) struct route *now = NULL, *near = NULL, *anew = NULL;
	double rate;
	int r;

	if (!isfinite(factor) || factor < 1)
		return -EINVAL;
	r = route_rate(p, before, &rate);
	if (r < 0)
		return r;
	r = copy(p, before, &now);
	if (r < 0)
		return r;
	r = route_offer_open(p, o, &offer);
	if (r < 0)
		return r;
	r = route_round(&offer.menu, o, &anew);
	if (r < 0)
		return r;
	r = repaired(&offer.menu, before, anew->bound, &near);
	if (r < 0)
		return r;
	now->rate = rate;
	now->bound = anew->bound;
	if (pays(now, near, factor)) {
		route_free(now);
		now = TAKE_PTR(near);
	}
	if (pays(now, anew, factor)) {
		route_free(now);
		now = TAKE_PTR(anew);
	}
	*ret = TAKE_PTR(now);
	return 0;
}
