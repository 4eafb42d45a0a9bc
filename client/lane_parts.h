/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Eight numbers of 8 bits, four of 16 or two of 32 a word: word = sum over i of number[i] *
 * 2^(bits * i), mod 2^64. Numbers that a last word has no element for are 0. Exact while each sum
 * fits its bits: one that wraps counts its wraps into the number above it, and no receiver can
 * tell (64 bits added mod 2^64 cannot be several sums of fewer bits). So blocks that might wrap go
 * in a wide lane.
 *
 * In memory the numbers are one little-endian word already, if none is negative: a negative one
 * takes 1 from the number above it. `signs` has the highest bit of each number that has a sign.
 * (x ^ 2^(bits - 1)) - 2^(bits - 1) extends a sign, and done on the whole word, for all numbers at
 * once, what is borrowed goes to the number above. Unpacking is the same backwards.
 */
#ifndef TALLY_CLIENT_LANE_PARTS_H
#define TALLY_CLIENT_LANE_PARTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lanes lie in memory as in a word");

#define LANE_SIGNS_8 UINT64_C(0x8080808080808080)
#define LANE_SIGNS_16 UINT64_C(0x8000800080008000)
#define LANE_SIGNS_32 UINT64_C(0x8000000080000000)

static inline void lane_parts_pack(const void *restrict in, size_t bytes, uint64_t signs,
				   uint64_t *restrict word)
{
	const uint8_t *from = in;
	size_t words = bytes / sizeof(*word), rest = bytes % sizeof(*word);
	uint64_t parts = 0;

	for (size_t i = 0; i < words; i++) {
		memcpy(&parts, from + i * sizeof(parts), sizeof(parts));
		word[i] = (parts ^ signs) - signs;
	}
	if (!rest)
		return;
	parts = 0;
	memcpy(&parts, from + words * sizeof(parts), rest);
	word[words] = (parts ^ signs) - signs;
}

static inline void lane_parts_unpack(const uint64_t *restrict word, size_t bytes, uint64_t signs,
				     void *restrict out)
{
	uint8_t *to = out;
	size_t words = bytes / sizeof(*word), rest = bytes % sizeof(*word);
	uint64_t parts;

	for (size_t i = 0; i < words; i++) {
		parts = (word[i] + signs) ^ signs;
		memcpy(to + i * sizeof(parts), &parts, sizeof(parts));
	}
	if (!rest)
		return;
	parts = (word[words] + signs) ^ signs;
	memcpy(to + words * sizeof(parts), &parts, rest);
}

#endif
