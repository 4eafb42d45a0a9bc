/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of joining share. Nobody else includes this. */
#ifndef TALLY_CLIENT_JOIN_PRIVATE_H
#define TALLY_CLIENT_JOIN_PRIVATE_H

#include <pthread.h>
#include <sys/un.h>

#include "common/session.h"
#include "join.h"

enum {
	ITEM_BYTES = 4096, /* of an option or variable: what is of one root */
	AGENT_BYTES = 128, /* fits any socket's path */
	JOIN_LEAVE_TIMEOUT_MS = 1000,
	JOIN_AGENTS_MAX = 16, /* that are asked in turn, besides the first */
};

_Static_assert(sizeof(struct sockaddr_un) <= sizeof(struct sockaddr_storage), "");
_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) < AGENT_BYTES, "");

struct join {
	unsigned int root, roots; /* which of how many this is the place at */
	int fd; /* of the place; -1: none. Changed by join_fd_set() alone */
	pthread_mutex_t fd_held; /* while it changes, or join_stop() has it */
	bool silent; /* the agent has gone, and the run goes on */
	bool over; /* this rank has left, or the agent has ended the run */
	struct sockaddr_storage agent; /* sockaddr_un, _in or _in6 */
	char agent_text[AGENT_BYTES];
	struct sockaddr_storage other[JOINING_OTHERS_MAX]; /* [others]: agents of the cluster */
	unsigned int others;
	struct sockaddr_storage list[JOIN_AGENTS_MAX]; /* [listed]: of the same cluster, as the */
	unsigned int listed; /* program or its user said: asked in turn with `agent` */
	bool insists; /* until the deadline: agents that are away are asked again */
	bool is_cut; /* what failed last was the connection, or making it */
	bool is_refused; /* or the agent has said no */
	bool rescues; /* the agent of the place that there is has gone: others are asked in turn */
	struct sockaddr_storage local; /* where to receive; ss_family 0: where the connection is */
	struct sockaddr_storage said; /* the same, as it was said, before it was found out */
	struct sockaddr_storage service; /* of the agent, if `local` is to be found by it */
	const char *local_said; /* how the program or its user said that; NULL: nobody did */
	char item[ITEM_BYTES]; /* of what is said, the part that is read: the token, too */
	char job[NAME_BYTES];
	uint8_t token_key[SECRET_KEY_BYTES];
	struct joining_message request;
	uint64_t nonce; /* of the run that it is in */
	uint16_t payload_bytes; /* of that run; before: of the one that is to go on here, or 0 */
	bool is_older; /* the agent: it knows nothing of ways and payloads */
	uint8_t place_key[SECRET_KEY_BYTES]; /* of its place there, if that has one: */
	bool has_place;
	bool by_place; /* what is said next has proofs by that key, and not by the token's */
	bool knows_places; /* the agent has shown in this run that it does */
	bool renews; /* the job has another token than the one that `token_key` is of */
	uint8_t secret[X25519_BYTES]; /* of which request.share is */
	struct session session;
	bool has_asked; /* for a place, at this agent */
	bool is_proven; /* the agent knows the token, so all it says has a proof */
	uint32_t timeout_ms;
	_Atomic uint64_t deadline_ns; /* join_stop() sets it to 0 */
	uint16_t share[JOINING_ROOTS_MAX]; /* of all roots, as was said last during the run */
	unsigned int shares; /* 0: nothing was said */
	struct tally_set missing; /* what the agent said last; empty: nothing yet */
	size_t length; /* of what has come and is not parsed */
	char buffer[JOINING_ANSWER_BYTES + SESSION_LINE_BYTES];
};

/* Closes the one that was there. */
void join_fd_set(struct join *j, int fd);

/* As if the options had named this agent. */
void join_turn_to(struct join *j, const struct sockaddr_storage *agent, const char *text);

/* Fills agent, job, token_key, rank and local. Sets the error text. */
int join_options_read(struct join *j, const struct tally_join_options *o);

/* --- join_talk.c: these set the error text and end at the deadline, where nothing else is said */

void join_deadline_set(struct join *j, uint32_t timeout_ms);

int join_connect(struct join *j);

/* What a call on the connection that has just failed has to say. */
int join_broken(struct join *j);

/* A socket cannot be bound to the address that somebody said. */
int join_address_blame(const struct join *j, int r);

/* On a new connection: what comes next, on both sides, has proofs. */
int join_greet(struct join *j);

int join_request_send(struct join *j);

int join_answer_read(struct join *j, struct joining_answer *ret);

/* Of what has come. -EAGAIN: not all of it. Sets `why`, but not the error text. */
int join_answer_take(struct join *j, struct joining_answer *ret, struct why *why);

/* The error that an answer is. */
int join_refused(struct join *j, const struct joining_answer *a);

/* What the request says of the way, and of the run that goes on, once `local` is known. */
void join_way_say(struct join *j);

/* Is the agent one that refuses that, and is it to be asked once more without? */
bool join_is_older(struct join *j, int error);

/* --- join_asking.c: one agent, or several in turn, are asked until one answers */

struct asking {
	struct sockaddr_storage first;
	char first_text[AGENT_BYTES];
	uint64_t begun_ns, pause_ns;
	unsigned int turn; /* 0: the first's */
	unsigned int tries;
	bool was_cut; /* a connection on which it had asked ended */
	struct why cause; /* of the last try that was followed by another */
};

struct asking asking_begin(const struct join *j);

/* After this error, is an agent asked once more? Then it is the one to be connected to now, after
 * a pause. `was_named`: by another agent. */
bool asking_goes_on(struct join *j, struct asking *a, int error, bool was_named,
		    bool has_connected);

/* The error, with how often it was tried in the error text. */
int asking_end(const struct join *j, const struct asking *a, int error);

/* --- join_anew.c */

/* Over a new connection, as the one that there was has ended. */
void join_leave_anew(struct join *j);

#endif
