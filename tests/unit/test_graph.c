// SPDX-License-Identifier: GPL-2.0-only
/* Networks as policies see them; TALLY_SEED=n runs one random network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/graph.h"
#include "common/owned.h"
#include "random.h"

enum {
	MACHINES_MAX = 8,
	LINKS_MAX = 20,
	PATHS_MAX = 4096, /* more than there are in any of the random networks */
	NETWORKS = 500,
};

/* --- an obvious version ---------------------------------------------------------------------- */

/* All simple paths, by trying all links in depth. */
struct all {
	const struct graph *g;
	uint32_t to;
	bool been[MACHINES_MAX];
	struct graph_path now;
	unsigned int count;
	struct graph_path path[PATHS_MAX];
};

static void all_from(struct all *a, uint32_t machine)
{
	if (machine == a->to) {
		assert_true(a->count < PATHS_MAX);
		a->path[a->count++] = a->now;
		return;
	}
	if (a->now.links > 0 && a->g->machine[machine].kind == GRAPH_HOST)
		return;
	a->been[machine] = true;
	for (uint32_t i = 0; i < a->g->links; i++) {
		if (a->g->link[i].from != machine || a->been[a->g->link[i].to])
			continue;
		a->now.link[a->now.links++] = i;
		all_from(a, a->g->link[i].to);
		a->now.links--;
	}
	a->been[machine] = false;
}

static int by_order(const void *a, const void *b) { return graph_path_compare(a, b); }

/* --- random networks ------------------------------------------------------------------------- */

static struct graph *random_graph(uint64_t *random)
{
	struct graph_machine machine[MACHINES_MAX] = { 0 };
	struct graph_link link[LINKS_MAX] = { 0 };
	unsigned int machines = 2 + random_below(random, MACHINES_MAX - 1);
	unsigned int links = random_below(random, LINKS_MAX + 1);
	struct graph *g;

	for (unsigned int n = 0; n < machines; n++)
		machine[n].kind = chance(random, 200) ? GRAPH_HOST : GRAPH_ROUTER;
	for (unsigned int i = 0; i < links; i++) {
		link[i].from = random_below(random, machines);
		link[i].to = (link[i].from + 1 + random_below(random, machines - 1)) % machines;
	}
	assert_int_equal(graph_make(machine, machines, link, links, &g), 0);
	return g;
}

static const char *paths_are_those_of_the_obvious_version(uint64_t seed)
{
	static struct graph_path path[PATHS_MAX];
	static struct all all;
	_cleanup_(graph_freep) struct graph *g = NULL;
	uint64_t random = seed;
	uint32_t distance[MACHINES_MAX];
	unsigned int from, few, count;

	g = random_graph(&random);
	memset(&all, 0, sizeof(all));
	all.g = g;
	from = random_below(&random, g->machines);
	all.to = random_below(&random, g->machines);
	all_from(&all, from);
	qsort(all.path, all.count, sizeof(*all.path), by_order);
	count = graph_paths(g, from, all.to, PATHS_MAX, path);
	if (count != all.count)
		return "there are more or fewer paths";
	for (unsigned int i = 0; i < count; i++)
		if (graph_path_compare(&path[i], &all.path[i]) != 0)
			return "another path, or another order";
	few = random_below(&random, 5);
	memset(path, 0xff, sizeof(path));
	if ((unsigned int)graph_paths(g, from, all.to, few, path) != (few < count ? few : count))
		return "not as many paths as were wanted";
	for (unsigned int i = 0; i < few && i < count; i++)
		if (graph_path_compare(&path[i], &all.path[i]) != 0)
			return "few paths are not the first ones";
	assert_int_equal(graph_distances(g, all.to, distance), 0);
	if (distance[from] != (count ? all.path[0].links : GRAPH_NONE))
		return "the distance is not that of the first path";
	return NULL;
}

static void paths_are_all_in_their_order(void **state)
{
	run_seeds(NETWORKS, paths_are_those_of_the_obvious_version);
}

/* --- small networks -------------------------------------------------------------------------- */

/* Two hosts with two routers between them, every cable both ways: links 2c and 2c + 1. */
static struct graph *diamond(void)
{
	static const struct graph_machine machine[] = {
		{ GRAPH_HOST, 0 },
		{ GRAPH_NODE, 64 },
		{ GRAPH_ROUTER, 0 },
		{ GRAPH_HOST, 0 },
	};
	static const uint32_t cable[][2] = { { 0, 1 }, { 0, 2 }, { 1, 3 }, { 2, 3 }, { 1, 2 } };
	struct graph_link link[10];
	struct graph *g;

	for (unsigned int c = 0; c < 5; c++) {
		link[2 * c] = (struct graph_link){ cable[c][0], cable[c][1], 100, 30 };
		link[2 * c + 1] = (struct graph_link){ cable[c][1], cable[c][0], 100, 130 };
	}
	assert_int_equal(graph_make(machine, 4, link, 10, &g), 0);
	return g;
}

static void path_is(const struct graph_path *path, unsigned int links, const uint32_t *link)
{
	assert_int_equal(path->links, links);
	assert_memory_equal(path->link, link, links * sizeof(*link));
}

static void short_paths_come_first_then_low_links(void **state)
{
	static const uint32_t want[4][3] = { { 0, 4 }, { 2, 6 }, { 0, 8, 6 }, { 2, 9, 4 } };
	_cleanup_(graph_freep) struct graph *g = diamond();
	struct graph_path path[5];

	assert_int_equal(graph_paths(g, 0, 3, 5, path), 4);
	path_is(&path[0], 2, want[0]);
	path_is(&path[1], 2, want[1]);
	path_is(&path[2], 3, want[2]);
	path_is(&path[3], 3, want[3]);
}

/* From router to router there is one cable, and no way by a host. */
static void nothing_goes_through_a_host(void **state)
{
	static const uint32_t want[] = { 8 };
	_cleanup_(graph_freep) struct graph *g = diamond();
	struct graph_path path[5];

	assert_int_equal(graph_paths(g, 1, 2, 5, path), 1);
	path_is(&path[0], 1, want);
}

static void a_machine_is_no_link_from_itself(void **state)
{
	_cleanup_(graph_freep) struct graph *g = diamond();
	struct graph_path path[2];
	uint32_t distance[4];

	assert_int_equal(graph_paths(g, 3, 3, 2, path), 1);
	assert_int_equal(path[0].links, 0);
	assert_int_equal(graph_distances(g, 3, distance), 0);
	assert_int_equal(distance[3], 0);
	assert_int_equal(distance[0], 2);
}

static void room_is_what_the_load_leaves(void **state)
{
	_cleanup_(graph_freep) struct graph *g = diamond();

	assert_true(graph_room(&g->link[0]) == 70);
	assert_true(graph_room(&g->link[1]) == 0);
}

/* So many links in a row, each one way. */
static void a_row(unsigned int links, int paths)
{
	_cleanup_(graph_freep) struct graph *g = NULL;
	struct graph_machine machine[GRAPH_PATH_MAX + 2] = { 0 };
	struct graph_link link[GRAPH_PATH_MAX + 1] = { 0 };
	struct graph_path path[2];
	uint32_t distance[GRAPH_PATH_MAX + 2];

	for (unsigned int i = 0; i < links; i++) {
		machine[i + 1].kind = GRAPH_ROUTER;
		link[i] = (struct graph_link){ .from = i, .to = i + 1 };
	}
	assert_int_equal(graph_make(machine, links + 1, link, links, &g), 0);
	assert_int_equal(graph_paths(g, 0, links, 2, path), paths);
	assert_int_equal(graph_paths(g, links, 0, 2, path), 0);
	assert_int_equal(graph_distances(g, links, distance), 0);
	assert_int_equal(distance[0], links);
	assert_int_equal(graph_distances(g, 0, distance), 0);
	assert_int_equal(distance[links], GRAPH_NONE);
}

static void a_path_has_at_most_64_links(void **state)
{
	a_row(GRAPH_PATH_MAX, 1);
	a_row(GRAPH_PATH_MAX + 1, 0);
}

static void networks_that_cannot_be_are_refused(void **state)
{
	struct graph_machine machine[2] = { { GRAPH_NODE, 8 }, { GRAPH_ROUTER, 0 } };
	struct graph_link link = { 0, 1, 10, 0 };
	struct graph *g = NULL;

#define REFUSED(field, value)                                                    \
	do {                                                                     \
		__typeof__(field) was = field;                                   \
		field = (value);                                                 \
		assert_int_equal(graph_make(machine, 2, &link, 1, &g), -EINVAL); \
		field = was;                                                     \
	} while (0)
	REFUSED(link.from, 2);
	REFUSED(link.to, 2);
	REFUSED(link.to, 0);
	REFUSED(link.capacity, -1);
	REFUSED(link.capacity, INFINITY);
	REFUSED(link.load, NAN);
	REFUSED(machine[1].slots, 1);
	memset(&machine[1].kind, 0x7f, sizeof(machine[1].kind));
	assert_int_equal(graph_make(machine, 2, &link, 1, &g), -EINVAL);
	assert_int_equal(graph_make(machine, GRAPH_MACHINES_MAX + 1, &link, 1, &g), -E2BIG);
	assert_int_equal(graph_make(machine, 2, &link, GRAPH_LINKS_MAX + 1, &g), -E2BIG);
	assert_null(g);
}

static void machines_that_are_not_there_are_refused(void **state)
{
	_cleanup_(graph_freep) struct graph *g = diamond();
	_cleanup_(graph_freep) struct graph *empty = NULL;
	struct graph_path path;
	uint32_t distance[4];

	assert_int_equal(graph_distances(g, 4, distance), -EINVAL);
	assert_int_equal(graph_paths(g, 4, 0, 1, &path), -EINVAL);
	assert_int_equal(graph_paths(g, 0, 4, 1, &path), -EINVAL);
	assert_int_equal(graph_paths(g, 0, 3, 0, &path), 0);
	assert_int_equal(graph_make(NULL, 0, NULL, 0, &empty), 0);
	assert_int_equal(graph_distances(empty, 0, distance), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_all_in_their_order),
		cmocka_unit_test(short_paths_come_first_then_low_links),
		cmocka_unit_test(nothing_goes_through_a_host),
		cmocka_unit_test(a_machine_is_no_link_from_itself),
		cmocka_unit_test(room_is_what_the_load_leaves),
		cmocka_unit_test(a_path_has_at_most_64_links),
		cmocka_unit_test(networks_that_cannot_be_are_refused),
		cmocka_unit_test(machines_that_are_not_there_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
