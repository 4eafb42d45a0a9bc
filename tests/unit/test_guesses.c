// SPDX-License-Identifier: GPL-2.0-only
/* Wrong tokens are counted, and whoever says many must wait, and nobody else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/guesses.h"
#include "common/address.h"

#define SECOND UINT64_C(1000000000)

static struct guesses g;
static uint64_t now;

static int setup(void **state)
{
	memset(&g, 0, sizeof(g));
	now = 1000 * SECOND;
	return 0;
}

static struct sockaddr_storage at(const char *text)
{
	struct sockaddr_storage a = { .ss_family = AF_UNIX };

	if (*text)
		assert_int_equal(address_parse(text, 40000, &a), 0);
	return a;
}

static uint64_t wait_s(const char *from, uid_t uid)
{
	const struct sockaddr_storage a = at(from);

	return (guesses_wait_ns(&g, &a, uid, now) + SECOND - 1) / SECOND;
}

static uint64_t guess(const char *from, uid_t uid)
{
	const struct sockaddr_storage a = at(from);

	return guesses_add(&g, &a, uid, now);
}

static bool is_one(const char *a, uid_t a_uid, const char *b, uid_t b_uid)
{
	const struct sockaddr_storage first = at(a), second = at(b);

	return guesses_is_one(&first, a_uid, &second, b_uid);
}

static void a_source_is_an_address_half_of_one_or_a_user(void **state)
{
	assert_true(is_one("10.0.0.1", 0, "10.0.0.1", 7));
	assert_false(is_one("10.0.0.1", 0, "10.0.0.2", 0));
	assert_true(is_one("fd77::1", 0, "fd77::2", 0));
	assert_false(is_one("fd77::1", 0, "fd77:0:0:1::1", 0));
	assert_true(is_one("", 7, "", 7));
	assert_false(is_one("", 7, "", 8));
	assert_false(is_one("0.0.0.7", 0, "", ntohl(7)));
}

static void ten_are_free_and_then_there_is_one_each_second(void **state)
{
	for (int i = 0; i < GUESSES_AT_ONCE; i++) {
		assert_int_equal(wait_s("10.0.0.1", 0), 0);
		guess("10.0.0.1", 0);
	}
	assert_int_equal(wait_s("10.0.0.1", 0), 1);
	for (int i = 0; i < 100; i++) {
		now += SECOND;
		assert_int_equal(wait_s("10.0.0.1", 0), 0);
		guess("10.0.0.1", 0);
		assert_int_equal(wait_s("10.0.0.1", 0), 1);
	}
	assert_int_equal(g.count, 110);
	now += GUESSES_AT_ONCE * SECOND;
	for (int i = 0; i < GUESSES_AT_ONCE; i++) {
		assert_int_equal(wait_s("10.0.0.1", 0), 0);
		guess("10.0.0.1", 0);
	}
	assert_int_equal(wait_s("10.0.0.1", 0), 1);
}

/* Those that were on the way already when the limit was reached. */
static void nobody_waits_for_ever(void **state)
{
	for (int i = 0; i < 8000; i++)
		guess("10.0.0.1", 0);
	assert_in_range(wait_s("10.0.0.1", 0), 40, GUESSES_WAIT_MAX_S);
	now += GUESSES_WAIT_MAX_S * SECOND;
	assert_int_equal(wait_s("10.0.0.1", 0), 0);
}

static void sources_do_not_wait_for_each_other(void **state)
{
	static const char *const others[] = { "10.0.0.2", "fd77:1:0:1::1", "::1", "" };

	for (int i = 0; i < 30; i++) {
		guess("10.0.0.1", 0);
		guess("fd77:1::1", 0);
		guess("", 1000);
	}
	assert_int_not_equal(wait_s("10.0.0.1", 0), 0);
	assert_int_not_equal(wait_s("fd77:1::77", 0), 0); /* the same network */
	assert_int_not_equal(wait_s("", 1000), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_int_equal(wait_s(others[i], 1001), 0);
}

/* With more sources than there is room for, the one whose time is over first gives way. */
static void the_worst_are_remembered_longest(void **state)
{
	char text[32];

	for (int i = 0; i < 30; i++)
		guess("10.0.0.1", 0);
	for (int i = 0; i < 4 * GUESSES_SOURCES; i++) {
		snprintf(text, sizeof(text), "10.1.%d.%d", i / 250, 1 + i % 250);
		guess(text, 0);
	}
	assert_int_not_equal(wait_s("10.0.0.1", 0), 0);
	assert_int_equal(g.count, 30 + 4 * GUESSES_SOURCES);
}

static void the_log_hears_of_all_but_seldom(void **state)
{
	assert_int_equal(guess("10.0.0.1", 0), 1);
	for (int i = 0; i < 500; i++)
		assert_int_equal(guess("10.0.0.1", 0), 0);
	now += GUESSES_LOG_INTERVAL_S * SECOND;
	assert_int_equal(guess("10.0.0.2", 0), 501);
	assert_int_equal(guess("10.0.0.2", 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_source_is_an_address_half_of_one_or_a_user),
		cmocka_unit_test_setup(ten_are_free_and_then_there_is_one_each_second, setup),
		cmocka_unit_test_setup(nobody_waits_for_ever, setup),
		cmocka_unit_test_setup(sources_do_not_wait_for_each_other, setup),
		cmocka_unit_test_setup(the_worst_are_remembered_longest, setup),
		cmocka_unit_test_setup(the_log_hears_of_all_but_seldom, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
