// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The widest ways to the root, as E. W. Dijkstra finds the shortest ones (1959); and legs. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/owned.h"
#include "merge_private.h"

/* --- the tree -------------------------------------------------------------------------------- */

struct front {
	uint32_t *machine; /* that have been reached, and not been passed yet */
	uint32_t count;
};

/* The wider way; of equals the shorter one. */
static bool is_better(double width, uint32_t hops, const struct merge_spot *than)
{
	return width > than->width || (width == than->width && hops < than->hops);
}

static uint32_t front_take(struct front *f, const struct merge_spot *spot)
{
	uint32_t best = 0, machine;

	for (uint32_t i = 1; i < f->count; i++)
		if (is_better(spot[f->machine[i]].width, spot[f->machine[i]].hops,
			      &spot[f->machine[best]]))
			best = i;
	machine = f->machine[best];
	f->machine[best] = f->machine[--f->count];
	return machine;
}

static bool forwards(const struct graph *g, uint32_t machine)
{
	return g->machine[machine].kind != GRAPH_HOST;
}

static void reach_from(const struct merge_problem *p, const double *room, uint32_t at,
		       struct merge_spot *spot, struct front *front)
{
	const struct graph *g = p->graph;

	for (uint32_t i = g->arriving_at[at]; i < g->arriving_at[at + 1]; i++) {
		const uint32_t link = g->arriving[i], from = g->link[link].from;
		double width = fmin(spot[at].width, room[link]);

		if (p->back)
			width = fmin(width, room[p->back[link]]);
		if (spot[from].order != GRAPH_NONE ||
		    !is_better(width, spot[at].hops + 1, &spot[from]))
			continue;
		if (spot[from].width < 0 && forwards(g, from))
			front->machine[front->count++] = from;
		spot[from] = (struct merge_spot){ link, GRAPH_NONE, spot[at].hops + 1, width };
	}
}

int merge_tree(const struct merge_problem *p, const double *room, struct merge_spot *ret)
{
	_cleanup_(freep) uint32_t *machine = calloc(p->graph->machines + 1, sizeof(*machine));
	struct front front = { .machine = machine };
	uint32_t order = 0;

	if (!machine)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->graph->machines; i++)
		ret[i] = (struct merge_spot){ GRAPH_NONE, GRAPH_NONE, GRAPH_NONE, -1 };
	ret[p->root] = (struct merge_spot){ GRAPH_NONE, GRAPH_NONE, 0, INFINITY };
	machine[front.count++] = p->root;
	while (front.count) {
		const uint32_t at = front_take(&front, ret);

		ret[at].order = order++;
		reach_from(p, room, at, ret, &front);
	}
	return 0;
}

void merge_tree_leg(const struct merge_problem *p, const struct merge_spot *spot, uint32_t machine,
		    struct graph_path *ret)
{
	ret->links = 0;
	while (machine != p->root && (ret->links == 0 || !merge_sums_at(p, machine))) {
		/* A way that is too long is none: merge_ways_of(). */
		if (ret->links == GRAPH_PATH_MAX)
			return;
		ret->link[ret->links++] = spot[machine].link;
		machine = p->graph->link[spot[machine].link].to;
	}
}

/* --- legs ------------------------------------------------------------------------------------ */

enum {
	STEPS_MAX = 20000000, /* over links, for paths: beyond, the first path of each is enough */
	LEGS_MAX = 1 << 18, /* each machine has its part of these: the nearest ones */
};

struct walk {
	const struct merge_problem *p;
	struct graph *calm; /* where what sums forwards nothing */
	uint32_t *queue, *seen; /* [machines]: seen in the walk from so many, */
	uint32_t *by; /* and the link by which it was first */
	uint32_t number;
	uint64_t steps;
};

static int leg_add(struct merge_legs *l, const struct merge_leg *leg)
{
	if (l->legs == l->room) {
		const uint32_t room = 2 * l->room + 64;
		struct merge_leg *more = reallocarray(l->leg, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->leg = more;
		l->room = room;
	}
	l->leg[l->legs++] = *leg;
	return 0;
}

/* The one by which the walk has come there. */
static int walked(const struct walk *w, uint32_t from, uint32_t to, struct graph_path *ret)
{
	unsigned int links = 0, at = to;

	for (; at != from; at = w->calm->link[w->by[at]].from)
		if (links++ == GRAPH_PATH_MAX)
			return 0;
	ret->links = links;
	for (at = to; at != from; at = w->calm->link[w->by[at]].from)
		ret->link[--links] = w->by[at];
	return 1;
}

static int legs_between(struct walk *w, uint32_t from, uint32_t to, unsigned int paths_max,
			struct merge_legs *l)
{
	struct merge_leg leg = { from, to, { 0 } };
	struct graph_path path[MERGE_PATHS_MAX];
	int r = 0, count;

	if (w->steps > STEPS_MAX) {
		count = walked(w, from, to, path);
	} else {
		count = graph_paths(w->calm, from, to, paths_max, path);
		w->steps += ((uint64_t)w->calm->machines + w->calm->links) * paths_max;
	}
	for (int i = 0; r == 0 && i < count; i++) {
		leg.path = path[i];
		r = leg_add(l, &leg);
	}
	return count < 0 ? count : r;
}

/* To all that sum, and the root, that are reached past what does not sum. */
static int legs_from(struct walk *w, uint32_t from, unsigned int paths_max, struct merge_legs *l)
{
	const struct graph *g = w->calm;
	const uint32_t most = l->legs + LEGS_MAX / g->machines;
	uint32_t done = 0, found = 0;
	int r = 0;

	w->number++;
	w->seen[from] = w->number;
	w->queue[found++] = from;
	while (r == 0 && done < found && l->legs < most) {
		const uint32_t at = w->queue[done++];

		if (at != from && (at == w->p->root || merge_sums_at(w->p, at))) {
			r = legs_between(w, from, at, paths_max, l);
			continue;
		}
		if (at != from && !forwards(g, at))
			continue;
		for (uint32_t i = g->leaving_at[at]; i < g->leaving_at[at + 1]; i++) {
			const uint32_t to = g->link[g->leaving[i]].to;

			if (w->seen[to] == w->number)
				continue;
			w->seen[to] = w->number;
			w->by[to] = g->leaving[i];
			w->queue[found++] = to;
		}
	}
	return r;
}

static bool is_gateway(const struct merge_problem *p, uint32_t machine)
{
	for (unsigned int i = 0; i < p->workers; i++)
		if (merge_gateway(p, i) == machine)
			return true;
	return false;
}

static int calm_make(const struct merge_problem *p, struct graph **ret)
{
	int r = graph_make(p->graph->machine, p->graph->machines, p->graph->link, p->graph->links,
			   ret);

	for (uint32_t i = 0; r == 0 && i < p->graph->machines; i++)
		if (merge_sums_at(p, i))
			(*ret)->machine[i].kind = GRAPH_HOST;
	return r;
}

int merge_legs_open(const struct merge_problem *p, unsigned int paths_max, struct merge_legs *ret)
{
	const uint32_t machines = p->graph->machines;
	_cleanup_(graph_freep) struct graph *calm = NULL;
	_cleanup_(freep) uint32_t *queue = calloc(machines + 1, sizeof(*queue));
	_cleanup_(freep) uint32_t *seen = calloc(machines + 1, sizeof(*seen));
	_cleanup_(freep) uint32_t *by = calloc(machines + 1, sizeof(*by));
	struct walk w = { .p = p, .queue = queue, .seen = seen, .by = by };
	int r = queue && seen && by ? calm_make(p, &calm) : -ENOMEM;

	ret->at = calloc(machines + 1, sizeof(*ret->at));
	if (r == 0 && !ret->at)
		r = -ENOMEM;
	w.calm = calm;
	for (uint32_t i = 0; r == 0 && i < machines; i++) {
		ret->at[i] = ret->legs;
		if (i != p->root && (merge_sums_at(p, i) || is_gateway(p, i)))
			r = legs_from(&w, i, paths_max, ret);
	}
	if (r == 0)
		ret->at[machines] = ret->legs;
	return r;
}

void merge_legs_close(struct merge_legs *l)
{
	free(l->leg);
	free(l->at);
}
