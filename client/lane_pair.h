/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two int32 a word: word = (hi << 32) + sign-extended lo; element 2 i is lo, 2 i + 1 is hi; the
 * hi of an odd count's last word is 0. Exact while the sum of every lo fits int32: one that
 * wraps counts its wraps into its hi, and no receiver can tell (64 bits added mod 2^64 cannot
 * be two sums mod 2^32). So blocks that might wrap go in a wide lane.
 *
 * In memory (lo, hi) is one little-endian word already; only lo's sign has to reach into
 * hi. (lo ^ 2^31) - 2^31 extends a sign, and done on the whole word its borrow goes to hi.
 * Unpacking is the same backwards.
 */
#ifndef TALLY_CLIENT_LANE_PAIR_H
#define TALLY_CLIENT_LANE_PAIR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lanes lie in memory as in a word");

#define LANE_PAIR_LOW_SIGN (UINT64_C(1) << 31)

static inline void lane_pair_pack(const int32_t *restrict in, size_t count, uint64_t *restrict word)
{
	for (size_t i = 0; i < count / 2; i++) {
		uint64_t pair;

		memcpy(&pair, in + 2 * i, sizeof(pair));
		word[i] = (pair ^ LANE_PAIR_LOW_SIGN) - LANE_PAIR_LOW_SIGN;
	}
	if (count % 2)
		word[count / 2] = (uint64_t)(int64_t)in[count - 1];
}

static inline void lane_pair_unpack(const uint64_t *restrict word, size_t count,
				    int32_t *restrict out)
{
	for (size_t i = 0; i < count / 2; i++) {
		uint64_t pair = (word[i] + LANE_PAIR_LOW_SIGN) ^ LANE_PAIR_LOW_SIGN;

		memcpy(out + 2 * i, &pair, sizeof(pair));
	}
	if (count % 2)
		out[count - 1] = (int32_t)(uint32_t)word[count / 2];
}

#endif
