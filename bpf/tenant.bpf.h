/* SPDX-License-Identifier: GPL-2.0-only */
/* May a job's tenant send this now? Clock and lock are used only for tenants with a limit. */
#ifndef TALLY_TENANT_BPF_H
#define TALLY_TENANT_BPF_H

#include "maps.bpf.h"

/* A global function (see offsets_find). 0: over its rate. */
__noinline int tenant_spend(__u32 tenant, __u32 bytes)
{
	struct tally_tenant *t = bpf_map_lookup_elem(&tenants, &tenant);
	__u64 now_ns = bpf_ktime_get_ns();
	bool within;

	if (!t)
		return 0;
	bpf_spin_lock(&t->lock);
	within = tally_buckets_take(&t->packets, &t->bytes, bytes, now_ns);
	bpf_spin_unlock(&t->lock);
	return within;
}

static __always_inline enum tally_outcome tenant_admit(__u32 tenant, __u8 priority, __u32 bytes)
{
	const struct tally_tenant *t = bpf_map_lookup_elem(&tenants, &tenant);

	if (!t || priority > t->priority)
		return TALLY_OVER_PRIORITY;
	if (t->limited && !tenant_spend(tenant, bytes))
		return TALLY_OVER_RATE;
	return TALLY_GO_ON;
}

#endif
