/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A token bucket: how much may be sent. A bucket earns `rate` tokens a second and holds `burst` at
 * most; whoever sends spends tokens. What leaves because of that is charged: the bucket may owe
 * tokens, and gives none until it has earned them. Pure: the caller says what time it is. Exact to
 * the token and the nanosecond: a part of a token that a short time earns is kept as a fraction.
 */
#ifndef TALLY_BUCKET_H
#define TALLY_BUCKET_H

#include <linux/types.h>
#include <stdbool.h>
#include <tally/inline.h>

#define TALLY_SECOND_NS 1000000000ULL
#define TALLY_RATE_MAX 1000000000000ULL /* tokens a second */
#define TALLY_BURST_MAX (1ULL << 62)

struct tally_bucket {
	__u64 rate; /* tokens a second, up to TALLY_RATE_MAX; 0: no limit, all else is unused */
	__u64 burst; /* tokens at most, up to TALLY_BURST_MAX */
	__s64 level; /* tokens now; below 0: so many are owed */
	__u64 fraction; /* of the next token, in billionths */
	__u64 at_ns; /* the time of `level` and `fraction` */
};

/* Adds what was earned until now. A clock that went back, as between two CPUs, earns nothing. */
tally_inline void tally_bucket_fill(struct tally_bucket *b, __u64 now_ns)
{
	__u64 room = b->level < (__s64)b->burst ? b->burst - b->level : 0;
	__u64 elapsed, seconds, earned, fraction;

	if (!b->rate || now_ns <= b->at_ns)
		return;
	elapsed = now_ns - b->at_ns;
	seconds = elapsed / TALLY_SECOND_NS;
	elapsed %= TALLY_SECOND_NS;
	b->at_ns = now_ns;
	earned = room;
	fraction = 0;
	if (seconds <= room / b->rate) { /* otherwise: full, and the product may overflow */
		fraction = elapsed * (b->rate % TALLY_SECOND_NS) + b->fraction;
		earned = seconds * b->rate + elapsed * (b->rate / TALLY_SECOND_NS) +
			 fraction / TALLY_SECOND_NS;
		fraction %= TALLY_SECOND_NS;
	}
	if (earned >= room) {
		b->level = b->burst;
		b->fraction = 0;
	} else {
		b->level += earned;
		b->fraction = fraction;
	}
}

tally_inline bool tally_bucket_has(const struct tally_bucket *b, __u64 tokens)
{
	return !b->rate || b->level >= (__s64)tokens;
}

tally_inline void tally_bucket_spend(struct tally_bucket *b, __u64 tokens)
{
	if (b->rate)
		b->level -= tokens;
}

/* One packet of so many bytes, out of both buckets; false, and out of none, if one has too little.
 */
tally_inline bool tally_buckets_take(struct tally_bucket *packets, struct tally_bucket *bytes,
				     __u32 packet_bytes, __u64 now_ns)
{
	tally_bucket_fill(packets, now_ns);
	tally_bucket_fill(bytes, now_ns);
	if (!tally_bucket_has(packets, 1) || !tally_bucket_has(bytes, packet_bytes))
		return false;
	tally_bucket_spend(packets, 1);
	tally_bucket_spend(bytes, packet_bytes);
	return true;
}

/* Does a bucket owe a burst? Then nothing more is charged to it if that can be refused. */
tally_inline bool tally_buckets_owe(struct tally_bucket *packets, struct tally_bucket *bytes,
				    __u64 now_ns)
{
	tally_bucket_fill(packets, now_ns);
	tally_bucket_fill(bytes, now_ns);
	return (packets->rate && packets->level <= -(__s64)packets->burst) ||
	       (bytes->rate && bytes->level <= -(__s64)bytes->burst);
}

/*
 * So many packets, of so many bytes together (less than 2^32 of each), have left. All of them are
 * charged: who made them leave had tokens, or owed less than a burst.
 */
tally_inline void tally_buckets_charge(struct tally_bucket *packets, struct tally_bucket *bytes,
				       __u32 copies, __u64 all_bytes, __u64 now_ns)
{
	tally_bucket_fill(packets, now_ns);
	tally_bucket_fill(bytes, now_ns);
	tally_bucket_spend(packets, copies);
	tally_bucket_spend(bytes, all_bytes);
}

#endif
