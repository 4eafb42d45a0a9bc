// SPDX-License-Identifier: GPL-2.0-only
/*
 * A cable between two interfaces of one namespace, with the faults of a real one.
 *
 *       A ──ingress──► lost? copied? late? ──► egress (TBF) ──► B        "up"; B to A is "down"
 *                                      │            ▲
 *                                      ▼            │
 *                                  slow way ────────┘    one or two milliseconds longer
 *
 * Loss is rolled at ingress: a drop at egress would reach a local sender as ENOBUFS, and it would
 * send again.
 *
 * The slow way is a veth pair with a TBF on both ends (scripts/testbed makes it). A token bucket
 * that has rested lets its first frame go at once, which would delay nothing; so filler goes ahead
 * of it, to drain the bucket. Filler is longer than the pair's MTU: it pays at the qdisc, and the
 * veth behind it throws it away. Nothing is held back that needs another frame to let it go.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

#define PPM_ONE 1000000

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

enum direction {
	UP,
	DOWN
};

/* Indexed by direction, but for what is the same both ways. */
const volatile __u32 far_ifindex[2];
const volatile __u32 slow_ifindex[2];
const volatile __u32 loss_ppm[2];
const volatile __u32 dup_ppm;
const volatile __u32 reorder_ppm;

/* Losses are counted by the kernel, as drops of the clsact qdisc. */
__u64 duplicated[2];
__u64 reordered[2];

/* Not static: clang would split them in two, and the kernel refuses the BTF that comes of that. */
__s64 late_frames[2];
__u64 moved_ns[2]; /* when filler last went into the slow way, or a frame came out */

static __always_inline int happens(__u32 chance_ppm)
{
	return (__u64)bpf_get_prandom_u32() * PPM_ONE >> 32 < chance_ppm;
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
	if (happens(loss_ppm[way]))
		return TC_ACT_SHOT;

	if (happens(dup_ppm) && !bpf_clone_redirect(skb, far_ifindex[way], 0))
		__sync_fetch_and_add(&duplicated[way], 1);

	if (happens(reorder_ppm))
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
