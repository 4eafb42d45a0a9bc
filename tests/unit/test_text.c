// SPDX-License-Identifier: GPL-2.0-only
/* Numbers that people write, and words for their errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "common/text.h"

static const struct thing {
	const char *name;
	int more;
} things[] = { { "slots", 1 }, { "service", 2 }, { "tenants", 3 } };

static void number(const char *text, uint64_t value)
{
	uint64_t n = 7;

	assert_true(text_number(text, true, UINT64_MAX, &n));
	assert_true(n == value);
}

static void no_number(const char *text, bool suffixes, uint64_t max)
{
	uint64_t n = 7;

	assert_false(text_number(text, suffixes, max, &n));
	assert_true(n == 7);
}

static void numbers_are_decimal_with_a_suffix_at_most(void **state)
{
	number("0", 0);
	number("007", 7);
	number("18446744073709551615", UINT64_MAX);
	number("3k", 3000);
	number("3M", 3000000);
	number("3G", 3000000000);
	no_number("", true, 9);
	no_number("k", true, 9);
	no_number("1kk", true, UINT64_MAX);
	no_number("1kM", true, UINT64_MAX);
	no_number("1K", true, UINT64_MAX);
	no_number("1k", false, UINT64_MAX);
	no_number(" 1", true, 9);
	no_number("1 ", true, 9);
	no_number("+1", true, 9);
	no_number("0x1", true, 9);
	no_number("1.5", true, 9);
}

static void numbers_end_where_they_may(void **state)
{
	uint64_t n;

	assert_true(text_number("10", false, 10, &n));
	no_number("11", false, 10);
	no_number("18446744073709551616", true, UINT64_MAX);
	no_number("18446744073709551620", true, UINT64_MAX);
	no_number("18446744073709552k", true, UINT64_MAX);
	number("18446744073709551k", 18446744073709551000ULL);
}

static void a_quote_is_printable_and_short(void **state)
{
	char quoted[TEXT_QUOTED_BYTES], long_text[100];

	assert_string_equal(text_quote("a\n\x01\xc3\xa9\x7f~", 7, quoted), "'a?????~'");
	assert_string_equal(text_quote("", 0, quoted), "''");
	memset(long_text, 'x', sizeof(long_text));
	for (size_t length = 0; length <= sizeof(long_text); length++) {
		text_quote(long_text, length, quoted);
		assert_true(strlen(quoted) < sizeof(quoted));
		assert_int_equal(strstr(quoted, "...'") != NULL, length > TEXT_QUOTED_BYTES - 6);
	}
}

static void names_are_listed_in_words(void **state)
{
	char list[TEXT_LIST_BYTES];

	assert_string_equal(text_list(things, 3, sizeof(*things), list),
			    "slots, service and tenants");
	assert_string_equal(text_list(things, 2, sizeof(*things), list), "slots and service");
	assert_string_equal(text_list(things, 1, sizeof(*things), list), "slots");
	assert_string_equal(text_list(things, 0, sizeof(*things), list), "");
}

static void a_list_that_is_too_long_is_cut(void **state)
{
	const char *many[100];
	char list[TEXT_LIST_BYTES];

	for (size_t i = 0; i < 100; i++)
		many[i] = "something";
	text_list(many, 100, sizeof(*many), list);
	assert_int_equal(strlen(list), TEXT_LIST_BYTES - 1);
}

static const char *nearest(const char *word)
{
	return text_nearest(things, 3, sizeof(*things), word);
}

static void the_nearest_name_is_found(void **state)
{
	assert_string_equal(nearest("slot"), "slots");
	assert_string_equal(nearest("slotss"), "slots");
	assert_string_equal(nearest("tenant"), "tenants");
	assert_string_equal(nearest("Tenants"), "tenants");
	assert_string_equal(nearest("tennats"), "tenants");
	assert_string_equal(nearest("services"), "service");
	assert_string_equal(nearest("slots"), "slots");
	assert_null(nearest("slt"));
	assert_null(nearest(""));
	assert_null(nearest("ports"));
	assert_null(nearest("0123456789012345678901234567890123456789"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_decimal_with_a_suffix_at_most),
		cmocka_unit_test(numbers_end_where_they_may),
		cmocka_unit_test(a_quote_is_printable_and_short),
		cmocka_unit_test(names_are_listed_in_words),
		cmocka_unit_test(a_list_that_is_too_long_is_cut),
		cmocka_unit_test(the_nearest_name_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
