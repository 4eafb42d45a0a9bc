/* SPDX-License-Identifier: GPL-2.0-only */
/* Which job is this message of, and may it come in here? */
#ifndef TALLY_GATE_BPF_H
#define TALLY_GATE_BPF_H

#include "find.bpf.h"
#include "maps.bpf.h"
#include "parse.bpf.h"

/*
 * A switch keeps the members of VLANs apart by 802.1Q tags. To many switches a frame with another
 * tag is one without, so whoever is in the VLAN that they leave untagged could write any VLAN into
 * it: no ingress point has that of such a tag.
 */
static __always_inline __be16 vlan_in(__be16 proto, __be16 tag)
{
	_Static_assert(TALLY_VLAN_NONE == 0x0fff, "all bits of a VLAN");
	return proto == bpf_htons(ETH_P_8021Q) ? tag & bpf_htons(TALLY_VLAN_NONE)
					       : bpf_htons(TALLY_VLAN_NONE);
}

/* 0: untagged. */
static __always_inline __be16 vlan_of(const struct hook_context *ctx, const void *data,
				      const void *end, struct offsets offsets)
{
	const struct ethhdr *eth = data;
	const struct vlan_tag *tag = (const void *)(eth + 1);

	if (hook_has_tag(ctx))
		return vlan_in(hook_tag_proto(ctx), hook_tag(ctx));
	if (offsets.ip == sizeof(*eth) || (const void *)(tag + 1) > end)
		return 0;
	return vlan_in(eth->h_proto, tag->tci);
}

/*
 * Does this frame come from one of the tenant's sources? A global function (see offsets_find): the
 * verifier does not walk what follows once for each path through this.
 */
__noinline int source_is_known(struct hook_context *ctx, int packed_offsets, __u32 tenant)
{
	struct offsets offsets = offsets_unpack(packed_offsets);
	const void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u8 ip = offsets.ip; /* the verifier forgets bounds of what lies on the stack */
	struct tally_source_key key = {
		.bits = 8 * (sizeof(key) - sizeof(key.bits)),
		.tenant = bpf_htonl(tenant),
		.ifindex = bpf_htonl(hook_port(ctx)),
		.vlan = vlan_of(ctx, data, end, offsets),
		.ipv6 = offsets.ipv6,
	};
	const struct ipv6hdr *ip6 = data + ip;
	const struct iphdr *ip4 = data + ip;

	if (offsets.ipv6 && (const void *)(ip6 + 1) <= end)
		__builtin_memcpy(key.address, &ip6->saddr, 16);
	else if (!offsets.ipv6 && (const void *)(ip4 + 1) <= end)
		__builtin_memcpy(key.address, &ip4->saddr, 4);
	else
		return 0;
	if (bpf_map_lookup_elem(&sources, &key))
		return 1;
	key.vlan = bpf_htons(TALLY_VLAN_ANY);
	return !!bpf_map_lookup_elem(&sources, &key);
}

/*
 * Is this message for the node that serves the job, or from the job's root? Others may have jobs of
 * the same number.
 */
static __always_inline bool address_is_served(const struct frame *f, const struct tally_job *job)
{
	bool up = f->tally->kind == TALLY_CONTRIBUTION || f->tally->kind == TALLY_REPAIR;
	const __u32 *service = (const __u32 *)job->service;
	const __u32 *at;

	if (f->offsets.ipv6 != job->ipv6)
		return false;
	if (!f->offsets.ipv6)
		return (up ? f->ip4->daddr : f->ip4->saddr) == service[0];
	at = up ? f->ip6->daddr.in6_u.u6_addr32 : f->ip6->saddr.in6_u.u6_addr32;
	return !((at[0] ^ service[0]) | (at[1] ^ service[1]) | (at[2] ^ service[2]) |
		 (at[3] ^ service[3]));
}

/*
 * The job, and the row that counts what becomes of the message; of one that is refused that is none
 * of the job's: who forges messages is counted where these come in. Nearly all gates are in their
 * first bucket.
 */
static __always_inline enum tally_outcome gate_pass(struct hook_context *ctx, const struct frame *f,
						    struct tally_job **ret_job, __u32 *ret_row)
{
	struct tally_gate_key key = { .job = tally_le32_get(f->tally->job),
				      .ifindex = hook_port(ctx) };
	__u64 hash = tally_gate_hash(key, constants.gate_factor);
	__u64 gate = gate_in(tally_gate_first(hash), tally_gate_name(key, hash));
	struct tally_job *job = gate ? gate_job(gate, key.job) : NULL;

	*ret_row = TALLY_ROW_NO_JOB;
	if (!job) {
		gate = gate_find(key.job, key.ifindex);
		job = gate ? gate_job(gate, key.job) : NULL;
		if (!job)
			return TALLY_UNKNOWN_JOB;
	}
	*ret_job = job;
	if (!address_is_served(f, job))
		return TALLY_OTHER_ADDRESS;
	if (!tally_gate_port(gate) && !(gate & TALLY_GATE_ANYWHERE))
		return TALLY_OTHER_PORT;
	if (gate & TALLY_GATE_RESTRICTED &&
	    !source_is_known(ctx, offsets_pack(f->offsets), job->tenant))
		return TALLY_OTHER_SOURCE;
	*ret_row = tally_gate_row(gate);
	return TALLY_GO_ON;
}

#endif
