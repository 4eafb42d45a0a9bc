// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sealed jobs: what the ranks' checks add up to, that no changed sum passes, and whole workers
 * whose nodes lie (engine_world.h). Nodes that lie know the public check, and mend it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <tally/check.h>

#include "client/engine.h"
#include "client/lanes.h"
#include "client/seal.h"
#include "tests/unit/engine_calls.h"
#include "tests/unit/engine_world.h"
#include "tests/unit/random.h"

enum {
	WORDS = 32,
	SEQ = 40,
	CHANGES = 100000,
	LIES_SEEDS = 1500,
	SECRETS = 600,
	RANKS = 3,
};

static const struct tally_key secret = { { 0x0123456789abcdef, 0xfedcba9876543210 } };
static const uint64_t run = 0x1337c0de, call = 0xca11, place = 7ull << 32;

/* --- checks of a chunk */

/* What a chunk's contributions add up to, as a node adds. */
struct sum {
	struct tally_header h;
	uint64_t word[WORDS], check;
	uint32_t workers;
};

/* The same in a lane of more numbers, or of such without sign. */
static uint64_t numbers_random(uint64_t *random, const struct lane *l, uint32_t workers)
{
	unsigned int bits = l->number_bits;
	uint64_t word = 0;

	for (unsigned int at = 0; at < 64; at += bits) {
		bool is_signed = l->signs >> (at + bits - 1) & 1;
		uint64_t most = (UINT64_MAX >> (64 - bits) >> is_signed) / workers;
		uint64_t x = chance(random, 300) ? most : random_next(random) % (most + 1);

		word += (is_signed && chance(random, 500) ? -x : x) << at;
	}
	return word;
}

/* What a rank may send in a lane, as far as its limits. */
static uint64_t word_random(uint64_t *random, uint8_t lane, uint32_t workers, bool from_one)
{
	int32_t most = lane == TALLY_LANE_FLOAT32_WIDE ? (1 << 30) / (int)workers
						       : INT32_MAX / (int)workers;
	uint64_t r = random_next(random);
	int64_t low = chance(random, 300) ? (chance(random, 500) ? most : -most)
					  : (int64_t)(r % (2ull * (uint32_t)most + 1)) - most;
	int64_t high = (int64_t)(random_next(random) % (2ull * (uint32_t)most + 1)) - most;

	switch (lane) {
	case TALLY_LANE_INT32:
	case TALLY_LANE_FLOAT32:
		return ((uint64_t)high << 32) + (uint64_t)low;
	case TALLY_LANE_FLOAT32_WIDE:
		return chance(random, 300) ? 1ull << (r & 1 ? 37 : r & 2 ? 46 : 55) : (uint64_t)low;
	case TALLY_LANE_BYTES:
		return from_one ? r : 0;
	case TALLY_LANE_INT32_WIDE:
		return (uint64_t)(int64_t)(int32_t)r;
	case TALLY_LANE_UINT32_WIDE:
		return (uint32_t)r;
	default:
		return lane_at(lane)->number_bits == 64
			       ? r
			       : numbers_random(random, lane_at(lane), workers);
	}
}

static void contribute(struct sum *s, struct seal *seal, uint64_t *random, uint32_t rank,
		       uint64_t at_call, uint64_t at_place)
{
	struct seal_masks m = seal_masks(seal, tally_le32_get(s->h.seq), at_call, at_place, rank,
					 s->workers);
	uint64_t word[WORDS];

	for (int i = 0; i < WORDS; i++)
		s->word[i] += word[i] = word_random(random, s->h.lane, s->workers, rank == 0);
	s->check += seal_words(seal, s->h.lane, word, WORDS) + m.own;
}

static struct sum sum_of_all(struct seal *seal, uint64_t *random, uint8_t lane, uint32_t workers,
			     uint32_t seq)
{
	struct sum s = { .h = { .lane = lane, .seq = tally_le32(seq) }, .workers = workers };

	for (uint32_t rank = 0; rank < workers; rank++)
		contribute(&s, seal, random, rank, call, place);
	return s;
}

/* As a rank that waits for this chunk sees it. */
static bool is_taken(struct seal *seal, const struct sum *s, uint32_t seq)
{
	struct seal_masks m = seal_masks(seal, seq, call, place, 0, s->workers);
	uint64_t rest = s->check - m.all - seal_words(seal, s->h.lane, s->word, WORDS);

	return seal_votes_agree(seal, rest, &s->h, place, s->workers);
}

/* Made by another program, from the page. */
static void the_protocol_has_these_numbers(void **state)
{
	static const struct tally_key key = { { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };
	static const uint64_t random[] = { 1, 2, 3 };
	uint64_t word = (2ull << 32) - 1;
	struct seal seal;
	struct seal_masks m;

	(void)state;
	seal_begin_run(&seal, &key, run);
	assert_true(seal.factor[0] == 0xa70fec4e0e68ce5b);
	assert_true(seal.factor[1] == 0x978939001f88090b);
	assert_true(seal.vote == 0xf2d3cefbe0ecb9ff && seal.vote * seal.unvote == 1);
	for (uint32_t quarter = 1; quarter < 4; quarter++)
		seal_masks(&seal, quarter << 30, call, place, 0, 3);
	m = seal_masks(&seal, 5, call, place, 1, 3);
	assert_true(m.all == 0x21d32fa11e581a2a);
	assert_true(m.own == 0x1744b6da7df51031 - 0xfea9ebae3ddd9792);
	assert_true(seal_words(&seal, TALLY_LANE_INT32, &word, 1) + m.own + seal.vote ==
		    0x93711fda51ab7659);
	assert_true(seal.factor[LANE_FACTORS - 1] == 0xb31bee6eb3ffb24f);
	word = 0;
	for (int n = 0; n < 8; n++)
		word += (uint64_t)(n % 2 ? n + 1 : -n - 1) << 8 * n;
	assert_true(seal_words(&seal, TALLY_LANE_INT8, &word, 1) == 0x6fe3dd7469d96010);
	assert_true(seal_nonce(&key, random, 3) == 0x2ab768fea5b4d0d3);
}

#define LANE_NUMBER(number, name) TALLY_LANE_##number,
static const uint8_t lanes[] = { LANES(LANE_NUMBER) };
#undef LANE_NUMBER

static void the_checks_of_all_ranks_add_up(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 3, 64, 255, 256 };
	struct seal seal;
	uint64_t random = 1;

	(void)state;
	seal_begin_run(&seal, &secret, run);
	for (size_t l = 0; l < sizeof(lanes); l++)
		for (size_t n = 0; n < sizeof(sizes) / sizeof(*sizes); n++)
			for (uint32_t turn = 0; turn < 50; turn++) {
				struct sum s = sum_of_all(&seal, &random, lanes[l], sizes[n],
							  SEQ + turn);

				assert_true(is_taken(&seal, &s, SEQ + turn));
			}
}

/* All 256 ranks have -inf in one place: as many as nine bits of the word can say. */
static void a_full_counter_adds_up(void **state)
{
	struct seal seal;
	uint64_t word[WORDS] = { 0, 1ull << 55 }, sum[WORDS] = { 0, 256ull << 55 };

	(void)state;
	seal_begin_run(&seal, &secret, run);
	assert_true(seal_words(&seal, TALLY_LANE_FLOAT32_WIDE, word, WORDS) * 256 ==
		    seal_words(&seal, TALLY_LANE_FLOAT32_WIDE, sum, WORDS));
}

/* Changes of the words, small and large, with the public check mended as a node can. */
static void change_words(struct sum *s, uint64_t *random)
{
	int changes = 1 + random_below(random, 3);

	while (changes--) {
		uint32_t i = random_below(random, WORDS), bits = random_below(random, 31);
		uint64_t delta = 1ull << bits;

		if (lane_at(s->h.lane)->number_bits < 64 && chance(random, 500))
			delta <<= 32;
		else if (chance(random, 300))
			delta = random_next(random) | 1;
		delta *= chance(random, 500) ? 1 : -1;
		s->word[i] += delta;
		s->check += chance(random, 500) ? (2 * i + 1) * delta : 0;
	}
}

static void no_change_of_a_sum_is_taken(void **state)
{
	struct seal seal;
	uint64_t random = 2;

	(void)state;
	seal_begin_run(&seal, &secret, run);
	for (int turn = 0; turn < CHANGES; turn++) {
		struct sum s = sum_of_all(&seal, &random, lanes[turn % sizeof(lanes)], 1 + turn % 4,
					  SEQ);
		struct sum right = s;

		change_words(&s, &random);
		if (!memcmp(s.word, right.word, sizeof(s.word)))
			continue;
		if (is_taken(&seal, &s, SEQ))
			fail_msg("change %d", turn);
		s = right;
		s.check += random_next(&random) >> random_below(&random, 63);
		assert_true(s.check == right.check || !is_taken(&seal, &s, SEQ));
	}
}

/* Of so many sums, each with another secret, to which a node that lies adds 2^bit. */
static int taken_beside(int bit)
{
	const uint64_t delta = UINT64_C(1) << bit;
	uint64_t random = 6;
	int taken = 0;

	for (uint64_t i = 0; i < SECRETS; i++) {
		const struct tally_key key = { { secret.word[0] + i, secret.word[1] } };
		struct seal seal;
		struct sum s;

		seal_begin_run(&seal, &key, run);
		s = sum_of_all(&seal, &random, TALLY_LANE_INT64, 3, SEQ);
		s.word[1] += delta;
		s.check += delta; /* right where the factor is 1, but for bits that go over */
		taken += is_taken(&seal, &s, SEQ);
	}
	return taken;
}

/* As docs/security.md says, which must change with this. */
static void only_the_highest_bits_of_an_int64_are_open(void **state)
{
	(void)state;
	assert_int_equal(taken_beside(63), SECRETS);
	assert_in_range(taken_beside(62), SECRETS / 3, 2 * SECRETS / 3);
	assert_in_range(taken_beside(61), SECRETS / 6, SECRETS / 3);
	assert_int_equal(taken_beside(40), 0);
}

static void swapped_words_and_half_or_double_sums_are_not_taken(void **state)
{
	struct seal seal;
	uint64_t random = 3;

	(void)state;
	seal_begin_run(&seal, &secret, run);
	for (int turn = 0; turn < 1000; turn++) {
		struct sum s = sum_of_all(&seal, &random, TALLY_LANE_INT64, 4, SEQ), changed = s;

		changed.word[1] = s.word[2];
		changed.word[2] = s.word[1];
		assert_false(is_taken(&seal, &changed, SEQ));
		changed = s;
		changed.check *= 2;
		for (int i = 0; i < WORDS; i++)
			changed.word[i] *= 2;
		assert_false(is_taken(&seal, &changed, SEQ));
		changed = (struct sum){ .h = s.h, .workers = 4 };
		assert_false(is_taken(&seal, &changed, SEQ));
		changed.check = s.check;
		assert_false(is_taken(&seal, &changed, SEQ));
	}
}

static void no_sum_of_another_chunk_call_place_or_run_is_taken(void **state)
{
	struct seal seal, other;
	struct sum s;
	uint64_t random = 4;

	(void)state;
	seal_begin_run(&seal, &secret, run);
	s = sum_of_all(&seal, &random, TALLY_LANE_INT32, 4, SEQ);
	for (uint32_t seq = 0; seq < 1000; seq++)
		assert_true(is_taken(&seal, &s, seq) == (seq == SEQ));
	for (int what = 0; what < 2; what++) {
		s = (struct sum){ .h = s.h, .workers = 4 };
		for (uint32_t rank = 0; rank < 4; rank++)
			contribute(&s, &seal, &random, rank, call + !what, place + what);
		assert_false(is_taken(&seal, &s, SEQ));
	}
	s = sum_of_all(&seal, &random, TALLY_LANE_INT32, 4, SEQ);
	seal_begin_run(&other, &secret, run + 1);
	assert_false(is_taken(&other, &s, SEQ));
	seal_begin_run(&other, &(struct tally_key){ { secret.word[0], 0 } }, run);
	assert_false(is_taken(&other, &s, SEQ));
}

/* Sequence numbers wrap; masks do not come again, so that no node sees two texts under one. */
static void a_mask_serves_once(void **state)
{
	struct seal seal;
	uint64_t first;

	(void)state;
	seal_begin_run(&seal, &secret, run);
	first = seal_masks(&seal, 5, call, place, 0, 1).own;
	assert_true(seal_masks(&seal, 5, call, place, 0, 1).own == first);
	for (int quarter = 0; quarter < 4; quarter++)
		seal_masks(&seal, 5 + ((quarter + 1u) << 30), call, place, 0, 1);
	assert_true(seal_masks(&seal, 5, call, place, 0, 1).own != first);
}

static void a_missing_a_doubled_or_a_foreign_rank_is_found(void **state)
{
	struct seal seal;
	uint64_t random = 5;

	(void)state;
	seal_begin_run(&seal, &secret, run);
	for (uint32_t rank = 0; rank < 5; rank++) {
		struct sum s = { .h = { .lane = TALLY_LANE_INT32, .seq = tally_le32(SEQ) },
				 .workers = 5 };

		for (uint32_t r = 0; r < 5; r++)
			if (r != rank)
				contribute(&s, &seal, &random, r, call, place);
		assert_false(is_taken(&seal, &s, SEQ));
		contribute(&s, &seal, &random, (rank + 1) % 5, call, place);
		assert_false(is_taken(&seal, &s, SEQ));
	}
}

/* --- votes: what nodes say of scales, and of the wide form */

struct vote_case {
	uint8_t lane, used, said; /* scales */
	uint8_t round, form;
	bool wide; /* as the node says */
	uint64_t exact, more; /* votes */
	bool agrees;
};

static void what_is_said_of_scales_must_fit_the_votes(void **state)
{
	enum {
		F = TALLY_LANE_FLOAT32,
		W = TALLY_LANE_FLOAT32_WIDE,
		I = TALLY_LANE_INT32
	};
	static const struct vote_case cases[] = {
		/* the first round: right, or to come again */
		{ F, 64, 64, 0, 0, false, 1, 0, true },
		{ F, 64, 64, 0, 0, false, 4, 0, true },
		{ F, 64, 64, 0, 0, false, 0, 0, false }, /* nobody needs so much */
		{ F, 64, 64, 0, 0, false, 1, 1, false }, /* a rank needs more, and has sent zeros */
		{ F, 64, 65, 0, 0, false, 0, 1, true },
		{ F, 64, 63, 0, 0, false, 0, 0, true },
		{ F, 0, 0, 0, 0, false, 0, 0, true }, /* all zero */
		{ F, 0, 0, 0, 0, false, 0, 1, false },
		{ F, 64, 0, 0, 0, false, 0, 0, true },
		{ F, 64, 64, 0, 0, true, 1, 1, true },
		{ I, 0, 0, 0, 0, false, 0, 0, true },
		{ I, 0, 0, 0, 0, false, 0, 1, false }, /* it wraps, says a rank */
		{ I, 0, 0, 0, 0, true, 0, 1, true },
		{ W, 64, 64, 0, 1, true, 2, 0, true },
		{ W, 64, 64, 0, 1, false, 2, 0, false }, /* half of the chunk would not come */
		{ W, 64, 65, 0, 1, true, 0, 2, false }, /* nor does this come again */
		{ TALLY_LANE_INT64, 0, 0, 0, 0, false, 0, 0, true },
		{ TALLY_LANE_INT64, 0, 5, 0, 0, false, 0, 0, false },
		{ TALLY_LANE_BYTES, 0, 0, 0, 0, true, 0, 0, false },
		/* later rounds: as it was sent */
		{ F, 64, 0, 1, 0, false, 1, 0, true },
		{ F, 64, 0, 1, 0, false, 0, 0, false },
		{ F, 64, 0, 1, 0, false, 3, 1, false },
		{ W, 64, 0, 1, 1, false, 1, 0, true },
		{ W, 64, 0, 1, 2, false, 0, 0, false },
		{ W, 0, 0, 1, 2, false, 0, 0, true },
		{ W, 0, 0, 1, 2, false, 0, 1, false },
		/* more votes than ranks */
		{ F, 64, 64, 0, 0, false, 5, 0, false },
		{ F, 64, 65, 0, 0, false, 3, 2, false },
	};
	struct seal seal;

	(void)state;
	seal_begin_run(&seal, &secret, run);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct vote_case *c = &cases[i];
		struct tally_header h = { .lane = c->lane,
					  .scale = c->said,
					  .flags = c->wide ? TALLY_WIDE : 0 };
		uint64_t at = 9ull << 32 | (uint64_t)c->round << 16 | (uint64_t)c->used << 8 |
			      c->form;
		uint64_t votes = c->exact * CALL_VOTE_EXACT + c->more * CALL_VOTE_MORE;

		if (seal_votes_agree(&seal, votes * seal.vote, &h, at, 4) != c->agrees)
			fail_msg("case %zu", i);
	}
}

/* --- whole workers, and nodes that lie */

static void mend(struct message *m)
{
	struct tally_set set = tally_header_set(&m->header);

	m->header.tag = tally_le64(tally_tag(&m->header, &set));
}

/* The public check stays right. */
static void add(struct message *m, uint32_t i, uint64_t delta)
{
	message_words(m)[i] += delta;
	m->header.check = tally_le64(tally_le64_get(m->header.check) + (2 * i + 1) * delta);
}

static void add_to_the_first_element(const struct world *w, int rank, struct message *m)
{
	if (m->header.kind == TALLY_RESULT && m->header.blocks)
		add(m, 0, 1);
	mend(m);
}

static void say_a_scale_that_nobody_needs(const struct world *w, int rank, struct message *m)
{
	if (m->header.kind == TALLY_RESULT && m->header.scale)
		m->header.scale = 80;
	mend(m);
}

static double (*first_of)(int rank); /* NULL: the same on all ranks */

/* An allreduce of one chunk of int32 or float32, in its two rounds. How many ranks got `ret`. */
static int allreduce(struct world *w, enum tally_dtype dtype, double first, int result, double *ret)
{
	struct engine_call *c[RANKS];
	float x[RANKS][8] = { 0 };
	int32_t n[RANKS][8] = { 0 };
	int got = 0;

	for (int rank = 0; rank < RANKS; rank++) {
		bool is_float = dtype != TALLY_INT32;
		struct call_options o = { .verb = CALL_ALLREDUCE,
					  .dtype = dtype,
					  .op = TALLY_SUM,
					  .count = 8,
					  .in = is_float ? (void *)x[rank] : n[rank],
					  .out = is_float ? (void *)x[rank] : n[rank] };

		x[rank][0] = (float)(first_of ? first_of(rank) : first);
		n[rank][0] = (int32_t)first;
		assert_int_equal(engine_start(w->worker[rank].engine, &o, w->now_ns, &c[rank]), 0);
		world_look(w, rank);
	}
	for (int rank = 0; rank < RANKS; rank++) {
		while (!engine_is_over(c[rank]))
			world_step(w);
		got += engine_collect(c[rank], NULL) == result;
	}
	*ret = dtype != TALLY_INT32 ? (double)x[1][0] : (double)n[1][0];
	return got;
}

static struct world *world_that_lies(bool sealed, void (*lie)(const struct world *w, int rank,
							      struct message *m))
{
	return world_new(&(struct world_options){ .seed = 1,
						  .tree = TREE_ONE_LEVEL,
						  .jobs = 1,
						  .ranks = RANKS,
						  .window = 4,
						  .frames_grow = true,
						  .timeout_ns = 2000000000,
						  .nonce = true,
						  .sealed = sealed,
						  .lie = lie });
}

/* The first half of each is the control: the lie works. */
static void a_node_that_adds_wrong_is_found(void **state)
{
	struct world *w = world_that_lies(false, add_to_the_first_element);
	double x = 0;

	(void)state;
	assert_int_equal(allreduce(w, TALLY_INT32, 5, 0, &x), RANKS);
	assert_true(x == 16);
	world_free(w);
	w = world_that_lies(true, add_to_the_first_element);
	assert_int_equal(allreduce(w, TALLY_INT32, 5, -EBADMSG, &x), RANKS);
	assert_non_null(strstr(tally_error(), "the node added wrong"));
	world_free(w);
}

/* With a scale so large all values are 0, and the sum of them is right. */
static void a_node_that_says_a_wrong_scale_is_found(void **state)
{
	struct world *w = world_that_lies(false, say_a_scale_that_nobody_needs);
	double x = 0;

	(void)state;
	assert_int_equal(allreduce(w, TALLY_FLOAT32, 1e-3, 0, &x), RANKS);
	assert_true(x == 0);
	world_free(w);
	w = world_that_lies(true, say_a_scale_that_nobody_needs);
	assert_int_equal(allreduce(w, TALLY_FLOAT32, 1e-3, -EBADMSG, &x), RANKS);
	assert_non_null(strstr(tally_error(), "the node added wrong"));
	world_free(w);
}

static double own_zeros(int rank) { return rank ? 1e-3 : 0; }

/* Rank 0 has zeros, and is told that all have. */
static void tell_rank_0_that_all_is_zero(const struct world *w, int rank, struct message *m)
{
	if (m->header.kind == TALLY_RESULT && !rank)
		m->header.scale = 0;
	mend(m);
}

static void a_node_that_hides_a_scale_is_found(void **state)
{
	struct world *w = world_that_lies(true, tell_rank_0_that_all_is_zero);
	double x = 0;

	(void)state;
	first_of = own_zeros;
	assert_int_equal(allreduce(w, TALLY_FLOAT32, 0, 0, &x), 0);
	first_of = NULL;
	world_free(w);
}

/* A guess that is much too small, and integers that wrap: honest nodes, so all ends well. */
static void what_does_not_fit_comes_again(void **state)
{
	struct world *w = world_that_lies(true, NULL);
	double x = 0;

	(void)state;
	assert_int_equal(allreduce(w, TALLY_FLOAT32, 0x1p100, 0, &x), RANKS);
	assert_true(x == 3 * 0x1p100);
	assert_int_equal(allreduce(w, TALLY_INT32, INT32_MAX - 7, 0, &x), RANKS);
	assert_true(x == (int32_t)(3u * (INT32_MAX - 7)));
	assert_int_equal(window_stats(engine_window(w->worker[1].engine))->corrupt, 0);
	world_free(w);
}

static double one_is_large(int rank) { return rank == 1 ? 0x1p41 : 5; }

/* A value beyond what the point allows ends its call on all ranks, and nothing else. */
static void a_misfit_ends_its_call_and_not_the_job(void **state)
{
	(void)state;
	for (int sealed = 0; sealed < 2; sealed++) {
		const enum tally_dtype fixed = TALLY_FIXED(TALLY_FLOAT32, 20);
		struct world *w = world_that_lies(sealed, NULL);
		double x = 0;

		for (int turn = 0; turn < 3; turn++) {
			first_of = one_is_large;
			assert_int_equal(allreduce(w, fixed, 0, -ERANGE, &x), RANKS);
			assert_non_null(strstr(tally_error(), "another rank has a value that does "
							      "not fit"));
			first_of = NULL;
			assert_int_equal(allreduce(w, fixed, 5, 0, &x), RANKS);
			assert_true(x == 15);
			assert_int_equal(allreduce(w, TALLY_FLOAT32, 5, 0, &x), RANKS);
			assert_true(x == 15);
		}
		world_free(w);
	}
}

static void add_as_long_as_it_is_not_rejected(const struct world *w, int rank, struct message *m)
{
	if (m->header.kind == TALLY_RESULT && !m->header.edition && !rank)
		add(m, 0, 1);
	mend(m);
}

/* A node that gives each sum right at last may guess for ever, but for this. */
static void so_many_wrong_sums_end_the_run(void **state)
{
	struct world *w = world_that_lies(true, add_as_long_as_it_is_not_rejected);
	double x = 0;
	int calls = 0;

	(void)state;
	while (calls < 200 && allreduce(w, TALLY_INT32, 5, 0, &x) == RANKS)
		calls++;
	assert_in_range(calls, 100, 150);
	assert_non_null(strstr(tally_error(), "the node added wrong"));
	world_free(w);
}

/* Who has no secret, or another one. */
static void ranks_must_have_the_same_secret(void **state)
{
	for (int other = 0; other < 2; other++) {
		struct world *w = world_new(&(struct world_options){ .seed = 1,
								     .jobs = 1,
								     .ranks = RANKS,
								     .window = 4,
								     .frames_grow = true,
								     .timeout_ns = 2000000000,
								     .sealed = true });
		struct engine_options o = { .window = { .job = WORLD_FIRST_JOB,
							.epoch = WORLD_EPOCH,
							.rank = 2,
							.workers = RANKS,
							.window = 4,
							.payload_bytes = WORLD_PAYLOAD,
							.sealed = other,
							.secret = { { 1, 2 } } },
					    .timeout_ns = 2000000000,
					    .service = "10.77.0.1",
					    .random = 3 };
		double x = 0;

		engine_free(w->worker[2].engine);
		assert_int_equal(engine_new(&o, &w->worker[2].engine), 0);
		assert_int_equal(allreduce(w, TALLY_INT32, 5, other ? -EBADMSG : -EPROTO, &x),
				 RANKS);
		assert_non_null(strstr(tally_error(), other ? "not all ranks have the same secret"
							    : "the first call without a secret"));
		world_free(w);
	}
	(void)state;
}

/* Any of these, to one rank or to all alike. */
static void lie_by_chance(const struct world *w, int rank, struct message *m)
{
	struct tally_header *h = &m->header;
	uint64_t random = w->options.seed * 1000003 + tally_le32_get(h->seq);
	uint32_t words = h->blocks * TALLY_BLOCK_WORDS, i, k;

	random += chance(&random, 500) ? 77777ull * (rank + 1) : 0;
	if (h->kind != TALLY_RESULT || !chance(&random, 150))
		return;
	switch (random_below(&random, 6)) {
	case 0:
		h->scale = chance(&random, 200) ? 0 : h->scale + random_below(&random, 20) - 5;
		break;
	case 1:
		h->scale_ahead = chance(&random, 200) ? 0 : 20 + random_below(&random, 80);
		break;
	case 2:
		h->flags ^= chance(&random, 500) ? TALLY_WIDE : TALLY_WIDE_AHEAD;
		break;
	case 3:
		if (words) {
			i = random_below(&random, words);
			k = random_below(&random, words);
			random_next(&random);
			add(m, i, message_words(m)[k] - message_words(m)[i]);
		}
		break;
	default:
		if (words)
			add(m, random_below(&random, words),
			    (random_next(&random) | 1) << (chance(&random, 500) ? 32 : 0));
	}
	mend(m);
}

static bool rank_is_right(const struct program *p, int rank)
{
	const struct collective *c = p->call;
	size_t total = c->count * (is_parted(c) ? p->world->options.ranks : 1);
	size_t per_chunk = WORLD_PAYLOAD / 4;
	double max = 0;

	for (size_t i = 0; i < total; i++) {
		size_t at = i % c->count, left = c->count - at;

		if (at % per_chunk == 0 && c->dtype == TALLY_FLOAT32 && c->verb < CALL_BARRIER &&
		    c->verb != CALL_ALL_GATHER && c->verb != CALL_BROADCAST)
			max = largest(p, 0, p->world->options.ranks, i,
				      left < per_chunk ? left : per_chunk);
		if (!(c->verb == CALL_ALLREDUCE
			      ? sum_is_right(p, 0, i, max, p->rank[rank].out[0], i)
			      : element_is_right(p, 0, rank, i, max)))
			return false;
	}
	return true;
}

static struct {
	int calls, failed, wrong;
} lies;

/* One collective of any kind, of at most 200 elements. */
static const char *run_with_lies(uint64_t seed, bool sealed)
{
	uint64_t random = seed;
	struct world_options o = { .seed = seed,
				   .tree = seed % TREES,
				   .jobs = 1,
				   .ranks = 1 + seed % 4,
				   .window = 1 << seed % 3,
				   .frames_grow = true,
				   .timeout_ns = 500000000,
				   .nonce = true,
				   .sealed = sealed,
				   .lie = lie_by_chance };
	struct program p = { .world = world_new(&o), .calls = 1 };
	const char *wrong = NULL;

	p.call[0] = collective_random(&random, o.ranks, 200);
	/* That of an int64 changes unseen with a chance: docs/security.md says with which. */
	if (p.call[0].dtype == TALLY_INT64 && p.call[0].verb != CALL_BROADCAST &&
	    p.call[0].verb != CALL_ALL_GATHER)
		p.call[0].dtype = TALLY_INT32;
	for (int rank = 0; rank < o.ranks; rank++) {
		rank_start(&p, rank);
		world_look(p.world, rank);
	}
	for (int rank = 0; rank < o.ranks; rank++) {
		while (!engine_is_over(p.rank[rank].call[0]))
			world_step(p.world);
		lies.calls++;
		if (engine_collect(p.rank[rank].call[0], NULL) < 0)
			lies.failed++;
		else if (!rank_is_right(&p, rank))
			wrong = "a rank took a wrong sum";
	}
	lies.wrong += wrong != NULL;
	program_free(&p);
	world_free(p.world);
	return wrong;
}

static const char *run_sealed(uint64_t seed) { return run_with_lies(seed, true); }

static void whatever_a_node_says_no_rank_takes_a_wrong_sum(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= LIES_SEEDS / 10; seed++)
		run_with_lies(seed, false);
	print_message("not sealed: %d wrong of %d\n", lies.wrong, lies.calls);
	assert_true(lies.wrong > LIES_SEEDS / 100);
	memset(&lies, 0, sizeof(lies));
	run_seeds(LIES_SEEDS, run_sealed);
	print_message("sealed: %d calls, %d failed\n", lies.calls, lies.failed);
	assert_true(lies.failed > lies.calls / 10 && lies.failed < lies.calls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_protocol_has_these_numbers),
		cmocka_unit_test(the_checks_of_all_ranks_add_up),
		cmocka_unit_test(a_full_counter_adds_up),
		cmocka_unit_test(no_change_of_a_sum_is_taken),
		cmocka_unit_test(only_the_highest_bits_of_an_int64_are_open),
		cmocka_unit_test(swapped_words_and_half_or_double_sums_are_not_taken),
		cmocka_unit_test(no_sum_of_another_chunk_call_place_or_run_is_taken),
		cmocka_unit_test(a_mask_serves_once),
		cmocka_unit_test(a_missing_a_doubled_or_a_foreign_rank_is_found),
		cmocka_unit_test(what_is_said_of_scales_must_fit_the_votes),
		cmocka_unit_test(a_node_that_adds_wrong_is_found),
		cmocka_unit_test(a_node_that_says_a_wrong_scale_is_found),
		cmocka_unit_test(a_node_that_hides_a_scale_is_found),
		cmocka_unit_test(what_does_not_fit_comes_again),
		cmocka_unit_test(a_misfit_ends_its_call_and_not_the_job),
		cmocka_unit_test(so_many_wrong_sums_end_the_run),
		cmocka_unit_test(ranks_must_have_the_same_secret),
		cmocka_unit_test(whatever_a_node_says_no_rank_takes_a_wrong_sum),
	};

	return cmocka_run_group_tests_name("seal", tests, NULL, NULL);
}
