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

enum {
	TALLY_ASK_EVERY_MS = 4, /* the group is asked about a chunk no more often */
};

enum tally_phase {
	TALLY_SLOT_FRESH = 0,  /* never used: any seq is newer */
	TALLY_SLOT_GATHERING = 1,
	TALLY_SLOT_DONE = 2,  /* at the root: the sum is the result */
	TALLY_SLOT_SENT = 3,  /* below the root: the sum of all below has gone up */
};

/* The books of one slot. The sum itself (blocks * 8 words) lies beside it. */
struct tally_slot_state {
	__u32 seq;
	__u16 recipient;
	__u8 phase; /* enum tally_phase */
	__u8 lane;
	__u8 blocks; /* of the sum; 0: all contributions so far were without payload */
	__u8 scale;
	__u8 scale_ahead;
	__u8 flags; /* the sticky ones */
	__u8 edition; /* how often workers rejected the chunk's sum */
	bool disputed; /* `other` and `other_call` are of a contribution that did not agree */
	__u16 about; /* how far back the oldest chunk is that a contribution asks about; 0: none */
	__u64 call;
	__u64 check;
	struct tally_set set;
	__u64 other_call;
	__u16 other; /* its sender */
	__u16 reserved;
	__u32 asked_ms; /* when the group was asked last */
};

/* A contribution or repair, out of its header. */
struct tally_offer {
	__u32 seq;
	__u32 now_ms; /* of a clock of the node that never goes back; 0 will do without FLUSH */
	__u16 recipient;
	__u16 about;
	__u16 sender;
	__u8 lane;
	__u8 blocks;
	__u8 scale;
	__u8 scale_ahead;
	__u8 flags;
	__u8 edition;
	bool flush;
	bool reject;
	__u64 call;
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

/* `set`: the header's. The caller adds now_ms. */
tally_inline struct tally_offer tally_offer_read(const struct tally_header *h,
						 const struct tally_set *set)
{
	return (struct tally_offer){
		.seq = tally_le32_get(h->seq),
		.recipient = tally_le16_get(h->recipient),
		.about = tally_le16_get(h->about),
		.sender = tally_le16_get(h->sender),
		.lane = h->lane,
		.blocks = h->blocks,
		.scale = h->scale,
		.scale_ahead = h->scale_ahead,
		.flags = h->flags & TALLY_FLAGS_STICKY,
		.edition = h->edition,
		.flush = h->flags & TALLY_FLUSH,
		.reject = h->flags & TALLY_REJECT,
		.call = tally_le64_get(h->call),
		.check = tally_le64_get(h->check),
		.set = *set,
	};
}

/* Not too far ahead: no worker is, and a slot that went there would be of no more use. */
tally_inline bool tally_slot_is_newer(const struct tally_slot_state *s, __u32 seq)
{
	return s->phase == TALLY_SLOT_FRESH || seq - s->seq - 1 < TALLY_AHEAD_MAX;
}

/* Forgets what the slot holds, but not which chunk it serves. */
tally_inline void tally_slot_empty(struct tally_slot_state *s, __u32 seq)
{
	*s = (struct tally_slot_state){ .seq = seq, .phase = TALLY_SLOT_GATHERING };
}

/* Empties it since its sum is wrong, or because a worker has brought a better one. */
tally_inline void tally_slot_begin_again(struct tally_slot_state *s)
{
	__u8 edition = s->edition + 1;

	tally_slot_empty(s, s->seq);
	s->edition = edition;
}

tally_inline bool tally_slot_agrees(const struct tally_slot_state *s, const struct tally_offer *o)
{
	return (s->call == o->call && s->lane == o->lane && s->recipient == o->recipient &&
		(!s->blocks || !o->blocks || s->blocks == o->blocks)) ||
	       tally_set_is_empty(&s->set);
}

/* Has the group not been asked about this chunk a moment ago? From now on it has. */
tally_inline bool tally_slot_may_ask(struct tally_slot_state *s, const struct tally_offer *o)
{
	if (s->asked_ms && o->now_ms - s->asked_ms < TALLY_ASK_EVERY_MS)
		return false;
	s->asked_ms = o->now_ms;
	return true;
}

/* All ranks hear at once who calls what; those who missed that, when somebody flushes. */
tally_inline enum tally_outcome tally_slot_dispute(struct tally_slot_state *s,
						   const struct tally_offer *o)
{
	bool is_new = !s->disputed;

	if (is_new) {
		s->disputed = true;
		s->other = o->sender;
		s->other_call = o->call;
	}
	return is_new || (o->flush && tally_slot_may_ask(s, o)) ? TALLY_CONFLICT
								: TALLY_CONFLICT_AGAIN;
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
	s->about = s->about > o->about ? s->about : o->about;
	s->call = o->call;
	s->check += o->check;
	tally_set_join(&s->set, &o->set);
	return words;
}

/* A contribution at the root that neither completes its chunk nor finds it finished. */
tally_inline enum tally_outcome
tally_slot_wait(struct tally_slot_state *s, const struct tally_offer *o, enum tally_outcome outcome)
{
	if (!o->flush)
		return outcome;
	if (s->disputed)
		return tally_slot_dispute(s, o);
	return tally_slot_may_ask(s, o) ? TALLY_ASKED : outcome;
}

/*
 * A contribution at the root. `everyone`: the job's workers; `o->set` is not empty and
 * within it. A flushed contribution that does not complete the chunk asks the group, so
 * that a root that lost its memory gets it back from those that have finished. A worker that
 * rejects the sum that the slot has makes the slot gather anew.
 */
tally_inline struct tally_verdict tally_slot_admit_root(struct tally_slot_state *s,
							const struct tally_offer *o,
							const struct tally_set *everyone)
{
	struct tally_verdict v = { TALLY_DUPLICATE, TALLY_WORDS_KEEP };
	bool spoiled = false;

	if (tally_slot_is_newer(s, o->seq)) {
		tally_slot_empty(s, o->seq);
	} else if (o->seq != s->seq) {
		v.outcome = (__s32)(s->seq - o->seq) > 0 ? TALLY_BEHIND : TALLY_STALE;
		return v;
	}
	if (!tally_slot_agrees(s, o)) {
		v.outcome = tally_slot_dispute(s, o);
		return v;
	}
	if (s->phase == TALLY_SLOT_DONE) {
		spoiled = o->reject && o->edition == s->edition;
		if (!spoiled) {
			v.outcome = tally_set_is_single(&o->set) ? TALLY_ANSWERED
								 : TALLY_ANSWERED_ALL;
			return v;
		}
		tally_slot_begin_again(s);
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
	} else if (spoiled) {
		s->asked_ms = o->now_ms;
		v.outcome = TALLY_SPOILED;
	} else {
		v.outcome = tally_slot_wait(s, o, v.outcome);
	}
	return v;
}

/* Does a flushed contribution find itself in what an inner node's slot holds? */
tally_inline bool tally_slot_holds(const struct tally_slot_state *s, const struct tally_offer *o)
{
	return s->phase != TALLY_SLOT_FRESH && o->seq == s->seq &&
	       tally_set_is_within(&o->set, &s->set);
}

/*
 * A node below the root may be gone around for any time while routes change. What comes then is
 * further ahead than any worker is of another; were it too far, the node would add up nothing more.
 */
tally_inline bool tally_slot_is_ahead(const struct tally_slot_state *s, __u32 seq)
{
	return s->phase == TALLY_SLOT_FRESH || (__s32)(seq - s->seq) > 0;
}

/*
 * A contribution at a node below the root. `below`: the workers that come through here.
 * A flushed one is never held back: if the slot has it already, the slot's partial sum
 * leaves and the slot is empty again; otherwise it goes on alone. One that rejects a sum goes on
 * alone, and the slot forgets the partial sum, which may be what was wrong. One that does not
 * agree goes on: the root tells all ranks. So does one of ranks that are not below where the sum of
 * those below has left already: routes are ahead of what the node was told.
 */
tally_inline struct tally_verdict tally_slot_admit_inner(struct tally_slot_state *s,
							 const struct tally_offer *o,
							 const struct tally_set *below)
{
	struct tally_verdict v = { TALLY_PASSED_UP, TALLY_WORDS_KEEP };

	if (o->reject || o->flush) {
		if (o->reject && tally_slot_holds(s, o))
			tally_slot_empty(s, o->seq);
		else if (tally_slot_holds(s, o))
			v.outcome = TALLY_FLUSHED_UP; /* the caller takes, then empties */
		return v;
	}
	if (tally_slot_is_ahead(s, o->seq))
		tally_slot_empty(s, o->seq);
	else if (o->seq != s->seq)
		return (struct tally_verdict){ TALLY_STALE, TALLY_WORDS_KEEP };

	if (!tally_slot_agrees(s, o))
		return v;
	if (tally_set_is_disjoint(&o->set, &s->set)) {
		if (s->phase == TALLY_SLOT_SENT)
			return v;
		v.words = tally_slot_merge(s, o);
		if (tally_set_is_within(below, &s->set))
			s->phase = TALLY_SLOT_SENT;
		v.outcome = s->phase == TALLY_SLOT_SENT ? TALLY_SENT_UP : TALLY_ABSORBED;
	} else if (tally_set_is_within(&o->set, &s->set)) {
		v.outcome = s->phase == TALLY_SLOT_SENT ? TALLY_SENT_UP : TALLY_DUPLICATE;
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

	if (o->seq == s->seq)
		tally_slot_begin_again(s);
	else
		tally_slot_empty(s, o->seq);
	s->phase = TALLY_SLOT_DONE;
	return (struct tally_verdict){ TALLY_REPAIRED, tally_slot_merge(s, o) };
}

/* Which workers are there of chunk `seq`? Those of a later chunk have all had the result. */
tally_inline struct tally_set tally_slot_there(const struct tally_slot_state *s, __u32 seq,
					       const struct tally_set *everyone)
{
	if (s->phase == TALLY_SLOT_FRESH || (__s32)(seq - s->seq) > 0)
		return (struct tally_set){ { 0 } };
	return seq == s->seq && s->phase != TALLY_SLOT_DONE ? s->set : *everyone;
}

#endif
