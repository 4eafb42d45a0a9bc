/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What we pass, another XDP program on the port may want to see: it is called as if it stood in
 * the stack's place, and its verdict counts. Without such ports, the verifier takes this out.
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
