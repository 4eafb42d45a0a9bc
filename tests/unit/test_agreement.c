// SPDX-License-Identifier: GPL-2.0-only
/*
 * What ranks must agree in before they sum: the run, and each call. Engines and a root
 * (memory_node.h) over a network that delivers at once; the test turns the clock.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/engine.h"
#include "client/shape.h"
#include "tests/unit/memory_node.h"

enum {
	RANKS_MAX = 3,
	JOB = 7,
	EPOCH = 3,
	WINDOW = 4,
	SLOTS = 32,
	PAYLOAD = MESSAGE_BLOCKS_MAX * TALLY_BLOCK_BYTES,
	ELEMENTS = 100,
	MS = 1000000,
	TIMEOUT_NS = 2000 * MS,
	AT_ONCE_NS = 500 * MS, /* long before the timeout */
};

struct world {
	int ranks;
	uint64_t now_ns;
	struct tally_set everyone;
	struct memory_slot slot[SLOTS];
	struct memory_node node;
	struct engine *engine[RANKS_MAX];
	struct message first[64]; /* contributions as they came to the node, the first ones */
	int contributions;
	uint64_t late_timeout_ns;
	uint64_t agreement[RANKS_MAX]; /* 0: a job of one root */
};

static struct world *world_new(int ranks)
{
	struct world *w = calloc(1, sizeof(*w));

	w->ranks = ranks;
	w->now_ns = 1000 * (uint64_t)MS;
	w->everyone = tally_set_first(ranks);
	w->node = (struct memory_node){
		.role = { .everyone = &w->everyone,
			  .below = &w->everyone,
			  .epoch = EPOCH,
			  .blocks_max = MESSAGE_BLOCKS_MAX,
			  .root = true },
		.boot = 1,
		.frames_grow = true,
		.slots = SLOTS,
		.slot = w->slot,
	};
	return w;
}

static uint64_t random_of(int rank) { return 0x1000 + rank; }

/* A process that becomes a rank; before, there may have been another one. */
static void join(struct world *w, int rank, uint64_t nonce, uint64_t random, uint16_t window,
		 uint16_t payload)
{
	struct engine_options o = {
		.window = { .job = JOB,
			    .epoch = EPOCH,
			    .rank = rank,
			    .workers = w->ranks,
			    .window = window,
			    .payload_bytes = payload,
			    .nonce = nonce },
		.timeout_ns = TIMEOUT_NS,
		.late_timeout_ns = w->late_timeout_ns,
		.service = "10.77.0.1",
		.random = random,
		.agreement = w->agreement[rank],
	};

	engine_free(w->engine[rank]);
	assert_int_equal(engine_new(&o, &w->engine[rank]), 0);
}

static void join_all(struct world *w, uint64_t nonce, uint64_t random_shift)
{
	for (int rank = 0; rank < w->ranks; rank++)
		join(w, rank, nonce, random_of(rank) + random_shift, WINDOW, PAYLOAD);
}

static void world_free(struct world *w)
{
	for (int rank = 0; rank < w->ranks; rank++)
		engine_free(w->engine[rank]);
	free(w);
}

static void node_take(struct world *w, const struct message *m)
{
	int sender = tally_le16_get(m->header.sender);
	enum tally_to to;
	struct visit v;

	if (w->contributions < 64)
		w->first[w->contributions] = *m;
	w->contributions++;
	w->node.now_ms = w->now_ns / MS;
	visit_begin(&w->node, m, &v);
	to = tally_outcome_to(visit_end(&w->node, &v));
	for (int rank = 0; rank < w->ranks; rank++) {
		const struct tally_set me = { { 1ull << rank } };
		struct message copy = message_copy(&v.message, &me);

		if (w->engine[rank] &&
		    (to == TALLY_TO_GROUP || (to == TALLY_TO_SENDER && rank == sender)))
			engine_input(w->engine[rank], &copy.header, message_bytes(&copy),
				     w->now_ns);
	}
}

/* All that is to be sent now, and what follows from it. True: something was. */
static bool turn(struct world *w)
{
	bool any = false;

	for (int rank = 0; rank < w->ranks; rank++) {
		struct datagram d[8];
		size_t n = w->engine[rank] ? engine_output(w->engine[rank], w->now_ns, d, 1) : 0;
		struct message m;

		if (!n)
			continue;
		memset(&m, 0, sizeof(m));
		memcpy(&m.header, d[0].bytes, sizeof(m.header));
		memcpy(m.word, (const uint8_t *)d[0].bytes + sizeof(m.header),
		       d[0].length - sizeof(m.header));
		node_take(w, &m);
		any = true;
	}
	return any;
}

/* Until the calls are over; the clock goes on where nothing else does. */
static void finish(struct world *w, struct engine_call **call, int count)
{
	for (int steps = 0; count; steps++) {
		uint64_t next = UINT64_MAX;

		assert_true(steps < 1000000);
		if (engine_is_over(call[count - 1])) {
			count--;
			continue;
		}
		if (turn(w))
			continue;
		for (int rank = 0; rank < w->ranks; rank++)
			if (w->engine[rank] && engine_wakeup(w->engine[rank]) < next)
				next = engine_wakeup(w->engine[rank]);
		w->now_ns = next != UINT64_MAX && next > w->now_ns ? next : w->now_ns + MS;
	}
}

static struct engine_call *start(struct world *w, int rank, const struct call_options *options)
{
	struct engine_call *call = NULL;

	assert_int_equal(engine_start(w->engine[rank], options, w->now_ns, &call), 0);
	return call;
}

static const struct call_options barrier = { .verb = CALL_BARRIER };

static void start_all(struct world *w, const struct call_options *options,
		      struct engine_call **call)
{
	for (int rank = 0; rank < w->ranks; rank++)
		call[rank] = start(w, rank, options);
}

/* One barrier of all; it succeeds. */
static void meet(struct world *w)
{
	struct engine_call *call[RANKS_MAX] = { 0 };

	start_all(w, &barrier, call);
	finish(w, call, w->ranks);
	for (int rank = 0; rank < w->ranks; rank++)
		assert_int_equal(engine_collect(call[rank], NULL), 0);
}

static void assert_fails(struct engine_call *call, int error, const char *words)
{
	assert_int_equal(engine_collect(call, NULL), -error);
	if (!strstr(tally_error(), words))
		fail_msg("'%s' is not in '%s'", words, tally_error());
}

/* An allreduce of one int64 on each rank; it succeeds, and all have the sum. */
static void sum_is(struct world *w, int64_t first)
{
	int64_t x[RANKS_MAX] = { 0 }, expected = 0;
	struct engine_call *call[RANKS_MAX] = { 0 };

	for (int rank = 0; rank < w->ranks; rank++) {
		expected += x[rank] = first << rank;
		call[rank] = start(w, rank,
				   &(struct call_options){ .verb = CALL_ALLREDUCE,
							   .dtype = TALLY_INT64,
							   .op = TALLY_SUM,
							   .count = 1,
							   .in = &x[rank],
							   .out = &x[rank] });
	}
	finish(w, call, w->ranks);
	for (int rank = 0; rank < w->ranks; rank++) {
		assert_int_equal(engine_collect(call[rank], NULL), 0);
		assert_int_equal(x[rank], expected);
	}
}

/* --- the opening */

static bool is_opening(const struct message *m)
{
	return (tally_le64_get(m->header.call) & 7) == CALL_OPENING;
}

static void the_opening_comes_once_before_the_first_call(void **state)
{
	struct world *w = world_new(3);
	int openings = 0;

	join_all(w, 0, 0);
	assert_true(engine_is_idle(w->engine[0]));
	for (int i = 1; i <= 3; i++)
		sum_is(w, i);
	assert_int_equal(w->contributions, 3 * 4);
	for (int i = 0; i < w->contributions; i++) {
		assert_int_equal(is_opening(&w->first[i]), i < 3);
		openings += is_opening(&w->first[i]);
	}
	assert_int_equal(openings, 3);
	assert_int_equal(engine_ended(w->engine[0]), 3); /* no call of the program's */
	world_free(w);
}

static void who_has_a_nonce_needs_no_opening(void **state)
{
	struct world *w = world_new(2);

	join_all(w, 99, 0);
	sum_is(w, 5);
	assert_int_equal(w->contributions, 2);
	assert_false(is_opening(&w->first[0]));
	world_free(w);
}

/* Out of the numbers of all, in the order of their ranks. */
static void all_ranks_make_the_same_nonce(void **state)
{
	struct world *w = world_new(3);
	struct call_member member = { .window = WINDOW, .payload_bytes = PAYLOAD };
	uint64_t nonce = 0, call = shape_of(&member, &barrier);

	join_all(w, 0, 0);
	meet(w);
	for (int rank = 0; rank < 3; rank++)
		nonce = tally_mix(nonce, random_of(rank));
	for (int i = 3; i < 6; i++) {
		const struct tally_header *h = &w->first[i].header;
		uint64_t run = tally_run_identity(nonce, JOB, EPOCH);

		assert_true(tally_le64_get(h->call) == call);
		assert_true(tally_le64_get(h->check) ==
			    tally_identity(run, tally_le32_get(h->seq), call, 0) *
				    tally_weight(tally_le16_get(h->sender)));
	}
	world_free(w);
}

static void a_call_of_nothing_does_not_open(void **state)
{
	const struct call_options nothing = { .verb = CALL_ALLREDUCE,
					      .dtype = TALLY_INT32,
					      .op = TALLY_SUM };
	struct world *w = world_new(2);
	struct engine_call *call;

	join_all(w, 0, 0);
	call = start(w, 0, &nothing);
	assert_true(engine_is_over(call));
	assert_int_equal(engine_collect(call, NULL), 0);
	assert_false(turn(w));
	sum_is(w, 7);
	assert_int_equal(w->contributions, 4);
	world_free(w);
}

/* --- runs that used the epoch before */

/* The first result that comes is the earlier run's. */
static void an_old_result_in_the_opening_ends_the_run(void **state)
{
	struct world *w = world_new(2);
	struct engine_call *call[RANKS_MAX] = { 0 }, *second;
	uint64_t began_ns;

	join_all(w, 0, 0);
	meet(w);
	join_all(w, 0, 100);
	began_ns = w->now_ns;
	start_all(w, &barrier, call);
	second = start(w, 0, &barrier);
	finish(w, call, 2);
	assert_true(w->now_ns - began_ns < AT_ONCE_NS);
	assert_fails(call[0], ESTALE, "epoch 3 of job 7 was used before");
	assert_null(strstr(tally_error(), "an earlier call"));
	assert_fails(call[1], ESTALE, "runs as rank 1");
	assert_true(engine_is_over(second));
	assert_fails(second, ECONNABORTED, "an earlier call failed: epoch 3 of job 7 was used");
	world_free(w);
}

/* The slots serve later chunks than the first ones. */
static void a_rank_far_behind_ends_the_run(void **state)
{
	for (uint64_t nonce = 0; nonce < 2; nonce++) {
		struct world *w = world_new(2);
		struct engine_call *call[RANKS_MAX] = { 0 };
		uint64_t began_ns;

		join_all(w, nonce, 0);
		for (int i = 0; i < 2 * SLOTS; i++)
			meet(w);
		join_all(w, nonce ? 55 : 0, 100);
		began_ns = w->now_ns;
		start_all(w, &barrier, call);
		finish(w, call, 2);
		assert_true(w->now_ns - began_ns < AT_ONCE_NS);
		for (int rank = 0; rank < 2; rank++)
			assert_fails(call[rank], ESTALE, "epoch 3 of job 7 was used before");
		world_free(w);
	}
}

/* Who has a nonce finds the earlier run's sum wrong, and rejects it. */
static void a_sum_of_another_run_is_never_taken_and_goes(void **state)
{
	struct world *w = world_new(3);

	join_all(w, 1, 0);
	sum_is(w, 1);
	join_all(w, 2, 0);
	sum_is(w, 1000);
	for (int rank = 0; rank < 3; rank++)
		assert_in_range(window_stats(engine_window(w->engine[rank]))->corrupt, 2, 4);
	world_free(w);
}

/* No rank makes two calls at a time: the others are of an earlier run. */
static void a_rank_that_disagrees_with_itself_has_been_there_before(void **state)
{
	struct world *w = world_new(2);
	struct engine_call *call[RANKS_MAX] = { 0 };

	join_all(w, 1, 0);
	sum_is(w, 1);
	join_all(w, 2, 0);
	start_all(w, &barrier, call);
	finish(w, call, 2);
	for (int rank = 0; rank < 2; rank++)
		assert_fails(call[rank], ESTALE, "epoch 3 of job 7 was used before");
	world_free(w);
}

/* --- calls that differ */

struct rank_call {
	struct call_options options;
	uint16_t window, payload;
};

static const struct rank_call usual = {
	.options = { .verb = CALL_REDUCE,
		     .dtype = TALLY_FLOAT32,
		     .op = TALLY_SUM,
		     .root = 0,
		     .count = ELEMENTS },
	.window = WINDOW,
	.payload = PAYLOAD,
};

static uint64_t shape(const struct rank_call *c)
{
	struct call_member member = { .window = c->window, .payload_bytes = c->payload };

	return shape_of(&member, &c->options);
}

static void assert_says(const struct rank_call *c, const struct rank_call *other)
{
	char text[SHAPE_TEXT_BYTES];

	shape_print(shape(c), shape(other), text, sizeof(text));
	if (!strstr(tally_error(), text))
		fail_msg("'%s' is not in '%s'", text, tally_error());
}

static struct engine_call *start_rank(struct world *w, int rank, const struct rank_call *c,
				      uint64_t nonce)
{
	static double buffer[2][RANKS_MAX][RANKS_MAX * 4 * ELEMENTS];
	struct call_options o = c->options;

	o.in = buffer[0][rank];
	o.out = buffer[1][rank];
	join(w, rank, nonce, random_of(rank), c->window, c->payload);
	return start(w, rank, &o);
}

/* Both ranks hear it at once, and what both call. */
static void differ(const struct rank_call *other)
{
	for (int first = 0; first < 2; first++) {
		struct world *w = world_new(2);
		uint64_t began_ns = w->now_ns;
		struct engine_call *call[2] = { 0 };

		for (int i = 0; i < 2; i++) {
			int rank = i ^ first;

			call[rank] = start_rank(w, rank, rank ? other : &usual, 99);
		}
		finish(w, call, 2);
		assert_true(w->now_ns - began_ns < AT_ONCE_NS);
		for (int rank = 0; rank < 2; rank++) {
			assert_fails(call[rank], EPROTO, "ranks make different calls: rank ");
			assert_non_null(strstr(tally_error(), "(this one"));
			assert_says(&usual, other);
			assert_says(other, &usual);
		}
		world_free(w);
	}
}

static void calls_that_differ_fail_at_once_on_both_ranks(void **state)
{
	struct rank_call c[12];

	for (int i = 0; i < 12; i++)
		c[i] = usual;
	c[0].options.verb = CALL_ALLREDUCE;
	c[1].options.verb = CALL_BARRIER;
	c[2].options.verb = CALL_ALL_GATHER;
	c[3].options.verb = CALL_REDUCE_SCATTER;
	c[4].options.verb = CALL_BROADCAST;
	c[5].options.dtype = TALLY_INT32;
	c[6].options.dtype = TALLY_INT64;
	c[7].options.op = TALLY_AVG;
	c[8].options.root = 1;
	c[9].options.count--;
	c[10].window *= 2;
	c[11].payload /= 2;
	for (int i = 0; i < 12; i++)
		differ(&c[i]);
}

/* Where there is no nonce, a window or a payload that differs is found in the opening. */
static void the_opening_finds_ranks_that_are_set_up_differently(void **state)
{
	struct rank_call other = usual;
	struct world *w = world_new(2);
	struct engine_call *call[2] = { 0 };

	other.window *= 2;
	call[0] = start_rank(w, 0, &usual, 0);
	call[1] = start_rank(w, 1, &other, 0);
	finish(w, call, 2);
	assert_fails(call[0], EPROTO, "the first call, with window 4");
	assert_non_null(strstr(tally_error(), "the first call, with window 8"));
	assert_fails(call[1], EPROTO, "the first call, with window 4");
	world_free(w);
}

/* The root that they meet at is another one of their lists, or the lists are not the same. */
static void ranks_of_several_roots_agree_in_these_before_a_part_of_nothing(void **state)
{
	static const struct {
		uint64_t agreement;
		const char *says;
	} other[] = {
		{ 0, "the first call with one root" },
		{ 0xabcde10, "as root 1 of 2, with roots and shares abcde" },
		{ 0xabcde21, "as root 2 of 3, with roots and shares abcde" },
		{ 0xabcdf11, "as root 2 of 2, with roots and shares abcdf" },
	};
	struct rank_call nothing = usual;

	nothing.options.whole = nothing.options.count;
	nothing.options.count = 0;
	for (int i = 0; i < 4; i++) {
		struct world *w = world_new(2);
		uint64_t began_ns = w->now_ns;
		struct engine_call *call[2] = { 0 };

		w->agreement[0] = 0xabcde11;
		w->agreement[1] = other[i].agreement;
		call[0] = start_rank(w, 0, &nothing, 0);
		call[1] = start_rank(w, 1, &nothing, 0);
		finish(w, call, 2);
		assert_true(w->now_ns - began_ns < AT_ONCE_NS);
		for (int rank = 0; rank < 2; rank++) {
			assert_fails(call[rank], EPROTO, other[i].says);
			assert_non_null(strstr(tally_error(),
					       "as root 2 of 2, with roots and shares abcde"));
		}
		world_free(w);
	}
}

/* What the word has no room for is in the nonce that they make, also where they have one. */
static void no_sum_is_of_ranks_with_other_roots(void **state)
{
	struct rank_call sum = usual;
	struct world *w = world_new(2);
	struct engine_call *call[2] = { 0 };

	sum.options.verb = CALL_ALLREDUCE;
	w->agreement[0] = 0xabcde11;
	w->agreement[1] = 0xabcde11;
	join_all(w, 99, 0);
	sum_is(w, 5);
	assert_true(is_opening(&w->first[0]) && is_opening(&w->first[1]));
	assert_int_equal(w->contributions, 4);
	world_free(w);

	w = world_new(2);
	w->agreement[0] = 0xabcde11;
	w->agreement[1] = 1ull << 63 | 0xabcde11;
	call[0] = start_rank(w, 0, &sum, 99);
	call[1] = start_rank(w, 1, &sum, 99);
	finish(w, call, 2);
	for (int rank = 0; rank < 2; rank++)
		assert_fails(call[rank], EBADMSG, "wrong");
	world_free(w);
}

/* Also those that agree with most, and one that comes when the others have heard. */
static void every_rank_hears_of_it_also_who_is_late(void **state)
{
	struct rank_call other = usual;
	struct world *w = world_new(3);
	struct engine_call *call[3] = { 0 };
	uint64_t began_ns;

	other.options.count = 3;
	call[0] = start_rank(w, 0, &usual, 99);
	call[1] = start_rank(w, 1, &other, 99);
	finish(w, call, 2);
	began_ns = w->now_ns;
	call[2] = start_rank(w, 2, &usual, 99);
	finish(w, &call[2], 1);
	assert_true(w->now_ns - began_ns < AT_ONCE_NS);
	for (int rank = 0; rank < 3; rank++) {
		assert_fails(call[rank], EPROTO, "rank 1");
		assert_says(&usual, &other);
		assert_says(&other, &usual);
	}
	world_free(w);
}

/* A third call. */
static void a_rank_with_a_call_of_its_own_hears_all_three(void **state)
{
	struct rank_call other = usual, own = usual;
	struct world *w = world_new(3);
	struct engine_call *call[3] = { 0 };

	other.options.count = 3;
	own.options.verb = CALL_BARRIER;
	call[0] = start_rank(w, 0, &usual, 99);
	call[1] = start_rank(w, 1, &other, 99);
	call[2] = start_rank(w, 2, &own, 99);
	finish(w, call, 3);
	assert_fails(call[2], EPROTO,
		     "rank 1 calls reduce of 3 float32 to rank 0, sum, rank 0 calls "
		     "reduce of 100 float32 to rank 0, sum, this rank barrier");
	world_free(w);
}

/* A rank that agrees with one of them, but whose contribution was lost. */
static void a_rank_not_named_hears_what_differs_in_its_own_call(void **state)
{
	struct rank_call other = usual;
	struct world *w = world_new(3);
	struct engine_call *call[3] = { 0 };
	struct datagram lost;

	other.window *= 2;
	call[0] = start_rank(w, 0, &usual, 0);
	call[1] = start_rank(w, 1, &other, 0);
	call[2] = start_rank(w, 2, &usual, 0);
	assert_int_equal(engine_output(w->engine[2], w->now_ns, &lost, 1), 1);
	finish(w, call, 3);
	assert_fails(call[2], EPROTO,
		     "rank 1 calls the first call, with window 8, rank 0 calls the first call, "
		     "with window 4, this rank the first call, with window 4");
	world_free(w);
}

/* --- late ranks */

/* Until the call is over, or it is so late. */
static void wait_until(struct world *w, const struct engine_call *call, uint64_t until_ns)
{
	while (w->now_ns < until_ns && !engine_is_over(call))
		if (!turn(w))
			w->now_ns += MS;
}

/* Rank 1 comes to the barrier only after so long. Where all is well, all end well. */
static int result_of_late_barrier(bool watched, uint64_t late_timeout_ns, uint64_t late_ns)
{
	struct world *w = world_new(2);
	struct engine_call *call[2];
	int r;

	w->late_timeout_ns = late_timeout_ns;
	join_all(w, 1, 0);
	for (int rank = 0; rank < 2; rank++)
		engine_watch(w->engine[rank], watched);
	call[0] = start(w, 0, &barrier);
	wait_until(w, call[0], w->now_ns + late_ns);
	if (!engine_is_over(call[0])) {
		call[1] = start(w, 1, &barrier);
		finish(w, call, 2);
		assert_int_equal(engine_collect(call[1], NULL), 0);
	}
	r = engine_collect(call[0], NULL);
	world_free(w);
	return r;
}

static void a_late_rank_is_waited_for_where_its_end_would_be_told(void **state)
{
	assert_int_equal(result_of_late_barrier(true, 0, 5ull * TIMEOUT_NS), 0);
	assert_int_equal(result_of_late_barrier(true, 2ull * TIMEOUT_NS, 5ull * TIMEOUT_NS),
			 -ETIMEDOUT);
	assert_non_null(strstr(tally_error(), "rank 1 missing"));
}

/* A time in which nobody looked is forgiven, but not one after the other. */
static void who_looks_seldom_hears_of_the_timeout_too(void **state)
{
	struct world *w = world_new(2);
	struct engine_call *call;

	join_all(w, 1, 0);
	call = start(w, 0, &barrier);
	for (int looks = 0; looks < 10 && !engine_is_over(call); looks++) {
		while (turn(w))
			continue;
		w->now_ns += 600ull * MS;
	}
	assert_true(engine_is_over(call));
	assert_int_equal(engine_collect(call, NULL), -ETIMEDOUT);
	world_free(w);
}

static void otherwise_as_long_as_the_caller_says(void **state)
{
	assert_int_equal(result_of_late_barrier(false, 0, 5ull * TIMEOUT_NS), -ETIMEDOUT);
	assert_non_null(strstr(tally_error(), "rank 1 missing"));
	assert_int_equal(result_of_late_barrier(false, 6ull * TIMEOUT_NS, 5ull * TIMEOUT_NS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_opening_comes_once_before_the_first_call),
		cmocka_unit_test(who_has_a_nonce_needs_no_opening),
		cmocka_unit_test(all_ranks_make_the_same_nonce),
		cmocka_unit_test(a_call_of_nothing_does_not_open),
		cmocka_unit_test(an_old_result_in_the_opening_ends_the_run),
		cmocka_unit_test(a_rank_far_behind_ends_the_run),
		cmocka_unit_test(a_sum_of_another_run_is_never_taken_and_goes),
		cmocka_unit_test(a_rank_that_disagrees_with_itself_has_been_there_before),
		cmocka_unit_test(calls_that_differ_fail_at_once_on_both_ranks),
		cmocka_unit_test(the_opening_finds_ranks_that_are_set_up_differently),
		cmocka_unit_test(ranks_of_several_roots_agree_in_these_before_a_part_of_nothing),
		cmocka_unit_test(no_sum_is_of_ranks_with_other_roots),
		cmocka_unit_test(every_rank_hears_of_it_also_who_is_late),
		cmocka_unit_test(a_rank_with_a_call_of_its_own_hears_all_three),
		cmocka_unit_test(a_rank_not_named_hears_what_differs_in_its_own_call),
		cmocka_unit_test(a_late_rank_is_waited_for_where_its_end_would_be_told),
		cmocka_unit_test(who_looks_seldom_hears_of_the_timeout_too),
		cmocka_unit_test(otherwise_as_long_as_the_caller_says),
	};

	return cmocka_run_group_tests_name("agreement", tests, NULL, NULL);
}
