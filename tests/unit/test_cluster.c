// SPDX-License-Identifier: GPL-2.0-only
/*
 * What agents of a cluster say on their links and to the store, and the picture that it makes:
 * agent/cluster. Whole agents: tests/e2e/cluster.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/hello.h"
#include "cluster_world.h"
#include "common/owned.h"
#include "scarce.h"

/* --- hellos ---------------------------------------------------------------------------------- */

static void a_hello_comes_as_it_went(void **state)
{
	const struct hello h = { "lab", "n0", "eth1" };
	uint8_t bytes[HELLO_BYTES];
	struct hello heard;

	hello_print(&h, bytes);
	assert_int_equal(hello_parse(bytes, sizeof(bytes), &heard), 0);
	assert_string_equal(heard.cluster, "lab");
	assert_string_equal(heard.node, "n0");
	assert_string_equal(heard.port, "eth1");
}

/* Whoever makes up names fills no log. */
static void one_node_of_another_cluster_is_told_as_long_as_it_is_heard(void **state)
{
	const struct hello first = { "lab2", "n3", "eth1" }, second = { "lab3", "n4", "eth1" };
	const uint64_t lost_ns = HELLO_LOST_MS * 1000000ull;
	struct hello_other o = { .heard_ns = 0 };

	assert_false(hello_other_is_there(&o, 5));
	assert_true(hello_other_heard(&o, "eth0", &first, 5));
	assert_false(hello_other_heard(&o, "eth0", &second, 6));
	assert_false(hello_other_heard(&o, "eth0", &first, 7));
	assert_string_equal(o.is.node, "n3");
	assert_true(hello_other_is_there(&o, lost_ns + 6));
	assert_false(hello_other_is_there(&o, lost_ns + 7));
	assert_true(hello_other_heard(&o, "eth0", &second, lost_ns + 7));
	assert_string_equal(o.is.cluster, "lab3");
}

/* Names stand in the store's keys and on terminals. */
static void what_is_no_hello_is_refused(void **state)
{
	const struct hello h = { "lab", "n0", "eth1" };
	static const struct {
		size_t at;
		uint8_t byte;
	} wrong[] = {
		{ 0, 'T' },
		{ 7, '2' },
		{ 8, '\0' },
		{ 8, '/' },
		{ 8 + NAME_BYTES, 0x1b },
		{ 8 + NAME_BYTES, '\0' },
		{ 9 + NAME_BYTES, '/' },
		{ 8 + 2 * NAME_BYTES, '\0' },
		{ 8 + 2 * NAME_BYTES, '/' },
		{ 8 + 2 * NAME_BYTES, 0x1b },
	};
	uint8_t bytes[HELLO_BYTES + 1] = { 0 };
	struct hello heard;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		hello_print(&h, bytes);
		bytes[wrong[i].at] = wrong[i].byte;
		assert_int_equal(hello_parse(bytes, HELLO_BYTES, &heard), -EBADMSG);
	}
	hello_print(&h, bytes);
	assert_int_equal(hello_parse(bytes, HELLO_BYTES - 1, &heard), -EBADMSG);
	assert_int_equal(hello_parse(bytes, HELLO_BYTES + 1, &heard), -EBADMSG);
	memset(bytes + 8, 'a', NAME_BYTES); /* a name without an end */
	assert_int_equal(hello_parse(bytes, HELLO_BYTES, &heard), -EBADMSG);
}

static void who_is_silent_is_forgotten(void **state)
{
	const uint64_t second = 1000000000;
	const struct hello a = { "lab", "a", "x" }, b = { "lab", "b", "x" };
	_cleanup_(freep) struct hello_nears *n = calloc(1, sizeof(*n));

	assert_true(hello_heard(n, "eth1", &a, 10 * second));
	assert_true(hello_heard(n, "eth1", &b, 11 * second));
	assert_true(hello_heard(n, "eth2", &a, 11 * second));
	assert_false(hello_heard(n, "eth1", &a, 12 * second));
	assert_false(hello_forget(n, 17 * second));
	assert_int_equal(n->count, 3);
	assert_true(hello_forget(n, 18 * second));
	assert_int_equal(n->count, 1);
	assert_string_equal(n->near[0].node, "a");
	assert_true(hello_heard(n, "eth1", &b, 18 * second));
}

/* Whoever floods a link with names has those at that link forgotten, and nobody else. */
static void a_flood_of_names_has_an_end(void **state)
{
	const struct hello other = { "lab", "other", "x" };
	_cleanup_(freep) struct hello_nears *n = calloc(1, sizeof(*n));
	struct hello h = { "lab", "", "x" };
	char port[16];

	assert_true(hello_heard(n, "eth2", &other, 1));
	for (unsigned int i = 0; i < 2 * HELLO_NEARS_MAX; i++) {
		snprintf(h.node, sizeof(h.node), "n%u", i);
		assert_true(hello_heard(n, "eth1", &h, 1000 + i));
	}
	assert_int_equal(n->count, HELLO_PORT_MAX + 1);
	assert_false(hello_heard(n, "eth1", &h, 5000));
	assert_false(hello_heard(n, "eth2", &other, 5000));
	for (unsigned int i = 0; i < 2 * HELLO_NEARS_MAX; i++) {
		snprintf(port, sizeof(port), "p%u", i);
		assert_true(hello_heard(n, port, &h, 6000 + i));
	}
	assert_int_equal(n->count, HELLO_NEARS_MAX);
}

/* --- reports --------------------------------------------------------------------------------- */

static void a_report_comes_as_it_went(void **state)
{
	_cleanup_(report_freep) struct report *r = report_of("n0", "10.77.0.1");
	_cleanup_(report_freep) struct report *back = NULL;
	_cleanup_(freep) char *text = NULL, *again = NULL;
	struct report_job *j = ADD(r->job, r->jobs);
	struct why why;

	*port(r, "eth1", 100) = (struct report_port){
		"eth1", "02:00:00:00:00:09", "10.77.5.1", "fe80::1", true, 100, 1, 2, 3, 4
	};
	near(r, "eth1", "n1", "eth0");
	host(r, "eth1", "fd77::1", "02:00:00:00:00:01");
	*j = (struct report_job){ "train", 7, true, true, true, true, 4,   3,
				  3392,	   2, 5,    6,	  7,	0,    NULL };
	*ADD(j->late, j->lates) = (struct report_late){ 3, 84 };
	*ADD(j->late, j->lates) = (struct report_late){ 11, 51 };
	r->cordoned = r->steers = r->inner = true;
	text = report_print(r);
	assert_int_equal(report_parse(text, &back, &why), 0);
	again = report_print(back);
	assert_string_equal(text, again);
	assert_int_equal(back->jobs, 1);
	assert_int_equal(back->job->lates, 2);
	assert_memory_equal(j->late, back->job->late, 2 * sizeof(*j->late));
	assert_non_null(strstr(text, "\"late\":[{\"rank\":3,\"percent\":84},"));
	assert_memory_equal(r->port, back->port, sizeof(*r->port));
}

/* As many as there may be, with names as long as they may be: it fits in the store (store.h). */
static void the_largest_report_fits(void **state)
{
	_cleanup_(report_freep) struct report *r = report_of("n0", "10.77.0.1");
	_cleanup_(freep) char *text = NULL;
	char name[16];

	for (unsigned int i = 0; i < TALLY_PORTS_MAX; i++) {
		snprintf(name, sizeof(name), "enp%03us%04uf00", i % 1000, i);
		*port(r, name, 0) = (struct report_port){ .up = true,
							  .rate_mbps = 400000,
							  .receive = 1000000000,
							  .receive_forecast = 1000000000,
							  .transmit = 1000000000,
							  .transmit_forecast = 1000000000 };
		snprintf(r->port[i].name, sizeof(r->port[i].name), "%s", name);
		host(r, name, "10.77.255.255", "02:00:00:00:00:01");
	}
	for (unsigned int i = 0; i < REPORT_ROUTES_MAX; i++) {
		struct report_route *x = ADD(r->route, r->routes);

		memset(x->to, 'f', sizeof(x->to) - 1);
		memset(x->port, 'p', sizeof(x->port) - 1);
	}
	text = report_print(r);
	assert_true(strlen(text) < 1 << 19);
}

static void a_report_that_is_wrong_says_what(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "", "expected near" },
		{ "{}", "node" },
		{ "{\"node\": \"../x\"}", "node" },
		{ "{\"node\": \"n0\", \"ports\": [{\"name\": \"a/b\"}]}", "name" },
		{ "{\"node\": \"n0\", \"hosts\": [{\"port\": \"a\", \"address\": \"x\"}]}",
		  "address" },
		{ "{\"node\": \"n0\", \"slots\": -1}", "slots" },
		{ "{\"node\": \"n0\", \"ports\": [{\"name\": \"a\"}, {\"name\": \"b\"}, {}]}",
		  "ports[2]" },
	};
	struct report *r = NULL;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct why why = { "" };

		assert_int_equal(report_parse(wrong[i].text, &r, &why), -EINVAL);
		if (!strstr(why.text, wrong[i].says))
			fail_msg("%s: %s", wrong[i].text, why.text);
	}
	assert_null(r);
}

static size_t bytes_of(const struct report *r)
{
	const void *const list[] = { r,	      r->service, r->address, r->port,	r->near,
				     r->host, r->route,	  r->job,     r->tenant };
	size_t bytes = 0;

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		bytes += malloc_usable_size((void *)list[i]);
	return bytes;
}

/* An agent keeps one of each node, and there may be thousands. */
static void a_report_takes_the_memory_that_it_fills(void **state)
{
	_cleanup_(report_freep) struct report *r = report_of("n0", "10.77.0.1"), *back = NULL;
	_cleanup_(freep) char *text = NULL;
	struct why why;

	for (unsigned int i = 0; i < 8; i++) {
		const char name[] = { 'p', (char)('0' + i), '\0' };

		port(r, name, 100);
		near(r, name, "n1", name);
		host(r, name, "10.0.0.1", "02:00:00:00:00:01");
		snprintf(ADD(r->route, r->routes)->to, REPORT_PREFIX_BYTES, "10.0.%u.0/24", i);
		snprintf(ADD(r->job, r->jobs)->name, NAME_BYTES, "j%u", i);
		snprintf(ADD(r->tenant, r->tenants)->name, NAME_BYTES, "t%u", i);
	}
	text = report_print(r);
	assert_int_equal(report_parse(text, &back, &why), 0);
	printf("a report with eight of each: %zu bytes\n", bytes_of(back));
	assert_true(bytes_of(r) < 16384);
	assert_true(bytes_of(back) < 16384);
}

/* By what runs have, and by what is kept from the tenant, whichever is more. */
static void a_report_says_what_a_tenant_would_get(void **state)
{
	_cleanup_(report_freep) struct report *r = report_of("n0", "10.77.0.1");

	r->slots = 1000;
	r->slots_free = 700;
	assert_int_equal(report_slots_left(r, "default"), 700);
	r->slots_kept = 400;
	assert_int_equal(report_slots_left(r, "default"), 600);
	assert_int_equal(report_slots_left(r, "red"), 700); /* of which it tells nothing */
	*ADD(r->tenant, r->tenants) = (struct report_tenant){ .name = "red", .slots_kept = 2000 };
	assert_int_equal(report_slots_left(r, "red"), 0);
	assert_int_equal(report_slots_kept(r, "red"), 2000);
}

static int parse(void *text)
{
	_cleanup_(report_freep) struct report *r = NULL;
	struct why why;

	return report_parse(text, &r, &why);
}

static void without_memory_nothing_is_taken(void **state)
{
	char text[] = "{\"node\": \"n0\", \"services\": [\"10.0.0.1\", \"10.0.0.2\"], "
		      "\"jobs\": [{\"name\": \"a\", \"id\": 1}, {\"name\": \"b\", \"id\": 2}]}";

	run_out_of_memory(parse, text);
}

/* A later agent may say more. */
static void what_is_not_known_is_left_alone(void **state)
{
	_cleanup_(report_freep) struct report *r = NULL;
	struct why why;

	assert_int_equal(
		report_parse("{\"node\": \"n0\", \"moon\": [1, {\"full\": true}]}", &r, &why), 0);
}

static void loads_that_hardly_change_are_no_news(void **state)
{
	_cleanup_(report_freep) struct report *a = report_of("n0", "10.77.0.1");
	_cleanup_(report_freep) struct report *b = report_of("n0", "10.77.0.1");
	struct report_port *now;

	port(a, "eth1", 100)->receive = 1000000;
	now = port(b, "eth1", 100);
	now->receive = 1000000 + 12500000 / 20;
	assert_int_equal(report_compare(a, b), REPORT_SAME);
	now->receive++;
	assert_int_equal(report_compare(a, b), REPORT_LOADS);
	now->transmit_forecast = 1250000;
	now->receive = 1000000;
	assert_int_equal(report_compare(a, b), REPORT_LOADS);
	now->transmit_forecast = 0;
	/* A job's, by the slowest line that is up. */
	ADD(a->job, a->jobs)->bytes_per_second = 1000000;
	ADD(b->job, b->jobs)->bytes_per_second = 1000000 + 12500000 / 20;
	assert_int_equal(report_compare(a, b), REPORT_SAME);
	b->job[0].chunks_per_second = b->job[0].chunks_forecast = 1000;
	assert_int_equal(report_compare(a, b), REPORT_SAME);
	b->job[0].bytes_per_second++;
	assert_int_equal(report_compare(a, b), REPORT_LOADS);
	/* One that is slow may be so since its root is crowded. */
	a->job[0].bytes_per_second = 500;
	b->job[0].bytes_per_second = 1000;
	assert_int_equal(report_compare(a, b), REPORT_SAME);
	b->job[0].bytes_per_second++;
	assert_int_equal(report_compare(a, b), REPORT_LOADS);
	a->job[0].bytes_per_second = b->job[0].bytes_per_second = 0;
	assert_int_equal(report_compare(a, b), REPORT_SAME);
	b->job[0].bytes_per_second = 1;
	assert_int_equal(report_compare(a, b), REPORT_LOADS);
	now->up = false;
	assert_int_equal(report_compare(a, b), REPORT_MORE);
	now->up = true;
	b->steers = true;
	assert_int_equal(report_compare(a, b), REPORT_MORE);
	b->steers = false;
	b->inner = true;
	assert_int_equal(report_compare(a, b), REPORT_MORE);
	b->inner = false;
	b->slots_free--;
	assert_int_equal(report_compare(a, b), REPORT_MORE);
}

/* Who is late is told at once; how late, as loads are. */
static void late_ranks_are_news(void **state)
{
	_cleanup_(report_freep) struct report *a = report_of("n0", "10.77.0.1");
	_cleanup_(report_freep) struct report *b = report_of("n0", "10.77.0.1");
	struct report_job *was = ADD(a->job, a->jobs), *is = ADD(b->job, b->jobs);

	*ADD(is->late, is->lates) = (struct report_late){ 3, 60 };
	assert_int_equal(report_compare(a, b), REPORT_MORE);
	*ADD(was->late, was->lates) = (struct report_late){ 2, 60 };
	assert_int_equal(report_compare(a, b), REPORT_MORE);
	was->late->rank = 3;
	assert_int_equal(report_compare(a, b), REPORT_SAME);
	is->late->percent = 70;
	assert_int_equal(report_compare(a, b), REPORT_SAME);
	is->late->percent = 71;
	assert_int_equal(report_compare(a, b), REPORT_LOADS);
	was->late->percent = 82;
	assert_int_equal(report_compare(a, b), REPORT_LOADS);
}

/* --- the picture ----------------------------------------------------------------------------- */

static const struct picture_cable *cable_between(const struct drawing *d, const char *a,
						 const char *b)
{
	for (unsigned int i = 0; i < d->cables; i++)
		if ((int)d->cable[i].end[0] == machine_named(d, a) &&
		    (int)d->cable[i].end[1] == machine_named(d, b))
			return &d->cable[i];
	return NULL;
}

/*   10.0.1.1 ── n0 ── n1 ── 10.0.2.1   */
static void two_nodes_and_a_host_each(void **state)
{
	_cleanup_(picture_close) struct picture p = { 0 };
	_cleanup_(drawing_close) struct drawing d = { 0 };
	struct report *a = report_of("n0", "10.77.0.1"), *b = report_of("n1", "10.77.0.2");
	const struct picture_cable *c;
	const struct sockaddr_storage there = address("10.0.2.1"), own = address("10.77.0.2");

	port(a, "w", 100);
	port(a, "up", 50)->transmit = 1000;
	host(a, "w", "10.0.1.1", "02:00:00:00:00:01");
	host(a, "up", "10.77.0.2", "02:00:00:00:00:02"); /* the other node, by its address */
	near(a, "up", "n1", "down");
	port(b, "down", 40)->receive = 1100;
	b->port[0].transmit = 7;
	port(b, "w", 0);
	host(b, "w", "10.0.2.1", "02:00:00:00:00:03");
	near(b, "down", "n0", "up");
	put(&p, b);
	put(&p, a);
	assert_int_equal(drawing_make(&p, &d), 0);
	assert_int_equal(d.machines, 4);
	assert_int_equal(d.cables, 3);
	c = cable_between(&d, "n0", "n1");
	assert_non_null(c);
	assert_string_equal(c->port[0], "up");
	assert_string_equal(c->port[1], "down");
	assert_int_equal(c->rate_mbps, 40); /* of the slower end */
	assert_int_equal(c->load[0], 1100); /* what one end has sent, the other receives */
	assert_int_equal(c->load[1], 7);
	assert_non_null(cable_between(&d, "n0", "h10.0.1.1"));
	c = cable_between(&d, "n1", "h10.0.2.1");
	assert_non_null(c);
	assert_int_equal(c->rate_mbps, 0);
	assert_int_equal(drawing_find(&p, &d, &there), machine_named(&d, "h10.0.2.1"));
	assert_int_equal(drawing_find(&p, &d, &own), machine_named(&d, "n1"));
}

/* Who says that they are n1 at a link, and whom n1 does not hear, are no neighbours. */
static void what_one_end_says_alone_does_not_count(void **state)
{
	_cleanup_(picture_close) struct picture p = { 0 };
	_cleanup_(drawing_close) struct drawing d = { 0 };
	struct report *a = report_of("n0", "10.77.0.1"), *b = report_of("n1", "10.77.0.2");

	port(a, "x", 100);
	near(a, "x", "n1", "y");
	near(a, "x", "n9", "y");
	port(b, "y", 100);
	near(b, "y", "n0", "other");
	put(&p, a);
	put(&p, b);
	assert_int_equal(drawing_make(&p, &d), 0);
	assert_int_equal(d.cables, 0);
}

/*   n0.x ──┐
 *   n1.y ──┼── 10.0.0.1 (two addresses, seen by both nodes)   */
static void where_more_than_two_meet_is_a_switch(void **state)
{
	_cleanup_(picture_close) struct picture p = { 0 };
	_cleanup_(drawing_close) struct drawing d = { 0 };
	struct report *a = report_of("n0", "10.77.0.1"), *b = report_of("n1", "10.77.0.2");

	port(a, "x", 100);
	near(a, "x", "n1", "y");
	host(a, "x", "10.0.0.1", "02:00:00:00:00:01");
	host(a, "x", "fe80::1", "02:00:00:00:00:01");
	port(b, "y", 200);
	near(b, "y", "n0", "x");
	host(b, "y", "fd00::1", "02:00:00:00:00:01");
	host(b, "y", "10.0.0.1", "02:00:00:00:00:01");
	put(&p, a);
	put(&p, b);
	assert_int_equal(drawing_make(&p, &d), 0);
	assert_int_equal(d.machines, 4);
	assert_int_equal(d.machine[machine_named(&d, "n0.x")].kind, PICTURE_SWITCH);
	assert_int_equal(cable_between(&d, "n0", "n0.x")->rate_mbps, 100);
	assert_int_equal(cable_between(&d, "n1", "n0.x")->rate_mbps, 200);
	assert_non_null(cable_between(&d, "h10.0.0.1", "n0.x"));
	assert_int_equal(d.cables, 3);
}

static void ports_that_are_down_have_no_link(void **state)
{
	_cleanup_(picture_close) struct picture p = { 0 };
	_cleanup_(drawing_close) struct drawing d = { 0 };
	struct report *a = report_of("n0", "10.77.0.1");

	port(a, "x", 100)->up = false;
	host(a, "x", "10.0.0.1", "02:00:00:00:00:01");
	put(&p, a);
	assert_int_equal(drawing_make(&p, &d), 0);
	assert_int_equal(d.machines, 1);
	assert_int_equal(d.cables, 0);
}

/* Whose port is down there has no address that anybody could know it by. */
static void a_node_is_no_host_by_its_mac_either(void **state)
{
	_cleanup_(picture_close) struct picture p = { 0 };
	_cleanup_(drawing_close) struct drawing d = { 0 };
	struct report *a = report_of("n0", "10.77.0.1"), *b = report_of("n1", "10.77.0.2");

	port(a, "x", 100);
	host(a, "x", "10.9.9.9", "02:00:00:00:00:09");
	port(b, "y", 100)->up = false;
	snprintf(b->port[0].mac, sizeof(b->port[0].mac), "02:00:00:00:00:09");
	put(&p, a);
	put(&p, b);
	assert_int_equal(drawing_make(&p, &d), 0);
	assert_int_equal(d.cables, 0);
}

/* Simulators take letters, digits, dots and _, and 31 of them. */
static void names_are_what_simulators_take(void **state)
{
	_cleanup_(picture_close) struct picture p = { 0 };
	_cleanup_(drawing_close) struct drawing d = { 0 };
	const char *const name[] = { "a-b", "a_b", "rack-17-of-the-north-hall-switch-1",
				     "rack-17-of-the-north-hall-switch-2" };

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		put(&p, report_of(name[i], "10.77.0.1"));
	assert_int_equal(drawing_make(&p, &d), 0);
	for (unsigned int i = 0; i < d.machines; i++) {
		assert_null(strchr(d.machine[i].name, '-'));
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(d.machine[i].name, d.machine[j].name);
	}
}

static void a_node_that_goes_takes_its_links_along(void **state)
{
	_cleanup_(picture_close) struct picture p = { 0 };
	_cleanup_(drawing_close) struct drawing d = { 0 };

	put(&p, report_of("n1", "10.77.0.2"));
	put(&p, report_of("n0", "10.77.0.1"));
	put(&p, report_of("n0", "10.77.0.3")); /* in the place of the one before */
	assert_int_equal(p.nodes, 2);
	assert_int_equal(picture_place(&p, "n1"), 1);
	picture_drop(&p, "n0");
	picture_drop(&p, "n7");
	assert_int_equal(p.nodes, 1);
	assert_int_equal(picture_place(&p, "n0"), -1);
	assert_int_equal(picture_place(&p, "n1"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_comes_as_it_went),
		cmocka_unit_test(what_is_no_hello_is_refused),
		cmocka_unit_test(one_node_of_another_cluster_is_told_as_long_as_it_is_heard),
		cmocka_unit_test(who_is_silent_is_forgotten),
		cmocka_unit_test(a_flood_of_names_has_an_end),
		cmocka_unit_test(a_report_comes_as_it_went),
		cmocka_unit_test(the_largest_report_fits),
		cmocka_unit_test(a_report_says_what_a_tenant_would_get),
		cmocka_unit_test(a_report_takes_the_memory_that_it_fills),
		cmocka_unit_test(without_memory_nothing_is_taken),
		cmocka_unit_test(a_report_that_is_wrong_says_what),
		cmocka_unit_test(what_is_not_known_is_left_alone),
		cmocka_unit_test(loads_that_hardly_change_are_no_news),
		cmocka_unit_test(late_ranks_are_news),
		cmocka_unit_test(two_nodes_and_a_host_each),
		cmocka_unit_test(what_one_end_says_alone_does_not_count),
		cmocka_unit_test(where_more_than_two_meet_is_a_switch),
		cmocka_unit_test(ports_that_are_down_have_no_link),
		cmocka_unit_test(a_node_is_no_host_by_its_mac_either),
		cmocka_unit_test(names_are_what_simulators_take),
		cmocka_unit_test(a_node_that_goes_takes_its_links_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
