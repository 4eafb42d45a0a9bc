/* SPDX-License-Identifier: GPL-2.0-only */
/* The one exit: counts the outcome and turns it into its action. */
#ifndef TALLY_LEAVE_BPF_H
#define TALLY_LEAVE_BPF_H

#include "maps.bpf.h"

static const __u8 outcome_action[] = {
#define OUTCOME_ACTION(name, action, meaning) [TALLY_##name] = (action),
	TALLY_OUTCOMES(OUTCOME_ACTION)
#undef OUTCOME_ACTION
};

static __always_inline int leave(enum tally_outcome outcome, __u32 frame_bytes)
{
	__u32 key = outcome;
	struct tally_counter *c = bpf_map_lookup_elem(&counters, &key);

	if (!c || key >= TALLY_OUTCOME_COUNT)
		return XDP_ABORTED;
	c->packet++;
	c->byte += frame_bytes;
	return outcome_action[key];
}

#endif
