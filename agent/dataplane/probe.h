/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this kernel can, asked of it without a node: for attaching, and for tallyctl doctor. */
#ifndef TALLY_AGENT_DATAPLANE_PROBE_H
#define TALLY_AGENT_DATAPLANE_PROBE_H

/*
 * BPF_F_BROADCAST is a flag that the kernel looks at only when a program runs: one that does not
 * know it takes our programs, and then drops every result. So a program is run that does
 * nothing but ask for it. -EOPNOTSUPP: this kernel lacks it; -EPERM, -ENOSYS and others: BPF
 * programs may not or cannot be loaded here at all.
 */
int dataplane_probe_broadcast(void);

#endif
