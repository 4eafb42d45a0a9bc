// SPDX-License-Identifier: GPL-2.0-only
/*
 * A job with two roots, each of which has a thread of the library's own: what is each root's, and
 * what they have in common. Two ranks over real sockets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "common/clock.h"
#include "tests/unit/roots_world.h"

enum {
	LONG = 32 * 300, /* elements of a call of 300 chunks */
};

/* --- what is wrapped: see the Makefile */

struct call_options __wrap_shards_part(const struct shards *s, unsigned int which,
				       uint16_t payload_bytes, uint16_t workers,
				       const struct call_options *whole);
struct call_options __real_shards_part(const struct shards *s, unsigned int which,
				       uint16_t payload_bytes, uint16_t workers,
				       const struct call_options *whole);

/* Rank 0, at the second root, between the parts of a call. */
static enum {
	FAILS_NOT,
	FAILS,
	FAILS_LATE, /* when the first part is over */
} fails;

/* Its part is over, and nothing of the library was called for that. */
static bool part_ends(const struct shard *s)
{
	for (int ms = 0; ms < PATIENCE_MS && s->ended != s->started; ms++)
		poll(NULL, 0, 1);
	return s->ended == s->started;
}

static void fail_at_second_root(struct tally *of)
{
	if (fails == FAILS_LATE)
		assert_true(part_ends(&of->shard[0]));
	pump_enter(of->shard[1].pump);
	engine_fail(of->shard[1].engine, -ECONNABORTED, "it is gone");
	pump_leave(of->shard[1].pump);
}

struct call_options __wrap_shards_part(const struct shards *s, unsigned int which,
				       uint16_t payload_bytes, uint16_t workers,
				       const struct call_options *whole)
{
	if (which == 1 && fails && s == &t[0]->shards)
		fail_at_second_root(t[0]);
	return __real_shards_part(s, which, payload_bytes, workers, whole);
}

/* --- the facts */

static void open_threads(void) { open_ranks_with(TALLY_PROGRESS_THREAD, ROOTS, PATIENCE_MS); }

static unsigned int threads_of_rank(const struct tally *of)
{
	unsigned int threads = 0;

	for (unsigned int i = 0; i < of->pumps; i++)
		threads += of->pump[i].has_thread;
	return threads;
}

static void there_are_no_more_threads_than_roots(void **state)
{
	static const struct {
		enum tally_progress_by by;
		uint16_t said;
		unsigned int threads;
	} cases[] = {
		{ TALLY_PROGRESS_CALLS, 2, 0 },
		{ TALLY_PROGRESS_THREAD, 1, 1 },
		{ TALLY_PROGRESS_THREAD, 2, 2 },
		{ TALLY_PROGRESS_THREAD, 16, 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		open_ranks_with(cases[i].by, cases[i].said, PATIENCE_MS);
		assert_int_equal(threads_of_rank(t[0]), cases[i].threads);
		drop_ranks();
	}
}

static void the_environment_may_say_how_many(void **state)
{
	setenv("TALLY_PROGRESS_THREADS", "1", 1);
	open_ranks_with(TALLY_PROGRESS_THREAD, 0, PATIENCE_MS);
	assert_int_equal(threads_of_rank(t[0]), 1);
	drop_ranks();
	open_ranks_with(TALLY_PROGRESS_THREAD, 2, PATIENCE_MS); /* the program knows better */
	assert_int_equal(threads_of_rank(t[0]), 2);
	drop_ranks();
	unsetenv("TALLY_PROGRESS_THREADS");
}

static int32_t *vector(int32_t value)
{
	int32_t *x = malloc(LONG * sizeof(*x));

	for (size_t i = 0; i < LONG; i++)
		x[i] = value;
	return x;
}

static struct tally_call *start(struct tally *of, int32_t *x)
{
	struct tally_call *call = NULL;

	assert_int_equal(tally_allreduce_start(of, x, x, LONG, TALLY_INT32, TALLY_SUM, &call), 0);
	return call;
}

static void end(struct tally_call *call, int32_t *x)
{
	assert_int_equal(tally_wait(call), 0);
	for (size_t i = 0; i < LONG; i++)
		assert_int_equal(x[i], 3);
	free(x);
}

static void a_root_goes_on_while_the_thread_of_another_is_held_up(void **state)
{
	int32_t *x, *y;
	struct tally_call *a, *b;

	for (int other = 0; other < ROOTS; other++) {
		open_threads();
		both_call(1);
		a = start(t[0], x = vector(1));
		pump_enter(&t[0]->pump[other]);
		b = start(t[1], y = vector(2));
		assert_true(part_ends(&t[0]->shard[!other]));
		assert_true(t[0]->shard[other].ended < t[0]->shard[other].started);
		pump_leave(&t[0]->pump[other]);
		end(a, x);
		end(b, y);
		drop_ranks();
	}
}

static void *read_main(void *argument)
{
	const struct work *w = argument;
	struct tally_stats stats;
	uint64_t chunks = 0;

	do {
		tally_stats_read(w->of, &stats);
		if (stats.chunks < chunks)
			return NULL;
		chunks = stats.chunks;
		tally_hint(w->of, &(struct tally_hints){ .layers = 3 });
		tally_progress(w->of, NULL);
	} while (chunks < w->calls);
	return argument;
}

/* All that a program may do at once; sums are looked at. */
static void eight_threads_may_call_beside_those_of_all_roots(void **state)
{
	struct work reader;
	void *r;

	open_threads();
	reader = (struct work){ .of = t[0], .calls = 8 * 50 * 4 };
	assert_int_equal(pthread_create(&reader.thread, NULL, read_main, &reader), 0);
	call_with_threads(8, 50);
	pthread_join(reader.thread, &r);
	assert_ptr_equal(r, &reader);
	drop_ranks();
}

static void the_descriptor_tells_of_calls_whose_parts_have_all_ended(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct tally_call *a, *b;
	int32_t *x, *y;
	unsigned int ended;

	open_threads();
	p.fd = tally_fd(t[0]);
	for (int i = 0; i < 50; i++) {
		a = start(t[0], x = vector(1));
		b = start(t[1], y = vector(2));
		for (ended = 0; !ended;) {
			assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
			assert_int_equal(tally_progress(t[0], &ended), 0);
		}
		assert_int_equal(ended, 1);
		assert_true(a->over);
		end(a, x);
		end(b, y);
	}
	drop_ranks();
}

/* Who starts it hears that before the root's thread has told of it. No part is there for the second
 * root; that of the first one may be over, and right. */
static void a_root_that_fails_while_a_call_starts_ends_that_call(void **state)
{
	struct tally_call *call, *later;
	char name[96];

	for (int late = 0; late < 2; late++) {
		int32_t *x = vector(1), *y = vector(2);

		open_threads();
		both_call(1);
		start(t[1], y);
		fails = late ? FAILS_LATE : FAILS;
		call = start(t[0], x);
		fails = FAILS_NOT;
		assert_int_equal(tally_wait(call), -ECONNABORTED);
		snprintf(name, sizeof(name), "root %s: ", t[0]->shard[1].service);
		assert_non_null(strstr(tally_error(), name));
		assert_non_null(strstr(tally_error(), "it is gone"));
		assert_int_equal(
			tally_allreduce_start(t[0], x, x, 1, TALLY_INT32, TALLY_SUM, &later),
			-ECONNABORTED);
		drop_ranks();
		free(x);
		free(y);
	}
}

/* The second root's node is not there any more: it says so, and the first one has calls, too. */
static void a_root_that_is_gone_ends_calls_at_all(void **state)
{
	struct work w[8];
	char name[96];
	int r = 0;

	open_ranks_with(TALLY_PROGRESS_THREAD, ROOTS, 3000);
	work_start(w, t[0], 8, 1000000);
	for (int i = 0; i < 100; i++)
		assert_int_equal(call_once(t[1], COUNT), 0);
	node_thread_end(&node[1]);
	while (r == 0)
		r = call_once(t[1], COUNT);
	snprintf(name, sizeof(name), "root %s: ", t[1]->shard[1].service);
	assert_non_null(strstr(tally_error(), name));
	for (int i = 0; i < 8; i++) {
		pthread_join(w[i].thread, NULL);
		assert_true(w[i].result == -ETIMEDOUT || w[i].result == -ECONNABORTED);
	}
	assert_int_equal(node_thread_start(&node[1]), 0);
	drop_ranks();
}

static void abort_ends_calls_of_all_threads(void **state)
{
	struct work w[8];

	for (int i = 0; i < 10; i++) {
		open_threads();
		work_start(w, t[0], 8, 1000000);
		for (int k = 0; k < 20; k++)
			assert_int_equal(call_once(t[1], COUNT), 0);
		assert_int_equal(tally_abort(t[0]), 0);
		for (int k = 0; k < 8; k++) {
			pthread_join(w[k].thread, NULL);
			assert_true(w[k].result == -ECANCELED || w[k].result == -ECONNABORTED);
		}
		drop_ranks();
	}
}

/* The sanitizers look after the buffers, also behind the first part. */
static void close_touches_no_buffer_of_calls_that_run(void **state)
{
	for (int i = 0; i < 10; i++) {
		int32_t *x = vector(1), *y = vector(2);

		open_threads();
		both_call(1);
		start(t[0], x);
		start(t[1], y);
		assert_int_equal(tally_close(t[0]), 0);
		free(x);
		assert_int_equal(tally_abort(t[1]), 0);
		free(y);
		assert_int_equal(tally_close(t[1]), 0);
		t[0] = t[1] = NULL;
		end_nodes(NULL);
	}
}

/* Who has all results leaves at once, and others still have what they need. */
static void *close_main(void *of) { return (void *)(intptr_t)tally_close(of); }

static void ranks_leave_together(void **state)
{
	struct work w;
	uint64_t begun_ns;

	open_threads();
	both_call(10);
	begun_ns = clock_now_ns();
	assert_int_equal(pthread_create(&w.thread, NULL, close_main, t[0]), 0);
	assert_int_equal(tally_close(t[1]), 0);
	pthread_join(w.thread, NULL);
	assert_true(clock_now_ns() - begun_ns < UINT64_C(1900000000));
	t[0] = t[1] = NULL;
	end_nodes(NULL);
}

/* In the child: an assertion would unwind into the parent's tests. */
static int child_of(struct tally_call *call)
{
	struct tally_stats stats;

	tally_stats_read(t[0], &stats);
	return tally_wait(call) != -EPERM || tally_close(t[0]) || tally_close(t[1]);
}

static void children_may_be_forked_while_threads_make_progress(void **state)
{
	open_threads();
	for (int i = 0; i < 30; i++) {
		int32_t *x = vector(1), *y = vector(2);
		struct tally_call *a = start(t[0], x), *b = start(t[1], y);
		const pid_t child = fork();
		int status;

		if (child == 0)
			_exit(child_of(a));
		assert_true(child > 0);
		end(a, x);
		end(b, y);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	}
	drop_ranks();
}

#define fact(f) cmocka_unit_test_teardown(f, end_nodes)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fact(there_are_no_more_threads_than_roots),
		fact(the_environment_may_say_how_many),
		fact(a_root_goes_on_while_the_thread_of_another_is_held_up),
		fact(eight_threads_may_call_beside_those_of_all_roots),
		fact(the_descriptor_tells_of_calls_whose_parts_have_all_ended),
		fact(a_root_that_fails_while_a_call_starts_ends_that_call),
		fact(a_root_that_is_gone_ends_calls_at_all),
		fact(abort_ends_calls_of_all_threads),
		fact(close_touches_no_buffer_of_calls_that_run),
		fact(ranks_leave_together),
		fact(children_may_be_forked_while_threads_make_progress),
	};

	alarm(300); /* who is not woken waits for ever */
	return cmocka_run_group_tests_name("progress of several threads", tests, NULL, NULL);
}
