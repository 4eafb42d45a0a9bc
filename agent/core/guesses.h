/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who has said wrong tokens, and how many: a source that did so often must wait. Pure. A source is
 * an IPv4 address, 64 bits of an IPv6 address, or a user of this machine.
 */
#ifndef TALLY_AGENT_GUESSES_H
#define TALLY_AGENT_GUESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum {
	GUESSES_AT_ONCE = 10, /* of a source that has been silent for as many seconds */
	GUESSES_INTERVAL_S = 1, /* between those of a source that goes on */
	GUESSES_WAIT_MAX_S = 60,
	GUESSES_LOG_INTERVAL_S = 10,
	GUESSES_SOURCES = 256, /* that are remembered; the oldest makes room */
};

/* All bytes 0 at first. */
struct guesses {
	uint64_t count; /* wrong tokens so far */
	uint64_t logged, logged_ns; /* of these: when somebody was last told */
	struct {
		uint64_t who;
		sa_family_t family;
		uint64_t until_ns; /* its guesses, one after the other, would have taken so long */
	} source[GUESSES_SOURCES];
};

/* How long must `peer` wait until it may say a token? `uid`: of one on this machine (AF_UNIX). */
uint64_t guesses_wait_ns(const struct guesses *g, const struct sockaddr_storage *peer, uid_t uid,
			 uint64_t now_ns);

/* Are both one source? */
bool guesses_is_one(const struct sockaddr_storage *a, uid_t a_uid, const struct sockaddr_storage *b,
		    uid_t b_uid);

/* A wrong one. How many there were since a line in the log was due; 0: none is due. */
uint64_t guesses_add(struct guesses *g, const struct sockaddr_storage *peer, uid_t uid,
		     uint64_t now_ns);

#endif
