// SPDX-License-Identifier: GPL-2.0-only
/* What is sent again, and when: rules by numbers. What a window makes of them: test_window.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/recovery.h"

enum {
	US = 1000,
	MS = 1000 * US,
	START = 400 * MS,
};

static struct recovery recovery_of(uint16_t rank, uint16_t workers)
{
	struct recovery r;

	recovery_init(&r, rank, workers);
	return r;
}

static struct fate sent(struct recovery *r, uint32_t seq, uint64_t now_ns)
{
	struct fate f = { .seq = seq };

	recovery_sent(r, &f, now_ns);
	return f;
}

/* A whole chunk that took so long. */
static void finish(struct recovery *r, uint64_t now_ns, uint64_t rtt_ns)
{
	struct fate f = sent(r, 0, now_ns);

	recovery_result(r, &f, now_ns + rtt_ns);
}

static uint64_t due(struct recovery *r, struct fate *f, uint64_t now_ns)
{
	return recovery_due(r, f, false, now_ns);
}

/* --- round trips */

static void round_trips_are_smoothed(void **state)
{
	struct recovery r = recovery_of(0, 2);

	assert_int_equal(r.rto_ns, RECOVERY_RTO_FIRST_NS);
	/* RFC 6298: SRTT 3, RTTVAR 1.5; then RTTVAR 3/4 1.5 + 1/4 8, SRTT 7/8 3 + 1/8 11. */
	finish(&r, START, 3 * MS);
	assert_int_equal(r.srtt_ns, 3 * MS);
	assert_int_equal(r.rto_ns, 9 * MS);
	finish(&r, START, 11 * MS);
	assert_int_equal(r.srtt_ns, 4 * MS);
	assert_int_equal(r.rto_ns, 16500 * US);
	finish(&r, START, 4 * MS - 800 * US);
	assert_int_equal(r.srtt_ns, 3900 * US);
	assert_int_equal(r.rto_ns, 14075 * US);
}

static void the_timeout_has_limits(void **state)
{
	struct recovery r = recovery_of(0, 2);

	finish(&r, START, 1);
	assert_int_equal(r.rto_ns, RECOVERY_RTO_MIN_NS);
	finish(&r, START, 1000 * MS);
	assert_int_equal(r.rto_ns, RECOVERY_RTO_MAX_NS);
}

static void what_was_sent_again_measures_nothing(void **state)
{
	struct recovery r = recovery_of(0, 2);
	struct fate f = sent(&r, 0, START);

	recovery_sent(&r, &f, START + MS);
	recovery_result(&r, &f, START + 2 * MS);
	assert_int_equal(r.srtt_ns, 0);
}

/* A late rank makes round trips long; recovery at the end of a call is not to become slow by it. */
static void the_quick_round_trip_falls_at_once_and_rises_slowly(void **state)
{
	struct recovery r = recovery_of(0, 2);

	finish(&r, START, MS);
	for (int i = 0; i < 47; i++)
		finish(&r, START, 100 * MS);
	assert_in_range(r.quick_ns, MS, 3 * MS / 2);
	finish(&r, START, MS / 2);
	assert_int_equal(r.quick_ns, MS / 2);
}

/* --- what was overtaken */

static void a_chunk_is_overtaken_when_its_result_is_late_by_the_allowance(void **state)
{
	struct recovery r = recovery_of(0, 2);
	struct fate first = sent(&r, 0, START), second = sent(&r, 1, START), third;
	uint64_t late = START + MS + RECOVERY_REORDER_MIN_NS;

	third = sent(&r, 2, START + 1);
	assert_true(recovery_result(&r, &second, START + MS));
	assert_int_equal(due(&r, &first, START + MS), late);
	assert_true(due(&r, &third, START + MS) == UINT64_MAX); /* it went later */
	assert_int_equal(first.overtaken_ns, 0);
	assert_false(recovery_asks(&r, &first, late));
	due(&r, &first, late);
	assert_int_equal(first.overtaken_ns, late);
	assert_true(recovery_asks(&r, &first, late));
	assert_false(recovery_result(&r, &first, late)); /* nothing new is overtaken by it */
}

/* RFC 8985: a result sooner than any network could answer is the original's. */
static void the_result_of_an_original_does_not_overtake(void **state)
{
	struct recovery r = recovery_of(0, 2);
	struct fate again, other;

	finish(&r, START, MS);
	again = sent(&r, 1, START + 2 * MS);
	other = sent(&r, 2, START + 3 * MS);
	again.lost = true;
	recovery_sent(&r, &again, START + 9 * MS);
	assert_false(recovery_result(&r, &again, START + 10 * MS - 1));
	assert_true(due(&r, &other, START + 20 * MS) == UINT64_MAX);
	assert_int_equal(r.reorder_ns, RECOVERY_REORDER_MIN_NS * 5 / 4);
	assert_true(recovery_result(&r, &again, START + 10 * MS));
	assert_true(due(&r, &other, START + 11 * MS) < UINT64_MAX);
	assert_int_equal(r.reorder_ns, RECOVERY_REORDER_MIN_NS * 5 / 4);
}

static void the_allowance_shrinks_and_has_limits(void **state)
{
	struct recovery r = recovery_of(0, 2);

	finish(&r, START, MS);
	for (int i = 0; i < 30; i++) {
		struct fate f = sent(&r, 1, START + 2 * MS);

		f.lost = true;
		recovery_sent(&r, &f, START + 3 * MS);
		recovery_result(&r, &f, START + 3 * MS + 1);
	}
	assert_int_equal(r.reorder_ns, r.rto_ns);
	for (int i = 0; i < 9000; i++)
		finish(&r, START, MS);
	assert_int_equal(r.reorder_ns, RECOVERY_REORDER_MIN_NS);
}

/* A probe may have been answered because of what another rank sent. */
static void probes_teach_no_reordering(void **state)
{
	struct recovery r = recovery_of(0, 2);
	struct fate f;

	finish(&r, START, MS);
	f = sent(&r, 1, START + 2 * MS);
	recovery_sent(&r, &f, START + 9 * MS);
	assert_false(recovery_result(&r, &f, START + 9 * MS + 1));
	assert_int_equal(r.reorder_ns, RECOVERY_REORDER_MIN_NS);
}

/* --- turns */

/* When this rank probes a chunk that was overtaken, with nothing left to ask by. */
static uint64_t turn(uint16_t rank, uint32_t seq)
{
	struct recovery r = recovery_of(rank, 4);
	struct fate f = sent(&r, seq, START - MS), other = sent(&r, seq + 1, START - MS);

	recovery_result(&r, &other, START);
	return recovery_due(&r, &f, true, START + MS) - (START + MS);
}

static void ranks_take_turns_and_begin_with_another_one_for_each_chunk(void **state)
{
	assert_true(turn(1, 0) == turn(0, 0) + MS / 2);
	assert_true(turn(3, 0) == turn(0, 0) + 3 * MS / 2);
	assert_true(turn(3, 1) == turn(0, 0));
	assert_true(turn(0, 1) == turn(1, 0));
}

/* --- silence */

static void silence_is_judged_by_whether_a_burst_has_begun_to_come_back(void **state)
{
	struct recovery r = recovery_of(0, 2);
	struct fate first = sent(&r, 0, START), last = sent(&r, 2, START), next;

	recovery_result(&r, &first, START + MS);
	assert_int_equal(recovery_silence(&r, &last, 1), START + MS + 3 * MS); /* 3 quick ones */
	assert_int_equal(recovery_silence(&r, &last, RECOVERY_TAIL_FLIGHTS + 1),
			 START + MS + RECOVERY_PATIENCE_FIRST_NS);
	next = sent(&r, 4, START + 2 * MS); /* another call's: ranks may be late */
	assert_int_equal(recovery_silence(&r, &next, 1),
			 START + 2 * MS + RECOVERY_PATIENCE_FIRST_NS);
}

static void each_probe_doubles_the_silence_up_to_the_maximum_and_a_result_ends_that(void **state)
{
	static const uint64_t wait_ms[] = { 20, 40, 80, 160, 250, 250, 250, 250 };
	struct recovery r = recovery_of(0, 2);
	struct fate f = sent(&r, 0, START);

	for (int i = 0; i < 600; i++) { /* more than a byte can count */
		assert_int_equal(recovery_silence(&r, &f, 1),
				 START + (i < 8 ? wait_ms[i] : 250) * MS);
		recovery_probed(&r, &f, 1, START);
	}
	recovery_result(&r, &f, START);
	assert_int_equal(r.silences, 0);
}

static void needless_probes_make_patient_and_needed_ones_impatient(void **state)
{
	struct recovery r = recovery_of(0, 2);
	struct fate old = sent(&r, 0, START), newest = sent(&r, 1, START);

	recovery_probed(&r, &newest, 2, START);
	recovery_result(&r, &old, START + MS);
	assert_int_equal(r.patience_ns, 2 * RECOVERY_PATIENCE_FIRST_NS);
	recovery_result(&r, &old, START + MS); /* one probe teaches once */
	assert_int_equal(r.patience_ns, 2 * RECOVERY_PATIENCE_FIRST_NS);
	for (int i = 0; i < 20; i++) {
		recovery_probed(&r, &newest, 2, START);
		recovery_result(&r, &newest, START + MS);
	}
	assert_int_equal(r.patience_ns, RECOVERY_PATIENCE_MIN_NS);
	recovery_probed(&r, &newest, 1, START); /* of a lone chunk nothing can be learnt */
	recovery_result(&r, &old, START + MS);
	assert_int_equal(r.patience_ns, RECOVERY_PATIENCE_MIN_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips_are_smoothed),
		cmocka_unit_test(the_timeout_has_limits),
		cmocka_unit_test(what_was_sent_again_measures_nothing),
		cmocka_unit_test(the_quick_round_trip_falls_at_once_and_rises_slowly),
		cmocka_unit_test(a_chunk_is_overtaken_when_its_result_is_late_by_the_allowance),
		cmocka_unit_test(the_result_of_an_original_does_not_overtake),
		cmocka_unit_test(the_allowance_shrinks_and_has_limits),
		cmocka_unit_test(probes_teach_no_reordering),
		cmocka_unit_test(ranks_take_turns_and_begin_with_another_one_for_each_chunk),
		cmocka_unit_test(silence_is_judged_by_whether_a_burst_has_begun_to_come_back),
		cmocka_unit_test(
			each_probe_doubles_the_silence_up_to_the_maximum_and_a_result_ends_that),
		cmocka_unit_test(needless_probes_make_patient_and_needed_ones_impatient),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
