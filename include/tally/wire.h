/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The packet. One definition for the data plane, the client, the agent and the tests;
 * docs/protocol.md says the same in words. A message is a UDP datagram: this header,
 * then `blocks` blocks of eight 64-bit words. All of it is little-endian.
 */
#ifndef TALLY_WIRE_H
#define TALLY_WIRE_H

#include <linux/types.h>
#include <stddef.h>
#include <tally/endian.h>
#include <tally/set.h>

enum {
	TALLY_UDP_PORT = 31249, /* 0x7a11; where contributions and repairs are sent */
	TALLY_MAGIC = 0xa7,   /* first byte of every message */
	TALLY_VERSION = 1,
	TALLY_EVERYONE = 0xffff,	 /* a recipient: all ranks get the payload */
	TALLY_BLOCK_WORDS = 8,   /* 64-bit words in a block */
	TALLY_BLOCK_BYTES = 64,
	TALLY_BLOCKS_MAX = 53,   /* 3,392 bytes: what fits an MTU of 3,500 over IPv4 */
	TALLY_WORDS_MAX = TALLY_BLOCKS_MAX * TALLY_BLOCK_WORDS,
	TALLY_WINDOW_MAX = 1024,	 /* chunks a worker may have in flight */
	TALLY_PAYLOAD_MAX = TALLY_BLOCKS_MAX * TALLY_BLOCK_BYTES,
};

/* Workers send contributions and repairs, nodes contributions, results and asks. */
enum tally_kind {
	TALLY_CONTRIBUTION = 1, /* a set of workers and the sum over it */
	TALLY_RESULT = 2, /* the set is everyone; the sum is final */
	TALLY_ASK = 3,    /* ranks outside the set are missing; everyone: send longer frames */
	TALLY_REPAIR = 4, /* a worker gives the root the result back */
};

enum tally_flag {
	TALLY_FLUSH = 1 << 0,  /* nodes must not hold this back: it goes on to the root */
	TALLY_WIDE = 1 << 1,  /* the chunk's values need the wide form */
	TALLY_WIDE_AHEAD = 1 << 2, /* the values of the chunk one window later do */
	/* Sticky: a sum has these flags if any of its contributions has. */
	TALLY_FLAGS_STICKY = TALLY_WIDE | TALLY_WIDE_AHEAD,
};

/* How a worker reads the words. Nodes only check that all contributions agree. */
enum tally_lane {
	TALLY_LANE_NONE = 0,  /* no payload at all (barrier) */
	TALLY_LANE_INT32 = 1,  /* two int32 a word: (hi << 32) + sign-extended lo */
	TALLY_LANE_INT32_WIDE = 2, /* one a word: sums that may wrap at 32 bits */
	TALLY_LANE_INT64 = 3,  /* one int64 a word */
	TALLY_LANE_FLOAT32 = 4, /* as INT32; block floating point with `scale` */
	TALLY_LANE_FLOAT32_WIDE = 5, /* one a word, with counts of its NaNs and infinities */
	TALLY_LANE_BYTES = 6,  /* as they are: only one contributor has a payload */
};

struct tally_header {
	__u8 magic;  /* TALLY_MAGIC */
	__u8 version;  /* TALLY_VERSION */
	__u8 kind;  /* enum tally_kind */
	__u8 flags;  /* enum tally_flag */
	__le32 job;
	__le16 epoch;  /* of the job; bumped when its workers or its tree change */
	__le16 boot;  /* from nodes: the root's boot id; from workers 0 */
	__le32 seq;  /* of the chunk; wraps */
	__le16 recipient; /* the rank that gets the payload, or TALLY_EVERYONE */
	__u8 blocks;  /* of payload; 0 adds zeros */
	__u8 lane;  /* enum tally_lane */
	__u8 scale;  /* of this chunk's own values; nodes keep the maximum */
	__u8 scale_ahead; /* the same for the chunk one window later in the call */
	__u8 priority;
	__u8 reserved;  /* 0 */
	__le64 set[TALLY_SET_WORDS];
	__le64 check;  /* sum of (2 i + 1) * word i, mod 2^64; nodes add it */
};

_Static_assert(sizeof(struct tally_header) == 64, "one block");
_Static_assert(offsetof(struct tally_header, seq) == 12, "layout");
_Static_assert(offsetof(struct tally_header, set) == 24, "layout");
_Static_assert(offsetof(struct tally_header, check) == 56, "layout");
_Static_assert(TALLY_BLOCK_WORDS * 8 == TALLY_BLOCK_BYTES, "block");

tally_inline struct tally_set tally_header_set(const struct tally_header *h)
{
	struct tally_set s;

	for (int i = 0; i < TALLY_SET_WORDS; i++)
		s.word[i] = tally_le64_get(h->set[i]);
	return s;
}

tally_inline void tally_header_set_put(struct tally_header *h, const struct tally_set *s)
{
	for (int i = 0; i < TALLY_SET_WORDS; i++)
		h->set[i] = tally_le64(s->word[i]);
}

/* Does this worker, or this child with these workers below it, get the payload? */
tally_inline bool tally_gets_payload(__u16 recipient, const struct tally_set *below)
{
	return recipient == TALLY_EVERYONE || tally_set_has(below, recipient);
}

#endif
