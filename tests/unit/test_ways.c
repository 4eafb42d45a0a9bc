// SPDX-License-Identifier: GPL-2.0-only
/* The paths that routing gives: agent/cluster/ways.h, network.h and branches.h. */
#include "agent/cluster/branches.h"
#include "agent/cluster/ways.h"
#include "agent/policy/place.h"
#include "cluster_world.h"
#include "common/owned.h"

static void route(struct report *r, const char *to, const char *port)
{
	struct report_route *x = ADD(r->route, r->routes);

	snprintf(x->to, sizeof(x->to), "%s", to);
	snprintf(x->port, sizeof(x->port), "%s", port);
}

/* By which ports packets for a machine leave a node, with spaces between them. */
static const char *leave_by(const struct picture *p, const char *at, const char *to)
{
	static char text[64];
	_cleanup_(drawing_close) struct drawing d = { 0 };
	_cleanup_(freep) struct way *way = NULL;
	unsigned int ways = 0;

	assert_int_equal(drawing_make(p, &d), 0);
	assert_int_equal(ways_make(p, &d, &way, &ways), 0);
	*text = '\0';
	for (unsigned int i = 0; i < ways; i++) {
		const struct picture_cable *c = &d.cable[way[i].cable];

		assert_int_equal(c->end[way[i].end], way[i].at);
		if ((int)way[i].at == machine_named(&d, at) &&
		    (int)way[i].to == machine_named(&d, to))
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				 *text ? " " : "", c->port[way[i].end]);
	}
	return text;
}

/*   10.0.1.1 ── n0 ═══ n1 ── 10.0.2.1    two cables between the nodes: a and b   */
static void ways_are_those_of_the_longest_prefixes(void **state)
{
	_cleanup_(picture_close) struct picture p = { 0 };
	struct report *n0 = report_of("n0", "10.77.0.1"), *n1 = report_of("n1", "10.77.0.2");

	port(n0, "w", 100);
	host(n0, "w", "10.0.1.1", "02:00:00:00:00:01");
	port(n1, "w", 100);
	host(n1, "w", "10.0.2.1", "02:00:00:00:00:02");
	for (unsigned int i = 0; i < 2; i++) {
		const char name[] = { (char)('a' + i), '\0' };

		port(n0, name, 100);
		port(n1, name, 100);
		near(n0, name, "n1", name);
		near(n1, name, "n0", name);
	}
	put(&p, n0);
	put(&p, n1);
	assert_string_equal(leave_by(&p, "n0", "n1"), "");
	route(n0, "0.0.0.0/0", "a");
	assert_string_equal(leave_by(&p, "n0", "n1"), "a");
	route(n0, "10.0.0.0/15", "b");
	assert_string_equal(leave_by(&p, "n0", "n1"), "a");
	assert_string_equal(leave_by(&p, "n0", "h10.0.2.1"), "b");
	route(n0, "10.0.2.0/23", "a");
	route(n0, "10.0.2.0/23", "b");
	assert_string_equal(leave_by(&p, "n0", "h10.0.2.1"), "a b");
	assert_string_equal(leave_by(&p, "n0", "h10.0.1.1"), "b");
	route(n0, "10.0.2.1/32", ""); /* by an interface that is no port */
	assert_string_equal(leave_by(&p, "n0", "h10.0.2.1"), "");
	assert_string_equal(leave_by(&p, "n1", "n0"), "");
	/* What is none leads nowhere, and the others stay. */
	route(n1, "10.77.0.1/33", "b");
	route(n1, "10.77.0.1/32x", "b");
	route(n1, "10.77.0.1", "b");
	route(n1, "north/3", "b");
	route(n1, "fd00::/8", "b");
	assert_string_equal(leave_by(&p, "n1", "n0"), "");
	route(n1, "10.77.0.0/31", "a");
	assert_string_equal(leave_by(&p, "n1", "n0"), "a");
}

/* Each machine with its workers, behind as many dots as it is cables away. */
static const char *tree_of(const struct picture *p, const char *root, const char *const *worker,
			   unsigned int workers)
{
	static char text[256];
	_cleanup_(network_close) struct network n = { 0 };
	_cleanup_(freep) struct branch *b = NULL;
	struct sockaddr_storage at[8];
	unsigned int count = 0;

	assert_int_equal(network_make(p, &n), 0);
	for (unsigned int i = 0; i < workers; i++)
		assert_int_equal(address_parse(worker[i], 0, &at[i]), 0);
	assert_int_equal(branches_make(&n, at, workers, network_node(&n, root), &b, &count), 0);
	*text = '\0';
	for (unsigned int i = 0; i < count; i++) {
		const char *name = n.drawing.machine[b[i].machine].name;

		assert_true(i ? n.graph->link[b[i].link].from == b[i].machine
			      : b[i].link == GRAPH_NONE);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*s%s:%u",
			 i ? " " : "", (int)b[i].depth, "......", name, b[i].workers);
	}
	return text;
}

/*   10.0.0.1 ── n0 ── n1 ── 10.0.1.1      in a ring of four, a host at each:   n0 n1 n3 n2   */
static struct picture ring(void)
{
	struct picture p = { 0 };
	char text[32];

	for (unsigned int i = 0; i < 4; i++) {
		const unsigned int beside[] = { (i + 1) % 4, (i + 3) % 4 };
		struct report *r;

		snprintf(text, sizeof(text), "10.77.0.%u", i + 1);
		r = report_of((char[]){ 'n', (char)('0' + i), '\0' }, text);
		port(r, "w", 100);
		snprintf(text, sizeof(text), "10.0.%u.1", i);
		host(r, "w", text, "");
		for (unsigned int k = 0; k < 2; k++) {
			const char other = (char)('0' + beside[k]);

			port(r, (char[]){ 'p', other, '\0' }, 100);
			near(r, (char[]){ 'p', other, '\0' }, (char[]){ 'n', other, '\0' },
			     (char[]){ 'p', (char)('0' + i), '\0' });
		}
		put(&p, r);
	}
	return p;
}

static void a_tree_is_what_paths_of_workers_are_together(void **state)
{
	static const char *const worker[] = { "10.0.2.1:40000", "10.0.2.1:40001", "10.0.1.1:40000",
					      "10.0.0.1:40000", "10.9.9.9:40000" };
	_cleanup_(picture_close) struct picture p = ring();

	assert_string_equal(tree_of(&p, "n0", worker, 0), "n0:0");
	/* n2 is two cables away by either neighbour, until routes say by which. */
	route(p.report[2], "10.77.0.0/24", "p3");
	assert_string_equal(tree_of(&p, "n0", worker, 5),
			    "n0:0 .n1:0 ..h10.0.1.1:1 .n3:0 ..n2:0 ...h10.0.2.1:2 .h10.0.0.1:1");
	p.report[2]->routes = 0;
	route(p.report[2], "10.77.0.0/24", "p1");
	assert_string_equal(tree_of(&p, "n0", worker, 4),
			    "n0:0 .n1:0 ..n2:0 ...h10.0.2.1:2 ..h10.0.1.1:1 .h10.0.0.1:1");
	/* Round in circles: as if there were no routes. */
	route(p.report[1], "10.77.0.0/24", "p2");
	assert_string_equal(tree_of(&p, "n0", worker, 4),
			    "n0:0 .n1:0 ..n2:0 ...h10.0.2.1:2 ..h10.0.1.1:1 .h10.0.0.1:1");
}

/* Of seven hosts behind n2, some send by n1 and some by n3: the tree has one way, and no dead end.
 */
static void where_paths_part_one_is_drawn(void **state)
{
	_cleanup_(picture_close) struct picture p = ring();
	_cleanup_(network_close) struct network n = { 0 };
	_cleanup_(freep) struct branch *b = NULL;
	uint32_t link[GRAPH_PATH_MAX], by_n1 = 0, workers = 0;
	struct sockaddr_storage at[7];
	unsigned int count = 0;
	char text[32];

	for (unsigned int i = 0; i < 7; i++) {
		snprintf(text, sizeof(text), "10.0.2.%u:40000", i + 1);
		assert_int_equal(address_parse(text, 0, &at[i]), 0);
		*strchr(text, ':') = '\0';
		if (i)
			host(p.report[2], "w", text, "");
	}
	route(p.report[2], "10.77.0.0/24", "p1");
	route(p.report[2], "10.77.0.0/24", "p3");
	assert_int_equal(network_make(&p, &n), 0);
	for (unsigned int i = 0; i < 7; i++) {
		const uint32_t from = network_worker(&n, &at[i]), to = network_node(&n, "n0");
		const uint32_t links = reach_path(n.reach, from, to, PLACE_OPTIONS.seed, link);

		assert_int_equal(links, 4); /* the switch before n2 is one */
		by_n1 += n.graph->link[link[links - 1]].from == network_node(&n, "n1");
	}
	assert_in_range(by_n1, 1, 6);
	assert_int_equal(branches_make(&n, at, 7, network_node(&n, "n0"), &b, &count), 0);
	for (unsigned int i = 0; i < count; i++) {
		const bool is_leaf = i + 1 == count || b[i + 1].depth <= b[i].depth;

		assert_true(!is_leaf || b[i].workers);
		workers += b[i].workers;
	}
	assert_int_equal(workers, 7);
}

/* Millions of comparisons are not made. */
static void too_many_routes_are_none(void **state)
{
	_cleanup_(picture_close) struct picture p = { 0 };
	const unsigned int nodes = 400;

	for (unsigned int i = 0; i < nodes; i++) {
		char name[16], own[32];
		struct report *r;

		snprintf(name, sizeof(name), "n%u", i);
		snprintf(own, sizeof(own), "10.77.%u.%u", i / 200, i % 200 + 1);
		r = report_of(name, own);
		port(r, "p", 100);
		near(r, "p", i % 2 ? "n0" : "n1", "p");
		for (unsigned int k = 0; k < REPORT_ROUTES_MAX / 2; k++)
			route(r, "0.0.0.0/0", "p");
		put(&p, r);
	}
	assert_true((uint64_t)nodes * nodes * (REPORT_ROUTES_MAX / 2) > WAYS_STEPS_MAX);
	assert_string_equal(leave_by(&p, "n0", "n1"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways_are_those_of_the_longest_prefixes),
		cmocka_unit_test(where_paths_part_one_is_drawn),
		cmocka_unit_test(a_tree_is_what_paths_of_workers_are_together),
		cmocka_unit_test(too_many_routes_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
