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

static void tokens_are_equal_or_not(void **state)
{
	char a[TOKEN_BYTES], b[TOKEN_BYTES];

	assert_true(token_is_equal("5b1f", "5b1f"));
	assert_false(token_is_equal("5b1f5b1f", "5b1f"));
	assert_false(token_is_equal("5b1f", "5b1f5b1f"));
	assert_false(token_is_equal("", "5b1f"));
	assert_false(token_is_equal("5b1f", ""));
	assert_false(token_is_equal("", ""));
	for (size_t i = 0; i < 128; i++) {
		memset(a, 'a', 128);
		memset(b, 'a', 128);
		a[128] = b[128] = '\0';
		assert_true(token_is_equal(a, b));
		b[i] = 'b';
		assert_false(token_is_equal(a, b));
	}
}

/* Each letter that a token may have, in the place of another one: only itself is equal. */
static void one_letter_makes_another_token(void **state)
{
	static const char letters[] = "ABCXYZabcxyz0189_-";
	char a[] = "5b1f", b[] = "5b1f";

	for (const char *x = letters; *x; x++)
		for (const char *y = letters; *y; y++)
			for (int i = 0; i < 4; i++) {
				snprintf(a, sizeof(a), "5b1f");
				snprintf(b, sizeof(b), "5b1f");
				a[i] = *x;
				b[i] = *y;
				assert_int_equal(token_is_equal(a, b), x == y);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(job_names_and_tokens_have_their_letters_and_lengths),
		cmocka_unit_test(tokens_are_equal_or_not),
		cmocka_unit_test(one_letter_makes_another_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
