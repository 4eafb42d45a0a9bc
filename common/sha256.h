/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SHA-256 (FIPS 180-4). Pure. secret.h uses it; docs/decisions/0009 says why it is here. */
#ifndef TALLY_COMMON_SHA256_H
#define TALLY_COMMON_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum {
	SHA256_BYTES = 32,
	SHA256_BLOCK_BYTES = 64,
	SHA256_ROUNDS = 64, /* of a block */
};

struct sha256 {
	uint32_t state[8];
	uint64_t length; /* bytes so far */
	uint32_t word[SHA256_ROUNDS]; /* of the last block */
	uint8_t block[SHA256_BLOCK_BYTES]; /* of which the last length % 64 bytes wait */
};

void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t length);
void sha256_end(struct sha256 *s, uint8_t ret[SHA256_BYTES]);

#endif
