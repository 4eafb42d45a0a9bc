/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Borrowed slots: a pool that jobs share, beside the rings of slots that are reserved for one job
 * each (docs/decisions/0014-borrowed-slots.md). Pure; the data plane, tests and simulations compile
 * it. Each chunk may have one slot of the pool, by a hash or in the range of its job, so chunks
 * compete for a slot, and the policy decides. To every job that borrows the node is an inner node,
 * also where the root of the job is on the same machine: what finds no slot goes up to the root,
 *and so does what leaves one. The root alone makes results, answers and asks.
 *
 *	tally_node_admit()		may it come in? The role is that of an inner node
 *	tally_borrowed_place()		a contribution: its slot
 *	tally_borrowed_gather()		slot locked: who has it; the caller moves the words
 *	tally_borrowed_leave()		after a swap: the header of what leaves, and all is done
 *	tally_reply_make() ...		otherwise: as at any inner node (tally/node.h), but for
 *	tally_borrowed_take()		slot locked again, instead of tally_reply_take()
 *	tally_borrowed_release()	a result on its way down: slot locked
 *
 * In a job with rank keys all that the node makes is tagged as tally_node_signs() says, so nodes of
 * such a job need its keys.
 */
#ifndef TALLY_BORROWED_H
#define TALLY_BORROWED_H

#include <linux/types.h>
#include <stdbool.h>
#include <tally/check.h>
#include <tally/inline.h>
#include <tally/node.h>
#include <tally/reply.h>
#include <tally/set.h>
#include <tally/slot.h>
#include <tally/wire.h>

/* Each ingredient alone. All 0: first come, first served, and free when the sum has left. */
struct tally_borrowed_policy {
	bool holds; /* a slot is free only when the result comes down, or its holder gives way */
	bool preempts; /* holders give way to others: at once, or as the next three say */
	bool by_priority; /* ... only to a priority above the holder's standing */
	__u8 downgrade; /* so many bits the standing is shifted right with each who is refused */
	__u16 stalled_ms; /* and whoever has not grown for so long, in any case; 0: nobody. What
			   * nobody carries then is forgotten: its workers send it again */
};

#define TALLY_BORROWED_FCFS ((struct tally_borrowed_policy){ .holds = true }) /* as ATP */
#define TALLY_BORROWED_ESA \
	((struct tally_borrowed_policy){ .preempts = true, .by_priority = true, .downgrade = 1 })

/*
 * By what this machine takes in the frame that brings a contribution, and would take in what leaves
 * in that frame. All 0: by any port's own address, without a VLAN tag, with a whole UDP checksum.
 */
struct tally_entrance {
	__u32 word[3]; /* port; hardware address, and VLAN and checksum behind it */
};

/* The books of one slot. The sum itself lies beside it. */
struct tally_borrowed_slot {
	struct tally_slot_state state; /* FRESH: the slot is free */
	__u32 job;
	__u32 grown_ms; /* when the sum grew last */
	__u16 epoch;
	__u16 sender; /* a rank in the sum: what answers it goes where that rank's message came from
		       */
	__u8 priority; /* of the contribution that took the slot */
	__u8 standing; /* what downgrades have left of that */
	__u8 shape; /* as in struct tally_borrower */
	bool large; /* the job's headers are */
	bool left; /* the sum of all below has gone up, and the slot holds on to it */
	struct tally_entrance entrance; /* as in struct tally_borrower */
};

/* Who wants a slot: what its header says, beside the offer. The caller adds the rest. */
struct tally_borrower {
	__u32 job;
	__u32 base; /* where the job's range begins in the pool */
	__u16 range; /* the job's window: its chunks lie in so many slots; 0: anywhere, by a hash */
	__u16 epoch;
	__u8 priority; /* as it says */
	__u8 standing; /* what counts of that: the share of its tenant */
	__u8 shape; /* of the frame: no other shape carries what this one brings */
	bool large;
	struct tally_entrance entrance; /* of the frame: what came in by another one may not get on
					 * by this one */
};

enum tally_borrowed_move {
	TALLY_BORROWED_STAYS = 0, /* the slot's chunk is that of before, or it has none */
	TALLY_BORROWED_TAKEN, /* it was free, or nobody needs what it held */
	TALLY_BORROWED_SWAPPED, /* what it held leaves in the packet of who has it now */
	TALLY_BORROWED_REFUSED, /* another chunk keeps it; the contribution goes up as it came */
};

struct tally_borrowed_verdict {
	/*
	 * After a swap the words say nothing: those of the packet and of the slot, as many as the
	 * packet has, change places. The outcome is then SENT_UP: something goes on to a root.
	 */
	struct tally_verdict verdict;
	enum tally_borrowed_move move;
};

tally_inline struct tally_borrower tally_borrower_read(const struct tally_header *h)
{
	return (struct tally_borrower){ .job = tally_le32_get(h->job),
					.epoch = tally_le16_get(h->epoch),
					.priority = h->priority,
					.standing = h->priority,
					.large = h->flags & TALLY_LARGE };
}

/* number % limit, without a division where none is needed: two cost a twentieth of a packet. */
tally_inline __u32 tally_borrowed_wrap(__u32 number, __u32 limit)
{
	if (number < limit)
		return number;
	return limit & (limit - 1) ? number % limit : number & (limit - 1);
}

/* Which slot of a pool of `slots`, which are not 0. Ranges may overlap. */
tally_inline __u32 tally_borrowed_place(const struct tally_borrower *b, __u32 seq, __u32 slots)
{
	if (b->range)
		return tally_borrowed_wrap(b->base + tally_borrowed_wrap(seq, b->range), slots);
	return (tally_mix(tally_mix(0, (__u64)b->job << 16 | b->epoch), seq) >> 32) * slots >> 32;
}

tally_inline bool tally_borrowed_is_free(const struct tally_borrowed_slot *s)
{
	return s->state.phase == TALLY_SLOT_FRESH;
}

tally_inline void tally_borrowed_free(struct tally_borrowed_slot *s)
{
	*s = (struct tally_borrowed_slot){ .state = { .phase = TALLY_SLOT_FRESH } };
}

/* Does it hold this chunk of this run? An earlier run of the job has the same chunks. */
tally_inline bool tally_borrowed_holds(const struct tally_borrowed_slot *s,
				       const struct tally_borrower *b, __u32 seq)
{
	return !tally_borrowed_is_free(s) && s->job == b->job && s->epoch == b->epoch &&
	       s->state.seq == seq;
}

tally_inline bool tally_borrowed_has_stalled(const struct tally_borrowed_policy *policy,
					     const struct tally_borrowed_slot *s,
					     const struct tally_offer *o)
{
	/* Another processor may have read its clock later, and been here before. */
	return policy->stalled_ms && (__s32)(o->now_ms - s->grown_ms) >= policy->stalled_ms;
}

/*
 * Does what the slot holds get on in this frame as well as in the one that brought it? Otherwise
 * whoever wants a slot could have the sum of another one lost.
 */
tally_inline bool tally_borrowed_carries(const struct tally_borrowed_slot *s,
					 const struct tally_borrower *b,
					 const struct tally_offer *o)
{
	const __u32 *was = s->entrance.word, *is = b->entrance.word;

	return s->state.blocks <= o->blocks && s->shape == b->shape &&
	       !((was[0] ^ is[0]) | (was[1] ^ is[1]) | (was[2] ^ is[2]));
}

/*
 * What becomes of a slot that another chunk wants. Who cannot carry what it holds is refused,
 * unless that has stalled: otherwise the last sum of a job could keep out all jobs with shorter
 * ones.
 */
tally_inline enum tally_borrowed_move
tally_borrowed_compete(const struct tally_borrowed_policy *policy, struct tally_borrowed_slot *s,
		       const struct tally_borrower *b, const struct tally_offer *o)
{
	bool stalled = tally_borrowed_has_stalled(policy, s, o);
	bool preempts = policy->preempts && (!policy->by_priority || b->standing > s->standing);

	if (tally_borrowed_is_free(s) || (s->job == b->job && s->epoch != b->epoch))
		return TALLY_BORROWED_TAKEN;
	if (stalled || preempts) {
		if (s->left)
			return TALLY_BORROWED_TAKEN;
		if (tally_borrowed_carries(s, b, o))
			return TALLY_BORROWED_SWAPPED;
		if (stalled)
			return TALLY_BORROWED_TAKEN;
	}
	s->standing >>= policy->downgrade;
	return TALLY_BORROWED_REFUSED;
}

/* The slot is this chunk's, and empty. */
tally_inline void tally_borrowed_begin(struct tally_borrowed_slot *s,
				       const struct tally_borrower *b, const struct tally_offer *o)
{
	*s = (struct tally_borrowed_slot){ .job = b->job,
					   .epoch = b->epoch,
					   .sender = o->sender,
					   .priority = b->priority,
					   .standing = b->standing,
					   .shape = b->shape,
					   .large = b->large,
					   .entrance = b->entrance };
	tally_slot_empty(&s->state, o->seq);
}

/* The sum of all below is in the packet. */
tally_inline void tally_borrowed_has_left(const struct tally_borrowed_policy *policy,
					  struct tally_borrowed_slot *s)
{
	if (policy->holds)
		s->left = true;
	else
		tally_borrowed_free(s);
}

/*
 * A contribution that was admitted with GO_ON, offered to its slot. The caller holds the slot's
 * lock, and moves the words before it gives it back. `ret_out`: books of what the verdict is about,
 * as they are needed for what leaves: after a swap those of the old holder.
 *
 * What is flushed, and what rejects a sum, takes no slot; nor does one that brings all that can
 * come through here.
 */
tally_inline struct tally_borrowed_verdict
tally_borrowed_gather(const struct tally_borrowed_policy *policy, const struct tally_role *role,
		      struct tally_borrowed_slot *s, const struct tally_borrower *b,
		      const struct tally_offer *o, struct tally_borrowed_slot *ret_out)
{
	struct tally_borrowed_verdict v = { { TALLY_PASSED_UP, TALLY_WORDS_KEEP },
					    TALLY_BORROWED_STAYS };

	if (!tally_borrowed_holds(s, b, o->seq)) {
		if (o->flush || o->reject || tally_set_is_within(role->below, &o->set))
			return v;
		v.move = tally_borrowed_compete(policy, s, b, o);
		if (v.move == TALLY_BORROWED_REFUSED)
			return v;
		if (v.move == TALLY_BORROWED_SWAPPED)
			*ret_out = *s;
		tally_borrowed_begin(s, b, o);
	}
	v.verdict = tally_node_gather(role, TALLY_CONTRIBUTION, &s->state, o);
	if (v.verdict.outcome == TALLY_ABSORBED)
		s->grown_ms = o->now_ms;
	if (v.move == TALLY_BORROWED_SWAPPED) {
		v.verdict = (struct tally_verdict){ TALLY_SENT_UP, TALLY_WORDS_KEEP };
		return v;
	}
	if (v.verdict.outcome == TALLY_ABSORBED)
		return v;
	*ret_out = *s;
	if (v.verdict.outcome == TALLY_SENT_UP &&
	    (v.verdict.words != TALLY_WORDS_KEEP || !s->state.blocks))
		tally_borrowed_has_left(policy, s);
	else if (v.verdict.outcome == TALLY_PASSED_UP && tally_set_is_empty(&s->state.set))
		tally_borrowed_free(s); /* its sum was rejected */
	return v;
}

/*
 * After a swap: the header of the packet, of which h->set and struct tally_more are the caller's to
 * write (out->state.set). It has the job, epoch and chunk of the old holder, whose header may be
 * longer or shorter. The packet goes to the root of that job.
 */
tally_inline void tally_borrowed_leave(const struct tally_borrowed_slot *out,
				       struct tally_header *h)
{
	struct tally_verdict v = { TALLY_SENT_UP, TALLY_WORDS_EXCHANGE };
	struct tally_reply r = tally_reply_make(v, &out->state, &out->state.set);

	h->job = tally_le32(out->job);
	h->epoch = tally_le16(out->epoch);
	h->seq = tally_le32(out->state.seq);
	h->sender = tally_le16(out->sender);
	h->priority = out->priority;
	h->flags = out->large ? TALLY_LARGE : 0;
	tally_reply_write(&r, &out->state, 0, h);
}

/* As tally_reply_take(), of a slot that others may have by now. */
tally_inline bool tally_borrowed_take(const struct tally_borrowed_policy *policy,
				      const struct tally_reply *r, struct tally_borrowed_slot *s,
				      const struct tally_borrower *b,
				      struct tally_slot_state *books)
{
	if (!tally_borrowed_holds(s, b, books->seq) || !tally_reply_take(r, &s->state, books))
		return false;
	if (r->empty)
		tally_borrowed_free(s);
	else
		tally_borrowed_has_left(policy, s);
	return true;
}

/* The result of this chunk has come down: what its slot holds is of no more use. */
tally_inline void tally_borrowed_release(struct tally_borrowed_slot *s,
					 const struct tally_borrower *b, __u32 seq)
{
	if (tally_borrowed_holds(s, b, seq))
		tally_borrowed_free(s);
}

#endif
