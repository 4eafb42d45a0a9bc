// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "merge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"

/* How a way goes on behind a machine that sums; no links: nothing has come there yet. */
struct rest {
	const uint32_t *link;
	unsigned int links;
};

static void add(const struct merge_problem *p, uint32_t link, double amount, double *streams)
{
	streams[link] += amount;
	if (p->back)
		streams[p->back[link]] += amount;
}

static bool is_same(struct rest a, struct rest b)
{
	return a.links == b.links && !memcmp(a.link, b.link, a.links * sizeof(*a.link));
}

static int add_way(const struct merge_problem *p, unsigned int worker, const struct graph_path *way,
		   struct rest *rest, double *ret)
{
	double amount = p->streams[worker];
	uint32_t at = p->worker[worker];

	if (way->links > GRAPH_PATH_MAX)
		return -EINVAL;
	for (unsigned int i = 0; i < way->links; i++) {
		const struct rest now = { way->link + i, way->links - i };

		if (now.link[0] >= p->graph->links || p->graph->link[now.link[0]].from != at ||
		    at == p->root)
			return -EINVAL;
		/* Behind a machine that sums, only the first that came there goes on. */
		if (p->sums[at] && rest[at].links)
			return is_same(rest[at], now) ? 0 : -EINVAL;
		if (p->sums[at]) {
			rest[at] = now;
			amount = 1;
		}
		add(p, now.link[0], amount, ret);
		at = p->graph->link[now.link[0]].to;
	}
	return at == p->root ? 0 : -EINVAL;
}

int merge_streams(const struct merge_problem *p, const struct graph_path *way, double *ret)
{
	_cleanup_(freep) struct rest *rest = calloc(p->graph->machines + 1, sizeof(*rest));
	int r = rest ? 0 : -ENOMEM;

	memset(ret, 0, p->graph->links * sizeof(*ret));
	for (unsigned int i = 0; r == 0 && i < p->workers; i++)
		r = add_way(p, i, &way[i], rest, ret);
	return r;
}

int merge_rate(const struct merge_problem *p, unsigned int roots, const struct graph_path *way,
	       double *ret)
{
	const struct graph *g = p->graph;
	_cleanup_(freep) double *streams = calloc(g->links + 1, sizeof(*streams));
	_cleanup_(freep) double *load = calloc(g->links + 1, sizeof(*load)); /* at a rate of 1 */
	double rate = INFINITY;
	int r = streams && load ? 0 : -ENOMEM;

	for (unsigned int s = 0; r == 0 && s < roots; s++) {
		r = p[s].graph == g ? merge_streams(&p[s], way, streams) : -EINVAL;
		for (uint32_t i = 0; r == 0 && i < g->links; i++)
			load[i] += p[s].share * streams[i];
		way += p[s].workers;
	}
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < g->links; i++)
		if (load[i] > 0)
			rate = fmin(rate, graph_room(&g->link[i]) / load[i]);
	*ret = rate;
	return 0;
}
