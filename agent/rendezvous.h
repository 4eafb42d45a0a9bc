/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Workers of jobs that agents share, who came to this agent: they wait until it is known where the
 * root of their job is, and are told so. What the store knows of them is how the leader knows where
 * they are.
 */
#ifndef TALLY_AGENT_RENDEZVOUS_H
#define TALLY_AGENT_RENDEZVOUS_H

#include "agent/cluster/picture.h"
#include "agent/cluster/shared.h"
#include "agent/edge/stream.h"
#include "agent/store/store.h"
#include "common/joining.h"
#include "common/secret.h"

struct rendezvous;

/* How a worker is told. After elsewhere() and error() its connection ends. */
struct rendezvous_voice {
	void (*missing)(struct stream *s, const struct tally_set *ranks);
	void (*elsewhere)(struct stream *s, const struct sockaddr_storage *root);
	void (*error)(struct stream *s, int error, const char *words);
	/* Its proof may be right by now, or never will be: it is held no more. The connection may
	 * be one that waits from now on. */
	void (*again)(struct stream *s);
};

/* All are the caller's, and stay. *ret is the caller's, for rendezvous_close(). */
int rendezvous_open(struct store *store, const struct shared *shared, const struct picture *picture,
		    const char *node, struct rendezvous **ret);
void rendezvous_close(struct rendezvous *r); /* or NULL */

/* A worker that has proven that it knows the job's token, of which this key is made. -EUSERS: twice
 * as many as the job has workers wait here already; -ENOSPC: it is crowded, and of its tenant's
 * jobs as many as the largest job has workers; -ENOMEM, -EIO. */
int rendezvous_take(struct rendezvous *r, struct stream *s, const struct rendezvous_voice *voice,
		    const char *job, const uint8_t token_key[SECRET_KEY_BYTES],
		    const struct joining_message *m, bool crowded);

/*
 * A worker whose first proof is wrong, as far as is known here: what another agent has done to the
 * job may be on its way here. It is held until something is heard of this job, for a second or two
 * at most. -EUSERS: too many are held, of its source or of all.
 */
int rendezvous_hold(struct rendezvous *r, struct stream *s, const struct rendezvous_voice *voice,
		    const char *job);

/* Its connection has ended, if it waits or is held here. */
void rendezvous_leave(struct rendezvous *r, const struct stream *s);

/* Has the agent of the job's root the job by now, and may a run begin there? */
bool rendezvous_is_there(const struct rendezvous *r, const struct shared_job *j);

/* What is known may be something else now. */
void rendezvous_look(struct rendezvous *r);

/* The lease has gone, and with it what the store knew. */
void rendezvous_lost(struct rendezvous *r);

#endif
