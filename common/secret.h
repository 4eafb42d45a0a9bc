/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What follows from secrets: of a job's token the key by which worker and agent prove to each other
 * that they know the token, of a run's secret the keys of its ranks. Pure. Nobody finds a secret by
 * what follows from it.
 * docs/joining.md has the formulas, and test vectors.
 */
#ifndef TALLY_COMMON_SECRET_H
#define TALLY_COMMON_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SECRET_KEY_BYTES = 32,
	SECRET_RANK_KEY_BYTES = 16, /* of SipHash */
	SECRET_PROOF_BYTES = 2 * SECRET_KEY_BYTES + 1, /* hex digits, with their end */
};

#define SECRET_ALL_RANKS UINT32_MAX

/* HMAC-SHA-256 (RFC 2104) of a string and, behind it, a text. */
void secret_hmac(const void *key, size_t key_length, const char *head, const void *text,
		 size_t length, uint8_t ret[SECRET_KEY_BYTES]);

/* What agent and workers keep instead of the token. */
void secret_token_key(const char *token, uint8_t ret[SECRET_KEY_BYTES]);

/*
 * The key of one rank in one run, by the run's secret, which only the agent has. SECRET_ALL_RANKS,
 * with the token key: the key of the run, which all workers know. Returns 0.
 */
int secret_rank_key(const uint8_t secret[SECRET_KEY_BYTES], uint32_t job, uint16_t epoch,
		    uint64_t nonce, uint32_t rank, uint8_t ret[SECRET_RANK_KEY_BYTES]);

/*
 * The key of a rank's place in a run: of the token that its worker joined with, and of the rank's
 * key. Neither who has that token alone nor who has the rank's key alone makes it.
 */
void secret_place_key(const uint8_t token_key[SECRET_KEY_BYTES],
		      const uint8_t rank_key[SECRET_RANK_KEY_BYTES], uint8_t ret[SECRET_KEY_BYTES]);

/* The time it takes depends on `length` only. */
bool secret_is_equal(const void *a, const void *b, size_t length);

#endif
