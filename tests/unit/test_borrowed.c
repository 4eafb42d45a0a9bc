// SPDX-License-Identifier: GPL-2.0-only
/*
 * Borrowed slots: each rule as a fact, on a pool of one slot. Chance, loss and restarts are in
 * test_sim.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/memory_pool.h"

/* Literals below name their defaults first, and a test overrides what it is about. */
#pragma GCC diagnostic ignored "-Woverride-init"

enum {
	JOB = 7,
	EPOCH = 3,
	SEQ = 100,
	PRIORITY = 4,
	WORD = 1000, /* each word of rank r has this and r more */
	NOW_MS = 5000,
};

/* A contribution of a rank, with tag. */
#define contribution(rank, ...)                                          \
	make((rank), (struct tally_header){ .magic = TALLY_MAGIC,        \
					    .version = TALLY_VERSION,    \
					    .kind = TALLY_CONTRIBUTION,  \
					    .job = JOB,                  \
					    .epoch = EPOCH,              \
					    .seq = SEQ,                  \
					    .recipient = TALLY_EVERYONE, \
					    .blocks = 1,                 \
					    .lane = TALLY_LANE_INT64,    \
					    .priority = PRIORITY,        \
					    .check = 10 + (rank),        \
					    .call = 1,                   \
					    __VA_ARGS__ })

/* The header's numbers are those of this machine until here. */
static struct message make(unsigned int rank, struct tally_header h)
{
	struct message m = { .header = h };
	struct tally_set set = { { 0 } };

	tally_set_add(&set, rank);
	m.header.job = tally_le32(h.job);
	m.header.epoch = tally_le16(h.epoch);
	m.header.seq = tally_le32(h.seq);
	m.header.recipient = tally_le16(h.recipient);
	m.header.sender = tally_le16(rank);
	m.header.check = tally_le64(h.check);
	m.header.call = tally_le64(h.call);
	tally_header_set_put(&m.header, &set);
	m.header.tag = tally_le64(tally_tag(&m.header, &set));
	for (int i = 0; i < h.blocks * TALLY_BLOCK_WORDS; i++)
		message_words(&m)[i] = WORD + rank;
	return m;
}

/* An inner node for jobs of `ranks`, all of whom come through it. */
struct inner {
	struct tally_set all;
	struct memory_node node;
	struct memory_pool pool;
};

static void inner_begin(struct inner *n, unsigned int ranks, struct tally_borrowed_policy policy)
{
	*n = (struct inner){ .all = tally_set_first(ranks),
			     .node = { .role = { .everyone = &n->all,
						 .below = &n->all,
						 .epoch = EPOCH,
						 .blocks_max = MESSAGE_BLOCKS_MAX },
				       .frames_grow = true,
				       .now_ms = NOW_MS },
			     .pool = { .policy = policy, .slots = 1 } };
}

/* What leaves is in *m. */
static enum tally_outcome visit(struct inner *n, struct message *m)
{
	struct visit v;
	enum tally_outcome outcome;

	n->node.role.epoch = tally_le16_get(m->header.epoch);
	pool_begin(&n->pool, &n->node, m, &v);
	outcome = pool_end(&n->pool, &n->node, &v);
	*m = v.message;
	return outcome;
}

/* Says of one message what becomes of it, of its slot, and how it leaves. */
#define expect(n, m, outcome, move)                                 \
	do {                                                        \
		uint64_t moves = (n)->pool.moves[move];             \
		assert_int_equal(visit((n), (m)), (outcome));       \
		assert_int_equal((n)->pool.moves[move], moves + 1); \
	} while (0)

static bool is_free(const struct inner *n)
{
	return tally_borrowed_is_free(&n->pool.slot[0].books);
}

/* A sum over the ranks of `set`, with this header and a right tag. */
static void assert_sum(struct message *m, uint32_t job, uint16_t epoch, uint32_t seq, uint64_t set,
		       uint64_t word, uint64_t check)
{
	struct tally_set s = tally_header_set(&m->header);

	assert_int_equal(tally_le32_get(m->header.job), job);
	assert_int_equal(tally_le16_get(m->header.epoch), epoch);
	assert_int_equal(tally_le32_get(m->header.seq), seq);
	assert_int_equal(s.word[0], set);
	assert_int_equal(m->header.kind, TALLY_CONTRIBUTION);
	assert_int_equal(tally_le64_get(m->header.check), check);
	assert_int_equal(tally_le64_get(m->header.tag), tally_tag(&m->header, &s));
	for (int i = 0; i < m->header.blocks * TALLY_BLOCK_WORDS; i++)
		assert_int_equal(message_words(m)[i], word);
}

static void a_sum_that_is_whole_leaves_and_its_slot_is_free(void **state)
{
	struct inner n;
	struct message a = contribution(0), b = contribution(1);

	inner_begin(&n, 2, TALLY_BORROWED_ESA);
	expect(&n, &a, TALLY_ABSORBED, TALLY_BORROWED_TAKEN);
	expect(&n, &b, TALLY_SENT_UP, TALLY_BORROWED_STAYS);
	assert_sum(&b, JOB, EPOCH, SEQ, 3, 2 * WORD + 1, 21);
	assert_true(is_free(&n));
}

/* The last contribution brings no words: the sum is read in the second step. */
static void a_slot_is_free_only_when_its_sum_has_been_read(void **state)
{
	struct inner n;
	struct message a = contribution(0), b = contribution(1, .blocks = 0);
	struct visit v;

	inner_begin(&n, 2, TALLY_BORROWED_ESA);
	visit(&n, &a);
	pool_begin(&n.pool, &n.node, &b, &v);
	assert_false(is_free(&n));
	assert_int_equal(pool_end(&n.pool, &n.node, &v), TALLY_SENT_UP);
	assert_sum(&v.message, JOB, EPOCH, SEQ, 3, WORD, 21);
	assert_true(is_free(&n));
}

/* Between the two steps another chunk, or another run's like, may have come to the slot. */
static void a_second_step_takes_nothing_from_another_chunk(void **state)
{
	struct message of_others[] = { contribution(0, .job = JOB + 1), contribution(0, .seq = 9),
				       contribution(0, .epoch = EPOCH + 1) };

	for (size_t i = 0; i < sizeof(of_others) / sizeof(*of_others); i++) {
		struct inner n;
		struct message a = contribution(0), b = contribution(0, .flags = TALLY_FLUSH);
		struct visit v;

		inner_begin(&n, 2, (struct tally_borrowed_policy){ .preempts = true });
		visit(&n, &a);
		pool_begin(&n.pool, &n.node, &b, &v);
		visit(&n, &of_others[i]);
		assert_int_equal(pool_end(&n.pool, &n.node, &v), TALLY_STALE);
		assert_false(is_free(&n));
	}
}

static void what_is_repeated_is_not_added(void **state)
{
	struct inner n;
	struct message a = contribution(0), again = a;

	inner_begin(&n, 2, TALLY_BORROWED_ESA);
	visit(&n, &a);
	expect(&n, &again, TALLY_DUPLICATE, TALLY_BORROWED_STAYS);
	assert_int_equal(n.pool.slot[0].word[0], WORD);
}

static void who_brings_all_that_can_come_takes_no_slot(void **state)
{
	struct inner n;
	struct message a = contribution(0);

	inner_begin(&n, 1, TALLY_BORROWED_ESA);
	expect(&n, &a, TALLY_PASSED_UP, TALLY_BORROWED_STAYS);
	assert_true(is_free(&n));
}

static void a_higher_priority_takes_the_slot_and_carries_what_it_held(void **state)
{
	struct inner n;
	struct message a = contribution(0), b = contribution(1),
		       c = contribution(2, .job = 8, .seq = 55, .epoch = EPOCH + 1, .priority = 5);
	struct message rest = contribution(0, .job = 8, .seq = 55, .epoch = EPOCH + 1);

	inner_begin(&n, 3, TALLY_BORROWED_ESA);
	visit(&n, &a);
	visit(&n, &b);
	expect(&n, &c, TALLY_SENT_UP, TALLY_BORROWED_SWAPPED);
	assert_sum(&c, JOB, EPOCH, SEQ, 3, 2 * WORD + 1, 21);
	assert_int_equal(c.header.priority, PRIORITY);
	assert_int_equal(c.header.flags, 0);
	assert_int_equal(tally_le16_get(c.header.sender), 0);
	expect(&n, &rest, TALLY_ABSORBED, TALLY_BORROWED_STAYS);
	assert_int_equal(n.pool.slot[0].word[0], 2 * WORD + 2);
	assert_int_equal(n.pool.slot[0].books.state.set.word[0], 5);
}

/* Each who is refused halves what the holder stands for, until it gives way. */
static void a_holder_that_keeps_others_out_is_downgraded(void **state)
{
	struct inner n;
	struct message a = contribution(0);

	inner_begin(&n, 2, TALLY_BORROWED_ESA);
	visit(&n, &a);
	for (int standing = PRIORITY; standing >= 1; standing /= 2) {
		struct message b = contribution(1, .job = 8, .priority = 1);

		expect(&n, &b, TALLY_PASSED_UP, TALLY_BORROWED_REFUSED);
		assert_sum(&b, 8, EPOCH, SEQ, 2, WORD + 1, 11);
		assert_int_equal(n.pool.slot[0].books.standing, standing / 2);
		assert_int_equal(n.pool.slot[0].books.priority, PRIORITY);
	}
	a = contribution(1, .job = 8, .priority = 1);
	expect(&n, &a, TALLY_SENT_UP, TALLY_BORROWED_SWAPPED);
	assert_int_equal(a.header.priority, PRIORITY);
}

/* Of what a message asks for, its tenant has a share; what leaves says it as it came. */
static void the_share_of_a_priority_counts_and_the_priority_is_kept(void **state)
{
	const struct tally_borrowed_policy esa = TALLY_BORROWED_ESA;
	const struct tally_set below = tally_set_first(2), set = { { 1 } };
	const struct tally_role role = { .everyone = &below, .below = &below };
	const struct tally_borrower b = { .job = JOB, .priority = 200, .standing = 25 };
	const struct tally_offer o = { .seq = SEQ, .set = set };
	struct tally_borrowed_slot s = { .state = { .phase = TALLY_SLOT_FRESH } }, out;

	assert_int_equal(tally_borrowed_gather(&esa, &role, &s, &b, &o, &out).move,
			 TALLY_BORROWED_TAKEN);
	assert_int_equal(s.priority, 200);
	assert_int_equal(s.standing, 25);
}

/* Its books are all 0, as a job's may be. */
static void a_free_slot_is_no_chunks(void **state)
{
	const struct tally_borrowed_slot s = { .state = { .phase = TALLY_SLOT_FRESH } };
	const struct tally_borrower b = { .job = 0, .epoch = 0 };

	assert_false(tally_borrowed_holds(&s, &b, 0));
}

static void equal_priorities_do_not_take_turns(void **state)
{
	struct inner n;
	struct message a = contribution(0), b = contribution(0, .job = 8);

	inner_begin(&n, 2, (struct tally_borrowed_policy){ .preempts = true, .by_priority = true });
	visit(&n, &a);
	expect(&n, &b, TALLY_PASSED_UP, TALLY_BORROWED_REFUSED);
	assert_int_equal(n.pool.slot[0].books.standing, PRIORITY);
}

static void who_cannot_carry_what_the_slot_holds_is_refused(void **state)
{
	struct inner n;
	struct message a = contribution(0, .blocks = 2);
	struct message b = contribution(0, .job = 8, .priority = 9);

	inner_begin(&n, 2, TALLY_BORROWED_ESA);
	visit(&n, &a);
	expect(&n, &b, TALLY_PASSED_UP, TALLY_BORROWED_REFUSED);
	b = contribution(0, .job = 8, .priority = 9, .blocks = 2);
	expect(&n, &b, TALLY_SENT_UP, TALLY_BORROWED_SWAPPED);
}

static void a_frame_of_another_shape_is_refused(void **state)
{
	struct inner n;
	struct message a = contribution(0), b = contribution(0, .job = 8, .priority = 9);

	inner_begin(&n, 2, TALLY_BORROWED_ESA);
	visit(&n, &a);
	n.pool.slot[0].books.shape = 1;
	expect(&n, &b, TALLY_PASSED_UP, TALLY_BORROWED_REFUSED);
	n.pool.slot[0].books.shape = 0;
	b = contribution(0, .job = 8, .priority = 9);
	expect(&n, &b, TALLY_SENT_UP, TALLY_BORROWED_SWAPPED);
}

/* What came in by one port, hardware address and VLAN may be lost if it comes in by another. */
static void a_frame_of_another_entrance_is_refused(void **state)
{
	struct inner n;
	struct message a = contribution(0), b = contribution(0, .job = 8, .priority = 9), again = b;

	inner_begin(&n, 2, TALLY_BORROWED_ESA);
	visit(&n, &a);
	for (int i = 0; i < 3; i++) {
		b = again;
		n.pool.slot[0].books.entrance.word[i] = 1;
		expect(&n, &b, TALLY_PASSED_UP, TALLY_BORROWED_REFUSED);
		assert_sum(&b, 8, EPOCH, SEQ, 1, WORD, 10);
		n.pool.slot[0].books.entrance.word[i] = 0;
		n.pool.slot[0].books.standing = PRIORITY;
	}
	n.pool.entrance.word[1] = 7;
	b = again;
	expect(&n, &b, TALLY_PASSED_UP, TALLY_BORROWED_REFUSED);
	n.pool.slot[0].books.entrance = n.pool.entrance;
	b = again;
	expect(&n, &b, TALLY_SENT_UP, TALLY_BORROWED_SWAPPED);
	assert_int_equal(n.pool.slot[0].books.entrance.word[1], 7);
}

/* The packet becomes shorter; nothing of its own words leaves. */
static void what_a_swap_sends_is_as_long_as_what_was_held(void **state)
{
	struct inner n;
	struct message a = contribution(0),
		       b = contribution(0, .job = 8, .priority = 9, .blocks = 2);

	inner_begin(&n, 2, TALLY_BORROWED_ESA);
	visit(&n, &a);
	visit(&n, &b);
	assert_int_equal(b.header.blocks, 1);
	assert_int_equal(n.pool.slot[0].books.state.blocks, 2);
	assert_int_equal(n.pool.slot[0].word[MESSAGE_WORDS_MAX - 1], WORD);
}

/* Jobs of more than 64 ranks have longer headers. */
static void a_swap_keeps_the_length_of_the_old_holders_header(void **state)
{
	struct inner n;
	struct message a = contribution(70, .flags = TALLY_LARGE);
	struct message b = contribution(1, .job = 8, .priority = 9);
	struct message c = contribution(70, .job = 9, .priority = 10, .flags = TALLY_LARGE);
	struct tally_set many = tally_set_first(72), few = tally_set_first(2);

	inner_begin(&n, 72, TALLY_BORROWED_ESA);
	visit(&n, &a);
	n.node.role.everyone = n.node.role.below = &few;
	expect(&n, &b, TALLY_SENT_UP, TALLY_BORROWED_SWAPPED);
	assert_true(b.header.flags & TALLY_LARGE);
	assert_sum(&b, JOB, EPOCH, SEQ, 0, WORD + 70, 80);
	assert_true(tally_set_has(
		&(struct tally_set){ { 0, tally_le64_get(tally_more_of(&b.header)->set[0]) } },
		70));
	assert_int_equal(tally_more_of(&b.header)->reserved, 0);
	n.node.role.everyone = n.node.role.below = &many;
	expect(&n, &c, TALLY_SENT_UP, TALLY_BORROWED_SWAPPED);
	assert_false(c.header.flags & TALLY_LARGE);
	assert_sum(&c, 8, EPOCH, SEQ, 2, WORD + 1, 11);
}

static void what_an_earlier_run_left_is_nobodys(void **state)
{
	struct inner n;
	struct message a = contribution(0), b = contribution(0, .epoch = EPOCH + 1, .priority = 0);

	inner_begin(&n, 2, TALLY_BORROWED_FCFS);
	visit(&n, &a);
	expect(&n, &b, TALLY_ABSORBED, TALLY_BORROWED_TAKEN);
	assert_int_equal(n.pool.slot[0].books.epoch, EPOCH + 1);
}

static void flush_under(struct tally_borrowed_policy policy)
{
	struct inner n;
	struct message a = contribution(0), b = contribution(1);
	struct message flush = contribution(1, .flags = TALLY_FLUSH);

	inner_begin(&n, 3, policy);
	visit(&n, &a);
	visit(&n, &b);
	assert_int_equal(visit(&n, &flush), TALLY_FLUSHED_UP);
	assert_sum(&flush, JOB, EPOCH, SEQ, 3, 2 * WORD + 1, 21);
	assert_true(flush.header.flags & TALLY_FLUSH);
	assert_true(is_free(&n));
}

static void a_flush_takes_what_the_slot_has_and_frees_it(void **state)
{
	flush_under(TALLY_BORROWED_ESA);
	flush_under(TALLY_BORROWED_FCFS); /* also where whole sums stay */
}

static void a_flush_takes_no_slot_from_anybody(void **state)
{
	struct inner n;
	struct message flush = contribution(1, .flags = TALLY_FLUSH, .priority = 255);
	struct message a = contribution(0, .job = 8);

	inner_begin(&n, 2, (struct tally_borrowed_policy){ .preempts = true });
	assert_int_equal(visit(&n, &flush), TALLY_PASSED_UP);
	assert_true(is_free(&n));
	visit(&n, &a);
	assert_int_equal(visit(&n, &flush), TALLY_PASSED_UP);
	assert_sum(&flush, JOB, EPOCH, SEQ, 2, WORD + 1, 11);
	assert_int_equal(n.pool.slot[0].books.job, 8);
}

static void a_sum_that_is_rejected_frees_its_slot(void **state)
{
	struct inner n;
	struct message a = contribution(0), reject = contribution(0, .flags = TALLY_REJECT);

	inner_begin(&n, 2, TALLY_BORROWED_ESA);
	visit(&n, &a);
	assert_int_equal(visit(&n, &reject), TALLY_PASSED_UP);
	assert_true(is_free(&n));
}

static void who_rejects_a_sum_takes_no_slot_from_anybody(void **state)
{
	struct inner n;
	struct message a = contribution(0),
		       reject = contribution(0, .job = 8, .flags = TALLY_REJECT);

	inner_begin(&n, 2, (struct tally_borrowed_policy){ .preempts = true });
	visit(&n, &a);
	expect(&n, &reject, TALLY_PASSED_UP, TALLY_BORROWED_STAYS);
	assert_sum(&reject, 8, EPOCH, SEQ, 1, WORD, 10);
	assert_int_equal(n.pool.slot[0].books.job, JOB);
}

/* As one that does not agree, or is in the sum in part: the sum stays. */
static void what_goes_on_alone_leaves_the_sum_alone(void **state)
{
	struct message alone[] = { contribution(1, .call = 2), contribution(1, .lane = 6),
				   contribution(1, .flags = TALLY_FLUSH) };
	struct inner n;
	struct message a = contribution(0), rest = contribution(1);

	inner_begin(&n, 2, TALLY_BORROWED_ESA);
	visit(&n, &a);
	for (size_t i = 0; i < sizeof(alone) / sizeof(*alone); i++) {
		assert_int_equal(visit(&n, &alone[i]), TALLY_PASSED_UP);
		assert_false(is_free(&n));
	}
	expect(&n, &rest, TALLY_SENT_UP, TALLY_BORROWED_STAYS);
	assert_sum(&rest, JOB, EPOCH, SEQ, 3, 2 * WORD + 1, 21);
}

/* As of a barrier: there are no words to be read. */
static void a_sum_without_words_frees_its_slot_at_once(void **state)
{
	struct message a = contribution(0, .blocks = 0), b = contribution(1, .blocks = 0);
	struct inner n;

	inner_begin(&n, 2, TALLY_BORROWED_ESA);
	expect(&n, &a, TALLY_ABSORBED, TALLY_BORROWED_TAKEN);
	expect(&n, &b, TALLY_SENT_UP, TALLY_BORROWED_STAYS);
	assert_sum(&b, JOB, EPOCH, SEQ, 3, 0, 21);
	assert_true(is_free(&n));
}

/* First come, first served: until the result is there. */
static void a_slot_that_holds_on_answers_until_the_result_comes_down(void **state)
{
	struct inner n;
	struct message a = contribution(0), b = contribution(1), again = a;
	struct message other = contribution(0, .job = 8, .priority = 255), later = other;
	struct message result = contribution(0, .kind = TALLY_RESULT);

	inner_begin(&n, 2, TALLY_BORROWED_FCFS);
	visit(&n, &a);
	visit(&n, &b);
	assert_false(is_free(&n));
	expect(&n, &again, TALLY_SENT_UP, TALLY_BORROWED_STAYS);
	assert_sum(&again, JOB, EPOCH, SEQ, 3, 2 * WORD + 1, 21);
	expect(&n, &other, TALLY_PASSED_UP, TALLY_BORROWED_REFUSED);
	assert_int_equal(visit(&n, &result), TALLY_SENT_DOWN);
	assert_true(is_free(&n));
	expect(&n, &later, TALLY_ABSORBED, TALLY_BORROWED_TAKEN);
}

/* Its sum has left already, so nothing leaves again. */
static void a_whole_sum_that_gives_way_is_forgotten(void **state)
{
	struct inner n;
	struct message a = contribution(0), b = contribution(1), c = contribution(0, .job = 8);

	inner_begin(&n, 2, (struct tally_borrowed_policy){ .holds = true, .preempts = true });
	visit(&n, &a);
	visit(&n, &b);
	expect(&n, &c, TALLY_ABSORBED, TALLY_BORROWED_TAKEN);
	assert_int_equal(n.pool.slot[0].books.state.set.word[0], 1);
}

static void a_result_frees_no_other_chunks_slot(void **state)
{
	struct message results[] = { contribution(0, .kind = TALLY_RESULT, .job = 8),
				     contribution(0, .kind = TALLY_RESULT, .seq = 9),
				     contribution(0, .kind = TALLY_RESULT, .epoch = 9),
				     contribution(0, .kind = TALLY_ASK) };

	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
		struct inner n;
		struct message a = contribution(0);

		inner_begin(&n, 2, TALLY_BORROWED_ESA);
		visit(&n, &a);
		visit(&n, &results[i]);
		assert_false(is_free(&n));
	}
}

static void who_has_not_grown_for_long_gives_way_under_any_policy(void **state)
{
	struct inner n;
	struct message a = contribution(0), b = contribution(1);
	struct message early = contribution(0, .job = 8), late = early;

	inner_begin(&n, 3, (struct tally_borrowed_policy){ .stalled_ms = 50 });
	visit(&n, &a);
	n.node.now_ms += 40;
	visit(&n, &b);
	n.node.now_ms -= 1; /* of a processor that was late at the slot's lock */
	expect(&n, &early, TALLY_PASSED_UP, TALLY_BORROWED_REFUSED);
	early = late;
	n.node.now_ms += 50;
	expect(&n, &early, TALLY_PASSED_UP, TALLY_BORROWED_REFUSED);
	n.node.now_ms += 1;
	expect(&n, &late, TALLY_SENT_UP, TALLY_BORROWED_SWAPPED);
	assert_sum(&late, JOB, EPOCH, SEQ, 3, 2 * WORD + 1, 21);
}

static void what_is_repeated_has_not_grown(void **state)
{
	struct message a = contribution(0), again = a, other = contribution(0, .job = 8);
	struct inner n;

	inner_begin(&n, 3, (struct tally_borrowed_policy){ .stalled_ms = 50 });
	visit(&n, &a);
	n.node.now_ms += 49;
	expect(&n, &again, TALLY_DUPLICATE, TALLY_BORROWED_STAYS);
	n.node.now_ms += 1;
	expect(&n, &other, TALLY_SENT_UP, TALLY_BORROWED_SWAPPED);
}

static void nobody_carries(struct message *a, __u8 shape)
{
	struct message b = contribution(0, .job = 8), late = b;
	struct inner n;

	inner_begin(&n, 3, (struct tally_borrowed_policy){ .preempts = true, .stalled_ms = 50 });
	visit(&n, a);
	n.pool.slot[0].books.shape = shape;
	n.node.now_ms += 49;
	expect(&n, &b, TALLY_PASSED_UP, TALLY_BORROWED_REFUSED);
	n.node.now_ms += 1;
	expect(&n, &late, TALLY_ABSORBED, TALLY_BORROWED_TAKEN);
	assert_int_equal(n.pool.slot[0].books.job, 8);
}

static void what_nobody_carries_is_forgotten_when_it_stalls(void **state)
{
	struct message other_shape = contribution(0), longer = contribution(0, .blocks = 2);

	nobody_carries(&other_shape, 1);
	nobody_carries(&longer, 0);
}

/* One place for each chunk, and all places in use. */
static void chunks_have_places_all_over_the_pool(void **state)
{
	unsigned int used[64] = { 0 };

	for (uint32_t seq = 0; seq < 6400; seq++) {
		struct tally_borrower b = { .job = JOB + seq % 2, .epoch = EPOCH };
		uint32_t place = tally_borrowed_place(&b, seq, 64);

		assert_true(place < 64);
		assert_int_equal(place, tally_borrowed_place(&b, seq, 64));
		used[place]++;
	}
	for (int i = 0; i < 64; i++)
		assert_in_range(used[i], 50, 150);
}

/* Otherwise jobs that begin together, or runs one after the other, would always meet. */
static void other_jobs_and_runs_have_other_places(void **state)
{
	const struct tally_borrower b = { .job = JOB, .epoch = EPOCH };
	const struct tally_borrower other_job = { .job = JOB + 1, .epoch = EPOCH };
	const struct tally_borrower other_run = { .job = JOB, .epoch = EPOCH + 1 };
	unsigned int meet_jobs = 0, meet_runs = 0;

	for (uint32_t seq = 0; seq < 6400; seq++) {
		uint32_t place = tally_borrowed_place(&b, seq, 64);

		meet_jobs += place == tally_borrowed_place(&other_job, seq, 64);
		meet_runs += place == tally_borrowed_place(&other_run, seq, 64);
	}
	assert_in_range(meet_jobs, 0, 200);
	assert_in_range(meet_runs, 0, 200);
}

/* A range is as long as the job's window, so its chunks in flight never meet. Ranges may overlap.
 */
static void a_jobs_chunks_in_flight_have_a_range(void **state)
{
	const struct tally_borrower b = { .job = JOB, .base = 60, .range = 8 };
	const struct tally_borrower odd = { .job = JOB, .base = 20, .range = 12 };

	for (uint32_t seq = 0; seq < 100; seq++)
		assert_int_equal(tally_borrowed_place(&odd, seq, 25), (20 + seq % 12) % 25);
	for (uint32_t seq = 0xfffffff0; seq != 16; seq++) {
		assert_int_equal(tally_borrowed_place(&b, seq, 64), (60 + seq % 8) % 64);
		assert_int_equal(tally_borrowed_place(&b, seq, 64),
				 tally_borrowed_place(&b, seq + 8, 64));
		assert_true(tally_borrowed_place(&b, seq, 3) < 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sum_that_is_whole_leaves_and_its_slot_is_free),
		cmocka_unit_test(a_slot_is_free_only_when_its_sum_has_been_read),
		cmocka_unit_test(a_second_step_takes_nothing_from_another_chunk),
		cmocka_unit_test(what_is_repeated_is_not_added),
		cmocka_unit_test(who_brings_all_that_can_come_takes_no_slot),
		cmocka_unit_test(a_higher_priority_takes_the_slot_and_carries_what_it_held),
		cmocka_unit_test(a_holder_that_keeps_others_out_is_downgraded),
		cmocka_unit_test(the_share_of_a_priority_counts_and_the_priority_is_kept),
		cmocka_unit_test(a_free_slot_is_no_chunks),
		cmocka_unit_test(equal_priorities_do_not_take_turns),
		cmocka_unit_test(who_cannot_carry_what_the_slot_holds_is_refused),
		cmocka_unit_test(a_frame_of_another_shape_is_refused),
		cmocka_unit_test(a_frame_of_another_entrance_is_refused),
		cmocka_unit_test(what_a_swap_sends_is_as_long_as_what_was_held),
		cmocka_unit_test(a_swap_keeps_the_length_of_the_old_holders_header),
		cmocka_unit_test(what_an_earlier_run_left_is_nobodys),
		cmocka_unit_test(a_flush_takes_what_the_slot_has_and_frees_it),
		cmocka_unit_test(a_flush_takes_no_slot_from_anybody),
		cmocka_unit_test(a_sum_that_is_rejected_frees_its_slot),
		cmocka_unit_test(who_rejects_a_sum_takes_no_slot_from_anybody),
		cmocka_unit_test(what_goes_on_alone_leaves_the_sum_alone),
		cmocka_unit_test(a_sum_without_words_frees_its_slot_at_once),
		cmocka_unit_test(a_slot_that_holds_on_answers_until_the_result_comes_down),
		cmocka_unit_test(a_whole_sum_that_gives_way_is_forgotten),
		cmocka_unit_test(a_result_frees_no_other_chunks_slot),
		cmocka_unit_test(who_has_not_grown_for_long_gives_way_under_any_policy),
		cmocka_unit_test(what_is_repeated_has_not_grown),
		cmocka_unit_test(what_nobody_carries_is_forgotten_when_it_stalls),
		cmocka_unit_test(chunks_have_places_all_over_the_pool),
		cmocka_unit_test(other_jobs_and_runs_have_other_places),
		cmocka_unit_test(a_jobs_chunks_in_flight_have_a_range),
	};

	return cmocka_run_group_tests_name("borrowed", tests, NULL, NULL);
}
