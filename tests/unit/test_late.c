// SPDX-License-Identifier: GPL-2.0-only
/* Ranks that others wait for: agent/core/late.h. The slots are those of include/tally/slot.h. Real
 * ones: tests/e2e/late.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "agent/core/late.h"
#include "random.h"

enum {
	WINDOW_MAX = 256,
	CALL = 7,
};

/* A run at one node. */
struct world {
	struct tally_job job;
	struct installation_role role;
	struct tally_slot_state slot[2 * WINDOW_MAX];
	struct late late;
	struct tally_set became; /* late by the last look */
	unsigned int reads; /* of the last look */
	int error; /* that reading fails with */
	uint64_t random;
};

static struct world world;

static struct tally_set ranks(unsigned int from, unsigned int count)
{
	struct tally_set s = { 0 };

	for (unsigned int rank = from; rank < from + count; rank++)
		tally_set_add(&s, rank);
	return s;
}

static void world_begin(unsigned int workers, unsigned int window)
{
	world = (struct world){ .job = { .everyone = tally_set_first(workers),
					 .below = tally_set_first(workers),
					 .slot_mask = 2 * window - 1,
					 .root = 1 },
				.role = { .root = true },
				.random = 1 };
}

static int read_slot(void *context, uint32_t index, struct tally_slot_state *ret)
{
	struct world *w = context;

	assert_true(index <= w->job.slot_mask);
	assert_true(++w->reads <= LATE_READS_MAX);
	if (!w->error)
		*ret = w->slot[index];
	return w->error;
}

static int look(void)
{
	uint64_t draw[LATE_SLOTS];

	for (unsigned int i = 0; i < LATE_SLOTS; i++)
		draw[i] = random_next(&world.random);
	world.reads = 0;
	return late_look(&world.late, &world.job, &world.role, draw, read_slot, &world,
			 &world.became);
}

static void looks(unsigned int count)
{
	while (count--)
		assert_int_equal(look(), 0);
}

static void chunk_put(uint32_t seq, uint64_t call, uint8_t phase, struct tally_set set)
{
	world.slot[seq & world.job.slot_mask] =
		(struct tally_slot_state){ .seq = seq, .phase = phase, .call = call, .set = set };
}

/* All chunks of the ring up to the newest one are done; the last `waiting` of them have this set.
 */
static void ring_is(uint32_t newest, unsigned int waiting, struct tally_set has)
{
	for (uint32_t back = 0; back <= world.job.slot_mask; back++)
		chunk_put(newest - back, CALL,
			  back < waiting ? TALLY_SLOT_GATHERING : TALLY_SLOT_DONE,
			  back < waiting ? has : world.job.below);
}

static void late_are(const char *wanted) /* "3:84 5:90" */
{
	struct late_rank late[LATE_RANKS_MAX];
	unsigned int count = late_ranks(&world.late, late);
	char text[256] = "";

	for (unsigned int i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u:%u", i ? " " : "",
			 late[i].rank, late[i].percent);
	assert_string_equal(text, wanted);
}

/* --- one look -------------------------------------------------------------------------------- */

/* Wherever the newest chunk lies in the ring, also where numbers begin anew. */
static void the_newest_chunks_are_found(void **state)
{
	for (unsigned int window = 1; window <= WINDOW_MAX; window *= 2)
		for (uint32_t i = 0; i < 4 * window; i += window > 16 ? 7 : 1) {
			world_begin(4, window);
			ring_is(i - 2 * window, window, tally_set_first(3));
			looks(LATE_LOOKS_MIN);
			late_are("3:100");
			/* Those of the window before are none of it. */
			world_begin(4, window);
			ring_is(i - 2 * window, 2 * window, tally_set_first(3));
			ring_is(i - window, 0, world.job.below);
			looks(LATE_LOOKS_MIN);
			late_are("");
		}
}

static void a_ring_that_is_filled_for_the_first_time_is_looked_at(void **state)
{
	world_begin(4, 64);
	looks(LATE_LOOKS_MIN);
	late_are("");
	for (uint32_t seq = 0; seq < 20; seq++)
		chunk_put(seq, CALL, TALLY_SLOT_GATHERING, tally_set_first(3));
	looks(LATE_LOOKS);
	late_are("3:100");
}

/* A short call is over in less than a window; what was before it does not count. */
static void a_call_of_one_chunk_counts_as_a_long_one(void **state)
{
	world_begin(4, 64);
	ring_is(1000, 0, world.job.below);
	chunk_put(1001, CALL + 1, TALLY_SLOT_GATHERING, tally_set_first(3));
	looks(LATE_LOOKS_MIN);
	late_are("3:100");
	chunk_put(1001, CALL + 1, TALLY_SLOT_DONE, world.job.below);
	looks(LATE_LOOKS);
	late_are("");
}

/* Who is a few chunks behind the others holds nobody up. */
static void a_rank_that_is_a_little_behind_is_not_missing(void **state)
{
	world_begin(4, 64);
	ring_is(1000, 16, tally_set_first(3));
	looks(LATE_LOOKS);
	late_are("");
}

static void slots_where_nobody_or_all_have_come_do_not_wait(void **state)
{
	world_begin(2, 64);
	ring_is(1000, 64, (struct tally_set){ 0 });
	looks(LATE_LOOKS);
	late_are("");
	for (uint32_t i = 0; i <= world.job.slot_mask;
	     i++) { /* as a result that somebody brought */
		world.slot[i].phase = TALLY_SLOT_DONE;
		world.slot[i].set = tally_set_first(1);
	}
	looks(LATE_LOOKS);
	late_are("");
}

static void what_cannot_be_read_changes_nothing(void **state)
{
	struct late before;

	world_begin(4, 64);
	ring_is(1000, 64, tally_set_first(3));
	looks(LATE_LOOKS_MIN - 1);
	before = world.late;
	world.error = -EBADF;
	assert_int_equal(look(), -EBADF);
	assert_int_equal(world.late.count, before.count);
	assert_memory_equal(world.late.looks, before.looks, sizeof(before.looks));
}

/* --- who is alone ---------------------------------------------------------------------------- */

static void of_four_two_are_not_nearly_alone_and_of_eight_they_are(void **state)
{
	world_begin(4, 16);
	ring_is(1000, 16, ranks(0, 2));
	looks(LATE_LOOKS_MIN);
	late_are("");
	world_begin(7, 16);
	ring_is(1000, 16, ranks(0, 5));
	looks(LATE_LOOKS_MIN);
	late_are("");
	world_begin(8, 16);
	ring_is(1000, 16, ranks(0, 6));
	looks(LATE_LOOKS_MIN);
	late_are("6:100 7:100");
	world_begin(64, 16);
	ring_is(1000, 16, ranks(0, 60));
	looks(LATE_LOOKS_MIN);
	late_are("60:100 61:100 62:100 63:100");
	ring_is(1000, 16, ranks(0, 59));
	looks(LATE_LOOKS);
	late_are("");
}

/* What comes summed up from a node below is its ranks, which are missing together. */
static void a_child_counts_as_its_ranks(void **state)
{
	world_begin(12, 16);
	world.role.vias = 1;
	world.role.via[0].ranks = ranks(8, 4);
	ring_is(1000, 16, ranks(0, 8));
	looks(LATE_LOOKS_MIN);
	late_are("8:100 9:100 10:100 11:100");
	world.role.vias = 0;
	looks(LATE_LOOKS);
	late_are("");
}

static void an_inner_node_waits_for_those_below_it(void **state)
{
	world_begin(12, 16);
	world.role.root = false;
	world.job.root = 0;
	world.job.below = ranks(8, 4);
	ring_is(1000, 16, ranks(8, 3));
	looks(LATE_LOOKS_MIN);
	late_are("11:100");
}

static void no_more_are_told_than_there_is_room_for(void **state)
{
	world_begin(256, 16);
	world.role.vias = 1;
	world.role.via[0].ranks = ranks(128, 128);
	ring_is(1000, 16, ranks(0, 128));
	looks(LATE_LOOKS_MIN);
	late_are("128:100 129:100 130:100 131:100 132:100 133:100 134:100 135:100");
}

/* --- over some seconds ----------------------------------------------------------------------- */

static void a_rank_is_late_from_a_part_on_until_it_is_below_another(void **state)
{
	world_begin(4, 16);
	ring_is(1000, 0, world.job.below);
	looks(LATE_LOOKS);
	ring_is(1000, 16, tally_set_first(3));
	looks(LATE_BEGINS - 1);
	late_are("");
	looks(1);
	late_are("3:50");
	assert_true(tally_set_is_only(&world.became, 3));
	looks(LATE_LOOKS);
	late_are("3:100");
	assert_true(tally_set_is_empty(&world.became)); /* it was so before */
	ring_is(1000, 0, world.job.below);
	looks(LATE_LOOKS - LATE_ENDS);
	late_are("3:25");
	looks(1);
	late_are("");
	ring_is(1000, 16, tally_set_first(3));
	looks(LATE_BEGINS - 1); /* in place of those that it was missing in */
	late_are("");
	looks(1);
	late_are("3:50");
	assert_true(tally_set_is_only(&world.became, 3));
}

/* Of two one is always the last to come. */
static void two_that_take_turns_are_both_not_late(void **state)
{
	for (unsigned int part = 50; part <= 80; part += 5) {
		char wanted[16] = "";

		world_begin(2, 16);
		for (unsigned int i = 0; i < 5 * LATE_LOOKS; i++) {
			ring_is(1000, 16, ranks(i * 7 % 20 < part / 5 ? 0 : 1, 1));
			looks(1);
		}
		if (part >= 75)
			snprintf(wanted, sizeof(wanted), "1:%u", part);
		late_are(wanted);
	}
}

static void nobody_is_late_after_a_few_looks(void **state)
{
	world_begin(2, 16);
	ring_is(1000, 16, tally_set_first(1));
	looks(LATE_LOOKS_MIN - 1);
	late_are("");
	looks(1);
	late_are("1:100");
}

/* --- worlds ---------------------------------------------------------------------------------- */

/*
 * Workers as they are: a chunk goes out when the result of the one a window before is there; calls
 * of some chunks, which begin when the one before is over. How often a rank comes to send is by its
 * speed, out of 100; then it sends some chunks.
 */
static void workers_run(unsigned int workers, const unsigned int *speed, unsigned int window,
			unsigned int call, unsigned int looked)
{
	const struct tally_set everyone = world.job.everyone;
	unsigned int sent[TALLY_WORKERS_MAX] = { 0 };

	for (uint64_t step = 0; looked; step++) {
		const unsigned int rank = random_below(&world.random, workers);
		unsigned int done = UINT32_MAX, end;

		for (unsigned int i = 0; i < workers; i++)
			done = sent[i] < done ? sent[i] : done;
		end = (done / call + 1) * call; /* of the call that is under way */
		end = end < done + window ? end : done + window;
		for (unsigned int k = random_below(&world.random, 8);
		     k && sent[rank] < end && random_below(&world.random, 100) < speed[rank]; k--) {
			const uint32_t seq = sent[rank]++;
			struct tally_offer o = { .seq = seq,
						 .call = seq / call,
						 .set = ranks(rank, 1) };

			tally_slot_admit_root(&world.slot[seq & world.job.slot_mask], &o,
					      &everyone);
		}
		if (step % (50 * workers) == 0) {
			looks(1);
			looked--;
		}
	}
}

static void of_equal_workers_none_is_late(void **state)
{
	for (unsigned int i = 0; i < 24; i++) {
		unsigned int speed[16], workers = 2 + i % 15;

		for (unsigned int rank = 0; rank < workers; rank++)
			speed[rank] = 90;
		world_begin(workers, 128);
		world.random = i;
		workers_run(workers, speed, 128, i % 3 ? 5000 : 40, 4 * LATE_LOOKS);
		late_are("");
	}
}

static void one_that_is_much_slower_is_late_and_nobody_else(void **state)
{
	for (unsigned int i = 0; i < 24; i++) {
		unsigned int speed[16], workers = 2 + i % 15, slow = i * 7 % workers;
		struct late_rank late[LATE_RANKS_MAX];

		for (unsigned int rank = 0; rank < workers; rank++)
			speed[rank] = rank == slow ? 20 : 90;
		world_begin(workers, 128);
		world.random = i;
		workers_run(workers, speed, 128, i % 3 ? 5000 : 40, LATE_LOOKS);
		assert_int_equal(late_ranks(&world.late, late), 1);
		assert_int_equal(late[0].rank, slow);
		assert_true(late[0].percent >= LATE_BEGINS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newest_chunks_are_found),
		cmocka_unit_test(a_ring_that_is_filled_for_the_first_time_is_looked_at),
		cmocka_unit_test(a_call_of_one_chunk_counts_as_a_long_one),
		cmocka_unit_test(a_rank_that_is_a_little_behind_is_not_missing),
		cmocka_unit_test(slots_where_nobody_or_all_have_come_do_not_wait),
		cmocka_unit_test(what_cannot_be_read_changes_nothing),
		cmocka_unit_test(of_four_two_are_not_nearly_alone_and_of_eight_they_are),
		cmocka_unit_test(a_child_counts_as_its_ranks),
		cmocka_unit_test(an_inner_node_waits_for_those_below_it),
		cmocka_unit_test(no_more_are_told_than_there_is_room_for),
		cmocka_unit_test(a_rank_is_late_from_a_part_on_until_it_is_below_another),
		cmocka_unit_test(two_that_take_turns_are_both_not_late),
		cmocka_unit_test(nobody_is_late_after_a_few_looks),
		cmocka_unit_test(of_equal_workers_none_is_late),
		cmocka_unit_test(one_that_is_much_slower_is_late_and_nobody_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
