// SPDX-License-Identifier: GPL-2.0-only
/*
 * XDP on a node's ports: a contribution arrives, and is absorbed or completes its chunk.
 * Read tally_ingress() first; each stage is the header of its name.
 */
#include "maps.bpf.h"
#include "parse.bpf.h"
#include "gate.bpf.h"
#include "tenant.bpf.h"
#include "gather.bpf.h"
#include "reply.bpf.h"
#include "trace.bpf.h"
#include "leave.bpf.h"
#include "next.bpf.h"

char _license[] SEC("license") = "GPL";

/*
 * May this message touch the job's slots, and which way does it go? What its tenant may send is
 * asked last: messages that are refused for another reason do not use it up.
 */
static __always_inline enum tally_outcome admit(const struct tally_job *job,
						const struct tally_header *h, __u32 bytes)
{
	struct tally_set set = tally_header_set(h);
	__u16 recipient = tally_le16_get(h->recipient);
	enum tally_outcome out;

	if (tally_le16_get(h->epoch) != job->epoch)
		return TALLY_WRONG_EPOCH;
	if (h->blocks > job->blocks_max)
		return TALLY_OVERSIZED;
	if (!tally_set_is_within(&set, &job->everyone))
		return TALLY_BAD_SET;
	if (recipient != TALLY_EVERYONE &&
	    (recipient >= TALLY_WORKERS_MAX || !tally_set_has(&job->everyone, recipient)))
		return TALLY_BAD_RANK;

	switch (h->kind) {
	case TALLY_CONTRIBUTION:
		if (tally_set_is_empty(&set))
			return TALLY_BAD_SET;
		return tenant_admit(job->tenant, h->priority, bytes);
	case TALLY_REPAIR:
		if (!tally_set_is_equal(&set, &job->everyone))
			return TALLY_BAD_SET;
		out = tenant_admit(job->tenant, h->priority, bytes);
		return out == TALLY_GO_ON && !job->root ? TALLY_PASSED_UP : out;
	case TALLY_RESULT:
	case TALLY_ASK:
		return job->root ? TALLY_BAD_KIND : TALLY_SENT_DOWN;
	default:
		return TALLY_BAD_KIND;
	}
}

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
