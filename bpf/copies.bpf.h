/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TC has no broadcast: the frame is addressed to one child after the other, and a clone of it is
 * sent to each. This does what the devmap and fanout.bpf.c do for XDP, and counts the same.
 */
#ifndef TALLY_COPIES_BPF_H
#define TALLY_COPIES_BPF_H

#include <tally/reply.h>
#include "address.bpf.h"
#include "hook_tc.bpf.h"
#include "key.bpf.h"
#include "leave.bpf.h"
#include "resize.bpf.h"

enum copies {
	COPIES_ALL,
	COPIES_WITH_PAYLOAD,
	COPIES_WITHOUT,
};

/*
 * One copy, if `copies` includes this child. 0: there is no such child. A global function (see
 * offsets_find): the verifier walks its body once, and not 256 times in the loop around it.
 */
__noinline int copy_send(struct __sk_buff *ctx, int packed_offsets, __u32 index, int copies,
			 int is_partial)
{
	struct tally_child_key key = { .ifindex = 0, .index = index };
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	struct tally_child *child;

	if (!frame_locate(ctx, &f))
		return 0;
	key.job = tally_le32_get(f.tally->job);
	child = bpf_map_lookup_elem(&children, &key);
	if (!child)
		return 0;
	if (copies != COPIES_ALL &&
	    tally_gets_payload(tally_le16_get(f.tally->recipient), &child->below) !=
		    (copies == COPIES_WITH_PAYLOAD))
		return 1;
	if (f.offsets.ipv6 != child->ipv6) {
		leave(child->port, child->row, TALLY_NO_CHILD, hook_bytes(ctx, NULL, NULL));
		return 1;
	}
	if (!is_partial)
		checksum_readdress(&f, child);
	address(&f, child);
	if (is_partial)
		checksum_leave(&f);
	leave(child->port, child->row, TALLY_FANNED_OUT, hook_bytes(ctx, NULL, NULL));
	bpf_clone_redirect(ctx, child->port, 0);
	return 1;
}

/*
 * The frame's tag, for this child of a job with rank keys. Beside copy_send() and not called by it:
 * the stacks of calls within calls add up, and older kernels count them all. Called in any case:
 * with a branch around it, the verifier would walk the loop twice as often.
 */
__noinline int copy_key(struct __sk_buff *ctx, int packed_offsets, __u32 index, bool keyed)
{
	struct tally_child_key key = { .ifindex = 0, .index = index };
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	struct tally_child *child;

	if (!keyed || !frame_locate(ctx, &f))
		return 0;
	key.job = tally_le32_get(f.tally->job);
	child = bpf_map_lookup_elem(&children, &key);
	if (child && child->keyed)
		key_write(&f, child->key);
	return 0;
}

/* false: the job has no children at all. */
static __always_inline bool copies_of(struct __sk_buff *ctx, int packed_offsets, enum copies copies,
				      int is_partial, bool keyed)
{
	__u32 index;

	for (index = 0; index < TALLY_WORKERS_MAX; index++) {
		copy_key(ctx, packed_offsets, index, keyed);
		if (!copy_send(ctx, packed_offsets, index, copies, is_partial))
			break;
	}
	return index;
}

/* Takes the payload away from the frame. A global function, for a stack of its own. 0: not done. */
__noinline int payload_cut(struct __sk_buff *ctx, int packed_offsets, int is_partial)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };

	if (!frame_locate(ctx, &f) || !frame_resize(ctx, &f, 0))
		return 0;
	tally_copy_cut(f.tally);
	checksum_frame(&f, 0, is_partial);
	return 1;
}

/*
 * A copy to each child of the job. Children that do not get the payload come last, since all copies
 * are made of the one frame. `is_partial`: what offload_settle() returned. A global function (see
 * offsets_find).
 */
__noinline int copies_send(struct __sk_buff *ctx, int packed_offsets, int is_partial, bool keyed)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };

	if (!frame_locate(ctx, &f))
		return 0;
	if (!f.tally->blocks || tally_le16_get(f.tally->recipient) == TALLY_EVERYONE) {
		copies_of(ctx, packed_offsets, COPIES_ALL, is_partial, keyed);
		return 0;
	}
	if (copies_of(ctx, packed_offsets, COPIES_WITH_PAYLOAD, is_partial, keyed) &&
	    payload_cut(ctx, packed_offsets, is_partial))
		copies_of(ctx, packed_offsets, COPIES_WITHOUT, is_partial, keyed);
	return 0;
}

#endif
