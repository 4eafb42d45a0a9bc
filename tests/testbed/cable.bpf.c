// SPDX-License-Identifier: GPL-2.0-only
/*
 * A cable between two interfaces of one namespace, with the faults of a real one.
 *
 *       A ──ingress──► lost? flipped? copied? late? ──► egress (TBF) ──► B      "up"; B to A "down"
 *                                               │            ▲
 *                                               ▼            │
 *                                           slow way ────────┘    one or two milliseconds longer
 *
 * Loss is rolled at ingress: a drop at egress would reach a local sender as ENOBUFS, and it would
 * send again.
 *
 * The slow way is a veth pair with a TBF on both ends (scripts/testbed makes it). A token bucket
 * that has rested lets its first frame go at once, which would delay nothing; so filler goes ahead
 * of it, to drain the bucket. Filler is longer than the pair's MTU: it pays at the qdisc, and the
 * veth behind it throws it away. Nothing is held back that needs another frame to let it go.
 *
 * A flipped frame has one bit that its sender did not send. Its UDP checksum is what the sender
 * made of the right bits, so the next kernel that looks drops the frame; XDP programs do not look.
 * With flip_hidden the checksum is made anew over the wrong bit. So it is where a sender leaves
 * the checksum partial (veth, offloads) and what completes it stands behind the fault: no checksum
 * shows the flip then, at any receiver. A partial checksum that meets the cable stays as it is.
 *
 * A marked frame is as one that met congestion on its way, if its sender takes marks (ECN).
 *
 * All faults are rolled with one seed. Frame n of a direction has the same fate in each run.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "cable.h"

/*
 * 16 fillers against a bucket of 16,000 bytes at 1 Gbit/s: a frame alone waits 1.8 ms. Filler is
 * longer than any MTU here, and shorter than the SKB_MAX_ALLOC that the kernel grants.
 */
enum {
	FILLER_BYTES = 15000,
	FILLER_COUNT = 16,
	LATE_FRAMES_MAX = 256, /* in the slow way at a time: 5 ms at an MTU of 1500 */
	STALE_NS = 100000000
};

/* Indexed by direction, but for what is the same both ways. */
const volatile __u32 far_ifindex[2];
const volatile __u32 slow_ifindex[2];
const volatile __u32 loss_ppm[2];
const volatile __u32 dup_ppm;
const volatile __u32 reorder_ppm;
const volatile __u32 mark_ppm[2]; /* of what takes marks (ECN) */
const volatile __u32 flip_ppm[2];
const volatile __u32 flip_region; /* enum region */
const volatile __u32 flip_hidden; /* not 0: checksums cover the flip */
const volatile __u64 seed;

/* Losses are counted by the kernel, as drops of the clsact qdisc. */
__u64 flipped[2];
__u64 duplicated[2];
__u64 reordered[2];

/* Not static: clang would split them in two, and the kernel refuses the BTF that comes of that. */
__s64 late_frames[2];
__u64 moved_ns[2]; /* when filler last went into the slow way, or a frame came out */
__u64 rolled_frames[2];

/* splitmix64's finish. */
static __always_inline __u64 scramble(__u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* Where the dice of the next frame begin. */
static __always_inline __u64 next_fate(enum direction way)
{
	return scramble(scramble(2 * seed + way) + __sync_fetch_and_add(&rolled_frames[way], 1));
}

/* From 0 to limit - 1. */
static __always_inline __u32 roll(__u64 *fate, __u32 limit)
{
	*fate += 0x9e3779b97f4a7c15;
	return (scramble(*fate) >> 32) * limit >> 32;
}

static __always_inline int happens(__u64 *fate, __u32 chance_ppm)
{
	return roll(fate, PPM_ONE) < chance_ppm;
}

/* Where the UDP datagram's data begins; 0 if the frame is not UDP. */
static __always_inline __u32 find_data(struct __sk_buff *skb)
{
	struct ipv6hdr ip6;
	struct iphdr ip4;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip4, sizeof(ip4)) ||
		    ip4.protocol != IPPROTO_UDP)
			return 0;
		return ETH_HLEN + 4 * ip4.ihl + sizeof(struct udphdr);
	}
	if (skb->protocol != bpf_htons(ETH_P_IPV6) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN, &ip6, sizeof(ip6)) || ip6.nexthdr != IPPROTO_UDP)
		return 0;
	return ETH_HLEN + sizeof(ip6) + sizeof(struct udphdr);
}

/* By words of 16 bits, as checksums go. The last byte of an odd frame is never flipped. */
static __always_inline void flip(struct __sk_buff *skb, enum direction way, __u64 *fate)
{
	__u32 data = find_data(skb), at = ETH_HLEN, end = skb->len, bit;
	__u32 checksum = data - sizeof(struct udphdr) + offsetof(struct udphdr, check);
	__u16 was, is;

	/* A flip in an ARP answer would teach the kernel a wrong address for good. */
	if (!data)
		return;
	if (flip_region != ANYWHERE) {
		at = flip_region == HEADER ? data : data + MESSAGE_HEADER_BYTES;
		if (flip_region == HEADER && end > data + MESSAGE_HEADER_BYTES)
			end = data + MESSAGE_HEADER_BYTES;
		if (at >= end)
			return;
	}
	bit = roll(fate, (end - at) / 2 * 16);
	at += bit / 16 * 2;
	if (bpf_skb_load_bytes(skb, at, &was, sizeof(was)))
		return;
	is = was ^ 1 << bit % 16;
	if (bpf_skb_store_bytes(skb, at, &is, sizeof(is), 0))
		return;
	__sync_fetch_and_add(&flipped[way], 1);

	/* The kernel leaves checksums alone that are partial, or 0. */
	if (flip_hidden && at >= data - sizeof(struct udphdr) && at != checksum)
		bpf_l4_csum_replace(skb, checksum, was, is, BPF_F_MARK_MANGLED_0 | sizeof(is));
}

/* Fails only when memory is short; the frame is then merely less late. */
static __always_inline void fill(struct __sk_buff *skb, enum direction way)
{
	__u32 len = skb->len;

	if (bpf_skb_change_tail(skb, FILLER_BYTES, 0))
		return;
	for (int i = 0; i < FILLER_COUNT; i++)
		bpf_clone_redirect(skb, slow_ifindex[way], 0);
	bpf_skb_change_tail(skb, len, 0);
}

/*
 * A frame that finds others in the slow way queues behind them and shares their wait: filler for
 * each would add up to a way that is slower than its traffic. Should the veth ever lose a late
 * frame, the count of them would never be nought again; that nothing moves gives it away.
 */
static __always_inline int delay(struct __sk_buff *skb, enum direction way)
{
	__u64 now_ns = bpf_ktime_get_ns();

	if (moved_ns[way] + STALE_NS < now_ns) /* another CPU may be ahead of now_ns */
		late_frames[way] = 0;
	if (late_frames[way] >= LATE_FRAMES_MAX)
		return bpf_redirect(far_ifindex[way], 0);

	if (late_frames[way] <= 0) {
		moved_ns[way] = now_ns;
		fill(skb, way);
	}
	__sync_fetch_and_add(&late_frames[way], 1);
	__sync_fetch_and_add(&reordered[way], 1);
	return bpf_redirect(slow_ifindex[way], 0);
}

static __always_inline int rejoin(enum direction way)
{
	moved_ns[way] = bpf_ktime_get_ns();
	__sync_fetch_and_add(&late_frames[way], -1);
	return bpf_redirect(far_ifindex[way], 0);
}

static __always_inline int carry(struct __sk_buff *skb, enum direction way)
{
	__u64 fate = next_fate(way);
	int late;

	if (happens(&fate, loss_ppm[way]))
		return TC_ACT_SHOT;

	if (happens(&fate, flip_ppm[way]))
		flip(skb, way, &fate);

	if (happens(&fate, dup_ppm) && !bpf_clone_redirect(skb, far_ifindex[way], 0))
		__sync_fetch_and_add(&duplicated[way], 1);

	late = happens(&fate, reorder_ppm);
	if (happens(&fate, mark_ppm[way]))
		bpf_skb_ecn_set_ce(skb);
	if (late)
		return delay(skb, way);

	return bpf_redirect(far_ifindex[way], 0);
}

SEC("tc")
int carry_up(struct __sk_buff *skb) { return carry(skb, UP); }

SEC("tc")
int carry_down(struct __sk_buff *skb) { return carry(skb, DOWN); }

SEC("tc")
int rejoin_up(struct __sk_buff *skb) { return rejoin(UP); }

SEC("tc")
int rejoin_down(struct __sk_buff *skb) { return rejoin(DOWN); }

/* veth loses a frame sent by XDP_TX unless a program waits at the other end. */
SEC("xdp")
int pass(struct xdp_md *ctx) { return XDP_PASS; }

char LICENSE[] SEC("license") = "GPL";
