/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keys and values of the BPF maps: the contract between the data plane and whoever fills
 * them. User space writes jobs, groups, children and ports; the data plane writes slots,
 * cursors and counters.
 */
#ifndef TALLY_MAPS_H
#define TALLY_MAPS_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <tally/slot.h>
#include <tally/wire.h>

enum {
	TALLY_JOBS_MAX = 256,	      /* on one node */
	TALLY_CHILDREN_MAX = 16384,	    /* of all jobs of a node together */
	TALLY_PORTS_MAX = 1024, /* interfaces of a node */
};

/* jobs: job id -> */
struct tally_job {
	struct tally_set everyone; /* all workers of the job */
	struct tally_set below; /* those that come through this node; root: everyone */
	__u32 slot_base;	 /* first of the job's slots */
	__u32 slot_mask;	 /* slots - 1; slots = 2 * window, a power of two */
	__u32 group;   /* index into groups */
	__u16 epoch;
	__u8 blocks_max;	 /* payload limit of a message */
	__u8 root;   /* 1: results are made here; 0: sums go on to the root */
};

/* slots: index -> . Two cache lines of books, then the sum. */
struct tally_slot {
	struct bpf_spin_lock lock; /* guards all below */
	__u32 reserved;
	struct tally_slot_state state;
	__u64 word[TALLY_WORDS_MAX];
};

/* children: the i-th child of a job behind a port -> where its copy goes */
struct tally_child_key {
	__u32 job;
	__u32 ifindex;
	__u32 index;   /* 0, 1, ... without holes */
};

struct tally_child {
	struct tally_set below; /* the worker itself, or all workers below the node */
	__u8 mac[6];   /* next hop */
	__u8 port_mac[6];  /* of the node's own port */
	union {
		__be32 ip4;
		__u8 ip6[16];
	};
	__be16 udp_port;
	__u8 ipv6;   /* which of the two */
	__u8 reserved;
};

/* cursors: port -> which child of the port the next copy of this message is for (per CPU) */
struct tally_cursor {
	__u32 job;
	__u32 seq;
	__u32 index;   /* children that have had their copy */
	__u16 epoch;
	__u8 kind;
	__u8 reserved;
};

/* counters: enum tally_outcome -> (per CPU) */
struct tally_counter {
	__u64 packet;
	__u64 byte;   /* of the whole frame as it came; FANNED_OUT: as it left */
};

#endif
