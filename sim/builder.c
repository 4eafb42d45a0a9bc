// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "builder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"

/* The array, with room for one more element of `bytes`; or as it was, and the error is kept. */
static void *with_room(struct builder *b, void *array, size_t count, size_t *room, size_t max,
		       size_t bytes)
{
	size_t larger = *room ? 2 * *room : 64;
	void *moved;

	if (b->error || count < *room)
		return array;
	if (count >= max) {
		b->error = -E2BIG;
		return array;
	}
	moved = reallocarray(array, larger, bytes);
	if (!moved) {
		b->error = -ENOMEM;
		return array;
	}
	*room = larger;
	return moved;
}

uint32_t builder_machine(struct builder *b, enum graph_kind kind, const char *format, ...)
{
	va_list values;

	b->machine = with_room(b, b->machine, b->machines, &b->machine_room, GRAPH_MACHINES_MAX,
			       sizeof(*b->machine));
	b->name = with_room(b, b->name, b->machines, &b->name_room, GRAPH_MACHINES_MAX,
			    sizeof(*b->name));
	if (b->error)
		return 0;
	b->machine[b->machines] = (struct graph_machine){
		.kind = kind,
		.slots = kind == GRAPH_NODE ? b->defaults.slots : 0,
	};
	va_start(values, format);
	vsnprintf(b->name[b->machines], sizeof(*b->name), format, values);
	va_end(values);
	return b->machines++;
}

static void one_way(struct builder *b, uint32_t from, uint32_t to, double rate)
{
	b->link = with_room(b, b->link, b->links, &b->link_room, GRAPH_LINKS_MAX, sizeof(*b->link));
	if (!b->error)
		b->link[b->links++] =
			(struct graph_link){ .from = from, .to = to, .capacity = rate };
}

void builder_cable(struct builder *b, uint32_t from, uint32_t to, double rate)
{
	if (rate == 0)
		rate = b->defaults.rate;
	one_way(b, from, to, rate);
	one_way(b, to, from, rate);
}

bool builder_way(struct builder *b, const struct builder_way *way)
{
	uint32_t link = 0;

	while (link < b->links && (b->link[link].from != way->at || b->link[link].to != way->next))
		link++;
	if (link == b->links)
		return b->error;
	b->way = with_room(b, b->way, b->ways, &b->way_room, BUILDER_WAYS_MAX, sizeof(*b->way));
	if (!b->error)
		b->way[b->ways++] = *way;
	return true;
}

static int by_end(const void *a, const void *b)
{
	const struct builder_way *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	if (x->next != y->next)
		return x->next < y->next ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static bool is_same(const struct builder_way *a, const struct builder_way *b)
{
	return a->at == b->at && a->to == b->to && a->next == b->next;
}

/*
 * `lines` lines say the same way: each cable has it, and if there are more lines than cables,
 * cables have it several times. So a text with a line for each cable, or for each of several
 * gateways behind one, shares packets as it says. Only counts if there is no room yet.
 */
static void add_cables(const struct builder_way *said, unsigned int lines, struct topology *t)
{
	const struct graph *g = t->graph;
	uint32_t begin = g->leaving_at[said->at], end = g->leaving_at[said->at + 1];
	unsigned int cables = 0, added = 0;

	for (uint32_t i = begin; i < end; i++)
		cables += g->link[g->leaving[i]].to == said->next;
	while (added < lines || added < cables)
		for (uint32_t i = begin; i < end && (added < lines || added < cables); i++) {
			if (g->link[g->leaving[i]].to != said->next)
				continue;
			if (t->way) {
				t->way[t->ways] = (struct reach_way){ said->at, said->to,
								      g->leaving[i] };
				t->way_line[t->ways] = said[added < lines ? added : 0].line;
			}
			t->ways++;
			added++;
		}
}

static void add_ways(const struct builder *b, struct topology *t)
{
	unsigned int lines;

	t->ways = 0;
	for (size_t i = 0; i < b->ways; i += lines) {
		lines = 1;
		while (i + lines < b->ways && is_same(&b->way[i], &b->way[i + lines]))
			lines++;
		add_cables(&b->way[i], lines, t);
	}
}

static int finish_ways(struct builder *b, struct topology *t)
{
	if (b->ways == 0)
		return 0;
	qsort(b->way, b->ways, sizeof(*b->way), by_end);
	add_ways(b, t);
	if (t->ways > BUILDER_WAYS_MAX)
		return -E2BIG;
	t->way = calloc(t->ways, sizeof(*t->way));
	t->way_line = calloc(t->ways, sizeof(*t->way_line));
	if (!t->way || !t->way_line)
		return -ENOMEM;
	add_ways(b, t);
	return 0;
}

static int finish(struct builder *b, struct topology *t)
{
	int r = graph_make(b->machine, b->machines, b->link, b->links, &t->graph);

	if (r < 0)
		return r;
	t->host = calloc(b->machines, sizeof(*t->host));
	if (!t->host)
		return -ENOMEM;
	for (uint32_t m = 0; m < b->machines; m++)
		if (b->machine[m].kind == GRAPH_HOST)
			t->host[t->hosts++] = m;
	t->name = TAKE_PTR(b->name);
	return finish_ways(b, t);
}

int builder_end(struct builder *b, struct topology **ret)
{
	_cleanup_(topology_freep) struct topology *t = calloc(1, sizeof(*t));
	int r = b->error;

	if (r == 0)
		r = t ? finish(b, t) : -ENOMEM;
	builder_free(b);
	if (r == 0)
		*ret = TAKE_PTR(t);
	return r;
}

void builder_free(struct builder *b)
{
	free(b->machine);
	free(b->name);
	free(b->link);
	free(b->way);
	*b = (struct builder){ .defaults = b->defaults };
}
