/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The slot machine: what a slot does with one contribution (docs/protocol.md, "Slots"). Pure: the
 * data plane, the unit tests and everything else that sums compile this text. It decides and keeps
 * the books; the caller moves the words as the verdict says.
 *
 * A reserved slot serves the chunks seq, seq + 2W, seq + 4W ... of one job. A worker sends
 * a chunk only when it holds the result of the chunk one window before, so a contribution
 * for seq + 2W proves that everybody has had the result of seq: newer resets, equal
 * merges, older is stale. Sequence numbers wrap.
 */
#ifndef TALLY_SLOT_H
#define TALLY_SLOT_H

#include <linux/types.h>
#include <stdbool.h>
#include <tally/outcome.h>
#include <tally/set.h>
#include <tally/wire.h>

enum tally_phase {
	TALLY_SLOT_FRESH = 0,  /* never used: any seq is newer */
	TALLY_SLOT_GATHERING = 1,
	TALLY_SLOT_DONE = 2,  /* root only: the sum is the result */
};

/* The books of one slot. The sum itself (blocks * 8 words) lies beside it. */
struct tally_slot_state {
	__u32 seq;
	__u16 recipient;
	__u8 phase;  /* enum tally_phase */
	__u8 lane;
	__u8 blocks;  /* of the sum; 0: all contributions so far were without payload */
	__u8 scale;
	__u8 scale_ahead;
	__u8 flags;  /* the sticky ones */
	__u32 reserved;
	__u64 check;
	struct tally_set set;
};

/* A contribution or repair, out of its header. */
struct tally_offer {
	__u32 seq;
	__u16 recipient;
	__u8 lane;
	__u8 blocks;
	__u8 scale;
	__u8 scale_ahead;
	__u8 flags;
	bool flush;
	__u64 check;
	struct tally_set set;
};

/* What the caller has to do with the words. */
enum tally_words {
	TALLY_WORDS_KEEP = 0, /* nothing */
	TALLY_WORDS_STORE, /* slot := packet */
	TALLY_WORDS_ADD, /* slot += packet */
	TALLY_WORDS_EXCHANGE, /* slot += packet, packet := slot */
};

struct tally_verdict {
	enum tally_outcome outcome;
	enum tally_words words;
};

tally_inline struct tally_offer tally_offer_read(const struct tally_header *h)
{
	return (struct tally_offer){
		.seq = tally_le32_get(h->seq),
		.recipient = tally_le16_get(h->recipient),
		.lane = h->lane,
		.blocks = h->blocks,
		.scale = h->scale,
		.scale_ahead = h->scale_ahead,
		.flags = h->flags & TALLY_FLAGS_STICKY,
		.flush = h->flags & TALLY_FLUSH,
		.check = tally_le64_get(h->check),
		.set = tally_header_set(h),
	};
}

tally_inline bool tally_slot_is_newer(const struct tally_slot_state *s, __u32 seq)
{
	return s->phase == TALLY_SLOT_FRESH || (__s32)(seq - s->seq) > 0;
}

/* Forgets what the slot holds, but not which chunk it serves. */
tally_inline void tally_slot_empty(struct tally_slot_state *s, __u32 seq)
{
	*s = (struct tally_slot_state){ .seq = seq, .phase = TALLY_SLOT_GATHERING };
}

tally_inline bool tally_slot_agrees(const struct tally_slot_state *s, const struct tally_offer *o)
{
	return tally_set_is_empty(&s->set) ||
	       (s->lane == o->lane && s->recipient == o->recipient &&
		(!s->blocks || !o->blocks || s->blocks == o->blocks));
}

/* Merges the books of a disjoint offer; says what is to be done with the words. */
tally_inline enum tally_words tally_slot_merge(struct tally_slot_state *s,
					       const struct tally_offer *o)
{
	enum tally_words words = TALLY_WORDS_ADD;

	if (!o->blocks)
		words = TALLY_WORDS_KEEP;
	else if (!s->blocks)
		words = TALLY_WORDS_STORE;

	s->lane = o->lane;
	s->recipient = o->recipient;
	s->blocks = s->blocks ? s->blocks : o->blocks;
	s->scale = s->scale > o->scale ? s->scale : o->scale;
	s->scale_ahead = s->scale_ahead > o->scale_ahead ? s->scale_ahead : o->scale_ahead;
	s->flags |= o->flags;
	s->check += o->check;
	tally_set_join(&s->set, &o->set);
	return words;
}

/*
 * A contribution at the root. `everyone`: the job's workers; `o->set` is not empty and
 * within it. A flushed contribution that does not complete the chunk asks the group, so
 * that a root that lost its memory gets it back from those that have finished.
 */
tally_inline struct tally_verdict tally_slot_admit_root(struct tally_slot_state *s,
							const struct tally_offer *o,
							const struct tally_set *everyone)
{
	struct tally_verdict v = { TALLY_DUPLICATE, TALLY_WORDS_KEEP };

	if (tally_slot_is_newer(s, o->seq))
		tally_slot_empty(s, o->seq);
	else if (o->seq != s->seq)
		return (struct tally_verdict){ TALLY_STALE, TALLY_WORDS_KEEP };

	if (s->phase == TALLY_SLOT_DONE) {
		v.outcome = tally_set_is_single(&o->set) ? TALLY_ANSWERED : TALLY_ANSWERED_ALL;
		return v;
	}
	if (!tally_slot_agrees(s, o)) {
		v.outcome = TALLY_CONFLICT;
		return v;
	}
	if (tally_set_is_disjoint(&o->set, &s->set)) {
		v.words = tally_slot_merge(s, o);
		v.outcome = TALLY_ABSORBED;
	} else if (!tally_set_is_within(&o->set, &s->set)) {
		v.outcome = TALLY_OVERLAP;
	}
	if (tally_set_is_equal(&s->set, everyone)) {
		s->phase = TALLY_SLOT_DONE;
		v.outcome = TALLY_COMPLETED;
	} else if (o->flush) {
		v.outcome = TALLY_ASKED;
	}
	return v;
}

/*
 * A contribution at a node below the root. `below`: the workers that come through here.
 * A flushed one is never held back: if the slot has it already, the slot's partial sum
 * leaves and the slot is empty again; otherwise it goes on alone.
 */
tally_inline struct tally_verdict tally_slot_admit_inner(struct tally_slot_state *s,
							 const struct tally_offer *o,
							 const struct tally_set *below)
{
	struct tally_verdict v = { TALLY_PASSED_UP, TALLY_WORDS_KEEP };

	if (o->flush) {
		if (s->phase != TALLY_SLOT_FRESH && o->seq == s->seq &&
		    tally_set_is_within(&o->set, &s->set))
			v.outcome = TALLY_FLUSHED_UP; /* the caller takes, then empties */
		return v;
	}
	if (tally_slot_is_newer(s, o->seq))
		tally_slot_empty(s, o->seq);
	else if (o->seq != s->seq)
		return (struct tally_verdict){ TALLY_STALE, TALLY_WORDS_KEEP };

	if (!tally_slot_agrees(s, o)) {
		v.outcome = TALLY_CONFLICT;
	} else if (tally_set_is_disjoint(&o->set, &s->set)) {
		v.words = tally_slot_merge(s, o);
		v.outcome = tally_set_is_within(below, &s->set) ? TALLY_SENT_UP : TALLY_ABSORBED;
	} else if (tally_set_is_within(&o->set, &s->set)) {
		v.outcome = tally_set_is_within(below, &s->set) ? TALLY_SENT_UP : TALLY_DUPLICATE;
	}
	return v;
}

/* A worker gives the root the result of a chunk back. Only the root takes it. */
tally_inline struct tally_verdict tally_slot_repair(struct tally_slot_state *s,
						    const struct tally_offer *o)
{
	if (!tally_slot_is_newer(s, o->seq) && o->seq != s->seq)
		return (struct tally_verdict){ TALLY_STALE, TALLY_WORDS_KEEP };
	if (o->seq == s->seq && s->phase == TALLY_SLOT_DONE)
		return (struct tally_verdict){ TALLY_DUPLICATE, TALLY_WORDS_KEEP };

	tally_slot_empty(s, o->seq);
	s->phase = TALLY_SLOT_DONE;
	return (struct tally_verdict){ TALLY_REPAIRED, tally_slot_merge(s, o) };
}

#endif
