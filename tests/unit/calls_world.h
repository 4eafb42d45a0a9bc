/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whole calls: the test holds the calls of all ranks, adds what they fill in as a node would, and
 * gives each the sum. The checks of a sealed job are added up beside the words.
 */
#ifndef TALLY_TESTS_UNIT_CALLS_WORLD_H
#define TALLY_TESTS_UNIT_CALLS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/call.h"
#include "client/seal.h"

enum {
	RANKS_MAX = 256,
	WINDOW = 4,
	PAYLOAD = 128,
	COUNT_MAX = 900,
	BYTES_MAX = COUNT_MAX * 8,
};

struct frame {
	struct tally_header h;
	uint64_t word[PAYLOAD / 8];
};

static struct world {
	uint64_t random;
	struct call_member member;
	struct call_options options;
	bool in_place;
	struct guesses guesses[RANKS_MAX];
	struct call call[RANKS_MAX];
	_Alignas(8) uint8_t in[RANKS_MAX][BYTES_MAX], out[RANKS_MAX][BYTES_MAX];
	const float *kept[RANKS_MAX]; /* NULL: nothing */
	float *lost[RANKS_MAX]; /* NULL: nobody asks */
	struct seal seal;
} w;

static inline void start(void)
{
	for (uint16_t rank = 0; rank < w.member.workers; rank++) {
		struct call_options o = w.options;

		o.in = w.in[rank];
		o.out = w.in_place ? w.in[rank] : w.out[rank];
		o.kept = w.kept[rank];
		o.lost = w.lost[rank];
		w.member.rank = rank;
		guesses_init(&w.guesses[rank]);
		assert_int_equal(call_init(&w.call[rank], &w.member, &o, &w.guesses[rank]), 0);
	}
}

static inline uint8_t largest(uint8_t a, uint8_t b) { return a > b ? a : b; }

/* What a node makes of entry `e`; and are the seals of the parts that of the sum? */
static inline struct frame sum_of(uint32_t e)
{
	struct frame sum = { 0 };
	uint64_t sealed = 0, votes = 0, vote;

	for (uint16_t rank = 0; rank < w.member.workers; rank++) {
		struct frame one = { 0 };

		call_fill(&w.call[rank], e, &one.h, &vote);
		votes += vote;
		assert_true(!rank || one.h.lane == sum.h.lane);
		sum.h.lane = one.h.lane;
		sum.h.recipient = one.h.recipient;
		sum.h.blocks = largest(sum.h.blocks, one.h.blocks);
		sum.h.flags |= one.h.flags;
		sum.h.scale = largest(sum.h.scale, one.h.scale);
		sum.h.scale_ahead = largest(sum.h.scale_ahead, one.h.scale_ahead);
		for (size_t i = 0; i < (size_t)one.h.blocks * TALLY_BLOCK_WORDS; i++)
			sum.word[i] += one.word[i];
		sealed += seal_words(&w.seal, one.h.lane, one.word,
				     (size_t)one.h.blocks * TALLY_BLOCK_WORDS);
	}
	assert_true(sum.h.blocks * TALLY_BLOCK_BYTES <= PAYLOAD);
	assert_true(seal_words(&w.seal, sum.h.lane, sum.word,
			       (size_t)sum.h.blocks * TALLY_BLOCK_WORDS) == sealed);
	assert_true(seal_votes_agree(&w.seal, votes * w.seal.vote, &sum.h,
				     call_place(&w.call[0], e), w.member.workers));
	return sum;
}

static inline bool round_is_run(void)
{
	uint32_t entries = w.call[0].entries;
	int more = 0;

	for (uint32_t e = 0; e < entries; e++) {
		struct frame sum = sum_of(e);

		for (uint16_t rank = 0; rank < w.member.workers; rank++)
			call_take(&w.call[rank], e, &sum.h);
	}
	for (uint16_t rank = 0; rank < w.member.workers; rank++) {
		int r = call_next_round(&w.call[rank]);

		assert_true(!rank || r == more);
		more = r;
	}
	return more;
}

static inline void done(void)
{
	for (uint16_t rank = 0; rank < w.member.workers; rank++)
		call_done(&w.call[rank]);
}

/* Returns the rounds that it took. */
static inline int run_once(void)
{
	int rounds = 1;

	start();
	while (round_is_run())
		rounds++;
	done();
	return rounds;
}

/* The same of an allreduce: all ranks have the same result. */
static inline int run(void)
{
	int rounds = run_once();

	for (uint16_t rank = 0; rank < w.member.workers; rank++)
		assert_memory_equal(w.out[rank], w.out[0],
				    w.options.count * call_element_bytes(&w.options));
	return rounds;
}

static inline void world_make(enum tally_dtype dtype, uint16_t workers, size_t count)
{
	w.member = (struct call_member){
		.workers = workers, .window = WINDOW, .payload_bytes = PAYLOAD, .sealed = true
	};
	w.options = (struct call_options){
		.verb = CALL_ALLREDUCE, .dtype = dtype, .op = TALLY_SUM, .count = count
	};
}

#endif
