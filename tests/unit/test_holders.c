// SPDX-License-Identifier: GPL-2.0-only
/* Whose slots are in use, as one tenant may know it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "agent/core/holders.h"

enum {
	RED = 2,
	BLUE = 3,
};

static struct books books;

static int begin(void **state)
{
	struct tenant red = { .name = "red" }, blue = { .name = "blue" };
	struct why why;

	books_init(&books, 256);
	assert_int_equal(books_tenant_add(&books, &red, &why), RED);
	assert_int_equal(books_tenant_add(&books, &blue, &why), BLUE);
	return 0;
}

static int end(void **state)
{
	books_clear(&books);
	return 0;
}

static void runs(const char *name, uint16_t tenant, uint16_t window)
{
	struct job facts = {
		.id = books.jobs + 1, .tenant = tenant, .workers = 1, .run_window = window
	};
	struct why why;
	struct job *j;

	snprintf(facts.name, sizeof(facts.name), "%s", name);
	j = job_new(&facts);
	assert_non_null(j);
	assert_int_equal(books_job_restore(&books, j, &why), 0);
}

static void assert_says(unsigned int tenant, const char *words)
{
	char text[200];

	holders_print(&books, tenant, text, sizeof(text));
	assert_string_equal(text, words);
}

static void it_names_jobs_of_the_tenant_alone(void **state)
{
	assert_says(RED, "in use: none of 256");
	runs("beta", RED, 16);
	runs("alpha", RED, 32);
	runs("waits", RED, 0);
	assert_says(RED, "in use: 64 by alpha, 32 by beta, of 256");
	assert_says(BLUE, "in use: 96 by other tenants, of 256");
	runs("secret", BLUE, 8);
	assert_says(RED, "in use: 64 by alpha, 32 by beta, 16 by other tenants, of 256");
}

static void it_names_the_first_four(void **state)
{
	char name[8];

	for (int i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "j%d", i);
		runs(name, RED, 1);
	}
	assert_says(RED, "in use: 2 by j0, 2 by j1, 2 by j2, 2 by j3, "
			 "4 by 2 other jobs of tenant red, of 256");
}

static void assert_explains(const char *name, const char *words)
{
	struct why why;

	holders_explain(&books, books_job_find(&books, name), &why);
	assert_string_equal(why.text, words);
}

static void it_explains_runs_that_have_none(void **state)
{
	runs("alpha", RED, 32);
	runs("waits", RED, 0);
	runs("slow", RED, 64);
	books_job_find(&books, "slow")->window = 128;
	books_job_find(&books, "slow")->spilled = true;
	assert_explains("alpha", "");
	assert_explains("waits", "");
	assert_explains("slow", "no slots of its own: it wants 256, and tenant red has a quota of "
				"0; in use: 64 by alpha, of 256");
}

static void a_text_that_is_too_long_is_cut(void **state)
{
	runs("alpha", RED, 32);
	for (size_t size = 1; size < 40; size++) {
		char text[40], whole[40];

		memset(text, 'x', sizeof(text));
		holders_print(&books, RED, whole, sizeof(whole));
		holders_print(&books, RED, text, size);
		assert_int_equal(strlen(text), size - 1 < strlen(whole) ? size - 1 : strlen(whole));
		assert_memory_equal(text, whole, strlen(text));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_names_jobs_of_the_tenant_alone, begin, end),
		cmocka_unit_test_setup_teardown(it_names_the_first_four, begin, end),
		cmocka_unit_test_setup_teardown(it_explains_runs_that_have_none, begin, end),
		cmocka_unit_test_setup_teardown(a_text_that_is_too_long_is_cut, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
