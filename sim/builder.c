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

bool builder_way(struct builder *b, uint32_t at, uint32_t to, uint32_t next)
{
	uint32_t link = 0;

	while (link < b->links && (b->link[link].from != at || b->link[link].to != next))
		link++;
	if (link == b->links)
		return b->error;
	b->way = with_room(b, b->way, b->ways, &b->way_room, BUILDER_WAYS_MAX, sizeof(*b->way));
	if (!b->error)
		b->way[b->ways++] = (struct reach_way){ at, to, link };
	return true;
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
	t->way = TAKE_PTR(b->way);
	t->ways = (unsigned int)b->ways;
	return 0;
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
