/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What leaves a node after a message came, and to whom. Pure. A reply is made out of the frame of
 * that message: the caller makes the frame longer or shorter, moves words and addresses it.
 */
#ifndef TALLY_REPLY_H
#define TALLY_REPLY_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <tally/check.h>
#include <tally/inline.h>
#include <tally/outcome.h>
#include <tally/set.h>
#include <tally/slot.h>
#include <tally/wire.h>

enum tally_to {
	TALLY_TO_NOBODY,
	TALLY_TO_ROOT, /* onward, as the message was routed */
	TALLY_TO_SENDER,
	TALLY_TO_GROUP, /* a copy for each child of the job: tally_copy_is_cut() */
};

struct tally_reply {
	enum tally_outcome outcome;
	enum tally_kind kind; /* 0: no reply; what leaves, if anything, leaves as it came */
	__u8 blocks; /* of payload */
	__u16 about; /* not 0: books.set is that of the chunk so many earlier */
	bool take; /* tally_reply_take() is to be called */
	bool empty; /* it will empty the slot */
};

/* To whom the frame goes, as the list of outcomes says. */
tally_inline enum tally_to tally_outcome_to(enum tally_outcome outcome)
{
	switch (outcome) {
#define TALLY_OUTCOME_TO(name, action, meaning)                     \
	case TALLY_##name:                                          \
		return (action) == XDP_PASS	  ? TALLY_TO_ROOT   \
		       : (action) == XDP_TX	  ? TALLY_TO_SENDER \
		       : (action) == XDP_REDIRECT ? TALLY_TO_GROUP  \
						  : TALLY_TO_NOBODY;
		TALLY_OUTCOMES(TALLY_OUTCOME_TO)
#undef TALLY_OUTCOME_TO
	default:
		return TALLY_TO_NOBODY;
	}
}

/* Does anything leave that the node makes? Otherwise the books are of no more use. */
tally_inline bool tally_reply_is_due(enum tally_outcome outcome)
{
#define TALLY_REPLY_BIT(name, action, meaning)                              \
	| (__u64)((action) != XDP_DROP &&                                   \
		  ((action) != XDP_PASS || TALLY_##name == TALLY_SENT_UP || \
		   TALLY_##name == TALLY_FLUSHED_UP))                       \
			<< TALLY_##name
	_Static_assert(TALLY_OUTCOME_COUNT <= 64, "bits");
	return (0 TALLY_OUTCOMES(TALLY_REPLY_BIT)) >> outcome & 1;
#undef TALLY_REPLY_BIT
}

/*
 * The reply to a message from `sender`. `books`: those of the slot after the message was offered
 * to it, copied before its lock was given back.
 */
tally_inline struct tally_reply tally_reply_make(struct tally_verdict v,
						 const struct tally_slot_state *books,
						 const struct tally_set *sender)
{
	struct tally_reply r = { .outcome = v.outcome,
				 .kind = TALLY_RESULT,
				 .blocks = books->blocks };

	switch (v.outcome) {
	case TALLY_COMPLETED:
	case TALLY_REPAIRED:
	case TALLY_ANSWERED_ALL:
		break;
	case TALLY_ANSWERED:
		if (!tally_gets_payload(books->recipient, sender))
			r.blocks = 0;
		break;
	case TALLY_ASKED:
	case TALLY_SPOILED:
		r.kind = TALLY_ASK;
		r.blocks = 0;
		break;
	case TALLY_CONFLICT:
		r.kind = TALLY_MISMATCH;
		r.blocks = 0;
		break;
	case TALLY_BEHIND:
		r.kind = TALLY_OVERTAKEN;
		r.blocks = 0;
		break;
	case TALLY_FLUSHED_UP:
		r.empty = true;
		/* fall through */
	case TALLY_SENT_UP:
		r.kind = TALLY_CONTRIBUTION;
		break;
	default:
		return (struct tally_reply){ .outcome = v.outcome };
	}
	/* Words that were stored or exchanged have left the whole sum in the packet. */
	r.take = r.empty || (r.blocks && v.words == TALLY_WORDS_KEEP);
	return r;
}

/*
 * Instead of a reply for which the frame cannot be made long enough: an ask whose set is everyone,
 * without payload. The slot stays as it is.
 */
tally_inline struct tally_reply tally_reply_no_room(struct tally_slot_state *books,
						    const struct tally_set *everyone)
{
	books->set = *everyone;
	return (struct tally_reply){ .outcome = TALLY_NO_ROOM, .kind = TALLY_ASK };
}

/*
 * Reads the sum for a reply with `take`. The caller holds the slot's lock. true: `books` are those
 * of now, and the caller moves r->blocks of words from the slot to the packet before it gives the
 * lock back. false: other messages have changed the slot since, and nothing can be sent: the
 * outcome is STALE.
 */
tally_inline bool tally_reply_take(const struct tally_reply *r, struct tally_slot_state *s,
				   struct tally_slot_state *books)
{
	if (s->seq != books->seq || s->phase != books->phase || s->blocks != books->blocks ||
	    !tally_set_is_within(&books->set, &s->set))
		return false;
	*books = *s;
	if (r->empty)
		tally_slot_empty(s, books->seq);
	return true;
}

/*
 * How many chunks earlier the chunk is that a result is to bring news of; 0: of none. A sum that
 * goes to all brings news of what any of its contributions asked about.
 */
tally_inline __u16 tally_reply_about(const struct tally_reply *r,
				     const struct tally_slot_state *books,
				     const struct tally_header *h)
{
	if (r->outcome == TALLY_COMPLETED)
		return books->about;
	return r->outcome == TALLY_ANSWERED ? tally_le16_get(h->about) : 0;
}

/* The news. The caller holds the lock of the slot of chunk `seq`. */
tally_inline void tally_reply_news(struct tally_reply *r, struct tally_slot_state *books,
				   __u16 about, const struct tally_slot_state *older, __u32 seq,
				   const struct tally_set *everyone)
{
	r->about = about;
	books->set = tally_slot_there(older, seq, everyone);
}

/*
 * The reply's header, out of that of the message, but for the set, which is books->set. `boot`: the
 * node's; it shows lost slots.
 */
tally_inline void tally_reply_write(const struct tally_reply *r,
				    const struct tally_slot_state *books, __u16 boot,
				    struct tally_header *h)
{
	bool up = r->kind == TALLY_CONTRIBUTION;
	bool dispute = r->kind == TALLY_MISMATCH;

	h->kind = r->kind;
	h->flags = books->flags | (h->flags & (TALLY_LARGE | (up ? TALLY_FLUSH : 0)));
	h->boot = tally_le16(up ? 0 : boot);
	h->recipient = tally_le16(books->recipient);
	h->blocks = r->blocks;
	h->lane = books->lane;
	h->scale = books->scale;
	h->scale_ahead = books->scale_ahead;
	h->call = tally_le64(books->call);
	h->check = tally_le64(dispute			   ? books->other_call
			      : r->kind == TALLY_OVERTAKEN ? books->seq
							   : books->check);
	h->about = tally_le16(up ? books->about : r->about);
	if (!up) /* a sum that goes up keeps one of its ranks: they all agree */
		h->sender = tally_le16(dispute ? books->other : TALLY_FROM_NODE);
	h->edition = books->edition;
	h->tag = tally_le64(tally_tag(h, &books->set));
}

/* To a contribution of another version: which version this node speaks. No rank's key is used. */
tally_inline struct tally_header tally_reply_version(const struct tally_header *h)
{
	struct tally_header out = { .magic = TALLY_MAGIC,
				    .version = TALLY_VERSION,
				    .kind = TALLY_ASK,
				    .job = h->job,
				    .epoch = h->epoch,
				    .seq = h->seq,
				    .sender = tally_le16(TALLY_FROM_NODE) };

	out.tag = tally_le64(tally_tag(&out, &(struct tally_set){ { 0 } }));
	return out;
}

/* A copy for the child with these workers: does the payload have to go? */
tally_inline bool tally_copy_is_cut(const struct tally_header *h, const struct tally_set *below)
{
	return h->blocks && !tally_gets_payload(tally_le16_get(h->recipient), below);
}

/* The header of a copy without payload. The check stays that of the sum, and the tag is right. */
tally_inline void tally_copy_cut(struct tally_header *h) { h->blocks = 0; }

#endif
