/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TALLY_ADMIT_BPF_H
#define TALLY_ADMIT_BPF_H

#include "maps.bpf.h"
#include "tenant.bpf.h"

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

#endif
