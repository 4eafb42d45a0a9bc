/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells agents of other nodes (docs/peering.md): a thread for each message that is under way
 * connects, greets, says it and waits for the answer: three seconds at most to connect, and ten for
 * all that follows.
 */
#ifndef TALLY_AGENT_TELLER_H
#define TALLY_AGENT_TELLER_H

#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "agent/core/paths.h"
#include "common/why.h"
#include "peer_secret.h"

enum {
	TELLER_UNDER_WAY_MAX = 64, /* messages */
	/*
	 * Of an answer. The longest has all of struct paths_view: an address in its quotes, and a
	 * way to each worker by an address of its own, {"address":"...","ranks":"255"}, as JSON.
	 */
	TELLER_ANSWER_BYTES = 64 + PATHS_OWN_MAX * (INET6_ADDRSTRLEN + 2) +
			      TALLY_WORKERS_MAX * (INET6_ADDRSTRLEN + 28),
};

struct telling {
	struct sockaddr_storage to; /* a service address, with the other agent's TCP port */
	struct sockaddr_storage root; /* who says it, as the other agent knows us */
	uint8_t key[PEER_SECRETS][SECRET_KEY_BYTES]; /* the other agent proves one of them */
	char *line; /* of malloc(), a JSON object; the teller's from then on, also on failure */
	void *context; /* comes back with the answer */
};

struct told {
	void *context;
	int error; /* 0, or a negative errno */
	json_t *result; /* of the answer, if that has one; the caller's from then on */
	struct why why;
};

struct teller;

/* The caller's, for teller_close(), which allows NULL and waits for no answer. */
int teller_open(struct teller **ret);
void teller_close(struct teller *t);

/* -EAGAIN: so many are under way; and what starting a thread may say. */
int teller_tell(struct teller *t, struct telling *what);

/* Readable when there is an answer. */
int teller_fd(const struct teller *t);

/* False: there is none. */
bool teller_next(struct teller *t, struct told *ret);

#endif
