/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What workers*.c share: connections of workers, and of agents. Nobody else includes this. */
#ifndef TALLY_AGENT_WORKERS_PRIVATE_H
#define TALLY_AGENT_WORKERS_PRIVATE_H

#include "agent/edge/stream.h"
#include "common/session.h"
#include "peers.h"
#include "rendezvous.h"
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
	char *opening; /* the two greetings, until its first message is judged, as the job may have
			*/
	size_t opening_bytes; /* another token by then; NULL: nobody reads it twice */
	char *held; /* its first message, as it came, while the rendezvous holds it; else NULL */
	size_t held_bytes;
	bool is_proven; /* the worker knows the token, so what it is told has a proof, too */
	bool is_known; /* to the core, which must hear of the connection's end */
	bool is_waiting; /* at the rendezvous, which must hear of it, too */
	bool is_agent; /* it is no worker, but: */
	struct peer peer;
	const char *asked; /* the verb of its request, about `job` */
};

/* With its proof, once there may be one; then never without. */
void workers_say(struct stream *s, const char *text, size_t length);

/* What is wrong, for `error`, and the connection's end. */
void workers_refuse(struct stream *s, bool is_agent, int error, struct why *why);

/* A worker's message, if the proof is right; -EACCES: it is wrong. */
int workers_message_read(struct worker *w, const char *text, size_t length,
			 struct joining_message *ret, size_t *ret_used, struct why *why);

/* What becomes of its message, or of a wrong proof (NULL), which is a guess. */
int workers_message_judge(struct stream *s, const struct joining_message *m, struct why *why);

/* --- workers_keys.c */

/* A job that agents share, and whose root is not here; or NULL. */
const struct shared_job *workers_shared_job(const struct workers *workers, const char *job);

/* The token's key of the job as it is known now, or a random one: there is no job. -EIO. */
int workers_token_key(const struct workers *workers, const char *job, uint8_t *ret);

/* The key of the place that a worker names as it greets. -ECANCELED: there is none, and why. */
int workers_place_key(const struct workers *workers, const struct joining_greeting *g, uint8_t *ret,
		      struct why *why);

/* --- workers_held.c */

/* Both greetings, to read the first message once more; but of who proves a place, which no news of
 * other agents makes right. Freed by workers_forget(). */
int workers_keep(struct worker *w, const char *opening, size_t bytes);

/* The first proof is wrong: 0, it is read once more when something is heard of the job; negative:
 * it is not. -EAGAIN: too many wrong ones came from its source. */
int workers_hold(struct stream *s, const struct rendezvous_voice *voice, const char *text,
		 size_t length);

/* Its connection has ended while it was held: a wrong proof, of which nobody is told. */
void workers_held_gone(struct stream *s);

/* As rendezvous_voice.again(). */
void workers_read_again(struct stream *s);

/* It needs neither its greetings nor what was held any more. */
void workers_forget(struct worker *w);

int workers_draw(void *ret, size_t size); /* random bytes; -EIO */

/* An agent greets, and asks for one thing. As stream_service.read(), but for errors. */
int workers_agent_greets(struct stream *s, const char *text, size_t length, size_t *ret_used,
			 struct why *why);
int workers_agent_asks(struct stream *s, const char *text, size_t length, size_t *ret_used,
		       struct why *why);

#endif
