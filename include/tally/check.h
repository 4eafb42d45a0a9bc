/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How it is known what a sum is of. Pure. Two words of a header serve this:
 *
 * `tag` is a hash of the header. Whoever sends a message makes the tag, and every node and worker
 * that takes the message verifies it. So a bit that flips in a header on the way costs one packet.
 * In a job with rank keys, whoever has not the key of the rank that sends or gets the message
 * cannot make its tag: tally_keyed_tag().
 *
 * `check` is linear: nodes add it like any word, and workers verify the check of a result. That
 * of a contribution of rank r is
 *
 *	sum of (2 i + 1) * word[i]  +  identity * weight(r)
 *
 * where the identity is a number of the run, the chunk, the call and the place in the call. So the
 * check of a sum over everyone is known to each rank: that of the words, plus identity * (sum of
 * all weights). A sum that lacks a rank, holds a rank twice, holds a flipped word, or a part of
 * another run, chunk or call, has another check. (Flips of one high bit in two words of a chunk may
 * cancel, docs/decisions/0008.)
 */
#ifndef TALLY_CHECK_H
#define TALLY_CHECK_H

#include <linux/types.h>
#include <tally/inline.h>
#include <tally/set.h>
#include <tally/siphash.h>
#include <tally/wire.h>

#define TALLY_MIX 0x9e3779b97f4a7c15ULL /* 2^64 / golden ratio; odd, so no product loses a bit */

/* One step of the hash: for a given `word` and for a given `hash`, one to one. */
tally_inline __u64 tally_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * TALLY_MIX;
	return hash ^ hash >> 32;
}

/* A header as 64-bit words. */
typedef __u64 tally_header_word __attribute__((may_alias));

enum {
	TALLY_BLOCKS_SHIFT = 16, /* of the header's word 2: copies with and without payload */
	TALLY_TAG_WORD = 5, /* of the header */
	TALLY_SET_WORD = 7, /* and, in large headers, the next three */
};

_Static_assert(offsetof(struct tally_header, tag) == 8 * TALLY_TAG_WORD, "layout");
_Static_assert(offsetof(struct tally_header, set) == 8 * TALLY_SET_WORD, "layout");
_Static_assert(offsetof(struct tally_header, blocks) == 16 + TALLY_BLOCKS_SHIFT / 8, "layout");

/*
 * What word i of a header adds to the tag: one to one. The words do not wait for each other. Each
 * has a factor and a shift of its own, so that high bits of two words do not cancel.
 */
tally_inline __u64 tally_tag_of(__u64 word, int i)
{
	word *= TALLY_MIX * (2 * i + 1);
	return word ^ word >> (29 + i);
}

/*
 * What the tag of a header with this set must be: the sum over the words of the header and of the
 * set, but for the tag and the field `blocks`. (The length of the datagram says the same as
 * `blocks`, and a node may send one result with and without payload.)
 */
tally_inline __u64 tally_tag(const struct tally_header *h, const struct tally_set *set)
{
	const tally_header_word *word = (const tally_header_word *)h;
	__u64 tag = tally_tag_of(word[0], 0) + tally_tag_of(word[1], 1) +
		    tally_tag_of(word[2] & ~(0xffULL << TALLY_BLOCKS_SHIFT), 2) +
		    tally_tag_of(word[3], 3) + tally_tag_of(word[4], 4) + tally_tag_of(word[6], 6) +
		    tally_tag_of(set->word[0], TALLY_SET_WORD);

	for (int i = 1; h->flags & TALLY_LARGE && i < TALLY_SET_WORDS; i++)
		tag += tally_tag_of(set->word[i], TALLY_SET_WORD + i);
	return tag;
}

/* SipHash-1-3 of the header and tally_more, but for the tag. For the recipient of `blocks` only. */
tally_inline __u64 tally_keyed_tag(const struct tally_header *h, const struct tally_set *set,
				   const struct tally_key *key)
{
	const tally_header_word *word = (const tally_header_word *)h;
	struct tally_siphash s = tally_siphash_begin(key);
	bool large = h->flags & TALLY_LARGE;

	for (int i = 0; i < TALLY_SET_WORD; i++)
		if (i != TALLY_TAG_WORD)
			tally_siphash_add(&s, word[i], 1);
	tally_siphash_add(&s, set->word[0], 1);
	if (large) {
		for (int i = 1; i < TALLY_SET_WORDS; i++)
			tally_siphash_add(&s, set->word[i], 1);
		tally_siphash_add(&s, 0, 1);
	}
	tally_siphash_add(&s, (__u64)(tally_header_bytes(h->flags) - sizeof(h->tag)) << 56, 1);
	return tally_siphash_end(&s, 3);
}

/* The run: `nonce` is a random number that all its ranks know. */
tally_inline __u64 tally_run_identity(__u64 nonce, __u32 job, __u16 epoch)
{
	return tally_mix(tally_mix(0, nonce), (__u64)job << 16 | epoch);
}

/*
 * One chunk of it. `place`: which chunk of which call this is, and in which form, as the protocol
 * says. Odd, so that no sum of up to 2^63 of weights makes it 0.
 */
tally_inline __u64 tally_identity(__u64 run, __u32 seq, __u64 call, __u64 place)
{
	return tally_mix(tally_mix(tally_mix(run, seq), call), place) | 1;
}

/* Of a rank. Odd. */
tally_inline __u64 tally_weight(__u32 rank) { return tally_mix(TALLY_MIX, rank) | 1; }

#endif
