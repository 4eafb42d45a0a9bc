/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the slot machine decided, made into the frame that leaves: the contribution that
 * came in is turned into a result, an ask or a bigger contribution.
 */
#ifndef TALLY_REPLY_BPF_H
#define TALLY_REPLY_BPF_H

#include "checksum.bpf.h"
#include "gather.bpf.h"
#include "constants.bpf.h"
#include "resize.bpf.h"

/* Copies the slot's sum into the frame; false if the slot has moved on meanwhile. */
static __always_inline bool slot_take(struct tally_slot *slot, struct frame *f,
				      struct tally_slot_state *books, bool empty)
{
	bool same;

	bpf_spin_lock(&slot->lock);
	same = slot->state.seq == books->seq && slot->state.phase == books->phase &&
	       slot->state.blocks == books->blocks &&
	       tally_set_is_within(&books->set, &slot->state.set);
	if (same) {
		*books = slot->state;
		words_WORDS_LOAD(slot->word, f->word, f->tally->blocks, f->end);
		if (empty)
			tally_slot_empty(&slot->state, books->seq);
	}
	bpf_spin_unlock(&slot->lock);
	return same;
}

static __always_inline void header_write(struct tally_header *h, enum tally_kind kind,
					 const struct tally_slot_state *books)
{
	h->kind = kind;
	h->flags = books->flags | (kind == TALLY_CONTRIBUTION ? h->flags & TALLY_FLUSH : 0);
	h->boot = tally_le16(kind == TALLY_CONTRIBUTION ? 0 : constants.boot);
	h->recipient = tally_le16(books->recipient);
	h->lane = books->lane;
	h->scale = books->scale;
	h->scale_ahead = books->scale_ahead;
	h->check = tally_le64(h->blocks ? books->check : 0);
	tally_header_set_put(h, &books->set);
}

/* From the service address, to nobody yet: fanout.bpf.c addresses each copy. */
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

static __always_inline enum tally_outcome reply(struct hook_context *ctx, struct frame *f,
						const struct tally_job *job,
						struct tally_slot *slot, struct tally_verdict v,
						struct tally_slot_state *books)
{
	enum tally_kind kind = TALLY_RESULT;
	struct tally_set sender = tally_header_set(f->tally);
	__u32 blocks = books->blocks;
	/* The exchange, or a store, has left the whole sum in the frame. */
	bool sum_is_there = v.words != TALLY_WORDS_KEEP;

	switch (v.outcome) {
	case TALLY_COMPLETED:
	case TALLY_REPAIRED:
	case TALLY_ANSWERED_ALL:
		break;
	case TALLY_ANSWERED:
		if (!tally_gets_payload(books->recipient, &sender))
			blocks = 0;
		break;
	case TALLY_ASKED:
		kind = TALLY_ASK;
		blocks = 0;
		break;
	case TALLY_SENT_UP:
	case TALLY_FLUSHED_UP:
		kind = TALLY_CONTRIBUTION;
		break;
	default:
		return v.outcome;
	}

	if (blocks != f->tally->blocks && !frame_resize(ctx, f, blocks)) {
		/* Not every driver leaves room behind a short frame: ask for longer ones. */
		if (!frame_resize(ctx, f, 0))
			return TALLY_STALE;
		v.outcome = TALLY_NO_ROOM;
		kind = TALLY_ASK;
		blocks = 0;
		books->set = job->everyone;
	}
	if (((blocks && !sum_is_there) || v.outcome == TALLY_FLUSHED_UP) &&
	    !slot_take(slot, f, books, v.outcome == TALLY_FLUSHED_UP))
		return TALLY_STALE;

	header_write(f->tally, kind, books);
	if (v.outcome == TALLY_ANSWERED)
		turn_to_sender(f);
	else if (kind != TALLY_CONTRIBUTION)
		turn_to_group(f);
	checksum_frame(f, blocks);
	return v.outcome;
}

#endif
