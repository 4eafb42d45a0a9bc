// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "common/owned.h"
#include "rounding.h"
#include "route_private.h"
#include "search.h"

static int (*const STARTS[])(const struct route_problem *p, const struct route_options *o,
			     struct route **ret) = { route_direct, route_nearest, route_balanced };

struct best {
	struct route *route; /* or NULL */
};

static void best_close(struct best *b) { route_free(b->route); }

/* Of equals the first. */
static void keep_better(struct best *b, struct route *next)
{
	if (b->route && b->route->rate >= next->rate) {
		route_free(next);
		return;
	}
	route_free(b->route);
	b->route = next;
}

static int go_on(const struct route_menu *m, const struct route_options *o, uint64_t *seed,
		 uint32_t *taken, struct best *best)
{
	struct route *route;
	double rate;
	int r = search_takings(&m->choices, o->tries, seed, taken, &rate);

	if (r == 0)
		r = rounding_repair(&m->choices, taken, &rate);
	if (r == 0)
		r = route_of(m, taken, route_bound(m->ways->p), &route);
	if (r == 0)
		keep_better(best, route);
	return r;
}

/* A start may go by nodes that are not to be chosen here; then it is as it is. */
static int go_on_from(const struct route_menu *m, const struct route_options *o, unsigned int start,
		      uint64_t *seed, uint32_t *taken, struct best *best)
{
	struct route *route;
	bool goes_on;
	int r = STARTS[start](m->ways->p, o, &route);

	if (r < 0)
		return r;
	goes_on = route_taken(m, route, taken);
	keep_better(best, route);
	return goes_on ? go_on(m, o, seed, taken, best) : 0;
}

static int go_on_from_chance(const struct route_menu *m, const struct route_options *o,
			     uint64_t seed, uint32_t *taken, struct best *best)
{
	_cleanup_(freep) double *share = calloc(choices_options(&m->choices), sizeof(*share));
	struct route *route;
	double rate;
	int r;

	if (!share)
		return -ENOMEM;
	r = rounding_best(&m->choices, share, seed, o->draws, o->tries, true, taken, &rate);
	if (r == 0)
		r = route_of(m, taken, route_bound(m->ways->p), &route);
	if (r == 0)
		keep_better(best, route);
	return r;
}

int route_search(const struct route_problem *p, const struct route_options *o, struct route **ret)
{
	_cleanup_(route_offer_close) struct route_offer offer = { 0 };
	_cleanup_(freep) uint32_t *taken = NULL;
	_cleanup_(best_close) struct best best = { 0 };
	uint64_t seed = o->seed;
	int r = route_offer_open(p, o, &offer);

	if (r < 0)
		return r;
	taken = calloc(offer.menu.choices.count, sizeof(*taken));
	if (!taken)
		return -ENOMEM;
	for (unsigned int i = 0; r == 0 && i < sizeof(STARTS) / sizeof(*STARTS); i++)
		r = go_on_from(&offer.menu, o, i, &seed, taken, &best);
	if (r == 0)
		r = go_on_from_chance(&offer.menu, o, seed, taken, &best);
	if (r == 0)
		*ret = TAKE_PTR(best.route);
	return r;
}
