// SPDX-License-Identifier: GPL-2.0-only
/* What is said of figures of many seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/bench/spread.h"

static void is(struct spread s, double median, double mean, double low, double high)
{
	assert_float_equal(s.median, median, 1e-9);
	assert_float_equal(s.mean, mean, 1e-9);
	assert_float_equal(s.low, low, 1e-9);
	assert_float_equal(s.high, high, 1e-9);
}

static void a_median_has_as_many_above_as_below(void **state)
{
	double odd[] = { 9, 1, 2 }, even[] = { 8, 4, -1, 1 }, one[] = { 3 };

	is(spread_of(odd, 3), 2, 4, 1, 9);
	is(spread_of(even, 4), 2.5, 3, -1, 8);
	is(spread_of(one, 1), 3, 3, 3, 3);
}

static void less_is_in_percent_of_the_other(void **state)
{
	assert_float_equal(percent_less(3, 4), 25, 1e-9);
	assert_float_equal(percent_less(5, 4), -25, 1e-9);
	assert_float_equal(percent_less(4, 4), 0, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_median_has_as_many_above_as_below),
		cmocka_unit_test(less_is_in_percent_of_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
