// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "route.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "rounding.h"
#include "route_private.h"
#include "split.h"

/* --- along shortest paths -------------------------------------------------------------------- */

/* A problem whose roots have nothing to give has the bound 0; split.h does not take it. */
double route_bound(const struct route_problem *p)
{
	struct split_problem split = { p->workers, p->roots, p->nodes, p->root_room, p->node_room };
	double bound;

	return split_rate(&split, p->share, &bound) < 0 ? 0 : bound;
}

static uint32_t node_at(const struct route_problem *p, uint32_t machine)
{
	for (uint32_t n = 0; n < p->nodes; n++)
		if (p->node[n] == machine)
			return n;
	return ROUTE_NONE;
}

static void cut(const struct graph_path *path, unsigned int from, unsigned int to,
		struct graph_path *ret)
{
	ret->links = to - from;
	memcpy(ret->link, &path->link[from], ret->links * sizeof(*ret->link));
}

/* The first node on the way sums, if there is one before the root. */
static void sum_at_first(const struct route_problem *p, const struct graph_path *path,
			 uint32_t worker, uint32_t root, struct route *r)
{
	struct route_way *way = &r->way[(size_t)worker * p->roots + root];
	uint32_t machine = p->worker[worker];

	for (unsigned int i = 0; i < path->links; i++) {
		way->node = node_at(p, machine);
		if (way->node != ROUTE_NONE) {
			cut(path, 0, i, &way->path);
			/* All first paths that come to a node go on from there alike. */
			cut(path, i, path->links, &r->on[(size_t)way->node * p->roots + root]);
			return;
		}
		machine = p->graph->link[path->link[i]].to;
	}
	way->path = *path;
}

static int add_shortest(const struct route_problem *p, uint32_t worker, uint32_t root,
			bool nodes_sum, struct route *route)
{
	struct graph_path path;
	int count = graph_paths(p->graph, p->worker[worker], p->root[root], 1, &path);

	if (count <= 0)
		return count < 0 ? count : -ENETUNREACH;
	if (nodes_sum)
		sum_at_first(p, &path, worker, root, route);
	else
		route->way[(size_t)worker * p->roots + root].path = path;
	return 0;
}

static int along_shortest(const struct route_problem *p, const struct route_options *o,
			  bool nodes_sum, struct route **ret)
{
	_cleanup_(route_freep) struct route *route = NULL;
	int r = route_check(p, o);

	if (r < 0)
		return r;
	r = route_new(p, &route);
	if (r < 0)
		return r;
	for (uint32_t i = 0; r == 0 && i < p->workers * p->roots; i++)
		if (p->share[i % p->roots] > 0)
			r = add_shortest(p, i / p->roots, i % p->roots, nodes_sum, route);
	if (r == 0)
		r = route_rate(p, route, &route->rate);
	if (r < 0)
		return r;
	route->bound = route_bound(p);
	*ret = TAKE_PTR(route);
	return 0;
}

int route_direct(const struct route_problem *p, const struct route_options *o, struct route **ret)
{
	return along_shortest(p, o, false, ret);
}

int route_nearest(const struct route_problem *p, const struct route_options *o, struct route **ret)
{
	return along_shortest(p, o, true, ret);
}

/* --- load-balanced min-min ------------------------------------------------------------------- */

struct balance {
	const struct choices *c;
	double *load;
	bool *done;
};

static void balance_close(struct balance *b)
{
	free(b->load);
	free(b->done);
}

static double fullest_with(const struct balance *b, const struct choices_option *o)
{
	double fullest = 0;

	for (unsigned int i = 0; i < o->uses; i++) {
		uint32_t at = o->use[i].resource;

		fullest = fmax(fullest, (b->load[at] + o->use[i].amount) / b->c->room[at]);
	}
	return fullest;
}

static void take(struct balance *b, uint32_t choice, uint32_t option, uint32_t *taken)
{
	const struct choices_option *o = &b->c->choice[choice].option[option];

	for (unsigned int i = 0; i < o->uses; i++)
		b->load[o->use[i].resource] += o->use[i].amount;
	taken[choice] = option;
	b->done[choice] = true;
}

/* False: all choices have been made. */
static bool take_least(struct balance *b, uint32_t *taken)
{
	uint32_t choice = CHOICES_NONE, option = 0;
	double least = INFINITY;

	for (uint32_t i = 0; i < b->c->count; i++) {
		if (b->done[i])
			continue;
		for (uint32_t k = 0; k < b->c->choice[i].options; k++) {
			double fullest = fullest_with(b, &b->c->choice[i].option[k]);

			if (choice == CHOICES_NONE || fullest < least) {
				least = fullest;
				choice = i;
				option = k;
			}
		}
	}
	if (choice == CHOICES_NONE)
		return false;
	take(b, choice, option, taken);
	return true;
}

int route_balanced(const struct route_problem *p, const struct route_options *o, struct route **ret)
{
	_cleanup_(route_offer_close) struct route_offer offer = { 0 };
	_cleanup_(balance_close) struct balance b = { .c = &offer.menu.choices };
	_cleanup_(freep) uint32_t *taken = NULL;
	struct route_options direct = *o;
	double rate;
	int r;

	direct.nodes_max = 0;
	r = route_check(p, o);
	if (r == 0)
		r = route_offer_open(p, &direct, &offer);
	if (r < 0)
		return r;
	b.load = calloc(b.c->resources + 1, sizeof(*b.load));
	b.done = calloc(b.c->count + 1, sizeof(*b.done));
	taken = calloc(b.c->count + 1, sizeof(*taken));
	if (!b.load || !b.done || !taken)
		return -ENOMEM;
	for (uint32_t i = 0; i < b.c->count; i++)
		b.done[i] = !b.c->choice[i].always;
	while (take_least(&b, taken))
		;
	r = rounding_repair(b.c, taken, &rate);
	return r < 0 ? r : route_of(&offer.menu, taken, route_bound(p), ret);
}
