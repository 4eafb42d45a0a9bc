// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "traffic_private.h"

void traffic_index_init(struct index *x, void *things, size_t thing_bytes, unsigned int max)
{
	x->things = things;
	x->thing_bytes = thing_bytes;
	x->max = max;
	for (unsigned int i = 0; i < max; i++)
		x->entry[i].place = i;
}

/* Which entry the id has, or would have. */
static unsigned int position(const struct index *x, uint32_t id)
{
	unsigned int from = 0, to = x->count;

	while (from < to) {
		unsigned int middle = (from + to) / 2;

		if (x->entry[middle].id < id)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool has(const struct index *x, unsigned int at, uint32_t id)
{
	return at < x->count && x->entry[at].id == id;
}

void *traffic_index_at(const struct index *x, unsigned int at)
{
	return x->things + x->entry[at].place * x->thing_bytes;
}

void *traffic_index_find(const struct index *x, uint32_t id)
{
	unsigned int at = position(x, id);

	return has(x, at, id) ? traffic_index_at(x, at) : NULL;
}

void *traffic_index_add(struct index *x, uint32_t id)
{
	unsigned int at = position(x, id), place;

	if (x->count == x->max)
		return NULL;
	place = x->entry[x->count].place;
	memmove(&x->entry[at + 1], &x->entry[at], (x->count - at) * sizeof(*x->entry));
	x->entry[at].id = id;
	x->entry[at].place = place;
	x->count++;
	return memset(traffic_index_at(x, at), 0, x->thing_bytes);
}

void traffic_index_remove(struct index *x, unsigned int at)
{
	unsigned int place = x->entry[at].place;

	x->count--;
	memmove(&x->entry[at], &x->entry[at + 1], (x->count - at) * sizeof(*x->entry));
	x->entry[x->count].place = place;
}

void traffic_index_forget(struct index *x, uint32_t id)
{
	unsigned int at = position(x, id);

	if (has(x, at, id))
		traffic_index_remove(x, at);
}
