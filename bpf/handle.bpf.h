/* SPDX-License-Identifier: GPL-2.0-only */
/* All that becomes of a message: the stages one after the other, the same for both hooks. */
#ifndef TALLY_HANDLE_BPF_H
#define TALLY_HANDLE_BPF_H

#include "admit.bpf.h"
#include "borrow.bpf.h"
#include "gate.bpf.h"
#include "gather.bpf.h"
#include "leave.bpf.h"
#include "reply.bpf.h"

/* Sends what is in the frame to the job's group, if the outcome says so. */
typedef enum tally_outcome (*send_function)(struct hook_context *ctx, const struct frame *f,
					    const struct tally_job *job,
					    enum tally_outcome outcome);

/* `ret_row`: which counts the outcome. */
static __always_inline enum tally_outcome handle(struct hook_context *ctx, struct frame *f,
						 send_function send, __u32 *ret_row)
{
	struct tally_slot_state books;
	struct tally_set set;
	struct tally_verdict verdict;
	struct tally_slot *slot;
	enum tally_outcome out;
	struct tally_job *job;

	out = gate_pass(ctx, f, &job, ret_row);
	if (out != TALLY_GO_ON)
		return out;

	if (!frame_set(f, &set))
		return TALLY_UNKNOWN_FLAG;
	out = admit(ctx, f, job, &set);
	if (out == TALLY_FORGED) {
		*ret_row = TALLY_ROW_NO_JOB; /* as what no gate lets in: none of the job's */
		return out;
	}
	if (out == TALLY_GO_ON && job->borrows) {
		out = TALLY_PASSED_UP;
		if (HOOK_BORROWS && constants.pool.slots)
			out = borrow(ctx, offsets_pack(f->offsets), job, &set);
		if (out != TALLY_NO_ROOM)
			return out;
		tenant_pay(ctx, offsets_pack(f->offsets), job->tenant, job->copies);
		return send(ctx, f, job, TALLY_NO_ROOM);
	}
	if (out == TALLY_GO_ON) {
		slot = slot_find(job, tally_le32_get(f->tally->seq));
		if (!slot)
			return TALLY_NO_SLOT;
		verdict = gather(slot, job, f, &set, &books);
		if (!tally_reply_is_due(verdict.outcome))
			return verdict.outcome;
		out = reply(ctx, f, job, slot, verdict, &set, &books);
	} else if (out == TALLY_SENT_DOWN && !turn_down(f)) {
		out = TALLY_EXPIRED;
	} else if (out == TALLY_SENT_DOWN && job->borrows) {
		borrow_release(ctx, offsets_pack(f->offsets), job);
	}
	if (outcome_action[out] == XDP_REDIRECT)
		tenant_pay(ctx, offsets_pack(f->offsets), job->tenant, job->copies);
	else if (outcome_action[out] == XDP_TX)
		tenant_pay(ctx, offsets_pack(f->offsets), job->tenant, 1);
	return send(ctx, f, job, out);
}

#endif
