/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel can and has, asked without opening a node: for attaching, and for doctor. */
#ifndef TALLY_AGENT_DATAPLANE_PROBE_H
#define TALLY_AGENT_DATAPLANE_PROBE_H

#include <stdint.h>
#include <tally/maps.h>

#include "common/why.h"

/*
 * BPF_F_BROADCAST is a flag that the kernel looks at only when a program runs: one that does not
 * know it takes our programs, and then drops every result. So a program is run that does
 * nothing but ask for it. -EOPNOTSUPP: this kernel lacks it; -EPERM, -ENOSYS and others: BPF
 * programs may not or cannot be loaded here at all.
 */
int dataplane_probe_broadcast(void);

struct dataplane_copy {
	uint32_t job; /* its number */
	struct tally_child child;
};

/*
 * Where the results of all runs of the node that is pinned there go; *ret is to be freed. Takes no
 * lock: a run that begins or ends meanwhile may be there in part. -ENOENT: no node; -ESTALE: one
 * whose maps are those of another version.
 */
int dataplane_copies_read(const char *pin, struct dataplane_copy **ret, unsigned int *ret_count,
			  struct why *why);

#endif
