/* SPDX-License-Identifier: GPL-2.0-only */
/* Who speaks: by its rank key, and by where it is. Global functions (see offsets_find). */
#ifndef TALLY_KEY_BPF_H
#define TALLY_KEY_BPF_H

#include "address.bpf.h"
#include "maps.bpf.h"
#include "parse.bpf.h"

/*
 * Is this from where the rank is? A port that is none of the node's says nothing: a bond's frames
 * come in by what it is made of.
 */
static __always_inline bool place_matches(struct hook_context *ctx, const struct frame *f,
					  const struct tally_rank *rank)
{
	__u32 port = hook_port(ctx);
	const __u32 *from;

	if (rank->port && rank->port != port && bpf_map_lookup_elem(&at_ports, &port))
		return false;
	if (!f->offsets.ipv6)
		return f->ip4->saddr == rank->ip4;
	from = f->ip6->saddr.in6_u.u6_addr32;
	return !((from[0] ^ rank->ip6[0]) | (from[1] ^ rank->ip6[1]) | (from[2] ^ rank->ip6[2]) |
		 (from[3] ^ rank->ip6[3]));
}

/*
 * Is this contribution or repair from the rank that it says it is from? `group`: of its job, which
 * is `keyed`, `bound`, or both.
 */
__noinline int rank_matches(struct hook_context *ctx, int packed_offsets, __u32 group, int keyed,
			    int bound)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	const struct tally_rank *rank;
	struct tally_set set;
	__u32 index;

	if (!frame_locate(ctx, &f) || !frame_set(&f, &set) ||
	    tally_le16_get(f.tally->sender) >= TALLY_WORKERS_MAX)
		return 0;
	index = tally_rank_index(group, tally_le16_get(f.tally->sender));
	rank = bpf_map_lookup_elem(&ranks, &index);
	return rank && (!bound || place_matches(ctx, &f, rank)) &&
	       (keyed ? tally_node_is_from(f.tally, &set, &rank->key)
		      : tally_node_is_of_one(f.tally, &set));
}

/* The tag, for whoever has the key of this index; a UDP checksum that was right stays right. */
static __always_inline void key_write(struct frame *f, __u32 index)
{
	const struct tally_rank *rank = bpf_map_lookup_elem(&ranks, &index);
	struct tally_set set;
	__u64 before, after;

	if (!rank)
		return;
	frame_set(f, &set);
	before = tally_le64_get(f->tally->tag);
	after = tally_keyed_tag(f->tally, &set, &rank->key);
	f->tally->tag = tally_le64(after);
	if (f->udp->check)
		f->udp->check = checksum_replace(f->udp->check, (const __u16 *)&before,
						 (const __u16 *)&after, sizeof(after) / 2);
}

__noinline int key_apply(struct hook_context *ctx, int packed_offsets, __u32 index)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };

	if (frame_locate(ctx, &f))
		key_write(&f, index);
	return 0;
}

#endif
