/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The frame that leaves, made of the one that came: a result, an ask or a bigger contribution.
 * tally/reply.h decides; here the frame is resized, filled and addressed.
 */
#ifndef TALLY_REPLY_BPF_H
#define TALLY_REPLY_BPF_H

#include "checksum.bpf.h"
#include "gather.bpf.h"
#include "constants.bpf.h"
#include "key.bpf.h"
#include "resize.bpf.h"
#include <tally/reply.h>

/* Copies the slot's sum into the frame; false: the reply is stale. */
static __always_inline bool slot_take(struct tally_slot *slot, struct frame *f,
				      const struct tally_reply *r, struct tally_slot_state *books)
{
	bool taken;

	bpf_spin_lock(&slot->lock);
	taken = tally_reply_take(r, &slot->state, books);
	if (taken)
		words_WORDS_LOAD(slot->word, f->word, r->blocks, f->end);
	bpf_spin_unlock(&slot->lock);
	return taken;
}

/* A result may tell its workers who is there of an older chunk. */
static __always_inline void news_add(const struct frame *f, const struct tally_job *job,
				     struct tally_reply *r, struct tally_slot_state *books)
{
	__u16 about = tally_reply_about(r, books, f->tally);
	__u32 seq = tally_le32_get(f->tally->seq) - about;
	struct tally_slot *older;

	if (!about)
		return;
	older = slot_find(job, seq);
	if (!older)
		return;
	bpf_spin_lock(&older->lock);
	tally_reply_news(r, books, about, &older->state, seq, &job->everyone);
	bpf_spin_unlock(&older->lock);
}

/* From the service address. fanout.bpf.c or copies.bpf.h addresses each copy. */
static __always_inline void turn_to_group(struct frame *f)
{
	f->udp->source = f->udp->dest;
	if (f->offsets.ipv6) {
		f->ip6->saddr = f->ip6->daddr;
		f->ip6->hop_limit = IPDEFTTL;
	} else {
		f->ip4->saddr = f->ip4->daddr;
		f->ip4->ttl = IPDEFTTL;
	}
}

/* Back to where it came from. */
static __always_inline void turn_to_sender(struct frame *f)
{
	__u8 mac[ETH_ALEN];
	__be16 port = f->udp->source;

	__builtin_memcpy(mac, f->eth->h_source, ETH_ALEN);
	__builtin_memcpy(f->eth->h_source, f->eth->h_dest, ETH_ALEN);
	__builtin_memcpy(f->eth->h_dest, mac, ETH_ALEN);
	if (f->offsets.ipv6) {
		struct in6_addr sender = f->ip6->saddr;

		turn_to_group(f);
		f->ip6->daddr = sender;
	} else {
		__be32 sender = f->ip4->saddr;

		turn_to_group(f);
		f->ip4->daddr = sender;
	}
	f->udp->dest = port;
}

/* What the root sends goes on. Without a limit, nodes that name each other would never let go. */
static __always_inline bool turn_down(struct frame *f)
{
	__u8 *hops = f->offsets.ipv6 ? &f->ip6->hop_limit : &f->ip4->ttl;

	if (*hops <= TALLY_HOPS_DOWN)
		return false;
	*hops -= TALLY_HOPS_DOWN;
	if (!f->offsets.ipv6)
		checksum_ip4(f->ip4);
	return true;
}

/*
 * What a frame has that goes `to` an enum tally_to, once it is addressed; `left`: the UDP checksum
 * is still to be made. A global function (see offsets_find), for its loop over the words.
 */
__noinline int reply_finish(struct hook_context *ctx, int packed_offsets, int to, int left)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };

	if (!frame_locate(ctx, &f))
		return 0;
	if (to != TALLY_TO_ROOT)
		ecn_renew(&f);
	checksum_frame(&f, f.tally->blocks, to == TALLY_TO_ROOT && left);
	return 0;
}

static __always_inline enum tally_outcome reply(struct hook_context *ctx, struct frame *f,
						const struct tally_job *job,
						struct tally_slot *slot, struct tally_verdict v,
						const struct tally_set *sender,
						struct tally_slot_state *books)
{
	struct tally_reply r = tally_reply_make(v, books, sender);
	__u32 rank = tally_le16_get(f->tally->sender);
	enum tally_to to;
	int left = 0;

	if (!r.kind)
		return r.outcome;
	if (!HOOK_TELLS_CHECKSUM)
		left = checksum_is_left(ctx, offsets_pack(f->offsets));
	if (r.blocks != f->tally->blocks && !frame_resize(ctx, f, r.blocks)) {
		/* Not every driver leaves room behind a short frame: ask for longer ones. */
		if (!frame_resize(ctx, f, 0))
			return TALLY_STALE;
		r = tally_reply_no_room(books, &job->everyone);
	}
	if (r.take && !slot_take(slot, f, &r, books))
		return TALLY_STALE;

	news_add(f, job, &r, books);
	tally_reply_write(&r, books, constants.boot, f->tally);
	frame_set_put(f, &books->set);
	to = tally_outcome_to(r.outcome);
	if (to == TALLY_TO_SENDER)
		turn_to_sender(f);
	else if (to == TALLY_TO_GROUP)
		turn_to_group(f);
	key_finish(ctx, offsets_pack(f->offsets), job->keyed & (to != TALLY_TO_GROUP),
		   tally_rank_index(job->group, rank));
	reply_finish(ctx, offsets_pack(f->offsets), to, left);
	return r.outcome;
}

#endif
