// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "seal.h"

#include <tally/check.h>

#include "lanes.h"

enum {
	FACTOR_BYTES = 8 + 2, /* of what is hashed: the run, and which factor */
	MASK_BYTES = 4 * 8 + 2, /* run, chunk, call, place, rank */
	FACTOR_OF_VOTE = 2 * TALLY_WORDS_MAX, /* those of a word's other numbers come behind it */
};

/* SipHash-2-4 of what `s` has seen and, at the end of so many bytes, a number of two. */
static uint64_t end_with(struct tally_siphash s, uint16_t number, uint64_t bytes)
{
	tally_siphash_add(&s, number | bytes << 56, 2);
	return tally_siphash_end(&s, 4);
}

/* Mod 2^64, of an odd number: each step makes twice as many bits right. */
static uint64_t inverse(uint64_t odd)
{
	uint64_t x = odd; /* right in three bits */

	for (int bits = 3; bits < 64; bits *= 2)
		x *= 2 - odd * x;
	return x;
}

void seal_begin_run(struct seal *s, const struct tally_key *secret, uint64_t run)
{
	s->run = tally_siphash_begin(secret);
	tally_siphash_add(&s->run, run, 2);
	s->chunk = 0;
	for (int i = 0; i < LANE_FACTORS; i++) /* odd: finds each flipped bit */
		s->factor[i] = end_with(s->run, i + (i >= FACTOR_OF_VOTE), FACTOR_BYTES) | 1;
	s->vote = end_with(s->run, FACTOR_OF_VOTE, FACTOR_BYTES) | 1;
	s->unvote = inverse(s->vote);
}

struct seal_masks seal_masks(struct seal *s, uint32_t seq, uint64_t call, uint64_t place,
			     uint32_t rank, uint32_t workers)
{
	struct tally_siphash chunk = s->run;
	struct seal_masks m;

	s->chunk += (uint64_t)(int32_t)(seq - (uint32_t)s->chunk);
	tally_siphash_add(&chunk, s->chunk, 2);
	tally_siphash_add(&chunk, call, 2);
	tally_siphash_add(&chunk, place, 2);
	m.all = end_with(chunk, 0, MASK_BYTES);
	m.own = rank ? end_with(chunk, rank, MASK_BYTES) : m.all;
	if (rank + 1 < workers)
		m.own -= end_with(chunk, rank + 1, MASK_BYTES);
	return m;
}

uint64_t seal_words(const struct seal *s, uint8_t lane, const uint64_t *word, size_t words)
{
	const struct lane *l = lane_at(lane);

	return l ? lanes_weigh(l, s->factor, word, words) : 0;
}

/*
 * A sum of the first round that does not fit what its result says is not used: its chunk comes
 * again, as the result says, and only then that is verified. Wide lanes never come again.
 */
bool seal_votes_agree(const struct seal *s, uint64_t rest, const struct tally_header *h,
		      uint64_t place, uint32_t workers)
{
	uint64_t votes = rest * s->unvote;
	uint64_t exact = votes % CALL_VOTE_MORE, more = votes / CALL_VOTE_MORE;
	const struct lane *l = lane_at(h->lane);
	bool first = !(place >> 16 & 0xffff), is_wide = place & 0xff;
	bool needs_wide = h->flags & TALLY_WIDE;
	uint8_t used = place >> 8 & 0xff;

	if (exact > workers || more > workers - exact)
		return false;
	if (first && (h->scale != used || needs_wide != is_wide))
		return lane_asks(l);
	return !more && (used ? exact : !exact);
}

uint64_t seal_nonce(const struct tally_key *secret, const uint64_t *random, uint32_t workers)
{
	struct tally_siphash s = { { 0 } };
	uint64_t nonce = 0;

	if (secret)
		s = tally_siphash_begin(secret);
	for (uint32_t rank = 0; rank < workers; rank++) {
		nonce = tally_mix(nonce, random[rank]);
		tally_siphash_add(&s, random[rank], 2);
	}
	if (!secret)
		return nonce;
	return end_with(s, 0, 8 * workers & 0xff);
}
