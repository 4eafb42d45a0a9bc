/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A set of workers: bit r % 64 of word r / 64 stands for rank r. Pure; plain loops of
 * constant length, so that the BPF verifier walks them and compilers unroll them.
 */
#ifndef TALLY_SET_H
#define TALLY_SET_H

#include <linux/types.h>
#include <tally/inline.h>
#include <stdbool.h>

enum {
	TALLY_WORKERS_MAX = 256,
	TALLY_SET_WORDS = TALLY_WORKERS_MAX / 64,
};

struct tally_set {
	__u64 word[TALLY_SET_WORDS];
};

tally_inline bool tally_set_is_empty(const struct tally_set *s)
{
	return !(s->word[0] | s->word[1] | s->word[2] | s->word[3]);
}

tally_inline bool tally_set_is_equal(const struct tally_set *a, const struct tally_set *b)
{
	if (a->word[0] != b->word[0])
		return false;
	return !((a->word[1] ^ b->word[1]) | (a->word[2] ^ b->word[2]) | (a->word[3] ^ b->word[3]));
}

/* No member but of the first word, as in all jobs of up to 64 workers: most steps end there. */
tally_inline bool tally_set_is_short(const struct tally_set *s)
{
	return !(s->word[1] | s->word[2] | s->word[3]);
}

/* Exactly one member? */
tally_inline bool tally_set_is_single(const struct tally_set *s)
{
	int members = 0;

	for (int i = 0; i < TALLY_SET_WORDS; i++) {
		if (!s->word[i])
			continue;
		if (s->word[i] & (s->word[i] - 1))
			return false;
		members++;
	}
	return members == 1;
}

tally_inline __u32 tally_set_count(const struct tally_set *s)
{
	__u32 members = 0;

	for (int i = 0; i < TALLY_SET_WORDS; i++)
		members += __builtin_popcountll(s->word[i]);
	return members;
}

/* Is every member of `a` in `b`? */
tally_inline bool tally_set_is_within(const struct tally_set *a, const struct tally_set *b)
{
	return !((a->word[0] & ~b->word[0]) | (a->word[1] & ~b->word[1]) |
		 (a->word[2] & ~b->word[2]) | (a->word[3] & ~b->word[3]));
}

tally_inline bool tally_set_is_disjoint(const struct tally_set *a, const struct tally_set *b)
{
	if (tally_set_is_short(a))
		return !(a->word[0] & b->word[0]);
	return !((a->word[0] & b->word[0]) | (a->word[1] & b->word[1]) | (a->word[2] & b->word[2]) |
		 (a->word[3] & b->word[3]));
}

tally_inline void tally_set_join(struct tally_set *into, const struct tally_set *s)
{
	into->word[0] |= s->word[0];
	if (tally_set_is_short(s))
		return;
	into->word[1] |= s->word[1];
	into->word[2] |= s->word[2];
	into->word[3] |= s->word[3];
}

/* `rank` below TALLY_WORKERS_MAX. */
tally_inline void tally_set_add(struct tally_set *s, __u32 rank)
{
	s->word[rank / 64 % TALLY_SET_WORDS] |= 1ULL << (rank % 64);
}

tally_inline bool tally_set_has(const struct tally_set *s, __u32 rank)
{
	__u32 word = rank / 64;

	/* Compilers drop the bound where they know the rank's, which verifiers may have lost. */
	asm("" : "+r"(word));
	return s->word[word % TALLY_SET_WORDS] >> (rank % 64) & 1;
}

/* Is `rank`, below TALLY_WORKERS_MAX, its one member? */
tally_inline bool tally_set_is_only(const struct tally_set *s, __u32 rank)
{
	if (tally_set_is_short(s))
		return !(rank / 64 | (s->word[0] ^ 1ULL << (rank % 64)));
	return tally_set_is_single(s) && tally_set_has(s, rank);
}

/* The ranks 0 .. workers - 1. */
tally_inline struct tally_set tally_set_first(__u32 workers)
{
	struct tally_set s = { { 0 } };

	for (__u32 rank = 0; rank < TALLY_WORKERS_MAX && rank < workers; rank++)
		tally_set_add(&s, rank);
	return s;
}

#endif
