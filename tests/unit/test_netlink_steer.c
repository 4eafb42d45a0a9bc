// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules and routes of our own in the kernel: a pair of virtual cables in a network namespace of the
 * test's own, which goes with it. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/edge/netlink.h"
#include "agent/edge/netlink_steer.h"
#include "common/address.h"

static struct why why;

static void run(const char *command)
{
	if (system(command) != 0)
		fail_msg("'%s' failed", command);
}

#define OURS "{ ip -4 rule show; ip -6 rule show; } | grep 'proto 84'"
#define ROUTES "ip -4 route show table all proto 84; ip -6 route show table all proto 84"

static int prepare(void **state)
{
	if (geteuid() != 0)
		return 0;
	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	run("ip link set lo up && echo 1 >/proc/sys/net/ipv4/ip_forward && echo 1 "
	    ">/proc/sys/net/ipv6/conf/all/forwarding");
	/* Addresses of links are there at once. */
	run("for i in all default; do echo 0 >/proc/sys/net/ipv6/conf/$i/accept_dad; done");
	run("ip link add va type veth peer name vb && ip link add vc type veth peer name vd");
	run("for i in va vb vc vd; do ip link set $i up; done");
	run("ip addr add 10.1.0.1/24 dev va && ip addr add 10.2.0.1/24 dev vc");
	return 0;
}

static void only_root_can(void)
{
	if (geteuid() != 0)
		skip();
}

static struct netlink_steered way(const char *from, const char *to, const char *gateway,
				  const char *port)
{
	struct netlink_steered s = { 0 };

	assert_int_equal(address_parse(from, 1, &s.from), 0);
	assert_int_equal(address_parse(to, 1, &s.to), 0);
	assert_int_equal(address_parse(gateway, 1, &s.gateway), 0);
	snprintf(s.port, sizeof(s.port), "%s", port);
	return s;
}

/* How many rules and routes came and went. */
static unsigned int steer(const struct netlink_steered *s, unsigned int count)
{
	unsigned int changes = 1000;

	if (netlink_steer(s, count, &changes, &why) < 0)
		fail_msg("%s", why.text);
	return changes;
}

static int clean(void **state)
{
	unsigned int changes;

	return geteuid() != 0 ? 0 : netlink_steer(NULL, 0, &changes, &why);
}

static void packets_take_their_way_and_others_do_not(void **state)
{
	const struct netlink_steered s[] = {
		way("10.9.0.1", "10.77.0.4", "10.2.0.2", "vc"),
		way("10.9.0.2", "10.77.0.4", "10.2.0.2", "vc"),
		way("10.9.0.1", "10.77.0.5", "10.99.0.2", "va"), /* of another network */
		way("fd00::1", "fd77::4", "fe80::2", "vc"),
	};

	only_root_can();
	run("ip route add default via 10.1.0.2 dev va");
	assert_int_equal(steer(s, 4), 4 + 3);
	run("ip route get 10.77.0.4 from 10.9.0.1 iif va | grep -q 'via 10.2.0.2 dev vc'");
	run("ip route get 10.77.0.4 from 10.9.0.2 iif va | grep -q 'via 10.2.0.2 dev vc'");
	run("ip route get 10.77.0.5 from 10.9.0.1 iif vc | grep -q 'via 10.99.0.2 dev va'");
	run("ip route get 10.77.0.5 from 10.9.0.2 iif vc | grep -q 'via 10.1.0.2 dev va'");
	run("ip route get 10.77.0.4 from 10.9.0.3 iif vc | grep -q 'via 10.1.0.2 dev va'");
	run("ip -6 route get fd77::4 from fd00::1 iif va | grep -q 'via fe80::2 dev vc'");
	assert_int_equal(steer(s, 4), 0); /* all is there */
	assert_int_equal(steer(s, 1), 3 + 2);
	run("ip route get 10.77.0.4 from 10.9.0.1 iif va | grep -q 'via 10.2.0.2 dev vc'");
	run("ip route get 10.77.0.4 from 10.9.0.2 iif vc | grep -q 'via 10.1.0.2 dev va'");
	assert_int_equal(steer(NULL, 0), 2);
	run("! " OURS);
	run("! { " ROUTES "; } | grep .");
	run("ip route del default");
}

/* Another next node for the same packets. */
static void a_way_may_change(void **state)
{
	const struct netlink_steered a = way("10.9.0.1", "10.77.0.4", "10.2.0.2", "vc");
	const struct netlink_steered b = way("10.9.0.1", "10.77.0.4", "10.1.0.9", "va");

	only_root_can();
	assert_int_equal(steer(&a, 1), 2);
	assert_int_equal(steer(&b, 1), 4);
	run("ip route get 10.77.0.4 from 10.9.0.1 iif vc | grep -q 'via 10.1.0.9 dev va'");
	run("test $(" OURS " | wc -l) = 1");
}

/* Whoever has the same numbers by chance has not all of them. */
static void what_others_have_is_not_touched(void **state)
{
	static const struct {
		const char *what, *is;
	} theirs[] = {
		{ "rule", "from 10.9.0.1 to 10.77.0.4 priority 8400 table 2047934464" },
		{ "rule", "from 10.9.0.1 to 10.77.0.4 priority 8399 table 2047934464 protocol 84" },
		{ "rule", "from 10.9.0.1 to 10.77.0.4 priority 8400 table 99 protocol 84" },
		{ "route", "default via 10.1.0.2 dev va table 2047934464" },
		{ "route", "10.55.0.0/16 via 10.1.0.2 dev va protocol 84" },
		{ "route", "10.55.0.0/16 via 10.1.0.2 dev va table 99 protocol 84" },
	};
	const struct netlink_steered s = way("10.9.0.1", "10.77.0.4", "10.2.0.2", "vc");
	char command[256];

	only_root_can();
	for (size_t i = 0; i < sizeof(theirs) / sizeof(*theirs); i++) {
		snprintf(command, sizeof(command), "ip %s add %s", theirs[i].what, theirs[i].is);
		run(command);
	}
	run("{ ip rule show; ip route show table all; } >/tmp/steer.$PPID.before");
	assert_int_equal(steer(&s, 1), 2);
	run("test $(ip route show table 2047934464 | wc -l) = 1"); /* theirs alone */
	run("ip route show table 2047934465 | grep -q 'via 10.2.0.2 dev vc'");
	assert_int_equal(steer(&s, 1), 0);
	assert_int_equal(steer(NULL, 0), 2);
	run("{ ip rule show; ip route show table all; } | diff /tmp/steer.$PPID.before - && "
	    "rm /tmp/steer.$PPID.before");
	for (size_t i = sizeof(theirs) / sizeof(*theirs); i-- > 0;) {
		snprintf(command, sizeof(command), "ip %s del %s", theirs[i].what, theirs[i].is);
		run(command);
	}
}

/* Somebody comes to a table that we are in already: then we leave it. */
static void a_table_is_left_to_who_comes(void **state)
{
	const struct netlink_steered s = way("10.9.0.1", "10.77.0.4", "10.2.0.2", "vc");

	only_root_can();
	assert_int_equal(steer(&s, 1), 2);
	run("ip route add 10.77.0.0/24 via 10.1.0.2 dev va table 2047934464");
	assert_int_equal(steer(&s, 1), 4);
	run("ip route get 10.77.0.4 from 10.9.0.1 iif va | grep -q 'via 10.2.0.2 dev vc'");
	run("test \"$(ip route show table 2047934464)\" = '10.77.0.0/24 via 10.1.0.2 dev va '");
	run("ip route del 10.77.0.0/24 table 2047934464");
}

/* An agent before this one ended in the midst of it. */
static void what_an_earlier_agent_left_is_known_again(void **state)
{
	const struct netlink_steered s = way("10.9.0.1", "10.77.0.4", "10.2.0.2", "vc");

	only_root_can();
	run("ip route add default via 10.2.0.2 dev vc onlink table 2047934467 protocol 84");
	run("ip route add 10.3.0.0/16 via 10.2.0.2 dev vc table 2047934468 protocol 84");
	run("ip rule add from 10.9.0.7 to 10.77.0.4 priority 8400 protocol 84 table 2047934467");
	run("ip rule add from 10.9.0.0/24 priority 8400 protocol 84 table 2047934468");
	run("ip -6 rule add iif va priority 8400 protocol 84 table 2047934468");
	assert_int_equal(steer(&s, 1), 1 + 3 + 1);
	run("test $(" OURS " | wc -l) = 1");
	run(OURS " | grep -q 'from 10.9.0.1 to 10.77.0.4 lookup 2047934467'");
	run("test $(ip route show table all proto 84 | wc -l) = 1");
}

/* With an interface go its routes; when it is back, they are, too. */
static void a_port_that_goes_comes_back(void **state)
{
	const struct netlink_steered s = way("10.9.0.1", "10.77.0.4", "10.5.0.2", "ve");
	unsigned int changes;

	only_root_can();
	assert_int_equal(netlink_steer(&s, 1, &changes, &why), -ENODEV);
	assert_non_null(strstr(why.text, "the port is not there, or not up"));
	run("ip link add ve type veth peer name vx && ip link set ve up && ip link set vx up");
	assert_int_equal(steer(&s, 1), 2);
	run("ip link set ve down");
	run("! ip route show table all proto 84 | grep .");
	assert_int_equal(netlink_steer(&s, 1, &changes, &why), -ENODEV);
	run("! " OURS); /* a rule to an empty table */
	run("ip link set ve up");
	assert_int_equal(steer(&s, 1), 2);
	run("ip link del ve");
	assert_int_equal(netlink_steer(&s, 1, &changes, &why), -ENODEV);
	run("! " OURS);
}

static void there_are_so_many_tables(void **state)
{
	static struct netlink_steered s[NETLINK_STEER_TABLES + 1];
	char from[32], gateway[32];
	unsigned int changes = 0;

	only_root_can();
	for (unsigned int i = 0; i <= NETLINK_STEER_TABLES; i++) {
		snprintf(from, sizeof(from), "10.9.1.%u", i);
		snprintf(gateway, sizeof(gateway), "10.2.0.%u", 2 + i);
		s[i] = way(from, "10.77.0.4", gateway, "vc");
	}
	assert_int_equal(netlink_steer(s, NETLINK_STEER_TABLES + 1, &changes, &why), -E2BIG);
	assert_int_equal(changes, 2 * NETLINK_STEER_TABLES);
	assert_int_equal(steer(NULL, 0), 2 * NETLINK_STEER_TABLES);
}

/* What the data plane sends itself goes there, too, whatever routes say. */
static void a_next_node_is_found_at_its_port(void **state)
{
	static const uint8_t by_va[] = { 2, 0, 0, 0, 0, 0xa }, by_vc[] = { 2, 0, 0, 0, 0, 0xc };
	static const uint8_t gateway[sizeof(((struct hop *)NULL)->source)];
	const struct netlink_steered s = way("10.9.0.1", "10.77.0.4", "10.1.0.2", "vc");
	const struct netlink_steered six = way("fd00::1", "fd77::4", "fe80::7", "vc");
	_cleanup_(netlink_closep) struct netlink *n = NULL;
	struct hop hop;

	only_root_can();
	assert_int_equal(netlink_open(&n), 0);
	run("ip neigh add 10.1.0.2 lladdr 02:00:00:00:00:0a dev va");
	assert_int_equal(netlink_resolve(n, &s.gateway, 0, &hop, &why), 0);
	assert_memory_equal(hop.mac, by_va, 6);
	assert_int_equal(netlink_resolve_at(n, &s.gateway, "vc", 0, &hop, &why), -EHOSTUNREACH);
	run("ip neigh show dev vc | grep -q '10.1.0.2 '"); /* it was asked for there */
	assert_int_equal(netlink_resolve_at(n, &six.gateway, "vc", 0, &hop, &why), -EHOSTUNREACH);
	run("ip -6 neigh show dev vc | grep -q 'fe80::7 '");
	run("ip neigh replace 10.1.0.2 lladdr 02:00:00:00:00:0c dev vc nud permanent");
	assert_int_equal(netlink_resolve_at(n, &s.gateway, "vc", 0, &hop, &why), 0);
	assert_memory_equal(hop.mac, by_vc, 6);
	assert_int_equal(hop.port, if_nametoindex("vc"));
	assert_string_equal(hop.port_name, "vc");
	assert_memory_equal(hop.source, gateway, sizeof(gateway)); /* it is no worker's link */
	assert_int_equal(netlink_resolve_at(n, &s.gateway, "vz", 0, &hop, &why), -ENODEV);
	assert_string_equal(why.text, "10.1.0.2: there is no vz to send to it by");
	run("ip neigh flush dev va nud permanent; ip neigh flush dev vc nud permanent");
}

#define fact(f) cmocka_unit_test_teardown(f, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fact(packets_take_their_way_and_others_do_not),
		fact(a_way_may_change),
		fact(what_others_have_is_not_touched),
		fact(a_table_is_left_to_who_comes),
		fact(what_an_earlier_agent_left_is_known_again),
		fact(a_port_that_goes_comes_back),
		fact(there_are_so_many_tables),
		fact(a_next_node_is_found_at_its_port),
	};

	return cmocka_run_group_tests(tests, prepare, NULL);
}
