// SPDX-License-Identifier: GPL-2.0-only
/* Names of tenants and ports, and ingress points as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "agent/core/tenant.h"
#include "common/address.h"
#include "common/name.h"

#define NAME_63 "a12345678901234567890123456789012345678901234567890123456789012"

static struct tenant_point point;
static struct why why;

static void taken(const char *text)
{
	memset(&point, 0xee, sizeof(point));
	assert_int_equal(tenant_point_parse(text, &point, &why), 0);
}

static void refused(const char *text, const char *reason)
{
	struct tenant_point untouched;

	memset(&untouched, 0xee, sizeof(untouched));
	memset(&point, 0xee, sizeof(point));
	assert_int_equal(tenant_point_parse(text, &point, &why), -EINVAL);
	assert_string_equal(why.text, reason);
	assert_memory_equal(&point, &untouched, sizeof(point));
}

static void prints(const char *text, const char *printed)
{
	char buffer[TENANT_POINT_BYTES];

	taken(text);
	tenant_point_print(&point, buffer, sizeof(buffer));
	assert_string_equal(buffer, printed);
}

static void a_name_begins_with_a_letter_or_digit(void **state)
{
	char name[] = "?a";

	for (int c = 1; c < 256; c++) {
		bool first = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		bool later = first || c == '.' || c == '_' || c == '-';

		name[0] = (char)c;
		name[1] = '\0';
		assert_int_equal(name_is_valid(name), first);
		name[0] = 'a';
		name[1] = (char)c;
		assert_int_equal(name_is_valid(name), later);
	}
}

static void a_name_has_1_to_63_bytes(void **state)
{
	assert_false(name_is_valid(""));
	assert_true(name_is_valid(NAME_63));
	assert_false(name_is_valid(NAME_63 "4"));
}

static void a_port_has_a_name_that_the_kernel_takes(void **state)
{
	assert_true(tenant_port_is_valid("eth1.5@x#"));
	assert_true(tenant_port_is_valid("a23456789012345"));
	assert_false(tenant_port_is_valid("a234567890123456"));
	assert_false(tenant_port_is_valid(""));
	assert_false(tenant_port_is_valid("."));
	assert_false(tenant_port_is_valid(".."));
	assert_true(tenant_port_is_valid("..."));
	assert_false(tenant_port_is_valid("a/b"));
	assert_false(tenant_port_is_valid("a:b"));
	assert_false(tenant_port_is_valid("a b"));
	assert_false(tenant_port_is_valid("a\xc3\xa9"));
}

static void a_port_alone_takes_any_vlan_and_source(void **state)
{
	taken("eth1");
	assert_string_equal(point.port, "eth1");
	assert_int_equal(point.vlan, TENANT_VLAN_ANY);
	assert_int_equal(point.source.ss_family, AF_UNSPEC);
	assert_int_equal(point.source_bits, 0);
}

static void a_source_is_in_network_order_and_zero_behind(void **state)
{
	const struct sockaddr_in6 *ip6 = (const void *)&point.source;
	const struct sockaddr_in *ip4 = (const void *)&point.source;

	taken("eth1 vlan 4094 source 10.77.0.0/16");
	assert_int_equal(point.vlan, 4094);
	assert_int_equal(ip4->sin_family, AF_INET);
	assert_int_equal(ip4->sin_port, 0);
	assert_int_equal(ntohl(ip4->sin_addr.s_addr), 0x0a4d0000);
	assert_int_equal(point.source_bits, 16);
	taken("eth1 source fd77::/64");
	assert_int_equal(ip6->sin6_family, AF_INET6);
	assert_int_equal(ip6->sin6_addr.s6_addr[0], 0xfd);
	assert_int_equal(point.source_bits, 64);
}

static void what_is_printed_is_taken_back(void **state)
{
	prints("eth1", "eth1");
	prints("  eth1\tvlan  0 ", "eth1 vlan 0");
	prints("eth1 source fd77:0::/64 vlan 5", "eth1 vlan 5 source fd77::/64");
	prints("vlan source 0.0.0.0/0", "vlan source 0.0.0.0/0");
	prints("eth1 source 10.0.0.1", "eth1 source 10.0.0.1/32");
	prints("eth1 source ::1", "eth1 source ::1/128");
	prints("eth1 source ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128 vlan 4094",
	       "eth1 vlan 4094 source ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128");
}

static void bits_behind_the_prefix_name_the_right_one(void **state)
{
	refused("eth1 source 10.77.1.5/24",
		"source '10.77.1.5/24': has host bits set; did you mean 10.77.1.0/24?");
	refused("eth1 source 128.0.0.0/0",
		"source '128.0.0.0/0': has host bits set; did you mean 0.0.0.0/0?");
	refused("eth1 source fd77::1/127",
		"source 'fd77::1/127': has host bits set; did you mean fd77::/127?");
}

/* All addresses with one bit set, with all prefixes. */
static void a_bit_is_allowed_exactly_inside_the_prefix(void **state)
{
	char text[64], address[INET_ADDRSTRLEN];

	for (unsigned int bit = 0; bit < 32; bit++)
		for (unsigned int bits = 0; bits <= 32; bits++) {
			struct in_addr a = { htonl(1U << (31 - bit)) };

			inet_ntop(AF_INET, &a, address, sizeof(address));
			snprintf(text, sizeof(text), "eth1 source %s/%u", address, bits);
			assert_int_equal(tenant_point_parse(text, &point, &why),
					 bit < bits ? 0 : -EINVAL);
		}
}

#define FORM ": PORT [vlan N] [source ADDRESS/BITS], such as eth1 vlan 5 source 10.77.1.0/24"

static void the_form_is_kept(void **state)
{
	refused("", "''" FORM);
	refused("eth1 vlan", "'eth1 vlan'" FORM);
	refused("eth1 vlan 5 vlan 6", "'eth1 vlan 5 vlan 6'" FORM);
	refused("eth1 source ::1 source ::1", "'eth1 source ::1 source ::1'" FORM);
	refused("eth1 vlans 5", "'eth1 vlans 5'" FORM);
	refused("eth1 vlan 5 source ::1 more", "'eth1 vlan 5 source ::1 more'" FORM);
	refused("eth1 vlan 5 source ::1 vlan 6", "'eth1 vlan 5 source ::1 vlan 6'" FORM);
	refused("et/h1", "port 'et/h1': the name of an interface, of at most 15 bytes");
}

static void numbers_have_their_ranges(void **state)
{
	refused("eth1 vlan 4095", "vlan '4095': a number from 0 (untagged) to 4094");
	refused("eth1 vlan -1", "vlan '-1': a number from 0 (untagged) to 4094");
	refused("eth1 vlan 5k", "vlan '5k': a number from 0 (untagged) to 4094");
	refused("eth1 source 10.0.0.0/33",
		"source '10.0.0.0/33': after / a prefix length from 0 to 32");
	refused("eth1 source ::/129", "source '::/129': after / a prefix length from 0 to 128");
	refused("eth1 source ::/", "source '::/': after / a prefix length from 0 to 128");
	refused("eth1 source 10.0.0/24",
		"source '10.0.0/24': an address and prefix, such as 10.77.1.0/24 or fd77:1::/64");
	refused("eth1 source /24",
		"source '/24': an address and prefix, such as 10.77.1.0/24 or fd77:1::/64");
}

static void a_long_text_is_refused(void **state)
{
	char text[2 * TENANT_POINT_BYTES];

	memset(text, ' ', sizeof(text));
	memcpy(text, "eth1", 4);
	text[TENANT_POINT_BYTES] = '\0';
	assert_int_equal(tenant_point_parse(text, &point, &why), -EINVAL);
	text[TENANT_POINT_BYTES - 1] = '\0';
	assert_int_equal(tenant_point_parse(text, &point, &why), 0);
}

static const struct {
	const char *point[2], *port, *from;
	bool may;
} comers[] = {
	{ { NULL }, "eth9", "10.0.0.1", true },
	{ { "eth1" }, "eth1", "10.0.0.1", true },
	{ { "eth1" }, "eth2", "10.0.0.1", false },
	{ { "eth1" }, "", "10.0.0.1", true },
	{ { "eth1", "eth2" }, "eth2", "fd77::1", true },
	{ { "eth1 vlan 0" }, "eth1", "10.0.0.1", true },
	{ { "eth1 vlan 5" }, "eth1", "10.0.0.1", false },
	{ { "eth1 vlan 5" }, "", "10.0.0.1", true },
	{ { "eth1 source 10.0.0.0/25" }, "eth1", "10.0.0.127", true },
	{ { "eth1 source 10.0.0.0/25" }, "eth1", "10.0.0.128", false },
	{ { "eth1 source 10.0.0.0/25" }, "", "10.0.0.128", false },
	{ { "eth1 source 10.0.0.0/25", "eth2" }, "eth1", "10.0.0.128", false },
	{ { "eth1 source 10.0.0.0/25", "eth2" }, "eth2", "10.0.0.128", true },
	{ { "eth1 source 10.0.0.0/25", "eth2" }, "", "10.0.0.128", true },
	{ { "eth1 source fd77::/63" }, "eth1", "fd77:0:0:1::1", true },
	{ { "eth1 source fd77::/63" }, "eth1", "fd77:0:0:2::1", false },
	{ { "eth1 source ::/0" }, "eth1", "10.0.0.1", false },
	{ { "eth1 source 0.0.0.0/0" }, "eth1", "fd77::1", false },
};

static void who_may_come_in_is_known_of_all_or_of_the_source_alone(void **state)
{
	for (size_t i = 0; i < sizeof(comers) / sizeof(*comers); i++) {
		struct sockaddr_storage from;
		struct tenant t = { .name = "red" };

		for (int k = 0; k < 2 && comers[i].point[k]; k++)
			assert_int_equal(
				tenant_point_parse(comers[i].point[k], &t.point[t.points++], &why),
				0);
		assert_int_equal(address_parse(comers[i].from, 40000, &from), 0);
		if (tenant_may_come(&t, comers[i].port, &from) != comers[i].may)
			fail_msg("%zu: %s at %s", i, comers[i].from, comers[i].port);
	}
}

static void points_are_printed_as_far_as_there_is_room(void **state)
{
	struct tenant t = { .name = "red", .points = 2 };
	char text[32];

	assert_int_equal(tenant_point_parse("eth1 vlan 5", &t.point[0], &why), 0);
	assert_int_equal(tenant_point_parse("eth2 source ::1", &t.point[1], &why), 0);
	tenant_points_print(&t, text, sizeof(text));
	assert_string_equal(text, "eth1 vlan 5; eth2 source ::1/12");
	for (size_t size = 1; size < sizeof(text); size++) {
		tenant_points_print(&t, text, size);
		assert_int_equal(strlen(text), size - 1);
	}
	t.points = 0;
	tenant_points_print(&t, text, sizeof(text));
	assert_string_equal(text, "");
}

static void a_place_is_a_point_at_a_node(void **state)
{
	static const char *const wrong[] = {
		"eth1", "/eth1", "N0/eth1", "n0/", "n0/eth1 vlan", "n0//eth1", "n0 /eth1",
	};
	char text[TENANT_PLACE_BYTES];
	struct tenant_place place;

	assert_int_equal(tenant_place_parse(" n0/eth1  vlan 5 source 10.0.0.0/8", &place, &why), 0);
	assert_string_equal(place.node, "n0");
	assert_string_equal(place.point.port, "eth1");
	tenant_place_print(&place, text, sizeof(text));
	assert_string_equal(text, "n0/eth1 vlan 5 source 10.0.0.0/8");
	assert_int_equal(tenant_place_parse(NAME_63 "/eth1", &place, &why), 0);
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(tenant_place_parse(wrong[i], &place, &why), -EINVAL);
	assert_int_equal(tenant_place_parse(NAME_63 "a/eth1", &place, &why), -EINVAL);
	assert_int_equal(tenant_place_parse("eth1", &place, &why), -EINVAL);
	assert_string_equal(why.text,
			    "'eth1': NODE/PORT [vlan N] [source ADDRESS/BITS], such as eth1 vlan 5 "
			    "source 10.77.1.0/24 at node NODE of the cluster");
	assert_true(tenant_is_place(" n0/eth1"));
	assert_false(tenant_is_place("eth1 source 10.0.0.0/8"));
}

static void no_points_are_anywhere_or_if_the_cluster_says_so_nowhere(void **state)
{
	const struct sockaddr_storage from = { .ss_family = AF_INET };
	struct tenant t = { .name = "red" };

	assert_true(tenant_is_anywhere(&t) && !tenant_is_nowhere(&t));
	assert_true(tenant_may_come(&t, "eth1", &from));
	t.gated = true;
	assert_true(!tenant_is_anywhere(&t) && tenant_is_nowhere(&t));
	assert_false(tenant_may_come(&t, "eth1", &from));
	assert_int_equal(tenant_point_parse("eth1", &t.point[t.points++], &why), 0);
	assert_true(!tenant_is_anywhere(&t) && !tenant_is_nowhere(&t));
	assert_true(tenant_may_come(&t, "eth1", &from));
	assert_false(tenant_may_come(&t, "eth2", &from));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_begins_with_a_letter_or_digit),
		cmocka_unit_test(a_name_has_1_to_63_bytes),
		cmocka_unit_test(a_port_has_a_name_that_the_kernel_takes),
		cmocka_unit_test(a_port_alone_takes_any_vlan_and_source),
		cmocka_unit_test(a_source_is_in_network_order_and_zero_behind),
		cmocka_unit_test(what_is_printed_is_taken_back),
		cmocka_unit_test(bits_behind_the_prefix_name_the_right_one),
		cmocka_unit_test(a_bit_is_allowed_exactly_inside_the_prefix),
		cmocka_unit_test(the_form_is_kept),
		cmocka_unit_test(numbers_have_their_ranges),
		cmocka_unit_test(a_long_text_is_refused),
		cmocka_unit_test(who_may_come_in_is_known_of_all_or_of_the_source_alone),
		cmocka_unit_test(points_are_printed_as_far_as_there_is_room),
		cmocka_unit_test(a_place_is_a_point_at_a_node),
		cmocka_unit_test(no_points_are_anywhere_or_if_the_cluster_says_so_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
