/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SipHash (Aumasson and Bernstein, 2012): 64 bits that nobody can make without the key. Pure.
 * A message goes in word by word, little-endian; its last word has the bytes that are left over,
 * and the length mod 256 in its highest byte. SipHash-C-D makes C rounds a word and D at the end.
 */
#ifndef TALLY_SIPHASH_H
#define TALLY_SIPHASH_H

#include <linux/types.h>
#include <tally/inline.h>

struct tally_key {
	__u64 word[2]; /* little-endian; see tally_siphash_begin() */
};

struct tally_siphash {
	__u64 v[4];
};

tally_inline __u64 tally_siphash_rotate(__u64 x, int bits) { return x << bits | x >> (64 - bits); }

tally_inline void tally_siphash_rounds(struct tally_siphash *s, int rounds)
{
	__u64 a = s->v[0], b = s->v[1], c = s->v[2], d = s->v[3];

	for (int i = 0; i < rounds; i++) {
		a += b;
		c += d;
		b = tally_siphash_rotate(b, 13) ^ a;
		d = tally_siphash_rotate(d, 16) ^ c;
		a = tally_siphash_rotate(a, 32);
		c += b;
		a += d;
		b = tally_siphash_rotate(b, 17) ^ c;
		d = tally_siphash_rotate(d, 21) ^ a;
		c = tally_siphash_rotate(c, 32);
	}
	*s = (struct tally_siphash){ { a, b, c, d } };
}

tally_inline struct tally_siphash tally_siphash_begin(const struct tally_key *key)
{
	__u64 k0 = key->word[0], k1 = key->word[1];

	return (struct tally_siphash){ { k0 ^ 0x736f6d6570736575ULL, k1 ^ 0x646f72616e646f6dULL,
					 k0 ^ 0x6c7967656e657261ULL, k1 ^ 0x7465646279746573ULL } };
}

tally_inline void tally_siphash_add(struct tally_siphash *s, __u64 word, int rounds)
{
	s->v[3] ^= word;
	tally_siphash_rounds(s, rounds);
	s->v[0] ^= word;
}

tally_inline __u64 tally_siphash_end(struct tally_siphash *s, int rounds)
{
	s->v[2] ^= 0xff;
	tally_siphash_rounds(s, rounds);
	return s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
}

#endif
