/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A place in another run of the job, at another root, while the run that is on goes on: a thread
 * joins there. What follows is the engine's (engine_move()). Or the place in this run once more,
 * where the agent was restarted.
 */
#ifndef TALLY_CLIENT_MOVING_H
#define TALLY_CLIENT_MOVING_H

#include <stdbool.h>

#include "join.h"

struct moving;

/* `kick`: an eventfd that is set when it is done. The caller's, for moving_end(). NULL: no memory,
 * or no thread. */
struct moving *moving_begin(const struct join *j, const struct sockaddr_storage *agent, int kick);

/* The same where the root is gone, by the other agents of the cluster. NULL also: there is none. */
struct moving *moving_rescue(const struct join *j, int kick);

/* In this run: for moving_take_stay(). NULL: no memory, or no thread. */
struct moving *moving_stay(const struct join *j, int kick);

bool moving_is_done(const struct moving *m);

/*
 * What came of it, and all that it had is the caller's now: *ret_join for join_close(), the
 * channel bound. Negative: nothing; the run stays where it is.
 */
int moving_take(struct moving *m, struct join **ret_join, struct channel **ret_channel,
		struct joining_answer *ret_place);

/* The same of moving_stay(), where only the connection is another one. */
int moving_take_stay(struct moving *m, struct join **ret_join);

/* Waits until the thread has ended, which it is told to. NULL is allowed. */
void moving_end(struct moving *m);

/* In a forked child, where the thread is not. */
void moving_forget(struct moving *m);

#endif
