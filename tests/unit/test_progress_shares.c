// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shares of two roots that change while calls run: two ranks over real sockets, each of which hears
 * other shares whenever it is asked, and what each call was split by.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/roots_world.h"

enum {
	CALLS_MAX = 1000,
	EVERY = 32,
	EVERY_BYTES = 8 << 20,
};

static unsigned int heard; /* so many times */

/* Only touched with the lock of the rank, or when its threads are over. */
static struct {
	unsigned int calls;
	uint32_t by[CALLS_MAX]; /* what each call was split by */
} seen[RANKS];

/* --- what is wrapped: see the Makefile */

unsigned int __wrap_join_shares_heard(const struct join *j, uint16_t ret[JOINING_ROOTS_MAX]);
struct call_options __wrap_shards_part(const struct shards *s, unsigned int which,
				       uint16_t payload_bytes, uint16_t workers,
				       const struct call_options *whole);
struct call_options __real_shards_part(const struct shards *s, unsigned int which,
				       uint16_t payload_bytes, uint16_t workers,
				       const struct call_options *whole);

/* All that ranks hear are different shares: those of the n-th time that one listens. */
static uint32_t heard_at(unsigned int n) { return (1 + n * 7 % 900) << 16 | (1 + n * 13 % 900); }

unsigned int __wrap_join_shares_heard(const struct join *j, uint16_t ret[JOINING_ROOTS_MAX])
{
	const uint32_t now = heard_at(__atomic_add_fetch(&heard, 1, __ATOMIC_RELAXED));

	ret[0] = now >> 16;
	ret[1] = now & 0xffff;
	return ROOTS;
}

static int rank_of(const struct shards *s) { return t[1] && s == &t[1]->shards; }

struct call_options __wrap_shards_part(const struct shards *s, unsigned int which,
				       uint16_t payload_bytes, uint16_t workers,
				       const struct call_options *whole)
{
	const int rank = rank_of(s);
	const struct call_options part = __real_shards_part(s, which, payload_bytes, workers,
							    whole);

	if (which == 0 && whole->count && seen[rank].calls < CALLS_MAX)
		seen[rank].by[seen[rank].calls++] = s->root[0].share << 16 | s->root[1].share;
	return part;
}

/* --- the ranks */

static void open_ranks_threads(enum tally_progress_by by, uint16_t threads, uint32_t timeout_ms)
{
	memset(seen, 0, sizeof(seen));
	open_ranks_with(by, threads, timeout_ms);
	for (int rank = 0; rank < RANKS; rank++)
		t[rank]->agreeing.follows = true;
}

static void open_ranks(enum tally_progress_by by, uint32_t timeout_ms)
{
	open_ranks_threads(by, 0, timeout_ms);
}

/* By one rank, and so not the sum of two. */
static bool was_heard(uint32_t shares)
{
	for (unsigned int n = 1; n <= heard; n++)
		if (heard_at(n) == shares)
			return true;
	return false;
}

/* How often shares have changed, the same on all ranks, and when first. */
static unsigned int changes_alike(unsigned int calls, unsigned int *ret_first)
{
	unsigned int changes = 0;

	*ret_first = 0;
	assert_int_equal(seen[0].by[0], 1 << 16 | 2);
	assert_int_equal(seen[0].calls, calls);
	assert_int_equal(seen[1].calls, calls);
	for (unsigned int i = 0; i < calls; i++) {
		assert_int_equal(seen[0].by[i], seen[1].by[i]);
		if (i == 0 || seen[0].by[i] == seen[0].by[i - 1])
			continue;
		*ret_first = changes++ ? *ret_first : i;
		assert_true(was_heard(seen[0].by[i]));
	}
	return changes;
}

static bool wait_for_pending(struct tally *of, unsigned int calls)
{
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		unsigned int pending = 0;

		progress_enter(of);
		for (int i = 0; i < TALLY_CALLS_MAX; i++)
			pending += of->call[i].pending;
		progress_leave(of);
		if (pending == calls)
			return true;
		poll(NULL, 0, 1);
	}
	return false;
}

/* --- the facts */

static void all_ranks_split_each_call_alike(void **state)
{
	unsigned int first;

	open_ranks(TALLY_PROGRESS_CALLS, PATIENCE_MS);
	both_call(10 * EVERY);
	assert_int_equal(changes_alike(10 * EVERY, &first), 9);
	assert_int_equal(first, EVERY + 1); /* that behind the call with the question */
	drop_ranks();
}

static void so_they_do_with_threads(void **state)
{
	unsigned int first;

	/* Without threads of the library's own, with one, and with one for each root. */
	for (int i = 0; i <= ROOTS; i++) {
		open_ranks_threads(i ? TALLY_PROGRESS_THREAD : TALLY_PROGRESS_CALLS, i,
				   PATIENCE_MS);
		call_with_threads(8, 50);
		assert_int_equal(changes_alike(400, &first), 400 / EVERY);
		drop_ranks();
	}
}

static void forty_threads_may_start_a_call_each(void **state)
{
	unsigned int first;

	for (int i = 0; i < 5; i++) {
		open_ranks(TALLY_PROGRESS_CALLS, PATIENCE_MS);
		call_with_threads(40, 1);
		assert_int_equal(changes_alike(40, &first), 1);
		drop_ranks();
	}
}

static void shares_follow_in_bytes(void **state)
{
	unsigned int first;

	open_ranks(TALLY_PROGRESS_CALLS, PATIENCE_MS);
	for (int rank = 0; rank < RANKS; rank++)
		t[rank]->agreeing.bytes = EVERY_BYTES - COUNT * sizeof(int32_t);
	both_call(3);
	assert_int_equal(changes_alike(3, &first), 1);
	assert_int_equal(first, 2);
	drop_ranks();
	open_ranks(TALLY_PROGRESS_CALLS, PATIENCE_MS);
	for (int rank = 0; rank < RANKS; rank++)
		t[rank]->agreeing.bytes = EVERY_BYTES - COUNT * sizeof(int32_t) - 1;
	both_call(3);
	assert_int_equal(changes_alike(3, &first), 0);
	drop_ranks();
}

/* All ranks know the bytes of parts of all ranks. */
static void bytes_are_those_of_the_whole_call(void **state)
{
	int64_t in[RANKS * 3] = { 0 }, out[RANKS * 3];
	struct tally_call *call[3];

	open_ranks(TALLY_PROGRESS_CALLS, PATIENCE_MS);
	tally_all_gather_start(t[0], in, out, 3, TALLY_INT64, &call[0]);
	assert_int_equal(t[0]->agreeing.bytes, RANKS * 3 * 8);
	tally_barrier_start(t[0], &call[1]);
	assert_int_equal(t[0]->agreeing.bytes, RANKS * 3 * 8);
	tally_broadcast_start(t[0], in, 3, TALLY_INT32, 0, &call[2]);
	assert_int_equal(t[0]->agreeing.bytes, RANKS * 3 * 8 + 12);
	assert_int_equal(t[0]->agreeing.calls, 3);
	drop_ranks();
}

/* A call of each rank; where it fails, with words of its own. */
static void both_wait(struct tally_call *const *call, int result, const char *const *text)
{
	for (int rank = 0; rank < RANKS; rank++) {
		assert_int_equal(tally_wait(call[rank]), result);
		if (text)
			assert_non_null(strstr(tally_error(), text[rank]));
	}
}

/* The first root has element 3, the second one 97. */
static void each_rank_names_its_own_misfit(void **state)
{
	static const char *const text[] = { "in[97] does not fit", "in[3] does not fit" };
	float x[RANKS][COUNT] = { { [97] = 0x1p100f }, { [3] = 0x1p100f, [97] = 1e30f } };
	struct tally_call *call[RANKS];

	open_ranks(TALLY_PROGRESS_THREAD, PATIENCE_MS);
	for (int rank = 0; rank < RANKS; rank++)
		assert_int_equal(tally_allreduce_start(t[rank], x[rank], x[rank], COUNT,
						       TALLY_FIXED(TALLY_FLOAT32, 20), TALLY_SUM,
						       &call[rank]),
				 0);
	both_wait(call, -ERANGE, text);
	both_call(1); /* the job goes on */
	drop_ranks();
}

/* Two arrays, and one: of the whole call, whatever root has which part. */
static void calls_say_what_they_lose(void **state)
{
	float in[RANKS][COUNT], out[RANKS][COUNT], kept[RANKS][COUNT], lost[RANKS][COUNT];
	struct tally_call *call[RANKS];

	open_ranks(TALLY_PROGRESS_THREAD, PATIENCE_MS);
	for (int turn = 0; turn < 2; turn++) {
		for (int rank = 0; rank < RANKS; rank++) {
			struct tally_reduction r = { .verb = TALLY_ALLREDUCE,
						     .dtype = TALLY_FLOAT32_HALVED,
						     .op = TALLY_SUM,
						     .in = in[rank],
						     .out = out[rank],
						     .count = COUNT,
						     .kept = kept[rank],
						     .lost = turn ? kept[rank] : lost[rank] };

			for (int k = 0; k < COUNT; k++) {
				in[rank][k] = 1 + (float)(k + rank) * 0x1p-17f;
				kept[rank][k] = 0x1p-16f;
			}
			assert_int_equal(tally_reduction_start(t[rank], &r, &call[rank]), 0);
		}
		both_wait(call, 0, NULL);
		for (int k = 0; k < COUNT; k++) {
			float(*left)[COUNT] = turn ? kept : lost;

			assert_true(out[1][k] ==
				    in[0][k] + in[1][k] + 0x1p-15f - left[0][k] - left[1][k]);
			assert_true(turn || kept[0][k] == 0x1p-16f);
		}
	}
	drop_ranks();
}

static void a_start_never_waits(void **state)
{
	struct tally_call *call[RANKS][TALLY_CALLS_MAX];
	static int32_t x[RANKS][TALLY_CALLS_MAX][COUNT];
	struct tally_call_info info;
	unsigned int first;

	open_ranks(TALLY_PROGRESS_CALLS, PATIENCE_MS);
	memset(x, 0, sizeof(x));
	for (int rank = 0; rank < RANKS; rank++)
		for (int i = 0; i < TALLY_CALLS_MAX; i++) {
			x[rank][i][COUNT - 1] = 1 + rank;
			assert_int_equal(tally_allreduce_start(t[rank], x[rank][i], x[rank][i],
							       COUNT, TALLY_INT32, TALLY_SUM,
							       &call[rank][i]),
					 0);
		}
	assert_true(t[0]->call[TALLY_CALLS_MAX - 1].held);
	/* Rank 1's own are sent by an event loop that only makes progress. */
	for (unsigned int ended = 0, more; ended < TALLY_CALLS_MAX; ended += more) {
		assert_int_equal(tally_progress(t[1], &more), 0);
		assert_int_equal(tally_progress(t[0], NULL), 0);
	}
	for (int rank = 0; rank < RANKS; rank++)
		for (int i = 0; i < TALLY_CALLS_MAX; i++) {
			assert_int_equal(tally_wait_info(call[rank][i], &info), 0);
			assert_int_equal(x[rank][i][COUNT - 1], 3);
			assert_true(info.queued_ns < info.duration_ns);
		}
	assert_int_equal(changes_alike(TALLY_CALLS_MAX, &first), 1);
	drop_ranks();
}

/* Rank 0 makes some, and rank 1 none. */
static void a_call_of_nothing_neither_counts_nor_waits(void **state)
{
	unsigned int first;

	open_ranks(TALLY_PROGRESS_CALLS, PATIENCE_MS);
	both_call(EVERY);
	for (int i = 0; i < 2 * EVERY; i++)
		assert_int_equal(call_once(t[0], 0), 0);
	both_call(2);
	assert_int_equal(changes_alike(EVERY + 2, &first), 1);
	assert_int_equal(first, EVERY + 1);
	drop_ranks();
}

static void abort_ends_calls_that_are_held(void **state)
{
	struct work w[THREADS_MAX];
	struct tally_call *call;
	int32_t x = 1;

	for (int i = 0; i <= ROOTS; i++) {
		open_ranks_threads(i ? TALLY_PROGRESS_THREAD : TALLY_PROGRESS_CALLS, i,
				   PATIENCE_MS);
		work_start(w, t[0], THREADS_MAX, 1);
		assert_true(wait_for_pending(t[0], THREADS_MAX));
		assert_non_null(t[0]->agreeing.first_held);
		assert_int_equal(tally_abort(t[0]), 0);
		work_end(w, THREADS_MAX, -ECANCELED);
		assert_int_equal(
			tally_allreduce_start(t[0], &x, &x, 1, TALLY_INT32, TALLY_SUM, &call),
			-ECONNABORTED);
		drop_ranks();
	}
}

static void close_abandons_calls_that_are_held(void **state)
{
	struct tally_call *call;
	static int32_t x[COUNT];

	open_ranks_threads(TALLY_PROGRESS_THREAD, ROOTS, PATIENCE_MS);
	both_call(1);
	for (int i = 0; i < THREADS_MAX; i++)
		assert_int_equal(
			tally_allreduce_start(t[0], x, x, COUNT, TALLY_INT32, TALLY_SUM, &call), 0);
	assert_non_null(t[0]->agreeing.first_held);
	assert_int_equal(tally_close(t[0]), 0);
	assert_int_equal(tally_abort(t[1]), 0);
	assert_int_equal(tally_close(t[1]), 0);
	t[0] = t[1] = NULL;
	end_nodes(NULL);
}

/* The other rank never comes: the first says that, and all others that one has failed. */
static void a_run_that_fails_ends_calls_that_are_held(void **state)
{
	struct tally_call *call[THREADS_MAX];
	static int32_t x[COUNT];

	open_ranks(TALLY_PROGRESS_CALLS, 1000);
	for (int i = 0; i < THREADS_MAX; i++)
		assert_int_equal(
			tally_allreduce_start(t[0], x, x, COUNT, TALLY_INT32, TALLY_SUM, &call[i]),
			0);
	assert_int_equal(tally_wait(call[0]), -ETIMEDOUT);
	for (int i = 1; i < THREADS_MAX; i++) {
		assert_int_equal(tally_wait(call[i]), -ECONNABORTED);
		assert_non_null(strstr(tally_error(), "an earlier call failed: "));
		assert_non_null(strstr(tally_error(), "rank 1 missing"));
	}
	drop_ranks();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(all_ranks_split_each_call_alike, end_nodes),
		cmocka_unit_test_teardown(so_they_do_with_threads, end_nodes),
		cmocka_unit_test_teardown(forty_threads_may_start_a_call_each, end_nodes),
		cmocka_unit_test_teardown(shares_follow_in_bytes, end_nodes),
		cmocka_unit_test_teardown(bytes_are_those_of_the_whole_call, end_nodes),
		cmocka_unit_test_teardown(each_rank_names_its_own_misfit, end_nodes),
		cmocka_unit_test_teardown(calls_say_what_they_lose, end_nodes),
		cmocka_unit_test_teardown(a_start_never_waits, end_nodes),
		cmocka_unit_test_teardown(a_call_of_nothing_neither_counts_nor_waits, end_nodes),
		cmocka_unit_test_teardown(abort_ends_calls_that_are_held, end_nodes),
		cmocka_unit_test_teardown(close_abandons_calls_that_are_held, end_nodes),
		cmocka_unit_test_teardown(a_run_that_fails_ends_calls_that_are_held, end_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
