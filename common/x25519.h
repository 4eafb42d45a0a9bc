/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * X25519 (RFC 7748): two who each draw 32 bytes and tell each other their share come to know 32
 * bytes that nobody learns who only listens. Pure; the time depends on no secret. session.h uses
 * it; docs/decisions/0011 says why it is here.
 */
#ifndef TALLY_COMMON_X25519_H
#define TALLY_COMMON_X25519_H

#include <stdint.h>

enum {
	X25519_BYTES = 32,
};

/* Of a secret: what the other one is told. */
void x25519_share(const uint8_t secret[X25519_BYTES], uint8_t ret[X25519_BYTES]);

/* Of the own secret and the other one's share: what both know. */
void x25519(const uint8_t secret[X25519_BYTES], const uint8_t share[X25519_BYTES],
	    uint8_t ret[X25519_BYTES]);

#endif
