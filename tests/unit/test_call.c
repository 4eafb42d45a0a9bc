// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collectives without a network: the test holds the call of every rank, adds what they fill in
 * as a node would, and gives each the sum as it would get it. After every run each output is
 * compared with a plain version, and each entry of round 0 with what docs/protocol.md says.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/call.h"

enum {
	RANKS_MAX = 5,
	WINDOW_MAX = 8,
	PAYLOAD_MAX = 128,
	UNTOUCHED = 0xa5,  /* a byte of an output that nothing was written to */
	GARBAGE = 0xee, /* a byte that must not be looked at */
};

struct frame {
	struct tally_header h;
	uint64_t word[PAYLOAD_MAX / 8];
};

/* All ranks of a job, and the collective that they are in. */
struct collective {
	struct call_member member; /* but for the rank */
	struct call_options options;  /* but for in and out */
	bool in_place;
	struct guesses guesses[RANKS_MAX];
	struct call call[RANKS_MAX];
	void *given[RANKS_MAX]; /* inputs as they were */
	void *in[RANKS_MAX], *out[RANKS_MAX];
	uint8_t *writes[RANKS_MAX]; /* of each output, if they are counted; else NULL */
	bool rounded; /* sums are not exact: the test itself looks at them */
	struct lie {
		uint32_t at; /* chunk of round 0 */
		uint8_t flags, scale_ahead; /* that some rank announces, and no rank needs */
	} lie;
};

/* --- who has what, as the table of collectives says */

static size_t element_bytes(const struct collective *g)
{
	return g->options.dtype == TALLY_INT64 ? 8 : 4;
}

static size_t chunk_elements(const struct collective *g)
{
	return g->member.payload_bytes / element_bytes(g);
}

static size_t in_count(const struct collective *g)
{
	if (g->options.verb == CALL_BARRIER)
		return 0;
	return g->options.count * (g->options.verb == CALL_REDUCE_SCATTER ? g->member.workers : 1u);
}

static size_t out_count(const struct collective *g)
{
	if (g->options.verb == CALL_BARRIER)
		return 0;
	return g->options.count * (g->options.verb == CALL_ALL_GATHER ? g->member.workers : 1u);
}

static bool has_output(const struct collective *g, int rank)
{
	switch (g->options.verb) {
	case CALL_REDUCE:
		return rank == g->options.root;
	case CALL_BROADCAST:
		return rank != g->options.root;
	default:
		return true;
	}
}

static bool is_sum(const struct collective *g)
{
	return g->options.verb == CALL_ALLREDUCE || g->options.verb == CALL_REDUCE ||
	       g->options.verb == CALL_REDUCE_SCATTER;
}

/* --- elements, as bits */

static uint64_t bits_at(const struct collective *g, const void *array, size_t i)
{
	uint64_t bits = 0;

	memcpy(&bits, (const uint8_t *)array + i * element_bytes(g), element_bytes(g));
	return bits;
}

static uint64_t bits_of_float(double x)
{
	float f = (float)x;
	uint32_t bits;

	if (isnan(x))
		return 0x7fc00000;
	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static double float_of_bits(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float f;

	memcpy(&f, &low, sizeof(f));
	return f;
}

static uint64_t sum_of_integers(const struct collective *g, size_t i)
{
	uint64_t sum = 0;
	bool is_int32 = g->options.dtype == TALLY_INT32;

	for (int rank = 0; rank < g->member.workers; rank++) {
		uint64_t bits = bits_at(g, g->given[rank], i);

		sum += is_int32 ? (uint64_t)(int32_t)bits : bits;
	}
	/* Of int32, the exact sum: 64 bits hold that of 256 workers. */
	if (g->options.op == TALLY_AVG)
		sum = (uint64_t)((int64_t)sum / g->member.workers);
	return is_int32 ? (uint32_t)sum : sum;
}

/* Exact for the inputs of these tests, which leave nothing to round but the average. */
static uint64_t sum_of_floats(const struct collective *g, size_t i)
{
	double sum = 0;

	for (int rank = 0; rank < g->member.workers; rank++)
		sum += float_of_bits(bits_at(g, g->given[rank], i));
	return bits_of_float(g->options.op == TALLY_AVG ? sum * (1.0 / g->member.workers) : sum);
}

/* What output element `i` of a rank must be. */
static uint64_t wanted(const struct collective *g, int rank, size_t i)
{
	size_t count = g->options.count;

	if (g->options.verb == CALL_BROADCAST)
		return bits_at(g, g->given[g->options.root], i);
	if (g->options.verb == CALL_ALL_GATHER)
		return bits_at(g, g->given[i / count], i % count);
	if (g->options.verb == CALL_REDUCE_SCATTER)
		i += rank * count;
	return g->options.dtype == TALLY_FLOAT32 ? sum_of_floats(g, i) : sum_of_integers(g, i);
}

/* --- starting and ending */

static struct collective *group_new(int workers, int window, int payload_bytes)
{
	struct collective *g = calloc(1, sizeof(*g));

	g->member = (struct call_member){
		.workers = workers,
		.window = window,
		.payload_bytes = payload_bytes,
	};
	for (int rank = 0; rank < workers; rank++)
		guesses_init(&g->guesses[rank]);
	return g;
}

static void group_free(struct collective *g) { free(g); }

static void put(const struct collective *g, int rank, size_t i, double x)
{
	uint8_t *at = (uint8_t *)g->in[rank] + i * element_bytes(g);

	if (g->options.dtype == TALLY_INT32)
		memcpy(at, &(int32_t){ (int32_t)x }, 4);
	else if (g->options.dtype == TALLY_INT64)
		memcpy(at, &(int64_t){ (int64_t)x }, 8);
	else
		memcpy(at, &(float){ (float)x }, 4);
}

static void put_all(const struct collective *g, double x)
{
	for (int rank = 0; rank < g->member.workers; rank++)
		for (size_t i = 0; i < in_count(g); i++)
			put(g, rank, i, x);
}

/* Every element another one, on every rank; no sum is zero or what is UNTOUCHED. */
static void put_different(const struct collective *g)
{
	double unit = g->options.dtype == TALLY_INT64 ? 0x100001 : 1;

	for (int rank = 0; rank < g->member.workers; rank++)
		for (size_t i = 0; i < in_count(g); i++)
			put(g, rank, i, (i % 2 ? -unit : unit) * (double)(5000 * (rank + 1) + i));
}

/* A byte longer than it must be, so that none is empty: an element beyond is a fault. */
static void make_buffers(struct collective *g, int rank)
{
	size_t in_bytes = in_count(g) * element_bytes(g),
	       out_bytes = out_count(g) * element_bytes(g);

	if (g->in_place && g->options.verb == CALL_ALL_GATHER) {
		g->out[rank] = malloc(out_bytes + 1);
		g->in[rank] = (uint8_t *)g->out[rank] + rank * in_bytes;
	} else if (g->in_place || g->options.verb == CALL_BROADCAST) {
		g->in[rank] = malloc(in_bytes + 1);
		g->out[rank] = g->in[rank];
		if (g->options.verb == CALL_REDUCE_SCATTER)
			g->out[rank] = (uint8_t *)g->in[rank] + rank * out_bytes;
	} else {
		g->in[rank] = malloc(in_bytes + 1);
		if (has_output(g, rank) && g->options.verb != CALL_BARRIER)
			g->out[rank] = malloc(out_bytes + 1);
	}
	g->given[rank] = malloc(in_bytes + 1);
	if (g->out[rank] && !g->in_place)
		memset(g->out[rank], UNTOUCHED, out_bytes);
}

static void start(struct collective *g, const struct call_options *options)
{
	g->options = *options;
	for (int rank = 0; rank < g->member.workers; rank++) {
		struct call_member member = g->member;
		struct call_options o = *options;

		make_buffers(g, rank);
		member.rank = rank;
		o.in = g->in[rank];
		o.out = g->out[rank];
		assert_int_equal(call_init(&g->call[rank], &member, &o, &g->guesses[rank]), 0);
	}
	put_different(g);
}

static void end(struct collective *g)
{
	for (int rank = 0; rank < g->member.workers; rank++) {
		bool out_is_longer = g->in_place && g->options.verb == CALL_ALL_GATHER;

		call_done(&g->call[rank]);
		free(g->given[rank]);
		if (g->out[rank] != g->in[rank] && !g->in_place)
			free(g->out[rank]);
		free(out_is_longer ? g->out[rank] : g->in[rank]);
		free(g->writes[rank]);
		g->writes[rank] = NULL;
		g->out[rank] = NULL;
	}
}

/* --- the node */

static bool is_wide_lane(uint8_t lane)
{
	return lane == TALLY_LANE_INT32_WIDE || lane == TALLY_LANE_FLOAT32_WIDE;
}

/* The chunk's part, elements, and all that follows: docs/protocol.md, "Collectives". */
static void entry_is_as_written(const struct collective *g, uint32_t e, const struct frame *sum,
				uint32_t contributors)
{
	static const uint8_t usual_lane[] = { 0, TALLY_LANE_INT32, TALLY_LANE_INT64,
					      TALLY_LANE_FLOAT32 };
	size_t per_part = (g->options.count + chunk_elements(g) - 1) / chunk_elements(g);
	uint16_t part = per_part ? e / per_part : 0, recipient = TALLY_EVERYONE;
	size_t first = per_part ? e % per_part * chunk_elements(g) : 0;
	size_t elements = g->options.count - first, bytes;
	uint32_t from = (1u << g->member.workers) - 1;
	uint8_t lane = usual_lane[g->options.dtype];

	elements = elements < chunk_elements(g) ? elements : chunk_elements(g);
	bytes = elements * element_bytes(g);
	if (is_sum(g) && is_wide_lane(sum->h.lane)) {
		lane++;
		bytes = (elements < chunk_elements(g) / 2 ? elements : chunk_elements(g) / 2) * 8;
	}
	if (g->options.verb == CALL_REDUCE)
		recipient = g->options.root;
	if (g->options.verb == CALL_REDUCE_SCATTER)
		recipient = part;
	if (g->options.verb == CALL_BROADCAST)
		from = 1u << g->options.root;
	if (g->options.verb == CALL_ALL_GATHER)
		from = 1u << part;
	if (g->options.verb == CALL_BARRIER)
		bytes = from = 0;
	if (!is_sum(g))
		lane = g->options.verb == CALL_BARRIER ? TALLY_LANE_NONE : TALLY_LANE_BYTES;
	assert_int_equal(sum->h.lane, lane);
	assert_int_equal(tally_le16_get(sum->h.recipient), recipient);
	assert_int_equal(sum->h.blocks, (bytes + 63) / 64);
	assert_int_equal(contributors, from);
	if (!is_sum(g) || g->options.dtype == TALLY_INT64)
		assert_int_equal(sum->h.flags | sum->h.scale | sum->h.scale_ahead, 0);
	for (size_t at = is_sum(g) ? (bytes + 7) / 8 * 8 : bytes; at < sum->h.blocks * 64u; at++)
		assert_int_equal(((const uint8_t *)sum->word)[at], 0);
}

static void merge(struct frame *sum, const struct frame *one)
{
	assert_int_equal(one->h.lane, sum->h.lane);
	assert_int_equal(one->h.recipient, sum->h.recipient);
	assert_int_equal(one->h.flags & ~TALLY_FLAGS_STICKY, 0);
	sum->h.flags |= one->h.flags;
	if (one->h.scale > sum->h.scale)
		sum->h.scale = one->h.scale;
	if (one->h.scale_ahead > sum->h.scale_ahead)
		sum->h.scale_ahead = one->h.scale_ahead;
	if (!one->h.blocks)
		return;
	assert_true(!sum->h.blocks || one->h.blocks == sum->h.blocks);
	sum->h.blocks = one->h.blocks;
	for (size_t i = 0; i < (size_t)one->h.blocks * TALLY_BLOCK_WORDS; i++)
		sum->word[i] += one->word[i];
}

/* Entry `e` of this round, filled in by all ranks and added up. */
static struct frame sum_entry(struct collective *g, uint32_t e)
{
	struct frame sum = { 0 };
	uint32_t contributors = 0;
	uint8_t blocks[RANKS_MAX];
	uint64_t vote;

	for (int rank = 0; rank < g->member.workers; rank++) {
		struct frame one;

		memset(&one, GARBAGE, sizeof(one));
		one.h = (struct tally_header){ .recipient = tally_le16(TALLY_EVERYONE) };
		blocks[rank] = call_fill(&g->call[rank], e, &one.h, &vote);
		contributors |= (uint32_t)(one.h.blocks > 0) << rank;
		if (rank == 0) {
			sum.h.lane = one.h.lane;
			sum.h.recipient = one.h.recipient;
		}
		merge(&sum, &one);
	}
	for (int rank = 0; rank < g->member.workers; rank++)
		assert_int_equal(blocks[rank], sum.h.blocks);
	assert_true(sum.h.blocks * TALLY_BLOCK_BYTES <= g->member.payload_bytes);
	if (g->call[0].round == 0)
		entry_is_as_written(g, e, &sum, contributors);
	if (g->call[0].round == 0 && e == g->lie.at) {
		sum.h.flags |= g->lie.flags;
		if (g->lie.scale_ahead > sum.h.scale_ahead)
			sum.h.scale_ahead = g->lie.scale_ahead;
	}
	return sum;
}

/* After one result: what was written, and was it right? The output is then untouched again. */
static void count_writes(struct collective *g, int rank)
{
	uint64_t untouched = 0;

	memset(&untouched, UNTOUCHED, element_bytes(g));
	for (size_t i = 0; i < out_count(g); i++) {
		if (bits_at(g, g->out[rank], i) == untouched)
			continue;
		assert_true(bits_at(g, g->out[rank], i) == wanted(g, rank, i));
		g->writes[rank][i]++;
	}
	memset(g->out[rank], UNTOUCHED, out_count(g) * element_bytes(g));
}

static void take_entry(struct collective *g, int rank, uint32_t e, const struct frame *sum)
{
	uint16_t recipient = tally_le16_get(sum->h.recipient);
	struct frame own = *sum;

	if (recipient != TALLY_EVERYONE && recipient != rank) {
		own.h.blocks = 0;
		memset(own.word, GARBAGE, sizeof(own.word));
	}
	call_take(&g->call[rank], e, &own.h);
	if (g->writes[rank])
		count_writes(g, rank);
}

/* As many in flight as may be; results come back in order, or the other way round. */
static void run_round(struct collective *g)
{
	uint32_t entries = g->call[0].entries, n;
	struct frame sum[WINDOW_MAX];

	for (uint32_t base = 0; base < entries; base += n) {
		n = entries - base < g->member.window ? entries - base : g->member.window;
		for (uint32_t i = 0; i < n; i++)
			sum[i] = sum_entry(g, base + i);
		for (int rank = 0; rank < g->member.workers; rank++)
			for (uint32_t i = 0; i < n; i++) {
				uint32_t pick = rank % 2 ? n - 1 - i : i;

				take_entry(g, rank, base + pick, &sum[pick]);
			}
	}
	for (int rank = 0; rank < g->member.workers; rank++)
		assert_int_equal(g->call[rank].taken, entries);
}

/* All ranks come to the same conclusion, those without the payload too. */
static bool next_round(struct collective *g)
{
	const struct call *c = &g->call[0];
	int more = call_next_round(&g->call[0]);

	for (int rank = 1; rank < g->member.workers; rank++) {
		const struct call *other = &g->call[rank];

		assert_int_equal(call_next_round(&g->call[rank]), more);
		assert_int_equal(other->entries, c->entries);
		assert_int_equal(other->round, c->round);
		assert_int_equal(other->redone, c->redone);
		for (uint32_t e = 0; more && e < c->entries; e++) {
			assert_int_equal(other->entry[e].chunk, c->entry[e].chunk);
			assert_int_equal(other->entry[e].form, c->entry[e].form);
		}
	}
	return more;
}

static void outputs_are_right(const struct collective *g)
{
	for (int rank = 0; rank < g->member.workers; rank++) {
		bool is_new = has_output(g, rank) && !g->writes[rank] && !g->rounded;

		for (size_t i = 0; is_new && i < out_count(g); i++)
			assert_true(bits_at(g, g->out[rank], i) == wanted(g, rank, i));
		if (!has_output(g, rank) || (!g->in_place && g->options.verb != CALL_BROADCAST))
			assert_memory_equal(g->in[rank], g->given[rank],
					    in_count(g) * element_bytes(g));
	}
}

/* The whole call with all its rounds; outputs are checked. Returns the number of rounds. */
static int run(struct collective *g)
{
	int rounds = 0;

	for (int rank = 0; rank < g->member.workers; rank++)
		memcpy(g->given[rank], g->in[rank], in_count(g) * element_bytes(g));
	do {
		run_round(g);
		rounds++;
	} while (next_round(g));
	outputs_are_right(g);
	return rounds;
}

static int run_floats(struct collective *g, size_t count, double x)
{
	int rounds;

	start(g, &(struct call_options){ .verb = CALL_ALLREDUCE,
					 .dtype = TALLY_FLOAT32,
					 .op = TALLY_SUM,
					 .count = count });
	put_all(g, x);
	rounds = run(g);
	end(g);
	return rounds;
}

/* --- geometry */

static void each_output_is_written_once(struct collective *g, const struct call_options *o)
{
	uint32_t parts = o->verb == CALL_REDUCE_SCATTER || o->verb == CALL_ALL_GATHER
				 ? g->member.workers
				 : 1;

	start(g, o);
	for (int rank = 0; rank < g->member.workers; rank++)
		if (o->verb != CALL_BROADCAST && o->verb != CALL_BARRIER && has_output(g, rank))
			g->writes[rank] = calloc(1, out_count(g) + 1);
	if (o->verb == CALL_BARRIER)
		assert_int_equal(g->call[0].entries, 1);
	else
		assert_int_equal(g->call[0].entries,
				 parts * ((o->count + chunk_elements(g) - 1) / chunk_elements(g)));
	run(g);
	for (int rank = 0; rank < g->member.workers; rank++)
		for (size_t i = 0; g->writes[rank] && i < out_count(g); i++)
			assert_int_equal(g->writes[rank][i], 1);
	end(g);
}

static void every_verb_and_type(struct collective *g, size_t windows, int more)
{
	for (enum call_verb verb = CALL_ALLREDUCE; verb <= CALL_BARRIER; verb++)
		for (enum tally_dtype t = TALLY_INT32; t <= TALLY_FLOAT32; t++) {
			size_t chunk = g->member.payload_bytes / (t == TALLY_INT64 ? 8 : 4);

			each_output_is_written_once(
				g,
				&(struct call_options){
					.verb = verb,
					.dtype = t,
					.op = TALLY_SUM,
					.root = g->member.workers - 1,
					.count = verb == CALL_BARRIER ? 0 : windows * chunk + more,
				});
		}
}

static void every_element_travels_once_from_whom_and_to_whom_it_must(void **state)
{
	for (int workers = 1; workers <= RANKS_MAX; workers += 2)
		for (int window = 1; window <= 4; window *= 4)
			for (int payload = 64; payload <= PAYLOAD_MAX; payload += 64) {
				struct collective *g = group_new(workers, window, payload);

				every_verb_and_type(g, 0, 0);
				every_verb_and_type(g, 0, 1);
				every_verb_and_type(g, 1, -1);
				every_verb_and_type(g, 1, 0);
				every_verb_and_type(g, 1, 1);
				every_verb_and_type(g, window, -1);
				every_verb_and_type(g, window, 1);
				every_verb_and_type(g, 3 * window, 5);
				group_free(g);
			}
}

static void a_broadcast_reaches_all_and_leaves_its_root_alone(void **state)
{
	struct collective *g = group_new(3, 4, 64);

	for (uint16_t root = 0; root < 3; root++) {
		start(g, &(struct call_options){ .verb = CALL_BROADCAST,
						 .dtype = TALLY_FLOAT32,
						 .op = TALLY_AVG, /* means nothing here */
						 .root = root,
						 .count = 99 });
		put(g, root, 7, NAN);
		assert_int_equal(run(g), 1);
		assert_memory_equal(g->in[root], g->given[root], 99 * sizeof(float));
		end(g);
	}
	group_free(g);
}

static void too_many_chunks_are_refused(void **state)
{
	struct call_member member = { .workers = 4, .window = 4, .payload_bytes = 64 };
	struct call_options o = { .verb = CALL_BROADCAST, .dtype = TALLY_INT64, .op = TALLY_SUM };
	struct guesses *g = calloc(1, sizeof(*g));
	struct call c;

	o.count = 8ull * INT32_MAX;
	assert_int_equal(call_init(&c, &member, &o, g), 0);
	assert_int_equal(c.entries, INT32_MAX);
	call_done(&c);
	o.count = 8ull * INT32_MAX + 9;
	assert_int_equal(call_init(&c, &member, &o, g), -EFBIG);
	o.verb = CALL_ALL_GATHER;
	o.count = 8ull * (INT32_MAX / 4);
	assert_int_equal(call_init(&c, &member, &o, g), 0);
	call_done(&c);
	o.count++;
	assert_int_equal(call_init(&c, &member, &o, g), -EFBIG);
	free(g);
}

/* --- scales */

/* Whatever an earlier call of the same count has made of the guesses. */
static void only_float32_is_at_a_place_with_a_scale(void **state)
{
	struct call_member member = { .workers = 4, .window = 4, .payload_bytes = 64 };
	struct call_options o = { .verb = CALL_ALLREDUCE, .op = TALLY_SUM, .count = 100 };
	struct guesses *g = calloc(1, sizeof(*g));
	struct call c;

	guesses_init(g);
	for (o.dtype = TALLY_INT32; o.dtype <= TALLY_FLOAT32; o.dtype++) {
		assert_int_equal(call_init(&c, &member, &o, g), 0);
		assert_true(call_place(&c, 3) ==
			    (3ull << 32 | (o.dtype == TALLY_FLOAT32 ? 64 << 8 : 0)));
		call_done(&c);
	}
	free(g);
}

static void a_wrong_guess_is_repeated_with_the_announced_scale(void **state)
{
	static const double value[] = { 100, 1, 0x1p-7, -0x1p99, 0x1p-149 };
	static const uint8_t scale[] = { 66, 65, 63, 89, 27 };

	for (int i = 0; i < 5; i++) {
		struct collective *g = group_new(3, 4, 64);
		struct frame sum;

		start(g, &(struct call_options){ .verb = CALL_ALLREDUCE,
						 .dtype = TALLY_FLOAT32,
						 .op = TALLY_SUM,
						 .count = 1 });
		put_all(g, 0);
		put(g, 1, 0, value[i]);
		memcpy(g->given[1], g->in[1], sizeof(float));
		sum = sum_entry(g, 0);
		assert_int_equal(sum.h.scale, scale[i]);
		for (int rank = 0; rank < 3; rank++) {
			take_entry(g, rank, 0, &sum);
			assert_int_equal(bits_at(g, g->out[rank], 0), 0xa5a5a5a5);
		}
		assert_true(next_round(g));
		assert_int_equal(g->call[0].redone, 1);
		sum = sum_entry(g, 0);
		assert_int_equal((int64_t)sum.word[0],
				 (int64_t)ldexp(value[i], 28 - 4 * (scale[i] - 64)));
		for (int rank = 0; rank < 3; rank++) {
			take_entry(g, rank, 0, &sum);
			assert_int_equal(bits_at(g, g->out[rank], 0), bits_of_float(value[i]));
		}
		assert_false(next_round(g));
		end(g);
		group_free(g);
	}
}

static void a_right_guess_is_not_repeated(void **state)
{
	struct collective *g = group_new(3, 4, 64);

	assert_int_equal(run_floats(g, 50, 0.75), 1);
	assert_int_equal(run_floats(g, 50, 0), 1); /* zeros are right at any scale, */
	assert_int_equal(run_floats(g, 50, 0.75), 1); /* and no news of the next call's */
	group_free(g);
}

static void guesses_are_remembered_for_the_same_shape(void **state)
{
	struct collective *g = group_new(3, 4, 64);

	assert_int_equal(run_floats(g, 50, 100), 2);
	assert_int_equal(run_floats(g, 50, 200), 1);
	assert_int_equal(run_floats(g, 50, 0), 1);
	assert_int_equal(run_floats(g, 50, 255), 1);
	assert_int_equal(run_floats(g, 50, 256), 2);
	assert_int_equal(run_floats(g, 50, 100), 2);
	group_free(g);
}

static void expect_table(struct guesses *g, const struct call_options *o, int type,
			 unsigned int table)
{
	struct call_member member = { .workers = 1, .window = 4, .payload_bytes = 64 };
	struct frame f = { .h = { .lane = lane_of_dtype(o->dtype, 1) } };
	struct call c;

	for (int t = 0; t < GUESS_TYPES * GUESS_KINDS; t++)
		memset(g->scale[t / GUESS_KINDS][t % GUESS_KINDS], 40 + t, TALLY_WINDOW_MAX);
	table += (unsigned int)type * GUESS_KINDS;
	assert_int_equal(call_init(&c, &member, o, g), 0);
	for (uint32_t e = 0; e < c.entries; e++) {
		f.h.scale = 40 + table + (e == 1) + (e >= member.window ? 2 : 0);
		f.h.scale_ahead = 40 + table + 2;
		call_take(&c, e, &f.h);
	}
	/* Of the guessed ones, chunk 1 was wrong; that is remembered, and nothing else. */
	assert_int_equal(call_next_round(&c), c.chunks > 1);
	for (unsigned int t = 0; t < GUESS_TYPES * GUESS_KINDS; t++)
		for (uint32_t k = 0; k < TALLY_WINDOW_MAX; k++)
			assert_int_equal(g->scale[t / GUESS_KINDS][t % GUESS_KINDS][k],
					 40 + t + (t == table && k == 1 && c.chunks > 1));
	call_done(&c);
}

static void a_long_call_has_guesses_for_one_window_only(void **state)
{
	struct call_member member = { .workers = 1, .window = 4, .payload_bytes = 64 };
	struct call_options o = { .verb = CALL_REDUCE, .dtype = TALLY_FLOAT32, .op = TALLY_SUM };
	struct guesses *g = calloc(1, sizeof(*g));
	struct call c;

	o.count = sizeof(*g) * 16 + 1; /* chunks of 16, more than all tables have bytes */
	assert_int_equal(call_init(&c, &member, &o, g), 0);
	assert_int_equal(c.entries, sizeof(*g) + 1);
	call_done(&c);
	free(g);
}

static void a_shape_is_what_the_protocol_says(void **state)
{
	static const enum call_verb verb[] = { CALL_ALLREDUCE, CALL_REDUCE, CALL_REDUCE_SCATTER };
	static const uint64_t v[] = { 1, 2, 4 };
	static const enum tally_dtype types[GUESS_TYPES] = {
		TALLY_FLOAT32, TALLY_BFLOAT16, TALLY_FLOAT16, TALLY_FLOAT64, TALLY_FLOAT32_HALVED,
	};
	struct guesses *g = calloc(1, sizeof(*g));
	double x[100];

	for (int i = 0; i < 3 * GUESS_TYPES; i++)
		for (uint64_t count = 1; count <= 100; count += i < 3 ? 1 : 7)
			expect_table(g,
				     &(struct call_options){ .verb = verb[i % 3],
							     .dtype = types[i / 3],
							     .op = TALLY_SUM,
							     .count = count,
							     .in = x,
							     .out = x },
				     i / 3, ((count * 8 + v[i % 3]) * 0x9e3779b97f4a7c15u) >> 60);
	free(g);
}

/* Every chunk of another magnitude, and only together do the ranks know of which. */
static void put_magnitudes(struct collective *g)
{
	size_t count = g->options.count, per_part = (count + 15) / 16;

	put_all(g, 0);
	for (size_t i = 0; i < in_count(g); i++) {
		size_t chunk = i / count * per_part + i % count / 16;

		put(g, (int)(i % g->member.workers), i, ldexp(1, (int)(chunk * 7 % 40) + 1));
	}
}

static void behind_the_first_window_scales_are_announced(void **state)
{
	static const enum call_verb verb[] = { CALL_ALLREDUCE, CALL_REDUCE, CALL_REDUCE_SCATTER };

	for (int i = 0; i < 3; i++) {
		struct collective *g = group_new(3, 4, 64);
		struct call_options o = { .verb = verb[i],
					  .dtype = TALLY_FLOAT32,
					  .op = TALLY_SUM,
					  .root = 1,
					  .count = 16 * 11 + 3 };

		for (int turn = 0; turn < 2; turn++) {
			start(g, &o);
			put_magnitudes(g);
			assert_int_equal(run(g), turn == 0 ? 2 : 1);
			assert_int_equal(g->call[0].redone, turn == 0 ? 4 : 0);
			end(g);
		}
		group_free(g);
	}
}

/* --- wide chunks: of 16 elements with 64 bytes of payload */

/* Who announced a scale a window ahead knows it when the chunk leaves: a value that has changed
 * since then shows that nobody looked again. */
static void values_are_looked_at_once(void **state)
{
	const struct call_member member = { .workers = 1, .window = 1, .payload_bytes = 64 };
	float x[32] = { [0] = 1, [16] = 100 };
	const struct call_options o = { .verb = CALL_ALLREDUCE,
					.dtype = TALLY_FLOAT32,
					.op = TALLY_SUM,
					.count = 32,
					.in = x,
					.out = x };
	struct guesses *g = calloc(1, sizeof(*g));
	struct frame first = { 0 }, second = { 0 };
	uint64_t vote;
	struct call c;

	guesses_init(g);
	assert_int_equal(call_init(&c, &member, &o, g), 0);
	call_fill(&c, 0, &first.h, &vote);
	x[16] = 1e9f;
	call_fill(&c, 1, &second.h, &vote);
	assert_int_equal(first.h.scale_ahead, lane_float32.scale_first + 2);
	assert_int_equal(second.h.scale, first.h.scale_ahead);
	call_done(&c);
	free(g);
}

/* Packets that one element's need of the wide form costs. */
static uint32_t wide_packets(const struct collective *g, size_t at)
{
	size_t chunk = at / 16, elements = g->options.count - chunk * 16;

	return (elements > 8) + (chunk < g->member.window);
}

static void start_int32(struct collective *g, size_t count)
{
	start(g, &(struct call_options){ .verb = CALL_ALLREDUCE,
					 .dtype = TALLY_INT32,
					 .op = TALLY_SUM,
					 .count = count });
}

static void int32_at_the_limit_travels_narrow(void **state)
{
	for (int workers = 1; workers <= RANKS_MAX; workers++) {
		struct collective *g = group_new(workers, 2, 64);
		double most = INT32_MAX / workers;

		for (int sign = -1; sign <= 1; sign += 2) {
			start_int32(g, 91);
			put_all(g, sign * most);
			assert_int_equal(run(g), 1);
			end(g);
		}
		group_free(g);
	}
}

static void one_past_the_limit_takes_two_halves(struct collective *g, size_t count, double past)
{
	for (size_t at = 0; at < count; at++) {
		start_int32(g, count);
		put_all(g, past > 0 ? past - 1 : past + 1);
		put(g, (int)(at % g->member.workers), at, past);
		assert_int_equal(run(g), wide_packets(g, at) ? 2 : 1);
		assert_int_equal(g->call[0].redone, wide_packets(g, at));
		end(g);
	}
}

static void int32_one_past_the_limit_travels_wide(void **state)
{
	for (int workers = 1; workers <= RANKS_MAX; workers++) {
		struct collective *g = group_new(workers, 2, 64);
		double past = INT32_MAX / workers + 1.0;

		for (size_t last = 7; last <= 11; last++) { /* elements of the last chunk */
			one_past_the_limit_takes_two_halves(g, 16 * 4 + last, -past);
			if (workers > 1)
				one_past_the_limit_takes_two_halves(g, 16 * 4 + last, past);
		}
		one_past_the_limit_takes_two_halves(g, 7, -past);
		one_past_the_limit_takes_two_halves(g, 9, -past);
		group_free(g);
	}
}

static void int32_sums_wrap(void **state)
{
	struct collective *g = group_new(3, 2, 64);

	start_int32(g, 99);
	put_all(g, INT32_MAX);
	put(g, 1, 50, INT32_MIN);
	run(g);
	assert_int_equal(bits_at(g, g->out[2], 0), 0x7ffffffd);
	assert_int_equal(bits_at(g, g->out[2], 50), 0x7ffffffe);
	end(g);
	group_free(g);
}

/* An allreduce of values that need rounding, one of which may be given. */
static uint32_t run_rounded(struct collective *g, size_t count, size_t at, double x,
			    uint64_t *ret_bits)
{
	uint32_t redone;

	g->rounded = true;
	start(g, &(struct call_options){ .verb = CALL_ALLREDUCE,
					 .dtype = TALLY_FLOAT32,
					 .op = TALLY_AVG,
					 .count = count });
	for (int rank = 0; rank < g->member.workers; rank++)
		for (size_t i = 0; i < count; i++)
			put(g, rank, i, ((double)(i % 5) - 2.5 - rank) / 7);
	put(g, 1, at, x);
	run(g);
	redone = g->call[0].redone;
	for (size_t i = 0; i < count; i++) {
		ret_bits[i] = bits_at(g, g->out[0], i);
		for (int rank = 1; rank < g->member.workers; rank++)
			assert_int_equal(bits_at(g, g->out[rank], i), ret_bits[i]);
	}
	end(g);
	return redone;
}

static void one_that_is_not_finite_takes_two_halves(size_t count, double x, uint64_t bits)
{
	struct collective *g = group_new(3, 2, 64);
	uint64_t narrow[100], wide[100];

	for (size_t at = 0; at < count; at++) {
		assert_int_equal(run_rounded(g, count, at, 0, narrow), 0);
		assert_int_equal(run_rounded(g, count, at, x, wide), wide_packets(g, at));
		assert_int_equal(wide[at], bits);
		wide[at] = narrow[at];
		assert_memory_equal(wide, narrow, count * sizeof(narrow[0]));
	}
	group_free(g);
}

static void nans_and_infinities_travel_wide_and_leave_the_others_alone(void **state)
{
	for (size_t last = 7; last <= 11; last++)
		one_that_is_not_finite_takes_two_halves(16 * 4 + last, NAN, 0x7fc00000);
	one_that_is_not_finite_takes_two_halves(9, INFINITY, 0x7f800000);
	one_that_is_not_finite_takes_two_halves(7, -INFINITY, 0xff800000);
}

static void infinities_of_both_signs_are_a_nan(void **state)
{
	struct collective *g = group_new(3, 2, 64);

	start(g, &(struct call_options){ .verb = CALL_ALLREDUCE,
					 .dtype = TALLY_FLOAT32,
					 .op = TALLY_SUM,
					 .count = 80 });
	put(g, 0, 70, INFINITY);
	put(g, 2, 70, -INFINITY);
	run(g);
	assert_int_equal(bits_at(g, g->out[1], 70), 0x7fc00000);
	end(g);
	group_free(g);
}

static void expect_entry(const struct call *c, uint32_t e, uint32_t chunk, enum call_form form)
{
	assert_int_equal(c->entry[e].chunk, chunk);
	assert_int_equal(c->entry[e].form, form);
}

/* The wrong guess of chunk 0, chunk 1 with both faults, chunk 3 that was known to be wide. */
static void a_later_round_does_what_is_left_in_the_order_of_chunks(void **state)
{
	static const enum call_verb verb[] = { CALL_ALLREDUCE, CALL_REDUCE };
	struct collective *g = group_new(3, 2, 64);

	for (int i = 0; i < 2; i++) {
		start(g, &(struct call_options){ .verb = verb[i],
						 .dtype = TALLY_FLOAT32,
						 .op = TALLY_SUM,
						 .root = 2,
						 .count = 16 * 5 });
		put(g, 2, 20, NAN);
		put(g, 0, 3 * 16 + 15, -INFINITY);
		for (int rank = 0; rank < 3; rank++)
			memcpy(g->given[rank], g->in[rank], 16 * 5 * sizeof(float));
		run_round(g);
		assert_true(next_round(g));
		assert_int_equal(g->call[1].entries, 4);
		assert_int_equal(g->call[1].redone, 4);
		expect_entry(&g->call[1], 0, 0, FORM_NARROW);
		expect_entry(&g->call[1], 1, 1, FORM_WIDE);
		expect_entry(&g->call[1], 2, 1, FORM_WIDE + 1);
		expect_entry(&g->call[1], 3, 3, FORM_WIDE + 1);
		run_round(g);
		assert_false(next_round(g));
		outputs_are_right(g);
		end(g);
		group_free(g);
		g = group_new(3, 2, 64);
	}
	group_free(g);
}

/* Chunk 3 goes in the form that chunk 1 has announced, and its result says otherwise. */
static void what_a_rank_announces_for_nothing_costs_packets_and_no_sum(void **state)
{
	static const struct {
		enum tally_dtype dtype;
		bool is_wide; /* chunk 3 needs to be */
		struct lie lie;
		uint32_t redone;
	} cases[] = {
		{ TALLY_INT32, false, { 1, TALLY_WIDE_AHEAD, 0 }, 1 },
		{ TALLY_FLOAT32, false, { 1, TALLY_WIDE_AHEAD, 0 }, 1 },
		{ TALLY_FLOAT32, false, { 1, 0, 90 }, 1 },
		{ TALLY_FLOAT32, false, { 1, TALLY_WIDE_AHEAD, 90 }, 1 },
		{ TALLY_FLOAT32, true, { 1, 0, 90 }, 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct collective *g = group_new(3, 2, 64);

		for (int call = 0; call < 2; call++) { /* the first one makes the guesses right */
			start(g, &(struct call_options){ .verb = CALL_ALLREDUCE,
							 .dtype = cases[i].dtype,
							 .op = TALLY_SUM,
							 .count = 16 * 5 });
			if (call && cases[i].is_wide)
				put(g, 1, 3 * 16 + 2, INFINITY);
			for (int rank = 0; rank < 3; rank++)
				memcpy(g->given[rank], g->in[rank], 16 * 5 * 4);
			g->lie = call ? cases[i].lie : (struct lie){ 0 };
			run_round(g);
			while (next_round(g))
				run_round(g);
			if (call)
				assert_int_equal(g->call[0].redone, cases[i].redone);
			outputs_are_right(g);
			end(g);
		}
		group_free(g);
	}
}

static void ranks_without_payload_conclude_the_same_rounds(void **state)
{
	static const enum call_verb verb[] = { CALL_REDUCE, CALL_REDUCE_SCATTER };

	for (int i = 0; i < 2; i++)
		for (uint16_t root = 0; root < 3; root++) {
			struct collective *g = group_new(3, 4, 64);
			struct call_options o = { .verb = verb[i],
						  .dtype = TALLY_FLOAT32,
						  .op = TALLY_SUM,
						  .root = root,
						  .count = 200 };

			start(g, &o); /* next_round() compares all ranks */
			put(g, 1, 3, NAN);
			put(g, 2, 199, INFINITY);
			assert_int_equal(run(g), 2);
			end(g);
			start(g, &o); /* and their guesses are the same */
			assert_int_equal(run(g), 1);
			end(g);
			for (int rank = 1; rank < 3; rank++)
				assert_memory_equal(&g->guesses[rank], &g->guesses[0],
						    sizeof(g->guesses[0]));
			group_free(g);
		}
}

/* --- in place, and averages */

static void outputs_may_lie_where_the_inputs_are(void **state)
{
	static const enum call_verb verb[] = { CALL_ALLREDUCE, CALL_REDUCE, CALL_REDUCE_SCATTER,
					       CALL_ALL_GATHER };

	for (int i = 0; i < 4; i++)
		for (enum tally_dtype t = TALLY_INT32; t <= TALLY_FLOAT32; t++)
			for (size_t count = 0; count < 100; count += 9) {
				struct collective *g = group_new(3, 2, 64);

				g->in_place = true;
				start(g, &(struct call_options){ .verb = verb[i],
								 .dtype = t,
								 .op = TALLY_SUM,
								 .root = 1,
								 .count = count });
				if (t == TALLY_INT32 && in_count(g)) /* wide, too */
					put(g, 2, in_count(g) - 1, INT32_MAX);
				if (t == TALLY_FLOAT32 && in_count(g))
					put(g, 0, in_count(g) / 2, -INFINITY);
				run(g);
				end(g);
				group_free(g);
			}
}

static void averages_of_integers_truncate_towards_zero(void **state)
{
	static const enum tally_dtype dtype[] = { TALLY_INT32, TALLY_INT64 };

	for (int i = 0; i < 2; i++) {
		struct collective *g = group_new(3, 2, 64);

		start(g, &(struct call_options){ .verb = CALL_ALLREDUCE,
						 .dtype = dtype[i],
						 .op = TALLY_AVG,
						 .count = 99 });
		put_all(g, 0);
		for (size_t at = 0; at < 99; at++)
			put(g, 1, at, (double)at - 49);
		put(g, 0, 40, INT32_MAX); /* one chunk is wide */
		run(g);
		end(g);

		start(g, &(struct call_options){ .verb = CALL_REDUCE,
						 .dtype = dtype[i],
						 .op = TALLY_AVG,
						 .count = 2 });
		put_all(g, 0);
		put(g, 1, 0, -8);
		put(g, 1, 1, 8);
		run(g);
		assert_int_equal((int32_t)bits_at(g, g->out[0], 0), -2);
		assert_int_equal((int32_t)bits_at(g, g->out[0], 1), 2);
		end(g);
		group_free(g);
	}
}

static void an_average_of_int32_is_right_where_the_sum_wraps(void **state)
{
	static const int32_t value[] = { 2000000000, -2000000000, INT32_MAX, INT32_MIN };

	for (int i = 0; i < 4; i++) {
		struct collective *g = group_new(2, 2, 64);

		start(g, &(struct call_options){ .verb = CALL_ALLREDUCE,
						 .dtype = TALLY_INT32,
						 .op = TALLY_AVG,
						 .count = 1 });
		put_all(g, value[i]);
		run(g);
		for (int rank = 0; rank < 2; rank++)
			assert_int_equal((int32_t)bits_at(g, g->out[rank], 0), value[i]);
		end(g);
		group_free(g);
	}
}

static void averages_of_floats_are_rounded_once(void **state)
{
	struct collective *g = group_new(3, 2, 64);

	start(g, &(struct call_options){ .verb = CALL_REDUCE_SCATTER,
					 .dtype = TALLY_FLOAT32,
					 .op = TALLY_AVG,
					 .count = 99 });
	put(g, 1, 50, -INFINITY);
	run(g);
	end(g);
	group_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_element_travels_once_from_whom_and_to_whom_it_must),
		cmocka_unit_test(a_broadcast_reaches_all_and_leaves_its_root_alone),
		cmocka_unit_test(too_many_chunks_are_refused),
		cmocka_unit_test(only_float32_is_at_a_place_with_a_scale),
		cmocka_unit_test(a_wrong_guess_is_repeated_with_the_announced_scale),
		cmocka_unit_test(a_right_guess_is_not_repeated),
		cmocka_unit_test(guesses_are_remembered_for_the_same_shape),
		cmocka_unit_test(a_long_call_has_guesses_for_one_window_only),
		cmocka_unit_test(a_shape_is_what_the_protocol_says),
		cmocka_unit_test(behind_the_first_window_scales_are_announced),
		cmocka_unit_test(values_are_looked_at_once),
		cmocka_unit_test(int32_at_the_limit_travels_narrow),
		cmocka_unit_test(int32_one_past_the_limit_travels_wide),
		cmocka_unit_test(int32_sums_wrap),
		cmocka_unit_test(nans_and_infinities_travel_wide_and_leave_the_others_alone),
		cmocka_unit_test(infinities_of_both_signs_are_a_nan),
		cmocka_unit_test(a_later_round_does_what_is_left_in_the_order_of_chunks),
		cmocka_unit_test(what_a_rank_announces_for_nothing_costs_packets_and_no_sum),
		cmocka_unit_test(ranks_without_payload_conclude_the_same_rounds),
		cmocka_unit_test(outputs_may_lie_where_the_inputs_are),
		cmocka_unit_test(averages_of_integers_truncate_towards_zero),
		cmocka_unit_test(an_average_of_int32_is_right_where_the_sum_wraps),
		cmocka_unit_test(averages_of_floats_are_rounded_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
