// SPDX-License-Identifier: GPL-2.0-only
/*
 * TC on those of a node's ports that XDP cannot serve (docs/decisions/0005). The stages are the
 * same; copies are cloned and sent by this program itself. Read tally_ingress_tc() first.
 */
#define TALLY_HOOK "hook_tc.bpf.h"
#include "maps.bpf.h"
#include "parse.bpf.h"
#include "offload.bpf.h"
#include "handle.bpf.h"
#include "version.bpf.h"
#include "copies.bpf.h"
#include "trace.bpf.h"
#include "leave.bpf.h"

char _license[] SEC("license") = "GPL";

/* Was the frame changed, or will its copies be? */
static __always_inline bool is_changed(enum tally_outcome out)
{
	return outcome_action[out] == XDP_REDIRECT || outcome_action[out] == XDP_TX ||
	       out == TALLY_SENT_UP || out == TALLY_FLUSHED_UP;
}

/* One copy for each child of the job. */
static __always_inline enum tally_outcome send(struct __sk_buff *ctx, const struct frame *f,
					       const struct tally_job *job,
					       enum tally_outcome outcome)
{
	int packed_offsets = offsets_pack(f->offsets);
	__u32 key = job->group;
	int is_partial;

	if (!is_changed(outcome))
		return outcome;
	is_partial = offload_settle(ctx, packed_offsets);
	if (is_partial < 0)
		return TALLY_STALE; /* no memory: the sender will send again */
	if (outcome_action[outcome] != XDP_REDIRECT)
		return outcome;
	if (!bpf_map_lookup_elem(&groups, &key))
		return TALLY_NO_GROUP;
	copies_send(ctx, packed_offsets, is_partial, job->keyed);
	return outcome;
}

/* TC's name for an XDP action. The port's next TC program sees what this one passes. */
static __always_inline int action_of(struct __sk_buff *ctx, int action)
{
	switch (action) {
	case XDP_PASS:
		return TC_ACT_UNSPEC;
	case XDP_TX:
		return bpf_redirect(ctx->ifindex, 0);
	case XDP_REDIRECT:
		return TC_ACT_STOLEN; /* its copies are on their way */
	default:
		return TC_ACT_SHOT;
	}
}

SEC("tc")
int tally_ingress_tc(struct __sk_buff *ctx)
{
	__u32 row = TALLY_ROW_NO_JOB, bytes;
	enum tally_outcome out;
	struct frame frame = { .bytes = 0 };
	struct tracing tracing;

	out = offload_parse(ctx, &frame);
	bytes = frame.bytes;
	trace_begin(ctx, &tracing);
	if (out == TALLY_GO_ON)
		out = handle(ctx, &frame, send, &row);
	else if (out == TALLY_OTHER_VERSION)
		out = version_answer(ctx, offsets_pack(frame.offsets));
	if (out == TALLY_OLD_VERSION && offload_settle(ctx, offsets_pack(frame.offsets)) < 0)
		out = TALLY_STALE; /* no memory: the sender will send again */
	trace_end(&tracing, out);
	return action_of(ctx, leave(hook_port(ctx), row, out, bytes));
}
