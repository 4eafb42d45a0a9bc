/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Read this file first: the words that the tests of this folder are written in.
 *
 * A node on the bench: its programs loaded over one set of maps, a message in, its outcome and
 * its bytes out. A test is a sentence:
 *
 *	expect(node, contribution(.worker = 0, .seq = 1, .value = 40), TALLY_ABSORBED, &out);
 *	expect(node, contribution(.worker = 1, .seq = 1, .value = 2), TALLY_COMPLETED, &out);
 *	assert_sum(&out, 42);
 */
#ifndef TALLY_TESTS_BPF_HARNESS_H
#define TALLY_TESTS_BPF_HARNESS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <tally/check.h>
#include <tally/maps.h>
#include <tally/outcome.h>
#include <tally/wire.h>

#include "bpf/ingress.skel.h"
#include "bpf/ingress_tc.skel.h"
#include "bpf/fanout.skel.h"

/* Literals below name their defaults first, and a test overrides what it is about. */
#pragma GCC diagnostic ignored "-Woverride-init"

enum {
	JOB = 7, /* index 0: slots 0 .. 15, group 0 */
	OTHER_JOB = 8, /* index 1: slots 16 .. 31, group 1 */
	LOOPBACK = 1, /* BPF_PROG_TEST_RUN says that a frame came in there */
	GROUPS = 2,
	SLOTS_OF_JOB = 16, /* the window is 8 */
	SLOTS = GROUPS * SLOTS_OF_JOB,
	EPOCH = 3,
	NODE_BOOT = 0xb007,
	NOBODY = -1,
	UDP_PORT_OF_RANK_0 = 40000,
	TTL_OF_WORKERS = 17,
	FRAME_BYTES_MAX = 4096,
	FRAME_BYTES_MIN = ETH_HLEN, /* BPF_PROG_TEST_RUN takes no less */
};

struct vlan_tag {
	__be16 tci;
	__be16 proto;
};

struct frame {
	__u32 bytes;
	__u8 data[FRAME_BYTES_MAX];
};

/* A message to be sent. Word i of its payload is (i + 1) * value, so that sums show. */
struct message {
	__u8 magic;
	__u8 version;
	__u8 kind;
	__u8 flags;
	__u32 job;
	__u16 epoch;
	__u32 seq;
	__u16 recipient;
	__u8 blocks;
	__u8 lane;
	__u8 scale;
	__u8 scale_ahead;
	__u8 priority;
	__u8 shard;
	__u8 edition;
	__u8 reserved;
	__u16 about;
	__u64 call;
	__u64 spoilt; /* is XORed to the tag, after the tag was made */
	__u64 identity; /* is added to the check of the words */
	int key; /* the tag is made with the key of rank `key` - 1; 0: without */
	int worker;   /* who sends it; is in the set, unless NOBODY */
	struct tally_set set; /* further workers in it */
	__u64 value;
	bool ipv6;
	__u8 ttl; /* 0: TTL_OF_WORKERS */
	__u8 ecn; /* of the IP header */
	__u16 vlan;   /* the tag's protocol; 0: no tag */
	__u16 vlan_id; /* 0: 100 */
};

#define message(...)                                    \
	((struct message){ .magic = TALLY_MAGIC,        \
			   .version = TALLY_VERSION,    \
			   .job = JOB,                  \
			   .epoch = EPOCH,              \
			   .recipient = TALLY_EVERYONE, \
			   .blocks = 1,                 \
			   .lane = TALLY_LANE_INT64,    \
			   .worker = NOBODY,            \
			   __VA_ARGS__ })
#define contribution(...) message(.kind = TALLY_CONTRIBUTION, __VA_ARGS__)
#define repair(...) message(.kind = TALLY_REPAIR, __VA_ARGS__)
#define result(...) message(.kind = TALLY_RESULT, __VA_ARGS__)
#define ask(...) message(.kind = TALLY_ASK, .blocks = 0, __VA_ARGS__)

/* A job to be put into the node's table: of two workers. */
#define root_job(...)                                        \
	((struct tally_job){ .everyone = { { 0x3 } },        \
			     .below = { { 0x3 } },           \
			     .slot_mask = SLOTS_OF_JOB - 1,  \
			     .epoch = EPOCH,                 \
			     .blocks_max = TALLY_BLOCKS_MAX, \
			     .root = 1,                      \
			     __VA_ARGS__ })
/* Of four workers, the first two come through here. */
#define inner_job(...) root_job(.root = 0, .everyone = { { 0xf } }, __VA_ARGS__)

/* What left the node: the frame, and copies of what is in it, if it is a message. */
struct sent {
	struct frame frame;
	struct ethhdr eth;
	bool tagged;
	struct vlan_tag tag;
	bool ipv6;
	struct iphdr ip4;
	struct ipv6hdr ip6;
	struct udphdr udp;
	struct tally_header tally;
	struct tally_more more; /* if the header is large */
	struct tally_set set;
	int key; /* as in struct message: what the tag was made with */
	__u64 word[TALLY_WORDS_MAX];
};

struct node {
	struct ingress_bpf *ingress;
	struct ingress_tc_bpf *ingress_tc;
	struct fanout_bpf *fanout;
	struct tally_gates gates; /* the map's memory */
	int group[GROUPS]; /* devmaps, in `groups` at the same index */
	bool by_tc; /* which of the two is meant */
	__u32 segment_bytes; /* TC: what the kernel is to cut frames into; 0: nothing */
	bool shown[TALLY_OUTCOME_COUNT]; /* by expect(), in any test so far */
};

/* All outcomes' counters, summed over CPUs. */
struct counts {
	struct tally_counter of[TALLY_OUTCOME_COUNT];
};

/*
 * cmocka fixtures. *state is the struct node; each test begins with empty slots, with nothing kept
 * of ports, with JOB and OTHER_JOB (of two workers each), which may come in anywhere and have a
 * gate of their own at LOOPBACK, with tenant 0 alone, and with groups that have no ports.
 */
int node_setup(void **state);
int node_setup_tc(void **state); /* frames go through the TC program */
int node_setup_pool(void **state, struct tally_pool pool); /* with slots to borrow */
int node_teardown(void **state);
int node_reset(void **state);

/* For main(): ends the program with a visible SKIP where BPF is not permitted. */
void skip_unless_permitted(void);

/* `id` is JOB or OTHER_JOB. */
void job_put(struct node *node, __u32 id, struct tally_job job);
/* The same, with keys of all ranks that a job may have, and with the node key if it has one. */
void job_put_keyed(struct node *node, __u32 id, struct tally_job job);
struct tally_key key_of(__u32 rank);
void rank_key_put(struct node *node, __u32 id, __u32 rank, struct tally_key key);
/* By what a rank of a keyed or bound job is known. */
void rank_put(struct node *node, __u32 id, __u32 rank, struct tally_rank value);
/* Rows that job_put() gives to the gates of JOB and OTHER_JOB. */
__u32 row_of_job(__u32 id);
__u32 row_of_loopback(__u32 id);
/* Memory of the map of gates, for gates_close(). NULL: errno. */
struct tally_gate_bucket *gates_open(int fd);
void gates_close(struct tally_gate_bucket *bucket);

void gate_put(struct node *node, __u32 id, __u32 ifindex, struct tally_gate gate);
void gate_remove(struct node *node, __u32 id, __u32 ifindex);
void tenant_put(struct node *node, __u32 index, struct tally_tenant tenant);
struct tally_tenant tenant_read(struct node *node, __u32 index);
void source_put(struct node *node, struct tally_source_key key);
/* The jobs' service addresses are of the family of this frame from now on; expect() does so. */
void jobs_follow(struct node *node, const struct frame *frame);
/* The ingress program that is meant, for a real port. */
int node_ingress(struct node *node);
/* One more copy for the group of that index: out of port `ifindex`, through fanout. */
void group_put(struct node *node, __u32 group, __u32 key, __u32 ifindex);
void group_remove(struct node *node, __u32 group, __u32 key);
/* Also as a child of the whole job, for TC: the next one, or that of this port and UDP port. */
void child_put(struct node *node, struct tally_child_key key, struct tally_child child);
/* What is kept of a port, with its cursor anew; its hardware address is node_mac. */
void at_port_put(struct node *node, __u32 ifindex);

/* `ret` has room for SLOTS. */
void slots_read(struct node *node, struct tally_slot *ret);
struct tally_slot slot_read(struct node *node, __u32 index);
struct tally_pool_slot pool_read(struct node *node, __u32 index);
void pool_put(struct node *node, __u32 index, const struct tally_pool_slot *slot);
void slot_put(struct node *node, __u32 index, const struct tally_slot *slot);
struct counts counts_read(struct node *node);
struct counts row_read(struct node *node, __u32 row);
/* Adds what was counted at a port. */
void port_read(struct node *node, __u32 ifindex, struct counts *apart, struct counts *jobs);

void frame_write(struct message m, struct frame *ret);
/* Bytes before the Tally header. */
__u32 frame_headers_bytes(struct message m);
/* Makes the tag right again, of a frame that was written for `m` and changed since. */
void frame_retag(struct message m, struct frame *frame);
/*
 * Does the frame, which was written for `m`, some harm: the same for the same seed. Bits flip,
 * fields say what they must not, ends are cut off or grow, lengths agree or lie; in half of the
 * cases the tag is right again, so that later stages see it.
 */
void mutate(struct message m, struct frame *frame, __u64 seed);
/* What stands in place of a UDP checksum that is still to be made; host order. */
__u16 frame_pseudo_sum(const struct frame *frame, __u32 udp_at, bool ipv6);
/* Of two 16-bit words, as checksums add them, in either byte order. */
__u16 sum_add(__u16 a, __u16 b);
/* A well-formed message in a frame: asserts lengths and checksums; over IPv4, UDP's may be 0. */
void frame_read(const struct frame *frame, struct sent *ret);

/* Runs ingress once; its XDP action, or what TC calls it, as such; the frame as it left, or a
 * negative errno. For any thread.
 */
int node_run(struct node *node, const struct frame *in, struct frame *ret);

/*
 * Runs ingress once. The action is the one of the outcome list, exactly this outcome's counter
 * rose, by one packet and its bytes; what was made by the node is well-formed, what passes is
 * unchanged. `ret` may be NULL.
 */
#define expect(node, m, outcome, ret) expect_at(node, m, outcome, ret, __FILE__, __LINE__)
#define expect_frame(node, in, outcome, ret) \
	expect_frame_at(node, in, outcome, ret, __FILE__, __LINE__)
void expect_at(struct node *node, struct message m, enum tally_outcome outcome, struct sent *ret,
	       const char *file, int line);
void expect_frame_at(struct node *node, const struct frame *in, enum tally_outcome outcome,
		     struct sent *ret, const char *file, int line);

/* The payload is that of a message of `value`, and the check word is right. */
#define assert_sum(sent, value) assert_sum_at(sent, value, __FILE__, __LINE__)
void assert_sum_at(const struct sent *sent, __u64 value, const char *file, int line);

/* The check word of a message of `value` with so many blocks, whose payload need not be there. */
__u64 check_of(__u64 value, __u8 blocks);

struct tally_set set_of(__u32 rank);

/* Who has which address. */
#define SERVICE_IP4 "10.77.0.1"
#define SERVICE_IP6 "fd77::1"
extern const __u8 node_mac[ETH_ALEN];
void worker_mac(__u32 rank, __u8 ret[ETH_ALEN]);
__be32 worker_ip4(__u32 rank);
void worker_ip6(__u32 rank, __u8 ret[16]);
__be32 service_ip4(void);
void service_ip6(__u8 ret[16]);

#endif
