/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Jobs that the agents of a cluster share: this node does its part of them, and, while it leads,
 * decides where their roots are. What is wanted is in the store (agent/cluster/shared.h), and
 * whatever happens, this looks at all of it anew. docs/cluster.md.
 */
#ifndef TALLY_AGENT_PLACING_H
#define TALLY_AGENT_PLACING_H

#include <systemd/sd-event.h>

#include "agent/cluster/shared.h"
#include "events.h"

struct placing;
struct rendezvous;

/* The caller's, for placing_close(), which allows NULL, after sharing_close(): then nothing is told
 * any more of what is under way at the store. */
int placing_open(sd_event *loop, struct driver *d, struct sharing *sharing, struct placing **ret);
void placing_close(struct placing *p);

/* Something may have changed: soon it is looked at. NULL is allowed. */
void placing_wake(struct placing *p);

/* Jobs that are wanted; NULL: none, as there is no cluster. */
const struct shared *placing_shared(const struct placing *p);

/* Is all known that the store has? */
bool placing_is_current(const struct placing *p);

/* Who leads now; "": nobody, or nobody knows. */
const char *placing_leader(const struct placing *p);

/* Is anything here that the store came back without, of tenants that are `seen`? What, in words.
 * `p` may be NULL. */
bool placing_left(const struct placing *p, uint64_t seen, struct why *ret);

/* Decisions of this node as the leader, so far. */
struct placing_counts {
	uint64_t placed, moved, ways;
};

struct placing_counts placing_counts(const struct placing *p);

/* What the leader would do with the job now, in words, as far as this node knows. It takes some
 * milliseconds. -ENOMEM. */
int placing_outlook(const struct placing *p, const struct shared_job *j, struct why *ret);

/* Where workers wait; NULL: there is no cluster. */
struct rendezvous *placing_rendezvous(const struct placing *p);

/*
 * To the store, for whoever asks on this connection: control_told() has the answer later, unless
 * placing_forget() comes before. A negative errno, and why: then no answer comes.
 */
int placing_create(struct placing *p, void *connection, const struct request_job *q,
		   const uint8_t random[CORE_RANDOM_BYTES], struct why *why);
int placing_delete(struct placing *p, void *connection, const char *name, struct why *why);
int placing_rotate(struct placing *p, void *connection, const char *name,
		   const uint8_t random[CORE_RANDOM_BYTES], struct why *why);
int placing_place(struct placing *p, void *connection, const char *name, const char *node,
		  bool stays, struct why *why);
/* Adds, changes or deletes a tenant of the cluster. */
int placing_tenant(struct placing *p, void *connection, const struct request *q, struct why *why);
void placing_forget(struct placing *p, const void *connection);

/* Was it this that asked the core? Then CORE_ANSWER is its. */
bool placing_asked(const struct placing *p, const void *connection);
void placing_answer(struct placing *p, const struct core_action *a);

/* Where other agents of the cluster listen for workers: how many of them are in ret[max]. `p` may
 * be NULL. */
unsigned int placing_others(const struct placing *p, struct sockaddr_storage *ret,
			    unsigned int max);

#endif
