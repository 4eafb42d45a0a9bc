// SPDX-License-Identifier: GPL-2.0-only
/*
 * Read this file first: how unit tests look: facts, then random operations against a model.
 *
 * The slot machine: facts; then random offers against a slow and obvious machine. What leaves a
 * slot does so in a second step (memory_node.h), and other offers come before. TALLY_SEED=n runs
 * that one seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <tally/slot.h>

#include "tests/unit/memory_node.h"
#include "tests/unit/random.h"

/* Literals below name their defaults first, and a test overrides what it is about. */
#pragma GCC diagnostic ignored "-Woverride-init"

enum {
	MODEL_SEEDS = 5000,
	MODEL_OFFERS = 200,
	MODEL_WAITING = 4, /* visits between their two steps */
};

/* --- facts: a job of three, of whom the first two come through the inner node */

#define offer(members, ...)                                 \
	((struct tally_offer){ .set = { { members } },      \
			       .blocks = 1,                 \
			       .lane = TALLY_LANE_INT64,    \
			       .recipient = TALLY_EVERYONE, \
			       .check = 100,                \
			       __VA_ARGS__ })

static void at_root(struct tally_slot_state *s, struct tally_offer o, enum tally_outcome outcome,
		    enum tally_words words)
{
	const struct tally_set everyone = { { 0x7 } };
	struct tally_verdict v = tally_slot_admit_root(s, &o, &everyone);

	assert_int_equal(v.outcome, outcome);
	assert_int_equal(v.words, words);
}

static void at_inner(struct tally_slot_state *s, struct tally_offer o, enum tally_outcome outcome,
		     enum tally_words words)
{
	const struct tally_set below = { { 0x3 } };
	struct tally_verdict v = tally_slot_admit_inner(s, &o, &below);

	assert_int_equal(v.outcome, outcome);
	assert_int_equal(v.words, words);
}

static void the_first_is_stored_and_the_others_are_added(void **state)
{
	struct tally_slot_state s = { 0 };

	at_root(&s, offer(1), TALLY_ABSORBED, TALLY_WORDS_STORE);
	at_root(&s, offer(2), TALLY_ABSORBED, TALLY_WORDS_ADD);
	at_root(&s, offer(4), TALLY_COMPLETED, TALLY_WORDS_ADD);
	assert_int_equal(s.phase, TALLY_SLOT_DONE);
	assert_int_equal(s.check, 300);
}

static void one_without_payload_leaves_the_words_alone(void **state)
{
	struct tally_slot_state s = { 0 };

	at_root(&s, offer(1, .blocks = 0), TALLY_ABSORBED, TALLY_WORDS_KEEP);
	at_root(&s, offer(2, .blocks = 3), TALLY_ABSORBED, TALLY_WORDS_STORE);
	at_root(&s, offer(4, .blocks = 0), TALLY_COMPLETED, TALLY_WORDS_KEEP);
	assert_int_equal(s.blocks, 3);
}

static void a_repeated_one_is_not_added(void **state)
{
	struct tally_slot_state s = { 0 };

	at_root(&s, offer(3), TALLY_ABSORBED, TALLY_WORDS_STORE);
	at_root(&s, offer(1), TALLY_DUPLICATE, TALLY_WORDS_KEEP);
	at_root(&s, offer(3), TALLY_DUPLICATE, TALLY_WORDS_KEEP);
	at_root(&s, offer(6), TALLY_OVERLAP, TALLY_WORDS_KEEP);
	assert_int_equal(s.check, 100);
}

static void a_finished_chunk_is_answered_whatever_is_offered(void **state)
{
	struct tally_slot_state s = { 0 };

	at_root(&s, offer(7), TALLY_COMPLETED, TALLY_WORDS_STORE);
	at_root(&s, offer(4), TALLY_ANSWERED, TALLY_WORDS_KEEP);
	at_root(&s, offer(4, .flush = true), TALLY_ANSWERED, TALLY_WORDS_KEEP);
	at_root(&s, offer(3), TALLY_ANSWERED_ALL, TALLY_WORDS_KEEP);
}

/* All ranks hear of the first one that disagrees, also if that comes when the chunk is finished. */
static void those_who_disagree_are_refused(void **state)
{
	struct tally_slot_state s = { 0 };

	at_root(&s, offer(1, .blocks = 0), TALLY_ABSORBED, TALLY_WORDS_KEEP);
	at_root(&s, offer(2, .lane = TALLY_LANE_BYTES), TALLY_CONFLICT, TALLY_WORDS_KEEP);
	at_root(&s, offer(2, .recipient = 0), TALLY_CONFLICT_AGAIN, TALLY_WORDS_KEEP);
	at_root(&s, offer(2, .call = 1), TALLY_CONFLICT_AGAIN, TALLY_WORDS_KEEP);
	at_root(&s, offer(2, .blocks = 5), TALLY_ABSORBED, TALLY_WORDS_STORE);
	at_root(&s, offer(4, .blocks = 4), TALLY_CONFLICT_AGAIN, TALLY_WORDS_KEEP);
	at_root(&s, offer(4, .blocks = 5), TALLY_COMPLETED, TALLY_WORDS_ADD);
	at_root(&s, offer(4, .blocks = 4), TALLY_CONFLICT_AGAIN, TALLY_WORDS_KEEP);
	s = (struct tally_slot_state){ 0 };
	at_root(&s, offer(7), TALLY_COMPLETED, TALLY_WORDS_STORE);
	at_root(&s, offer(1, .lane = TALLY_LANE_BYTES), TALLY_CONFLICT, TALLY_WORDS_KEEP);
	at_root(&s, offer(1), TALLY_ANSWERED, TALLY_WORDS_KEEP);
}

static void a_fresh_slot_takes_any_seq(void **state)
{
	static const uint32_t seqs[] = { 0, 1, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff };

	for (int i = 0; i < 6; i++) {
		struct tally_slot_state s = { 0 };

		at_root(&s, offer(1, .seq = seqs[i]), TALLY_ABSORBED, TALLY_WORDS_STORE);
		assert_int_equal(s.seq, seqs[i]);
	}
}

static void newer_is_ahead_but_not_too_far(void **state)
{
	static const uint32_t seqs[] = { 0, 1, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff };

	for (int i = 0; i < 6; i++) {
		const struct tally_slot_state s = { .seq = seqs[i], .phase = TALLY_SLOT_GATHERING };

		assert_false(tally_slot_is_newer(&s, seqs[i]));
		assert_true(tally_slot_is_newer(&s, seqs[i] + 1));
		assert_true(tally_slot_is_newer(&s, seqs[i] + TALLY_AHEAD_MAX));
		assert_false(tally_slot_is_newer(&s, seqs[i] + TALLY_AHEAD_MAX + 1));
		assert_false(tally_slot_is_newer(&s, seqs[i] + 0x7fffffff));
		assert_false(tally_slot_is_newer(&s, seqs[i] + 0x80000000));
		assert_false(tally_slot_is_newer(&s, seqs[i] - 1));
	}
}

/* Who sends an older one to the root hears so. */
static void older_is_taken_nowhere(void **state)
{
	const struct tally_offer old = offer(7, .seq = 0xffffffff);
	struct tally_slot_state s = { 0 };

	at_root(&s, offer(7, .seq = 3), TALLY_COMPLETED, TALLY_WORDS_STORE);
	at_root(&s, old, TALLY_BEHIND, TALLY_WORDS_KEEP);
	assert_int_equal(tally_slot_repair(&s, &old).outcome, TALLY_STALE);
	s = (struct tally_slot_state){ 0 };
	at_inner(&s, offer(1, .seq = 3), TALLY_ABSORBED, TALLY_WORDS_STORE);
	at_inner(&s, old, TALLY_STALE, TALLY_WORDS_KEEP);
}

static void a_flush_at_the_root_counts_and_asks(void **state)
{
	struct tally_slot_state s = { 0 };

	at_root(&s, offer(1, .flush = true), TALLY_ASKED, TALLY_WORDS_STORE);
	at_root(&s, offer(1, .flush = true), TALLY_ASKED, TALLY_WORDS_KEEP);
	at_root(&s, offer(2, .flush = true), TALLY_ASKED, TALLY_WORDS_ADD);
	at_root(&s, offer(6, .flush = true), TALLY_ASKED, TALLY_WORDS_KEEP);
	at_root(&s, offer(4, .flush = true), TALLY_COMPLETED, TALLY_WORDS_ADD);
}

/* Of each chunk, whoever flushes; and also where the clock's 32 bits wrap. */
static void all_are_asked_once_in_four_milliseconds(void **state)
{
	struct tally_slot_state s = { 0 };
	uint32_t now_ms = UINT32_MAX - 1;

	at_root(&s, offer(1, .flush = true, .now_ms = now_ms), TALLY_ASKED, TALLY_WORDS_STORE);
	at_root(&s, offer(2, .flush = true, .now_ms = now_ms), TALLY_ABSORBED, TALLY_WORDS_ADD);
	at_root(&s, offer(1, .flush = true, .now_ms = now_ms + 3), TALLY_DUPLICATE,
		TALLY_WORDS_KEEP);
	at_root(&s, offer(1, .flush = true, .now_ms = now_ms + 4), TALLY_ASKED, TALLY_WORDS_KEEP);
	at_root(&s, offer(2, .flush = true, .now_ms = now_ms + 7), TALLY_DUPLICATE,
		TALLY_WORDS_KEEP);
	at_root(&s, offer(1, .seq = 16, .flush = true, .now_ms = now_ms + 7), TALLY_ASKED,
		TALLY_WORDS_STORE);
}

static void an_inner_node_sends_up_when_all_below_have_come(void **state)
{
	struct tally_slot_state s = { 0 };

	at_inner(&s, offer(1), TALLY_ABSORBED, TALLY_WORDS_STORE);
	at_inner(&s, offer(1), TALLY_DUPLICATE, TALLY_WORDS_KEEP);
	at_inner(&s, offer(2), TALLY_SENT_UP, TALLY_WORDS_ADD);
	at_inner(&s, offer(1), TALLY_SENT_UP, TALLY_WORDS_KEEP);
	at_inner(&s, offer(5), TALLY_PASSED_UP, TALLY_WORDS_KEEP);
	assert_int_equal(s.phase, TALLY_SLOT_SENT);
}

/* As when ranks have moved behind the node, and no document says so yet. */
static void an_inner_node_adds_nobody_to_what_it_has_sent_up(void **state)
{
	struct tally_slot_state s = { .phase = TALLY_SLOT_FRESH }, before;

	at_inner(&s, offer(4), TALLY_ABSORBED, TALLY_WORDS_STORE);
	at_inner(&s, offer(1), TALLY_ABSORBED, TALLY_WORDS_ADD);
	at_inner(&s, offer(2), TALLY_SENT_UP, TALLY_WORDS_ADD);
	s = (struct tally_slot_state){ .phase = TALLY_SLOT_FRESH };
	at_inner(&s, offer(3), TALLY_SENT_UP, TALLY_WORDS_STORE);
	before = s;
	at_inner(&s, offer(4), TALLY_PASSED_UP, TALLY_WORDS_KEEP);
	assert_memory_equal(&s, &before, sizeof(s));
}

/* Ranks that went around a node for long come back. */
static void an_inner_node_goes_on_however_far_ahead_a_chunk_is(void **state)
{
	struct tally_slot_state s = { .phase = TALLY_SLOT_FRESH };

	at_inner(&s, offer(1, .seq = 3), TALLY_ABSORBED, TALLY_WORDS_STORE);
	at_inner(&s, offer(1, .seq = 3 + 0x7fffffffU), TALLY_ABSORBED, TALLY_WORDS_STORE);
	assert_int_equal(s.seq, 3 + 0x7fffffffU);
	at_inner(&s, offer(2, .seq = 3), TALLY_STALE, TALLY_WORDS_KEEP);
}

static void a_flush_at_an_inner_node_is_never_held_back(void **state)
{
	struct tally_slot_state s = { 0 };

	at_inner(&s, offer(1, .flush = true), TALLY_PASSED_UP, TALLY_WORDS_KEEP);
	assert_int_equal(s.phase, TALLY_SLOT_FRESH);
	at_inner(&s, offer(1), TALLY_ABSORBED, TALLY_WORDS_STORE);
	at_inner(&s, offer(2, .flush = true), TALLY_PASSED_UP, TALLY_WORDS_KEEP);
	at_inner(&s, offer(1, .seq = 16, .flush = true), TALLY_PASSED_UP, TALLY_WORDS_KEEP);
	at_inner(&s, offer(1, .flush = true), TALLY_FLUSHED_UP, TALLY_WORDS_KEEP);
	assert_int_equal(s.set.word[0], 1);
	tally_slot_empty(&s, 0);
	at_inner(&s, offer(1, .flush = true), TALLY_PASSED_UP, TALLY_WORDS_KEEP);
}

static void a_repair_finishes_a_chunk(void **state)
{
	const struct tally_offer result = offer(7, .blocks = 3, .scale = 9);
	struct tally_slot_state s = { 0 };

	at_root(&s, offer(1, .lane = TALLY_LANE_BYTES), TALLY_ABSORBED, TALLY_WORDS_STORE);
	assert_int_equal(tally_slot_repair(&s, &result).words, TALLY_WORDS_STORE);
	assert_int_equal(s.phase, TALLY_SLOT_DONE);
	assert_int_equal(s.blocks, 3);
	assert_int_equal(s.scale, 9);
	assert_int_equal(s.check, 100);
	assert_int_equal(tally_slot_repair(&s, &result).outcome, TALLY_DUPLICATE);
	assert_int_equal(s.edition, 1);
	at_root(&s, offer(1, .blocks = 3), TALLY_ANSWERED, TALLY_WORDS_KEEP);
}

/* --- the obvious machine: arrays of bool, exact counts, sequence numbers that never wrap */

enum {
	MEMBERS = 6,
};

static const uint32_t rank_of[MEMBERS] = { 0, 1, 63, 64, 200, 255 };

struct books {
	int64_t seq;
	bool in[MEMBERS];
	uint8_t blocks, lane, scale, scale_ahead, flags, edition;
	uint16_t recipient, about, sender;
	bool flush, reject;
	uint64_t call, check;
	uint64_t count[MEMBERS]; /* how often each member's payload is in the sum */
};

struct model {
	bool used, done, disputed;
	bool sent; /* below the root */
	struct books held;
	struct books other; /* the first one that disagreed */
	int64_t now_ms, asked_ms; /* 0: never asked */
	uint64_t merges;
};

static int members(const bool *in)
{
	int n = 0;

	for (int i = 0; i < MEMBERS; i++)
		n += in[i];
	return n;
}

static int members_in_both(const bool *a, const bool *b)
{
	int n = 0;

	for (int i = 0; i < MEMBERS; i++)
		n += a[i] && b[i];
	return n;
}

static void model_begin(struct model *m, int64_t seq)
{
	*m = (struct model){
		.used = true, .held = { .seq = seq }, .now_ms = m->now_ms, .merges = m->merges
	};
}

static void model_begin_again(struct model *m)
{
	uint8_t edition = m->held.edition + 1;

	model_begin(m, m->held.seq);
	m->held.edition = edition;
}

static bool model_agrees(const struct model *m, const struct books *o)
{
	if (!members(m->held.in))
		return true;
	if (m->held.lane != o->lane || m->held.recipient != o->recipient || m->held.call != o->call)
		return false;
	return !o->blocks || !m->held.blocks || o->blocks == m->held.blocks;
}

static void model_add(struct model *m, const struct books *o)
{
	struct books *h = &m->held;

	m->merges++;
	for (int i = 0; i < MEMBERS; i++) {
		h->in[i] |= o->in[i];
		h->count[i] += o->count[i];
	}
	if (o->blocks)
		h->blocks = o->blocks;
	if (o->scale > h->scale)
		h->scale = o->scale;
	if (o->scale_ahead > h->scale_ahead)
		h->scale_ahead = o->scale_ahead;
	if (o->about > h->about)
		h->about = o->about;
	h->lane = o->lane;
	h->recipient = o->recipient;
	h->call = o->call;
	h->flags |= o->flags;
	h->check += o->check;
}

static bool model_is_newer(const struct model *m, int64_t seq)
{
	return !m->used || (seq > m->held.seq && seq <= m->held.seq + TALLY_AHEAD_MAX);
}

/* A flush asks everyone, but not twice within 4 ms. */
static bool model_asks(struct model *m, const struct books *o)
{
	if (!o->flush || (m->asked_ms && m->now_ms < m->asked_ms + 4))
		return false;
	m->asked_ms = m->now_ms;
	return true;
}

static enum tally_outcome model_disagree(struct model *m, const struct books *o)
{
	if (m->disputed)
		return model_asks(m, o) ? TALLY_CONFLICT : TALLY_CONFLICT_AGAIN;
	m->disputed = true;
	m->other = *o;
	return TALLY_CONFLICT;
}

static enum tally_outcome model_root(struct model *m, const struct books *o)
{
	enum tally_outcome out = TALLY_ABSORBED;
	bool spoiled = m->done && o->reject && o->edition == m->held.edition;
	int common;

	if (model_is_newer(m, o->seq)) {
		model_begin(m, o->seq);
		spoiled = false;
	}
	if (o->seq != m->held.seq)
		return o->seq < m->held.seq ? TALLY_BEHIND : TALLY_STALE;
	if (!model_agrees(m, o))
		return model_disagree(m, o);
	if (m->done && !spoiled)
		return members(o->in) == 1 ? TALLY_ANSWERED : TALLY_ANSWERED_ALL;
	if (spoiled)
		model_begin_again(m);
	common = members_in_both(o->in, m->held.in);
	if (!common)
		model_add(m, o);
	else
		out = common == members(o->in) ? TALLY_DUPLICATE : TALLY_OVERLAP;
	m->done = members(m->held.in) == MEMBERS;
	if (m->done)
		return TALLY_COMPLETED;
	if (spoiled) {
		m->asked_ms = m->now_ms;
		return TALLY_SPOILED;
	}
	if (o->flush && m->disputed)
		return model_disagree(m, o);
	return model_asks(m, o) ? TALLY_ASKED : out;
}

static enum tally_outcome model_inner(struct model *m, const struct books *o, const bool *below)
{
	int common = members_in_both(o->in, m->held.in);
	bool known = common == members(o->in);

	known = known && m->used && o->seq == m->held.seq;
	if (o->reject && known)
		model_begin(m, o->seq);
	if (o->reject || o->flush)
		return known && !o->reject ? TALLY_FLUSHED_UP : TALLY_PASSED_UP;
	if (!m->used || o->seq > m->held.seq)
		model_begin(m, o->seq);
	if (o->seq != m->held.seq)
		return TALLY_STALE;
	if (!model_agrees(m, o))
		return TALLY_PASSED_UP;
	common = members_in_both(o->in, m->held.in);
	known = common == members(o->in);
	if (!known && (common || m->sent))
		return TALLY_PASSED_UP;
	if (!common)
		model_add(m, o);
	m->sent = members_in_both(below, m->held.in) == members(below);
	if (m->sent)
		return TALLY_SENT_UP;
	return known ? TALLY_DUPLICATE : TALLY_ABSORBED;
}

static bool model_has(const struct model *m, const bool *in)
{
	return members_in_both(m->held.in, in) == members(in);
}

/* What leaves a slot after an offer. */
struct leaving {
	enum tally_outcome outcome;
	uint8_t kind; /* kind_leaving() */
	bool done, sent;
	bool reads; /* the sum, in the second step: the packet does not have it */
	bool empties;
	bool flush;
	int64_t seq;
	uint16_t sender; /* of what came: a sum that goes up keeps one of its ranks */
	uint8_t blocks;
	uint16_t about; /* not 0: news of the chunk so many earlier */
	struct books books; /* of the slot after the first step; then what leaves */
	struct books other;
};

/* enum tally_kind, or 0: nothing leaves. */
static uint8_t kind_leaving(enum tally_outcome outcome)
{
	switch (outcome) {
	case TALLY_COMPLETED:
	case TALLY_ANSWERED:
	case TALLY_ANSWERED_ALL:
	case TALLY_REPAIRED:
		return TALLY_RESULT;
	case TALLY_ASKED:
	case TALLY_SPOILED:
		return TALLY_ASK;
	case TALLY_SENT_UP:
	case TALLY_FLUSHED_UP:
		return TALLY_CONTRIBUTION;
	case TALLY_CONFLICT:
		return TALLY_MISMATCH;
	case TALLY_BEHIND:
		return TALLY_OVERTAKEN;
	default:
		return 0;
	}
}

static struct leaving model_leaving(const struct model *m, const struct books *o,
				    enum tally_outcome outcome, bool merged)
{
	struct leaving l = { .outcome = outcome,
			     .kind = kind_leaving(outcome),
			     .done = m->done,
			     .sent = m->sent,
			     .empties = outcome == TALLY_FLUSHED_UP,
			     .flush = o->flush,
			     .sender = o->sender,
			     .seq = o->seq,
			     .books = m->held,
			     .other = m->other };

	if (l.kind == TALLY_RESULT || l.kind == TALLY_CONTRIBUTION)
		l.blocks = m->held.blocks;
	if (outcome == TALLY_ANSWERED && m->held.recipient != TALLY_EVERYONE &&
	    !o->in[m->held.recipient]) /* rank 1 is member 1 */
		l.blocks = 0;
	if (outcome == TALLY_ANSWERED)
		l.about = o->about;
	l.reads = l.empties || (l.kind && l.blocks && !(merged && o->blocks));
	return l;
}

/* Who is there of chunk `seq`, by what the slot holds now? (It may be half the circle away.) */
static void model_there(const struct model *m, int64_t seq, bool *ret)
{
	int32_t ahead = (uint32_t)(seq - m->held.seq);

	for (int i = 0; i < MEMBERS; i++)
		ret[i] = m->used && ahead <= 0 && (ahead < 0 || m->done || m->held.in[i]);
}

/* The second step. The slot may have moved on by now; then nothing can leave. */
static void model_leave(struct model *m, struct leaving *l)
{
	if (l->reads &&
	    (!m->used || m->held.seq != l->books.seq || m->done != l->done || m->sent != l->sent ||
	     m->held.blocks != l->books.blocks || !model_has(m, l->books.in))) {
		l->outcome = TALLY_STALE;
		return;
	}
	if (l->reads)
		l->books = m->held;
	if (l->outcome == TALLY_COMPLETED)
		l->about = l->books.about;
	if (l->about)
		model_there(m, l->seq - l->about, l->books.in);
	if (l->empties)
		model_begin(m, m->held.seq);
}

static enum tally_outcome model_repair(struct model *m, const struct books *o)
{
	bool known = m->used && o->seq == m->held.seq;

	if (!known && !model_is_newer(m, o->seq))
		return TALLY_STALE;
	if (known && m->done)
		return TALLY_DUPLICATE;
	/* A slot that was never used has the number 0, and so begins chunk 0 once more. */
	if (!m->used && (uint32_t)o->seq == 0) {
		model_begin(m, o->seq);
		known = true;
	}
	if (known)
		model_begin_again(m);
	else
		model_begin(m, o->seq);
	model_add(m, o);
	m->done = true;
	return TALLY_REPAIRED;
}

/* --- both machines side by side */

enum {
	EPOCH = 3,
};

struct pair {
	uint64_t random;
	bool root;
	bool below[MEMBERS];
	struct tally_set below_set;
	struct tally_set everyone;
	struct model model;
	struct memory_node node;
	struct memory_slot slot;
	struct {
		struct visit visit;
		struct leaving leaving;
	} waiting[MODEL_WAITING];
	int waits;
};

static struct tally_set set_of(const bool *in)
{
	struct tally_set s = { { 0 } };

	for (int i = 0; i < MEMBERS; i++)
		if (in[i])
			tally_set_add(&s, rank_of[i]);
	return s;
}

static struct message message_of(const struct books *b, enum tally_kind kind)
{
	const struct tally_set set = set_of(b->in);
	struct message m = { .header = { .magic = TALLY_MAGIC,
					 .version = TALLY_VERSION,
					 .kind = kind,
					 .flags = b->flags | TALLY_LARGE |
						  (b->flush ? TALLY_FLUSH : 0) |
						  (b->reject ? TALLY_REJECT : 0),
					 .epoch = tally_le16(EPOCH),
					 .seq = tally_le32((uint32_t)b->seq),
					 .recipient = tally_le16(b->recipient),
					 .blocks = b->blocks,
					 .lane = b->lane,
					 .scale = b->scale,
					 .scale_ahead = b->scale_ahead,
					 .call = tally_le64(b->call),
					 .check = tally_le64(b->check),
					 .about = tally_le16(b->about),
					 .sender = tally_le16(b->sender),
					 .edition = b->edition } };

	tally_header_set_put(&m.header, &set);
	m.header.tag = tally_le64(tally_tag(&m.header, &set));
	memcpy(message_words(&m), b->count, sizeof(b->count));
	return m;
}

/* Mostly of the same chunk; at times of the one before or after, at times far away. */
static int64_t random_seq(struct pair *p)
{
	static const int64_t distance[] = { (1LL << 31) - 1, TALLY_AHEAD_MAX, TALLY_AHEAD_MAX + 1 };
	int64_t seq = p->model.held.seq, far = distance[random_below(&p->random, 3)];

	if (chance(&p->random, 800))
		return seq;
	if (chance(&p->random, 900))
		return seq + 16 * ((int64_t)random_below(&p->random, 4) - 2);
	return chance(&p->random, 500) ? seq + far : seq - far;
}

/* A set that is not empty: one member, or a few. */
static void random_members(struct pair *p, bool *in)
{
	in[random_below(&p->random, MEMBERS)] = true;
	for (int i = 0; i < MEMBERS; i++)
		in[i] |= chance(&p->random, 150);
}

static struct books random_offer(struct pair *p)
{
	struct books o = {
		.seq = random_seq(p),
		.blocks = chance(&p->random, 300)   ? 0
			  : chance(&p->random, 950) ? 1
						    : 2,
		.lane = chance(&p->random, 950) ? TALLY_LANE_INT64 : TALLY_LANE_BYTES,
		.recipient = chance(&p->random, 950) ? TALLY_EVERYONE : 1,
		.scale = random_below(&p->random, 256),
		.scale_ahead = random_below(&p->random, 256),
		.flags = random_below(&p->random, 256) & TALLY_FLAGS_STICKY,
		.edition = random_below(&p->random, 3),
		.about = random_below(&p->random, 4),
		.sender = random_below(&p->random, 256),
		.flush = chance(&p->random, 200),
		.reject = chance(&p->random, 100),
		.call = chance(&p->random, 950),
		.check = random_next(&p->random),
	};

	random_members(p, o.in);
	for (int i = 0; i < MEMBERS; i++)
		o.count[i] = o.blocks && o.in[i];
	return o;
}

static const char *pair_compare(const struct pair *p)
{
	const struct tally_slot_state *s = &p->slot.state;
	const struct books *h = &p->model.held;
	struct tally_set set = set_of(h->in);

	if (p->model.used != (s->phase != TALLY_SLOT_FRESH))
		return "one is used, the other fresh";
	if (!p->model.used)
		return NULL;
	if (p->model.done != (s->phase == TALLY_SLOT_DONE) ||
	    p->model.sent != (s->phase == TALLY_SLOT_SENT))
		return "one is done, the other not";
	if (s->seq != (uint32_t)h->seq)
		return "different chunks";
	if (!tally_set_is_equal(&s->set, &set))
		return "different sets";
	if (s->blocks != h->blocks || s->scale != h->scale || s->flags != h->flags ||
	    s->scale_ahead != h->scale_ahead || s->check != h->check)
		return "different books";
	if (members(h->in) && (s->lane != h->lane || s->recipient != h->recipient))
		return "different lanes or recipients";
	if (s->edition != h->edition || s->about != h->about ||
	    (members(h->in) && s->call != h->call))
		return "different editions, calls or questions";
	if (s->disputed != p->model.disputed ||
	    (s->disputed &&
	     (s->other != p->model.other.sender || s->other_call != p->model.other.call)))
		return "different disputes";
	if (h->blocks && memcmp(p->slot.word, h->count, sizeof(h->count)) != 0)
		return "different sums";
	return NULL;
}

static uint64_t outcomes_shown; /* by all pairs: bit 1 << outcome */

static bool header_is_right(const struct leaving *l, const struct tally_header *h)
{
	bool up = l->kind == TALLY_CONTRIBUTION, dispute = l->kind == TALLY_MISMATCH;
	uint8_t flags = l->books.flags | TALLY_LARGE | (up && l->flush ? TALLY_FLUSH : 0);
	uint64_t check = dispute		      ? l->other.call
			 : l->kind == TALLY_OVERTAKEN ? (uint32_t)l->books.seq
						      : l->books.check;

	return h->blocks == l->blocks && h->flags == flags && h->scale == l->books.scale &&
	       h->scale_ahead == l->books.scale_ahead && h->lane == l->books.lane &&
	       h->edition == l->books.edition && tally_le64_get(h->call) == l->books.call &&
	       tally_le64_get(h->check) == check &&
	       tally_le16_get(h->recipient) == l->books.recipient &&
	       tally_le16_get(h->about) == (up ? l->books.about : l->about) &&
	       tally_le16_get(h->sender) == (up	       ? l->sender
					     : dispute ? l->other.sender
						       : TALLY_FROM_NODE);
}

/* Is what leaves what the obvious machine says? */
static const char *leaving_compare(const struct leaving *l, struct message *m)
{
	const struct tally_header *h = &m->header;
	const struct tally_set set = tally_header_set(h), expected = set_of(l->books.in);

	if (h->kind != l->kind || tally_le32_get(h->seq) != (uint32_t)l->seq)
		return "another kind leaves, or of another chunk";
	if (!tally_set_is_equal(&set, &expected))
		return "another set leaves";
	if (!header_is_right(l, h))
		return "another header leaves";
	if (tally_le64_get(h->tag) != tally_tag(h, &set))
		return "a wrong tag leaves";
	if (l->blocks && memcmp(message_words(m), l->books.count, sizeof(l->books.count)) != 0)
		return "another sum leaves";
	return NULL;
}

static const char *pair_leave(struct pair *p, struct visit *v, struct leaving *l)
{
	enum tally_outcome outcome = visit_end(&p->node, v);
	const char *wrong = NULL;

	model_leave(&p->model, l);
	if (outcome != l->outcome)
		return "different outcomes of the second step";
	if (l->kind && outcome != TALLY_STALE)
		wrong = leaving_compare(l, &v->message);
	return wrong ? wrong : pair_compare(p);
}

/* The second step of any that waits for it. */
static const char *pair_go_on(struct pair *p)
{
	int i = random_below(&p->random, p->waits);
	struct visit v = p->waiting[i].visit;
	struct leaving l = p->waiting[i].leaving;

	p->waiting[i] = p->waiting[--p->waits];
	return pair_leave(p, &v, &l);
}

static const char *pair_offer(struct pair *p)
{
	bool repair = p->root && chance(&p->random, 20);
	struct books o = random_offer(p);
	uint64_t before = p->model.merges;
	enum tally_outcome expected;
	struct leaving l;
	struct message m;
	struct visit v;

	p->node.now_ms = p->model.now_ms += 1 + random_below(&p->random, 3);
	if (repair)
		memset(o.in, true, sizeof(o.in));
	m = message_of(&o, repair ? TALLY_REPAIR : TALLY_CONTRIBUTION);
	expected = repair    ? model_repair(&p->model, &o)
		   : p->root ? model_root(&p->model, &o)
			     : model_inner(&p->model, &o, p->below);
	l = model_leaving(&p->model, &o, expected, p->model.merges != before);
	visit_begin(&p->node, &m, &v);
	if (v.reply.outcome != expected)
		return "different outcomes";
	outcomes_shown |= 1ULL << expected;
	if (p->waits == MODEL_WAITING || chance(&p->random, 500))
		return pair_leave(p, &v, &l);
	p->waiting[p->waits].visit = v;
	p->waiting[p->waits++].leaving = l;
	return pair_compare(p);
}

/* The node has lost its memory. */
static const char *pair_forget(struct pair *p)
{
	p->slot = (struct memory_slot){ 0 };
	model_begin(&p->model, p->model.held.seq);
	p->model.used = false;
	return pair_compare(p);
}

static const char *pair_step(struct pair *p)
{
	if (p->waits && chance(&p->random, 300))
		return pair_go_on(p);
	return chance(&p->random, 5) ? pair_forget(p) : pair_offer(p);
}

static const char *run_pair(uint64_t seed)
{
	static const int64_t starts[] = { 0, 1LL << 31, 1LL << 32 };
	static const bool all[MEMBERS] = { true, true, true, true, true, true };
	struct pair p = { .random = seed };
	const char *wrong = NULL;

	p.root = chance(&p.random, 500);
	random_members(&p, p.below);
	p.below_set = set_of(p.below);
	p.everyone = set_of(all);
	p.model.held.seq = starts[seed % 3] + random_below(&p.random, 100) - 50;
	p.node = (struct memory_node){
		.role = { .everyone = &p.everyone,
			  .below = p.root ? &p.everyone : &p.below_set,
			  .epoch = EPOCH,
			  .blocks_max = MESSAGE_BLOCKS_MAX,
			  .root = p.root },
		.frames_grow = true,
		.slots = 1,
		.slot = &p.slot,
	};
	for (int i = 0; i < MODEL_OFFERS && !wrong; i++)
		wrong = pair_step(&p);
	return wrong;
}

static void the_machine_does_what_the_obvious_one_does(void **state)
{
	run_seeds(MODEL_SEEDS, run_pair);
}

static void both_had_every_outcome_that_a_slot_has(void **state)
{
	static const enum tally_outcome given[] = {
		TALLY_CONFLICT,	 TALLY_CONFLICT_AGAIN, TALLY_STALE,	 TALLY_BEHIND,
		TALLY_DUPLICATE, TALLY_OVERLAP,	       TALLY_ABSORBED,	 TALLY_COMPLETED,
		TALLY_ANSWERED,	 TALLY_ANSWERED_ALL,   TALLY_ASKED,	 TALLY_SPOILED,
		TALLY_REPAIRED,	 TALLY_SENT_UP,	       TALLY_FLUSHED_UP, TALLY_PASSED_UP,
	};

	if (getenv("TALLY_SEED"))
		skip();
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
		assert_true(outcomes_shown >> given[i] & 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_is_stored_and_the_others_are_added),
		cmocka_unit_test(one_without_payload_leaves_the_words_alone),
		cmocka_unit_test(a_repeated_one_is_not_added),
		cmocka_unit_test(a_finished_chunk_is_answered_whatever_is_offered),
		cmocka_unit_test(those_who_disagree_are_refused),
		cmocka_unit_test(a_fresh_slot_takes_any_seq),
		cmocka_unit_test(newer_is_ahead_but_not_too_far),
		cmocka_unit_test(older_is_taken_nowhere),
		cmocka_unit_test(a_flush_at_the_root_counts_and_asks),
		cmocka_unit_test(all_are_asked_once_in_four_milliseconds),
		cmocka_unit_test(an_inner_node_sends_up_when_all_below_have_come),
		cmocka_unit_test(an_inner_node_adds_nobody_to_what_it_has_sent_up),
		cmocka_unit_test(an_inner_node_goes_on_however_far_ahead_a_chunk_is),
		cmocka_unit_test(a_flush_at_an_inner_node_is_never_held_back),
		cmocka_unit_test(a_repair_finishes_a_chunk),
		cmocka_unit_test(the_machine_does_what_the_obvious_one_does),
		cmocka_unit_test(both_had_every_outcome_that_a_slot_has),
	};

	return cmocka_run_group_tests_name("slot", tests, NULL, NULL);
}
