// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ways are walked as packets would be by reach.h: where one machine has none, by links that lead
 * nearer. In depth, once for each machine that ways lead to.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/owned.h"
#include "topology.h"

enum state {
	NEW,
	OPEN, /* on the path that is walked */
	DONE
};

struct step {
	uint32_t machine, next; /* which of its ways, or of its links */
	unsigned int line; /* of the way that led here; 0: none did */
};

struct walk {
	const struct topology *t;
	uint32_t *order; /* ways, by `to` and `at` */
	uint32_t *begin; /* [machines]: in `order`, of those to `to` */
	uint8_t *state; /* [machines] */
	uint32_t *seen; /* machines whose state is not NEW */
	struct step *step; /* the path */
	uint32_t *far; /* [machines]: to `to` */
	uint32_t to;
	unsigned int seens, steps, line;
	bool measured; /* `far` is of this `to` */
	int astray;
	struct why *why;
};

static void walk_close(struct walk *w)
{
	free(w->order);
	free(w->begin);
	free(w->state);
	free(w->seen);
	free(w->step);
	free(w->far);
}

static int by_end(const void *a, const void *b, void *context)
{
	const struct reach_way *way = context;
	const struct reach_way *x = &way[*(const uint32_t *)a], *y = &way[*(const uint32_t *)b];

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x > y) - (x < y);
}

static int walk_open(struct walk *w)
{
	const unsigned int machines = w->t->graph->machines;

	w->order = calloc(w->t->ways + 1, sizeof(*w->order));
	w->begin = calloc(machines + 1, sizeof(*w->begin));
	w->state = calloc(machines + 1, sizeof(*w->state));
	w->seen = calloc(machines + 1, sizeof(*w->seen));
	w->step = calloc(machines + 1, sizeof(*w->step));
	w->far = calloc(machines + 1, sizeof(*w->far));
	if (!w->order || !w->begin || !w->state || !w->seen || !w->step || !w->far)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->t->ways; i++)
		w->order[i] = i;
	for (uint32_t m = 0; m < machines; m++)
		w->begin[m] = GRAPH_NONE;
	qsort_r(w->order, w->t->ways, sizeof(*w->order), by_end, w->t->way);
	return 0;
}

/* Of all that is wrong, what the text says first is said. */
static void note(struct walk *w, unsigned int line, uint32_t machine, const char *what)
{
	if (w->astray++ > 0 && line >= w->line)
		return;
	w->line = line;
	why_say(w->why, 0, "line %u: packets for %s %s %s", line, w->t->name[w->to], what,
		w->t->name[machine]);
}

static const struct reach_way *way_of(const struct walk *w, uint32_t at, uint32_t i)
{
	const struct reach_way *way;

	if (w->begin[at] + i >= w->t->ways)
		return NULL;
	way = &w->t->way[w->order[w->begin[at] + i]];
	return way->at == at && way->to == w->to ? way : NULL;
}

/* Distances to `to`, once it turns out that they are needed. -ENOMEM. */
static int measure(struct walk *w)
{
	int r = w->measured ? 0 : graph_distances(w->t->graph, w->to, w->far);

	w->measured = r == 0;
	return r;
}

static bool leads_nearer(const struct walk *w, const struct graph_link *l)
{
	return w->far[l->to] != GRAPH_NONE && w->far[l->to] + 1 == w->far[l->from] &&
	       (l->to == w->to || w->t->graph->machine[l->to].kind != GRAPH_HOST);
}

/* Where else packets may go from here; GRAPH_NONE: all has been tried. *ret_line: of the way. */
static uint32_t next_of(const struct walk *w, struct step *s, unsigned int *ret_line)
{
	const struct graph *g = w->t->graph;
	const uint32_t first = g->leaving_at[s->machine], end = g->leaving_at[s->machine + 1];

	*ret_line = 0;
	if (w->begin[s->machine] != GRAPH_NONE) {
		const struct reach_way *way = way_of(w, s->machine, s->next++);

		*ret_line = way ? w->t->way_line[way - w->t->way] : 0;
		return way ? g->link[way->link].to : GRAPH_NONE;
	}
	while (first + s->next < end) {
		const struct graph_link *l = &g->link[g->leaving[first + s->next++]];

		if (leads_nearer(w, l))
			return l->to;
	}
	return GRAPH_NONE;
}

/* The line that the last way on the path comes from. */
static unsigned int last_line(const struct walk *w)
{
	unsigned int i = w->steps - 1;

	while (i > 0 && !w->step[i].line)
		i--;
	return w->step[i].line;
}

/* The first line of those that lead round from a machine on the path to itself. */
static unsigned int line_of_circle(const struct walk *w, uint32_t machine, unsigned int line)
{
	unsigned int i = w->steps;

	while (w->step[--i].machine != machine)
		if (w->step[i].line && (!line || w->step[i].line < line))
			line = w->step[i].line;
	return line;
}

/* Goes on to a machine that has not been seen. -ENOMEM. */
static int enter(struct walk *w, uint32_t machine, unsigned int line)
{
	int r = w->begin[machine] == GRAPH_NONE ? measure(w) : 0;

	if (r < 0)
		return r;
	w->state[machine] = OPEN;
	w->seen[w->seens++] = machine;
	w->step[w->steps++] = (struct step){ .machine = machine, .line = line };
	if (w->begin[machine] == GRAPH_NONE && w->far[machine] == GRAPH_NONE)
		note(w, last_line(w), machine, "have no path from");
	return 0;
}

static int walk_from(struct walk *w, uint32_t at)
{
	int r = enter(w, at, 0);

	while (w->steps && r == 0) {
		struct step *s = &w->step[w->steps - 1];
		unsigned int line;
		uint32_t next = next_of(w, s, &line);

		if (next == GRAPH_NONE) {
			w->state[s->machine] = DONE;
			w->steps--;
		} else if (next == w->to) {
			continue;
		} else if (w->t->graph->machine[next].kind == GRAPH_HOST) {
			note(w, line, next, "end at another host,");
		} else if (w->state[next] == OPEN) {
			note(w, line_of_circle(w, next, line), next, "come round again to");
		} else if (w->state[next] == NEW) {
			r = enter(w, next, line);
		}
	}
	return r;
}

/* The ways to one machine: order[first] and those behind it, before order[end]. */
static int walk_all(struct walk *w, uint32_t first, uint32_t end)
{
	int r = 0;

	w->to = w->t->way[w->order[first]].to;
	w->measured = false;
	for (uint32_t i = end; i-- > first;)
		w->begin[w->t->way[w->order[i]].at] = i;
	for (uint32_t i = first; i < end && r == 0; i++)
		if (w->state[w->t->way[w->order[i]].at] == NEW)
			r = walk_from(w, w->t->way[w->order[i]].at);
	for (uint32_t i = first; i < end; i++)
		w->begin[w->t->way[w->order[i]].at] = GRAPH_NONE;
	while (w->seens)
		w->state[w->seen[--w->seens]] = NEW;
	return r;
}

int topology_astray(const struct topology *t, struct why *why)
{
	_cleanup_(walk_close) struct walk w = { .t = t, .why = why };
	int r = t->ways ? walk_open(&w) : 0;

	for (uint32_t i = 0, end; i < t->ways && r == 0; i = end) {
		end = i;
		while (end < t->ways && t->way[w.order[end]].to == t->way[w.order[i]].to)
			end++;
		r = walk_all(&w, i, end);
	}
	return r < 0 ? r : w.astray;
}
