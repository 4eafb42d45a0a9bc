// SPDX-License-Identifier: GPL-2.0-only
/*
 * XDP on a node's ports: a contribution arrives, and is absorbed or completes its chunk.
 * Read tally_ingress() first; each stage is the header of its name.
 */
#define TALLY_HOOK "hook_xdp.bpf.h"
#include "maps.bpf.h"
#include "parse.bpf.h"
#include "gate.bpf.h"
#include "admit.bpf.h"
#include "gather.bpf.h"
#include "reply.bpf.h"
#include "trace.bpf.h"
#include "leave.bpf.h"
#include "next.bpf.h"

char _license[] SEC("license") = "GPL";

/* One copy for each child of the job. */
static __always_inline enum tally_outcome fan_out(const struct tally_job *job,
						  enum tally_outcome outcome)
{
	__u32 key = job->group;
	void *group = bpf_map_lookup_elem(&groups, &key);

	if (!group || bpf_redirect_map(group, 0, BPF_F_BROADCAST) != XDP_REDIRECT)
		return TALLY_NO_GROUP;
	return outcome;
}

/* All stages. `row`: which counts the outcome. */
static __always_inline enum tally_outcome handle(struct xdp_md *ctx, struct frame *f, __u32 *row)
{
	struct tally_slot_state books;
	struct tally_verdict verdict;
	struct tally_slot *slot;
	enum tally_outcome out;
	struct tally_job *job;

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

	if (outcome_action[out] == XDP_REDIRECT)
		out = fan_out(job, out);
	return out;
}

SEC("xdp")
int tally_ingress(struct xdp_md *ctx)
{
	__u32 row = TALLY_ROW_NO_JOB, bytes;
	enum tally_outcome out;
	struct frame frame = { .bytes = 0 }; /* 5.15 forbids to keep what was never written */
	int action;

	out = parse(ctx, &frame);
	bytes = frame.bytes;
	trace_begin(ctx);
	if (out == TALLY_GO_ON)
		out = handle(ctx, &frame, &row);
	trace_end(out);
	action = leave(row, out, bytes);
	if (action == XDP_PASS)
		next_program(ctx);
	return action;
}
