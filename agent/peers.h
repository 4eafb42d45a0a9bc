/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Agents of other nodes that say what this one does as an inner node of their jobs
 * (docs/peering.md). They come to the port where workers join.
 */
#ifndef TALLY_AGENT_PEERS_H
#define TALLY_AGENT_PEERS_H

#include <jansson.h>

#include "agent/core/paths.h"
#include "agent/core/request.h"
#include "agent/edge/stream.h"
#include "common/session.h"
#include "events.h"

/* An agent that has greeted, and been greeted. */
struct peer {
	struct session session;
	struct sockaddr_storage root; /* who it is */
	uint8_t share[X25519_BYTES]; /* as it greeted */
	bool has_asked; /* something, behind the greetings */
	bool is_proven;
};

/* Can the secret be used, where the configuration has one? Errors as peer_secret_read(). */
int peers_check(const struct config *c, struct why *why);

/* The same, to the log: tallyd goes on without it. */
void peers_report(const struct config *c);

/* What of these was not logged yet. */
struct peers_refused {
	uint64_t logged_ns; /* when the log had the last one */
	unsigned int times; /* since then */
};

/*
 * A greeting: answers it, with this share, and proves to know the secret. Of `cluster`, or NULL,
 * other nodes are peers, as are those of the configuration. 0: *ret_used bytes were taken; -EAGAIN:
 * more must come; -EACCES: it is none of this node's peers, or speaks to another node, or the
 * secret cannot be read: `why` is for this node's log alone; -EINVAL, -EPROTONOSUPPORT.
 */
int peers_greet(struct stream *s, const struct core *core, const struct sharing *cluster,
		const uint8_t share[X25519_BYTES], const char *text, size_t length,
		struct peer *ret, size_t *ret_used, struct why *why);

enum {
	PEERS_NOTHING = 1, /* there is nothing to do */
	PEERS_HOPS = 2, /* it asks for next hops: *ret_hops */
};

/*
 * What a peer asks for; `secret` is that of the share in the greeting. 0: the core is to do it;
 * enum above; -EAGAIN as above; -EACCES: its proof is wrong; -EPERM: a job of somebody else's;
 * -EINVAL and the like.
 */
int peers_request_take(struct peer *p, const struct core *core, const uint8_t secret[X25519_BYTES],
		       const char *text, size_t length, struct request *ret,
		       struct paths_question *ret_hops, size_t *ret_used, struct why *why);

/* {"do": "next-hops", "workers": [...]}, of malloc(). NULL: no memory. */
char *peers_hops_question(const struct paths_question *q);

/* What a peer answers to that, of malloc(). NULL: `why` says what is wrong with it. */
struct paths_view *peers_hops_answer(const json_t *result, struct why *why);

/* The answer to PEERS_HOPS, of malloc(). NULL: no memory. */
char *peers_hops_line(const struct paths_view *v);

/* Of a refused agent all is logged, but no more often than others can say something wrong. */
void peers_refused_log(struct peers_refused *p, const struct sockaddr_storage *from,
		       const char *reason);

/* Its connection has ended: was it satisfied with our proof? */
void peers_gone(const struct peer *p, const struct core *core, const struct sockaddr_storage *from,
		struct peers_refused *log);

#endif
