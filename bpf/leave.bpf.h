/* SPDX-License-Identifier: GPL-2.0-only */
/* The one exit: counts the outcome and returns its action. */
#ifndef TALLY_LEAVE_BPF_H
#define TALLY_LEAVE_BPF_H

#include "maps.bpf.h"

static const __u8 outcome_action[] = {
#define OUTCOME_ACTION(name, action, meaning) [TALLY_##name] = (action),
	TALLY_OUTCOMES(OUTCOME_ACTION)
#undef OUTCOME_ACTION
};

static __always_inline int leave(__u32 row, enum tally_outcome outcome, __u32 frame_bytes)
{
	struct tally_counters *counted = bpf_map_lookup_elem(&counters, &row);
	__u32 index = outcome;

	if (!counted || index >= TALLY_OUTCOME_COUNT)
		return XDP_ABORTED;
	counted->outcome[index].packet++;
	counted->outcome[index].byte += frame_bytes;
	return outcome_action[index];
}

#endif
