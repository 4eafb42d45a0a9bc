/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of joining share. Nobody else includes this. */
#ifndef TALLY_CLIENT_JOIN_PRIVATE_H
#define TALLY_CLIENT_JOIN_PRIVATE_H

#include <sys/un.h>

#include "join.h"

enum {
	AGENT_BYTES = 128, /* fits any socket's path */
};

_Static_assert(sizeof(struct sockaddr_un) <= sizeof(struct sockaddr_storage), "");
_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) < AGENT_BYTES, "");

struct join {
	int fd; /* of the place; -1: none */
	bool silent; /* the agent has gone, and the run goes on */
	bool over; /* this rank has left, or the agent has ended the run */
	struct sockaddr_storage agent; /* sockaddr_un, _in or _in6 */
	char agent_text[AGENT_BYTES];
	struct sockaddr_storage local; /* where to receive; ss_family 0: where the connection is */
	const char *local_said; /* how the program or its user said that; NULL: nobody did */
	struct joining_message request;
	uint32_t timeout_ms;
	uint64_t deadline_ns;
	struct tally_set missing; /* what the agent said last; empty: nothing yet */
	size_t length; /* of what has come and is not parsed */
	char buffer[JOINING_ANSWER_BYTES];
};

/* Fills agent, request and local. Sets the error text. */
int join_options_read(struct join *j, const struct tally_join_options *o);

#endif
