/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TALLY_ADMIT_BPF_H
#define TALLY_ADMIT_BPF_H

#include "key.bpf.h"
#include "maps.bpf.h"
#include "tenant.bpf.h"

/* The tenant pays for what goes on to the root, too. */
static __always_inline enum tally_outcome pass_up(const struct tally_job *job, __u32 bytes)
{
	enum tally_outcome out = tenant_admit(job->tenant, bytes);

	return out == TALLY_GO_ON ? TALLY_PASSED_UP : out;
}

/*
 * May this message come in? The tenant's limits are asked last, so that a message that is refused
 * for another reason does not use them up; messages of the root need less. (Each case by itself:
 * the verifier would walk all that follows once more for an outcome kept beside the tenant's.)
 */
static __always_inline enum tally_outcome admit(struct hook_context *ctx, const struct frame *f,
						const struct tally_job *job,
						const struct tally_set *set)
{
	struct tally_role role = tally_job_role(job);
	const struct tally_header *h = f->tally;
	enum tally_outcome out = tally_node_admit(&role, h, set);
	__u32 bytes = f->bytes;
	int speaks;

	switch (out) {
	case TALLY_GO_ON:
		if (job->keyed | job->bound) {
			speaks = rank_matches(ctx, offsets_pack(f->offsets), job, set,
					      h->kind << 16 | tally_le16_get(h->sender));
			if (speaks == RANK_UNKNOWN)
				return TALLY_PASSED_UP;
			if (speaks == RANK_FORGED)
				return TALLY_FORGED;
		}
		return tenant_admit(job->tenant, bytes);
	case TALLY_PASSED_UP:
		speaks = rank_matches(ctx, offsets_pack(f->offsets), job, set,
				      h->kind << 16 | tally_le16_get(h->sender));
		if (speaks == RANK_FORGED)
			return TALLY_FORGED;
		return speaks == RANK_UNKNOWN ? TALLY_PASSED_UP : pass_up(job, bytes);
	case TALLY_SENT_DOWN:
		speaks = rank_matches(ctx, offsets_pack(f->offsets), job, set, h->kind << 16);
		if (speaks == RANK_UNKNOWN)
			return TALLY_PASSED_DOWN;
		if (speaks == RANK_FORGED)
			return TALLY_FORGED;
		return tenant_owes(job->tenant) ? TALLY_OVER_RATE : TALLY_SENT_DOWN;
	default:
		return out;
	}
}

#endif
