/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read this file first: what a node does, step by step. Then slot.h, reply.h, outcome.h, maps.h.
 *
 * What a node does with a message of one of its jobs. Pure: the data plane and everything else
 * that sums run this text, and keep the slots, their locks and the frames. A message goes through
 * these steps:
 *
 *	tally_node_admit()	may it come in? GO_ON: it is offered to its slot
 *	tally_node_signer()	then, where ranks have keys or are bound: who speaks?
 *	tally_node_is_from()	then, in a job with rank keys: is it from whom it says?
 *	tally_node_gather()	slot locked: which rule applies; the caller moves the words
 *	tally_reply_make()	what leaves (tally/reply.h)
 *	tally_reply_no_room()	instead, if the frame cannot be made as long as that
 *	tally_reply_take()	slot locked again, if the sum is to be read from there
 *	tally_reply_about()	not 0: tally_reply_news() of an older chunk's slot
 *	tally_reply_write()	the header of what leaves
 *	tally_outcome_to()	to whom
 *
 * Other messages may change the slot between the two locked steps.
 */
#ifndef TALLY_NODE_H
#define TALLY_NODE_H

#include <linux/types.h>
#include <stdbool.h>
#include <tally/check.h>
#include <tally/inline.h>
#include <tally/outcome.h>
#include <tally/set.h>
#include <tally/slot.h>
#include <tally/wire.h>

/* A job's role on a node. The sets belong to the caller. */
struct tally_role {
	const struct tally_set *everyone; /* all workers of the job */
	const struct tally_set *below; /* those that come through this node; root: everyone */
	__u16 epoch;
	__u8 blocks_max; /* of a message */
	bool root; /* results are made here; otherwise sums go on to the root */
	bool keyed; /* the job has rank keys */
};

/* The keys of a job, by number: those of its ranks, and behind them the one that its nodes share.
 */
enum {
	TALLY_NODE_KEY = TALLY_WORKERS_MAX,
	TALLY_KEYS_MAX,
	TALLY_NO_KEY = TALLY_KEYS_MAX,
};

/* Does the set of a message fit its kind? */
tally_inline bool tally_node_takes_set(const struct tally_role *role, enum tally_kind kind,
				       const struct tally_set *set)
{
	if (kind == TALLY_REPAIR)
		return tally_set_is_equal(set, role->everyone);
	return kind != TALLY_CONTRIBUTION || !tally_set_is_empty(set);
}

/* Does this version know all that the header says? */
tally_inline bool tally_node_knows(const struct tally_header *h)
{
	bool up = h->kind == TALLY_CONTRIBUTION || h->kind == TALLY_REPAIR;

	return !(h->flags & ~(up ? TALLY_FLAGS_UP : TALLY_FLAGS_DOWN)) && !h->shard &&
	       !(h->reserved[0] | h->reserved[1] | h->reserved[2]);
}

/*
 * GO_ON: the message is offered to its slot. PASSED_UP, SENT_DOWN, PASSED_DOWN, OTHER_RUN: it
 * leaves as it came. Anything else: it is refused. GO_ON and PASSED_UP are from workers: their
 * tenant may have limits. An inner node may be told late of a run, or never: what is of another one
 * than it knows is none of its business, as what is of another job. The caller has checked that the
 * job is `role`'s, that the message is as long as its header says, and that the reserved bytes of
 * struct tally_more are 0. `set`: the header's. In a job with rank keys nothing is known of the tag
 * yet: tally_node_signer() and tally_node_is_from() come next.
 */
tally_inline enum tally_outcome tally_node_admit(const struct tally_role *role,
						 const struct tally_header *h,
						 const struct tally_set *set)
{
	__u16 recipient = tally_le16_get(h->recipient);

	if (!role->keyed && tally_le64_get(h->tag) != tally_tag(h, set))
		return TALLY_CORRUPT;
	if (tally_le16_get(h->epoch) != role->epoch)
		return role->root ? TALLY_WRONG_EPOCH : TALLY_OTHER_RUN;
	if (!tally_node_knows(h))
		return TALLY_UNKNOWN_FLAG;
	if (h->blocks > role->blocks_max)
		return TALLY_OVERSIZED;
	if (!(h->flags & TALLY_LARGE) != !tally_is_large(role->everyone) ||
	    !tally_set_is_within(set, role->everyone))
		return TALLY_BAD_SET;
	if (recipient != TALLY_EVERYONE &&
	    (recipient >= TALLY_WORKERS_MAX || !tally_set_has(role->everyone, recipient)))
		return TALLY_BAD_RANK;
	if (!tally_node_takes_set(role, h->kind, set))
		return TALLY_BAD_SET;

	switch (h->kind) {
	case TALLY_CONTRIBUTION:
		return TALLY_GO_ON;
	case TALLY_REPAIR:
		return role->root ? TALLY_GO_ON : TALLY_PASSED_UP;
	case TALLY_RESULT:
	case TALLY_ASK:
	case TALLY_MISMATCH:
		return role->root ? TALLY_BAD_KIND : TALLY_SENT_DOWN;
	case TALLY_OVERTAKEN: /* is for one worker alone */
		return role->root ? TALLY_BAD_KIND : TALLY_PASSED_DOWN;
	default:
		return TALLY_BAD_KIND;
	}
}

/*
 * Is this of one rank? A contribution is of the rank in `sender` alone, and a repair, whose set is
 * everyone, of a rank that the job has: what is kept of another one is no secret.
 */
tally_inline bool tally_node_is_of_one(enum tally_kind kind, __u16 sender,
				       const struct tally_set *set)
{
	if (sender >= TALLY_WORKERS_MAX)
		return false;
	return kind == TALLY_REPAIR ? tally_set_has(set, sender) : tally_set_is_only(set, sender);
}

/*
 * By which key is the tag of what comes to a node? What is of one rank, by that rank's, whoever
 * sends it on. What several ranks are in, and what comes from the root, a node has made, by the
 * node key: nobody speaks for another one. TALLY_NO_KEY: nobody makes such a message.
 */
tally_inline __u32 tally_node_signer(enum tally_kind kind, __u16 sender,
				     const struct tally_set *set)
{
	if (kind != TALLY_CONTRIBUTION && kind != TALLY_REPAIR)
		return TALLY_NODE_KEY;
	if (tally_node_is_of_one(kind, sender, set))
		return sender;
	if (kind == TALLY_REPAIR || sender >= TALLY_WORKERS_MAX || !tally_set_has(set, sender))
		return TALLY_NO_KEY;
	return TALLY_NODE_KEY;
}

/*
 * Has this node the key? An inner node has those of the ranks below, and the node key. What others
 * say passes it as it came, and the root judges.
 */
tally_inline bool tally_node_has_key(const struct tally_role *role, __u32 key)
{
	return role->root || key >= TALLY_NODE_KEY || tally_set_has(role->below, key);
}

/* By which key a node tags a contribution that it makes. `sender` is in the set. */
tally_inline __u32 tally_node_signs(__u16 sender, const struct tally_set *set)
{
	return tally_set_is_only(set, sender) ? sender : TALLY_NODE_KEY;
}

/* Was this made with the key of whom it is? */
tally_inline bool tally_node_is_from(const struct tally_header *h, const struct tally_set *set,
				     const struct tally_key *key)
{
	return tally_le64_get(h->tag) == tally_keyed_tag(h, set, key);
}

/*
 * A message that was admitted with GO_ON, offered to its slot. The caller holds the slot's lock,
 * moves the words as the verdict says, and copies the books before it gives the lock back.
 */
tally_inline struct tally_verdict tally_node_gather(const struct tally_role *role,
						    enum tally_kind kind,
						    struct tally_slot_state *s,
						    const struct tally_offer *o)
{
	struct tally_verdict v;

	if (kind == TALLY_REPAIR)
		v = tally_slot_repair(s, o);
	else if (role->root)
		v = tally_slot_admit_root(s, o, role->everyone);
	else
		v = tally_slot_admit_inner(s, o, role->below);
	/* What leaves is made of the packet: the sum is to be there, too. */
	if (v.words == TALLY_WORDS_ADD && v.outcome != TALLY_ABSORBED)
		v.words = TALLY_WORDS_EXCHANGE;
	return v;
}

#endif
