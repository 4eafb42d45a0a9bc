/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A worker of another version of the protocol hears which version this node speaks: all versions
 * have magic, version, kind and job at the same places.
 */
#ifndef TALLY_VERSION_BPF_H
#define TALLY_VERSION_BPF_H

#include "gate.bpf.h"
#include "reply.bpf.h"
#include "tenant.bpf.h"

/*
 * The bytes of a frame that is answered; 0: of no job here. A global function (see offsets_find),
 * and beside version_write(): the stacks of calls within calls add up.
 */
__noinline int version_is_answered(struct hook_context *ctx, int packed_offsets)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	struct tally_job *job;
	__u32 row;

	if (!frame_locate(ctx, &f) || f.tally->kind != TALLY_CONTRIBUTION ||
	    gate_pass(ctx, &f, &job, &row) != TALLY_GO_ON)
		return 0;
	return f.bytes;
}

/* A global function (see offsets_find). The outcome; OTHER_VERSION: the frame is as it came. */
__noinline int version_write(struct hook_context *ctx, int packed_offsets)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };

	if (!frame_locate(ctx, &f))
		return TALLY_OTHER_VERSION;
	f.header_bytes = sizeof(*f.tally);
	if (!frame_resize(ctx, &f, 0))
		return TALLY_OTHER_VERSION;
	*f.tally = tally_reply_version(f.tally);
	turn_to_sender(&f);
	checksum_frame(&f, 0, false);
	return TALLY_OLD_VERSION;
}

/* No tenant pays: anybody can send such messages. So there are only so many answers a second. */
static __always_inline enum tally_outcome version_answer(struct hook_context *ctx,
							 int packed_offsets)
{
	__u32 bytes = version_is_answered(ctx, packed_offsets);

	if (!bytes || !tenant_spend(TALLY_TENANT_ANSWERS, bytes))
		return TALLY_OTHER_VERSION;
	return version_write(ctx, packed_offsets);
}

#endif
