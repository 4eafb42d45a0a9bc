/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes a frame longer or shorter, for another number of blocks. */
#ifndef TALLY_RESIZE_BPF_H
#define TALLY_RESIZE_BPF_H

#include "parse.bpf.h"

/* Sets the lengths of the frame, IP and UDP, and f's pointers anew. The message keeps its header.
 */
static __always_inline bool frame_resize(struct hook_context *ctx, struct frame *f, __u32 blocks)
{
	__u32 message = f->header_bytes + blocks * TALLY_BLOCK_BYTES;
	__u32 before = (void *)f->tally - (void *)f->eth;

	if (!hook_resize(ctx, f->bytes, before + message))
		return false;
	if (!frame_locate(ctx, f))
		return false;
	f->udp->len = bpf_htons(sizeof(*f->udp) + message);
	if (f->offsets.ipv6)
		f->ip6->payload_len = f->udp->len;
	else
		f->ip4->tot_len = bpf_htons(sizeof(*f->ip4) + sizeof(*f->udp) + message);
	return true;
}

#endif
