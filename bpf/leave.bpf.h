/* SPDX-License-Identifier: GPL-2.0-only */
/* The one exit: counts the outcome, of its job and of its port, and returns its action. */
#ifndef TALLY_LEAVE_BPF_H
#define TALLY_LEAVE_BPF_H

#include "maps.bpf.h"

static const __u8 outcome_action[] = {
#define OUTCOME_ACTION(name, action, meaning) [TALLY_##name] = (action),
	TALLY_OUTCOMES(OUTCOME_ACTION)
#undef OUTCOME_ACTION
};

/* A global function (see offsets_find). 1: that is all, the packet is in no row. */
__noinline int leave_port(__u32 port, __u32 row, __u32 outcome, __u32 frame_bytes)
{
	struct tally_at_port *at = bpf_map_lookup_elem(&at_ports, &port);
	bool apart = row == TALLY_ROW_NO_JOB;
	struct tally_counters *counted;

	if (!at || outcome >= TALLY_OUTCOME_COUNT)
		return 0;
	counted = apart ? &at->apart : &at->jobs;
	counted->outcome[outcome].packet++;
	counted->outcome[outcome].byte += frame_bytes;
	return apart;
}

/* `port`: that it came in by, or leaves by; 0: none is to count it. */
static __always_inline int leave(__u32 port, __u32 row, enum tally_outcome outcome,
				 __u32 frame_bytes)
{
	struct tally_counters *counted = bpf_map_lookup_elem(&counters, &row);
	__u32 index = outcome;

	if (!counted || index >= TALLY_OUTCOME_COUNT)
		return XDP_ABORTED;
	if (row >= TALLY_ROW_PORTS || !leave_port(port, row, index, frame_bytes)) {
		counted->outcome[index].packet++;
		counted->outcome[index].byte += frame_bytes;
	}
	return outcome_action[index];
}

#endif
