/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets that this program passes go to the other XDP program on the port, if there is one, and
 * its action counts. On nodes without such ports, the verifier removes this as dead code.
 */
#ifndef TALLY_NEXT_BPF_H
#define TALLY_NEXT_BPF_H

#include "constants.bpf.h"
#include "hook_xdp.bpf.h"
#include "maps.bpf.h"

/* Returns only if there is no such program. */
static __always_inline void next_program(struct xdp_md *ctx)
{
	__u32 port = ctx->ingress_ifindex, *index;

	if (!constants.shared)
		return;
	index = bpf_map_lookup_elem(&ports, &port);
	if (index)
		bpf_tail_call(ctx, &next, *index);
}

#endif
