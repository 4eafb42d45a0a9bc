// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a node does with messages: facts; then workers, an inner node and a root over a network that
 * loses, repeats and reorders, with nodes that forget, and other messages between the two steps of
 * one. TALLY_SEED=n runs that one seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/bpf.h>

#include "tests/unit/memory_node.h"
#include "tests/unit/random.h"

enum {
	NETWORK_SEEDS = 5000,
};

static struct tally_set only(int rank)
{
	struct tally_set s = { { 0 } };

	tally_set_add(&s, rank);
	return s;
}

/* --- facts: a job of the ranks 0, 1 and 200, of whom the first two come through the inner node */

enum {
	JOB = 7,
	EPOCH = 3,
	BLOCKS_MAX = 2,
	BOOT = 0xb007,
};

static const struct tally_set three = { { 0x3, 0, 0, 1 << 8 } };
static const struct tally_set two = { { 0x3 } };
static const struct tally_set nobody;

static const struct tally_role root = {
	.everyone = &three, .below = &three, .epoch = EPOCH, .blocks_max = BLOCKS_MAX, .root = true
};
static const struct tally_role inner = {
	.everyone = &three, .below = &two, .epoch = EPOCH, .blocks_max = BLOCKS_MAX, .root = false
};

/* A header as these rules see it: with its set beside it. */
struct headed {
	struct tally_header h;
	struct tally_set set;
};

static struct headed header_of(uint8_t kind, struct tally_set set)
{
	return (struct headed){ .h = { .kind = kind,
				       .flags = TALLY_LARGE,
				       .epoch = tally_le16(EPOCH),
				       .recipient = tally_le16(TALLY_EVERYONE),
				       .blocks = BLOCKS_MAX,
				       .lane = TALLY_LANE_INT64,
				       .set = tally_le64(set.word[0]) },
				.set = set };
}

static void admits_untagged(const struct tally_role *role, const struct headed *m,
			    enum tally_outcome outcome)
{
	assert_int_equal(tally_node_admit(role, &m->h, &m->set), outcome);
}

static void admits(const struct tally_role *role, struct headed m, enum tally_outcome outcome)
{
	m.h.tag = tally_le64(tally_tag(&m.h, &m.set));
	admits_untagged(role, &m, outcome);
}

static void every_kind_has_its_way_at_every_node(void **state)
{
	for (int kind = 0; kind < 256; kind++) {
		enum tally_outcome at_root = TALLY_BAD_KIND, at_inner = TALLY_BAD_KIND;

		if (kind == TALLY_CONTRIBUTION)
			at_root = at_inner = TALLY_GO_ON;
		if (kind == TALLY_REPAIR) {
			at_root = TALLY_GO_ON;
			at_inner = TALLY_PASSED_UP;
		}
		if (kind == TALLY_RESULT || kind == TALLY_ASK || kind == TALLY_MISMATCH)
			at_inner = TALLY_SENT_DOWN;
		if (kind == TALLY_OVERTAKEN)
			at_inner = TALLY_PASSED_DOWN;
		admits(&root, header_of(kind, three), at_root);
		admits(&inner, header_of(kind, three), at_inner);
	}
}

static void contributions_are_of_some_of_the_job_and_repairs_of_all(void **state)
{
	struct tally_set most = three, more = three;

	most.word[0] = 1;
	tally_set_add(&more, 201);
	admits(&root, header_of(TALLY_CONTRIBUTION, nobody), TALLY_BAD_SET);
	admits(&root, header_of(TALLY_CONTRIBUTION, most), TALLY_GO_ON);
	admits(&root, header_of(TALLY_CONTRIBUTION, more), TALLY_BAD_SET);
	admits(&inner, header_of(TALLY_CONTRIBUTION, most), TALLY_GO_ON);
	admits(&root, header_of(TALLY_REPAIR, most), TALLY_BAD_SET);
	admits(&root, header_of(TALLY_REPAIR, more), TALLY_BAD_SET);
	admits(&inner, header_of(TALLY_REPAIR, most), TALLY_BAD_SET);
	admits(&inner, header_of(TALLY_ASK, most), TALLY_SENT_DOWN);
	admits(&inner, header_of(TALLY_ASK, more), TALLY_BAD_SET);
}

static void a_recipient_is_a_rank_of_the_job_or_everyone(void **state)
{
	const struct tally_set all = tally_set_first(TALLY_WORKERS_MAX);
	struct tally_role of_all = root;

	of_all.everyone = &all;
	for (uint32_t rank = 0; rank <= 0xffff; rank++) {
		struct headed m = header_of(TALLY_CONTRIBUTION, two);
		bool known = rank == 0 || rank == 1 || rank == 200 || rank == TALLY_EVERYONE;

		m.h.recipient = tally_le16(rank);
		admits(&root, m, known ? TALLY_GO_ON : TALLY_BAD_RANK);
		known = rank < TALLY_WORKERS_MAX || rank == TALLY_EVERYONE;
		admits(&of_all, m, known ? TALLY_GO_ON : TALLY_BAD_RANK);
	}
}

/* Wrong in everything, then mended one by one. */
static void what_is_wrong_is_named_in_this_order(void **state)
{
	struct headed m = header_of(9, tally_set_first(3));

	m.h.recipient = tally_le16(2);
	m.h.blocks = BLOCKS_MAX + 1;
	m.h.flags = TALLY_REJECT;
	m.h.epoch = tally_le16(EPOCH + 1);
	admits_untagged(&root, &m, TALLY_CORRUPT);
	admits_untagged(&inner, &m, TALLY_CORRUPT);
	admits(&root, m, TALLY_WRONG_EPOCH);
	admits(&inner, m, TALLY_OTHER_RUN); /* whatever else is wrong with it */
	m.h.epoch = tally_le16(EPOCH);
	admits(&root, m, TALLY_UNKNOWN_FLAG);
	m.h.flags = TALLY_LARGE;
	admits(&root, m, TALLY_OVERSIZED);
	m.h.blocks = BLOCKS_MAX;
	admits(&root, m, TALLY_BAD_SET);
	m.set = nobody;
	admits(&root, m, TALLY_BAD_RANK);
	m.h.recipient = tally_le16(1);
	admits(&root, m, TALLY_BAD_KIND);
	m.h.kind = TALLY_REPAIR;
	admits(&root, m, TALLY_BAD_SET);
}

/* Workers say some of them, nodes others, and the reserved bits nobody. */
static void flags_that_are_not_known_are_refused(void **state)
{
	static const uint8_t kinds[] = { TALLY_CONTRIBUTION, TALLY_REPAIR, TALLY_RESULT, TALLY_ASK,
					 TALLY_MISMATCH };
	const uint8_t up = TALLY_FLUSH | TALLY_WIDE | TALLY_WIDE_AHEAD | TALLY_REJECT |
			   TALLY_MARKED | TALLY_LARGE;
	const uint8_t down = TALLY_WIDE | TALLY_WIDE_AHEAD | TALLY_MARKED | TALLY_SPILLED |
			     TALLY_PARTIAL | TALLY_LARGE;
	static const enum tally_outcome taken[] = { TALLY_GO_ON, TALLY_PASSED_UP, TALLY_SENT_DOWN,
						    TALLY_SENT_DOWN, TALLY_SENT_DOWN };

	for (int i = 0; i < 5; i++) {
		for (int bit = 0; bit < 8; bit++) {
			struct headed m = header_of(kinds[i], three);
			bool known = (i < 2 ? up : down) >> bit & 1;

			m.h.flags |= 1 << bit;
			admits(&inner, m, known ? taken[i] : TALLY_UNKNOWN_FLAG);
		}
	}
	for (int byte = 0; byte < 4; byte++) {
		struct headed m = header_of(TALLY_CONTRIBUTION, two);

		*(byte == 3 ? &m.h.shard : &m.h.reserved[byte]) = 1;
		admits(&root, m, TALLY_UNKNOWN_FLAG);
	}
}

/* The sets of a job have one length. */
static void a_header_is_large_where_the_job_is(void **state)
{
	const struct tally_set few = tally_set_first(64);
	struct headed m = header_of(TALLY_CONTRIBUTION, two);
	struct tally_role of_few = root;

	of_few.everyone = &few;
	admits(&root, m, TALLY_GO_ON);
	admits(&of_few, m, TALLY_BAD_SET);
	m.h.flags = 0;
	admits(&root, m, TALLY_BAD_SET);
	admits(&of_few, m, TALLY_GO_ON);
}

/* --- who speaks, in a job with rank keys */

/* The caller looks the key up later. */
static void the_tag_of_a_keyed_job_is_looked_at_later(void **state)
{
	const struct headed m = header_of(TALLY_CONTRIBUTION, two);
	struct tally_role keyed = root;

	admits_untagged(&root, &m, TALLY_CORRUPT);
	keyed.keyed = true;
	admits_untagged(&keyed, &m, TALLY_GO_ON);
}

/* Senders behind the last rank are those of messages with a wrong header: they are in no set. */
static void what_one_rank_says_has_its_key(void **state)
{
	for (uint32_t sender = 0; sender <= 0xffff; sender++) {
		const bool known = sender == 0 || sender == 1 || sender == 200;
		const struct tally_set own = only(sender % TALLY_WORKERS_MAX);
		const uint32_t key = sender < TALLY_WORKERS_MAX ? sender : TALLY_NO_KEY;

		assert_int_equal(tally_node_signer(TALLY_CONTRIBUTION, sender, &own), key);
		assert_int_equal(tally_node_signer(TALLY_REPAIR, sender, &three),
				 known ? sender : TALLY_NO_KEY);
	}
}

/* A rank that is not in a sum has nothing to do with it, and nobody repairs for several. */
static void what_several_say_has_the_node_key_if_the_sender_is_one(void **state)
{
	for (uint32_t sender = 0; sender <= 0xffff; sender++) {
		const bool in = sender == 0 || sender == 1 || sender == 200;

		assert_int_equal(tally_node_signer(TALLY_CONTRIBUTION, sender, &three),
				 in ? TALLY_NODE_KEY : TALLY_NO_KEY);
	}
	assert_int_equal(tally_node_signer(TALLY_CONTRIBUTION, 1, &two), TALLY_NODE_KEY);
	assert_int_equal(tally_node_signer(TALLY_CONTRIBUTION, 2, &two), TALLY_NO_KEY);
	for (int rank = 1; rank < TALLY_WORKERS_MAX; rank++) { /* of another one alone */
		const struct tally_set other = only(rank);

		assert_int_equal(tally_node_signer(TALLY_CONTRIBUTION, 0, &other), TALLY_NO_KEY);
	}
	assert_int_equal(tally_node_signer(TALLY_REPAIR, 2, &three), TALLY_NO_KEY);
	assert_int_equal(tally_node_signer(TALLY_REPAIR, 0xffff, &three), TALLY_NO_KEY);
}

static void what_comes_down_has_the_node_key(void **state)
{
	static const uint8_t kinds[] = { TALLY_RESULT, TALLY_ASK, TALLY_MISMATCH, TALLY_OVERTAKEN };

	for (int i = 0; i < 4; i++) {
		assert_int_equal(tally_node_signer(kinds[i], 0, &two), TALLY_NODE_KEY);
		assert_int_equal(tally_node_signer(kinds[i], 0, &nobody), TALLY_NODE_KEY);
		assert_int_equal(tally_node_signer(kinds[i], TALLY_FROM_NODE, &three),
				 TALLY_NODE_KEY);
	}
}

static void a_node_has_the_keys_of_those_below_and_its_own(void **state)
{
	const struct tally_set last = only(200);
	struct tally_role of_last = inner;

	of_last.below = &last;
	assert_true(tally_node_has_key(&of_last, 200));
	assert_true(tally_node_has_key(&of_last, TALLY_NODE_KEY));
	for (uint32_t rank = 0; rank < TALLY_WORKERS_MAX; rank++) {
		assert_true(tally_node_has_key(&root, rank));
		assert_int_equal(tally_node_has_key(&inner, rank), rank < 2);
	}
	assert_true(tally_node_has_key(&root, TALLY_NODE_KEY));
	assert_true(tally_node_has_key(&inner, TALLY_NODE_KEY));
}

/* So that whoever gets it expects the key that was used. */
static void a_node_signs_as_its_message_will_be_judged(void **state)
{
	const struct tally_set sets[] = { only(0), only(1), only(200), two, three };

	for (int i = 0; i < 5; i++)
		for (int sender = 0; sender < TALLY_WORKERS_MAX; sender++)
			if (tally_set_has(&sets[i], sender))
				assert_int_equal(
					tally_node_signs(sender, &sets[i]),
					tally_node_signer(TALLY_CONTRIBUTION, sender, &sets[i]));
}

static void a_message_is_from_whom_has_the_key_of_its_tag(void **state)
{
	const struct tally_key key = { { 1, 2 } }, other = { { 1, 3 } };
	struct headed m = header_of(TALLY_CONTRIBUTION, two);

	m.h.tag = tally_le64(tally_keyed_tag(&m.h, &m.set, &key));
	assert_true(tally_node_is_from(&m.h, &m.set, &key));
	assert_false(tally_node_is_from(&m.h, &m.set, &other));
	assert_false(tally_node_is_from(&m.h, &three, &key));
	m.h.tag = tally_le64(tally_tag(&m.h, &m.set));
	assert_false(tally_node_is_from(&m.h, &m.set, &key));
}

static void gathers(const struct tally_role *role, enum tally_kind kind, struct tally_set set,
		    struct tally_slot_state *s, enum tally_outcome outcome, enum tally_words words)
{
	struct headed m = header_of(kind, set);
	struct tally_offer o = tally_offer_read(&m.h, &m.set);
	struct tally_verdict v = tally_node_gather(role, kind, s, &o);

	assert_int_equal(v.outcome, outcome);
	assert_int_equal(v.words, words);
}

/* What leaves is made of the packet, so that the packet has the sum, too. */
static void a_node_goes_by_its_own_rule_and_what_leaves_has_the_sum(void **state)
{
	struct tally_slot_state s = { 0 };

	gathers(&root, TALLY_CONTRIBUTION, only(0), &s, TALLY_ABSORBED, TALLY_WORDS_STORE);
	gathers(&root, TALLY_CONTRIBUTION, only(1), &s, TALLY_ABSORBED, TALLY_WORDS_ADD);
	gathers(&root, TALLY_CONTRIBUTION, only(200), &s, TALLY_COMPLETED, TALLY_WORDS_EXCHANGE);
	s = (struct tally_slot_state){ 0 };
	gathers(&inner, TALLY_CONTRIBUTION, only(0), &s, TALLY_ABSORBED, TALLY_WORDS_STORE);
	gathers(&inner, TALLY_CONTRIBUTION, only(1), &s, TALLY_SENT_UP, TALLY_WORDS_EXCHANGE);
	gathers(&inner, TALLY_CONTRIBUTION, only(1), &s, TALLY_SENT_UP, TALLY_WORDS_KEEP);
	gathers(&root, TALLY_REPAIR, three, &s, TALLY_REPAIRED, TALLY_WORDS_STORE);
	assert_int_equal(s.phase, TALLY_SLOT_DONE);
}

/* Books of a sum of two blocks for rank 1 alone. */
static const struct tally_slot_state held = {
	.seq = 40,
	.recipient = 1,
	.phase = TALLY_SLOT_GATHERING,
	.lane = TALLY_LANE_FLOAT32,
	.blocks = 2,
	.scale = 70,
	.scale_ahead = 80,
	.flags = TALLY_WIDE,
	.edition = 6,
	.about = 3,
	.call = 0xca11,
	.check = 0x1122334455667788,
	.set = { { 0x3 } },
	.other = 200,
	.other_call = 0x07e5,
};

static struct tally_reply reply_of(enum tally_outcome outcome, enum tally_words words, int sender)
{
	const struct tally_set set = only(sender);

	return tally_reply_make((struct tally_verdict){ outcome, words }, &held, &set);
}

static void every_outcome_has_its_reply(void **state)
{
	static const struct {
		enum tally_kind kind;
		uint8_t blocks;
		enum tally_to to;
	} expected[TALLY_OUTCOME_COUNT] = {
		[TALLY_COMPLETED] = { TALLY_RESULT, 2, TALLY_TO_GROUP },
		[TALLY_REPAIRED] = { TALLY_RESULT, 2, TALLY_TO_GROUP },
		[TALLY_ANSWERED_ALL] = { TALLY_RESULT, 2, TALLY_TO_GROUP },
		[TALLY_ANSWERED] = { TALLY_RESULT, 2, TALLY_TO_SENDER },
		[TALLY_ASKED] = { TALLY_ASK, 0, TALLY_TO_GROUP },
		[TALLY_SPOILED] = { TALLY_ASK, 0, TALLY_TO_GROUP },
		[TALLY_CONFLICT] = { TALLY_MISMATCH, 0, TALLY_TO_GROUP },
		[TALLY_BEHIND] = { TALLY_OVERTAKEN, 0, TALLY_TO_SENDER },
		[TALLY_SENT_UP] = { TALLY_CONTRIBUTION, 2, TALLY_TO_ROOT },
		[TALLY_FLUSHED_UP] = { TALLY_CONTRIBUTION, 2, TALLY_TO_ROOT },
	};

	for (int o = 0; o < TALLY_OUTCOME_COUNT; o++) {
		struct tally_reply r = reply_of(o, TALLY_WORDS_KEEP, 1);

		assert_int_equal(r.outcome, o);
		assert_int_equal(r.kind, expected[o].kind);
		assert_int_equal(r.blocks, expected[o].blocks);
		assert_int_equal(r.take, expected[o].blocks > 0);
		assert_int_equal(r.empty, o == TALLY_FLUSHED_UP);
		if (r.kind)
			assert_int_equal(tally_outcome_to(o), expected[o].to);
	}
}

/* The data plane copies books only then. What leaves as it came, or is made elsewhere, is due too.
 */
static void whatever_has_a_reply_is_due(void **state)
{
	for (int o = 0; o < TALLY_OUTCOME_COUNT; o++) {
		enum tally_to to = tally_outcome_to(o);
		bool made = reply_of(o, TALLY_WORDS_KEEP, 1).kind;

		assert_int_equal(tally_reply_is_due(o),
				 made || to == TALLY_TO_GROUP || to == TALLY_TO_SENDER);
	}
}

/* Of the message it keeps which job, run and chunk it is about. */
static void another_version_hears_ours_from_a_node(void **state)
{
	const struct tally_header h = { .magic = 1,
					.version = TALLY_VERSION + 1,
					.kind = TALLY_CONTRIBUTION,
					.flags = TALLY_FLUSH,
					.job = tally_le32(JOB),
					.epoch = tally_le16(EPOCH),
					.seq = tally_le32(9),
					.blocks = 2,
					.check = tally_le64(5),
					.sender = tally_le16(1),
					.set = tally_le64(2) };
	const struct tally_header out = tally_reply_version(&h);
	struct tally_header expected = { .magic = TALLY_MAGIC,
					 .version = TALLY_VERSION,
					 .kind = TALLY_ASK,
					 .job = h.job,
					 .epoch = h.epoch,
					 .seq = h.seq,
					 .sender = tally_le16(TALLY_FROM_NODE) };

	expected.tag = tally_le64(tally_tag(&expected, &nobody));
	assert_memory_equal(&out, &expected, sizeof(out));
}

static void what_leaves_as_it_came_goes_where_the_list_says(void **state)
{
	assert_int_equal(tally_outcome_to(TALLY_PASSED_UP), TALLY_TO_ROOT);
	assert_int_equal(tally_outcome_to(TALLY_SENT_DOWN), TALLY_TO_GROUP);
	assert_int_equal(tally_outcome_to(TALLY_NO_ROOM), TALLY_TO_GROUP);
	assert_int_equal(tally_outcome_to(TALLY_ABSORBED), TALLY_TO_NOBODY);
	assert_int_equal(tally_outcome_to(TALLY_STALE), TALLY_TO_NOBODY);
	assert_int_equal(tally_outcome_to(TALLY_GO_ON), TALLY_TO_NOBODY);
}

static void an_outcome_says_its_name_and_what_it_means(void **state)
{
	assert_string_equal(tally_outcome_name(0), "FOREIGN");
	assert_string_equal(tally_outcome_meaning(0), "not a Tally message");
	assert_string_equal(tally_outcome_name(TALLY_ABSORBED), "ABSORBED");
	assert_string_equal(tally_outcome_name(TALLY_OUTCOME_COUNT - 1), "OTHER_RUN");
	assert_string_equal(tally_outcome_name(TALLY_OUTCOME_COUNT), "");
	assert_string_equal(tally_outcome_meaning(TALLY_OUTCOME_COUNT), "");
}

static void an_answer_has_the_payload_only_for_its_recipient(void **state)
{
	assert_int_equal(reply_of(TALLY_ANSWERED, TALLY_WORDS_KEEP, 1).blocks, 2);
	assert_int_equal(reply_of(TALLY_ANSWERED, TALLY_WORDS_KEEP, 0).blocks, 0);
	assert_false(reply_of(TALLY_ANSWERED, TALLY_WORDS_KEEP, 0).take);
	/* For the group each copy is cut by itself. */
	assert_int_equal(reply_of(TALLY_ANSWERED_ALL, TALLY_WORDS_KEEP, 0).blocks, 2);
	assert_int_equal(reply_of(TALLY_COMPLETED, TALLY_WORDS_KEEP, 0).blocks, 2);
}

static void a_sum_is_read_from_the_slot_unless_the_packet_has_it(void **state)
{
	const struct tally_slot_state empty = { .phase = TALLY_SLOT_GATHERING };
	const struct tally_set sender = only(0);

	assert_false(reply_of(TALLY_COMPLETED, TALLY_WORDS_EXCHANGE, 0).take);
	assert_false(reply_of(TALLY_SENT_UP, TALLY_WORDS_STORE, 0).take);
	assert_true(reply_of(TALLY_SENT_UP, TALLY_WORDS_KEEP, 0).take);
	/* Without payload nothing is read; but what is flushed is emptied. */
	for (int o = 0; o < TALLY_OUTCOME_COUNT; o++)
		assert_int_equal(tally_reply_make((struct tally_verdict){ o, TALLY_WORDS_KEEP },
						  &empty, &sender)
					 .take,
				 o == TALLY_FLUSHED_UP);
}

static void a_frame_that_stays_short_asks_everyone_and_leaves_the_slot(void **state)
{
	struct tally_slot_state books = held;
	struct tally_reply r = tally_reply_no_room(&books, &three);

	assert_int_equal(r.outcome, TALLY_NO_ROOM);
	assert_int_equal(r.kind, TALLY_ASK);
	assert_int_equal(r.blocks, 0);
	assert_false(r.take);
	assert_false(r.empty);
	assert_true(tally_set_is_equal(&books.set, &three));
}

static void a_reply_reads_the_slot_as_it_is_now(void **state)
{
	const struct tally_reply r = reply_of(TALLY_SENT_UP, TALLY_WORDS_KEEP, 0);
	struct tally_slot_state s = held, books = held;

	tally_set_add(&s.set, 200);
	s.check++;
	assert_true(tally_reply_take(&r, &s, &books));
	assert_memory_equal(&books, &s, sizeof(s));
	assert_true(tally_set_has(&s.set, 200));
}

static void a_flush_empties_what_it_reads(void **state)
{
	const struct tally_reply r = reply_of(TALLY_FLUSHED_UP, TALLY_WORDS_KEEP, 0);
	struct tally_slot_state s = held, books = held;

	assert_true(tally_reply_take(&r, &s, &books));
	assert_memory_equal(&books, &held, sizeof(held));
	assert_true(tally_set_is_empty(&s.set));
	assert_int_equal(s.seq, held.seq);
	assert_int_equal(s.phase, TALLY_SLOT_GATHERING);
	assert_int_equal(s.blocks, 0);
	assert_false(tally_reply_take(&r, &s, &books));
}

static void a_reply_is_stale_if_the_slot_has_moved_on(void **state)
{
	const struct tally_reply r = reply_of(TALLY_FLUSHED_UP, TALLY_WORDS_KEEP, 0);
	struct tally_slot_state moved[5];

	for (int i = 0; i < 5; i++)
		moved[i] = held;
	moved[0].seq++;
	moved[1].phase = TALLY_SLOT_DONE;
	moved[2].blocks = 1;
	moved[3].set = only(0);
	moved[4].set = nobody;
	for (int i = 0; i < 5; i++) {
		struct tally_slot_state s = moved[i], books = held;

		assert_false(tally_reply_take(&r, &s, &books));
		assert_memory_equal(&s, &moved[i], sizeof(s));
		assert_memory_equal(&books, &held, sizeof(held));
	}
}

/* What a reply leaves as it was: whose message it is. */
static struct tally_header header_sent(void)
{
	struct tally_header h = header_of(TALLY_CONTRIBUTION, only(0)).h;

	h.magic = TALLY_MAGIC;
	h.version = TALLY_VERSION;
	h.job = tally_le32(JOB);
	h.seq = tally_le32(held.seq);
	h.flags |= TALLY_FLUSH | TALLY_WIDE_AHEAD | TALLY_REJECT;
	h.scale = 1;
	h.priority = 5;
	h.about = tally_le16(2);
	h.sender = tally_le16(1);
	return h;
}

static void assert_header(const struct tally_header *h, const struct tally_header *expected,
			  const struct tally_set *set)
{
	struct tally_header e = *expected;

	e.tag = tally_le64(tally_tag(&e, set));
	assert_memory_equal(h, &e, sizeof(e));
}

static void a_result_has_the_books_of_the_slot_in_its_header(void **state)
{
	const struct tally_reply r = reply_of(TALLY_COMPLETED, TALLY_WORDS_EXCHANGE, 0);
	struct tally_header h = header_sent(), expected = header_sent();

	expected.kind = TALLY_RESULT;
	expected.flags = TALLY_WIDE | TALLY_LARGE;
	expected.boot = tally_le16(BOOT);
	expected.recipient = tally_le16(1);
	expected.blocks = 2;
	expected.lane = TALLY_LANE_FLOAT32;
	expected.scale = 70;
	expected.scale_ahead = 80;
	expected.call = tally_le64(held.call);
	expected.check = tally_le64(held.check);
	expected.about = 0; /* before the news are added */
	expected.sender = tally_le16(TALLY_FROM_NODE);
	expected.edition = 6;
	tally_reply_write(&r, &held, BOOT, &h);
	assert_header(&h, &expected, &held.set);
}

static void without_payload_a_sum_keeps_its_check(void **state)
{
	const struct tally_reply r = reply_of(TALLY_ASKED, TALLY_WORDS_EXCHANGE, 0);
	struct tally_header h = header_sent();

	tally_reply_write(&r, &held, BOOT, &h);
	assert_int_equal(h.kind, TALLY_ASK);
	assert_int_equal(h.blocks, 0);
	assert_true(tally_le64_get(h.check) == held.check);
	assert_int_equal(tally_le16_get(h.boot), BOOT);
	assert_int_equal(h.flags, TALLY_WIDE | TALLY_LARGE);
}

/* The root must not hold it back either; and nobody below has rejected this sum. */
static void a_contribution_stays_flushed_and_names_no_node(void **state)
{
	const struct tally_reply r = reply_of(TALLY_FLUSHED_UP, TALLY_WORDS_KEEP, 0);
	struct tally_header h = header_sent();

	h.boot = tally_le16(9);
	tally_reply_write(&r, &held, BOOT, &h);
	assert_int_equal(h.kind, TALLY_CONTRIBUTION);
	assert_int_equal(h.flags, TALLY_FLUSH | TALLY_WIDE | TALLY_LARGE);
	assert_int_equal(tally_le16_get(h.boot), 0);
	assert_int_equal(tally_le16_get(h.about), 3); /* the oldest that any part asks about */
	h.flags = 0;
	tally_reply_write(&r, &held, BOOT, &h);
	assert_int_equal(h.flags, TALLY_WIDE);
}

static void a_copy_keeps_the_payload_if_its_recipient_is_below(void **state)
{
	const struct tally_set first = only(0), last = only(200);
	struct tally_header h = header_of(TALLY_RESULT, three).h;

	assert_false(tally_copy_is_cut(&h, &first));
	h.recipient = tally_le16(200);
	assert_false(tally_copy_is_cut(&h, &last));
	assert_false(tally_copy_is_cut(&h, &three));
	assert_true(tally_copy_is_cut(&h, &first));
	assert_true(tally_copy_is_cut(&h, &two));
	h.check = tally_le64(9);
	h.tag = tally_le64(tally_tag(&h, &three));
	tally_copy_cut(&h);
	assert_int_equal(h.blocks, 0);
	assert_int_equal(tally_le64_get(h.check), 9);
	assert_true(tally_le64_get(h.tag) == tally_tag(&h, &three));
	assert_false(tally_copy_is_cut(&h, &first));
}

/*
 * --- the whole protocol
 *
 *	w0 ─┐
 *	w1 ─┴─ inner ─┐
 *	w2 ───────────┴─ root
 *
 * A worker sends chunk c when it has c - W. What it has finished it keeps until it sends
 * c + 2W. Its third attempt is a flush, and so are those after it.
 */

enum {
	WORKERS_MAX = 5,
	WINDOW_MAX = 4,
	CHUNKS = 10,
	BELOW = 2, /* the ranks 0 and 1 come through the inner node */
	ROOT = WORKERS_MAX,
	INNER,
	NODES = INNER + 1 - ROOT,
	PACKETS_MAX = 1 << 14,
	NONCE = 99,
	CALL = 77, /* the shape of all calls */
	VISITS_MAX = 64, /* messages between the two steps */
	STEPS_MAX = 100000,
	RESTARTS_MAX = 6,
	ATTEMPTS_BEFORE_FLUSH = 2,
};

static const uint64_t garbage = 0xbad0bad0bad0bad0; /* what nobody may take for a payload */

/* One number, and eight bits of every worker to count how often its own is in. */
struct words {
	uint64_t number;
	uint64_t counts;
};

/* What is to be summed: all, one or none of the workers have a payload. */
struct chunk {
	uint16_t recipient;
	struct words of[WORKERS_MAX];
	bool has_payload[WORKERS_MAX];
	bool any_payload;
	struct words sum;
	uint8_t scale[WORKERS_MAX], scale_max, scale_ahead_max;
	uint8_t flags[WORKERS_MAX], flags_any;
};

/* What a worker knows of a chunk. */
struct holding {
	bool finished;
	bool forgotten;
	int attempts;
};

/* A message whose second step is still to come. */
struct waiting {
	int node;
	struct visit visit;
};

struct network {
	uint64_t random;
	int workers, window;
	uint32_t first_seq;
	uint32_t detour_permille;
	uint32_t wait_permille; /* of the messages that take two steps */
	struct tally_set everyone, below;
	struct chunk chunk[CHUNKS];
	struct holding holding[WORKERS_MAX][CHUNKS];
	struct memory_node node[NODES];
	struct memory_slot slot[NODES][2 * WINDOW_MAX];
	uint32_t now_ms;
	int restarts, in_flight, waiting;
	struct message packet[PACKETS_MAX];
	struct waiting visit[VISITS_MAX];
	const char *wrong;
};

static void net_send(struct network *n, struct message m)
{
	int copies = chance(&n->random, 150) ? 0 : chance(&n->random, 100) ? 2 : 1;

	for (int i = m.header.blocks * TALLY_BLOCK_WORDS; i < MESSAGE_WORDS_MAX; i++)
		m.word[i] = garbage;
	while (copies-- && n->in_flight < PACKETS_MAX)
		n->packet[n->in_flight++] = m;
}

/* Reordering is picking any. */
static struct message net_take(struct network *n)
{
	uint32_t i = random_below(&n->random, n->in_flight);
	struct message m = n->packet[i];

	n->packet[i] = n->packet[--n->in_flight];
	return m;
}

/* Where routes change, a worker below the inner node reaches the root directly at times. */
static int way_up(struct network *n, int rank)
{
	return rank < BELOW && !chance(&n->random, n->detour_permille) ? INNER : ROOT;
}

/* --- a node: what leaves it, over this network */

static uint64_t outcomes_shown; /* by all networks: bit 1 << outcome */

static void node_tell_group(struct network *n, int node, const struct message *m)
{
	for (int rank = 0; rank < n->workers; rank++) {
		struct tally_set child = only(rank);
		struct message copy = message_copy(m, &child);

		copy.to = rank;
		if ((node == INNER) == (rank < BELOW))
			net_send(n, copy);
	}
	if (node == ROOT) {
		struct message copy = message_copy(m, &n->below);

		copy.to = INNER;
		net_send(n, copy);
	}
}

static void node_leave(struct network *n, int node, struct visit *v)
{
	int sender = __builtin_ffsll(tally_le64_get(v->message.header.set)) - 1;
	enum tally_outcome outcome = visit_end(&n->node[node - ROOT], v);

	outcomes_shown |= 1ULL << outcome;
	switch (tally_outcome_to(outcome)) {
	case TALLY_TO_GROUP:
		node_tell_group(n, node, &v->message);
		break;
	case TALLY_TO_SENDER:
		v->message.to = sender;
		net_send(n, v->message);
		break;
	case TALLY_TO_ROOT:
		if (node == ROOT)
			n->wrong = "the root sends to the root";
		v->message.to = ROOT;
		net_send(n, v->message);
		break;
	case TALLY_TO_NOBODY:
		if (outcome == TALLY_CONFLICT)
			n->wrong = "a conflict among workers who agree";
		if (outcome < TALLY_CONFLICT)
			n->wrong = "a message was refused";
		break;
	}
}

/* The second step of any message that waits for it. */
static void node_go_on(struct network *n)
{
	int i = random_below(&n->random, n->waiting);
	struct waiting w = n->visit[i];

	n->visit[i] = n->visit[--n->waiting];
	node_leave(n, w.node, &w.visit);
}

static void node_take(struct network *n, int node, const struct message *m)
{
	struct visit v;

	visit_begin(&n->node[node - ROOT], m, &v);
	if (v.reply.take && n->waiting < VISITS_MAX && chance(&n->random, n->wait_permille))
		n->visit[n->waiting++] = (struct waiting){ node, v };
	else
		node_leave(n, node, &v);
}

/* --- a worker */

static struct message worker_message(const struct network *n, int rank, int c, enum tally_kind kind)
{
	const struct chunk *chunk = &n->chunk[c];
	struct message m = { .header = { .magic = TALLY_MAGIC,
					 .version = TALLY_VERSION,
					 .kind = kind,
					 .job = tally_le32(JOB),
					 .epoch = tally_le16(EPOCH),
					 .seq = tally_le32(n->first_seq + c),
					 .recipient = tally_le16(chunk->recipient),
					 .lane = TALLY_LANE_INT64,
					 .call = tally_le64(CALL),
					 .sender = tally_le16(rank) } };

	return m;
}

/* Of the sum of these ranks' parts. */
static uint64_t check_of(const struct network *n, uint32_t seq, const struct words *w,
			 const struct tally_set *set)
{
	uint64_t identity = tally_identity(tally_run_identity(NONCE, JOB, EPOCH), seq, CALL, 0);
	uint64_t check = w->number + 3 * w->counts;

	for (int rank = 0; rank < n->workers; rank++)
		if (tally_set_has(set, rank))
			check += identity * tally_weight(rank);
	return check;
}

/* All of a worker's message that is not known yet. */
static void worker_say(struct network *n, int rank, struct message *m, const struct words *w,
		       bool has_payload, const struct tally_set *set)
{
	m->header.blocks = has_payload;
	if (has_payload) {
		m->word[0] = w->number;
		m->word[1] = w->counts;
	}
	m->header.check = tally_le64(check_of(n, tally_le32_get(m->header.seq), w, set));
	tally_header_set_put(&m->header, set);
	m->header.tag = tally_le64(tally_tag(&m->header, set));
	m->to = way_up(n, rank);
	net_send(n, *m);
}

/* Sent again, a contribution without payload has room for what the others have: zeros. */
static void worker_contribute(struct network *n, int rank, int c, int attempt)
{
	const struct chunk *chunk = &n->chunk[c];
	struct message m = worker_message(n, rank, c, TALLY_CONTRIBUTION);
	const struct tally_set me = only(rank);

	m.header.flags = chunk->flags[rank];
	if (attempt >= ATTEMPTS_BEFORE_FLUSH)
		m.header.flags |= TALLY_FLUSH;
	m.header.scale = chunk->scale[rank];
	m.header.scale_ahead = 255 - chunk->scale[rank];
	worker_say(n, rank, &m, &chunk->of[rank],
		   chunk->has_payload[rank] || (attempt && chunk->any_payload), &me);
}

/* With the payload it gives the result back, without it sends its own part again. */
static void worker_answer(struct network *n, int rank, int c)
{
	const struct tally_set me = only(rank);
	const struct chunk *chunk = &n->chunk[c];
	struct message m = worker_message(n, rank, c, TALLY_REPAIR);

	if (!n->holding[rank][c].finished || n->holding[rank][c].forgotten)
		return;
	if (!tally_gets_payload(chunk->recipient, &me)) {
		worker_contribute(n, rank, c, ATTEMPTS_BEFORE_FLUSH);
		return;
	}
	m.header.flags = chunk->flags_any;
	m.header.scale = chunk->scale_max;
	m.header.scale_ahead = chunk->scale_ahead_max;
	worker_say(n, rank, &m, &chunk->sum, chunk->any_payload, &n->everyone);
}

static const char *result_wrong(const struct network *n, int rank, const struct message *m,
				const struct chunk *chunk)
{
	const struct tally_header *h = &m->header;
	const struct tally_set me = only(rank), set = tally_header_set(h);
	bool gets_payload = chunk->any_payload && tally_gets_payload(chunk->recipient, &me);

	if (h->kind != TALLY_RESULT)
		return "a worker got what is neither a result nor an ask";
	if (tally_le64_get(h->call) != CALL || h->about)
		return "a result of another call, or with news that nobody asked for";
	if (!tally_set_is_equal(&set, &n->everyone))
		return "a result of some";
	if (tally_le16_get(h->recipient) != chunk->recipient || h->lane != TALLY_LANE_INT64)
		return "a result for another recipient, or of another lane";
	if (h->flags != chunk->flags_any || h->scale != chunk->scale_max ||
	    h->scale_ahead != chunk->scale_ahead_max)
		return "a result with wrong flags or scales";
	if (tally_le16_get(h->boot) != BOOT)
		return "a result that does not say which node it is from";
	if (h->blocks != gets_payload)
		return h->blocks ? "a payload for whom it is not" : "a result without its payload";
	if (h->blocks && (m->word[0] != chunk->sum.number || m->word[1] != chunk->sum.counts))
		return "a wrong sum";
	if (tally_le64_get(h->check) !=
	    check_of(n, tally_le32_get(h->seq), &chunk->sum, &n->everyone))
		return "a wrong check";
	return NULL;
}

static void worker_take(struct network *n, int rank, const struct message *m)
{
	int c = (int)(tally_le32_get(m->header.seq) - n->first_seq);

	const struct tally_set set = tally_header_set(&m->header);

	if (tally_le64_get(m->header.tag) != tally_tag(&m->header, &set))
		n->wrong = "a wrong tag";
	/* Of a chunk that was sent again and again while its slot went on. */
	if (m->header.kind == TALLY_OVERTAKEN && n->holding[rank][c].finished)
		return;
	if (m->header.kind == TALLY_ASK) {
		if (m->header.blocks)
			n->wrong = "an ask with a payload";
		worker_answer(n, rank, c);
		return;
	}
	if (!n->wrong)
		n->wrong = result_wrong(n, rank, m, &n->chunk[c]);
	n->holding[rank][c].finished = true;
}

/* Sends one of the chunks that it may. What lies two windows back is then out of reach. */
static void worker_send(struct network *n, int rank)
{
	int may[CHUNKS], count = 0, c;

	for (c = 0; c < CHUNKS; c++)
		if (!n->holding[rank][c].finished &&
		    (c < n->window || n->holding[rank][c - n->window].finished))
			may[count++] = c;
	if (!count)
		return;
	c = may[random_below(&n->random, count)];
	if (c >= 2 * n->window)
		n->holding[rank][c - 2 * n->window].forgotten = true;
	worker_contribute(n, rank, c, n->holding[rank][c].attempts++);
}

/* --- a run */

static void chunk_make(struct network *n, struct chunk *chunk)
{
	int kind = random_below(&n->random, 4), owner = random_below(&n->random, n->workers);

	chunk->recipient = chance(&n->random, 500) ? TALLY_EVERYONE
						   : random_below(&n->random, n->workers);
	for (int rank = 0; rank < n->workers; rank++) {
		uint8_t scale = random_below(&n->random, 256);

		chunk->scale[rank] = scale;
		chunk->flags[rank] = random_below(&n->random, 256) & TALLY_FLAGS_STICKY;
		chunk->flags_any |= chunk->flags[rank];
		if (scale > chunk->scale_max)
			chunk->scale_max = scale;
		if (255 - scale > chunk->scale_ahead_max)
			chunk->scale_ahead_max = 255 - scale;
		chunk->has_payload[rank] = kind == 0 ? false : kind == 1 ? rank == owner : true;
		if (!chunk->has_payload[rank])
			continue;
		chunk->any_payload = true;
		chunk->of[rank].number = random_next(&n->random);
		chunk->of[rank].counts = 1ULL << 8 * rank;
		chunk->sum.number += chunk->of[rank].number;
		chunk->sum.counts += chunk->of[rank].counts;
	}
}

static void network_make_nodes(struct network *n)
{
	bool frames_grow = chance(&n->random, 500);

	n->everyone = tally_set_first(n->workers);
	n->below = tally_set_first(BELOW);
	for (int node = ROOT; node <= INNER; node++)
		n->node[node - ROOT] = (struct memory_node){
			.role = { .everyone = &n->everyone,
				  .below = node == ROOT ? &n->everyone : &n->below,
				  .epoch = EPOCH,
				  .blocks_max = 1,
				  .root = node == ROOT },
			.boot = BOOT,
			.frames_grow = frames_grow,
			.slots = 2 * n->window,
			.slot = n->slot[node - ROOT],
		};
}

static void network_make(struct network *n, uint64_t seed)
{
	static const uint32_t first_seqs[] = { 0, 0x7ffffffc, 0xfffffffc };

	*n = (struct network){ .random = seed };
	n->workers = 3 + random_below(&n->random, WORKERS_MAX - 2);
	n->window = 1 << random_below(&n->random, 3);
	n->first_seq = first_seqs[random_below(&n->random, 3)];
	n->detour_permille = chance(&n->random, 500) ? 0 : 50;
	n->wait_permille = random_below(&n->random, 3) * 450;
	network_make_nodes(n);
	for (int c = 0; c < CHUNKS; c++)
		chunk_make(n, &n->chunk[c]);
}

static bool all_have_finished(const struct network *n)
{
	for (int rank = 0; rank < n->workers; rank++)
		for (int c = 0; c < CHUNKS; c++)
			if (!n->holding[rank][c].finished)
				return false;
	return true;
}

static void network_step(struct network *n)
{
	if (n->restarts < RESTARTS_MAX && chance(&n->random, 4)) {
		n->restarts++;
		memset(n->slot[random_below(&n->random, NODES)], 0, sizeof(n->slot[0]));
	}
	if (n->waiting && chance(&n->random, 100)) {
		node_go_on(n);
	} else if (n->in_flight && chance(&n->random, 800)) {
		n->now_ms += chance(&n->random, 300);
		n->node[0].now_ms = n->node[1].now_ms = n->now_ms;
		struct message m = net_take(n);

		if (m.to >= ROOT)
			node_take(n, m.to, &m);
		else
			worker_take(n, m.to, &m);
	} else {
		worker_send(n, random_below(&n->random, n->workers));
	}
}

static const char *run_network(uint64_t seed)
{
	static struct network n;

	network_make(&n, seed);
	for (int step = 0; step < STEPS_MAX && !n.wrong; step++) {
		network_step(&n);
		if (all_have_finished(&n))
			return n.wrong;
	}
	return n.wrong ? n.wrong : "stuck";
}

static void every_chunk_is_finished_by_all_and_never_wrong(void **state)
{
	run_seeds(NETWORK_SEEDS, run_network);
}

static void the_networks_had_every_outcome_that_the_rules_give(void **state)
{
	static const enum tally_outcome given[] = {
		TALLY_STALE,	 TALLY_BEHIND,	  TALLY_DUPLICATE, TALLY_OVERLAP,
		TALLY_ABSORBED,	 TALLY_COMPLETED, TALLY_ANSWERED,  TALLY_ANSWERED_ALL,
		TALLY_ASKED,	 TALLY_REPAIRED,  TALLY_SENT_UP,   TALLY_FLUSHED_UP,
		TALLY_PASSED_UP, TALLY_SENT_DOWN, TALLY_NO_ROOM,
	};

	if (getenv("TALLY_SEED"))
		skip();
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
		assert_true(outcomes_shown >> given[i] & 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_has_its_way_at_every_node),
		cmocka_unit_test(contributions_are_of_some_of_the_job_and_repairs_of_all),
		cmocka_unit_test(a_recipient_is_a_rank_of_the_job_or_everyone),
		cmocka_unit_test(what_is_wrong_is_named_in_this_order),
		cmocka_unit_test(flags_that_are_not_known_are_refused),
		cmocka_unit_test(a_header_is_large_where_the_job_is),
		cmocka_unit_test(the_tag_of_a_keyed_job_is_looked_at_later),
		cmocka_unit_test(what_one_rank_says_has_its_key),
		cmocka_unit_test(what_several_say_has_the_node_key_if_the_sender_is_one),
		cmocka_unit_test(what_comes_down_has_the_node_key),
		cmocka_unit_test(a_node_has_the_keys_of_those_below_and_its_own),
		cmocka_unit_test(a_node_signs_as_its_message_will_be_judged),
		cmocka_unit_test(a_message_is_from_whom_has_the_key_of_its_tag),
		cmocka_unit_test(a_node_goes_by_its_own_rule_and_what_leaves_has_the_sum),
		cmocka_unit_test(every_outcome_has_its_reply),
		cmocka_unit_test(whatever_has_a_reply_is_due),
		cmocka_unit_test(another_version_hears_ours_from_a_node),
		cmocka_unit_test(what_leaves_as_it_came_goes_where_the_list_says),
		cmocka_unit_test(an_outcome_says_its_name_and_what_it_means),
		cmocka_unit_test(an_answer_has_the_payload_only_for_its_recipient),
		cmocka_unit_test(a_sum_is_read_from_the_slot_unless_the_packet_has_it),
		cmocka_unit_test(a_frame_that_stays_short_asks_everyone_and_leaves_the_slot),
		cmocka_unit_test(a_reply_reads_the_slot_as_it_is_now),
		cmocka_unit_test(a_flush_empties_what_it_reads),
		cmocka_unit_test(a_reply_is_stale_if_the_slot_has_moved_on),
		cmocka_unit_test(a_result_has_the_books_of_the_slot_in_its_header),
		cmocka_unit_test(without_payload_a_sum_keeps_its_check),
		cmocka_unit_test(a_contribution_stays_flushed_and_names_no_node),
		cmocka_unit_test(a_copy_keeps_the_payload_if_its_recipient_is_below),
		cmocka_unit_test(every_chunk_is_finished_by_all_and_never_wrong),
		cmocka_unit_test(the_networks_had_every_outcome_that_the_rules_give),
	};

	return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
