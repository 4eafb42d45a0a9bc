// SPDX-License-Identifier: GPL-2.0-only
/*
 * Read this file first: tally_ingress(), then handle() in handle.bpf.h; each stage is the header
 * of its name.
 *
 * XDP on a node's ports: a contribution arrives, and is absorbed or completes its chunk.
 */
#define TALLY_HOOK "hook_xdp.bpf.h"
#include "maps.bpf.h"
#include "parse.bpf.h"
#include "handle.bpf.h"
#include "version.bpf.h"
#include "trace.bpf.h"
#include "leave.bpf.h"
#include "next.bpf.h"

char _license[] SEC("license") = "GPL";

/* One copy for each child of the job. */
static __always_inline enum tally_outcome send(struct xdp_md *ctx, const struct frame *f,
					       const struct tally_job *job,
					       enum tally_outcome outcome)
{
	__u32 key = job->group;
	void *group;

	if (outcome_action[outcome] != XDP_REDIRECT)
		return outcome;
	group = bpf_map_lookup_elem(&groups, &key);
	if (!group || bpf_redirect_map(group, 0, BPF_F_BROADCAST) != XDP_REDIRECT)
		return TALLY_NO_GROUP;
	return outcome;
}

SEC("xdp")
int tally_ingress(struct xdp_md *ctx)
{
	__u32 row = TALLY_ROW_NO_JOB, bytes;
	enum tally_outcome out;
	struct frame frame = {
		.bytes = 0
	}; /* Linux 5.15 refuses to spill what was never written */
	struct tracing tracing;
	int action;

	out = parse(ctx, &frame);
	bytes = frame.bytes;
	trace_begin(ctx, &tracing);
	if (out == TALLY_GO_ON)
		out = handle(ctx, &frame, send, &row);
	else if (out == TALLY_OTHER_VERSION)
		out = version_answer(ctx, offsets_pack(frame.offsets));
	trace_end(&tracing, out);
	action = leave(hook_port(ctx), row, out, bytes);
	if (action == XDP_PASS)
		next_program(ctx);
	return action;
}
