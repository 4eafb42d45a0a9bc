/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A place in a run of a job, got from an agent and given back to it (docs/joining.md): the
 * client's edge to the agent. The collectives know nothing of it.
 */
#ifndef TALLY_CLIENT_JOIN_H
#define TALLY_CLIENT_JOIN_H

#include <tally/tally.h>

#include "common/joining.h"
#include "common/why.h"
#include "transport.h"

struct join;

/*
 * How many roots the options and the environment name, at least 1, where lists are as long as they
 * must be; else -EINVAL, or -E2BIG: more than SHARDS_MAX. Sets the error text.
 */
int join_roots(const struct tally_join_options *options);

/* Do the options or the environment say shares? */
bool join_has_shares(const struct tally_join_options *options);

/* The share of each root: `roots` of them. -EINVAL: a share is none. Sets the error text. */
int join_shares(const struct tally_join_options *options, unsigned int roots, uint16_t *ret);

/* What the environment says of congestion, where the program says nothing. -EINVAL, as above. */
int join_congestion(const struct tally_join_options *options, enum tally_congestion *ret);

/*
 * At root number `root` of `roots`: asks for a place and waits until all ranks have come. What
 * stands in tally.h of the options, their defaults and errors holds. On success *ret_channel is
 * bound to the address that the agent knows, not yet connected; `ret_place` is JOINING_RUN; and
 * *ret holds the place until join_close(). Sets the error text.
 */
int join_open(const struct tally_join_options *options, unsigned int root, unsigned int roots,
	      struct join **ret, struct channel **ret_channel, struct joining_answer *ret_place);

enum {
	JOIN_ENDS = 1, /* the run is ending, since a rank has gone: calls that lack it will find no
			* end */
	JOIN_MOVES = 2, /* the job's root shall be elsewhere, where a run for all begins */
};

/*
 * What the agent has said since then; does not wait. 0: nothing. JOIN_ENDS; JOIN_MOVES, and where
 * to. Negative: the run is over, with this errno. *ret is then why. Where the agent itself has
 * gone, the run goes on.
 */
int join_hear(struct join *j, struct why *ret, struct sockaddr_storage *ret_elsewhere);

/* What join_hear() heard last of the shares of several roots: how many there are, 0: nothing. */
unsigned int join_shares_heard(const struct join *j, uint16_t ret[JOINING_ROOTS_MAX]);

/* The same worker at another agent, in the same rank: for join_again(). NULL: no memory. */
struct join *join_copy(const struct join *j, const struct sockaddr_storage *agent);

/*
 * The same worker in the same run, whose root and agent are gone: for join_again(), which asks the
 * other agents of the cluster in turn. NULL: there is no cluster, or no memory.
 */
struct join *join_rescue(const struct join *j);

/* How many other agents of a cluster it knows. */
unsigned int join_others(const struct join *j);

/* The same worker in another job that has the same token, in the same rank, at the agent where it
 * has its place now: for join_again(). NULL: no memory. */
struct join *join_beside(const struct join *j, const char *job);

/* As join_open(); timeout_ms: 0: the default. `j` stays the caller's, for join_close() or
 * join_stop(). */
int join_again(struct join *j, uint32_t timeout_ms, struct channel **ret_channel,
	       struct joining_answer *ret_place);

/*
 * The same worker in the same run, whose agent has ended the connection, as when it was restarted,
 * or has another token for it: for join_stay(), which asks the agent over a new one. NULL: no
 * memory.
 */
struct join *join_stays(const struct join *j);

/*
 * Takes three seconds at most. 0: `j` has the place in the run now, and what it had it from is for
 * join_forget(). -ECANCELED, -EACCES, -EINVAL (also: the agent is older): never; else not now. Sets
 * the error text.
 */
int join_stay(struct join *j);

/* Another thread is in join_again() or join_stay(): it returns soon. */
void join_stop(struct join *j);

/* The job's name. */
const char *join_job(const struct join *j);

/*
 * Has the agent gone, and has the run gone on; or has the job another token, which the agent tells
 * to who stays? As join_hear() has found.
 */
bool join_is_to_stay(const struct join *j);

/* Would the agent say if a rank had gone? As join_hear() has found. */
bool join_watches(const struct join *j);

/*
 * The rank leaves, if it has not: the agent tells the others. Takes no time; where the agent has
 * gone, only join_close() says it. Keeps the error text. NULL is allowed.
 */
void join_leave(struct join *j);

/*
 * Leaves and frees. Takes no time while the connection is there; if the agent has ended it, a
 * second at most goes into telling it anew. Keeps the error text. NULL is allowed.
 */
void join_close(struct join *j);

/* As join_close(), where the agent is not to be waited for. NULL is allowed. */
void join_drop(struct join *j);

/* In a forked child, whose parent keeps the place: closes the child's descriptor. NULL is allowed.
 */
void join_forget(struct join *j);

#endif
