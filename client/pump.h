/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What turns engines and their transports: a pump has some shards of a job, or all, and the lock of
 * these. One thread at a time drives it, and sleeps on its transports with the lock released: a
 * thread of the pump's own, or one of the program's that waits for a call.
 */
#ifndef TALLY_CLIENT_PUMP_H
#define TALLY_CLIENT_PUMP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "join.h"
#include "moving.h"
#include "priority.h"
#include "shards.h"
#include "spin.h"
#include "transport.h"

/* The place at one root of the job (docs/decisions/0025). */
struct shard {
	struct pump *pump; /* whose lock is that of all that follows */
	struct join *join; /* NULL: opened without an agent */
	char service[64];
	struct engine *engine;
	struct channel *channel;
	struct priority_meter meter;
	uint64_t sent, received; /* datagrams */
	bool no_room; /* the last datagrams could not be sent, and wait for it */
	bool polls_room; /* as the descriptor is now */

	/* What the engine said when the lock was last released: all may read it without. Parts of
	 * calls end in the order in which they were started. */
	uint64_t started; /* parts of calls */
	_Atomic uint64_t ended; /* of them */
	atomic_bool has_failed; /* the run has, at this root */

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

struct pump {
	struct tally *tally;
	pthread_mutex_t turnstile; /* taken before `lock`, so that who comes first is first */
	pthread_mutex_t lock; /* of all that follows, and of the shards */
	struct shard *first, *end; /* from the first one to before the other */
	struct spin spin;
	uint64_t asleep_until_ns; /* who drives; 0: nobody is asleep */
	int kick; /* eventfd that wakes who drives */
	void (*tell)(struct tally *t); /* parts of calls have ended; with no lock held */
	bool has_news; /* a thread of its own has to tell that */
	bool is_stopped, has_thread;
	pthread_t thread;
};

/* Sets the error text. `shards` may be opened later. */
int pump_open(struct pump *p, struct tally *t, void (*tell)(struct tally *t), struct shard *shards,
	      unsigned int count, const struct spin *spin);

/* `was_forked`: locks may be held by threads that are not here. */
void pump_close(struct pump *p, bool was_forked);

/* Drives from now on, in a thread of its own, until it is stopped. Sets the error text. */
int pump_thread(struct pump *p);

/* Ends the thread, if there is one; not with a lock held. */
void pump_stop(struct pump *p);

/* Only with the lock held may shards be touched. Who has the lock of the job (progress.h) may take
 * this one, but not the other way round. */
void pump_enter(struct pump *p);
void pump_leave(struct pump *p);

/* --- the rest: with the lock held */

/* No call is queued or running. */
bool pump_is_idle(const struct pump *p);

/* When something is due; UINT64_MAX: never. */
uint64_t pump_wakeup(const struct pump *p);

/* Takes what is there, and sends what is due. Does not wait. True: something was there. */
bool pump_turn(struct pump *p);

/*
 * After a turn, for who drives: waits until `until_ns` at most, with the lock released, if the turn
 * found nothing (`busy`); else lets those have the lock who wait for it.
 */
void pump_rest(struct pump *p, bool busy, uint64_t until_ns);

/* Who sleeps there looks again at what there is. */
void pump_wake(struct pump *p);

/* Sends what is to be sent now, as after engine_start(). */
void shard_output(struct shard *s);

/* For epoll: of its transport. */
int shard_fd(const struct shard *s);
short shard_events(const struct shard *s);

/* --- progress_hear.c */

/* After a rank has gone, a call may still live on what it has given, and fails after so long
 * without a result. */
#define PROGRESS_ENDING_NS UINT64_C(500000000)

/* Listens to the shard's agent, and does what it says. */
void progress_hear(struct shard *s);

/* --- progress_stay.c: at the same root, whose agent was restarted */

/* Is the agent to be told that this worker is here still? */
void progress_stay_look(struct shard *s, uint64_t now_ns);

/* It was asked, and `moving` is done. */
void progress_stay_take(struct shard *s);

/* --- progress_move.c: to another root, while calls run */

/* The agent has named one. */
void progress_move_begin(struct shard *s, const struct sockaddr_storage *agent);

/* Is its root gone? Then other agents are asked for another one. */
void progress_rescue_look(struct shard *s, uint64_t now_ns);

/* Whatever has become of it. True: something had come from there. */
bool progress_move_turn(struct shard *s);
void progress_move_output(struct shard *s);

/* All that a shard has of a move that is under way goes. */
void progress_move_close(struct shard *s, bool forked);

/* --- of eventfds and timers, whose counters only say that there is something */

void event_set(int fd);
bool event_clear(int fd); /* true: there was */

#endif
