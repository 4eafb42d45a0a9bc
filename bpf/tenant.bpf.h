/* SPDX-License-Identifier: GPL-2.0-only */
/* May a job's tenant send this now, and what does it pay? Clock and lock are used only for tenants
 * with a limit. */
#ifndef TALLY_TENANT_BPF_H
#define TALLY_TENANT_BPF_H

#include "maps.bpf.h"
#include "parse.bpf.h"

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

static __always_inline enum tally_outcome tenant_admit(__u32 tenant, __u32 bytes)
{
	const struct tally_tenant *t = bpf_map_lookup_elem(&tenants, &tenant);

	if (!t || (t->limited && !tenant_spend(tenant, bytes)))
		return TALLY_OVER_RATE;
	return TALLY_GO_ON;
}

/*
 * A message of the root makes copies leave that its tenant pays for. It needs no tokens, so that
 * sums are finished before more comes in; but a tenant that owes a burst gets none. Else whoever
 * forged such messages would make copies leave for ever. A global function (see offsets_find).
 */
__noinline int tenant_owes(__u32 tenant)
{
	struct tally_tenant *t = bpf_map_lookup_elem(&tenants, &tenant);
	__u64 now_ns;
	bool owes;

	if (!t || !t->limited)
		return 0;
	now_ns = bpf_ktime_get_ns();
	bpf_spin_lock(&t->lock);
	owes = tally_buckets_owe(&t->packets, &t->bytes, now_ns);
	bpf_spin_unlock(&t->lock);
	return owes;
}

/*
 * What leaves because of a message is paid for, and never held back: a sum may be finished. Only
 * the recipient's copy has the payload, if there is one. A global function (see offsets_find).
 */
__noinline int tenant_pay(struct hook_context *ctx, int packed_offsets, __u32 tenant, __u32 copies)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	struct tally_tenant *t = bpf_map_lookup_elem(&tenants, &tenant);
	__u64 now_ns, payload, bytes;

	if (!t || !t->limited || !frame_locate(ctx, &f))
		return 0;
	payload = f.tally->blocks * TALLY_BLOCK_BYTES;
	bytes = copies * (f.bytes - payload);
	bytes += tally_le16_get(f.tally->recipient) == TALLY_EVERYONE ? copies * payload : payload;
	now_ns = bpf_ktime_get_ns();
	bpf_spin_lock(&t->lock);
	tally_buckets_charge(&t->packets, &t->bytes, copies, bytes, now_ns);
	bpf_spin_unlock(&t->lock);
	return 0;
}

#endif
