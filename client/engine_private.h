/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What engine*.c share. Nobody else includes this. */
#ifndef TALLY_CLIENT_ENGINE_PRIVATE_H
#define TALLY_CLIENT_ENGINE_PRIVATE_H

#include "engine.h"

enum call_state {
	STATE_FREE = 0,
	STATE_QUEUED,
	STATE_RUNNING,
	STATE_OVER,
};

struct engine_call {
	struct engine *engine;
	struct call_options options;
	struct call call;
	enum call_state state;
	int result;
	struct tally_call_info info; /* while it runs: what the totals were when its turn came */
	uint64_t started_ns;
	struct engine_call *next; /* in the queue */
	char why[512];
};

/* What ranks tell one another there, by an allreduce each, in a window of chunks each. */
enum move_stage {
	MOVE_ARRIVING, /* that they are there: before, nobody waits for anything */
	MOVE_AGREEING, /* how far they go at most; and whether the first run is broken for one */
	MOVE_RESUMING, /* if it is: what they lack. Nobody goes on in the first run */
};

/* Chunks whose numbers have the same remainder by W: each is sent when the one before has its
 * result. */
struct stream {
	uint32_t next; /* that will be composed */
	uint32_t from; /* while the run resumes: the first that some rank lacks, */
	uint32_t again; /* and behind the last that was composed for the first run */
	bool is_held; /* `next` is due, and waits until it is known where it goes */
};

/*
 * From the run that is on to another one, at another root, with the same ranks and window
 * (docs/decisions/0030). Chunks before `from` belong to the first run, all others to the next one,
 * on all ranks alike: the ranks agree in that by an allreduce in the next run, and until then none
 * goes further than it has said there.
 *
 * Where the first run is broken (0032), the ranks agree for each stream in the first chunk that
 * some rank lacks. What was composed from there on is posted again in the next run, also by those
 * who have its result.
 */
struct move {
	struct window *next; /* NULL: there is no move */
	bool is_broken; /* this rank hears no more of the first run's root */
	enum move_stage stage;
	bool has_call;
	struct call agreement; /* the stage's call, with these as its vector: */
	uint64_t *word;
	uint32_t own; /* this rank's: chunks from here on wait until it is agreed */
	bool agreed;
	bool resumes; /* agreed, and the first run is broken */
	uint32_t from; /* of the first run's chunks, what the first one of the next run is */
	uint32_t passed; /* of the second window of chunks there, how many were composed */
	uint32_t lacks; /* it resumes: how many chunks have no result in the next run yet that were
			 * composed for the first one */
};

struct engine {
	struct engine_options options;
	struct call_member member;
	struct window *window;
	uint32_t shift; /* what chunks are called in the window is so much less than here */
	struct move move;
	struct guesses guesses;
	struct engine_call *first, *last; /* the queue; the first one is running */
	struct stream *stream; /* [W] */
	uint32_t base; /* seq of the round's first entry */
	uint32_t composed; /* behind the last chunk that was composed */
	bool has_resumed; /* chunks, or some, were done again in another run */
	uint64_t patience_ns; /* while another root is looked for: a call may take so long; 0: none
			       * is */
	struct tally_stats past; /* of windows that are no more */
	uint64_t progress_ns; /* start of the call, or its latest result; 0: not yet */
	uint64_t now_ns; /* as it was said last */
	uint64_t redone, ended, sent_bytes, busy_ns;
	char told[256]; /* engine_fail() was */
	int result; /* of the call that failed, and why */
	char why[512];
	bool unreachable;
	uint32_t mtu; /* of the way, if packets are said to be too large for it; else 0 */
	bool failed, aborted, watched;
	bool forgiven; /* a time in which nobody looked, since the latest result */
	struct engine_call *opening; /* a call before all others; NULL: none is needed any more */
	uint64_t *random; /* [workers]: this rank's own number at its place, then all; and behind
			   * them what else there is to agree in */
	struct engine_call call[ENGINE_CALLS_MAX];
};

static inline struct stream *engine_stream(struct engine *e, uint32_t seq)
{
	return &e->stream[seq & (e->member.window - 1u)];
}

/* Sends an entry of the round that is on, or holds it. */
void engine_send_entry(struct engine *e, uint32_t entry);

/* The window that this chunk belongs to, and what it is called there; NULL: that is not known. */
struct window *engine_window_of(struct engine *e, uint32_t seq, uint32_t *ret_seq);

void engine_move_free(struct engine *e);

/* It is so late now. */
void engine_look(struct engine *e, uint64_t now_ns);

uint64_t engine_timeout(const struct engine *e); /* of a call, since its latest result, now */

/* Has the network said something that ends the run? */
void engine_check_news(struct engine *e, const struct window *w);

uint64_t engine_window_wakeup(const struct engine *e); /* of both windows */
void engine_stats_add(struct tally_stats *to, const struct tally_stats *from);

/* A result has come, of chunk `seq` as it is called here. */
void engine_take(struct engine *e, uint32_t seq, const void *bytes, uint64_t now_ns);

#endif
