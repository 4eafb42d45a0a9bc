// SPDX-License-Identifier: GPL-2.0-only
/* How long is looked for results before who waits sleeps? The clock and the waits are a model. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/spin.h"

enum {
	US = 1000,
	MS = 1000 * 1000,
	LOOK_NS = 700, /* what a look takes, where nobody else wants the processor */
	FOREVER_MS = 10 * 1000,
};

#define BEGIN_NS UINT64_C(1000000000)

/* Who waits for results that come when the test says. */
struct worker {
	struct spin spin;
	uint32_t chunks;
	uint64_t now_ns, looked_ns; /* the clock; of it, in looking */
	uint64_t look_ns; /* how long a look takes */
};

static struct worker worker_new(struct spin spin)
{
	return (struct worker){ spin, 1, BEGIN_NS, 0, LOOK_NS };
}

/* A wait. Returns how long it was looked; the result comes after so long. */
static uint64_t wait_for(struct worker *w, uint64_t result_ns)
{
	const uint64_t began_ns = w->now_ns, due_ns = began_ns + result_ns;
	uint64_t looked_ns;

	while (w->now_ns < due_ns && spin_goes_on(&w->spin, w->chunks, w->now_ns))
		w->now_ns += w->look_ns;
	looked_ns = w->now_ns - began_ns;
	if (w->now_ns < due_ns)
		w->now_ns = due_ns;
	spin_end(&w->spin, w->now_ns);
	w->looked_ns += looked_ns;
	return looked_ns;
}

static uint64_t by_look(uint64_t ns) { return (ns + LOOK_NS - 1) / LOOK_NS * LOOK_NS; }

static void what_comes_soon_is_looked_for_until_it_is_there(void **state)
{
	struct worker w = worker_new(spin_auto());

	for (int i = 0; i < 1000; i++)
		assert_int_equal(wait_for(&w, 30 * US), by_look(30 * US));
}

static void what_takes_long_is_looked_for_no_longer_than_the_limit(void **state)
{
	struct worker w = worker_new(spin_auto());

	assert_int_equal(wait_for(&w, 10ULL * 1000 * MS), by_look(SPIN_AUTO_NS));
	w = worker_new(spin_fixed(10 * US));
	assert_int_equal(wait_for(&w, 10ULL * 1000 * MS), by_look(10 * US));
	assert_int_equal(wait_for(&w, 10ULL * 1000 * MS), by_look(10 * US));
}

static void timers_in_a_wait_are_no_reason_to_look_again(void **state)
{
	struct worker w = worker_new(spin_fixed(10 * US));

	while (spin_goes_on(&w.spin, 1, w.now_ns))
		w.now_ns += LOOK_NS;
	for (int i = 0; i < 100; i++) {
		w.now_ns += 3 * MS;
		assert_false(spin_goes_on(&w.spin, 1, w.now_ns));
	}
}

static void nobody_looks_while_no_call_runs(void **state)
{
	struct worker w = worker_new(spin_fixed(10 * US));

	assert_false(spin_goes_on(&w.spin, 0, w.now_ns));
	w.now_ns += 1000ULL * MS; /* which is no part of the wait for the call that comes now */
	assert_true(spin_goes_on(&w.spin, 1, w.now_ns));
}

static void who_is_never_to_look_never_looks(void **state)
{
	struct worker w = worker_new(spin_fixed(0));

	for (int i = 0; i < 100; i++)
		assert_int_equal(wait_for(&w, 1 * US), 0);
}

/* However long waits are: whoever computes beside a worker loses little. */
static void looking_in_vain_takes_a_twentieth_at_most(void **state)
{
	for (uint64_t result_ns = SPIN_AUTO_NS + LOOK_NS; result_ns < 100 * MS;
	     result_ns += result_ns / 7) {
		struct worker w = worker_new(spin_auto());

		while (w.now_ns < BEGIN_NS + FOREVER_MS * UINT64_C(1000000))
			wait_for(&w, result_ns);
		assert_true(w.looked_ns * 20 <= w.now_ns - BEGIN_NS);
	}
}

static void after_a_late_rank_small_calls_are_looked_for_soon(void **state)
{
	struct worker w = worker_new(spin_auto());

	wait_for(&w, 3000ULL * MS);
	w.now_ns += SPIN_VAIN_NS;
	assert_int_equal(wait_for(&w, 30 * US), by_look(30 * US));
}

static void calls_of_many_chunks_are_not_looked_for(void **state)
{
	struct worker w = worker_new(spin_auto());

	w.chunks = SPIN_CHUNKS_MAX;
	assert_int_not_equal(wait_for(&w, 30 * US), 0);
	w.chunks = SPIN_CHUNKS_MAX + 1;
	assert_int_equal(wait_for(&w, 30 * US), 0);
}

/* 12 chunks of the usual payload. */
static void calls_of_16_kib_are_looked_for(void **state)
{
	struct worker w = worker_new(spin_auto());

	w.chunks = 12;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(wait_for(&w, 60 * US), by_look(60 * US));
}

/* Somebody computes on the processor: who gives it away has it back so late. */
static void who_has_no_processor_of_its_own_sleeps(void **state)
{
	struct worker w = worker_new(spin_auto());
	unsigned int looks = 0;

	w.look_ns = 3 * MS;
	while (w.now_ns < BEGIN_NS + FOREVER_MS * UINT64_C(1000000))
		looks += wait_for(&w, 30 * US) > 0;
	/* Pauses of 4, 8, ... 512 ms, and then of a second. */
	assert_in_range(looks, 8, 8 + 1 + FOREVER_MS / 1000);
	assert_true(w.looked_ns * 100 <= w.now_ns - BEGIN_NS);
}

static void other_workers_that_give_way_soon_are_no_reason_to_sleep(void **state)
{
	struct worker w = worker_new(spin_auto());

	w.look_ns = 20 * US;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(wait_for(&w, 50 * US), 60 * US);
}

/* Somebody needs the processor in each 5 ms: most of the time is not lost to that. */
static void who_has_to_share_the_processor_mostly_sleeps(void **state)
{
	struct worker w = worker_new(spin_auto());
	uint64_t turn_ns = 0, away_ns = 0;

	while (w.now_ns < BEGIN_NS + FOREVER_MS * UINT64_C(1000000)) {
		bool others = w.now_ns - turn_ns > 5 * MS;

		w.look_ns = others ? 3 * MS : 10 * US;
		if (wait_for(&w, 30 * US) && others) {
			away_ns += 3 * MS;
			turn_ns = w.now_ns;
		}
	}
	assert_in_range(away_ns, 1, (w.now_ns - BEGIN_NS) / 50);
}

static void it_is_forgotten_when_the_processor_is_free_again(void **state)
{
	struct worker w = worker_new(spin_auto());
	uint64_t slept = 0;

	w.look_ns = 3 * MS;
	while (w.now_ns < BEGIN_NS + FOREVER_MS * UINT64_C(1000000))
		wait_for(&w, 30 * US);
	assert_int_equal(w.spin.pause_ns, SPIN_PAUSE_MAX_NS);
	w.look_ns = 10 * US;
	for (int i = 0; i < 1000000; i++)
		slept += wait_for(&w, 30 * US) == 0;
	assert_in_range(slept * 30 * US, 0,
			SPIN_PAUSE_MAX_NS + MS); /* the last pause, and no more */
	w.look_ns = 3 * MS;
	wait_for(&w, 30 * US);
	assert_int_equal(w.spin.pause_ns, SPIN_PAUSE_MIN_NS);
}

static void who_is_told_how_long_looks_so_long_whatever_happens(void **state)
{
	struct worker w = worker_new(spin_fixed(10 * US));

	w.chunks = 1000;
	w.look_ns = 3 * MS;
	for (int i = 0; i < 100; i++)
		assert_int_equal(wait_for(&w, 1000 * MS), 3 * MS);
}

static void the_option_says_and_else_the_variable(void **state)
{
	struct spin s;

	assert_int_equal(spin_option(TALLY_SPIN_AUTO, NULL, &s), 0);
	assert_true(s.learns && s.limit_ns == SPIN_AUTO_NS);
	assert_int_equal(spin_option(TALLY_SPIN_AUTO, "", &s), 0);
	assert_true(s.learns);
	assert_int_equal(spin_option(7, NULL, &s), 0);
	assert_true(!s.learns && s.limit_ns == 7 * US);
	assert_int_equal(spin_option(TALLY_SPIN_AUTO, "auto", &s), 0);
	assert_true(s.learns);
	assert_int_equal(spin_option(TALLY_SPIN_AUTO, "0", &s), 0);
	assert_true(!s.learns && !s.limit_ns);
	assert_int_equal(spin_option(TALLY_SPIN_AUTO, "1000000", &s), 0);
	assert_true(!s.learns && s.limit_ns == 1000 * MS);
	assert_int_equal(spin_option(TALLY_SPIN_NEVER, "7", &s), 0);
	assert_true(!s.learns && !s.limit_ns);
	assert_int_equal(spin_option(TALLY_SPIN_US_MAX, "none", &s), 0);
	assert_true(s.limit_ns == 1000 * MS);
}

static void what_is_no_time_is_refused_in_words(void **state)
{
	static const char *const wrong[] = { "-1", "1000001", "never", "5us", " 5", "1.5" };
	struct spin s = spin_fixed(3);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(spin_option(TALLY_SPIN_AUTO, wrong[i], &s), -EINVAL);
		assert_non_null(strstr(tally_error(), "$TALLY_SPIN: '"));
		assert_non_null(strstr(tally_error(), wrong[i]));
	}
	assert_int_equal(spin_option(TALLY_SPIN_NEVER - 1, NULL, &s), -EINVAL);
	assert_int_equal(spin_option(TALLY_SPIN_US_MAX + 1, NULL, &s), -EINVAL);
	assert_non_null(strstr(tally_error(), "spin_us: 1000001"));
	assert_int_equal(s.limit_ns, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_soon_is_looked_for_until_it_is_there),
		cmocka_unit_test(what_takes_long_is_looked_for_no_longer_than_the_limit),
		cmocka_unit_test(timers_in_a_wait_are_no_reason_to_look_again),
		cmocka_unit_test(nobody_looks_while_no_call_runs),
		cmocka_unit_test(who_is_never_to_look_never_looks),
		cmocka_unit_test(looking_in_vain_takes_a_twentieth_at_most),
		cmocka_unit_test(after_a_late_rank_small_calls_are_looked_for_soon),
		cmocka_unit_test(calls_of_many_chunks_are_not_looked_for),
		cmocka_unit_test(calls_of_16_kib_are_looked_for),
		cmocka_unit_test(who_has_no_processor_of_its_own_sleeps),
		cmocka_unit_test(other_workers_that_give_way_soon_are_no_reason_to_sleep),
		cmocka_unit_test(who_has_to_share_the_processor_mostly_sleeps),
		cmocka_unit_test(it_is_forgotten_when_the_processor_is_free_again),
		cmocka_unit_test(who_is_told_how_long_looks_so_long_whatever_happens),
		cmocka_unit_test(the_option_says_and_else_the_variable),
		cmocka_unit_test(what_is_no_time_is_refused_in_words),
	};

	return cmocka_run_group_tests_name("spin", tests, NULL, NULL);
}
