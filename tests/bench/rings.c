// SPDX-License-Identifier: GPL-2.0-only
/*
 * How often a run that begins finds too few slots in a row although enough are free: a simulation
 * of a node of 4,096 slots, with rings of 16 to 1,024 slots (all sizes alike) that begin and end by
 * chance, and one ring waits for enough free slots whenever the node is full. Four ways to place a
 * ring; without moves it halves until it fits, as the agent does where nothing may move.
 *
 *	rings [SEEDS]	medians over seeds, and the 10th and 90th percentile
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/rings.h"

enum {
	SLOTS = 4096,
	RINGS_MAX = SLOTS,
	SMALLEST = 16,
	SIZES = 7, /* 16, 32 ... 1,024 */
	BEGINNINGS = 20000, /* of one seed */
	SEEDS_MAX = 1000,
};

struct node {
	unsigned int count;
	uint32_t free;
	struct ring ring[RINGS_MAX]; /* by base */
};

typedef uint32_t place_ring(const struct node *n, uint32_t wanted);

/* The gap before ring `i`; behind the last one: the rest. */
static uint32_t gap_of(const struct node *n, unsigned int i, uint32_t *ret_begin)
{
	uint32_t end = i < n->count ? n->ring[i].base : SLOTS;

	*ret_begin = i ? n->ring[i - 1].base + n->ring[i - 1].slots : 0;
	return end - *ret_begin;
}

static uint32_t first_fit(const struct node *n, uint32_t wanted)
{
	uint32_t begin;

	for (unsigned int i = 0; i <= n->count; i++)
		if (gap_of(n, i, &begin) >= wanted)
			return begin;
	return RINGS_NONE;
}

static uint32_t best_fit(const struct node *n, uint32_t wanted)
{
	uint32_t best = RINGS_NONE, least = UINT32_MAX, begin;

	for (unsigned int i = 0; i <= n->count; i++) {
		uint32_t gap = gap_of(n, i, &begin);

		if (gap >= wanted && gap < least) {
			least = gap;
			best = begin;
		}
	}
	return best;
}

static uint32_t aligned(const struct node *n, uint32_t wanted)
{
	return rings_place(n->ring, n->count, SLOTS, wanted);
}

static const struct way {
	const char *name;
	place_ring *place;
	bool moves;
} ways[] = {
	{ "first fit", first_fit, false },
	{ "best fit", best_fit, false },
	{ "aligned", aligned, false },
	{ "aligned, and others move", aligned, true },
};

enum {
	WAYS = sizeof(ways) / sizeof(*ways),
};

struct score {
	double smaller; /* of 100 that begin, so many with a smaller ring */
	double moves; /* for 100 that begin */
	unsigned int most; /* moves for one */
};

static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % limit;
}

static void put(struct node *n, uint32_t base, uint32_t slots)
{
	unsigned int at = n->count++;

	for (; at && n->ring[at - 1].base > base; at--)
		n->ring[at] = n->ring[at - 1];
	n->ring[at] = (struct ring){ .base = base, .slots = slots };
	n->free -= slots;
}

static void drop(struct node *n, unsigned int i)
{
	n->free += n->ring[i].slots;
	memmove(&n->ring[i], &n->ring[i + 1], (--n->count - i) * sizeof(*n->ring));
}

static int by_base(const void *a, const void *b)
{
	const struct ring *x = a, *y = b;

	return (x->base > y->base) - (x->base < y->base);
}

static unsigned int make_room(struct node *n, uint32_t wanted)
{
	uint32_t *base = NULL;
	int r = rings_make_room(n->ring, n->count, SLOTS, wanted, &base);

	if (r < 0)
		errx(1, "no room for %u, and %u are free", wanted, n->free);
	for (unsigned int i = 0; i < n->count; i++)
		n->ring[i].base = base[i];
	qsort(n->ring, n->count, sizeof(*n->ring), by_base);
	free(base);
	return r;
}

static void begin(struct node *n, const struct way *way, uint32_t wanted, struct score *s)
{
	uint32_t base = way->place(n, wanted);
	unsigned int moves = 0;

	if (base == RINGS_NONE && way->moves) {
		moves = make_room(n, wanted);
		base = way->place(n, wanted);
	}
	s->smaller += base == RINGS_NONE;
	s->moves += moves;
	s->most = moves > s->most ? moves : s->most;
	while (base == RINGS_NONE)
		base = way->place(n, wanted /= 2);
	put(n, base, wanted);
}

static struct score run(const struct way *way, uint64_t seed)
{
	static struct node n;
	struct score s = { 0 };

	n.count = 0;
	n.free = SLOTS;
	random_state = seed * 2 + 1;
	for (unsigned int i = 0; i < BEGINNINGS; i++) {
		uint32_t wanted = SMALLEST << random_below(SIZES);

		while (n.free < wanted && n.count)
			drop(&n, random_below(n.count));
		begin(&n, way, wanted, &s);
	}
	s.smaller *= 100.0 / BEGINNINGS;
	s.moves *= 100.0 / BEGINNINGS;
	return s;
}

static int by_smaller(const void *a, const void *b)
{
	const struct score *x = a, *y = b;

	if (x->smaller != y->smaller)
		return x->smaller < y->smaller ? -1 : 1;
	return (x->moves > y->moves) - (x->moves < y->moves);
}

int main(int argc, char **argv)
{
	static struct score score[SEEDS_MAX];
	unsigned int seeds = argc > 1 ? strtoul(argv[1], NULL, 10) : 50;

	if (!seeds || seeds > SEEDS_MAX)
		errx(2, "usage: rings [SEEDS], 1 to %d", SEEDS_MAX);
	printf("%-26s %-26s %10s %10s\n", "", "smaller rings, % of runs", "moves, %", "most");
	for (unsigned int w = 0; w < WAYS; w++) {
		unsigned int most = 0;

		for (unsigned int i = 0; i < seeds; i++) {
			score[i] = run(&ways[w], i);
			most = score[i].most > most ? score[i].most : most;
		}
		qsort(score, seeds, sizeof(*score), by_smaller);
		printf("%-26s %5.1f (%.1f to %.1f) %17.1f %10u\n", ways[w].name,
		       score[seeds / 2].smaller, score[seeds / 10].smaller,
		       score[seeds * 9 / 10].smaller, score[seeds / 2].moves, most);
	}
	return 0;
}
