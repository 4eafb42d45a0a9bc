// SPDX-License-Identifier: GPL-2.0-only
/*
 * TC on those of a node's ports that XDP cannot serve: the stages of ingress.bpf.c, and what
 * leaves is cloned and sent by this program itself (docs/decisions/0005). Read tally_ingress_tc()
 * first.
 */
#define TALLY_HOOK "hook_tc.bpf.h"
#include "maps.bpf.h"
#include "parse.bpf.h"
#include "offload.bpf.h"
#include "gate.bpf.h"
#include "admit.bpf.h"
#include "gather.bpf.h"
#include "reply.bpf.h"
#include "copies.bpf.h"
#include "trace.bpf.h"
#include "leave.bpf.h"

char _license[] SEC("license") = "GPL";

/* One copy for each child of the job. */
static __always_inline enum tally_outcome fan_out(struct __sk_buff *ctx, int packed_offsets,
						  const struct tally_job *job,
						  enum tally_outcome outcome, int is_partial)
{
	__u32 key = job->group;

	if (!bpf_map_lookup_elem(&groups, &key))
		return TALLY_NO_GROUP;
	copies_send(ctx, packed_offsets, is_partial);
	return outcome;
}

/* Does what goes on from here differ from what came in? */
static __always_inline bool is_changed(enum tally_outcome out)
{
	return outcome_action[out] == XDP_REDIRECT || outcome_action[out] == XDP_TX ||
	       out == TALLY_SENT_UP || out == TALLY_FLUSHED_UP;
}

/* All stages. `row`: which counts the outcome. */
static __always_inline enum tally_outcome handle(struct __sk_buff *ctx, struct frame *f, __u32 *row)
{
	int packed_offsets = offsets_pack(f->offsets);
	struct tally_slot_state books;
	struct tally_verdict verdict;
	struct tally_slot *slot;
	enum tally_outcome out;
	struct tally_job *job;
	int is_partial;

	out = gate_pass(ctx, f, &job, row);
	if (out != TALLY_GO_ON)
		return out;

	out = admit(job, f->tally, f->bytes);
	if (out == TALLY_GO_ON) {
		slot = slot_find(job, tally_le32_get(f->tally->seq));
		if (!slot)
			return TALLY_NO_SLOT;
		verdict = gather(slot, job, f, &books);
		out = reply(ctx, f, job, slot, verdict, &books);
	}

	if (!is_changed(out))
		return out;
	is_partial = offload_settle(ctx, packed_offsets);
	if (is_partial < 0)
		return TALLY_STALE; /* no memory: the sender will ask again */
	if (outcome_action[out] == XDP_REDIRECT)
		out = fan_out(ctx, packed_offsets, job, out, is_partial);
	return out;
}

/* What XDP's action is called here. What we pass, the port's next TC program may want to see. */
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

	out = offload_parse(ctx, &frame);
	bytes = frame.bytes;
	trace_begin(ctx);
	if (out == TALLY_GO_ON)
		out = handle(ctx, &frame, &row);
	trace_end(out);
	return action_of(ctx, leave(row, out, bytes));
}
