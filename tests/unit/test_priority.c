// SPDX-License-Identifier: GPL-2.0-only
/* Priorities of calls: client/priority.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/priority.h"

enum {
	SECOND = 1000000000,
	CALLS = 200
};

/* A job whose calls take so much of each second. */
static struct priority_meter measured(double share)
{
	struct priority_meter m = { 0 };

	for (uint64_t i = 1; i <= CALLS; i++)
		priority_measure(&m, i * SECOND, i * share * SECOND);
	return m;
}

static uint8_t of(double share, struct tally_hints hints)
{
	struct priority_meter m = measured(share);

	return priority_of(&m, &hints);
}

static const struct tally_hints none;

/* P = 1 * 2^-10 * 3/4, which is 2^18.58 times 2^-29. */
static void without_a_word_it_is_the_middle(void **state)
{
	struct priority_meter new = { 0 };

	assert_int_equal(priority_of(&new, &none), 149);
	assert_int_equal(of(0.5, none), 149);
}

static void twice_the_ratio_is_eight_more(void **state)
{
	assert_int_equal(of(2. / 3, none), 149 + 8);
	assert_int_equal(of(1. / 3, none), 149 - 8);
	assert_int_equal(of(8. / 9, none), 149 + 24);
}

static void a_ratio_beyond_its_range_is_at_its_end(void **state)
{
	assert_int_equal(of(1, none), 149 + 64);
	assert_int_equal(of(0, none), 149 - 64);
	assert_int_equal(of(1. / 257, none), 149 - 64);
}

static void who_ends_soon_comes_first(void **state)
{
	assert_int_equal(of(0.5, (struct tally_hints){ .remaining_s = 1 << 10 }), 149);
	assert_int_equal(of(0.5, (struct tally_hints){ .remaining_s = 1 << 9 }), 149 + 8);
	assert_int_equal(of(0.5, (struct tally_hints){ .remaining_s = 1 }), 149 + 80);
	assert_int_equal(of(0.5, (struct tally_hints){ .remaining_s = 1 << 20 }), 149 - 80);
	assert_int_equal(of(0.5, (struct tally_hints){ .remaining_s = UINT32_MAX }), 149 - 80);
}

static void front_layers_come_first(void **state)
{
	uint8_t before = UINT8_MAX;

	assert_int_equal(of(0.5, (struct tally_hints){ .layer = 0, .layers = 1 }), 152);
	assert_int_equal(of(0.5, (struct tally_hints){ .layer = 0, .layers = 100 }), 152);
	assert_int_equal(of(0.5, (struct tally_hints){ .layer = 99, .layers = 100 }), 152 - 8);
	for (uint16_t layer = 0; layer < 5; layer++) {
		uint8_t now = of(0.5, (struct tally_hints){ .layer = layer, .layers = 5 });

		assert_true(now < before);
		before = now;
	}
}

static void all_ends_are_within_a_byte(void **state)
{
	assert_int_equal(of(1, (struct tally_hints){ .layers = 1, .remaining_s = 1 }), 255);
	assert_int_equal(
		of(0, (struct tally_hints){ .layer = 1, .layers = 2, .remaining_s = UINT32_MAX }),
		1);
}

/* Of about eight calls: what was long ago is forgotten. */
static void it_follows_a_job_that_changes(void **state)
{
	struct priority_meter m = measured(0.9);
	const uint64_t busy_ns = m.busy_ns;

	for (uint64_t i = 1; i <= 50; i++)
		priority_measure(&m, (CALLS + i) * SECOND, busy_ns + i * SECOND / 10);
	assert_in_range(priority_of(&m, &none), of(0.1, none), of(0.1, none) + 1);
}

/* Calls that were started together take no time between them; calls that run have not counted. */
static void no_time_and_late_time_are_no_error(void **state)
{
	struct priority_meter m = { 0 };

	priority_measure(&m, SECOND, 0);
	priority_measure(&m, SECOND, 0);
	assert_int_equal(priority_of(&m, &none), 149);
	priority_measure(&m, SECOND + 1, 100ull * SECOND);
	assert_int_equal(priority_of(&m, &none), 149 + 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_word_it_is_the_middle),
		cmocka_unit_test(twice_the_ratio_is_eight_more),
		cmocka_unit_test(a_ratio_beyond_its_range_is_at_its_end),
		cmocka_unit_test(who_ends_soon_comes_first),
		cmocka_unit_test(front_layers_come_first),
		cmocka_unit_test(all_ends_are_within_a_byte),
		cmocka_unit_test(it_follows_a_job_that_changes),
		cmocka_unit_test(no_time_and_late_time_are_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
