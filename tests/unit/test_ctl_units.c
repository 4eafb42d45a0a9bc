// SPDX-License-Identifier: GPL-2.0-only
/* Numbers as people write and read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/units.h"

static void whole_numbers_and_suffixes_are_understood(void **state)
{
	static const struct {
		const char *text;
		uint64_t number;
	} cases[] = {
		{ "0", 0 },
		{ "7", 7 },
		{ "200k", 200000 },
		{ "200K", 200000 },
		{ "1.5M", 1500000 },
		{ "1.25G", 1250000000 },
		{ "0.001k", 1 },
		{ "1.000", 1 },
		{ "10.0k", 10000 },
		{ "0.5k", 500 },
		{ "007", 7 },
		{ "1.0000000000G", 1000000000 },
		{ "18446744073709551615", UINT64_MAX },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t n = 99;

		if (units_parse(cases[i].text, &n) != 0 || n != cases[i].number)
			fail_msg("'%s' became %" PRIu64, cases[i].text, n);
	}
}

static void what_is_no_whole_number_is_refused(void **state)
{
	static const char *const invalid[] = { "",    "k",	 ".5",	  "1.",	 "1.5",	 "-1",
					       "+1",  " 1",	 "1 ",	  "1kk", "1T",	 "0x10",
					       "1e6", "1.0005k", "1,000", "1k5", "1..5M" };
	static const char *const too_big[] = { "18446744073709551616", "18446744073709552k",
					       "99999999999G", "1.0000000000000000000000" };
	uint64_t n = 99;

	for (size_t i = 0; i < sizeof(invalid) / sizeof(*invalid); i++)
		if (units_parse(invalid[i], &n) != -EINVAL)
			fail_msg("'%s' was taken", invalid[i]);
	for (size_t i = 0; i < sizeof(too_big) / sizeof(*too_big); i++)
		if (units_parse(too_big[i], &n) != -ERANGE)
			fail_msg("'%s' was taken", too_big[i]);
	assert_int_equal(n, 99);
}

static void thousands_are_grouped(void **state)
{
	char text[UNITS_BYTES];

	units_count(0, text, sizeof(text));
	assert_string_equal(text, "0");
	units_count(999, text, sizeof(text));
	assert_string_equal(text, "999");
	units_count(1000, text, sizeof(text));
	assert_string_equal(text, "1,000");
	units_count(UINT64_MAX, text, sizeof(text));
	assert_string_equal(text, "18,446,744,073,709,551,615");
	units_count(1234567, text, 4);
	assert_string_equal(text, "1,2");
}

static void assert_text(void (*print)(double n, char *text, size_t size), double n,
			const char *expected)
{
	char text[UNITS_BYTES];

	print(n, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void rates_have_two_or_three_digits_and_a_unit(void **state)
{
	assert_text(units_rate, 0, "0/s");
	assert_text(units_rate, 0.7, "0.7/s");
	assert_text(units_rate, 1, "1/s");
	assert_text(units_rate, 2.5, "2.5/s");
	assert_text(units_rate, 999, "999/s");
	assert_text(units_rate, 999.6, "1.0 k/s");
	assert_text(units_rate, 340000, "340 k/s");
	assert_text(units_rate, 9949, "9.9 k/s");
	assert_text(units_rate, 9951, "10 k/s");
	assert_text(units_rate, 1e30, "1000000000000 E/s");
	assert_text(units_bits, 0, "0 bit/s");
	assert_text(units_bits, 150e6, "1.2 Gbit/s");
	assert_text(units_bits, 125, "1.0 kbit/s");
	assert_text(units_bytes, 12000, "12 kB");
	assert_text(units_percent, 0, "0 %");
	assert_text(units_percent, 0.01, "<0.1 %");
	assert_text(units_percent, 0.1, "0.1 %");
	assert_text(units_percent, 99.9, "100 %");
}

static void durations_have_their_two_biggest_units(void **state)
{
	static const struct {
		uint64_t seconds;
		const char *text;
	} cases[] = { { 0, "0 s" },	     { 59, "59 s" },
		      { 60, "1 min 0 s" },   { 3599, "59 min 59 s" },
		      { 3600, "1 h 0 min" }, { 86399, "23 h 59 min" },
		      { 273900, "3 d 4 h" } };
	char text[UNITS_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		units_duration(cases[i].seconds, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

/* What is printed for any number is read back as nearly that, and is never long. */
static void every_size_of_number_keeps_its_size(void **state)
{
	double n = 1;

	for (int i = 0; i < 4000; i++, n *= 1.01) {
		char text[UNITS_BYTES], *end;
		double back;

		units_rate(n, text, sizeof(text));
		back = strtod(text, &end);
		for (const char *prefix = " kMGTPE"; *end == ' ' && *prefix != end[1]; prefix++)
			back *= 1000;
		assert_true(strlen(text) <= 7);
		if (back < n * 0.94 || back > n * 1.06)
			fail_msg("%g became '%s'", n, text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers_and_suffixes_are_understood),
		cmocka_unit_test(what_is_no_whole_number_is_refused),
		cmocka_unit_test(thousands_are_grouped),
		cmocka_unit_test(rates_have_two_or_three_digits_and_a_unit),
		cmocka_unit_test(durations_have_their_two_biggest_units),
		cmocka_unit_test(every_size_of_number_keeps_its_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
