/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What workers*.c share: connections of workers, and of agents. Nobody else includes this. */
#ifndef TALLY_AGENT_WORKERS_PRIVATE_H
#define TALLY_AGENT_WORKERS_PRIVATE_H

#include "agent/edge/stream.h"
#include "common/session.h"
#include "peers.h"
#include "workers.h"

struct workers {
	struct stream_server *server;
	struct driver *driver;
	uint8_t secret[X25519_BYTES], share[X25519_BYTES]; /* for the keys of ranks */
	bool listens[CONFIG_LISTENS_MAX]; /* at each of the configuration's addresses? */
	struct peers_refused refused; /* agents */
};

/* A connection on which both sides have greeted. */
struct worker {
	struct session session;
	uint8_t token_key[SECRET_KEY_BYTES]; /* of the job, or random if there is none; or: */
	bool by_place; /* it is the key of the worker's place in the run */
	uint8_t share[X25519_BYTES]; /* as it joined */
	char job[NAME_BYTES];
	bool is_proven; /* the worker knows the token, so what it is told has a proof, too */
	bool is_known; /* to the core, which must hear of the connection's end */
	bool is_waiting; /* at the rendezvous, which must hear of it, too */
	bool is_agent; /* it is no worker, but: */
	struct peer peer;
	const char *asked; /* the verb of its request, about `job` */
};

/* With its proof, once there may be one; then never without. */
void workers_say(struct stream *s, const char *text, size_t length);

int workers_draw(void *ret, size_t size); /* random bytes; -EIO */

/* An agent greets, and asks for one thing. As stream_service.read(), but for errors. */
int workers_agent_greets(struct stream *s, const char *text, size_t length, size_t *ret_used,
			 struct why *why);
int workers_agent_asks(struct stream *s, const char *text, size_t length, size_t *ret_used,
		       struct why *why);

#endif
