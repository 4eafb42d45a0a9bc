/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A node over memory: the rules of tally/node.h and tally/reply.h, as they ship, and words that
 * move as these say. A message visits a node in two steps, as in the data plane, where the slot is
 * not locked in between: other messages may visit it before the second step.
 */
#ifndef TALLY_TESTS_UNIT_MEMORY_NODE_H
#define TALLY_TESTS_UNIT_MEMORY_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <tally/node.h>
#include <tally/reply.h>

enum {
	MESSAGE_BLOCKS_MAX = 2,
	MESSAGE_WORDS_MAX = MESSAGE_BLOCKS_MAX * TALLY_BLOCK_WORDS,
	MESSAGE_MORE_WORDS = sizeof(struct tally_more) / sizeof(uint64_t),
};

struct message {
	int to; /* whatever the test numbers so */
	struct tally_header header;
	uint64_t word[MESSAGE_MORE_WORDS + MESSAGE_WORDS_MAX]; /* message_words() */
};

_Static_assert(offsetof(struct message, word) ==
		       offsetof(struct message, header) + sizeof(struct tally_header),
	       "a datagram without holes");

struct memory_slot {
	struct tally_slot_state state;
	uint64_t word[MESSAGE_WORDS_MAX];
};

struct memory_node {
	struct tally_role role;
	uint16_t boot;
	bool frames_grow; /* else a reply must fit the frame that it is made of */
	uint32_t now_ms;
	uint32_t slots; /* a power of two */
	struct memory_slot *slot;
};

/* A message at a node. */
struct visit {
	struct message message;
	struct tally_reply reply;
	struct tally_slot_state books;
};

/* Before its payload. */
static inline size_t message_header_bytes(const struct message *m)
{
	return tally_header_bytes(m->header.flags);
}

/* Its payload. Behind header.blocks: anything. */
static inline uint64_t *message_words(struct message *m)
{
	return m->word + (m->header.flags & TALLY_LARGE ? MESSAGE_MORE_WORDS : 0);
}

/* As long as its header says, which may be more than there is room for. */
static inline size_t message_bytes(const struct message *m)
{
	return message_header_bytes(m) + m->header.blocks * TALLY_BLOCK_BYTES;
}

static inline struct memory_slot *memory_slot(const struct memory_node *n, const struct message *m)
{
	return &n->slot[tally_le32_get(m->header.seq) % n->slots];
}

static inline void words_move(uint64_t *slot, uint64_t *packet, int blocks, enum tally_words words)
{
	for (int i = 0; i < blocks * TALLY_BLOCK_WORDS; i++) {
		if (words == TALLY_WORDS_STORE)
			slot[i] = packet[i];
		else if (words == TALLY_WORDS_ADD)
			slot[i] += packet[i];
		else if (words == TALLY_WORDS_EXCHANGE)
			packet[i] = slot[i] += packet[i];
	}
}

/* The first step. `ret->reply.take`: only the second reads what is to be sent. */
static inline void visit_begin(struct memory_node *n, const struct message *m, struct visit *ret)
{
	struct memory_slot *slot = memory_slot(n, m);
	struct tally_set set = tally_header_set(&m->header);
	struct tally_offer offer = tally_offer_read(&m->header, &set);
	struct tally_verdict v;

	*ret = (struct visit){ .message = *m };
	offer.now_ms = n->now_ms;
	ret->reply.outcome = tally_node_admit(&n->role, &m->header, &set);
	if (ret->reply.outcome != TALLY_GO_ON)
		return;
	v = tally_node_gather(&n->role, m->header.kind, &slot->state, &offer);
	words_move(slot->word, message_words(&ret->message), offer.blocks, v.words);
	ret->books = slot->state;
	ret->reply = tally_reply_make(v, &ret->books, &offer.set);
	if (ret->reply.kind && ret->reply.blocks > m->header.blocks && !n->frames_grow)
		ret->reply = tally_reply_no_room(&ret->books, n->role.everyone);
}

static inline void news_add(const struct memory_node *n, struct visit *v)
{
	uint16_t about = tally_reply_about(&v->reply, &v->books, &v->message.header);
	uint32_t seq = tally_le32_get(v->message.header.seq) - about;

	if (about)
		tally_reply_news(&v->reply, &v->books, about, &n->slot[seq % n->slots].state, seq,
				 n->role.everyone);
}

/* The second step. Afterwards `v->message` is what leaves, to tally_outcome_to() of the outcome. */
static inline enum tally_outcome visit_end(struct memory_node *n, struct visit *v)
{
	struct memory_slot *slot = memory_slot(n, &v->message);

	if (!v->reply.kind)
		return v->reply.outcome;
	if (v->reply.take) {
		if (!tally_reply_take(&v->reply, &slot->state, &v->books))
			return TALLY_STALE;
		memcpy(message_words(&v->message), slot->word, v->reply.blocks * TALLY_BLOCK_BYTES);
	}
	news_add(n, v);
	tally_reply_write(&v->reply, &v->books, n->boot, &v->message.header);
	tally_header_set_put(&v->message.header, &v->books.set);
	return v->reply.outcome;
}

/* The copy of a message for a child with these workers. */
static inline struct message message_copy(const struct message *m, const struct tally_set *below)
{
	struct message copy = *m;

	if (tally_copy_is_cut(&copy.header, below))
		tally_copy_cut(&copy.header);
	return copy;
}

#endif
