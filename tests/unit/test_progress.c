// SPDX-License-Identifier: GPL-2.0-only
/*
 * Progress, threads and events of the public calls, over real sockets: workers of this process and
 * a node that runs the rules that ship, which the test turns itself or gives a thread.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/tally.h>

#include "client/congestion.h"
#include "client/progress.h"
#include "client/transport.h"
#include "tests/unit/progress_world.h"

enum {
	LONG = 32 * 100, /* elements of a call of 100 chunks */
	LOOK = 32 * TRANSPORT_RECEIVES, /* of one whose results one look can take */
};

static struct node node;
static _Atomic unsigned int receives;

/* In place of the C library's: only how often it is called is seen here. */
int recvmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags, struct timespec *timeout)
{
	receives++;
	return (int)syscall(SYS_recvmmsg, fd, m, n, flags, timeout);
}

static int open_node(void **state) { return node_open(&node, 0); }

static int close_node(void **state) { return close(node.fd); }

/* --- the workers */

static struct tally *open_rank_for(uint16_t rank, enum tally_progress_by by, uint32_t timeout_ms)
{
	const struct loopback_text service = loopback_text(NODE_HOST, 0);
	const struct loopback_text address = loopback_text(RANK_HOST + rank, 40000);
	struct tally *t = NULL;
	const struct tally_options o = {
		.job = 1,
		.epoch = 1,
		.rank = rank,
		.workers = RANKS,
		.window = WINDOW,
		.payload_bytes = PAYLOAD,
		.timeout_ms = timeout_ms,
		.service = service.s,
		.address = address.s,
		.progress = by,
	};

	assert_int_equal(tally_open(&o, &t), 0);
	return t;
}

static struct tally *open_rank(uint16_t rank, enum tally_progress_by by)
{
	return open_rank_for(rank, by, PATIENCE_MS);
}

/* To be left at once: closing need not wait for the other rank. */
static void drop(struct tally *t)
{
	tally_abort(t);
	assert_int_equal(tally_close(t), 0);
}

static struct tally_call *start(struct tally *t, int32_t *x, size_t count)
{
	struct tally_call *call = NULL;

	assert_int_equal(tally_allreduce_start(t, x, x, count, TALLY_INT32, TALLY_SUM, &call), 0);
	return call;
}

/* The opening, and one barrier: from now on calls are alone on the way. */
static void meet(struct tally **t)
{
	struct tally_call *call[RANKS];
	bool done[RANKS] = { false };

	for (int rank = 0; rank < RANKS; rank++)
		assert_int_equal(tally_barrier_start(t[rank], &call[rank]), 0);
	while (!done[0] || !done[1]) {
		node_turn(&node);
		for (int rank = 0; rank < RANKS; rank++)
			assert_int_equal(tally_test(call[rank], &done[rank]), 0);
	}
	for (int rank = 0; rank < RANKS; rank++) {
		assert_int_equal(tally_wait(call[rank]), 0);
		tally_progress(t[rank], NULL);
	}
}

static int32_t *vector(size_t count, int32_t value)
{
	int32_t *x = malloc(count * sizeof(*x));

	for (size_t i = 0; i < count; i++)
		x[i] = value;
	return x;
}

static void assert_all(const int32_t *x, size_t count, int32_t value)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(x[i], value);
}

static bool is_readable(int fd, int within_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, within_ms) == 1;
}

/* A timer may still be due; and then, for good, there is nothing to do any more. */
static void assert_falls_silent(struct tally *t)
{
	for (int i = 0; i < 10 && is_readable(tally_fd(t), 100); i++)
		assert_int_equal(tally_progress(t, NULL), 0);
	assert_false(is_readable(tally_fd(t), 300));
}

/* --- the facts */

static void the_first_window_of_a_started_call_leaves_at_once(void **state)
{
	struct tally *t[RANKS] = { open_rank(0, TALLY_PROGRESS_CALLS),
				   open_rank(1, TALLY_PROGRESS_CALLS) };
	int32_t *x = vector(LONG, 1);

	meet(t);
	start(t[0], x, LONG);
	assert_int_equal(node_turn(&node), CONGESTION_FIRST);
	drop(t[0]);
	drop(t[1]);
	free(x);
}

static void calls_go_on_by_progress_alone(void **state)
{
	struct tally *t[RANKS];
	int32_t *x[RANKS];
	struct tally_call *call[RANKS];
	unsigned int ended[RANKS] = { 0 };

	for (int rank = 0; rank < RANKS; rank++) {
		t[rank] = open_rank(rank, TALLY_PROGRESS_CALLS);
		x[rank] = vector(LONG, 1 + rank);
		call[rank] = start(t[rank], x[rank], LONG);
	}
	while (!ended[0] || !ended[1]) {
		node_turn(&node);
		for (int rank = 0; rank < RANKS; rank++) {
			unsigned int more = 0;

			assert_int_equal(tally_progress(t[rank], &more), 0);
			ended[rank] += more;
		}
	}
	for (int rank = 0; rank < RANKS; rank++) {
		bool done = false;

		assert_int_equal(ended[rank], 1);
		assert_int_equal(tally_test(call[rank], &done), 0);
		assert_true(done);
		assert_int_equal(tally_wait(call[rank]), 0);
		assert_all(x[rank], LONG, 3);
		drop(t[rank]);
		free(x[rank]);
	}
}

static void who_has_all_results_looks_for_no_more(void **state)
{
	struct tally *t[RANKS] = { open_rank(0, TALLY_PROGRESS_CALLS),
				   open_rank(1, TALLY_PROGRESS_CALLS) };
	int32_t x[RANKS][LOOK] = { 0 };
	struct tally_call *call;
	bool done = false;

	meet(t);
	call = start(t[0], x[0], LOOK);
	start(t[1], x[1], LOOK);
	assert_int_equal(node_turn(&node), RANKS * TRANSPORT_RECEIVES);
	receives = 0;
	assert_int_equal(tally_progress(t[0], NULL), 0);
	assert_int_equal(receives, 1);
	assert_int_equal(tally_test(call, &done), 0);
	assert_true(done);
	for (int rank = 0; rank < RANKS; rank++)
		drop(t[rank]);
}

static void the_descriptor_is_readable_when_a_result_has_come(void **state)
{
	struct tally *t[RANKS] = { open_rank(0, TALLY_PROGRESS_CALLS),
				   open_rank(1, TALLY_PROGRESS_CALLS) };
	int fd = tally_fd(t[0]), ended = 0;
	struct tally_call *call[RANKS];
	int32_t x[RANKS] = { 1, 2 };

	assert_true(fd >= 0);
	assert_int_equal(tally_fd(t[0]), fd);
	assert_false(is_readable(fd, 0));
	meet(t);
	for (int rank = 0; rank < RANKS; rank++)
		call[rank] = start(t[rank], &x[rank], 1);
	while (!ended) {
		node_turn(&node);
		assert_true(is_readable(fd, PATIENCE_MS));
		assert_int_equal(tally_progress(t[0], (unsigned int *)&ended), 0);
	}
	assert_int_equal(tally_wait(call[0]), 0);
	assert_int_equal(x[0], 3);

	assert_falls_silent(t[0]);
	drop(t[0]);
	drop(t[1]);
}

static void a_descriptor_that_is_asked_for_in_the_midst_of_a_move_knows_both_roots(void **state)
{
	const struct sockaddr_in own = loopback(RANK_HOST, 40007);
	const int peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct tally *t = open_rank(0, TALLY_PROGRESS_CALLS);
	struct channel **next = &t->shard[0].next.channel;
	struct sockaddr_storage local = { 0 };

	memcpy(&local, &own, sizeof(own));
	assert_int_equal(transport_open(&local, next), 0);
	assert_false(is_readable(tally_fd(t), 0));
	if (peer < 0) {
		fail();
		return;
	}
	assert_int_equal(sendto(peer, "", 1, 0, (const void *)&own, sizeof(own)), 1);
	assert_true(is_readable(tally_fd(t), PATIENCE_MS));
	close(peer);
	transport_close(*next);
	*next = NULL;
	drop(t);
}

static void the_descriptor_is_readable_when_a_timer_is_due(void **state)
{
	struct tally *t = open_rank(0, TALLY_PROGRESS_CALLS);
	struct tally_stats stats = { 0 };
	int fd = tally_fd(t);
	int32_t x = 1;

	start(t, &x, 1);
	assert_int_equal(node_turn(&node), 1);
	while (!stats.retransmitted) {
		assert_true(is_readable(fd, PATIENCE_MS));
		assert_int_equal(tally_progress(t, NULL), 0);
		tally_stats_read(t, &stats);
	}
	assert_int_equal(node_turn(&node), 1);
	drop(t);
}

/* Of what another thread ended, too. */
static void *wait_main(void *call) { return (void *)(intptr_t)tally_wait(call); }

static void the_descriptor_tells_of_calls_that_another_thread_ended(void **state)
{
	struct tally *t[RANKS] = { open_rank(0, TALLY_PROGRESS_CALLS),
				   open_rank(1, TALLY_PROGRESS_THREAD) };
	int32_t x[RANKS] = { 1, 2 };
	struct tally_call *call;
	int fd = tally_fd(t[0]);
	unsigned int ended = 0;
	pthread_t waiter;
	void *r;

	meet(t);
	call = start(t[0], &x[0], 1);
	start(t[1], &x[1], 1);
	node_turn(&node);
	assert_int_equal(pthread_create(&waiter, NULL, wait_main, call), 0);
	pthread_join(waiter, &r);
	assert_int_equal((intptr_t)r, 0);
	assert_true(is_readable(fd, PATIENCE_MS));
	assert_int_equal(tally_progress(t[0], &ended), 0);
	assert_int_equal(ended, 1);
	assert_int_equal(tally_progress(t[0], &ended), 0);
	assert_int_equal(ended, 0);
	assert_falls_silent(t[0]);
	drop(t[0]);
	drop(t[1]);
}

static int64_t microseconds_of(const struct rusage *u)
{
	return (u->ru_utime.tv_sec + u->ru_stime.tv_sec) * INT64_C(1000000) + u->ru_utime.tv_usec +
	       u->ru_stime.tv_usec;
}

static void progress_never_blocks(void **state)
{
	struct tally *t = open_rank(0, TALLY_PROGRESS_CALLS);
	struct rusage before, after;
	int32_t x = 1;

	start(t, &x, 1);
	getrusage(RUSAGE_THREAD, &before);
	for (int i = 0; i < 1000; i++) {
		unsigned int ended = 1;

		assert_int_equal(tally_progress(t, &ended), 0);
		assert_int_equal(ended, 0);
	}
	getrusage(RUSAGE_THREAD, &after);
	assert_true(after.ru_nvcsw - before.ru_nvcsw < 10); /* it did not sleep */
	drop(t);
}

static void the_thread_completes_calls_while_the_program_computes(void **state)
{
	struct tally *t[RANKS];
	struct tally_call *call[RANKS];
	int32_t *x[RANKS];
	int fd[RANKS];

	assert_int_equal(node_thread_start(&node), 0);
	for (int rank = 0; rank < RANKS; rank++) {
		t[rank] = open_rank(rank, TALLY_PROGRESS_THREAD);
		fd[rank] = tally_fd(t[rank]);
		x[rank] = vector(LONG, 1 + rank);
		call[rank] = start(t[rank], x[rank], LONG);
	}
	/* No function of the library is called from here on. */
	for (int rank = 0; rank < RANKS; rank++)
		assert_true(is_readable(fd[rank], PATIENCE_MS));
	node_thread_end(&node);
	for (int rank = 0; rank < RANKS; rank++) {
		assert_int_equal(tally_wait(call[rank]), 0);
		assert_all(x[rank], LONG, 3);
		drop(t[rank]);
		free(x[rank]);
	}
}

static void an_idle_thread_sleeps(void **state)
{
	struct tally *t[RANKS] = { open_rank(0, TALLY_PROGRESS_THREAD),
				   open_rank(1, TALLY_PROGRESS_THREAD) };
	struct tally_call *call[RANKS];
	struct rusage before, after;
	int32_t x[RANKS] = { 1, 2 };

#ifdef __SANITIZE_THREAD__
	drop(t[0]);
	drop(t[1]);
	skip(); /* the sanitizer has a thread of its own, which does not */
#endif
	meet(t);
	for (int rank = 0; rank < RANKS; rank++)
		call[rank] = start(t[rank], &x[rank], 1);
	node_turn(&node);
	for (int rank = 0; rank < RANKS; rank++)
		assert_int_equal(tally_wait(call[rank]), 0);
	poll(NULL, 0, 300); /* what was armed for the call may still fire */
	getrusage(RUSAGE_SELF, &before);
	poll(NULL, 0, 1000);
	getrusage(RUSAGE_SELF, &after);
	/* One is this poll()'s own. */
	assert_true(after.ru_nvcsw - before.ru_nvcsw <= 2);
	drop(t[0]);
	drop(t[1]);
}

/* What is looked for in vain is soon not looked for any more. */
static void who_waits_for_a_late_rank_sleeps(void **state)
{
	struct tally *t[RANKS] = { open_rank(0, TALLY_PROGRESS_THREAD),
				   open_rank(1, TALLY_PROGRESS_THREAD) };
	struct rusage before, after;
	int32_t x = 1;

	meet(t);
	start(t[0], &x, 1);
	getrusage(RUSAGE_SELF, &before);
	poll(NULL, 0, 1000);
	getrusage(RUSAGE_SELF, &after);
	assert_in_range(microseconds_of(&after) - microseconds_of(&before), 0, 100000);
	drop(t[0]);
	drop(t[1]);
}

static void an_idle_thread_wakes_for_the_timers_of_a_new_call(void **state)
{
	struct tally *t = open_rank(0, TALLY_PROGRESS_THREAD);
	int32_t x = 1;

	poll(NULL, 0, 50); /* by now it sleeps; should it not yet, the test shows less */
	start(t, &x, 1);
	assert_int_equal(node_turn(&node), 1);
	assert_true(is_readable(node.fd, PATIENCE_MS)); /* sent again */
	drop(t);
}

enum {
	THREADS = 8,
	CALLS = 50
};

static void *calls_main(void *t)
{
	for (int i = 0; i < CALLS; i++) {
		int32_t x[100];

		for (int k = 0; k < 100; k++)
			x[k] = 1;
		if (tally_wait(start(t, x, 100)) < 0 || x[0] != 3 || x[99] != 3)
			return NULL;
	}
	return t;
}

static void eight_threads_call_at_once(enum tally_progress_by by)
{
	struct tally *t[RANKS] = { open_rank(0, by), open_rank(1, by) };
	pthread_t thread[THREADS];
	int right = 0;

	assert_int_equal(node_thread_start(&node), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, calls_main, t[0]), 0);
	for (int i = 0; i < THREADS * CALLS; i++) {
		int32_t x[100];

		for (int k = 0; k < 100; k++)
			x[k] = 2;
		assert_int_equal(tally_allreduce(t[1], x, x, 100, TALLY_INT32, TALLY_SUM), 0);
		assert_all(x, 100, 3);
	}
	for (int i = 0; i < THREADS; i++) {
		void *r;

		pthread_join(thread[i], &r);
		right += r == t[0];
	}
	assert_int_equal(right, THREADS);
	node_thread_end(&node);
	drop(t[0]);
	drop(t[1]);
}

static void eight_threads_may_call_at_once(void **state)
{
	eight_threads_call_at_once(TALLY_PROGRESS_CALLS);
}

static void eight_threads_may_call_beside_the_librarys(void **state)
{
	eight_threads_call_at_once(TALLY_PROGRESS_THREAD);
}

static void abort_wakes_who_waits(enum tally_progress_by by)
{
	struct tally *t = open_rank(0, by);
	int32_t x[3] = { 1, 2, 3 };
	struct tally_call *call[] = { start(t, &x[0], 1), start(t, &x[1], 1) }, *late;
	pthread_t waiter[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&waiter[i], NULL, wait_main, call[i]), 0);
	/* Both are asleep, one of them on the other; or not yet, which must not matter. */
	poll(NULL, 0, 50);
	assert_int_equal(tally_abort(t), 0);
	for (int i = 0; i < 2; i++) {
		void *r;

		pthread_join(waiter[i], &r);
		assert_int_equal((intptr_t)r, -ECANCELED);
	}
	assert_int_equal(tally_allreduce_start(t, x, x, 1, TALLY_INT32, TALLY_SUM, &late),
			 -ECONNABORTED);
	assert_int_equal(tally_close(t), 0);
}

static void abort_ends_all_calls_and_wakes_all_waiters(void **state)
{
	abort_wakes_who_waits(TALLY_PROGRESS_CALLS);
	abort_wakes_who_waits(TALLY_PROGRESS_THREAD);
}

/* The result comes while tally_close() still answers; the sanitizer looks after the buffers. */
static void close_touches_no_buffer_of_a_call_that_runs(void **state)
{
	struct tally *t[RANKS] = { open_rank(0, TALLY_PROGRESS_CALLS),
				   open_rank(1, TALLY_PROGRESS_THREAD) };
	int32_t *x = vector(LONG, 1), *y = vector(LONG, 2);
	int32_t one[RANKS] = { 1, 1 };
	struct tally_call *call = start(t[1], &one[1], 1);

	assert_int_equal(node_thread_start(&node), 0);
	assert_int_equal(tally_allreduce(t[0], one, one, 1, TALLY_INT32, TALLY_SUM), 0);
	assert_int_equal(tally_wait(call), 0);
	start(t[0], x, LONG);
	start(t[1], y, LONG);
	free(x);
	assert_int_equal(tally_close(t[0]), 0);
	drop(t[1]);
	node_thread_end(&node);
	free(y);
}

static void no_call_times_out_while_its_program_computes(void **state)
{
	struct tally *t[RANKS] = { open_rank_for(0, TALLY_PROGRESS_CALLS, 1000) };
	int32_t x[RANKS] = { 1, 2 };
	struct tally_call *call = start(t[0], &x[0], 1);

	assert_int_equal(node_thread_start(&node), 0);
	poll(NULL, 0, 1500); /* it computes, and the other rank is late */
	t[1] = open_rank(1, TALLY_PROGRESS_THREAD);
	assert_int_equal(tally_progress(t[0], NULL), 0);
	start(t[1], &x[1], 1);
	assert_int_equal(tally_wait(call), 0);
	assert_int_equal(x[0], 3);

	/* While somebody looks, the time counts. */
	assert_int_equal(tally_barrier(t[0]), -ETIMEDOUT);
	assert_non_null(strstr(tally_error(), "rank 1 missing"));
	node_thread_end(&node);
	drop(t[0]);
	drop(t[1]);
}

/* --- fork() */

static void join_child(pid_t child)
{
	int status;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool is_refused(int r)
{
	return r == -EPERM && strstr(tally_error(), "open the job after fork()");
}

/* In the child: an assertion would unwind into the parent's tests. */
static bool all_is_refused(struct tally *t, struct tally_call *call)
{
	struct tally_call_info info;
	struct tally_call *another;
	bool done;

	return is_refused(tally_wait(call)) && is_refused(tally_wait_info(call, &info)) &&
	       is_refused(tally_test(call, &done)) && is_refused(tally_progress(t, NULL)) &&
	       is_refused(tally_fd(t)) && is_refused(tally_abort(t)) &&
	       is_refused(tally_hint(t, &(struct tally_hints){ 0 })) &&
	       is_refused(tally_barrier_start(t, &another)) && is_refused(tally_barrier(t));
}

static void a_child_is_refused_and_the_parent_goes_on(enum tally_progress_by by)
{
	struct tally *t[RANKS] = { open_rank(0, by), open_rank(1, by) };
	struct tally_call *call[RANKS], *then[RANKS];
	int32_t x[RANKS] = { 1, 2 }, y[RANKS] = { 10, 20 };
	pthread_t waiter;
	pid_t child;
	void *r;

	meet(t);
	for (int rank = 0; rank < RANKS; rank++)
		call[rank] = start(t[rank], &x[rank], 1);
	node_turn(&node);
	for (int rank = 0; rank < RANKS; rank++)
		assert_int_equal(tally_wait(call[rank]), 0);
	then[0] = start(t[0], &y[0], 1);
	node_turn(&node);
	assert_int_equal(pthread_create(&waiter, NULL, wait_main, then[0]), 0);
	poll(NULL, 0, 50); /* by now it sleeps; should it not yet, the test shows less */
	child = fork();
	if (child == 0) {
		struct tally_stats stats;
		bool right;

		tally_stats_read(t[0], &stats);
		right = stats.chunks == 3 && tally_rank(t[1]) == 1 && all_is_refused(t[0], then[0]);
		_exit(!right || tally_close(t[0]) || tally_close(t[1]));
	}
	join_child(child);
	assert_int_equal(x[0], 3);
	assert_int_equal(node_thread_start(&node), 0);
	then[1] = start(t[1], &y[1], 1);
	assert_int_equal(tally_wait(then[1]), 0);
	pthread_join(waiter, &r);
	assert_int_equal((intptr_t)r, 0);
	assert_true(y[0] == 30 && y[1] == 30);
	node_thread_end(&node);
	drop(t[0]);
	drop(t[1]);
}

static void a_forked_child_is_refused_and_its_parent_goes_on(void **state)
{
	a_child_is_refused_and_the_parent_goes_on(TALLY_PROGRESS_CALLS);
}

static void so_it_is_beside_the_librarys_thread(void **state)
{
	a_child_is_refused_and_the_parent_goes_on(TALLY_PROGRESS_THREAD);
}

static void a_forked_child_sends_nothing_when_it_closes(void **state)
{
	struct tally *t[RANKS] = { open_rank(0, TALLY_PROGRESS_CALLS),
				   open_rank(1, TALLY_PROGRESS_CALLS) };
	int32_t x[RANKS] = { 1, 2 };
	struct tally_call *call[RANKS];
	pid_t child;

	meet(t);
	for (int rank = 0; rank < RANKS; rank++)
		call[rank] = start(t[rank], &x[rank], 1);
	node_turn(&node);
	for (int rank = 0; rank < RANKS; rank++)
		assert_int_equal(tally_wait(call[rank]), 0);
	while (node_turn(&node))
		continue;
	child = fork();
	if (child == 0)
		_exit(tally_close(t[0]));
	join_child(child);
	assert_int_equal(node_turn(&node), 0);
	drop(t[0]);
	drop(t[1]);
}

/* Data loaders are forked at any time: while the library's threads hold locks, too. */
static void children_may_be_forked_while_threads_make_progress(void **state)
{
	struct tally *t[RANKS] = { open_rank(0, TALLY_PROGRESS_THREAD),
				   open_rank(1, TALLY_PROGRESS_THREAD) };
	struct tally_call *call[RANKS];
	int32_t *x[RANKS];

	assert_int_equal(node_thread_start(&node), 0);
	for (int i = 0; i < 50; i++) {
		pid_t child;

		for (int rank = 0; rank < RANKS; rank++) {
			x[rank] = vector(LONG, 1 + rank);
			call[rank] = start(t[rank], x[rank], LONG);
		}
		child = fork();
		if (child == 0) {
			struct tally_stats stats;

			tally_stats_read(t[0], &stats);
			_exit(!all_is_refused(t[1], call[1]) || tally_close(t[0]) ||
			      tally_close(t[1]));
		}
		for (int rank = 0; rank < RANKS; rank++) {
			assert_int_equal(tally_wait(call[rank]), 0);
			assert_all(x[rank], LONG, 3);
			free(x[rank]);
		}
		join_child(child);
	}
	node_thread_end(&node);
	drop(t[0]);
	drop(t[1]);
}

static void a_child_may_open_a_job_of_its_own(void **state)
{
	struct tally *parents = open_rank(0, TALLY_PROGRESS_THREAD);
	pid_t child = fork();

	if (child == 0) {
		struct tally *t = open_rank(1, TALLY_PROGRESS_CALLS);
		struct tally_call *call;
		int32_t x = 1;

		call = start(t, &x, 1);
		_exit(tally_abort(t) || tally_wait(call) != -ECANCELED || tally_close(t) ||
		      tally_close(parents));
	}
	join_child(child);
	assert_int_equal(node_turn(&node), 1);
	drop(parents);
}

static void a_call_says_how_it_went(void **state)
{
	struct tally *t[RANKS] = { open_rank(0, TALLY_PROGRESS_CALLS),
				   open_rank(1, TALLY_PROGRESS_THREAD) };
	struct tally_call_info info = { 0 };
	int32_t *x = vector(LONG, 1), *y = vector(LONG, 2);
	struct tally_call *other, *call;

	meet(t);
	node.drop = 3;
	call = start(t[0], x, LONG);
	node_turn(&node); /* now the first three are lost */
	other = start(t[1], y, LONG);
	assert_int_equal(node_thread_start(&node), 0);
	assert_int_equal(tally_wait_info(call, &info), 0);
	assert_int_equal(info.way, TALLY_WAY_OFFLOADED);
	assert_int_equal(info.chunks, 100);
	assert_true(info.retransmitted >= 3);
	assert_int_equal(info.redone, 0);
	assert_int_equal(info.sent_bytes,
			 (100 + info.retransmitted) * (sizeof(struct tally_header) + PAYLOAD));
	assert_true(info.duration_ns > 0 && info.queued_ns < info.duration_ns);
	assert_int_equal(tally_wait(other), 0);
	node_thread_end(&node);
	assert_all(x, LONG, 3);

	/* Another, that nobody answers. */
	call = start(t[0], x, 1);
	assert_int_equal(tally_abort(t[0]), 0);
	assert_int_equal(tally_wait_info(call, &info), -ECANCELED);
	assert_int_equal(info.way, TALLY_WAY_NONE);
	assert_int_equal(info.chunks, 0);
	assert_int_equal(tally_close(t[0]), 0);
	drop(t[1]);
	free(x);
	free(y);
}

static void structs_may_be_older_or_newer_than_the_library(void **state)
{
	const struct loopback_text service = loopback_text(NODE_HOST, 0);
	const struct loopback_text address = loopback_text(STRANGER_HOST, 40009);
	struct {
		struct tally_options options;
		uint64_t more;
	} newer = { .options = { .job = 1,
				 .workers = 1,
				 .window = 1,
				 .payload_bytes = 64,
				 .service = service.s,
				 .address = address.s } };
	struct tally_stats stats = { .chunks = 7, .rtt_ns = 7 };
	struct tally *t = NULL;

	assert_int_equal(tally_open_sized(&newer.options, 0, &t), -EINVAL);
	assert_non_null(strstr(tally_error(), "size: 0"));
	newer.more = 1;
	assert_int_equal(tally_open_sized(&newer.options, sizeof(newer), &t), -E2BIG);
	assert_null(t);
	newer.more = 0;
	assert_int_equal(tally_open_sized(&newer.options, sizeof(newer), &t), 0);
	tally_stats_read_sized(t, offsetof(struct tally_stats, rtt_ns), &stats);
	assert_int_equal(stats.chunks, 0);
	assert_int_equal(stats.rtt_ns, 7);
	assert_int_equal(tally_close(t), 0);

	/* What an older program has no room for is as if it were 0. */
	/* NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): that is the point */
	newer.options.progress = 99;
	assert_int_equal(tally_open(&newer.options, &t), -EINVAL);
	assert_int_equal(
		tally_open_sized(&newer.options, offsetof(struct tally_options, progress), &t), 0);
	assert_int_equal(tally_close(t), 0);
}

static uint8_t priority_of_a_call(struct tally *t, struct tally_hints hints)
{
	int32_t x = 1;

	assert_int_equal(tally_hint(t, &hints), 0);
	start(t, &x, 1);
	assert_true(node_turn(&node));
	return node.priority;
}

/* Ranks need not say the same. */
static void a_hint_holds_for_the_calls_that_follow(void **state)
{
	const struct tally_hints front = { .layer = 0, .layers = 8, .remaining_s = 1 };
	const struct tally_hints back = { .layer = 7, .layers = 8, .remaining_s = 1000000 };
	struct tally *t[RANKS] = { open_rank(0, TALLY_PROGRESS_CALLS),
				   open_rank(1, TALLY_PROGRESS_CALLS) };
	uint8_t urgent, other;

	meet(t);
	urgent = priority_of_a_call(t[0], front);
	other = priority_of_a_call(t[1], back);
	assert_true(other > 0);
	assert_true(urgent > other);
	for (int rank = 0; rank < RANKS; rank++)
		drop(t[rank]);
}

static void the_version_is_said_once(void **state)
{
	char text[32];

	snprintf(text, sizeof(text), "%d.%d.%d", TALLY_VERSION_NUMBER / 10000,
		 TALLY_VERSION_NUMBER / 100 % 100, TALLY_VERSION_NUMBER % 100);
	assert_string_equal(text, tally_version());
}

#define fact(f) cmocka_unit_test_setup_teardown(f, open_node, close_node)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fact(the_first_window_of_a_started_call_leaves_at_once),
		fact(calls_go_on_by_progress_alone),
		fact(who_has_all_results_looks_for_no_more),
		fact(the_descriptor_is_readable_when_a_result_has_come),
		fact(a_descriptor_that_is_asked_for_in_the_midst_of_a_move_knows_both_roots),
		fact(the_descriptor_is_readable_when_a_timer_is_due),
		fact(the_descriptor_tells_of_calls_that_another_thread_ended),
		fact(progress_never_blocks),
		fact(the_thread_completes_calls_while_the_program_computes),
		fact(an_idle_thread_sleeps),
		fact(who_waits_for_a_late_rank_sleeps),
		fact(an_idle_thread_wakes_for_the_timers_of_a_new_call),
		fact(eight_threads_may_call_at_once),
		fact(eight_threads_may_call_beside_the_librarys),
		fact(abort_ends_all_calls_and_wakes_all_waiters),
		fact(close_touches_no_buffer_of_a_call_that_runs),
		fact(no_call_times_out_while_its_program_computes),
		fact(a_forked_child_is_refused_and_its_parent_goes_on),
		fact(so_it_is_beside_the_librarys_thread),
		fact(a_forked_child_sends_nothing_when_it_closes),
		fact(children_may_be_forked_while_threads_make_progress),
		fact(a_child_may_open_a_job_of_its_own),
		fact(a_call_says_how_it_went),
		fact(structs_may_be_older_or_newer_than_the_library),
		fact(a_hint_holds_for_the_calls_that_follow),
		fact(the_version_is_said_once),
	};

	alarm(120); /* who is not woken waits for ever */
	return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
