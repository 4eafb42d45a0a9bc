/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TC sees a frame after the kernel's offloads: the frame may lie in several buffers, hold several
 * datagrams, or have a checksum that is not written yet. XDP sees frames before all this.
 */
#ifndef TALLY_OFFLOAD_BPF_H
#define TALLY_OFFLOAD_BPF_H

#include "checksum.bpf.h"
#include "hook_tc.bpf.h"
#include "parse.bpf.h"

enum {
	HEADERS_BYTES_MAX = sizeof(struct ethhdr) + sizeof(struct vlan_tag) +
			    sizeof(struct ipv6hdr) + sizeof(struct udphdr) +
			    sizeof(struct tally_header) + sizeof(struct tally_more),
	FRAME_BYTES_MAX = HEADERS_BYTES_MAX + TALLY_PAYLOAD_MAX,
	CHECK_PROBE = 0x5555,
};

/* Brings the first bytes of the frame into one buffer, if they are not in one. */
static __always_inline void offload_pull(struct __sk_buff *ctx, __u32 bytes)
{
	if (bytes > ctx->len)
		bytes = ctx->len;
	if ((void *)(long)ctx->data + bytes > (void *)(long)ctx->data_end)
		bpf_skb_pull_data(ctx, bytes);
}

/* parse(), for a frame as TC gets it. */
static __always_inline enum tally_outcome offload_parse(struct __sk_buff *ctx, struct frame *f)
{
	enum tally_outcome out;

	offload_pull(ctx, HEADERS_BYTES_MAX);
	out = parse_header(ctx, f);
	if (out != TALLY_GO_ON)
		return out;
	if (ctx->gso_size)
		return TALLY_COALESCED;
	offload_pull(ctx, FRAME_BYTES_MAX);
	out = parse(ctx, f);
	if (out == TALLY_GO_ON && (void *)f->word + f->tally->blocks * TALLY_BLOCK_BYTES > f->end)
		return TALLY_TRUNCATED; /* no memory for one buffer; the sender will send again */
	return out;
}

/*
 * Makes what the kernel knows about the checksum of a frame true again, after a change.
 *
 * The kernel may have summed the whole frame (CHECKSUM_COMPLETE). A change of length makes it
 * forget that sum.
 *
 * Or the sender is on this machine and has left the checksum to the port that sends the frame
 * (CHECKSUM_PARTIAL): the sum over the pseudo-header must stand in its place then. No field tells
 * whether this is so; but the helper that corrects checksums does not touch such a checksum.
 *
 * A global function (see offsets_find). 1: the kernel still makes the checksum; 0: it is there;
 * negative: the frame is of no use.
 */
__noinline int offload_settle(struct __sk_buff *ctx, int packed_offsets)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	__u32 at = f.offsets.udp + offsetof(struct udphdr, check), bytes = ctx->len;
	bool is_partial;
	__u16 check;

	if ((__s64)bpf_csum_update(ctx, 0) >= 0 &&
	    (bpf_skb_change_tail(ctx, bytes + 1, 0) || bpf_skb_change_tail(ctx, bytes, 0)))
		return -1;
	if (!frame_locate(ctx, &f))
		return -1;
	check = f.udp->check;
	f.udp->check = CHECK_PROBE;
	if (bpf_l4_csum_replace(ctx, at, 0, 1, sizeof(check)) || !frame_locate(ctx, &f))
		return -1;
	is_partial = f.udp->check == CHECK_PROBE;
	f.udp->check = check;
	if (is_partial)
		checksum_leave(&f);
	return is_partial;
}

#endif
