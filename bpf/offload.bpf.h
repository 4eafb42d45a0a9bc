/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TC sees a frame after the kernel has begun to think about it: it may be in several buffers, hold
 * several datagrams, or have a checksum that is known without being there. XDP sees none of this.
 */
#ifndef TALLY_OFFLOAD_BPF_H
#define TALLY_OFFLOAD_BPF_H

#include "checksum.bpf.h"
#include "hook_tc.bpf.h"
#include "parse.bpf.h"

enum {
	HEADERS_BYTES_MAX = sizeof(struct ethhdr) + sizeof(struct vlan_tag) +
			    sizeof(struct ipv6hdr) + sizeof(struct udphdr) +
			    sizeof(struct tally_header),
	FRAME_BYTES_MAX = HEADERS_BYTES_MAX + TALLY_PAYLOAD_MAX,
	CHECK_PROBE = 0x5555,
};

/* Brings the first bytes of the frame into one buffer, if they are not. */
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
		return TALLY_TRUNCATED; /* no memory to bring it together: it will come again */
	return out;
}

/*
 * The kernel's thoughts about the checksum of a frame that we have changed, made true again.
 *
 * It may have summed the whole frame itself (CHECKSUM_COMPLETE). It forgets this when the length
 * changes.
 *
 * Or a sender on this machine has left the checksum to whoever takes the frame out of it
 * (CHECKSUM_PARTIAL), who adds all to what stands in its place. Whether this is so no field tells;
 * but the helper that corrects checksums does not touch those that are still to be made. Then only
 * the sum over the pseudo-header must stand there.
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
