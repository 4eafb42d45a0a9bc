/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of gates: where a job's messages may come in -> which job that is. Pure; the data plane
 * reads it while user space writes it.
 *
 * A gate is one 64-bit word: key and value in one. So who reads a word has a whole gate, as it was
 * before a write or after it, on every kind of processor and without a lock. Words lie in buckets,
 * each a cache line; a gate is in one of its two buckets, and where it is it stays: no write to one
 * gate hides another one, not even for a moment. There is one writer at a time.
 *
 * A word has no room for the number of a job. It has the job's index, eight bits of a hash, and the
 * port; which number the job has, the job itself says: struct tally_job. So an index is nobody
 * else's as long as a gate has it.
 */
#ifndef TALLY_GATES_H
#define TALLY_GATES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <tally/check.h>
#include <tally/inline.h>

enum {
	TALLY_GATES_MAX = 20480, /* of all jobs of a node together */
	TALLY_GATE_BUCKETS_BITS = 14,
	/* So many that the last gate of a full node finds both full once in 400 million times. */
	TALLY_GATE_BUCKETS = 1 << TALLY_GATE_BUCKETS_BITS,
	TALLY_GATE_WORDS = 8, /* in a bucket */
};

/* A port without a gate of the job is judged by the job's gate 0, which every job has. */
struct tally_gate_key {
	__u32 job;
	__u32 ifindex;
};

struct tally_gate {
	__u32 row; /* index into counters, not 0: of this gate alone, or of the whole job */
	__u16 job; /* index into jobs */
	__u8 restricted; /* 1: only from the sources of the job's tenant */
	__u8 anywhere; /* gate 0: 1: also by ports without a gate; 0: by no other port */
};

struct tally_gate_bucket {
	__u64 word[TALLY_GATE_WORDS]; /* 0: free */
};

_Static_assert(sizeof(struct tally_gate_bucket) == 64, "one cache line");

/* A word, from its lowest bit on. */
enum {
	TALLY_GATE_JOB_BITS = 10,
	TALLY_GATE_ROW_SHIFT = TALLY_GATE_JOB_BITS,
	TALLY_GATE_ROW_BITS = 12,
	TALLY_GATE_RESTRICTED = 1 << 22,
	TALLY_GATE_ANYWHERE = 1 << 23,
	TALLY_GATE_NAME_SHIFT = 24, /* what is above: the eight bits, and the port */
	TALLY_GATE_PORT_SHIFT = 32,
};

/*
 * By an odd factor that the node has drawn: tenants choose the numbers of their jobs, and must not
 * know which of them fill the buckets of somebody else's. Any two gates have the same first bucket
 * once in 8,192 times at most, whatever their numbers are (Dietzfelbinger et al., "A reliable
 * randomized algorithm for the closest-pair problem", 1997).
 */
tally_inline __u64 tally_gate_hash(struct tally_gate_key key, __u64 factor)
{
	return ((__u64)key.ifindex << 32 | key.job) * factor;
}

/* What the word of such a gate has above its value. */
tally_inline __u64 tally_gate_name(struct tally_gate_key key, __u64 hash)
{
	return (__u64)key.ifindex << 8 | (hash >> 40 & 0xff);
}

/* The bucket that a gate is put into if it has room, and the one otherwise. */
tally_inline __u32 tally_gate_first(__u64 hash) { return hash >> (64 - TALLY_GATE_BUCKETS_BITS); }

tally_inline __u32 tally_gate_second(__u64 hash)
{
	return tally_gate_first((hash ^ hash >> 32) * TALLY_MIX);
}

tally_inline bool tally_gate_has_name(__u64 word, __u64 name)
{
	return word >> TALLY_GATE_NAME_SHIFT == name;
}

tally_inline __u64 tally_gate_word(struct tally_gate_key key, __u64 hash, struct tally_gate gate)
{
	return tally_gate_name(key, hash) << TALLY_GATE_NAME_SHIFT |
	       (gate.anywhere ? TALLY_GATE_ANYWHERE : 0) |
	       (gate.restricted ? TALLY_GATE_RESTRICTED : 0) | gate.row << TALLY_GATE_ROW_SHIFT |
	       gate.job;
}

tally_inline __u32 tally_gate_job(__u64 word) { return word & ((1 << TALLY_GATE_JOB_BITS) - 1); }

tally_inline __u32 tally_gate_port(__u64 word) { return word >> TALLY_GATE_PORT_SHIFT; }

tally_inline __u32 tally_gate_row(__u64 word)
{
	return word >> TALLY_GATE_ROW_SHIFT & ((1 << TALLY_GATE_ROW_BITS) - 1);
}

tally_inline struct tally_gate tally_gate_read(__u64 word)
{
	return (struct tally_gate){
		.row = tally_gate_row(word),
		.job = tally_gate_job(word),
		.restricted = !!(word & TALLY_GATE_RESTRICTED),
		.anywhere = !!(word & TALLY_GATE_ANYWHERE),
	};
}

/* --- whoever writes --------------------------------------------------------------------------- */

struct tally_gates {
	struct tally_gate_bucket *bucket; /* TALLY_GATE_BUCKETS */
	__u64 factor; /* of tally_gate_hash() */
};

/* Where the gate of this job's index is; NULL: nowhere. */
static inline __u64 *tally_gates_find(const struct tally_gates *gates, struct tally_gate_key key,
				      __u32 job)
{
	const __u64 hash = tally_gate_hash(key, gates->factor), name = tally_gate_name(key, hash);
	const __u32 bucket[] = { tally_gate_first(hash), tally_gate_second(hash) };

	for (int i = 0; i < 2 * TALLY_GATE_WORDS; i++) {
		__u64 *word =
			&gates->bucket[bucket[i / TALLY_GATE_WORDS]].word[i % TALLY_GATE_WORDS];

		if (*word && tally_gate_has_name(*word, name) && tally_gate_job(*word) == job)
			return word;
	}
	return NULL;
}

static inline __u64 *tally_gates_free(const struct tally_gates *gates, struct tally_gate_key key)
{
	const __u64 hash = tally_gate_hash(key, gates->factor);
	const __u32 bucket[] = { tally_gate_first(hash), tally_gate_second(hash) };

	for (int i = 0; i < 2 * TALLY_GATE_WORDS; i++) {
		__u64 *word =
			&gates->bucket[bucket[i / TALLY_GATE_WORDS]].word[i % TALLY_GATE_WORDS];

		if (!*word)
			return word;
	}
	return NULL;
}

/* Whoever finds the gate also finds all that was written before. False: there is no room. */
static inline bool tally_gates_put(const struct tally_gates *gates, struct tally_gate_key key,
				   struct tally_gate gate)
{
	__u64 *word = tally_gates_find(gates, key, gate.job);

	if (!word)
		word = tally_gates_free(gates, key);
	if (word)
		__atomic_store_n(word,
				 tally_gate_word(key, tally_gate_hash(key, gates->factor), gate),
				 __ATOMIC_RELEASE);
	return word;
}

/* Of the job with this index. False: it was not there. */
static inline bool tally_gates_remove(const struct tally_gates *gates, struct tally_gate_key key,
				      __u32 job)
{
	__u64 *word = tally_gates_find(gates, key, job);

	if (word)
		__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	return word;
}

#endif
