// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Addresses and endpoints as text, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include "common/address.h"

static void refused(const char *text, uint16_t port)
{
	struct sockaddr_storage a, before;

	memset(&a, 0xee, sizeof(a));
	before = a;
	assert_int_equal(address_parse(text, port, &a), -EINVAL);
	assert_memory_equal(&a, &before, sizeof(a));
}

static void an_address_gets_the_port_that_is_asked_for(void **state)
{
	struct sockaddr_storage a;
	const struct sockaddr_in *ip4 = (const void *)&a;
	const struct sockaddr_in6 *ip6 = (const void *)&a;

	assert_int_equal(address_parse("10.77.0.1", 31249, &a), 0);
	assert_int_equal(a.ss_family, AF_INET);
	assert_int_equal(ip4->sin_port, htons(31249)); /* network order inside */
	assert_int_equal(endpoint_port(&a), 31249); /* host order outside */
	assert_int_equal(ntohl(ip4->sin_addr.s_addr), 0x0a4d0001);
	assert_int_equal(address_parse("fd77::1", 7, &a), 0);
	assert_int_equal(a.ss_family, AF_INET6);
	assert_int_equal(ip6->sin6_port, htons(7));
	refused("10.77.0.1:31249", 31249);
	refused("[fd77::1]", 31249);
}

static void an_endpoint_says_its_port(void **state)
{
	static const char *const right[] = { "10.77.1.1:40000", "[fd77:1::1]:1", "10.0.0.1:65535" };
	static const char *const wrong[] = {
		"",	      "10.77.1.1",     "10.77.1.1:",   "10.77.1.1:0",	"10.77.1.1:65536",
		":1",	      "fd77::1:1",     "[fd77::1]",    "[fd77::1]1",	"fd77::1]:1",
		"[fd77::1:1", "[10.77.1.1]:1", "10.77.1.1:+1", "10.77.1.1: 1",	" 10.77.1.1:1",
		"host:1",     "[:1",	       "]:1",	       "[fe80::1%lo]:1"
	};
	struct sockaddr_storage a;
	char text[ADDRESS_BYTES];

	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
		assert_int_equal(address_parse(right[i], 0, &a), 0);
		endpoint_print(&a, text, sizeof(text));
		assert_string_equal(text, right[i]);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		refused(wrong[i], 0);
}

static void an_address_is_one_machines(void **state)
{
	static const char *const wrong[] = { "0.0.0.0", "255.255.255.255", "224.0.0.1", "239.1.2.3",
					     "::",	"ff02::1" };
	struct sockaddr_storage a;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		refused(wrong[i], 1);
	assert_int_equal(address_parse("223.255.255.255", 1, &a), 0);
	assert_int_equal(address_parse("240.0.0.1", 1, &a), 0);
	assert_int_equal(address_parse("::1", 1, &a), 0);
}

/* Not a part of something that is longer. */
static void a_text_that_is_too_long_is_no_address(void **state)
{
	char text[2 * ADDRESS_BYTES];

	snprintf(text, sizeof(text), "10.77.1.1:%0*d", ADDRESS_BYTES - 11, 1);
	assert_int_equal(strlen(text), ADDRESS_BYTES - 1);
	assert_int_equal(address_parse(text, 0, &(struct sockaddr_storage){ 0 }), 0);
	snprintf(text, sizeof(text), "10.77.1.1:%0*d", ADDRESS_BYTES - 10, 1);
	refused(text, 0);
}

static void one_may_listen_at_any_address(void **state)
{
	struct sockaddr_storage a;
	char text[ADDRESS_BYTES];
	static const char *const right[] = { "0.0.0.0:1", "[::]:9464", "127.0.0.1:9464" };
	static const char *const wrong[] = { "0.0.0.0", "0.0.0.0:0", "[::]:65536", "9464",
					     "224.0.0.1:1" };

	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
		assert_int_equal(address_listen_parse(right[i], &a), 0);
		endpoint_print(&a, text, sizeof(text));
		assert_string_equal(text, right[i]);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(address_listen_parse(wrong[i], &a), -EINVAL);
}

static void endpoints_are_equal_in_family_address_and_port(void **state)
{
	static const char *const texts[] = { "10.0.0.1:1",	   "10.0.0.1:2",  "10.0.0.2:1",
					     "[fd77::1]:1",	   "[fd77::1]:2", "[fd77::2]:1",
					     "[::ffff:10.0.0.1]:1" };
	struct sockaddr_storage a, b;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++) {
			assert_int_equal(address_parse(texts[i], 0, &a), 0);
			assert_int_equal(address_parse(texts[k], 0, &b), 0);
			memset((char *)&b + sizeof(struct sockaddr_in6), 0xee,
			       sizeof(b) - sizeof(struct sockaddr_in6));
			assert_int_equal(endpoint_is_equal(&a, &b), i == k);
		}
}

static void an_address_of_the_link_is_one_of_a_link_alone(void **state)
{
	static const struct {
		const char *text;
		bool is_link_local;
	} rows[] = {
		{ "169.254.0.9", true }, { "169.255.0.1", false }, { "10.169.254.1", false },
		{ "fe80::1", true },	 { "febf::1", true },	   { "fec0::1", false },
		{ "fd77::fe80", false },
	};
	struct sockaddr_storage a;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(address_parse(rows[i].text, 1, &a), 0);
		assert_int_equal(address_is_link_local(&a), rows[i].is_link_local);
	}
}

static void a_port_can_be_changed(void **state)
{
	static const char *const texts[] = { "10.0.0.1", "fd77::1" };
	struct sockaddr_storage a, b;

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(address_parse(texts[i], 258, &a), 0);
		assert_int_equal(address_parse(texts[i], 65534, &b), 0);
		endpoint_port_set(&a, 65534);
		assert_int_equal(endpoint_port(&a), 65534);
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

static void what_is_no_address_is_printed_as_such(void **state)
{
	struct sockaddr_storage none = { 0 };
	char text[ADDRESS_BYTES], small[6];

	address_print(&none, text, sizeof(text));
	assert_string_equal(text, "?");
	assert_int_equal(address_parse("10.77.0.1", 1, &none), 0);
	address_print(&none, small, sizeof(small));
	assert_string_equal(small, "10.77");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_gets_the_port_that_is_asked_for),
		cmocka_unit_test(an_endpoint_says_its_port),
		cmocka_unit_test(an_address_is_one_machines),
		cmocka_unit_test(a_text_that_is_too_long_is_no_address),
		cmocka_unit_test(one_may_listen_at_any_address),
		cmocka_unit_test(endpoints_are_equal_in_family_address_and_port),
		cmocka_unit_test(an_address_of_the_link_is_one_of_a_link_alone),
		cmocka_unit_test(a_port_can_be_changed),
		cmocka_unit_test(what_is_no_address_is_printed_as_such),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
