/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keys and values of the BPF maps: the contract between the data plane and whoever fills
 * them. User space writes gates, jobs, ranks, groups, children, tenants and sources; the data
 * plane writes slots, counters, what it keeps of ports, and the level of tenants' buckets.
 */
#ifndef TALLY_MAPS_H
#define TALLY_MAPS_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stddef.h>
#include <tally/borrowed.h>
#include <tally/bucket.h>
#include <tally/gates.h>
#include <tally/node.h>
#include <tally/outcome.h>
#include <tally/reply.h>
#include <tally/slot.h>
#include <tally/wire.h>

/*
 * The version of all that this file says. It rises whenever a key, a value or the meaning of one
 * changes, so that no program reads the maps of another version as its own.
 */
#define TALLY_MAPS_LAYOUT 10

/* Slots that jobs share: how many, and who gets them. */
struct tally_pool {
	__u32 slots; /* 0: there is no pool, and all that borrow pass on to the root */
	struct tally_borrowed_policy policy;
};

/* What a running node is. Fields before `pool` keep their offsets in every layout. */
#define TALLY_NODE_MAGIC 0x65646f6e796c6174ULL /* "talynode" */

struct tally_constants {
	__u64 magic; /* TALLY_NODE_MAGIC */
	__u32 layout; /* TALLY_MAPS_LAYOUT */
	__u16 boot; /* changes whenever the slots were lost */
	__u8 shared; /* 1: some port has another XDP program beside ours */
	__u8 tick_ms; /* of the kernel's clock of ticks; where there is a pool */
	__u64 build; /* which programs these are: a hash of their sources */
	struct tally_pool pool;
	__u64 gate_factor; /* of tally_gate_hash(); stays as long as the gates do */
};

enum {
	TALLY_JOBS_MAX = 1024, /* on one node */
	TALLY_TENANTS_MAX = 64,
	TALLY_SOURCES_MAX = 4096, /* of all tenants together */
	TALLY_CHILDREN_MAX = 16384,	    /* of all jobs of a node together */
	TALLY_PORTS_MAX = 1024, /* interfaces of a node */
	TALLY_SHARED_MAX = 64, /* those that have another XDP program beside ours */
	TALLY_TRACE_BYTES = 1 << 18, /* of events that have not been read yet */
};

/* gates: bucket -> gates, as tally/gates.h says. In memory that user space maps. */
_Static_assert(TALLY_JOBS_MAX <= 1 << TALLY_GATE_JOB_BITS, "room in a gate");

/* jobs: index (also that of its group) -> job. Not changed while a gate leads to it. */
struct tally_job {
	struct tally_set everyone; /* all workers of the job */
	struct tally_set below; /* those that come through this node; root: everyone */
	__u32 slot_base;	 /* first of the job's slots; or where its range of the pool begins */
	__u32 slot_mask; /* slots - 1; slots = 2 * window, a power of two. Nothing if it borrows */
	__u32 group; /* index into groups */
	__u16 epoch;
	__u8 blocks_max; /* payload limit of a message */
	__u8 root; /* 1: results are made here; 0: sums go on to the root */
	__u32 id;
	__u16 tenant; /* index into tenants */
	__u16 copies; /* of a message that goes to the group: the children of the whole job */
	__u8 service[16]; /* the root's address; IPv4: the first four */
	__u8 ipv6; /* of the service address */
	__u8 keyed; /* 1: it has rank keys */
	__u8 bound; /* 1: each rank's messages come from its own address */
	__u8 borrows; /* 1: slots of the pool; then root is 0, also at the root's machine */
	__u16 range; /* its chunks lie in so many slots of the pool from slot_base; 0: anywhere */
	__u8 node_key; /* 1: keyed, and not bound, and its nodes share a key */
	__u8 reserved;
};

_Static_assert(sizeof(struct tally_job) == 112, "otherwise raise TALLY_MAPS_LAYOUT");
_Static_assert(offsetof(struct tally_job, below) == 32, "otherwise raise TALLY_MAPS_LAYOUT");
_Static_assert(offsetof(struct tally_job, slot_base) == 64, "otherwise raise TALLY_MAPS_LAYOUT");
_Static_assert(offsetof(struct tally_job, epoch) == 76, "otherwise raise TALLY_MAPS_LAYOUT");
_Static_assert(offsetof(struct tally_job, id) == 80, "otherwise raise TALLY_MAPS_LAYOUT");
_Static_assert(offsetof(struct tally_job, service) == 88, "otherwise raise TALLY_MAPS_LAYOUT");
_Static_assert(offsetof(struct tally_job, range) == 108, "otherwise raise TALLY_MAPS_LAYOUT");

/* As long as the job is there. */
tally_inline struct tally_role tally_job_role(const struct tally_job *job)
{
	return (struct tally_role){
		.everyone = &job->everyone,
		.below = &job->below,
		.epoch = job->epoch,
		.blocks_max = job->blocks_max,
		.root = job->root,
		.keyed = job->keyed,
	};
}

/*
 * ranks: index -> by what one rank of one job is known; behind the job's ranks, the key that its
 * nodes share. Nothing prints a key, a secret.
 */
enum {
	TALLY_RANKS_MAX = TALLY_JOBS_MAX * TALLY_KEYS_MAX,
};

struct tally_rank {
	struct tally_key key; /* of a keyed job */
	union { /* of a bound job; beside the node key: this node, if that is an inner one */
		__be32 ip4;
		__be32 ip6[4];
	};
	__u32 port; /* the only one of the node's ports that its messages come in by; 0: any */
	__u32 reserved;
};

/* `group`: the job's index. `rank`: or TALLY_NODE_KEY. */
tally_inline __u32 tally_rank_index(__u32 group, __u32 rank)
{
	return group * TALLY_KEYS_MAX + rank;
}

/*
 * tenants: index -> limits. Index 0 is the node's own tenant: no limits. The one behind the last
 * tenant bounds the answers that no tenant pays for.
 */
enum {
	TALLY_TENANT_ANSWERS = TALLY_TENANTS_MAX,
	TALLY_ANSWERS_PER_SECOND = 1000, /* to messages of another version */
	TALLY_ANSWERS_AT_ONCE = 64,
};

struct tally_tenant {
	struct bpf_spin_lock lock; /* guards the buckets */
	__u8 limited; /* 1: the buckets limit what comes; 0: they are not used */
	__u8 priority; /* its share of what its messages ask for */
	__u16 reserved;
	struct tally_bucket packets;
	struct tally_bucket bytes; /* of whole frames */
};

/* sources: where a tenant's messages may come from -> 1. Matched by the longest prefix. */
enum {
	TALLY_VLAN_ANY = 0xffff,
	TALLY_VLAN_NONE = 0x0fff, /* none that a source names: of a tag that is not of 802.1Q */
	TALLY_SOURCE_BITS = 8 * 12, /* of the key before the address: always whole */
};

struct tally_source_key {
	__u32 bits; /* TALLY_SOURCE_BITS, and those of the address's prefix */
	__be32 tenant;
	__be32 ifindex;
	__be16 vlan; /* 0: untagged; up to 4094; TALLY_VLAN_ANY */
	__u8 ipv6;
	__u8 reserved;
	__u8 address[16]; /* IPv4: the first four */
};

_Static_assert(sizeof(struct tally_source_key) == 4 + TALLY_SOURCE_BITS / 8 + 16, "no holes");

/* slots: index -> slot. Two cache lines of books, then the sum. */
struct tally_slot {
	struct bpf_spin_lock lock; /* guards all below */
	__u32 reserved;
	struct tally_slot_state state;
	__u64 reserved_words[5];
	__u64 word[TALLY_WORDS_MAX];
};

_Static_assert(offsetof(struct tally_slot, word) == 128, "whole cache lines");

/*
 * From where to where the message came whose rank is the `sender` of a sum, and what its IP header
 * asked of routers: the sum goes likewise. And by whose keys.
 */
struct tally_pool_route {
	union { /* which one: the shape of the sum's frame */
		__be32 ip4[2];
		__be32 ip6[8];
	}; /* source and service address */
	__be32 asks[2]; /* the first words of the IP header; of them, the length means nothing */
	__be16 udp_port; /* of the source */
	__u16 group; /* the job's */
	__u8 keyed; /* as of the job */
	__u8 ttl; /* IPv4; that of IPv6 is in `asks` */
	__u8 reserved[2];
};

/* pool: index -> a slot that jobs share. Three cache lines of books, then the sum. */
struct tally_pool_slot {
	struct bpf_spin_lock lock; /* guards all below */
	__u32 reserved;
	struct tally_borrowed_slot books;
	struct tally_pool_route route;
	__u64 reserved_words[3];
	__u64 word[TALLY_WORDS_MAX];
};

_Static_assert(offsetof(struct tally_pool_slot, word) == 192, "whole cache lines");

/* borrowing: 0 -> (per CPU) the message that is under way at its slot of the pool */
struct tally_borrowing {
	struct tally_borrower borrower;
	struct tally_offer offer;
	struct tally_borrowed_policy policy;
	struct tally_verdict verdict;
	struct tally_reply reply;
	struct tally_borrowed_slot out; /* books of what leaves */
	struct tally_pool_route route; /* of what leaves by a swap */
	__u32 slot; /* index into pool */
	__u32 key; /* index into ranks: what leaves is tagged by this one */
	__u32 keyed; /* 1: it is */
};

/*
 * children: the i-th child of a job behind a port -> where its copy goes. Each child has a second
 * entry, as the i-th of the whole job, behind port 0: TC sends copies one by one.
 */
struct tally_child_key {
	__u32 job;
	__u32 ifindex;
	__u32 index; /* 0, 1, ... without holes */
};

struct tally_child {
	struct tally_set below; /* the worker itself, or all workers below the node */
	__u8 mac[6]; /* next hop */
	__u8 port_mac[6]; /* of the node's own port */
	union {
		__be32 ip4;
		__u8 ip6[16];
	};
	__be16 udp_port;
	__u8 ipv6; /* which of the two */
	__u8 keyed; /* 1: copies have tags made with its rank key */
	__u32 row; /* where its copies are counted */
	__u32 port; /* that leads to it */
	__u32 key; /* index into ranks */
};

/* Which child of a port the next copy of this message is for. */
struct tally_cursor {
	__u32 job;
	__u32 seq;
	__u32 index; /* children that have had their copy */
	__u16 epoch;
	__u8 kind;
	__u8 reserved;
};

struct tally_counter {
	__u64 packet;
	__u64 byte; /* of the whole frame as it came; FANNED_OUT: as it left */
};

/*
 * counters: row -> counters (per CPU). A job has a row, by its index; besides, there are rows for
 * what a job counts at one port alone.
 */
enum {
	TALLY_ROW_NO_JOB = 0, /* of packets of no job, at a port that at_ports does not have */
	TALLY_ROW_GONE = 1, /* of what has gone, so that totals never shrink */
	TALLY_ROW_JOBS = 2,
	TALLY_ROW_PORTS = TALLY_ROW_JOBS + TALLY_JOBS_MAX,
	TALLY_ROWS_MAX = 3072,
	TALLY_PORT_ROWS = TALLY_ROWS_MAX - TALLY_ROW_PORTS,
	TALLY_PORT_ROWS_OF_TENANT = 16, /* that nobody else gets */
};

_Static_assert(TALLY_ROWS_MAX <= 1 << TALLY_GATE_ROW_BITS, "room in a gate");

struct tally_counters {
	struct tally_counter outcome[TALLY_OUTCOMES_MAX];
};

_Static_assert(TALLY_OUTCOME_COUNT <= TALLY_OUTCOMES_MAX, "otherwise raise TALLY_MAPS_LAYOUT");

/*
 * at_ports: port -> what is kept of it (per CPU). What a port has received is in `apart`, in
 * `jobs`, and in the rows of jobs at that port alone.
 */
struct tally_at_port {
	struct tally_cursor cursor;
	__u8 mac[6]; /* its hardware address, as it was when the port was attached */
	__u16 reserved;
	struct tally_counters apart; /* of packets that no job's gate has let in */
	struct tally_counters jobs; /* of packets that are in the row of a whole job, too */
};

/* settings: 0 -> what user space asks of running programs */
struct tally_settings {
	__u32 trace_every; /* one packet in so many becomes an event; 0: none */
	__u32 trace_one_job; /* 1: only of trace_job */
	__u32 trace_job;
	__u32 reserved;
};

/* trace: one packet as it came in, and its outcome. A field that the packet does not have is 0. */
struct tally_event {
	__u64 time_ns; /* of the node's monotonic clock */
	__u32 job;
	__u32 seq;
	__u32 ifindex;
	__u32 bytes; /* of the whole frame */
	__u16 epoch;
	__u8 kind;
	__u8 outcome;
	__u32 reserved;
	struct tally_set set;
};

/* tracers: 0 -> (per CPU) the event that is under way */
struct tally_tracer {
	__u64 lost; /* events for which there was no room */
	__u32 passed; /* packets since the last event */
	__u32 chosen; /* 1: this packet becomes an event */
	struct tally_event event;
};

/* ports: ifindex of a shared port -> index into next: programs that get the packets we pass. */

#endif
