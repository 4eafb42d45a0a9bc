/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What turns engines and their transports together: the lock, the waits and the clock of a struct
 * tally, the descriptor for event loops and the thread. One thread at a time drives: it sleeps on
 * the transport, with the lock released, and the others wait until calls have ended or the driver
 * has what it wanted.
 */
#ifndef TALLY_CLIENT_PROGRESS_H
#define TALLY_CLIENT_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tally/tally.h>

#include "engine.h"
#include "join.h"
#include "moving.h"
#include "priority.h"
#include "shards.h"
#include "spin.h"
#include "transport.h"

/* The place at one root of the job (docs/decisions/0025). */
struct shard {
	struct join *join; /* NULL: opened without an agent */
	char service[64];
	struct engine *engine;
	struct channel *channel;
	struct priority_meter meter;
	uint64_t sent, received; /* datagrams */
	bool no_room; /* the last datagrams could not be sent, and wait for it */
	bool polls_room; /* as the descriptor is now */

	bool follows; /* the network: congestion.h */
	bool keeps; /* the job is a cluster's: the run can go on elsewhere if its root goes */
	struct moving *moving; /* a place at another root is being got; NULL: none */
	struct sockaddr_storage named; /* another root to go to then; ss_family 0: none */
	bool rescues; /* since nothing is heard of this one */
	uint64_t rescue_ns; /* when that may be tried again */
	struct { /* the agent was restarted, and is to know this worker again */
		bool asks; /* by `moving` */
		uint64_t due_ns, pause_ns;
	} stay;
	struct { /* of the run that this one moves to; channel NULL: there is none */
		struct join *join;
		struct channel *channel;
		char service[64];
		bool no_room;
		uint64_t since_ns;
	} next;

	uint64_t hear_ns; /* the agent is listened to again */
	struct {
		struct why why; /* "": the run is not ending */
		uint64_t done, since_ns; /* so much is done, and was at that time */
		uint64_t looked_ns;
		bool forgiven; /* a time in which nobody looked, since the latest result */
	} ending;
};

enum {
	TALLY_CALLS_MAX = 64, /* started and not waited for */
};

/* A started call: a part at each root. */
struct tally_call {
	struct tally *tally; /* constant */
	bool pending; /* not waited for */
	bool held; /* until shares are known: progress_shares.c */
	bool over; /* and all its parts are */
	struct engine_call *part[SHARDS_MAX]; /* NULL: held, or it was when the run ended */
	struct call_options options;
	struct tally_hints hints;
	uint64_t started_ns, held_ns;
	struct tally_call *next_held;
};

struct tally {
	uint16_t rank, workers, payload_bytes;
	pid_t process; /* that opened it */

	pthread_mutex_t turnstile; /* taken before `lock`, so that who comes first is first */
	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t changed; /* calls have ended, or nobody drives any more */
	struct shards shards; /* how calls are split */
	struct shard shard[SHARDS_MAX];
	struct shard *failed; /* where the run failed first, which ended it at all; NULL: nowhere */
	struct tally_hints hints; /* of the calls to come */
	struct tally_call call[TALLY_CALLS_MAX];
	struct { /* shares that change while calls run: progress_shares.c */
		bool follows; /* an agent says them */
		uint64_t calls, bytes; /* of the program's, since the last question */
		struct engine_call *question; /* is on; NULL: there is none */
		int64_t share[SHARDS_MAX]; /* in it */
		struct tally_call *first_held, *last_held; /* behind it */
	} agreeing;
	uint64_t ended; /* calls, those included whose handles were given back */
	uint64_t parts_ended; /* as engines said when calls were last looked through */
	unsigned int waiters; /* for `changed` */
	bool driven;
	struct spin spin; /* of the driver */
	uint64_t asleep_until_ns; /* the driver; 0: nobody is asleep */
	int kick; /* eventfd that wakes the driver */
	uint64_t told; /* `ended` when waiters were last told */

	int poll; /* what tally_fd() says; -1: nobody asked yet, and so are the next two */
	int timer;
	int news; /* eventfd: calls have ended that tally_progress() has not told of */
	uint64_t timer_ns; /* when it fires; UINT64_MAX: it does not */
	uint64_t reported; /* `ended` when tally_progress() last told */
	bool has_news; /* as the descriptor is now */

	bool threaded, closing;
	pthread_t thread;
};

/* Both set the error text. The thread is started last, when all shards are there. */
int progress_open(struct tally *t);
int progress_thread(struct tally *t);

/* Ends the thread. What follows is for one thread alone. */
void progress_stop(struct tally *t);

void progress_close(struct tally *t);

/*
 * Is this a forked child of the process that opened? Then locks may be held by threads that are not
 * here, and descriptors are also the parent's: only progress_close() may follow.
 */
bool progress_is_forked(const struct tally *t);

/* Only with the lock held may engines be touched. */
void progress_enter(struct tally *t);
void progress_leave(struct tally *t);

/* The rest: with the lock held. */

/* Sends what is to be sent now, as after engine_start(). */
void progress_output(struct tally *t);

/* No call is queued or running. */
bool progress_is_idle(const struct tally *t);

/* Takes what is there, and sends what is due. Does not wait. True: something was there. */
bool progress_turn(struct tally *t);

/* --- progress_hear.c */

/* After a rank has gone, a call may still live on what it has given, and fails after so long
 * without a result. */
#define PROGRESS_ENDING_NS UINT64_C(500000000)

/* Listens to the shard's agent, and does what it says. */
void progress_hear(struct tally *t, struct shard *s);

/* --- progress_stay.c: at the same root, whose agent was restarted */

/* Is the agent to be told that this worker is here still? */
void progress_stay_look(struct tally *t, struct shard *s, uint64_t now_ns);

/* It was asked, and `moving` is done. */
void progress_stay_take(struct shard *s);

/* --- progress_move.c: to another root, while calls run */

/* The agent has named one. */
void progress_move_begin(struct tally *t, struct shard *s, const struct sockaddr_storage *agent);

/* Is its root gone? Then other agents are asked for another one. */
void progress_rescue_look(struct tally *t, struct shard *s, uint64_t now_ns);

/* Whatever has become of it. True: something had come from there. */
bool progress_move_turn(struct tally *t, struct shard *s);
void progress_move_output(struct shard *s);

/* All that a shard has of a move that is under way goes. */
void progress_move_close(struct shard *s, bool forked);

/* --- progress_shares.c: what roots have of each call, while calls run */

/* The parts of a call, whose options and hints are there, to their roots: now, or when it is known
 * which they are. As engine_start(). */
int progress_shares_start(struct tally *t, struct tally_call *call);

/* Engines have gone on: the first call that was held does, too, if it can. True: it has. */
bool progress_shares_go_on(struct tally *t);

/* One turn; waits until `until_ns` at most if there was nothing to do. For who drives. */
void progress_wait(struct tally *t, uint64_t until_ns);

/* Until the call is over, or, for NULL, all is: drives, or waits for who does. */
void progress_finish(struct tally *t, const struct tally_call *call);

/* What tally_fd() and tally_progress() say. */
int progress_fd(struct tally *t);
unsigned int progress_report(struct tally *t);

#endif
