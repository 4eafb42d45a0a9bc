// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "route.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/owned.h"
#include "route_private.h"

static const double CLOSE = 1e-6; /* shares together are 1 but for so much */

/* --- what is asked --------------------------------------------------------------------------- */

static bool is_amount(double value) { return isfinite(value) && value >= 0; }

static bool are_machines(const struct graph *g, const uint32_t *machine, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (machine[i] >= g->machines)
			return false;
	return true;
}

static bool are_nodes(const struct route_problem *p)
{
	for (unsigned int n = 0; n < p->nodes; n++) {
		if (p->graph->machine[p->node[n]].kind != GRAPH_NODE || !is_amount(p->node_room[n]))
			return false;
		for (unsigned int i = 0; i < n; i++)
			if (p->node[i] == p->node[n])
				return false;
	}
	return true;
}

static bool are_shares(const struct route_problem *p)
{
	double all = 0;

	for (unsigned int s = 0; s < p->roots; s++) {
		if (!is_amount(p->share[s]) || !is_amount(p->root_room[s]))
			return false;
		all += p->share[s];
	}
	return fabs(all - 1) <= CLOSE;
}

int route_check(const struct route_problem *p, const struct route_options *o)
{
	uint64_t nodes = o->nodes_max < p->nodes ? o->nodes_max : p->nodes, most;

	if (p->workers == 0 || p->roots == 0 || o->paths_max == 0 || o->draws == 0)
		return -EINVAL;
	if (p->workers > ROUTE_MACHINES_MAX || p->nodes > ROUTE_MACHINES_MAX ||
	    p->roots > ROUTE_ROOTS_MAX || o->paths_max > ROUTE_OPTIONS_MAX)
		return -E2BIG;
	most = ((uint64_t)p->workers * (nodes + 1) + p->nodes) * p->roots;
	if (most > ROUTE_OPTIONS_MAX / o->paths_max)
		return -E2BIG;
	if (!are_machines(p->graph, p->worker, p->workers) ||
	    !are_machines(p->graph, p->root, p->roots) ||
	    !are_machines(p->graph, p->node, p->nodes) || !are_nodes(p) || !are_shares(p))
		return -EINVAL;
	return 0;
}

/* --- a route --------------------------------------------------------------------------------- */

int route_new(const struct route_problem *p, struct route **ret)
{
	_cleanup_(route_freep) struct route *r = calloc(1, sizeof(*r));
	size_t pairs = (size_t)p->workers * p->roots;

	if (!r)
		return -ENOMEM;
	r->workers = p->workers;
	r->roots = p->roots;
	r->nodes = p->nodes;
	r->way = calloc(pairs, sizeof(*r->way));
	r->on = calloc((size_t)p->nodes * p->roots + 1, sizeof(*r->on));
	if (!r->way || !r->on)
		return -ENOMEM;
	for (size_t i = 0; i < pairs; i++)
		r->way[i].node = ROUTE_NONE;
	*ret = TAKE_PTR(r);
	return 0;
}

void route_free(struct route *r)
{
	if (!r)
		return;
	free(r->way);
	free(r->on);
	free(r);
}

void route_freep(struct route **r) { route_free(*r); }

static bool leads(const struct graph *g, const struct graph_path *path, uint32_t from, uint32_t to)
{
	if (path->links > GRAPH_PATH_MAX)
		return false;
	for (unsigned int i = 0; i < path->links; i++) {
		if (path->link[i] >= g->links || g->link[path->link[i]].from != from)
			return false;
		from = g->link[path->link[i]].to;
	}
	return from == to;
}

/* What a route uses at a rate of 1: of links, then nodes, then roots. */
struct loads {
	const struct route_problem *p;
	double *load;
	bool *sums; /* [node * roots + root] */
};

static void loads_close(struct loads *l)
{
	free(l->load);
	free(l->sums);
}

static bool add_path(struct loads *l, const struct graph_path *path, uint32_t from, uint32_t to,
		     double amount)
{
	if (!leads(l->p->graph, path, from, to))
		return false;
	for (unsigned int i = 0; i < path->links; i++)
		l->load[path->link[i]] += amount;
	return true;
}

static bool add_way(struct loads *l, const struct route_way *way, uint32_t worker, uint32_t root)
{
	const struct route_problem *p = l->p;
	uint32_t links = p->graph->links, end = p->root[root];

	if (p->share[root] == 0)
		return true;
	if (way->node != ROUTE_NONE) {
		if (way->node >= p->nodes)
			return false;
		end = p->node[way->node];
		l->sums[(size_t)way->node * p->roots + root] = true;
		l->load[links + way->node] += p->share[root];
	} else {
		l->load[links + p->nodes + root] += p->share[root];
	}
	return add_path(l, &way->path, p->worker[worker], end, p->share[root]);
}

static bool add_route(struct loads *l, const struct route *r)
{
	const struct route_problem *p = l->p;

	if (r->workers != p->workers || r->roots != p->roots || r->nodes != p->nodes)
		return false;
	for (uint32_t w = 0; w < p->workers; w++)
		for (uint32_t s = 0; s < p->roots; s++)
			if (!add_way(l, &r->way[(size_t)w * p->roots + s], w, s))
				return false;
	for (size_t i = 0; i < (size_t)p->nodes * p->roots; i++) {
		uint32_t s = (uint32_t)(i % p->roots);

		if (!l->sums[i])
			continue;
		l->load[p->graph->links + p->nodes + s] += p->share[s];
		if (!add_path(l, &r->on[i], p->node[i / p->roots], p->root[s], p->share[s]))
			return false;
	}
	return true;
}

static double least_rate(const struct loads *l)
{
	const struct route_problem *p = l->p;
	uint32_t links = p->graph->links;
	double rate = INFINITY;

	for (uint32_t i = 0; i < links + p->nodes + p->roots; i++) {
		double room = i < links		     ? graph_room(&p->graph->link[i])
			      : i < links + p->nodes ? p->node_room[i - links]
						     : p->root_room[i - links - p->nodes];

		if (l->load[i] > 0)
			rate = fmin(rate, room / l->load[i]);
	}
	return rate;
}

int route_rate(const struct route_problem *p, const struct route *r, double *ret)
{
	static const struct route_options ANY = { .paths_max = 1, .draws = 1 };
	_cleanup_(loads_close) struct loads l = { .p = p };
	int error = route_check(p, &ANY);

	if (error < 0)
		return error;
	l.load = calloc((size_t)p->graph->links + p->nodes + p->roots, sizeof(*l.load));
	l.sums = calloc((size_t)p->nodes * p->roots + 1, sizeof(*l.sums));
	if (!l.load || !l.sums)
		return -ENOMEM;
	if (!add_route(&l, r))
		return -EINVAL;
	*ret = least_rate(&l);
	return 0;
}

/* --- what can be chosen ---------------------------------------------------------------------- */

void route_offer_close(struct route_offer *f)
{
	route_menu_close(&f->menu);
	route_ways_close(&f->ways);
}

int route_offer_open(const struct route_problem *p, const struct route_options *o,
		     struct route_offer *ret)
{
	int r = route_check(p, o);

	if (r == 0)
		r = route_ways_open(p, o, &ret->ways);
	return r < 0 ? r : route_menu_open(&ret->ways, false, true, &ret->menu);
}
