// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sha256.h"

#include <endian.h>
#include <string.h>

enum {
	LENGTH_BYTES = 8, /* at the end of the last block */
};

/* clang-format off */
static const uint32_t factor[SHA256_ROUNDS] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
/* clang-format on */

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void words_expand(const uint8_t *block, uint32_t *w)
{
	memcpy(w, block, SHA256_BLOCK_BYTES);
	for (int i = 0; i < 16; i++)
		w[i] = be32toh(w[i]);
	for (int i = 16; i < SHA256_ROUNDS; i++) {
		uint32_t low = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t high = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;

		w[i] = w[i - 16] + low + w[i - 7] + high;
	}
}

static void block_take(struct sha256 *s, const uint8_t *block)
{
	uint32_t a = s->state[0], b = s->state[1], c = s->state[2], d = s->state[3];
	uint32_t e = s->state[4], f = s->state[5], g = s->state[6], h = s->state[7];

	words_expand(block, s->word);
	for (int i = 0; i < SHA256_ROUNDS; i++) {
		uint32_t high = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
		uint32_t one = h + high + ((e & f) ^ (~e & g)) + factor[i] + s->word[i];
		uint32_t low = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
		uint32_t two = low + ((a & b) ^ (a & c) ^ (b & c));

		h = g, g = f, f = e, e = d + one;
		d = c, c = b, b = a, a = one + two;
	}
	s->state[0] += a, s->state[1] += b, s->state[2] += c, s->state[3] += d;
	s->state[4] += e, s->state[5] += f, s->state[6] += g, s->state[7] += h;
}

void sha256_begin(struct sha256 *s)
{
	*s = (struct sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
					 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void sha256_add(struct sha256 *s, const void *data, size_t length)
{
	const uint8_t *byte = data;

	while (length) {
		const size_t used = s->length % SHA256_BLOCK_BYTES;
		const size_t room = SHA256_BLOCK_BYTES - used, n = length < room ? length : room;

		memcpy(s->block + used, byte, n);
		s->length += n;
		byte += n;
		length -= n;
		if (n == room)
			block_take(s, s->block);
	}
}

void sha256_end(struct sha256 *s, uint8_t ret[SHA256_BYTES])
{
	static const uint8_t end[SHA256_BLOCK_BYTES] = { 0x80 };
	const uint64_t bits = htobe64(8 * s->length);
	const size_t used = s->length % SHA256_BLOCK_BYTES;
	const size_t room = SHA256_BLOCK_BYTES - LENGTH_BYTES;

	sha256_add(s, end, used < room ? room - used : SHA256_BLOCK_BYTES + room - used);
	sha256_add(s, &bits, sizeof(bits));
	for (int i = 0; i < 8; i++)
		s->state[i] = htobe32(s->state[i]);
	memcpy(ret, s->state, SHA256_BYTES);
	explicit_bzero(s, sizeof(*s));
}
