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
	at_root(&s, offer(1, .lane = TALLY_LANE_BYTES), TALLY_ANSWERED, TALLY_WORDS_KEEP);
}

static void those_who_disagree_are_refused(void **state)
{
	struct tally_slot_state s = { 0 };

	at_root(&s, offer(1, .blocks = 0), TALLY_ABSORBED, TALLY_WORDS_KEEP);
	at_root(&s, offer(2, .lane = TALLY_LANE_BYTES), TALLY_CONFLICT, TALLY_WORDS_KEEP);
	at_root(&s, offer(2, .recipient = 0), TALLY_CONFLICT, TALLY_WORDS_KEEP);
	at_root(&s, offer(2, .blocks = 5), TALLY_ABSORBED, TALLY_WORDS_STORE);
	at_root(&s, offer(4, .blocks = 4), TALLY_CONFLICT, TALLY_WORDS_KEEP);
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

static void newer_is_less_than_half_the_circle_ahead(void **state)
{
	static const uint32_t seqs[] = { 0, 1, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff };

	for (int i = 0; i < 6; i++) {
		const struct tally_slot_state s = { .seq = seqs[i], .phase = TALLY_SLOT_GATHERING };

		assert_false(tally_slot_is_newer(&s, seqs[i]));
		assert_true(tally_slot_is_newer(&s, seqs[i] + 1));
		assert_true(tally_slot_is_newer(&s, seqs[i] + 0x7fffffff));
		assert_false(tally_slot_is_newer(&s, seqs[i] + 0x80000000));
		assert_false(tally_slot_is_newer(&s, seqs[i] - 1));
	}
}

static void older_is_stale_everywhere(void **state)
{
	const struct tally_offer old = offer(7, .seq = 0xffffffff);
	struct tally_slot_state s = { 0 };

	at_root(&s, offer(7, .seq = 3), TALLY_COMPLETED, TALLY_WORDS_STORE);
	at_root(&s, old, TALLY_STALE, TALLY_WORDS_KEEP);
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

static void an_inner_node_sends_up_when_all_below_have_come(void **state)
{
	struct tally_slot_state s = { 0 };

	at_inner(&s, offer(1), TALLY_ABSORBED, TALLY_WORDS_STORE);
	at_inner(&s, offer(1), TALLY_DUPLICATE, TALLY_WORDS_KEEP);
	at_inner(&s, offer(2), TALLY_SENT_UP, TALLY_WORDS_ADD);
	at_inner(&s, offer(1), TALLY_SENT_UP, TALLY_WORDS_KEEP);
	at_inner(&s, offer(5), TALLY_PASSED_UP, TALLY_WORDS_KEEP);
	assert_int_equal(s.phase, TALLY_SLOT_GATHERING);
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
	at_root(&s, offer(1), TALLY_ANSWERED, TALLY_WORDS_KEEP);
}

/* --- the obvious machine: arrays of bool, exact counts, sequence numbers that never wrap */

enum {
	MEMBERS = 6,
};

static const uint32_t rank_of[MEMBERS] = { 0, 1, 63, 64, 200, 255 };

struct books {
	int64_t seq;
	bool in[MEMBERS];
	uint8_t blocks, lane, scale, scale_ahead, flags;
	uint16_t recipient;
	bool flush;
	uint64_t check;
	uint64_t count[MEMBERS]; /* how often each member's payload is in the sum */
};

struct model {
	bool used, done;
	uint64_t merges;
	struct books held;
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
	*m = (struct model){ .used = true, .merges = m->merges, .held = { .seq = seq } };
}

static bool model_agrees(const struct model *m, const struct books *o)
{
	if (!members(m->held.in))
		return true;
	if (m->held.lane != o->lane || m->held.recipient != o->recipient)
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
	h->lane = o->lane;
	h->recipient = o->recipient;
	h->flags |= o->flags;
	h->check += o->check;
}

static enum tally_outcome model_root(struct model *m, const struct books *o)
{
	enum tally_outcome out = TALLY_ABSORBED;
	int common;

	if (!m->used || o->seq > m->held.seq)
		model_begin(m, o->seq);
	if (o->seq < m->held.seq)
		return TALLY_STALE;
	if (m->done)
		return members(o->in) == 1 ? TALLY_ANSWERED : TALLY_ANSWERED_ALL;
	if (!model_agrees(m, o))
		return TALLY_CONFLICT;
	common = members_in_both(o->in, m->held.in);
	if (!common)
		model_add(m, o);
	else
		out = common == members(o->in) ? TALLY_DUPLICATE : TALLY_OVERLAP;
	m->done = members(m->held.in) == MEMBERS;
	if (m->done)
		return TALLY_COMPLETED;
	return o->flush ? TALLY_ASKED : out;
}

static enum tally_outcome model_inner(struct model *m, const struct books *o, const bool *below)
{
	int common = members_in_both(o->in, m->held.in);
	bool known = common == members(o->in), whole;

	if (o->flush)
		return m->used && o->seq == m->held.seq && known ? TALLY_FLUSHED_UP
								 : TALLY_PASSED_UP;
	if (!m->used || o->seq > m->held.seq)
		model_begin(m, o->seq);
	if (o->seq < m->held.seq)
		return TALLY_STALE;
	if (!model_agrees(m, o))
		return TALLY_CONFLICT;
	common = members_in_both(o->in, m->held.in);
	known = common == members(o->in);
	if (common && !known)
		return TALLY_PASSED_UP;
	if (!common)
		model_add(m, o);
	whole = members_in_both(below, m->held.in) == members(below);
	if (whole)
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
	enum tally_kind kind; /* 0: nothing leaves */
	bool done;
	bool reads; /* the sum, in the second step: the packet does not have it */
	bool empties;
	uint8_t blocks;
	struct books books; /* of the slot after the first step; then what leaves */
};

static struct leaving model_leaving(const struct model *m, const struct books *o,
				    enum tally_outcome outcome, bool merged)
{
	struct leaving l = { .outcome = outcome,
			     .kind = TALLY_RESULT,
			     .done = m->done,
			     .blocks = m->held.blocks,
			     .books = m->held };

	if (outcome == TALLY_ASKED) {
		l.kind = TALLY_ASK;
		l.blocks = 0;
	} else if (outcome == TALLY_SENT_UP || outcome == TALLY_FLUSHED_UP) {
		l.kind = TALLY_CONTRIBUTION;
	} else if (outcome == TALLY_ANSWERED && m->held.recipient != TALLY_EVERYONE) {
		/* Rank 1 is member 1. */
		l.blocks = o->in[m->held.recipient] ? l.blocks : 0;
	} else if (outcome != TALLY_ANSWERED && outcome != TALLY_ANSWERED_ALL &&
		   outcome != TALLY_COMPLETED && outcome != TALLY_REPAIRED) {
		l.kind = 0;
	}
	l.empties = outcome == TALLY_FLUSHED_UP;
	l.reads = l.empties || (l.kind && l.blocks && !(merged && o->blocks));
	return l;
}

/* The second step. The slot may be another one by now; then nothing can leave. */
static void model_leave(struct model *m, struct leaving *l)
{
	if (!l->reads)
		return;
	if (!m->used || m->held.seq != l->books.seq || m->done != l->done ||
	    m->held.blocks != l->books.blocks || !model_has(m, l->books.in)) {
		l->outcome = TALLY_STALE;
		return;
	}
	l->books = m->held;
	if (l->empties)
		model_begin(m, m->held.seq);
}

static enum tally_outcome model_repair(struct model *m, const struct books *o)
{
	if (m->used && o->seq < m->held.seq)
		return TALLY_STALE;
	if (m->used && o->seq == m->held.seq && m->done)
		return TALLY_DUPLICATE;
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
		bool flush;
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
	struct message m = { .header = { .kind = kind,
					 .flags = b->flags | (b->flush ? TALLY_FLUSH : 0),
					 .epoch = tally_le16(EPOCH),
					 .seq = tally_le32((uint32_t)b->seq),
					 .recipient = tally_le16(b->recipient),
					 .blocks = b->blocks,
					 .lane = b->lane,
					 .scale = b->scale,
					 .scale_ahead = b->scale_ahead,
					 .check = tally_le64(b->check) } };

	tally_header_set_put(&m.header, &set);
	memcpy(m.word, b->count, sizeof(b->count));
	return m;
}

/* Mostly of the same chunk; at times of the one before or after, at times far away. */
static int64_t random_seq(struct pair *p)
{
	static const int64_t far = (1LL << 31) - 1;
	int64_t seq = p->model.held.seq;

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
		.flags = random_below(&p->random, 8) & TALLY_FLAGS_STICKY,
		.flush = chance(&p->random, 200),
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
	if (p->model.done != (s->phase == TALLY_SLOT_DONE))
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
	if (h->blocks && memcmp(p->slot.word, h->count, sizeof(h->count)) != 0)
		return "different sums";
	return NULL;
}

/* Is what leaves what the obvious machine says? `m` came with FLUSH, if `flush`. */
static const char *leaving_compare(const struct leaving *l, const struct message *m, bool flush)
{
	const struct tally_header *h = &m->header;
	const struct tally_set set = tally_header_set(h), expected = set_of(l->books.in);
	uint8_t flags = l->books.flags | (flush && l->kind == TALLY_CONTRIBUTION ? TALLY_FLUSH : 0);

	if (h->kind != l->kind || tally_le32_get(h->seq) != (uint32_t)l->books.seq)
		return "another kind leaves, or of another chunk";
	if (!tally_set_is_equal(&set, &expected))
		return "another set leaves";
	if (h->blocks != l->blocks || h->flags != flags || h->scale != l->books.scale ||
	    h->scale_ahead != l->books.scale_ahead || h->lane != l->books.lane ||
	    tally_le16_get(h->recipient) != l->books.recipient ||
	    tally_le64_get(h->check) != (l->blocks ? l->books.check : 0))
		return "another header leaves";
	if (l->blocks && memcmp(m->word, l->books.count, sizeof(l->books.count)) != 0)
		return "another sum leaves";
	return NULL;
}

static const char *pair_leave(struct pair *p, struct visit *v, struct leaving *l, bool flush)
{
	enum tally_outcome outcome = visit_end(&p->node, v);
	const char *wrong = NULL;

	model_leave(&p->model, l);
	if (outcome != l->outcome)
		return "different outcomes of the second step";
	if (l->kind && outcome != TALLY_STALE)
		wrong = leaving_compare(l, &v->message, flush);
	return wrong ? wrong : pair_compare(p);
}

/* The second step of any that waits for it. */
static const char *pair_go_on(struct pair *p)
{
	int i = random_below(&p->random, p->waits);
	struct visit v = p->waiting[i].visit;
	struct leaving l = p->waiting[i].leaving;
	bool flush = p->waiting[i].flush;

	p->waiting[i] = p->waiting[--p->waits];
	return pair_leave(p, &v, &l, flush);
}

static const char *pair_offer(struct pair *p)
{
	bool repair = p->root && chance(&p->random, 20);
	struct books o = random_offer(p);
	enum tally_outcome expected;
	struct leaving l;
	struct message m;
	uint64_t before;
	struct visit v;

	if (repair)
		memset(o.in, true, sizeof(o.in));
	m = message_of(&o, repair ? TALLY_REPAIR : TALLY_CONTRIBUTION);
	before = p->model.merges;
	expected = repair    ? model_repair(&p->model, &o)
		   : p->root ? model_root(&p->model, &o)
			     : model_inner(&p->model, &o, p->below);
	l = model_leaving(&p->model, &o, expected, p->model.merges != before);
	visit_begin(&p->node, &m, &v);
	if (v.reply.outcome != expected)
		return "different outcomes";
	if (p->waits == MODEL_WAITING || chance(&p->random, 500))
		return pair_leave(p, &v, &l, o.flush);
	p->waiting[p->waits].visit = v;
	p->waiting[p->waits].leaving = l;
	p->waiting[p->waits++].flush = o.flush;
	return pair_compare(p);
}

/* The node has lost its memory. */
static const char *pair_forget(struct pair *p)
{
	p->slot = (struct memory_slot){ 0 };
	p->model.used = p->model.done = false;
	p->model.held = (struct books){ .seq = p->model.held.seq };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_is_stored_and_the_others_are_added),
		cmocka_unit_test(one_without_payload_leaves_the_words_alone),
		cmocka_unit_test(a_repeated_one_is_not_added),
		cmocka_unit_test(a_finished_chunk_is_answered_whatever_is_offered),
		cmocka_unit_test(those_who_disagree_are_refused),
		cmocka_unit_test(a_fresh_slot_takes_any_seq),
		cmocka_unit_test(newer_is_less_than_half_the_circle_ahead),
		cmocka_unit_test(older_is_stale_everywhere),
		cmocka_unit_test(a_flush_at_the_root_counts_and_asks),
		cmocka_unit_test(an_inner_node_sends_up_when_all_below_have_come),
		cmocka_unit_test(a_flush_at_an_inner_node_is_never_held_back),
		cmocka_unit_test(a_repair_finishes_a_chunk),
		cmocka_unit_test(the_machine_does_what_the_obvious_one_does),
	};

	return cmocka_run_group_tests_name("slot", tests, NULL, NULL);
}
