/* SPDX-License-Identifier: GPL-2.0-only */
/* Tags made with rank keys. Global functions (see offsets_find): jobs without keys call none. */
#ifndef TALLY_KEY_BPF_H
#define TALLY_KEY_BPF_H

#include "address.bpf.h"
#include "maps.bpf.h"
#include "parse.bpf.h"

/* Is this contribution or repair from the rank that it says it is from? `group`: of its job. */
__noinline int key_matches(struct hook_context *ctx, int packed_offsets, __u32 group)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	const struct tally_key *key;
	struct tally_set set;
	__u32 index;

	if (!frame_locate(ctx, &f) || !frame_set(&f, &set) ||
	    tally_le16_get(f.tally->sender) >= TALLY_WORKERS_MAX)
		return 0;
	index = tally_rank_key_index(group, tally_le16_get(f.tally->sender));
	key = bpf_map_lookup_elem(&rank_keys, &index);
	return key && tally_node_is_from(f.tally, &set, key);
}

/* The tag, for whoever has the key of this index; a UDP checksum that was right stays right. */
static __always_inline void key_write(struct frame *f, __u32 index)
{
	const struct tally_key *key = bpf_map_lookup_elem(&rank_keys, &index);
	struct tally_set set;
	__u64 before, after;

	if (!key)
		return;
	frame_set(f, &set);
	before = tally_le64_get(f->tally->tag);
	after = tally_keyed_tag(f->tally, &set, key);
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
