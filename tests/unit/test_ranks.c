// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sets of ranks as text: what is taken, what is refused, and that what is printed is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/ranks.h"

static struct tally_set set_of(const char *ranks)
{
	struct tally_set s;

	assert_int_equal(ranks_parse(ranks, &s), 0);
	return s;
}

static void assert_ranks(const struct tally_set *s, const char *ranks)
{
	char text[RANKS_BYTES];

	ranks_print(s, text, sizeof(text));
	assert_string_equal(text, ranks);
}

static void ranks_are_numbers_and_ranges(void **state)
{
	static const char *const same[] = { "0", "255", "0-255", "0-1,5", "63-64", "0,2,4,6-127" };
	static const char *const wrong[] = { "",      "-",   "1-",    "-1",  "256",
					     "0-256", "2-1", "1,",    ",1",  "1 ,2",
					     "1,,2",  "a",   "1-2-3", "0x1", "99999999999" };
	struct tally_set s, before;

	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		s = set_of(same[i]);
		assert_ranks(&s, same[i]);
	}
	s = set_of("3,1-2,2,7");
	assert_ranks(&s, "1-3,7");
	assert_int_equal(ranks_count(&s), 4);
	before = s;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(ranks_parse(wrong[i], &s), -EINVAL);
	assert_memory_equal(&s, &before, sizeof(s));
}

static void the_longest_text_of_ranks_fits(void **state)
{
	char text[RANKS_BYTES], small[6];
	struct tally_set s = { { 0 } }, again;

	for (unsigned int rank = 0; rank < TALLY_WORKERS_MAX; rank += 2)
		tally_set_add(&s, rank);
	ranks_print(&s, text, sizeof(text));
	again = set_of(text);
	assert_true(tally_set_is_equal(&s, &again));
	ranks_print(&s, small, sizeof(small));
	assert_string_equal(small, "0,2,4");
}

static void every_set_of_a_few_ranks_comes_back(void **state)
{
	for (unsigned int bits = 1; bits < 1u << 12; bits++) {
		struct tally_set s = { { 0 } }, again;
		char text[RANKS_BYTES];

		for (unsigned int i = 0; i < 12; i++)
			if (bits & 1u << i) /* across the end of a word, and the last ranks */
				tally_set_add(&s, i < 6 ? 61 + i : 244 + i);
		ranks_print(&s, text, sizeof(text));
		again = set_of(text);
		assert_true(tally_set_is_equal(&s, &again));
		assert_int_equal(ranks_count(&s), __builtin_popcount(bits));
	}
}

static void no_rank_is_no_text(void **state)
{
	struct tally_set none = { { 0 } };
	char text[4] = "xxx";

	ranks_print(&none, text, sizeof(text));
	assert_string_equal(text, "");
	assert_int_equal(ranks_count(&none), 0);
	ranks_print(&none, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_are_numbers_and_ranges),
		cmocka_unit_test(the_longest_text_of_ranks_fits),
		cmocka_unit_test(every_set_of_a_few_ranks_comes_back),
		cmocka_unit_test(no_rank_is_no_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
