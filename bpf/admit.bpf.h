/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TALLY_ADMIT_BPF_H
#define TALLY_ADMIT_BPF_H

#include "maps.bpf.h"
#include "tenant.bpf.h"

/*
 * May this message come in? The tenant's limits are asked last, so that a message that is refused
 * for another reason does not use them up; and only for messages from workers. (Each case by
 * itself: the verifier would walk all that follows once more for an outcome kept beside the
 * tenant's.)
 */
static __always_inline enum tally_outcome admit(const struct tally_job *job,
						const struct tally_header *h,
						const struct tally_set *set, __u32 bytes)
{
	struct tally_role role = tally_job_role(job);
	enum tally_outcome out = tally_node_admit(&role, h, set);

	switch (out) {
	case TALLY_GO_ON:
		return tenant_admit(job->tenant, h->priority, bytes);
	case TALLY_PASSED_UP:
		out = tenant_admit(job->tenant, h->priority, bytes);
		return out == TALLY_GO_ON ? TALLY_PASSED_UP : out;
	default:
		return out;
	}
}

#endif
