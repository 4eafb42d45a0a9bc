// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "route_private.h"

#include <errno.h>
#include <stdlib.h>

#include "common/owned.h"

#define UNKNOWN UINT32_MAX /* so many paths: they have not been looked for */

enum {
	PATHS_AT_FIRST = 256,
};

void route_ways_close(struct route_ways *w)
{
	free(w->origin);
	free(w->origin_of);
	free(w->leaves_by);
	free(w->near);
	free(w->span);
	free(w->path);
}

/* --- origins --------------------------------------------------------------------------------- */

/* The link that all paths of this worker begin with, if what is behind it can be an origin. */
static uint32_t own_link(const struct route_problem *p, uint32_t machine)
{
	const struct graph *g = p->graph;
	uint32_t link;

	if (g->machine[machine].kind != GRAPH_HOST ||
	    g->leaving_at[machine + 1] - g->leaving_at[machine] != 1)
		return GRAPH_NONE;
	for (unsigned int s = 0; s < p->roots; s++)
		if (p->root[s] == machine)
			return GRAPH_NONE;
	link = g->leaving[g->leaving_at[machine]];
	return g->machine[g->link[link].to].kind == GRAPH_HOST ? GRAPH_NONE : link;
}

static uint32_t origin_at(struct route_ways *w, uint32_t machine)
{
	for (uint32_t i = 0; i < w->origins; i++)
		if (w->origin[i].machine == machine)
			return i;
	w->origin[w->origins].machine = machine;
	return w->origins++;
}

static void find_origins(struct route_ways *w)
{
	const struct route_problem *p = w->p;

	for (unsigned int i = 0; i < p->workers; i++) {
		uint32_t link = own_link(p, p->worker[i]);
		uint32_t machine = link == GRAPH_NONE ? p->worker[i] : p->graph->link[link].to;

		w->leaves_by[i] = link;
		w->origin_of[i] = origin_at(w, machine);
		w->origin[w->origin_of[i]].workers++;
	}
}

/* --- paths ----------------------------------------------------------------------------------- */

static size_t place_of(const struct route_ways *w, uint32_t from, uint32_t to)
{
	return (size_t)from * (w->p->nodes + w->p->roots) + to;
}

struct route_span route_span_of(const struct route_ways *w, uint32_t from, uint32_t to)
{
	struct route_span span = w->span[place_of(w, from, to)];

	return span.count == UNKNOWN ? (struct route_span){ 0, 0 } : span;
}

static uint32_t target_of(const struct route_problem *p, uint32_t to)
{
	return to < p->nodes ? p->node[to] : p->root[to - p->nodes];
}

static int make_room(struct route_ways *w)
{
	uint32_t room = w->paths_room ? 2 * w->paths_room : PATHS_AT_FIRST;
	struct graph_path *path;

	if (w->paths_room - w->paths >= w->paths_max)
		return 0;
	while (room - w->paths < w->paths_max)
		room *= 2;
	path = reallocarray(w->path, room, sizeof(*path));
	if (!path)
		return -ENOMEM;
	w->path = path;
	w->paths_room = room;
	return 0;
}

static int find_paths(struct route_ways *w, uint32_t from, uint32_t to)
{
	struct route_span *span = &w->span[place_of(w, from, to)];
	uint32_t machine = from < w->origins ? w->origin[from].machine
					     : w->p->node[from - w->origins];
	int count = make_room(w);

	if (count < 0 || span->count != UNKNOWN)
		return count;
	count = graph_paths(w->p->graph, machine, target_of(w->p, to), w->paths_max,
			    &w->path[w->paths]);
	if (count < 0)
		return count;
	/* There is room for a worker's own link before each. Longer paths come later. */
	while (count > 0 && w->path[w->paths + (uint32_t)count - 1].links == GRAPH_PATH_MAX)
		count--;
	*span = (struct route_span){ w->paths, (uint32_t)count };
	w->paths += (uint32_t)count;
	return 0;
}

/* --- near nodes ------------------------------------------------------------------------------ */

struct candidate {
	uint32_t links; /* from the origin by the node to the root */
	uint32_t before; /* of these, before the node */
	uint32_t node;
};

/* The shortest way first; of equals, whose node is nearest to the worker; then by number. */
static int by_links(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->links != y->links)
		return x->links < y->links ? -1 : 1;
	if (x->before != y->before)
		return x->before < y->before ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* `distance` is by target and machine, `candidate` has room for all nodes. */
static void find_near(struct route_ways *w, uint32_t origin, uint32_t root,
		      const uint32_t *distance, struct candidate *candidate)
{
	const struct route_problem *p = w->p;
	uint32_t *near = &w->near[((size_t)origin * p->roots + root) * w->nodes_max];
	size_t machines = p->graph->machines;
	unsigned int count = 0;

	for (uint32_t n = 0; n < p->nodes; n++) {
		uint32_t before = distance[n * machines + w->origin[origin].machine];
		uint32_t after = distance[(p->nodes + root) * machines + p->node[n]];

		if (before != GRAPH_NONE && after != GRAPH_NONE && after > 0)
			candidate[count++] = (struct candidate){ before + after, before, n };
	}
	if (count)
		qsort(candidate, count, sizeof(*candidate), by_links);
	for (unsigned int i = 0; i < w->nodes_max; i++)
		near[i] = i < count ? candidate[i].node : ROUTE_NONE;
}

static int find_ways(struct route_ways *w, uint32_t origin, uint32_t root, const uint32_t *distance,
		     struct candidate *candidate)
{
	const struct route_problem *p = w->p;
	const uint32_t *near = &w->near[((size_t)origin * p->roots + root) * w->nodes_max];
	int r = find_paths(w, origin, p->nodes + root);

	if (r < 0)
		return r;
	if (route_span_of(w, origin, p->nodes + root).count == 0)
		return -ENETUNREACH;
	find_near(w, origin, root, distance, candidate);
	for (unsigned int i = 0; i < w->nodes_max && near[i] != ROUTE_NONE; i++) {
		r = find_paths(w, origin, near[i]);
		if (r == 0)
			r = find_paths(w, w->origins + near[i], p->nodes + root);
		if (r < 0)
			return r;
	}
	return 0;
}

static int find_all(struct route_ways *w)
{
	const struct route_problem *p = w->p;
	unsigned int targets = p->nodes + p->roots;
	_cleanup_(freep) struct candidate *candidate = calloc(p->nodes + 1, sizeof(*candidate));
	_cleanup_(freep) uint32_t *distance = calloc((size_t)targets * p->graph->machines,
						     sizeof(*distance));

	if (!candidate || !distance)
		return -ENOMEM;
	for (uint32_t t = 0; t < targets; t++) {
		int r = graph_distances(p->graph, target_of(p, t),
					&distance[(size_t)t * p->graph->machines]);

		if (r < 0)
			return r;
	}
	for (uint32_t i = 0; i < w->origins; i++)
		for (uint32_t s = 0; s < p->roots; s++) {
			int r = p->share[s] > 0 ? find_ways(w, i, s, distance, candidate) : 0;

			if (r < 0)
				return r;
		}
	return 0;
}

int route_ways_open(const struct route_problem *p, const struct route_options *o,
		    struct route_ways *ret)
{
	struct route_ways w = { .p = p, .paths_max = o->paths_max };
	size_t spans;
	int r = -ENOMEM;

	w.nodes_max = o->nodes_max < p->nodes ? o->nodes_max : p->nodes;
	w.origin = calloc(p->workers, sizeof(*w.origin));
	w.origin_of = calloc(p->workers, sizeof(*w.origin_of));
	w.leaves_by = calloc(p->workers, sizeof(*w.leaves_by));
	if (w.origin && w.origin_of && w.leaves_by) {
		find_origins(&w);
		spans = ((size_t)w.origins + p->nodes) * (p->nodes + p->roots);
		w.near = calloc((size_t)w.origins * p->roots * w.nodes_max + 1, sizeof(*w.near));
		w.span = calloc(spans, sizeof(*w.span));
		for (size_t i = 0; w.span && i < spans; i++)
			w.span[i].count = UNKNOWN;
		if (w.near && w.span)
			r = find_all(&w);
	}
	if (r < 0) {
		route_ways_close(&w);
		return r;
	}
	*ret = w;
	return 0;
}
