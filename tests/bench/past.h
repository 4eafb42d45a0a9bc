/* SPDX-License-Identifier: GPL-2.0-only */
/* The rate of a route where nodes let pass what is too much for them, as ATP's do (NSDI 2021). */
#ifndef TALLY_TESTS_BENCH_PAST_H
#define TALLY_TESTS_BENCH_PAST_H

#include <math.h>
#include <stdlib.h>

#include "agent/policy/route.h"
#include "common/owned.h"

/* What is used at some rate: of all links, and of all roots. */
struct past {
	const struct route_problem *p;
	const struct route *r;
	double *link, *root;
};

static inline void past_add(struct past *past, const struct graph_path *path, double amount)
{
	for (unsigned int i = 0; i < path->links; i++)
		past->link[path->link[i]] += amount;
}

/* What goes on from a node: one sum of what it can add, and all the rest as it came. */
static inline void past_node(struct past *past, uint32_t v, double rate)
{
	const struct route_problem *p = past->p;
	double comes = 0, summed;

	for (unsigned int i = 0; i < p->workers * p->roots; i++)
		if (past->r->way[i].node == v)
			comes += rate * p->share[i % p->roots];
	if (comes == 0)
		return;
	summed = fmin(1, p->node_room[v] / comes);
	for (unsigned int s = 0; s < p->roots; s++) {
		double goes, workers = 0;

		for (unsigned int w = 0; w < p->workers; w++)
			workers += past->r->way[w * p->roots + s].node == v;
		goes = workers ? rate * p->share[s] * (summed + (1 - summed) * workers) : 0;
		past_add(past, &past->r->on[v * p->roots + s], goes);
		past->root[s] += goes;
	}
}

static inline bool past_bears(struct past *past, double rate)
{
	const struct route_problem *p = past->p;
	bool bears = true;

	for (uint32_t l = 0; l < p->graph->links; l++)
		past->link[l] = p->graph->link[l].load;
	for (unsigned int s = 0; s < p->roots; s++)
		past->root[s] = 0;
	for (unsigned int i = 0; i < p->workers * p->roots; i++) {
		const struct route_way *way = &past->r->way[i];

		past_add(past, &way->path, rate * p->share[i % p->roots]);
		if (way->node == ROUTE_NONE)
			past->root[i % p->roots] += rate * p->share[i % p->roots];
	}
	for (uint32_t v = 0; v < p->nodes; v++)
		past_node(past, v, rate);
	for (uint32_t l = 0; l < p->graph->links; l++)
		bears &= past->link[l] <= p->graph->link[l].capacity;
	for (unsigned int s = 0; s < p->roots; s++)
		bears &= past->root[s] <= p->root_room[s];
	return bears;
}

/*
 * The highest rate that links and roots bear, to 1 in 10^9; nodes bear any rate. `r` is a route of
 * `p`, whose share is that of the route. Below 0: out of memory.
 */
static inline double past_rate(const struct route_problem *p, const struct route *r)
{
	_cleanup_(freep) double *link = calloc(p->graph->links, sizeof(*link));
	_cleanup_(freep) double *root = calloc(p->roots, sizeof(*root));
	struct past past = { p, r, link, root };
	double low = r->rate, high = 2 * low;

	if (!link || !root)
		return -1;
	while (low > 0 && past_bears(&past, high))
		high *= 2;
	for (int i = 0; i < 40; i++) {
		double middle = (low + high) / 2;

		if (past_bears(&past, middle))
			low = middle;
		else
			high = middle;
	}
	return low;
}

#endif
