// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "traffic_private.h"

void traffic_index_init(struct index *x, unsigned int max)
{
	x->max = max;
	for (unsigned int i = 0; i < max; i++)
		x->entry[i].place = i;
}

unsigned int traffic_index_position(const struct index *x, uint32_t id)
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

int traffic_index_find(const struct index *x, uint32_t id)
{
	unsigned int at = traffic_index_position(x, id);

	return at < x->count && x->entry[at].id == id ? (int)x->entry[at].place : -ENOENT;
}

int traffic_index_add(struct index *x, uint32_t id)
{
	unsigned int at = traffic_index_position(x, id), place;

	if (x->count == x->max)
		return -ENOSPC;
	place = x->entry[x->count].place;
	memmove(&x->entry[at + 1], &x->entry[at], (x->count - at) * sizeof(*x->entry));
	x->entry[at].id = id;
	x->entry[at].place = place;
	x->count++;
	return (int)place;
}

void traffic_index_remove(struct index *x, unsigned int at)
{
	unsigned int place = x->entry[at].place;

	x->count--;
	memmove(&x->entry[at], &x->entry[at + 1], (x->count - at) * sizeof(*x->entry));
	x->entry[x->count].place = place;
}
