// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where contributions do not fit together: calls that differ, sums that are rejected, chunks that
 * are behind or far ahead; how often all ranks hear of it, and what the messages about it say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/memory_node.h"

/* Literals below name their defaults first, and a test overrides what it is about. */
#pragma GCC diagnostic ignored "-Woverride-init"

enum {
	JOB = 7,
	EPOCH = 3,
	BOOT = 5,
	SLOTS = 8,
	OURS = 100, /* shapes of calls */
	OTHERS = 200,
};

static const struct tally_set three = { { 0x7 } };
static const struct tally_set two = { { 0x3 } }; /* come through the inner node */
static const struct tally_set nobody;

/* --- the slot alone */

#define offer(members, ...)                                 \
	((struct tally_offer){ .set = { { members } },      \
			       .seq = 40,                   \
			       .blocks = 1,                 \
			       .lane = TALLY_LANE_INT64,    \
			       .recipient = TALLY_EVERYONE, \
			       .call = OURS,                \
			       __VA_ARGS__ })

static enum tally_outcome at_root(struct tally_slot_state *s, struct tally_offer o)
{
	return tally_slot_admit_root(s, &o, &three).outcome;
}

static enum tally_outcome at_inner(struct tally_slot_state *s, struct tally_offer o)
{
	return tally_slot_admit_inner(s, &o, &two).outcome;
}

static void all_ranks_hear_of_the_first_that_disagrees(void **state)
{
	struct tally_slot_state s = { 0 };

	assert_int_equal(at_root(&s, offer(1)), TALLY_ABSORBED);
	assert_int_equal(at_root(&s, offer(2, .call = OTHERS, .sender = 1)), TALLY_CONFLICT);
	assert_int_equal(at_root(&s, offer(4, .call = 300, .sender = 2)), TALLY_CONFLICT_AGAIN);
	assert_int_equal(s.other, 1);
	assert_true(s.other_call == OTHERS);
	assert_true(s.call == OURS);
	assert_int_equal(s.set.word[0], 1);
}

/* Each of the things that ranks must agree in. */
static void any_difference_is_a_dispute(void **state)
{
	const struct tally_offer different[] = {
		offer(2, .call = OTHERS),
		offer(2, .call = OURS | 1ULL << 63),
		offer(2, .lane = TALLY_LANE_INT32),
		offer(2, .recipient = 1),
		offer(2, .blocks = 2),
	};

	for (int i = 0; i < 5; i++) {
		struct tally_slot_state s = { 0 };

		at_root(&s, offer(1));
		assert_int_equal(at_root(&s, different[i]), TALLY_CONFLICT);
		s = (struct tally_slot_state){ 0 };
		at_inner(&s, offer(1));
		assert_int_equal(at_inner(&s, different[i]), TALLY_PASSED_UP);
		assert_int_equal(s.set.word[0], 1);
	}
}

static void who_flushes_hears_again_each_4_ms(void **state)
{
	static const struct {
		uint32_t now_ms;
		enum tally_outcome outcome;
	} step[] = {
		{ 100, TALLY_CONFLICT },       { 100, TALLY_CONFLICT_AGAIN },
		{ 103, TALLY_CONFLICT_AGAIN }, { 104, TALLY_CONFLICT },
		{ 107, TALLY_CONFLICT_AGAIN }, { 200, TALLY_CONFLICT },
	};
	struct tally_slot_state s = { 0 };

	at_root(&s, offer(1));
	at_root(&s, offer(2, .call = OTHERS, .now_ms = 100));
	for (int i = 0; i < 6; i++)
		assert_int_equal(at_root(&s, offer(2, .call = OTHERS, .flush = true,
						   .now_ms = step[i].now_ms)),
				 step[i].outcome);
	/* Without a flush, never. */
	assert_int_equal(at_root(&s, offer(2, .call = OTHERS, .now_ms = 900)),
			 TALLY_CONFLICT_AGAIN);
}

/* Who agrees would only hear that others are missing; and its words are in the sum. */
static void who_agrees_and_flushes_hears_of_the_dispute_too(void **state)
{
	struct tally_slot_state s = { 0 };

	at_root(&s, offer(1));
	at_root(&s, offer(2, .call = OTHERS));
	assert_int_equal(at_root(&s, offer(4, .flush = true, .now_ms = 10)), TALLY_CONFLICT);
	assert_int_equal(s.set.word[0], 5);
	assert_int_equal(at_root(&s, offer(1, .flush = true, .now_ms = 13)), TALLY_CONFLICT_AGAIN);
	assert_int_equal(at_root(&s, offer(1, .now_ms = 20)), TALLY_DUPLICATE);
	assert_int_equal(at_root(&s, offer(1, .flush = true, .now_ms = 14)), TALLY_CONFLICT);
}

static void the_next_chunk_knows_no_dispute(void **state)
{
	struct tally_slot_state s = { 0 };

	at_root(&s, offer(1));
	at_root(&s, offer(2, .call = OTHERS, .flush = true, .now_ms = 10));
	assert_int_equal(at_root(&s, offer(1, .seq = 48, .flush = true, .now_ms = 10)),
			 TALLY_ASKED);
	assert_false(s.disputed);
	assert_int_equal(at_root(&s, offer(2, .seq = 48, .call = OTHERS)), TALLY_CONFLICT);
}

/* --- how often the group is asked */

static void the_group_is_asked_about_a_chunk_each_4_ms(void **state)
{
	static const uint32_t begins[] = { 1, 1000, 0xfffffffe, 0x7fffffff };

	for (int i = 0; i < 4; i++) {
		struct tally_slot_state s = { 0 };
		uint32_t t = begins[i];

		assert_int_equal(at_root(&s, offer(1, .flush = true, .now_ms = t)), TALLY_ASKED);
		assert_int_equal(at_root(&s, offer(2, .flush = true, .now_ms = t)), TALLY_ABSORBED);
		assert_int_equal(at_root(&s, offer(2, .flush = true, .now_ms = t + 3)),
				 TALLY_DUPLICATE);
		assert_int_equal(at_root(&s, offer(6, .flush = true, .now_ms = t + 3)),
				 TALLY_OVERLAP);
		assert_int_equal(at_root(&s, offer(1, .flush = true, .now_ms = t + 4)),
				 TALLY_ASKED);
		assert_int_equal(at_root(&s, offer(1, .flush = true, .now_ms = t + 7)),
				 TALLY_DUPLICATE);
		/* Of another chunk at once. */
		assert_int_equal(at_root(&s, offer(1, .seq = 48, .flush = true, .now_ms = t + 7)),
				 TALLY_ASKED);
	}
}

/* --- sums that are rejected */

static void complete(struct tally_slot_state *s)
{
	assert_int_equal(at_root(s, offer(1)), TALLY_ABSORBED);
	assert_int_equal(at_root(s, offer(2)), TALLY_ABSORBED);
	assert_int_equal(at_root(s, offer(4)), TALLY_COMPLETED);
}

static void a_rejected_sum_is_gathered_anew_with_the_rejecter_in_it(void **state)
{
	const struct tally_offer o = offer(2, .reject = true, .flush = true, .check = 9);
	struct tally_slot_state s = { 0 };
	struct tally_verdict v;

	complete(&s);
	v = tally_slot_admit_root(&s, &o, &three);
	assert_int_equal(v.outcome, TALLY_SPOILED);
	assert_int_equal(v.words, TALLY_WORDS_STORE);
	assert_int_equal(s.set.word[0], 2);
	assert_true(s.check == 9);
	assert_int_equal(s.edition, 1);
	assert_int_equal(s.phase, TALLY_SLOT_GATHERING);
	assert_int_equal(at_root(&s, offer(1)), TALLY_ABSORBED);
	assert_int_equal(at_root(&s, offer(4)), TALLY_COMPLETED);
	assert_int_equal(s.edition, 1);
}

/* Several ranks may have got the wrong sum, and each rejects it: once is enough. */
static void only_the_edition_that_is_there_can_be_rejected(void **state)
{
	struct tally_slot_state s = { 0 };

	complete(&s);
	assert_int_equal(at_root(&s, offer(2, .reject = true, .edition = 1)), TALLY_ANSWERED);
	assert_int_equal(at_root(&s, offer(2, .reject = true)), TALLY_SPOILED);
	assert_int_equal(at_root(&s, offer(1, .reject = true)), TALLY_ABSORBED);
	assert_int_equal(at_root(&s, offer(4)), TALLY_COMPLETED);
	assert_int_equal(at_root(&s, offer(4, .reject = true)), TALLY_ANSWERED);
	assert_int_equal(at_root(&s, offer(3, .reject = true)), TALLY_ANSWERED_ALL);
	assert_int_equal(at_root(&s, offer(4, .reject = true, .edition = 1)), TALLY_SPOILED);
	assert_int_equal(s.edition, 2);
	/* While it is gathered there is nothing to reject. */
	assert_int_equal(at_root(&s, offer(4, .reject = true, .edition = 2)), TALLY_DUPLICATE);
}

static void editions_wrap(void **state)
{
	struct tally_slot_state s = { 0 };

	complete(&s);
	for (int i = 0; i < 600; i++) {
		assert_int_equal(at_root(&s, offer(1, .reject = true, .edition = i)),
				 TALLY_SPOILED);
		at_root(&s, offer(2));
		assert_int_equal(at_root(&s, offer(4)), TALLY_COMPLETED);
	}
	/* And the next chunk begins with the first one. */
	at_root(&s, offer(1, .seq = 48));
	assert_int_equal(s.edition, 0);
}

static void whom_the_rejecter_makes_ask_is_asked_by_nobody_else_for_4_ms(void **state)
{
	struct tally_slot_state s = { 0 };

	complete(&s);
	assert_int_equal(at_root(&s, offer(1, .reject = true, .flush = true, .now_ms = 10)),
			 TALLY_SPOILED);
	assert_int_equal(at_root(&s, offer(2, .flush = true, .now_ms = 13)), TALLY_ABSORBED);
	assert_int_equal(at_root(&s, offer(2, .flush = true, .now_ms = 14)), TALLY_ASKED);
}

static void a_job_of_one_that_rejects_gets_its_own_at_once(void **state)
{
	const struct tally_set one = { { 1 } };
	const struct tally_offer first = offer(1), again = offer(1, .reject = true);
	struct tally_slot_state s = { 0 };

	assert_int_equal(tally_slot_admit_root(&s, &first, &one).outcome, TALLY_COMPLETED);
	assert_int_equal(tally_slot_admit_root(&s, &again, &one).outcome, TALLY_COMPLETED);
	assert_int_equal(s.edition, 1);
}

/* The wrong words may be those of the inner node. */
static void an_inner_node_forgets_what_is_rejected_and_lets_the_rejecter_pass(void **state)
{
	struct tally_slot_state s = { 0 };

	at_inner(&s, offer(1));
	assert_int_equal(at_inner(&s, offer(2, .reject = true, .flush = true)), TALLY_PASSED_UP);
	assert_int_equal(s.set.word[0], 1); /* the rejecter is not in it */
	assert_int_equal(at_inner(&s, offer(1, .seq = 48, .reject = true)), TALLY_PASSED_UP);
	assert_int_equal(s.set.word[0], 1);
	assert_int_equal(s.seq, 40);
	assert_int_equal(at_inner(&s, offer(2)), TALLY_SENT_UP);
	assert_int_equal(at_inner(&s, offer(2, .reject = true, .flush = true)), TALLY_PASSED_UP);
	assert_true(tally_set_is_empty(&s.set));
	assert_int_equal(s.blocks, 0);
	assert_int_equal(s.seq, 40);
	assert_int_equal(at_inner(&s, offer(1)), TALLY_ABSORBED);
}

/* --- behind and ahead */

static void how_far_a_chunk_is_away_says_what_becomes_of_it(void **state)
{
	static const struct {
		uint32_t distance;
		enum tally_outcome root, inner, repair;
	} c[] = {
		{ 1, TALLY_ABSORBED, TALLY_ABSORBED, TALLY_REPAIRED },
		{ TALLY_AHEAD_MAX, TALLY_ABSORBED, TALLY_ABSORBED, TALLY_REPAIRED },
		{ TALLY_AHEAD_MAX + 1, TALLY_STALE, TALLY_ABSORBED, TALLY_STALE },
		{ 0x7fffffff, TALLY_STALE, TALLY_ABSORBED, TALLY_STALE },
		{ 0x80000000, TALLY_STALE, TALLY_STALE, TALLY_STALE },
		{ 0x80000001, TALLY_BEHIND, TALLY_STALE, TALLY_STALE },
		{ (uint32_t)-TALLY_AHEAD_MAX, TALLY_BEHIND, TALLY_STALE, TALLY_STALE },
		{ (uint32_t)-1, TALLY_BEHIND, TALLY_STALE, TALLY_STALE },
	};
	static const uint32_t seqs[] = { 0, 40, 0x7fffffff, 0x80000000, 0xffffffff };

	for (int i = 0; i < 8 * 5; i++) {
		const struct tally_slot_state held = { .seq = seqs[i % 5],
						       .phase = TALLY_SLOT_GATHERING };
		const struct tally_offer all = offer(7, .seq = held.seq + c[i / 5].distance);
		struct tally_slot_state s = held;

		assert_int_equal(at_root(&s, offer(1, .seq = all.seq)), c[i / 5].root);
		assert_int_equal(s.seq, c[i / 5].root == TALLY_ABSORBED ? all.seq : held.seq);
		s = held;
		assert_int_equal(at_inner(&s, offer(1, .seq = all.seq)), c[i / 5].inner);
		s = held;
		assert_int_equal(tally_slot_repair(&s, &all).outcome, c[i / 5].repair);
	}
}

static void assert_there(struct tally_slot_state s, uint32_t seq, struct tally_set expected)
{
	const struct tally_set there = tally_slot_there(&s, seq, &three);

	assert_true(tally_set_is_equal(&there, &expected));
}

static void who_is_there_of_a_chunk(void **state)
{
	static const uint32_t seqs[] = { 0, 40, 0x7fffffff, 0x80000000, 0xffffffff };

	for (int i = 0; i < 5; i++) {
		struct tally_slot_state s = { .seq = seqs[i], .set = { { 5 } } };

		assert_there(s, seqs[i], nobody); /* fresh, whatever its number */
		assert_there(s, seqs[i] - SLOTS, nobody);
		s.phase = TALLY_SLOT_GATHERING;
		assert_there(s, seqs[i], s.set);
		assert_there(s, seqs[i] - SLOTS, three);
		assert_there(s, seqs[i] + SLOTS, nobody);
		s.phase = TALLY_SLOT_DONE;
		s.set = nobody;
		assert_there(s, seqs[i], three);
		assert_there(s, seqs[i] - SLOTS, three);
		assert_there(s, seqs[i] + SLOTS, nobody);
	}
}

/* --- what nodes say */

struct world {
	struct memory_slot slot[2][SLOTS];
	struct memory_node root, inner;
};

static struct world *world_new(void)
{
	static struct world w;

	memset(&w, 0, sizeof(w));
	w.root = (struct memory_node){
		.role = { .everyone = &three,
			  .below = &three,
			  .epoch = EPOCH,
			  .blocks_max = MESSAGE_BLOCKS_MAX,
			  .root = true },
		.boot = BOOT,
		.frames_grow = true,
		.now_ms = 1,
		.slots = SLOTS,
		.slot = w.slot[0],
	};
	w.inner = w.root;
	w.inner.role.below = &two;
	w.inner.role.root = false;
	w.inner.slot = w.slot[1];
	return &w;
}

static void tag(struct message *m)
{
	const struct tally_set set = tally_header_set(&m->header);

	m->header.tag = tally_le64(tally_tag(&m->header, &set));
}

/* Of a rank, for chunk 40; a test changes what it is about, and sends it by visit(). */
static struct message contribution(int rank)
{
	return (struct message){ .header = { .magic = TALLY_MAGIC,
					     .version = TALLY_VERSION,
					     .kind = TALLY_CONTRIBUTION,
					     .job = tally_le32(JOB),
					     .epoch = tally_le16(EPOCH),
					     .seq = tally_le32(40),
					     .recipient = tally_le16(TALLY_EVERYONE),
					     .blocks = 1,
					     .lane = TALLY_LANE_INT64,
					     .call = tally_le64(OURS),
					     .check = tally_le64(1000),
					     .sender = tally_le16(rank),
					     .set = tally_le64(1ull << rank) },
				 .word = { 1 } };
}

/* Whatever leaves has the right tag. Then `m` is what leaves. */
static enum tally_outcome visit(struct memory_node *n, struct message *m)
{
	enum tally_outcome outcome;
	struct tally_set set;
	struct visit v;

	tag(m);
	visit_begin(n, m, &v);
	outcome = visit_end(n, &v);
	*m = v.message;
	set = tally_header_set(&m->header);
	assert_true(tally_le64_get(m->header.tag) == tally_tag(&m->header, &set));
	return outcome;
}

static enum tally_outcome send(struct memory_node *n, int rank, uint8_t flags)
{
	struct message m = contribution(rank);

	m.header.flags = flags;
	return visit(n, &m);
}

static void a_mismatch_says_who_calls_what(void **state)
{
	struct world *w = world_new();
	struct message m = contribution(1);

	send(&w->root, 0, 0);
	send(&w->root, 2, 0);
	m.header.call = tally_le64(OTHERS);
	assert_int_equal(visit(&w->root, &m), TALLY_CONFLICT);
	assert_int_equal(m.header.kind, TALLY_MISMATCH);
	assert_int_equal(m.header.blocks, 0);
	assert_true(tally_le64_get(m.header.call) == OURS);
	assert_true(tally_le64_get(m.header.check) == OTHERS);
	assert_int_equal(tally_le16_get(m.header.sender), 1);
	assert_true(tally_le64_get(m.header.set) == 5);
	assert_int_equal(tally_le32_get(m.header.seq), 40);
	/* And whoever flushes makes the root say the same again. */
	m = contribution(2);
	m.header.flags = TALLY_FLUSH;
	assert_int_equal(visit(&w->root, &m), TALLY_CONFLICT);
	assert_int_equal(tally_le16_get(m.header.sender), 1);
	assert_true(tally_le64_get(m.header.check) == OTHERS);
	/* Below the root, workers hear it as it came. */
	assert_int_equal(visit(&w->inner, &m), TALLY_SENT_DOWN);
}

/* The inner node's sum has no rank of its own: any that is in it will do, for all agree. */
static void a_sum_that_disagrees_names_one_of_its_ranks(void **state)
{
	struct world *w = world_new();
	struct message m = contribution(1);

	send(&w->root, 2, 0);
	m = contribution(0);
	m.header.call = tally_le64(OTHERS);
	assert_int_equal(visit(&w->inner, &m), TALLY_ABSORBED);
	m = contribution(1);
	m.header.call = tally_le64(OTHERS);
	assert_int_equal(visit(&w->inner, &m), TALLY_SENT_UP);
	assert_int_equal(tally_le16_get(m.header.sender), 1);
	assert_int_equal(visit(&w->root, &m), TALLY_CONFLICT);
	assert_int_equal(tally_le16_get(m.header.sender), 1);
}

static void who_is_behind_hears_where_the_slot_is(void **state)
{
	struct world *w = world_new();
	struct message m = contribution(0);

	m.header.seq = tally_le32(40 + SLOTS);
	assert_int_equal(visit(&w->root, &m), TALLY_ABSORBED);
	m = contribution(0);
	assert_int_equal(visit(&w->root, &m), TALLY_BEHIND);
	assert_int_equal(m.header.kind, TALLY_OVERTAKEN);
	assert_int_equal(m.header.blocks, 0);
	assert_int_equal(tally_le32_get(m.header.seq), 40);
	assert_true(tally_le64_get(m.header.check) == 40 + SLOTS);
	assert_int_equal(tally_outcome_to(TALLY_BEHIND), TALLY_TO_SENDER);
}

static void a_spoiled_sum_is_asked_for(void **state)
{
	struct world *w = world_new();
	struct message m = contribution(1);

	for (int rank = 0; rank < 3; rank++)
		send(&w->root, rank, 0);
	m.header.flags = TALLY_REJECT | TALLY_FLUSH;
	assert_int_equal(visit(&w->root, &m), TALLY_SPOILED);
	assert_int_equal(m.header.kind, TALLY_ASK);
	assert_true(tally_le64_get(m.header.set) == 2);
	assert_int_equal(m.header.edition, 1);
	assert_int_equal(m.header.flags, 0);
	assert_int_equal(m.header.blocks, 0);
	/* The new sum says which one it is. */
	send(&w->root, 0, 0);
	m = contribution(2);
	assert_int_equal(visit(&w->root, &m), TALLY_COMPLETED);
	assert_int_equal(m.header.edition, 1);
	assert_int_equal(m.word[0], 3);
}

static void a_result_brings_the_news_that_were_asked_for(void **state)
{
	struct world *w = world_new();
	struct message m = contribution(0);

	m.header.seq = tally_le32(37);
	visit(&w->root, &m); /* rank 0 is there of chunk 37, and of no other */
	for (int rank = 0; rank < 3; rank++) {
		m = contribution(rank);
		m.header.about = tally_le16(rank == 1 ? 3 : rank); /* the oldest: 3 */
		assert_int_equal(visit(&w->root, &m), rank < 2 ? TALLY_ABSORBED : TALLY_COMPLETED);
	}
	assert_int_equal(tally_le16_get(m.header.about), 3);
	assert_true(tally_le64_get(m.header.set) == 1);
	assert_true(tally_le64_get(m.header.check) == 3000); /* still that of the sum */
	/* Who asks alone is answered alone. */
	m = contribution(2);
	m.header.about = tally_le16(SLOTS);
	assert_int_equal(visit(&w->root, &m), TALLY_ANSWERED);
	assert_int_equal(tally_le16_get(m.header.about), SLOTS);
	assert_true(tally_le64_get(m.header.set) == 7);
	m = contribution(2);
	m.header.about = tally_le16(2);
	assert_int_equal(visit(&w->root, &m), TALLY_ANSWERED);
	assert_true(tally_le64_get(m.header.set) == 0);
	/* Who does not ask gets none. */
	m = contribution(2);
	assert_int_equal(visit(&w->root, &m), TALLY_ANSWERED);
	assert_int_equal(tally_le16_get(m.header.about), 0);
	assert_true(tally_le64_get(m.header.set) == 7);
}

static void only_results_bring_news(void **state)
{
	struct world *w = world_new();
	struct message m = contribution(0);

	m.header.about = tally_le16(2);
	m.header.flags = TALLY_FLUSH;
	assert_int_equal(visit(&w->root, &m), TALLY_ASKED);
	assert_int_equal(tally_le16_get(m.header.about), 0);
	assert_true(tally_le64_get(m.header.set) == 1);
	/* A sum on its way up asks what its parts asked. */
	m = contribution(0);
	m.header.about = tally_le16(2);
	visit(&w->inner, &m);
	m = contribution(1);
	m.header.about = tally_le16(1);
	assert_int_equal(visit(&w->inner, &m), TALLY_SENT_UP);
	assert_int_equal(tally_le16_get(m.header.about), 2);
}

/* Those that the facts above do not have; visit() looks at the tags. */
static void whatever_a_node_writes_has_the_right_tag(void **state)
{
	struct world *w = world_new();
	const struct tally_set first = { { 1 } };
	struct message m = contribution(0), cut;

	assert_int_equal(send(&w->inner, 0, 0), TALLY_ABSORBED);
	assert_int_equal(send(&w->inner, 0, TALLY_FLUSH), TALLY_FLUSHED_UP);
	assert_int_equal(send(&w->inner, 0, TALLY_FLUSH), TALLY_PASSED_UP);
	m.header.kind = TALLY_REPAIR;
	m.header.set = tally_le64(7);
	assert_int_equal(visit(&w->root, &m), TALLY_REPAIRED);
	m = contribution(0);
	m.header.set = tally_le64(3);
	assert_int_equal(visit(&w->root, &m), TALLY_ANSWERED_ALL);
	m.header.recipient = tally_le16(2);
	tag(&m);
	cut = message_copy(&m, &first);
	assert_int_equal(cut.header.blocks, 0);
	assert_int_equal(tally_node_admit(&w->inner.role, &cut.header, &two), TALLY_CORRUPT);
	assert_int_equal(tally_node_admit(&w->inner.role, &cut.header, &three), TALLY_SENT_DOWN);
	/* A frame that stays too short. */
	w->root.frames_grow = false;
	m = contribution(0);
	m.header.blocks = 0;
	assert_int_equal(visit(&w->root, &m), TALLY_NO_ROOM);
	assert_int_equal(m.header.kind, TALLY_ASK);
	assert_true(tally_le64_get(m.header.set) == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranks_hear_of_the_first_that_disagrees),
		cmocka_unit_test(any_difference_is_a_dispute),
		cmocka_unit_test(who_flushes_hears_again_each_4_ms),
		cmocka_unit_test(who_agrees_and_flushes_hears_of_the_dispute_too),
		cmocka_unit_test(the_next_chunk_knows_no_dispute),
		cmocka_unit_test(the_group_is_asked_about_a_chunk_each_4_ms),
		cmocka_unit_test(a_rejected_sum_is_gathered_anew_with_the_rejecter_in_it),
		cmocka_unit_test(only_the_edition_that_is_there_can_be_rejected),
		cmocka_unit_test(editions_wrap),
		cmocka_unit_test(whom_the_rejecter_makes_ask_is_asked_by_nobody_else_for_4_ms),
		cmocka_unit_test(a_job_of_one_that_rejects_gets_its_own_at_once),
		cmocka_unit_test(an_inner_node_forgets_what_is_rejected_and_lets_the_rejecter_pass),
		cmocka_unit_test(how_far_a_chunk_is_away_says_what_becomes_of_it),
		cmocka_unit_test(who_is_there_of_a_chunk),
		cmocka_unit_test(a_mismatch_says_who_calls_what),
		cmocka_unit_test(a_sum_that_disagrees_names_one_of_its_ranks),
		cmocka_unit_test(who_is_behind_hears_where_the_slot_is),
		cmocka_unit_test(a_spoiled_sum_is_asked_for),
		cmocka_unit_test(a_result_brings_the_news_that_were_asked_for),
		cmocka_unit_test(only_results_bring_news),
		cmocka_unit_test(whatever_a_node_writes_has_the_right_tag),
	};

	return cmocka_run_group_tests_name("dispute", tests, NULL, NULL);
}
