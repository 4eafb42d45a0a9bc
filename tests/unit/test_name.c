// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names and tokens: their letters, their lengths, and when two tokens are equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/name.h"

static void job_names_and_tokens_have_their_letters_and_lengths(void **state)
{
	char longest[200];

	memset(longest, 'a', sizeof(longest));
	longest[129] = '\0';
	assert_false(token_is_valid(longest));
	longest[128] = '\0';
	assert_true(token_is_valid(longest));
	longest[64] = '\0';
	assert_false(name_is_valid(longest));
	longest[63] = '\0';
	assert_true(name_is_valid(longest));
	assert_false(token_is_valid(""));
	assert_false(name_is_valid(""));
	for (int c = 1; c < 256; c++) {
		char text[] = { 'a', (char)c, '\0' };
		bool low = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		bool sign = c == '-' || c == '_';

		assert_int_equal(name_is_valid(text), low || sign || c == '.');
		assert_int_equal(name_is_valid(text + 1), low);
		assert_int_equal(token_is_valid(text), low || sign || (c >= 'A' && c <= 'Z'));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(job_names_and_tokens_have_their_letters_and_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
