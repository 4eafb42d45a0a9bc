// SPDX-License-Identifier: GPL-2.0-only
/* How many threads make progress with a job. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <tally/tally.h>

#include "client/threads.h"

static void the_program_says_it_or_the_environment(void **state)
{
	static const struct {
		uint16_t said;
		const char *variable;
		unsigned int wanted;
	} cases[] = {
		{ 0, NULL, 0 },	 { 0, "", 0 },	 { 0, "auto", 0 }, { 0, "1", 1 },
		{ 0, "16", 16 }, { 1, NULL, 1 }, { 16, "2", 16 },  { 2, "nonsense", 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned int wanted = 99;

		assert_int_equal(threads_option(cases[i].said, cases[i].variable, &wanted), 0);
		assert_int_equal(wanted, cases[i].wanted);
	}
}

static void what_is_no_number_of_threads_is_refused(void **state)
{
	static const char *const variables[] = { "0", "17", "-1", "2,3", "two", "1 " };
	unsigned int wanted = 99;

	assert_int_equal(threads_option(17, NULL, &wanted), -EINVAL);
	assert_non_null(strstr(tally_error(), "progress_threads: 17, allowed are 0 to 16"));
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		assert_int_equal(threads_option(0, variables[i], &wanted), -EINVAL);
		assert_non_null(strstr(tally_error(), variables[i]));
		assert_non_null(strstr(tally_error(), "$TALLY_PROGRESS_THREADS"));
	}
	assert_int_equal(wanted, 99);
}

static void there_are_as_many_as_roots_while_processors_last(void **state)
{
	for (unsigned int roots = 1; roots <= 16; roots++)
		for (unsigned int n = 1; n <= 16; n++) {
			const unsigned int lower = roots < n ? roots : n;

			assert_int_equal(threads_of(0, roots, n + 1),
					 lower); /* the program has one */
			assert_int_equal(threads_of(n, roots, 1), lower); /* as it was said */
		}
	assert_int_equal(threads_of(0, 3, 1), 1);
	assert_int_equal(threads_of(0, 3, 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_program_says_it_or_the_environment),
		cmocka_unit_test(what_is_no_number_of_threads_is_refused),
		cmocka_unit_test(there_are_as_many_as_roots_while_processors_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
