// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where rings lie, and which of them move; TALLY_SEED=n runs one random node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/rings.h"
#include "tests/unit/random.h"

enum {
	RINGS_MAX = 128,
	SMALL = 16, /* slots of a node of which all that can be done is tried */
	SMALL_SEEDS = 3000,
	LARGE = 4096,
	LARGE_SEEDS = 300,
	CHANGES = 200, /* of a large node */
};

struct node {
	uint32_t slots;
	unsigned int count;
	struct ring ring[RINGS_MAX]; /* by base */
};

static uint32_t free_slots(const struct node *n)
{
	uint32_t left = n->slots;

	for (unsigned int i = 0; i < n->count; i++)
		left -= n->ring[i].slots;
	return left;
}

static int by_base(const void *a, const void *b)
{
	const struct ring *x = a, *y = b;

	return (x->base > y->base) - (x->base < y->base);
}

static void add(struct node *n, uint32_t base, uint32_t slots)
{
	assert_true(n->count < RINGS_MAX);
	n->ring[n->count++] = (struct ring){ .base = base, .slots = slots };
	qsort(n->ring, n->count, sizeof(*n->ring), by_base);
}

static void drop(struct node *n, unsigned int i)
{
	memmove(&n->ring[i], &n->ring[i + 1], (--n->count - i) * sizeof(*n->ring));
}

static uint32_t place(const struct node *n, uint32_t wanted)
{
	return rings_place(n->ring, n->count, n->slots, wanted);
}

/* --- a place --------------------------------------------------------------------------------- */

static void a_ring_goes_into_the_smallest_hole_where_it_fits(void **state)
{
	struct node n = { .slots = 64 };

	assert_int_equal(place(&n, 64), 0);
	assert_int_equal(place(&n, 128), RINGS_NONE);
	add(&n, 0, 8);
	assert_int_equal(place(&n, 8), 8); /* and not the hole of 16 behind it */
	assert_int_equal(place(&n, 16), 16);
	assert_int_equal(place(&n, 32), 32);
	add(&n, 32, 4);
	assert_int_equal(place(&n, 4), 36);
	assert_int_equal(place(&n, 2), 36);
	assert_int_equal(place(&n, 32), RINGS_NONE);
	add(&n, 36, 4);
	assert_int_equal(place(&n, 4), 8); /* of two that are alike, the first */
}

static void holes_begin_at_multiples_of_their_size(void **state)
{
	struct node n = { .slots = 64 };

	add(&n, 0, 2); /* 2 .. 9: two holes of 2 and 4, and of that at 8 two slots */
	add(&n, 10, 2);
	assert_int_equal(place(&n, 8), 16);
	assert_int_equal(place(&n, 4), 4); /* 12 is as large */
	assert_int_equal(place(&n, 2), 2);
}

static void a_node_of_any_size_is_filled_to_its_last_slot(void **state)
{
	struct node n = { .slots = 100 };

	assert_int_equal(place(&n, 128), RINGS_NONE);
	assert_int_equal(place(&n, 64), 0);
	assert_int_equal(place(&n, 32), 64); /* so that 64 stay free */
	assert_int_equal(place(&n, 4), 96);
	add(&n, 96, 4);
	assert_int_equal(place(&n, 4), 64);
	add(&n, 64, 32);
	add(&n, 0, 64);
	assert_int_equal(place(&n, 1), RINGS_NONE);
	n.slots = UINT32_MAX;
	n.count = 0;
	assert_int_equal(place(&n, 1u << 31), 0);
}

static void rings_of_an_older_agent_lie_anywhere(void **state)
{
	struct node n = { .slots = 64 };

	add(&n, 3, 8);
	add(&n, 21, 16);
	assert_int_equal(place(&n, 2), 0);
	assert_int_equal(place(&n, 4), 12);
	assert_int_equal(place(&n, 8), 40);
	assert_int_equal(place(&n, 16), 48);
	assert_int_equal(place(&n, 32), RINGS_NONE);
}

/* --- rings that move ------------------------------------------------------------------------- */

/* What has moved; and all that is said of rings_make_room() holds. */
static int moved(struct node *n, uint32_t wanted)
{
	uint32_t *base = NULL;
	int r = rings_make_room(n->ring, n->count, n->slots, wanted, &base), moves = 0;

	if (r < 0) {
		assert_null(base);
		return r;
	}
	for (unsigned int i = 0; i < n->count; i++) {
		moves += base[i] != n->ring[i].base;
		assert_true(!n->ring[i].fixed || base[i] == n->ring[i].base);
		assert_true(base[i] == n->ring[i].base || base[i] % n->ring[i].slots == 0);
		n->ring[i].base = base[i];
	}
	free(base);
	assert_int_equal(moves, r);
	qsort(n->ring, n->count, sizeof(*n->ring), by_base);
	for (unsigned int i = 0; i < n->count; i++)
		assert_true(n->ring[i].base + n->ring[i].slots <=
			    (i + 1 < n->count ? n->ring[i + 1].base : n->slots));
	assert_int_not_equal(place(n, wanted), RINGS_NONE);
	return r;
}

static void where_there_is_room_nothing_moves(void **state)
{
	struct node n = { .slots = 64 };

	assert_int_equal(moved(&n, 64), 0);
	add(&n, 8, 8);
	assert_int_equal(moved(&n, 32), 0);
	assert_int_equal(moved(&n, 64), -ENOSPC);
	assert_int_equal(moved(&n, 128), -ENOSPC);
}

static void the_fewest_move_and_of_those_the_smallest(void **state)
{
	struct node n = { .slots = 64 };

	add(&n, 0, 16);
	add(&n, 32, 8);
	assert_int_equal(moved(&n, 32), 1);
	assert_int_equal(n.ring[0].base, 0);
	assert_int_equal(n.ring[1].base, 16);

	n.count = 0;
	add(&n, 0, 8);
	add(&n, 16, 2);
	add(&n, 24, 2);
	add(&n, 32, 16); /* would find a place if both small ones moved: three, and larger ones */
	assert_int_equal(moved(&n, 32), 3);
	assert_int_equal(n.ring[0].slots, 16);
	assert_int_equal(n.ring[0].base, 32);
}

static void what_stays_stays(void **state)
{
	struct node n = { .slots = 64 };

	add(&n, 0, 16);
	add(&n, 32, 8);
	n.ring[1].fixed = true;
	assert_int_equal(moved(&n, 32), 1);
	assert_int_equal(n.ring[0].slots, 8);
	n.ring[1].fixed = n.ring[0].fixed = true;
	n.ring[1].base = 0;
	assert_int_equal(moved(&n, 32), -ENOSPC);
}

/* One that must move finds no hole; smaller ones make one first. */
static void some_make_room_for_those_that_make_room(void **state)
{
	struct node n = { .slots = 64 };

	add(&n, 0, 16);
	add(&n, 24, 8); /* 16 .. 23 are free */
	add(&n, 32, 16);
	add(&n, 56, 8); /* 48 .. 55 are free */
	assert_int_equal(moved(&n, 16), 1);
	add(&n, place(&n, 16), 16);
	assert_int_equal(free_slots(&n), 0);
	n.count = 0;
	add(&n, 0, 8);
	add(&n, 16, 16);
	add(&n, 36, 4);
	add(&n, 48, 4);
	assert_int_equal(moved(&n, 32), 2);
}

/* --- random nodes ---------------------------------------------------------------------------- */

/* As runs begin and end. */
static void live(struct node *n, uint64_t *random, unsigned int changes, uint32_t largest)
{
	for (unsigned int i = 0; i < changes; i++) {
		uint32_t wanted = 1, base;

		while (wanted < largest && chance(random, 600))
			wanted *= 2;
		base = place(n, wanted);
		if (n->count &&
		    (base == RINGS_NONE || n->count == RINGS_MAX || chance(random, 300)))
			drop(n, random_below(random, n->count));
		else if (base != RINGS_NONE)
			add(n, base, wanted);
	}
}

/* Tries every way to put ring `i` and those behind it, if `out` has them, around what stays. */
static bool fit_all(const struct node *n, unsigned int out, unsigned int i, uint32_t used)
{
	for (; i < n->count && !(out >> i & 1); i++)
		;
	if (i == n->count)
		return true;
	for (uint32_t base = 0; base + n->ring[i].slots <= n->slots; base += n->ring[i].slots) {
		uint32_t bits = ((1u << n->ring[i].slots) - 1) << base;

		if (!(used & bits) && fit_all(n, out, i + 1, used | bits))
			return true;
	}
	return false;
}

/* Can these rings alone move, so that there is room? */
static bool room_is_made_by(const struct node *n, unsigned int out, uint32_t wanted)
{
	uint32_t used = 0;

	for (unsigned int i = 0; i < n->count; i++) {
		if (!(out >> i & 1))
			used |= ((1u << n->ring[i].slots) - 1) << n->ring[i].base;
		else if (n->ring[i].fixed)
			return false;
	}
	for (uint32_t base = 0; base + wanted <= n->slots; base += wanted) {
		uint32_t bits = ((1u << wanted) - 1) << base;

		if (!(used & bits) && fit_all(n, out, 0, used | bits))
			return true;
	}
	return false;
}

/* Rings, and their slots, of the best of all ways; -ENOSPC: there is none. */
static int best_of_all(const struct node *n, uint32_t wanted, uint32_t *ret_slots)
{
	int best = -ENOSPC;

	for (unsigned int out = 0; out < 1u << n->count; out++) {
		int rings = __builtin_popcount(out);
		uint32_t slots = 0;

		for (unsigned int i = 0; i < n->count; i++)
			slots += out >> i & 1 ? n->ring[i].slots : 0;
		if (best >= 0 && (rings > best || (rings == best && slots >= *ret_slots)))
			continue;
		if (room_is_made_by(n, out, wanted)) {
			best = rings;
			*ret_slots = slots;
		}
	}
	return best;
}

static uint32_t slots_moved(const struct node *from, const struct node *to)
{
	uint32_t slots = 0;

	for (unsigned int i = 0; i < from->count; i++) {
		bool stays = false;

		for (unsigned int k = 0; k < to->count; k++)
			stays |= from->ring[i].base == to->ring[k].base &&
				 from->ring[i].slots == to->ring[k].slots;
		slots += stays ? 0 : from->ring[i].slots;
	}
	return slots;
}

static const char *run_small(uint64_t seed)
{
	struct node n = { .slots = SMALL - seed % 3 }, before;
	uint64_t random = seed;
	uint32_t wanted, slots = 0, least = 0;
	int r, best;

	live(&n, &random, 30, SMALL / 2);
	while (n.count > 8)
		drop(&n, random_below(&random, n.count));
	for (unsigned int i = 0; i < n.count; i++)
		n.ring[i].fixed = chance(&random, 100);
	wanted = 1u << random_below(&random, 5);
	before = n;
	best = best_of_all(&n, wanted, &least);
	r = moved(&n, wanted);
	if (r >= 0)
		slots = slots_moved(&before, &n);
	if (r != best)
		return r < 0 ? "room is not found" : "more rings move than need to";
	return r > 0 && slots > least ? "larger rings move than need to" : NULL;
}

static void on_small_nodes_no_other_way_is_better(void **state)
{
	run_seeds(SMALL_SEEDS, run_small);
}

static const char *run_large(uint64_t seed)
{
	struct node n = { .slots = LARGE };
	uint64_t random = seed;
	uint32_t wanted = LARGE;

	live(&n, &random, CHANGES, LARGE / 4);
	while (wanted > free_slots(&n))
		wanted /= 2;
	return wanted && moved(&n, wanted) < 0 ? "no room, and enough slots are free" : NULL;
}

static void as_many_slots_as_are_free_come_to_be_in_a_row(void **state)
{
	run_seeds(LARGE_SEEDS, run_large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_goes_into_the_smallest_hole_where_it_fits),
		cmocka_unit_test(holes_begin_at_multiples_of_their_size),
		cmocka_unit_test(a_node_of_any_size_is_filled_to_its_last_slot),
		cmocka_unit_test(rings_of_an_older_agent_lie_anywhere),
		cmocka_unit_test(where_there_is_room_nothing_moves),
		cmocka_unit_test(the_fewest_move_and_of_those_the_smallest),
		cmocka_unit_test(what_stays_stays),
		cmocka_unit_test(some_make_room_for_those_that_make_room),
		cmocka_unit_test(on_small_nodes_no_other_way_is_better),
		cmocka_unit_test(as_many_slots_as_are_free_come_to_be_in_a_row),
	};

	return cmocka_run_group_tests_name("rings", tests, NULL, NULL);
}
