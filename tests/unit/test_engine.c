// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whole workers without sockets: engines talk to a root (memory_node.h) over a network that loses,
 * repeats and reorders, under a clock that the test turns. Every result is compared with sums
 * computed the plain way.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/engine.h"
#include "client/lanes.h"
#include "tests/unit/memory_node.h"

enum {
	RANKS_MAX = 4,
	NET_MAX = 4096,
	PAYLOAD = MESSAGE_BLOCKS_MAX * TALLY_BLOCK_BYTES, /* 32 int32 or float32, 16 int64 */
	JOB = 7,
	EPOCH = 1,
	TIMEOUT_NS = 2000000000,
};

/* Where a message goes, if not to a rank. */
enum {
	NODE = -1,
};

struct sim {
	uint32_t random;
	uint32_t loss_percent, dup_percent;
	int ranks, window;
	uint64_t now_ns;
	bool mute;  /* the node is gone */
	int dead;  /* this rank sends nothing; -1: none */
	struct tally_set everyone;
	struct memory_node node;
	struct visit waiting; /* for its second step, if is_waiting */
	bool is_waiting;
	struct engine *engine[RANKS_MAX];
	struct message *net;
	int in_flight;
	uint64_t results;
};

static uint32_t sim_random(struct sim *s, uint32_t below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 17;
	s->random ^= s->random << 5;
	return s->random % below;
}

static void net_put(struct sim *s, const struct message *m)
{
	int copies = 1 + (sim_random(s, 100) < s->dup_percent);

	if (sim_random(s, 100) < s->loss_percent)
		return;
	while (copies-- && s->in_flight < NET_MAX)
		s->net[s->in_flight++] = *m;
}

static void worker_say(struct sim *s, const struct datagram *d)
{
	struct message m = { .to = NODE };

	assert_in_range(d->length, sizeof(m.header), sizeof(m.header) + PAYLOAD);
	memcpy(&m.header, d->bytes, sizeof(m.header));
	memcpy(m.word, (const uint8_t *)d->bytes + sizeof(m.header), d->length - sizeof(m.header));
	assert_int_equal(message_bytes(&m), d->length);
	net_put(s, &m);
}

static void node_leave(struct sim *s, struct visit *v)
{
	int sender = __builtin_ffsll(v->message.header.set[0]) - 1;
	enum tally_outcome outcome = visit_end(&s->node, v);
	enum tally_to to = tally_outcome_to(outcome);

	s->results += outcome == TALLY_COMPLETED;
	assert_true(outcome >= TALLY_CONFLICT); /* nothing that workers send is refused */
	assert_true(to != TALLY_TO_ROOT);
	for (int rank = 0; rank < s->ranks; rank++) {
		const struct tally_set me = { { 1ull << rank } };
		struct message copy;

		if (to != TALLY_TO_GROUP && (to != TALLY_TO_SENDER || rank != sender))
			continue;
		copy = message_copy(&v->message, &me);
		copy.to = rank;
		net_put(s, &copy);
	}
}

static void node_go_on(struct sim *s)
{
	if (s->is_waiting)
		node_leave(s, &s->waiting);
	s->is_waiting = false;
}

/* At times other messages come between the two steps of one. */
static void node_take(struct sim *s, const struct message *m)
{
	struct visit v;

	visit_begin(&s->node, m, &v);
	if (v.reply.take && !s->is_waiting && sim_random(s, 4) == 0) {
		s->waiting = v;
		s->is_waiting = true;
		return;
	}
	node_leave(s, &v);
	if (sim_random(s, 4) == 0)
		node_go_on(s);
}

static struct sim *sim_new(uint32_t seed, int ranks, int window)
{
	struct sim *s = calloc(1, sizeof(*s));

	*s = (struct sim){ .random = seed * 2654435761u | 1,
			   .ranks = ranks,
			   .window = window,
			   .now_ns = 1000,
			   .dead = -1,
			   .everyone = tally_set_first(ranks) };
	s->net = calloc(NET_MAX, sizeof(*s->net));
	s->node = (struct memory_node){
		.role = { .everyone = &s->everyone,
			  .below = &s->everyone,
			  .epoch = EPOCH,
			  .blocks_max = MESSAGE_BLOCKS_MAX,
			  .root = true },
		.boot = 1,
		.frames_grow = true,
		.slots = 2 * window,
		.slot = calloc(2 * window, sizeof(struct memory_slot)),
	};
	for (int rank = 0; rank < ranks; rank++) {
		struct engine_options o = {
			.window = { .job = JOB,
				    .epoch = EPOCH,
				    .rank = rank,
				    .workers = ranks,
				    .window = window,
				    .payload_bytes = PAYLOAD },
			.timeout_ns = TIMEOUT_NS,
			.service = "10.77.0.1",
		};

		assert_int_equal(engine_new(&o, &s->engine[rank]), 0);
	}
	return s;
}

static void sim_free(struct sim *s)
{
	for (int rank = 0; rank < s->ranks; rank++)
		engine_free(s->engine[rank]);
	free(s->net);
	free(s->node.slot);
	free(s);
}

static void node_forgets(struct sim *s)
{
	memset(s->node.slot, 0, s->node.slots * sizeof(*s->node.slot));
	s->node.boot++;
}

/* One thing happens: something is sent, delivered, or the clock moves on. */
static void sim_step(struct sim *s)
{
	struct datagram d[8];
	uint64_t next = UINT64_MAX;

	for (int rank = 0; rank < s->ranks; rank++) {
		size_t n = engine_output(s->engine[rank], s->now_ns, d, 8);

		for (size_t i = 0; i < n && rank != s->dead; i++)
			worker_say(s, &d[i]);
	}
	if (s->in_flight) {
		int pick = sim_random(s, s->in_flight < 16 ? s->in_flight : 16);
		struct message m = s->net[pick];

		memmove(&s->net[pick], &s->net[pick + 1],
			(--s->in_flight - pick) * sizeof(*s->net));
		s->now_ns += 1000;
		if (m.to == NODE && !s->mute)
			node_take(s, &m);
		else if (m.to != NODE)
			engine_input(s->engine[m.to], &m.header, message_bytes(&m), s->now_ns);
		return;
	}
	node_go_on(s);
	if (s->in_flight)
		return;
	for (int rank = 0; rank < s->ranks; rank++)
		if (engine_wakeup(s->engine[rank]) < next)
			next = engine_wakeup(s->engine[rank]);
	s->now_ns = next > s->now_ns && next != UINT64_MAX ? next : s->now_ns + 1000000;
}

static int sim_finish(struct sim *s, struct tally_call **call)
{
	int result = 0;

	for (int rank = 0; rank < s->ranks; rank++) {
		if (rank == s->dead)
			continue;
		for (int steps = 0; !engine_is_over(call[rank]); steps++) {
			assert_true(steps < 2000000);
			sim_step(s);
		}
		if (engine_collect(call[rank], NULL) < 0)
			result = -1;
	}
	return result;
}

/* --- one collective on all ranks, checked */

static uint32_t bits_of(float x)
{
	uint32_t b;

	memcpy(&b, &x, 4);
	return b;
}

/* The element's value on a rank: integers of all sizes; for floats magnitudes that vary. */
static void make_input(struct sim *s, enum tally_dtype t, void *in, size_t count, bool wild)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t r = sim_random(s, UINT32_MAX);

		if (t == TALLY_INT32)
			((int32_t *)in)[i] = r;
		else if (t == TALLY_INT64)
			((int64_t *)in)[i] = (int64_t)((uint64_t)r * r * (r & 1 ? 1 : -1));
		else
			((float *)in)[i] = ldexpf((int32_t)r, wild ? -31 + (int)(r % 60) : -31);
		if (t == TALLY_FLOAT32 && wild && r % 97 == 0)
			((float *)in)[i] = r & 128 ? INFINITY : r & 256 ? -INFINITY : NAN;
	}
}

static bool sum_is_right(enum tally_dtype t, void *in[], int ranks, size_t at, const void *out,
			 size_t out_at, double block_max)
{
	int64_t sum = 0;
	double exact = 0, bound;

	for (int rank = 0; rank < ranks; rank++) {
		if (t == TALLY_INT32)
			sum += ((int32_t *)in[rank])[at];
		else if (t == TALLY_INT64)
			sum = (int64_t)((uint64_t)sum + ((uint64_t *)in[rank])[at]);
		else
			exact += ((float *)in[rank])[at];
	}
	if (t == TALLY_INT32)
		return ((const int32_t *)out)[out_at] == (int32_t)sum;
	if (t == TALLY_INT64)
		return ((const int64_t *)out)[out_at] == sum;
	if (isnan(exact))
		return bits_of(((const float *)out)[out_at]) == 0x7fc00000;
	if (isinf(exact))
		return ((const float *)out)[out_at] == exact;
	/* A scale step is 16, so units are at most 16 * max / 2^bits, bits = 30 - log2(4). */
	bound = ranks * 16 * block_max / (1 << 28) + fabs(exact) * 0x1p-23;
	return fabs(((const float *)out)[out_at] - exact) <= bound;
}

/* Largest finite magnitude among all ranks in the whole chunk of element `at`. */
static double block_max_of(void *in[], int ranks, size_t at, size_t count)
{
	size_t per_chunk = PAYLOAD / 4, first = at / per_chunk * per_chunk;
	double max = 0;

	for (int rank = 0; rank < ranks; rank++)
		for (size_t i = first; i < first + per_chunk && i < count; i++)
			if (isfinite(((float *)in[rank])[i]))
				max = fmax(max, fabs((double)((float *)in[rank])[i]));
	return max;
}

struct collective {
	enum call_verb verb;
	enum tally_dtype dtype;
	size_t count;
	uint16_t root;
	bool in_place;
	bool wild;
};

static void check(struct sim *s, const struct collective *c, void *in[], void *out[])
{
	size_t bytes = c->dtype == TALLY_INT64 ? 8 : 4, total = c->count;

	if (c->verb == CALL_REDUCE_SCATTER || c->verb == CALL_ALL_GATHER)
		total *= s->ranks;
	for (size_t i = 0; i < total; i++) {
		size_t part = i / (c->count ? c->count : 1), at = i % (c->count ? c->count : 1);
		double max = c->dtype == TALLY_FLOAT32 && c->verb < CALL_ALL_GATHER &&
					     c->verb != CALL_REDUCE_SCATTER
				     ? block_max_of(in, s->ranks, i, total)
				     : 0;

		for (int rank = 0; rank < s->ranks; rank++) {
			const uint8_t *o = out[rank];

			if (c->verb == CALL_ALLREDUCE ||
			    (c->verb == CALL_REDUCE && rank == c->root))
				assert_true(sum_is_right(c->dtype, in, s->ranks, i, o, i, max));
			else if (c->verb == CALL_REDUCE_SCATTER && rank == (int)part && !c->wild)
				assert_true(sum_is_right(c->dtype, in, s->ranks, i, o, at, 1));
			else if (c->verb == CALL_BROADCAST)
				assert_memory_equal(o + i * bytes,
						    (uint8_t *)in[c->root] + i * bytes, bytes);
			else if (c->verb == CALL_ALL_GATHER)
				assert_memory_equal(o + i * bytes, (uint8_t *)in[part] + at * bytes,
						    bytes);
		}
		if (c->verb == CALL_ALLREDUCE)
			for (int rank = 1; rank < s->ranks; rank++)
				assert_memory_equal((uint8_t *)out[rank] + i * bytes,
						    (uint8_t *)out[0] + i * bytes, bytes);
	}
}

static void run_collective(struct sim *s, const struct collective *c)
{
	size_t bytes = (c->count + 1) * 8 * s->ranks;
	struct tally_call *call[RANKS_MAX] = { 0 };
	void *in[RANKS_MAX] = { 0 }, *out[RANKS_MAX] = { 0 }, *given[RANKS_MAX] = { 0 };

	for (int rank = 0; rank < s->ranks; rank++) {
		in[rank] = calloc(1, bytes);
		out[rank] = calloc(1, bytes);
		make_input(s, c->dtype, in[rank], c->count * s->ranks, c->wild);
		given[rank] = c->in_place || c->verb == CALL_BROADCAST ? out[rank] : in[rank];
		memcpy(given[rank], in[rank], bytes);
		assert_int_equal(engine_start(s->engine[rank],
					      &(struct call_options){ .verb = c->verb,
								      .dtype = c->dtype,
								      .op = TALLY_SUM,
								      .root = c->root,
								      .count = c->count,
								      .in = given[rank],
								      .out = out[rank] },
					      s->now_ns, &call[rank]),
				 0);
	}
	assert_int_equal(sim_finish(s, call), 0);
	check(s, c, in, out);
	for (int rank = 0; rank < s->ranks; rank++) {
		free(in[rank]);
		free(out[rank]);
	}
}

/* --- facts */

static void every_collective_is_exact_under_loss(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 60; seed++) {
		struct sim *s = sim_new(seed, 1 + seed % RANKS_MAX, 1 << seed % 4);

		s->loss_percent = seed % 3 * 8;
		s->dup_percent = seed % 2 * 10;
		for (enum call_verb verb = CALL_ALLREDUCE; verb <= CALL_BARRIER; verb++)
			for (enum tally_dtype t = TALLY_INT32; t <= TALLY_FLOAT32; t++)
				run_collective(
					s,
					&(struct collective){
						.verb = verb,
						.dtype = t,
						.count = verb == CALL_BARRIER ? 0
									      : sim_random(s, 300),
						.root = sim_random(s, s->ranks),
						.in_place = verb < CALL_BROADCAST && seed & 1 });
		sim_free(s);
	}
}

static void floats_of_all_magnitudes_with_nans_and_infinities_arrive(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 60; seed++) {
		struct sim *s = sim_new(seed, 1 + seed % RANKS_MAX, 1 << seed % 4);

		s->loss_percent = seed % 3 * 5;
		for (int i = 0; i < 4; i++)
			run_collective(s, &(struct collective){ .verb = CALL_ALLREDUCE + i % 2,
								.dtype = TALLY_FLOAT32,
								.count = sim_random(s, 500),
								.in_place = seed & 1,
								.wild = true });
		sim_free(s);
	}
}

static void a_node_that_forgets_again_and_again_loses_nothing(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 40; seed++) {
		struct sim *s = sim_new(seed, 2 + seed % 3, 4);
		struct tally_call *call[RANKS_MAX] = { 0 };
		int64_t in[RANKS_MAX][400], out[RANKS_MAX][400];

		s->loss_percent = 10;
		for (int rank = 0; rank < s->ranks; rank++) {
			make_input(s, TALLY_INT64, in[rank], 400, false);
			engine_start(s->engine[rank],
				     &(struct call_options){ .verb = seed & 1 ? CALL_ALLREDUCE
									      : CALL_REDUCE,
							     .dtype = TALLY_INT64,
							     .op = TALLY_SUM,
							     .count = 400,
							     .in = in[rank],
							     .out = out[rank] },
				     s->now_ns, &call[rank]);
		}
		for (int i = 0; i < 400; i++) {
			sim_step(s);
			if (sim_random(s, 40) == 0)
				node_forgets(s);
		}
		assert_int_equal(sim_finish(s, call), 0);
		for (int i = 0; i < 400; i++)
			assert_true(sum_is_right(TALLY_INT64,
						 (void *[]){ in[0], in[1], in[2], in[3] }, s->ranks,
						 i, out[0], i, 0));
		sim_free(s);
	}
}

static void a_small_float_call_of_a_known_shape_takes_one_round_trip(void **state)
{
	struct sim *s = sim_new(1, 4, 4);
	struct tally_call *call[RANKS_MAX] = { 0 };
	float x[RANKS_MAX][8];
	uint64_t before;

	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		before = s->results;
		for (int rank = 0; rank < 4; rank++) {
			for (int i = 0; i < 8; i++)
				x[rank][i] = 100 + rank + i;
			engine_start(s->engine[rank],
				     &(struct call_options){ .verb = CALL_ALLREDUCE,
							     .dtype = TALLY_FLOAT32,
							     .op = TALLY_SUM,
							     .count = 8,
							     .in = x[rank],
							     .out = x[rank] },
				     s->now_ns, &call[rank]);
		}
		assert_int_equal(sim_finish(s, call), 0);
		/* The first one guesses wrongly and sends the chunk again; then it is known. */
		assert_int_equal(s->results - before, turn == 0 ? 2 : 1);
		assert_true(x[2][3] == 418);
	}
	sim_free(s);
}

static void start_allreduces(struct sim *s, int32_t x[][64], struct tally_call **call)
{
	for (int rank = 0; rank < s->ranks; rank++)
		assert_int_equal(engine_start(s->engine[rank],
					      &(struct call_options){ .verb = CALL_ALLREDUCE,
								      .dtype = TALLY_INT32,
								      .op = TALLY_SUM,
								      .count = 64,
								      .in = x[rank],
								      .out = x[rank] },
					      s->now_ns, &call[rank]),
				 0);
}

static int result_of(struct tally_call *call)
{
	assert_true(engine_is_over(call));
	return engine_collect(call, NULL);
}

static void a_dead_rank_is_named(void **state)
{
	struct sim *s = sim_new(1, 4, 4);
	struct tally_call *call[RANKS_MAX] = { 0 };
	int32_t x[RANKS_MAX][64] = { 0 };

	(void)state;
	s->dead = 2;
	start_allreduces(s, x, call);
	while (!engine_is_over(call[0]) || !engine_is_over(call[1]))
		sim_step(s);
	assert_int_equal(result_of(call[0]), -ETIMEDOUT);
	assert_string_equal(tally_error(), "rank 2 missing: no contribution for 2.0 s");
	assert_int_equal(result_of(call[1]), -ETIMEDOUT);
	sim_free(s);
}

static void a_rank_whose_call_differs_hears_that_it_is_the_missing_one(void **state)
{
	struct sim *s = sim_new(1, 2, 4);
	struct tally_call *call[RANKS_MAX] = { 0 };
	struct call_options options = { .verb = CALL_ALLREDUCE, .op = TALLY_SUM, .count = 8 };
	int64_t x[RANKS_MAX][8] = { 0 };
	int told = 0;

	(void)state;
	for (int rank = 0; rank < s->ranks; rank++) {
		options.dtype = rank == 0 ? TALLY_INT32 : TALLY_INT64;
		options.in = options.out = x[rank];
		assert_int_equal(engine_start(s->engine[rank], &options, s->now_ns, &call[rank]),
				 0);
	}
	while (!engine_is_over(call[0]) || !engine_is_over(call[1]))
		sim_step(s);
	for (int rank = 0; rank < s->ranks; rank++) {
		char own[64];

		snprintf(own, sizeof(own), "from rank %d, this one, for 2.0 s: do all", rank);
		assert_int_equal(result_of(call[rank]), -ETIMEDOUT);
		told += strstr(tally_error(), own) != NULL;
	}
	assert_true(told > 0);
	sim_free(s);
}

static void a_silent_node_is_told_from_a_missing_rank(void **state)
{
	struct sim *s = sim_new(1, 2, 4);
	struct tally_call *call[RANKS_MAX] = { 0 };
	int32_t x[RANKS_MAX][64] = { 0 };

	(void)state;
	s->mute = true;
	start_allreduces(s, x, call);
	engine_unreachable(s->engine[1]);
	while (!engine_is_over(call[0]) || !engine_is_over(call[1]))
		sim_step(s);
	assert_int_equal(result_of(call[0]), -ETIMEDOUT);
	assert_string_equal(tally_error(), "no node answered at 10.77.0.1 for 2.0 s: no way there, "
					   "or the job's epoch is over or was used before");
	assert_int_equal(result_of(call[1]), -ETIMEDOUT);
	assert_non_null(strstr(tally_error(), "port unreachable"));
	sim_free(s);
}

/* Neither at once nor when any of its timeouts would be due. */
static void assert_sends_nothing(struct sim *s, struct engine *e)
{
	struct datagram d[64];

	for (int i = 0; i < 1000; i++) {
		s->now_ns += WINDOW_RTO_FIRST_NS;
		assert_int_equal(engine_output(e, s->now_ns, d, 64), 0);
	}
	assert_true(engine_wakeup(e) == UINT64_MAX);
}

static void a_job_that_is_over_sends_nothing_more(void **state)
{
	struct sim *s = sim_new(1, 2, 4);
	struct tally_call *call[RANKS_MAX] = { 0 };
	int32_t x[RANKS_MAX][64] = { 0 };

	(void)state;
	s->mute = true;
	start_allreduces(s, x, call);
	sim_step(s);
	engine_abort(s->engine[0]);
	assert_sends_nothing(s, s->engine[0]);
	assert_int_equal(result_of(call[0]), -ECANCELED);
	assert_int_equal(engine_start(s->engine[0], &(struct call_options){ .verb = CALL_BARRIER },
				      s->now_ns, &call[0]),
			 -ECONNABORTED);
	assert_string_equal(tally_error(), "the job was aborted: close it");
	while (!engine_is_over(call[1]))
		sim_step(s);
	assert_sends_nothing(s, s->engine[1]);
	assert_int_equal(result_of(call[1]), -ETIMEDOUT);
	sim_free(s);
}

static void a_node_of_another_version_is_named(void **state)
{
	struct sim *s = sim_new(1, 2, 4);
	struct tally_header h = { .magic = TALLY_MAGIC, .version = 9 };
	struct tally_call *call[RANKS_MAX] = { 0 };
	int32_t x[RANKS_MAX][64] = { 0 };
	struct datagram d[8];

	(void)state;
	start_allreduces(s, x, call);
	engine_input(s->engine[0], &h, sizeof(h), s->now_ns);
	engine_output(s->engine[0], s->now_ns, d, 8);
	assert_int_equal(result_of(call[0]), -EPROTONOSUPPORT);
	assert_string_equal(tally_error(),
			    "the node at 10.77.0.1 speaks version 9, this library version 1");
	sim_free(s);
}

static void after_a_failure_nothing_can_be_started(void **state)
{
	struct sim *s = sim_new(1, 2, 4);
	struct tally_call *call[RANKS_MAX] = { 0 }, *second = NULL, *third = NULL;
	int32_t x[RANKS_MAX][64] = { 0 };

	(void)state;
	s->mute = true;
	start_allreduces(s, x, call);
	engine_start(s->engine[0], &(struct call_options){ .verb = CALL_BARRIER }, s->now_ns,
		     &second);
	engine_start(s->engine[0], &(struct call_options){ .verb = CALL_BARRIER }, s->now_ns,
		     &third);
	while (!engine_is_over(call[0]))
		sim_step(s);
	assert_int_equal(result_of(second), -ECONNABORTED);
	assert_int_equal(result_of(third), -ECONNABORTED);
	assert_non_null(strstr(tally_error(), "an earlier call failed: no node answered"));
	assert_int_equal(result_of(call[0]), -ETIMEDOUT);
	assert_int_equal(engine_start(s->engine[0], &(struct call_options){ .verb = CALL_BARRIER },
				      s->now_ns, &second),
			 -ECONNABORTED);
	sim_free(s);
}

static void calls_that_nobody_waits_for_are_limited(void **state)
{
	struct sim *s = sim_new(1, 2, 4);
	struct tally_call *call = NULL;

	(void)state;
	for (int i = 0; i < ENGINE_CALLS_MAX; i++)
		assert_int_equal(engine_start(s->engine[0],
					      &(struct call_options){ .verb = CALL_BARRIER },
					      s->now_ns, &call),
				 0);
	assert_int_equal(engine_start(s->engine[0], &(struct call_options){ .verb = CALL_BARRIER },
				      s->now_ns, &call),
			 -EBUSY);
	sim_free(s);
}

static void a_corrupt_result_is_never_taken(void **state)
{
	struct sim *s = sim_new(1, 2, 4);
	struct tally_call *call[RANKS_MAX] = { 0 };
	int32_t x[RANKS_MAX][64] = { 0 };
	bool spoilt = false;

	(void)state;
	x[0][5] = 40;
	x[1][5] = 2;
	start_allreduces(s, x, call);
	while (!engine_is_over(call[0]) || !engine_is_over(call[1])) {
		sim_step(s);
		if (s->in_flight && s->net[0].header.kind == TALLY_RESULT && !spoilt) {
			s->net[0].word[0] ^= 1 << 24;
			spoilt = true;
		}
	}
	assert_true(spoilt);
	assert_int_equal(result_of(call[0]) | result_of(call[1]), 0);
	assert_int_equal(window_stats(engine_window(s->engine[0]))->corrupt +
				 window_stats(engine_window(s->engine[1]))->corrupt,
			 1);
	assert_int_equal(x[0][5] + x[1][5], 84);
	sim_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_collective_is_exact_under_loss),
		cmocka_unit_test(floats_of_all_magnitudes_with_nans_and_infinities_arrive),
		cmocka_unit_test(a_node_that_forgets_again_and_again_loses_nothing),
		cmocka_unit_test(a_small_float_call_of_a_known_shape_takes_one_round_trip),
		cmocka_unit_test(a_dead_rank_is_named),
		cmocka_unit_test(a_job_that_is_over_sends_nothing_more),
		cmocka_unit_test(a_rank_whose_call_differs_hears_that_it_is_the_missing_one),
		cmocka_unit_test(a_silent_node_is_told_from_a_missing_rank),
		cmocka_unit_test(a_node_of_another_version_is_named),
		cmocka_unit_test(after_a_failure_nothing_can_be_started),
		cmocka_unit_test(calls_that_nobody_waits_for_are_limited),
		cmocka_unit_test(a_corrupt_result_is_never_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
