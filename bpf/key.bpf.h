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
static __always_inline bool place_matches(struct hook_context *ctx, struct offsets offsets,
					  const struct tally_rank *rank)
{
	const void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u8 ip = offsets.ip; /* the verifier forgets bounds of what lies on the stack */
	const struct ipv6hdr *ip6 = data + ip;
	const struct iphdr *ip4 = data + ip;
	__u32 port = hook_port(ctx);
	const __u32 *from = ip6->saddr.in6_u.u6_addr32;

	/* An IPv4 header is shorter, but the headers behind it make up for that. */
	if ((const void *)(ip6 + 1) > end)
		return false;
	if (rank->port && rank->port != port && bpf_map_lookup_elem(&at_ports, &port))
		return false;
	if (!offsets.ipv6)
		return ip4->saddr == rank->ip4;
	return !((from[0] ^ rank->ip6[0]) | (from[1] ^ rank->ip6[1]) | (from[2] ^ rank->ip6[2]) |
		 (from[3] ^ rank->ip6[3]));
}

static __always_inline bool key_matches(struct hook_context *ctx, struct offsets offsets,
					const struct tally_set *set, const struct tally_rank *rank)
{
	struct frame f = { .offsets = offsets };

	return frame_locate(ctx, &f) && tally_node_is_from(f.tally, set, &rank->key);
}

/* Is this what comes down to this very node, as far as a node of that job has an address here? */
static __always_inline bool is_addressed(struct hook_context *ctx, struct offsets offsets,
					 const struct tally_rank *node)
{
	const void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u8 ip = offsets.ip; /* the verifier forgets bounds of what lies on the stack */
	const struct ipv6hdr *ip6 = data + ip;
	const struct iphdr *ip4 = data + ip;
	const __u32 *to = ip6->daddr.in6_u.u6_addr32;

	if (!node->ip6[0] || (const void *)(ip6 + 1) > end)
		return true;
	if (!offsets.ipv6)
		return ip4->daddr == node->ip4;
	return !((to[0] ^ node->ip6[0]) | (to[1] ^ node->ip6[1]) | (to[2] ^ node->ip6[2]) |
		 (to[3] ^ node->ip6[3]));
}

enum {
	RANK_FORGED = 0,
	RANK_SPEAKS,
	RANK_UNKNOWN, /* for whom it goes on to, to judge */
};

/* What comes down in a job without keys and places: is it for the workers below this node? */
static __always_inline int down_is_addressed(struct hook_context *ctx, struct offsets offsets,
					     const struct tally_job *job)
{
	__u32 index = tally_rank_index(job->group, TALLY_NODE_KEY);
	const struct tally_rank *node = bpf_map_lookup_elem(&ranks, &index);

	return node && is_addressed(ctx, offsets, node) ? RANK_SPEAKS : RANK_UNKNOWN;
}

/*
 * Is this message, with this set, of the rank or node that it says it is of? A rank that does not
 * come through here has no key here; and what goes down to another address is for a worker, by its
 * key, or for another node.
 */
__noinline int rank_matches(struct hook_context *ctx, int packed_offsets,
			    const struct tally_job *job, const struct tally_set *set,
			    __u32 kind_and_sender)
{
	__u32 kind = kind_and_sender >> 16, sender = kind_and_sender & 0xffff, index;
	struct offsets offsets = offsets_unpack(packed_offsets);
	const struct tally_rank *rank;
	struct tally_role role;

	if (!job || !set)
		return RANK_FORGED;
	if (!(job->keyed | job->bound))
		return kind == TALLY_CONTRIBUTION || kind == TALLY_REPAIR
			       ? RANK_SPEAKS
			       : down_is_addressed(ctx, offsets, job);
	index = tally_node_signer(kind, sender, set);
	if (index >= TALLY_NODE_KEY + job->node_key)
		return RANK_FORGED;
	role = tally_job_role(job);
	if (!tally_node_has_key(&role, index))
		return RANK_UNKNOWN;
	index = tally_rank_index(job->group, index);
	rank = bpf_map_lookup_elem(&ranks, &index);
	if (!rank || (job->bound && !place_matches(ctx, offsets, rank)))
		return RANK_FORGED;
	if (kind != TALLY_CONTRIBUTION && kind != TALLY_REPAIR && !is_addressed(ctx, offsets, rank))
		return RANK_UNKNOWN;
	return !job->keyed || key_matches(ctx, offsets, set, rank) ? RANK_SPEAKS : RANK_FORGED;
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

static __always_inline bool sum_is_of_one(const struct frame *f, __u32 sender)
{
	struct tally_set set;

	return frame_set(f, &set) && tally_node_signs(sender, &set) == sender;
}

__noinline int key_apply(struct hook_context *ctx, int packed_offsets, __u32 index)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };

	if (frame_locate(ctx, &f))
		key_write(&f, index);
	return 0;
}

/*
 * The tag of a reply, if it is `keyed`: `index` is that of the rank in whose name it leaves, or
 * that it goes back to. A sum of several ranks that goes up has the node key instead.
 */
__noinline int key_finish(struct hook_context *ctx, int packed_offsets, bool keyed, __u32 index)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	__u32 sender;

	if (!keyed || !frame_locate(ctx, &f))
		return 0;
	sender = tally_le16_get(f.tally->sender);
	if (f.tally->kind == TALLY_CONTRIBUTION && !sum_is_of_one(&f, sender))
		index += TALLY_NODE_KEY - sender;
	key_write(&f, index);
	return 0;
}

#endif
