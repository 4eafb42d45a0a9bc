/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A conversation between a worker and an agent who both know a token (docs/joining.md): before each
 * message stands a line with a proof, which nobody else can make, and which holds for this message,
 * this conversation and this place in it alone. Pure.
 *
 *	proof 4f1d...(64 hex digits) 41
 *	(41 bytes: the message)
 */
#ifndef TALLY_COMMON_SESSION_H
#define TALLY_COMMON_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "secret.h"
#include "x25519.h"

enum session_speaker {
	SESSION_WORKER,
	SESSION_AGENT,
};

enum {
	SESSION_LINE_BYTES = 80, /* at least: the proof's line, with its end */
};

struct session {
	uint8_t key[SECRET_KEY_BYTES];
	uint64_t said[2]; /* messages of each speaker */
	bool hides; /* what is said, by the key below */
	uint8_t hidden[SECRET_KEY_BYTES];
};

/* `token_key`: or the key of a place. `opening`: all bytes that both have said so far, with a
 * random number of each. */
void session_begin(const uint8_t token_key[SECRET_KEY_BYTES], const char *opening, size_t length,
		   struct session *ret);

/* What `who` says next, with its proof. -ENOSPC: `size` is too small; then nothing is said. */
int session_print(struct session *s, enum session_speaker who, const char *message, size_t length,
		  char *text, size_t size, size_t *ret_length);

/*
 * What `who` says next: it is in `text`, at *ret, and *ret_end is behind it. -EAGAIN: more must
 * come; -EINVAL: no proof, or a message of none or more than `most` bytes; -EBADMSG: the proof is
 * wrong. Outputs and session are untouched on failure.
 */
int session_parse(struct session *s, enum session_speaker who, const char *text, size_t length,
		  size_t most, const char **ret, size_t *ret_length, size_t *ret_end);

/*
 * From now on all that is said is hidden: the two of this conversation read it, with the own secret
 * and the other's share, and nobody who knows the token and listens, then or later. What
 * session_parse() gives is hidden as it came.
 */
void session_hide(struct session *s, const uint8_t secret[X25519_BYTES],
		  const uint8_t share[X25519_BYTES]);

/* The message that session_parse() gave last, as it was before it was hidden. `ret` may be it. */
void session_show(const struct session *s, enum session_speaker who, const char *message,
		  size_t length, char *ret);

/*
 * A key becomes what can be said, and that the key again, once in a conversation: for the two of
 * it, with the own secret and the other's share, and not for others who know the token and listen.
 */
void session_seal(const struct session *s, const uint8_t secret[X25519_BYTES],
		  const uint8_t share[X25519_BYTES], uint8_t key[SECRET_RANK_KEY_BYTES]);

/*
 * The key of a token becomes what can be said, and that the key again, once in a conversation that
 * has begun with the key of a place: nobody but the two of it has that one.
 */
void session_cover(const struct session *s, uint8_t key[SECRET_KEY_BYTES]);

#endif
