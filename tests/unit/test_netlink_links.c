// SPDX-License-Identifier: GPL-2.0-only
/*
 * Links and neighbours as the kernel tells of them: a pair of virtual cables in a network
 * namespace of the test's own, which goes with it. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/edge/netlink_links.h"

enum {
	WAIT_MS = 5000,
	FRAME_BYTES = 1000,
};

static struct netlink_links *l;
static struct why why;
static uint32_t a, b;

/* What was told. */
static unsigned int link_events, lost_events, neighbour_events, address_events;
static uint32_t told_link;
static struct netlink_neighbour told;

static void on_link(void *context, uint32_t ifindex, const char *state)
{
	assert_ptr_equal(context, &l);
	told_link = ifindex;
	link_events++;
}

static void on_neighbour(void *context, const struct netlink_neighbour *n)
{
	const struct sockaddr_in6 *ip6 = (const void *)&n->address;

	assert_ptr_equal(context, &l);
	if (ip6->sin6_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&ip6->sin6_addr))
		return; /* the kernel's own, when a link comes up */
	told = *n;
	neighbour_events++;
}

static char other[IF_NAMESIZE]; /* the last link that came, and is not watched */

static void on_other(void *context, const char *name)
{
	assert_ptr_equal(context, &l);
	snprintf(other, sizeof(other), "%s", name);
}

static void on_lost(void *context)
{
	assert_ptr_equal(context, &l);
	lost_events++;
}

static void on_address(void *context)
{
	assert_ptr_equal(context, &l);
	address_events++;
}

static void run(const char *command)
{
	if (system(command) != 0)
		fail_msg("'%s' failed", command);
}

static void dispatch(void)
{
	if (netlink_links_dispatch(l, &why) < 0)
		fail_msg("%s", why.text);
}

static void wait_for_events(void)
{
	struct pollfd p = { .fd = netlink_links_fd(l), .events = POLLIN };

	if (poll(&p, 1, WAIT_MS) != 1)
		fail_msg("nothing was told");
	dispatch();
}

static void read_links(struct traffic_link *ret, int wanted)
{
	int n = netlink_links_read(l, ret, 2, &why);

	if (n < 0)
		fail_msg("%s", why.text);
	assert_int_equal(n, wanted);
}

static int prepare(void **state)
{
	static const struct netlink_links_events events = {
		.link = on_link,
		.other = on_other,
		.neighbour = on_neighbour,
		.address = on_address,
		.lost = on_lost,
	};
	uint32_t both[2];

	if (geteuid() != 0)
		return 0;
	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	run("ip link add va mtu 1400 type veth peer name vb");
	run("ip link set va addrgenmode none && ip link set vb addrgenmode none"); /* be quiet */
	a = both[0] = if_nametoindex("va");
	b = both[1] = if_nametoindex("vb");
	if (netlink_links_open(&events, &l, &l, &why) < 0 ||
	    netlink_links_watch(l, both, 2, &why) < 0)
		return -1;
	run("ip link set va up && ip link set vb up");
	/* The operational state follows when the kernel has time for it, and is told of. */
	while (system("test $(ip -o link show up | grep -c 'state UP') = 2") != 0)
		wait_for_events();
	dispatch();
	link_events = lost_events = neighbour_events = address_events = 0;
	return 0;
}

static int clean_up(void **state)
{
	netlink_links_close(l);
	l = NULL;
	return 0;
}

static void only_root_can(void)
{
	if (geteuid() != 0)
		skip();
}

/* Frames of a protocol that nobody knows, from `a` to `b`. */
static void send_frames(unsigned int count)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = (int)a, .sll_halen = 6 };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	unsigned char frame[FRAME_BYTES] = { 0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x88, 0xb5 };

	if (fd < 0) {
		fail_msg("no packet socket");
		return;
	}
	while (count--)
		assert_int_equal(
			sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)),
			sizeof(frame));
	close(fd);
}

static void a_link_is_read_as_it_is(void **state)
{
	struct traffic_link is[2];

	only_root_can();
	read_links(is, 2);
	assert_int_equal(is[0].ifindex, a);
	assert_string_equal(is[0].name, "va");
	assert_int_equal(is[0].mtu, 1400);
	assert_true(is[0].up && is[0].carrier);
	assert_int_equal(is[0].speed_mbps, 10000); /* what a veth says of itself */
	assert_int_equal(is[0].backlog_packets, 0);
	assert_string_equal(is[1].name, "vb");
	assert_int_equal(is[1].mtu, 1500);
	run("ip link set vb down");
	read_links(is, 2);
	assert_true(is[0].up && !is[0].carrier);
	assert_false(is[1].up);
}

static void counters_are_the_kernel_s(void **state)
{
	struct traffic_link before[2], after[2];

	only_root_can();
	read_links(before, 2);
	send_frames(30);
	read_links(after, 2);
	assert_int_equal(after[0].transmit.packets - before[0].transmit.packets, 30);
	assert_int_equal(after[0].transmit.bytes - before[0].transmit.bytes, 30 * FRAME_BYTES);
	assert_int_equal(after[1].receive.packets - before[1].receive.packets, 30);
	assert_int_equal(after[1].receive.bytes - before[1].receive.bytes, 30 * FRAME_BYTES);
	assert_int_equal(after[0].receive.packets, before[0].receive.packets);
	assert_int_equal(after[1].transmit.packets, before[1].transmit.packets);
}

static void drops_and_backlog_are_those_of_the_queue(void **state)
{
	struct traffic_link is[2];

	only_root_can();
	/* 1 kB/s after the first two frames: 30 more do not leave while this looks */
	run("tc qdisc add dev va root handle 1: tbf rate 8kbit burst 2100 limit 100000");
	send_frames(32);
	read_links(is, 2);
	assert_in_range(is[0].backlog_packets, 25, 31);
	assert_int_equal(is[0].backlog_bytes, is[0].backlog_packets * FRAME_BYTES);
	assert_int_equal(is[1].backlog_packets, 0);
	run("tc qdisc replace dev va root handle 2: htb default 10");
	run("tc class add dev va parent 2: classid 2:10 htb rate 8kbit burst 2100 cburst 2100 "
	    "quantum 1500");
	send_frames(32);
	read_links(is, 2);
	assert_in_range(is[0].backlog_packets, 25, 31); /* of a class's own queue */
}

static void a_carrier_that_goes_is_told(void **state)
{
	struct traffic_link is[2];

	only_root_can();
	run("ip link set vb down");
	while (link_events < 2)
		wait_for_events();
	read_links(is, 2);
	assert_true(is[0].up && !is[0].carrier);
	assert_true(is[0].changes >= 1 && is[1].changes >= 1);
}

static void what_is_not_watched_is_told_apart(void **state)
{
	only_root_can();
	assert_int_equal(netlink_links_watch(l, &b, 1, &why), 0);
	run("ip link add vc type veth peer name vd && ip link set vc up");
	wait_for_events();
	assert_int_equal(link_events, 0);
	assert_true(!strcmp(other, "vc") || !strcmp(other, "vd"));
	run("ip link set va mtu 1300"); /* a change of no state */
	wait_for_events();
	assert_int_equal(link_events, 0);
}

static void a_link_that_goes_and_comes_is_told(void **state)
{
	struct traffic_link is[2];
	uint32_t wanted[2] = { 77, b };

	only_root_can();
	assert_int_equal(netlink_links_watch(l, wanted, 2, &why), 0);
	read_links(is, 1); /* 77 is not there yet */
	run("ip link add vc index 77 type veth peer name vd");
	wait_for_events();
	assert_true(link_events == 1 && told_link == 77);
	read_links(is, 2);
	assert_string_equal(is[0].name, "vc");
	assert_int_equal(is[0].changes, 1);
	run("ip link del vc");
	wait_for_events();
	assert_true(link_events == 2 && told_link == 77);
	read_links(is, 1);
	assert_int_equal(is[0].ifindex, b);
}

static void a_port_that_leaves_a_bridge_is_still_there(void **state)
{
	struct traffic_link is[2];
	uint64_t changes;

	only_root_can();
	run("ip link add br0 type bridge && ip link set br0 up && ip link set va master br0");
	dispatch();
	read_links(is, 2);
	changes = is[0].changes;
	run("ip link set va nomaster");
	wait_for_events();
	read_links(is, 2);
	assert_int_equal(is[0].changes, changes);
}

static void a_new_watch_keeps_counts_of_changes(void **state)
{
	struct traffic_link is[2];
	uint32_t other_way[2] = { b, a };
	uint64_t changes;

	only_root_can();
	run("ip link set va down");
	wait_for_events();
	read_links(is, 2);
	changes = is[0].changes;
	assert_true(changes > 0);
	assert_int_equal(netlink_links_watch(l, other_way, 2, &why), 0);
	read_links(is, 2);
	assert_int_equal(is[1].ifindex, a);
	assert_int_equal(is[1].changes, changes);
}

static void too_many_links_are_refused_by_name(void **state)
{
	static uint32_t many[TALLY_PORTS_MAX + 1];
	struct traffic_link is[2];

	only_root_can();
	assert_int_equal(netlink_links_watch(l, many, TALLY_PORTS_MAX + 1, &why), -E2BIG);
	assert_non_null(strstr(why.text, "1025"));
	read_links(is, 2); /* the watch is what it was */
}

static void assert_neighbour(const char *address, bool known, uint8_t last)
{
	char text[INET6_ADDRSTRLEN] = "";
	const void *bytes = &((struct sockaddr_in *)&told.address)->sin_addr;

	if (told.address.ss_family == AF_INET6)
		bytes = &((struct sockaddr_in6 *)&told.address)->sin6_addr;
	inet_ntop(told.address.ss_family, bytes, text, sizeof(text));
	assert_string_equal(text, address);
	assert_int_equal(told.ifindex, a);
	assert_int_equal(told.known, known);
	assert_int_equal(told.mac[5], last);
}

static void a_neighbour_that_moves_is_told(void **state)
{
	only_root_can();
	run("ip neigh add 10.9.0.7 lladdr 02:00:00:00:00:11 dev va nud reachable");
	wait_for_events();
	assert_neighbour("10.9.0.7", true, 0x11);
	run("ip neigh replace 10.9.0.7 lladdr 02:00:00:00:00:12 dev va nud permanent");
	wait_for_events();
	assert_neighbour("10.9.0.7", true, 0x12);
	run("ip neigh del 10.9.0.7 dev va");
	wait_for_events();
	assert_neighbour("10.9.0.7", false, 0);
	run("ip neigh add 10.9.0.8 lladdr 02:00:00:00:00:14 dev va nud reachable");
	wait_for_events();
	assert_neighbour("10.9.0.8", true, 0x14);
	assert_int_equal(link_events, 0);
	run("ip link set va down && ip link set va up"); /* which forgets it as it is */
	wait_for_events();
	assert_neighbour("10.9.0.8", false, 0);
	run("ip neigh add fd77::7 lladdr 02:00:00:00:00:13 dev va nud permanent");
	wait_for_events();
	assert_neighbour("fd77::7", true, 0x13);
}

/* Of an IPv6 address the kernel tells some time later, and of its own neighbours meanwhile. */
static void wait_for_addresses(unsigned int told)
{
	while (address_events < told)
		wait_for_events();
	assert_int_equal(address_events, told);
}

static void an_address_that_comes_or_goes_is_told_of_a_watched_link(void **state)
{
	only_root_can();
	run("ip address add 10.9.1.1/24 dev va");
	wait_for_addresses(1);
	run("ip -6 address add fd78::1/64 dev va nodad");
	wait_for_addresses(2);
	run("ip address del 10.9.1.1/24 dev va");
	wait_for_addresses(3);
	run("ip address add 10.9.2.1/24 dev lo && ip address add 10.9.3.1/24 dev va");
	wait_for_addresses(4); /* and not five: lo is not watched */
	assert_int_equal(link_events, 0);
}

/* More events than the socket holds: what is true in the end is known in the end. */
static void lost_events_end_in_what_is_true(void **state)
{
	struct traffic_link is[2];

	only_root_can();
	run("for i in $(seq 1500); do echo link set va down; echo link set va up; done | "
	    "ip -batch - && ip link set vb down && ip link set vb up && ip link set va down");
	while (netlink_links_lost(l) == 0 || lost_events == 0)
		wait_for_events();
	assert_true(told_link == a || told_link == b);
	link_events = 0;
	run("ip link set va up");
	wait_for_events();
	assert_true(link_events >= 1); /* so it was known to be down */
	read_links(is, 2);
	assert_true(is[0].up);
}

/* Nobody may keep the daemon's loop by changing links all the time. */
static void one_dispatch_takes_no_more_than_a_burst(void **state)
{
	struct pollfd p;

	only_root_can();
	for (unsigned int i = 0; i < 2; i++) {
		run("for i in $(seq 70); do "
		    "echo neigh replace 10.9.0.7 lladdr 02:00:00:00:00:11 dev va nud permanent; "
		    "echo neigh replace 10.9.0.7 lladdr 02:00:00:00:00:12 dev va nud permanent; "
		    "done | ip -batch -");
	}
	p = (struct pollfd){ .fd = netlink_links_fd(l), .events = POLLIN };
	dispatch();
	assert_int_equal(neighbour_events, NETLINK_LINKS_BURST);
	assert_int_equal(poll(&p, 1, 0), 1);
	dispatch();
	assert_int_equal(neighbour_events, 280);
	assert_int_equal(poll(&p, 1, 0), 0);
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, prepare, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(a_link_is_read_as_it_is),
		FACT(counters_are_the_kernel_s),
		FACT(drops_and_backlog_are_those_of_the_queue),
		FACT(a_carrier_that_goes_is_told),
		FACT(what_is_not_watched_is_told_apart),
		FACT(a_link_that_goes_and_comes_is_told),
		FACT(a_port_that_leaves_a_bridge_is_still_there),
		FACT(a_new_watch_keeps_counts_of_changes),
		FACT(too_many_links_are_refused_by_name),
		FACT(a_neighbour_that_moves_is_told),
		FACT(an_address_that_comes_or_goes_is_told_of_a_watched_link),
		FACT(lost_events_end_in_what_is_true),
		FACT(one_dispatch_takes_no_more_than_a_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
