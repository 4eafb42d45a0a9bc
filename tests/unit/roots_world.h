/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two ranks of a job with two roots, over real sockets, each root with a node that has a thread.
 */
#ifndef TALLY_TESTS_UNIT_ROOTS_WORLD_H
#define TALLY_TESTS_UNIT_ROOTS_WORLD_H

#include <errno.h>
#include <string.h>

#include <tally/tally.h>

#include "client/progress.h"
#include "tests/unit/progress_world.h"

enum {
	ROOTS = 2,
	COUNT = 100, /* elements of a call: four chunks */
	THREADS_MAX = 40, /* of the program */
};

static struct node node[ROOTS] = { { .fd = -1 }, { .fd = -1 } };
static struct tally *t[RANKS];

/* `threads`: of the library, 0: as many as there are processors. */
static inline void open_ranks_with(enum tally_progress_by by, uint16_t threads, uint32_t timeout_ms)
{
	struct loopback_text service[ROOTS], address[ROOTS];

	for (int i = 0; i < ROOTS; i++) {
		assert_int_equal(node_open(&node[i], i), 0);
		assert_int_equal(node_thread_start(&node[i]), 0);
	}
	for (int rank = 0; rank < RANKS; rank++) {
		struct tally_options o[ROOTS];

		for (int i = 0; i < ROOTS; i++) {
			service[i] = loopback_text(NODE_HOST + i, 0);
			address[i] = loopback_text(RANK_HOST + rank, 40000 + i);
			o[i] = (struct tally_options){
				.job = 1,
				.epoch = 1,
				.rank = rank,
				.workers = RANKS,
				.window = WINDOW,
				.payload_bytes = PAYLOAD,
				.timeout_ms = timeout_ms,
				.service = service[i].s,
				.address = address[i].s,
				.progress = by,
				.progress_threads = threads,
				.share = 1 + i,
			};
		}
		assert_int_equal(tally_open_roots(o, ROOTS, &t[rank]), 0);
	}
}

/* Also those of a test that has failed. */
static inline int end_nodes(void **state)
{
	for (int i = 0; i < ROOTS && node[i].fd >= 0; i++) {
		node_thread_end(&node[i]);
		close(node[i].fd);
		node[i].fd = -1;
	}
	return 0;
}

static inline void drop_ranks(void)
{
	for (int rank = 0; rank < RANKS; rank++) {
		tally_abort(t[rank]);
		assert_int_equal(tally_close(t[rank]), 0);
		t[rank] = NULL;
	}
	end_nodes(NULL);
}

/* 0, -EBADMSG for a wrong sum, or what the call says. */
static inline int call_once(struct tally *of, size_t count)
{
	int32_t x[COUNT];
	int r;

	for (int k = 0; k < COUNT; k++)
		x[k] = 1 + of->rank;
	r = tally_allreduce(of, x, x, count, TALLY_INT32, TALLY_SUM);
	for (size_t k = 0; k < count && r == 0; k++)
		r = x[k] == 3 ? 0 : -EBADMSG;
	return r;
}

/* Threads of the program, which make one call after another. */
struct work {
	struct tally *of;
	unsigned int calls;
	int result;
	pthread_t thread;
};

static inline void *work_main(void *argument)
{
	struct work *w = argument;

	for (unsigned int i = 0; i < w->calls && w->result == 0; i++)
		w->result = call_once(w->of, COUNT);
	return NULL;
}

static inline void work_start(struct work *w, struct tally *of, unsigned int threads,
			      unsigned int calls)
{
	for (unsigned int i = 0; i < threads; i++) {
		w[i] = (struct work){ .of = of, .calls = calls };
		assert_int_equal(pthread_create(&w[i].thread, NULL, work_main, &w[i]), 0);
	}
}

static inline void work_end(struct work *w, unsigned int threads, int result)
{
	for (unsigned int i = 0; i < threads; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].result, result);
	}
}

/* Rank 0 with threads, and rank 1 one call after another. */
static inline void call_with_threads(unsigned int threads, unsigned int calls)
{
	struct work w[THREADS_MAX];

	work_start(w, t[0], threads, calls);
	for (unsigned int i = 0; i < threads * calls; i++)
		assert_int_equal(call_once(t[1], COUNT), 0);
	work_end(w, threads, 0);
}

static inline void both_call(unsigned int calls) { call_with_threads(1, calls); }

#endif
