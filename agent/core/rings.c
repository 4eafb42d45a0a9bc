// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "rings.h"

enum {
	TRIES_MAX = 2048, /* blocks that one search empties: some milliseconds, with 1,000 rings */
};

static uint64_t end_of(const struct ring *r) { return (uint64_t)r->base + r->slots; }

/* --- a place --------------------------------------------------------------------------------- */

/* The largest hole that begins at `at` and ends by `end`. */
static uint64_t hole_at(uint64_t at, uint64_t end)
{
	uint64_t size = at ? at & -at : 1ull << 32;

	while (size > end - at)
		size /= 2;
	return size;
}

uint32_t rings_place(const struct ring *ring, unsigned int count, uint32_t slots, uint32_t wanted)
{
	uint64_t at = 0, best_size = UINT64_MAX;
	uint32_t best = RINGS_NONE;

	for (unsigned int i = 0; i <= count; i++) {
		uint64_t end = i < count && ring[i].base < slots ? ring[i].base : slots;

		while (at < end) {
			uint64_t size = hole_at(at, end);

			if (size >= wanted && size < best_size) {
				best_size = size;
				best = at;
			}
			at += size;
		}
		if (i < count && end_of(&ring[i]) > at)
			at = end_of(&ring[i]);
	}
	return best;
}

/* --- rings that move ------------------------------------------------------------------------- */

/* A ring while places are sought. */
struct spot {
	struct ring at;
	uint32_t was; /* base */
	unsigned int index; /* in what the caller gave */
};

/* All rings, by base; and blocks that are kept empty, which have the index NOBODY. */
struct shelf {
	unsigned int count, room;
	uint32_t slots;
	struct spot *spot;
	struct ring *ring; /* the same as in spots, for rings_place() */
};

enum {
	NOBODY = UINT32_MAX,
	DEPTH_MAX = 33, /* each block within another one is smaller */
};

static void shelf_close(struct shelf *s)
{
	free(s->spot);
	free(s->ring);
}

/* With room for one block more in each depth. -ENOMEM. */
static int shelf_make(unsigned int count, uint32_t slots, struct shelf *ret)
{
	*ret = (struct shelf){ .slots = slots, .room = count + DEPTH_MAX };
	ret->spot = calloc(ret->room, sizeof(*ret->spot));
	ret->ring = calloc(ret->room, sizeof(*ret->ring));
	return ret->spot && ret->ring ? 0 : -ENOMEM;
}

static void shelf_copy(struct shelf *to, const struct shelf *from)
{
	to->count = from->count;
	memcpy(to->spot, from->spot, from->count * sizeof(*from->spot));
	memcpy(to->ring, from->ring, from->count * sizeof(*from->ring));
}

static void shelf_put(struct shelf *s, const struct spot *spot)
{
	unsigned int at = s->count++;

	for (; at && s->spot[at - 1].at.base > spot->at.base; at--) {
		s->spot[at] = s->spot[at - 1];
		s->ring[at] = s->ring[at - 1];
	}
	s->spot[at] = *spot;
	s->ring[at] = spot->at;
}

static struct spot shelf_take(struct shelf *s, unsigned int at)
{
	const struct spot spot = s->spot[at];

	s->count--;
	memmove(&s->spot[at], &s->spot[at + 1], (s->count - at) * sizeof(*s->spot));
	memmove(&s->ring[at], &s->ring[at + 1], (s->count - at) * sizeof(*s->ring));
	return spot;
}

static void shelf_drop(struct shelf *s, uint32_t base)
{
	for (unsigned int i = 0; i < s->count; i++)
		if (s->spot[i].index == NOBODY && s->spot[i].at.base == base) {
			shelf_take(s, i);
			return;
		}
}

/* What it costs: rings that moved, then their slots. */
struct cost {
	unsigned int rings;
	uint64_t slots;
};

static bool is_less(struct cost a, struct cost b)
{
	return a.rings < b.rings || (a.rings == b.rings && a.slots < b.slots);
}

static struct cost shelf_cost(const struct shelf *s)
{
	struct cost cost = { 0, 0 };

	for (unsigned int i = 0; i < s->count; i++)
		if (s->spot[i].at.base != s->spot[i].was) {
			cost.rings++;
			cost.slots += s->spot[i].at.slots;
		}
	return cost;
}

/* --- blocks that are emptied ----------------------------------------------------------------- */

/* A block that may be emptied, and what is in it. */
struct block {
	uint32_t base;
	struct cost holds;
};

/* False: what is in it stays, or is as large. */
static bool block_look(const struct shelf *s, uint32_t base, uint32_t size, struct block *ret)
{
	*ret = (struct block){ .base = base };
	for (unsigned int i = 0; i < s->count && s->ring[i].base < (uint64_t)base + size; i++) {
		if (end_of(&s->ring[i]) <= base)
			continue;
		if (s->ring[i].fixed || s->ring[i].slots >= size)
			return false;
		ret->holds.rings++;
		ret->holds.slots += s->ring[i].slots;
	}
	return true;
}

static int by_cost(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	if (is_less(x->holds, y->holds))
		return -1;
	if (is_less(y->holds, x->holds))
		return 1;
	return (x->base > y->base) - (x->base < y->base);
}

/* The blocks of this size with rings, those first of which least is to be moved. -ENOMEM. */
static int blocks_find(const struct shelf *s, uint32_t size, struct block **ret,
		       unsigned int *ret_count)
{
	struct block *block = calloc(s->count + 1, sizeof(*block));
	uint64_t next = 0; /* all blocks before it were looked at */
	unsigned int count = 0;

	if (!block)
		return -ENOMEM;
	for (unsigned int i = 0; i < s->count; i++) {
		const uint32_t base = s->ring[i].base / size * size;

		if (base < next || (uint64_t)base + size > s->slots)
			continue;
		next = (uint64_t)base + size;
		count += block_look(s, base, size, &block[count]);
	}
	qsort(block, count, sizeof(*block), by_cost);
	*ret = block;
	*ret_count = count;
	return 0;
}

static int shelf_clear(struct shelf *s, uint32_t size, unsigned int *tries, uint32_t *ret);

/* Of those in the block, the largest; s->count: there is none. */
static unsigned int largest_in(const struct shelf *s, uint32_t base, uint32_t size)
{
	unsigned int best = s->count;

	for (unsigned int i = 0; i < s->count && s->ring[i].base < (uint64_t)base + size; i++)
		if (end_of(&s->ring[i]) > base && s->spot[i].index != NOBODY &&
		    (best == s->count || s->ring[i].slots > s->ring[best].slots))
			best = i;
	return best;
}

/* What is in the block goes elsewhere, the largest first. The block stays, and is nobody's. */
static int block_empty(struct shelf *s, uint32_t base, uint32_t size, unsigned int *tries)
{
	const struct spot kept = { .at = { base, size, true }, .was = base, .index = NOBODY };
	struct spot *out = calloc(s->count + 1, sizeof(*out));
	unsigned int count = 0, at;
	int r = out ? 0 : -ENOMEM;

	while (r == 0 && (at = largest_in(s, base, size)) < s->count)
		out[count++] = shelf_take(s, at);
	if (r == 0)
		shelf_put(s, &kept);
	for (unsigned int i = 0; r == 0 && i < count; i++) {
		out[i].at.base = rings_place(s->ring, s->count, s->slots, out[i].at.slots);
		if (out[i].at.base == RINGS_NONE)
			r = shelf_clear(s, out[i].at.slots, tries, &out[i].at.base);
		if (r == 0)
			shelf_put(s, &out[i]);
	}
	free(out);
	return r;
}

/* Makes a block free, where none is: *ret. Blocks that hold little are tried first. */
static int shelf_clear(struct shelf *s, uint32_t size, unsigned int *tries, uint32_t *ret)
{
	_cleanup_(freep) struct block *block = NULL;
	_cleanup_(shelf_close) struct shelf best = { 0 }, now = { 0 };
	struct cost least = { UINT32_MAX, UINT64_MAX };
	unsigned int blocks = 0;
	int r = blocks_find(s, size, &block, &blocks);

	if (r == 0)
		r = shelf_make(s->room - DEPTH_MAX, s->slots, &best);
	if (r == 0)
		r = shelf_make(s->room - DEPTH_MAX, s->slots, &now);
	for (unsigned int i = 0; r == 0 && i < blocks && *tries; i++) {
		if (!is_less(block[i].holds, least))
			break; /* nor do those that come */
		--*tries;
		shelf_copy(&now, s);
		r = block_empty(&now, block[i].base, size, tries);
		if (r == 0 && is_less(shelf_cost(&now), least)) {
			shelf_drop(&now, block[i].base);
			shelf_copy(&best, &now);
			least = shelf_cost(&now);
			*ret = block[i].base;
		}
		r = r == -ENOSPC ? 0 : r;
	}
	if (r == 0 && least.rings == UINT32_MAX)
		r = -ENOSPC;
	if (r == 0)
		shelf_copy(s, &best);
	return r;
}

static int by_base(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	return (x->at.base > y->at.base) - (x->at.base < y->at.base);
}

/* How many have moved. */
static int bases_of(const struct shelf *s, uint32_t *base)
{
	for (unsigned int i = 0; i < s->count; i++)
		base[s->spot[i].index] = s->spot[i].at.base;
	return (int)shelf_cost(s).rings;
}

int rings_make_room(const struct ring *ring, unsigned int count, uint32_t slots, uint32_t wanted,
		    uint32_t **ret_base)
{
	_cleanup_(freep) uint32_t *base = calloc(count + 1, sizeof(*base));
	_cleanup_(shelf_close) struct shelf s = { 0 };
	unsigned int tries = TRIES_MAX;
	uint32_t free_base;
	int r = shelf_make(count, slots, &s);

	if (r < 0 || !base)
		return -ENOMEM;
	for (unsigned int i = 0; i < count; i++)
		s.spot[i] = (struct spot){ ring[i], ring[i].base, i };
	s.count = count;
	qsort(s.spot, count, sizeof(*s.spot), by_base);
	for (unsigned int i = 0; i < count; i++)
		s.ring[i] = s.spot[i].at;
	if (rings_place(s.ring, count, slots, wanted) == RINGS_NONE)
		r = shelf_clear(&s, wanted, &tries, &free_base);
	if (r < 0)
		return r;
	r = bases_of(&s, base);
	*ret_base = TAKE_PTR(base);
	return r;
}
