/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the pumps of a job have in common (pump.h): its calls, of which each has a part at each
 * root, who waits for them, the clock, the descriptor for event loops, and the threads. Without
 * threads there is one pump, and one thread at a time drives it while it waits; the others wait
 * until calls have ended or that one has what it wanted. Then nobody touches shards without the
 * job's lock. Threads take it only when parts of calls have ended.
 */
#ifndef TALLY_CLIENT_PROGRESS_H
#define TALLY_CLIENT_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tally/tally.h>

#include "pump.h"
#include "engine.h"
#include "shards.h"

enum {
	TALLY_CALLS_MAX = 64, /* started and not waited for */
};

/* A started call: a part at each root. */
struct tally_call {
	struct tally *tally; /* constant */
	bool pending; /* not waited for */
	bool held; /* until shares are known: progress_shares.c */
	bool over; /* and all its parts are */
	struct engine_call *part[SHARDS_MAX]; /* NULL: held, or the run had failed there before */
	uint64_t number[SHARDS_MAX]; /* so many parts have ended there when this one has */
	struct call_options options;
	struct tally_hints hints;
	uint64_t started_ns, held_ns;
	struct tally_call *next_held;
};

struct tally {
	uint16_t rank, workers, payload_bytes;
	pid_t process; /* that opened it */

	pthread_mutex_t turnstile; /* taken before `lock`, so that who comes first is first */
	pthread_mutex_t lock; /* of all that follows, but for shards; taken before theirs */
	pthread_cond_t changed; /* calls have ended, or nobody drives any more */
	struct shards shards; /* how calls are split */
	struct shard shard[SHARDS_MAX];
	struct pump pump[SHARDS_MAX]; /* [pumps], which is constant */
	unsigned int pumps;
	struct shard *failed; /* where the run failed first, which ended it at all; NULL: nowhere */
	struct tally_hints hints; /* of the calls to come */
	struct tally_call call[TALLY_CALLS_MAX];
	struct { /* shares that change while calls run: progress_shares.c */
		bool follows; /* an agent says them */
		uint64_t calls, bytes; /* of the program's, since the last question */
		struct engine_call *question; /* is on; NULL: there is none */
		uint64_t number; /* as that of a part at the first root */
		int64_t share[SHARDS_MAX]; /* in it */
		struct tally_call *first_held, *last_held; /* behind it */
	} agreeing;
	uint64_t ended; /* calls, those included whose handles were given back */
	uint64_t parts_ended; /* as shards said when calls were last looked through */
	unsigned int waiters; /* for `changed` */
	bool driven; /* by a thread of the program */
	uint64_t told; /* `ended` when waiters were last told */

	int poll; /* what tally_fd() says; -1: nobody asked yet, and so are the next two */
	int timer;
	int news; /* eventfd: calls have ended that tally_progress() has not told of */
	uint64_t timer_ns; /* when it fires; UINT64_MAX: it does not */
	uint64_t reported; /* `ended` when tally_progress() last told */
	bool has_news; /* as the descriptor is now */

	bool threaded; /* constant while there are threads */
};

/*
 * `roots` shards, which may be opened later, with as many `pumps`, or fewer. Threads are started
 * last, when all shards are there. Both set the error text.
 */
int progress_open(struct tally *t, unsigned int roots, unsigned int pumps, const struct spin *spin);
int progress_threads(struct tally *t);

/* Ends the threads. What follows is for one thread alone. */
void progress_stop(struct tally *t);

void progress_close(struct tally *t);

/*
 * Is this a forked child of the process that opened? Then locks may be held by threads that are not
 * here, and descriptors are also the parent's: only progress_close() may follow.
 */
bool progress_is_forked(const struct tally *t);

/* Who leaves tells those who wait what has become of calls. */
void progress_enter(struct tally *t);
void progress_leave(struct tally *t);

/* The rest: with the lock held. */

/* A turn of all pumps; where calls run, if there are no others. */
void progress_turn(struct tally *t);
void progress_turn_busy(struct tally *t);

/* Has this part of a call ended, or was it none? */
bool progress_part_is_over(const struct shard *s, uint64_t number);

/* --- progress_shares.c: what roots have of each call, while calls run */

/* The parts of a call, whose options and hints are there, to their roots: now, or when it is known
 * which they are. As engine_start(). */
int progress_shares_start(struct tally *t, struct tally_call *call);

/* Engines have gone on: the first call that was held does, too, if it can. True: it has. */
bool progress_shares_go_on(struct tally *t);

/* One turn; waits until `until_ns` at most if there was nothing to do. For who drives, where there
 * are no threads. */
void progress_wait(struct tally *t, uint64_t until_ns);

/* Until the call is over: drives, or waits for who does. */
void progress_finish(struct tally *t, const struct tally_call *call);

/* What tally_fd() and tally_progress() say. */
int progress_fd(struct tally *t);
unsigned int progress_report(struct tally *t);

#endif
