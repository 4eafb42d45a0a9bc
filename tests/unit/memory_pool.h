/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A pool of borrowed slots over memory: the rules of tally/borrowed.h, as they ship, and words that
 * move as these say. A message visits it in the two steps of memory_node.h.
 */
#ifndef TALLY_TESTS_UNIT_MEMORY_POOL_H
#define TALLY_TESTS_UNIT_MEMORY_POOL_H

#include <tally/borrowed.h>

#include "tests/unit/memory_node.h"

enum {
	MEMORY_POOL_SLOTS = 4,
};

struct memory_borrowed {
	struct tally_borrowed_slot books;
	uint64_t word[MESSAGE_WORDS_MAX];
};

struct memory_pool {
	struct tally_borrowed_policy policy;
	uint32_t slots; /* 0: nobody borrows here */
	uint16_t range; /* of each job; they begin at slots one after the other */
	struct tally_entrance entrance; /* of all that comes */
	uint64_t moves[TALLY_BORROWED_REFUSED + 1]; /* of contributions that are no flush */
	struct memory_borrowed slot[MEMORY_POOL_SLOTS];
};

static inline struct memory_borrowed *memory_borrowed(struct memory_pool *p,
						      const struct tally_header *h)
{
	struct tally_borrower b = tally_borrower_read(h);

	b.range = p->range;
	b.base = b.job;
	return &p->slot[tally_borrowed_place(&b, tally_le32_get(h->seq), p->slots)];
}

/* The packet leaves with what the slot held, and its words stay. */
static inline void pool_swap(struct memory_borrowed *slot, const struct tally_borrowed_slot *out,
			     struct message *m)
{
	size_t bytes = m->header.blocks * TALLY_BLOCK_BYTES;
	uint64_t held[MESSAGE_WORDS_MAX];

	memcpy(held, slot->word, bytes);
	memcpy(slot->word, message_words(m), bytes);
	tally_borrowed_leave(out, &m->header);
	tally_header_set_put(&m->header, &out->state.set);
	if (m->header.flags & TALLY_LARGE)
		tally_more_of(&m->header)->reserved = 0;
	memcpy(message_words(m), held, m->header.blocks * TALLY_BLOCK_BYTES);
}

static inline void pool_offer(struct memory_pool *p, const struct memory_node *n, struct visit *v)
{
	struct memory_borrowed *slot = memory_borrowed(p, &v->message.header);
	struct tally_borrower b = tally_borrower_read(&v->message.header);
	struct tally_set set = tally_header_set(&v->message.header);
	struct tally_offer offer = tally_offer_read(&v->message.header, &set);
	struct tally_borrowed_slot out = { 0 };
	struct tally_borrowed_verdict w;

	b.entrance = p->entrance;
	offer.now_ms = n->now_ms;
	w = tally_borrowed_gather(&p->policy, &n->role, &slot->books, &b, &offer, &out);
	p->moves[w.move] += !offer.flush;
	if (w.move == TALLY_BORROWED_SWAPPED) {
		pool_swap(slot, &out, &v->message);
		v->reply = (struct tally_reply){ .outcome = w.verdict.outcome };
		return;
	}
	words_move(slot->word, message_words(&v->message), offer.blocks, w.verdict.words);
	v->books = out.state;
	v->reply = tally_reply_make(w.verdict, &v->books, &set);
	if (v->reply.kind && v->reply.blocks > offer.blocks && !n->frames_grow)
		v->reply = tally_reply_no_room(&v->books, n->role.everyone);
}

static inline void pool_release(struct memory_pool *p, const struct tally_header *h)
{
	struct tally_borrower b = tally_borrower_read(h);

	if (h->kind == TALLY_RESULT)
		tally_borrowed_release(&memory_borrowed(p, h)->books, &b, tally_le32_get(h->seq));
}

/* The first step, at an inner node `n` whose chunks borrow. `ret->message.header` may be another
 * job's. */
static inline void pool_begin(struct memory_pool *p, const struct memory_node *n,
			      const struct message *m, struct visit *ret)
{
	struct tally_set set = tally_header_set(&m->header);

	*ret = (struct visit){ .message = *m };
	ret->reply.outcome = tally_node_admit(&n->role, &m->header, &set);
	if (ret->reply.outcome == TALLY_GO_ON)
		pool_offer(p, n, ret);
	else if (ret->reply.outcome == TALLY_SENT_DOWN)
		pool_release(p, &m->header);
}

/* The second step, as visit_end(). */
static inline enum tally_outcome pool_end(struct memory_pool *p, const struct memory_node *n,
					  struct visit *v)
{
	struct memory_borrowed *slot = memory_borrowed(p, &v->message.header);
	struct tally_borrower b = tally_borrower_read(&v->message.header);

	if (!v->reply.kind)
		return v->reply.outcome;
	if (v->reply.take) {
		if (!tally_borrowed_take(&p->policy, &v->reply, &slot->books, &b, &v->books))
			return TALLY_STALE;
		memcpy(message_words(&v->message), slot->word, v->reply.blocks * TALLY_BLOCK_BYTES);
	}
	tally_reply_write(&v->reply, &v->books, n->boot, &v->message.header);
	tally_header_set_put(&v->message.header, &v->books.set);
	return v->reply.outcome;
}

#endif
