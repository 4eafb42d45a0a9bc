/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The packet, version 2. One definition for the data plane, the client, the agent and the tests;
 * docs/protocol.md says the same in words. A message is a UDP datagram: this header, struct
 * tally_more in jobs of more than 64 workers, then `blocks` blocks of eight 64-bit words. All of it
 * is little-endian. How flips and foreign sums are found: tally/check.h.
 */
#ifndef TALLY_WIRE_H
#define TALLY_WIRE_H

#include <linux/types.h>
#include <stddef.h>
#include <tally/endian.h>
#include <tally/set.h>

enum {
	TALLY_UDP_PORT = 31249, /* 0x7a11; where contributions and repairs are sent */
	TALLY_MAGIC = 0xa7, /* first byte of every message */
	TALLY_VERSION = 2,
	TALLY_EVERYONE = 0xffff, /* a recipient: all ranks get the payload */
	TALLY_FROM_NODE = 0xffff, /* a sender: no rank */
	TALLY_BLOCK_WORDS = 8, /* 64-bit words in a block */
	TALLY_BLOCK_BYTES = 64,
	TALLY_BLOCKS_MAX = 53, /* 3,392 bytes: what fits an MTU of 3,500 over IPv4 */
	TALLY_WORDS_MAX = TALLY_BLOCKS_MAX * TALLY_BLOCK_WORDS,
	TALLY_WINDOW_MAX = 1024, /* chunks a worker may have in flight */
	TALLY_PAYLOAD_MAX = TALLY_BLOCKS_MAX * TALLY_BLOCK_BYTES,
	TALLY_SMALL_WORKERS_MAX = 64, /* in larger jobs, struct tally_more follows the header */
	TALLY_AHEAD_MAX = 1 << 16, /* a slot goes on by so many chunks at most */
};

/*
 * What a root sends has 64 hops to live, and each inner node on its way down takes so many of them.
 * So nodes that name each other as children soon let go of a result.
 */
enum {
	TALLY_HOPS_DOWN = 8,
	TALLY_LEVELS_MAX = 64 / TALLY_HOPS_DOWN - 1, /* of inner nodes, one below the other */
};

/* Workers send contributions and repairs; nodes send contributions and all the others. */
enum tally_kind {
	TALLY_CONTRIBUTION = 1, /* a set of workers and the sum over it */
	TALLY_RESULT = 2, /* the sum over everyone */
	TALLY_ASK = 3, /* ranks outside the set are missing; everyone: send longer frames */
	TALLY_REPAIR = 4, /* a worker gives the root the result back */
	TALLY_MISMATCH = 5, /* `sender` calls what `check` says, the ranks of the set `call` */
	TALLY_OVERTAKEN = 6, /* the slot of `seq` serves the later chunk that `check` says */
};

enum tally_flag {
	TALLY_FLUSH = 1 << 0, /* nodes must not hold this back: it goes on to the root */
	TALLY_WIDE = 1 << 1, /* the chunk's values need the wide form */
	TALLY_WIDE_AHEAD = 1 << 2, /* the values of the chunk one window later do */
	TALLY_REJECT = 1 << 3, /* its sender got a wrong sum: the one of `edition` */
	TALLY_MARKED = 1 << 4, /* some contribution or copy met congestion (ECN) */
	TALLY_SPILLED = 1 << 5, /* from nodes: summed in user space */
	TALLY_PARTIAL = 1 << 6, /* from nodes: of a job that takes sums over some ranks */
	TALLY_LARGE = 1 << 7, /* of a job of more than 64 workers: struct tally_more follows */
	/* Sticky: a sum has these flags if any of its contributions has. */
	TALLY_FLAGS_STICKY = TALLY_WIDE | TALLY_WIDE_AHEAD | TALLY_MARKED,
	TALLY_FLAGS_UP = TALLY_FLAGS_STICKY | TALLY_FLUSH | TALLY_REJECT | TALLY_LARGE,
	TALLY_FLAGS_DOWN = TALLY_FLAGS_STICKY | TALLY_SPILLED | TALLY_PARTIAL | TALLY_LARGE,
};

/* How a worker reads the words. Nodes only check that all contributions agree. */
enum tally_lane {
	TALLY_LANE_NONE = 0, /* no payload at all (barrier) */
	TALLY_LANE_INT32 = 1, /* two int32 a word: (hi << 32) + sign-extended lo */
	TALLY_LANE_INT32_WIDE = 2, /* one a word: sums that may wrap at 32 bits */
	TALLY_LANE_INT64 = 3, /* one int64 a word */
	TALLY_LANE_FLOAT32 = 4, /* as INT32; block floating point with `scale` */
	TALLY_LANE_FLOAT32_WIDE = 5, /* one a word, with counts of its NaNs and infinities */
	TALLY_LANE_BYTES = 6, /* as they are: only one contributor has a payload */
	TALLY_LANE_INT8 = 7, /* eight a word */
	TALLY_LANE_INT8_WIDE = 8, /* four a word, of 16 bits each */
	TALLY_LANE_INT16 = 9, /* four a word */
	TALLY_LANE_INT16_WIDE = 10, /* two a word, of 32 bits each */
	TALLY_LANE_UINT8 = 11, /* the same without signs */
	TALLY_LANE_UINT8_WIDE = 12,
	TALLY_LANE_UINT16 = 13,
	TALLY_LANE_UINT16_WIDE = 14,
	TALLY_LANE_UINT32 = 15,
	TALLY_LANE_UINT32_WIDE = 16,
	TALLY_LANE_UINT64 = 17,
	TALLY_LANE_BFLOAT16 = 18, /* four a word, of 16 bits each; block floating point */
	TALLY_LANE_BFLOAT16_PAIRS = 19, /* two a word, in jobs of many ranks */
	TALLY_LANE_BFLOAT16_WIDE = 20, /* one a word, as FLOAT32_WIDE */
	TALLY_LANE_FLOAT16 = 21, /* the same */
	TALLY_LANE_FLOAT16_PAIRS = 22,
	TALLY_LANE_FLOAT16_WIDE = 23,
	TALLY_LANE_FLOAT64 = 24, /* one a word; block floating point */
	TALLY_LANE_FLOAT64_WIDE = 25, /* two words each: the second counts NaNs and infinities */
	TALLY_LANE_FLOAT32_FIXED = 26, /* one a word; with the point of the call */
	TALLY_LANE_FLOAT64_FIXED = 27,
	TALLY_LANE_BFLOAT16_FIXED = 28,
	TALLY_LANE_FLOAT16_FIXED = 29,
	TALLY_LANE_FLOAT32_HALVED = 30, /* four a word, of 16 bits each; block floating point */
	TALLY_LANE_FLOAT32_HALVED_WIDE = 31, /* one a word, as FLOAT32_WIDE */
};

struct tally_header {
	__u8 magic; /* TALLY_MAGIC */
	__u8 version; /* TALLY_VERSION */
	__u8 kind; /* enum tally_kind */
	__u8 flags; /* enum tally_flag */
	__le32 job;
	__le16 epoch; /* of the job; bumped when its workers or its tree change */
	__le16 boot; /* from nodes: the boot id of the one that made this; from workers 0 */
	__le32 seq; /* of the chunk; wraps */
	__le16 recipient; /* the rank that gets the payload, or TALLY_EVERYONE */
	__u8 blocks; /* of payload; 0 adds zeros */
	__u8 lane; /* enum tally_lane */
	__u8 scale; /* of this chunk's own values; nodes keep the maximum */
	__u8 scale_ahead; /* the same for the chunk one window later in the call */
	__u8 priority;
	__u8 shard; /* 0: there is one ring of slots */
	__le64 call; /* the shape of the call; all ranks agree */
	__le64 check; /* tally/check.h; nodes add it */
	__le64 tag; /* tally/check.h; every receiver verifies it */
	__le16 about; /* not 0: so many chunks earlier; asks for, or brings, news of that one */
	__le16 sender; /* a rank, or TALLY_FROM_NODE */
	__u8 edition; /* how often this sum was made anew, or which one is rejected */
	__u8 reserved[3]; /* 0 */
	__le64 set; /* ranks 0 to 63. Of a result with `about`: who is there of that chunk */
};

/* Behind the header of a message with TALLY_LARGE. */
struct tally_more {
	__le64 set[TALLY_SET_WORDS - 1]; /* ranks 64 to 255 */
	__le64 reserved; /* 0 */
};

_Static_assert(sizeof(struct tally_header) == 64, "one block");
_Static_assert(offsetof(struct tally_header, seq) == 12, "layout");
_Static_assert(offsetof(struct tally_header, call) == 24, "layout");
_Static_assert(offsetof(struct tally_header, tag) == 40, "layout");
_Static_assert(offsetof(struct tally_header, set) == 56, "layout");
_Static_assert(sizeof(struct tally_more) == 32, "layout");
_Static_assert(TALLY_BLOCK_WORDS * 8 == TALLY_BLOCK_BYTES, "block");

/* Before the payload: 64 or 96. */
tally_inline __u32 tally_header_bytes(__u8 flags)
{
	return sizeof(struct tally_header) + (flags & TALLY_LARGE ? sizeof(struct tally_more) : 0);
}

/* Does a job with these workers have large headers? */
tally_inline bool tally_is_large(const struct tally_set *everyone)
{
	return everyone->word[1] | everyone->word[2] | everyone->word[3];
}

/* 64-bit words. Of a whole message, as are the next three: `h` is where the message begins. */
tally_inline void *tally_payload(struct tally_header *h)
{
	return (__u8 *)h + tally_header_bytes(h->flags);
}

tally_inline const void *tally_payload_of(const struct tally_header *h)
{
	return (const __u8 *)h + tally_header_bytes(h->flags);
}

/* What is behind the header. (Compilers must not conclude that only a header is there.) */
tally_inline struct tally_more *tally_more_of(const struct tally_header *h)
{
	struct tally_more *more = (struct tally_more *)(h + 1);

	asm("" : "+r"(more));
	return more;
}

tally_inline struct tally_set tally_header_set(const struct tally_header *h)
{
	struct tally_set s = { { tally_le64_get(h->set) } };

	for (int i = 1; h->flags & TALLY_LARGE && i < TALLY_SET_WORDS; i++)
		s.word[i] = tally_le64_get(tally_more_of(h)->set[i - 1]);
	return s;
}

tally_inline void tally_header_set_put(struct tally_header *h, const struct tally_set *s)
{
	h->set = tally_le64(s->word[0]);
	for (int i = 1; h->flags & TALLY_LARGE && i < TALLY_SET_WORDS; i++)
		tally_more_of(h)->set[i - 1] = tally_le64(s->word[i]);
}

/* Does this worker, or this child with these workers below it, get the payload? */
tally_inline bool tally_gets_payload(__u16 recipient, const struct tally_set *below)
{
	return recipient == TALLY_EVERYONE || tally_set_has(below, recipient);
}

#endif
