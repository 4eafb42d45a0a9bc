// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several roots: every element of a call is at exactly one of them, and the bits of results are
 * those of one root, whatever the shares. The parts run without a network, as in test_call.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/shards.h"
#include "tests/unit/random.h"

enum {
	RANKS = 3,
	WINDOW = 4,
	PAYLOAD = 128,
	ELEMENT_BYTES_MAX = 8,
	COUNT_MAX = 40 * PAYLOAD,
	BYTES = RANKS * COUNT_MAX * ELEMENT_BYTES_MAX,
	UNTOUCHED = 0xa5,
};

static const struct shards roots[] = {
	{ 1, { { .share = 1 } } },
	{ 2, { { .share = 1 }, { .share = 1 } } },
	{ 2, { { .share = 1 }, { .share = SHARE_MAX } } },
	{ 2, { { .share = SHARE_MAX }, { .share = 1 } } },
	{ 3, { { .share = 2 }, { .share = 1 }, { .share = 4 } } },
	{ 3, { { .share = 5 }, { .share = 5 }, { .share = 5 } } },
};

enum {
	ROOTS = sizeof(roots) / sizeof(*roots)
};

static const enum tally_dtype dtypes[] = { TALLY_INT32, TALLY_INT64, TALLY_FLOAT32 };

/* --- the split */

static void assert_covers(const struct shards *s, const struct call_options *whole)
{
	const size_t unit = call_chunk_elements(PAYLOAD, RANKS, whole);
	const uint8_t *at = whole->in;
	size_t count = 0;

	for (unsigned int i = 0; i < s->count; i++) {
		struct call_options part = shards_part(s, i, PAYLOAD, RANKS, whole);

		assert_int_equal(part.whole, s->count > 1 ? whole->count : 0);
		assert_int_equal(part.verb, whole->verb);
		if (!part.count)
			continue;
		assert_int_equal(count % unit, 0); /* a boundary is one of chunks */
		assert_int_equal(part.first, count);
		assert_ptr_equal(part.in, at + count * call_element_bytes(whole));
		assert_ptr_equal((uint8_t *)part.out - (uint8_t *)whole->out,
				 count * call_element_bytes(whole));
		count += part.count;
	}
	assert_int_equal(count, whole->count);
}

static void every_element_is_at_exactly_one_root(void **state)
{
	static uint8_t in[COUNT_MAX * ELEMENT_BYTES_MAX], out[sizeof(in)];

	(void)state;
	for (int verb = CALL_ALLREDUCE; verb < CALL_BARRIER; verb++)
		for (int d = 0; d < 3; d++)
			for (int r = 0; r < ROOTS; r++)
				for (size_t count = 0; count < COUNT_MAX; count += 1 + count / 9) {
					struct call_options whole = { .verb = verb,
								      .dtype = dtypes[d],
								      .op = TALLY_SUM,
								      .count = count,
								      .in = in,
								      .out = out };

					assert_covers(&roots[r], &whole);
				}
}

static size_t part_count(const struct shards *s, unsigned int which, size_t count)
{
	struct call_options whole = {
		.verb = CALL_ALLREDUCE, .dtype = TALLY_INT64, .op = TALLY_SUM, .count = count
	};

	return shards_part(s, which, PAYLOAD, RANKS, &whole).count;
}

static void parts_are_as_large_as_shares(void **state)
{
	const size_t unit = PAYLOAD / 8;

	(void)state;
	assert_int_equal(part_count(&roots[1], 0, 10 * unit), 5 * unit);
	assert_int_equal(part_count(&roots[1], 1, 10 * unit), 5 * unit);
	assert_int_equal(part_count(&roots[4], 0, 700 * unit), 200 * unit);
	assert_int_equal(part_count(&roots[4], 1, 700 * unit), 100 * unit);
	assert_int_equal(part_count(&roots[4], 2, 700 * unit), 400 * unit);
	/* What is too little to split is the first root's. */
	assert_int_equal(part_count(&roots[1], 0, 1), 1);
	assert_int_equal(part_count(&roots[2], 0, unit), unit);
	assert_int_equal(part_count(&roots[2], 1, unit + 1), 1);
	/* The largest call there is, and one that is too large. */
	assert_int_equal(part_count(&roots[1], 0, (1ull << CALL_COUNT_BITS) - unit) +
				 part_count(&roots[1], 1, (1ull << CALL_COUNT_BITS) - unit),
			 (1ull << CALL_COUNT_BITS) - unit);
	assert_int_equal(part_count(&roots[1], 0, SIZE_MAX / 64), SIZE_MAX / 64);
	assert_int_equal(part_count(&roots[1], 1, SIZE_MAX / 64), 0);
}

/* --- what comes out */

struct frame {
	struct tally_header h;
	uint64_t word[PAYLOAD / 8];
};

/* Each rank's buffers, whose parts are at the roots. */
struct buffers {
	uint8_t in[RANKS][BYTES], out[RANKS][BYTES];
};

static struct frame sum_entry(struct call *call, uint32_t e)
{
	struct frame sum = { 0 };
	uint64_t vote;

	for (int rank = 0; rank < RANKS; rank++) {
		struct frame one = { 0 };

		call_fill(&call[rank], e, &one.h, &vote);
		sum.h.lane = one.h.lane;
		sum.h.recipient = one.h.recipient;
		sum.h.flags |= one.h.flags;
		if (one.h.scale > sum.h.scale)
			sum.h.scale = one.h.scale;
		if (one.h.scale_ahead > sum.h.scale_ahead)
			sum.h.scale_ahead = one.h.scale_ahead;
		for (size_t i = 0; i < (size_t)one.h.blocks * TALLY_BLOCK_WORDS; i++)
			sum.word[i] += one.word[i];
		if (one.h.blocks)
			sum.h.blocks = one.h.blocks;
	}
	return sum;
}

/* A root's part on all ranks, to its end. */
static void run_part(const struct shards *s, unsigned int which, const struct call_options *options,
		     struct buffers *b, struct guesses *guesses)
{
	struct call call[RANKS];
	bool more = true;

	for (int rank = 0; rank < RANKS; rank++) {
		struct call_member member = {
			.rank = rank, .workers = RANKS, .window = WINDOW, .payload_bytes = PAYLOAD
		};
		struct call_options whole = *options, part;

		whole.in = b->in[rank];
		whole.out = whole.verb == CALL_BROADCAST ? b->in[rank] : b->out[rank];
		part = shards_part(s, which, PAYLOAD, RANKS, &whole);
		assert_int_equal(call_init(&call[rank], &member, &part, &guesses[rank]), 0);
	}
	while (more && call[0].entries) {
		for (uint32_t e = 0; e < call[0].entries; e++) {
			struct frame sum = sum_entry(call, e);

			for (int rank = 0; rank < RANKS; rank++)
				call_take(&call[rank], e, &sum.h);
		}
		for (int rank = 0; rank < RANKS; rank++)
			more = call_next_round(&call[rank]);
	}
	for (int rank = 0; rank < RANKS; rank++)
		call_done(&call[rank]);
}

static void fill(struct buffers *b, enum tally_dtype dtype, uint64_t seed)
{
	memset(b->out, UNTOUCHED, sizeof(b->out));
	for (int rank = 0; rank < RANKS; rank++)
		for (size_t i = 0; i < BYTES / 4; i++) {
			uint32_t bits = (uint32_t)random_below(&seed, UINT32_MAX);
			float f = (float)(int32_t)bits * (i / 40 % 3 ? 1e-20f : 3e9f);

			memcpy(b->in[rank] + 4 * i, dtype == TALLY_FLOAT32 ? (void *)&f : &bits, 4);
		}
}

static void run(const struct shards *s, const struct call_options *options, struct buffers *b)
{
	struct guesses guesses[RANKS];

	fill(b, options->dtype, 99);
	for (unsigned int i = 0; i < s->count; i++) {
		for (int rank = 0; rank < RANKS; rank++)
			guesses_init(&guesses[rank]);
		run_part(s, i, options, b, guesses);
	}
}

/* Floats, too: a chunk's scale is that of its own elements, and chunks are the same. */
static void bits_are_those_of_one_root(void **state)
{
	static const size_t counts[] = { 1, 33, 200, 1000 };
	struct buffers *one = malloc(sizeof(*one)), *several = malloc(sizeof(*several));

	(void)state;
	for (int verb = CALL_ALLREDUCE; verb < CALL_BARRIER; verb++)
		for (int i = 0; i < 3 * 4; i++) {
			struct call_options o = { .verb = verb,
						  .dtype = dtypes[i % 3],
						  .op = i % 2 ? TALLY_AVG : TALLY_SUM,
						  .root = 1,
						  .count = counts[i / 3] };

			run(&roots[0], &o, one);
			assert_memory_not_equal(one, several, sizeof(*one));
			for (int r = 1; r < ROOTS; r++) {
				run(&roots[r], &o, several);
				assert_memory_equal(one, several, sizeof(*one));
			}
			memset(several, 0, sizeof(*several));
		}
	free(one);
	free(several);
}

/* --- what ranks must agree in */

static void all_of_the_roots_is_in_the_agreement(void **state)
{
	const struct shards usual = { 3, { { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 10, 11, 12 } } };
	struct shards other[6] = { usual, usual, usual, usual, usual, usual };
	uint64_t ours = shards_agreement(&usual, 1);

	(void)state;
	assert_int_equal(shards_agreement(&roots[0], 0), 0);
	assert_int_equal(ours & 0xff, 2 << 4 | 1);
	assert_int_equal(ours >> 8, shards_agreement(&usual, 2) >> 8);
	other[0].root[0].job++;
	other[1].root[1].epoch++;
	other[2].root[2].share++;
	other[3].root[2].nonce++;
	other[4].count = 2;
	other[5].root[0] = usual.root[2];
	other[5].root[2] = usual.root[0];
	for (int i = 0; i < 6; i++)
		assert_true(shards_agreement(&other[i], 1) >> 8 != ours >> 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_element_is_at_exactly_one_root),
		cmocka_unit_test(parts_are_as_large_as_shares),
		cmocka_unit_test(bits_are_those_of_one_root),
		cmocka_unit_test(all_of_the_roots_is_in_the_agreement),
	};

	return cmocka_run_group_tests_name("shards", tests, NULL, NULL);
}
