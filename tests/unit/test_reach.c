// SPDX-License-Identifier: GPL-2.0-only
/* How far machines are from one another; TALLY_SEED=n runs one random network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "agent/policy/reach.h"
#include "common/owned.h"
#include "random.h"
#include "sim/topology.h"

enum {
	MACHINES_MAX = 12,
	LINKS_MAX = 40,
	NETWORKS = 500,
};

/* graph_distances() counts paths of any length; here they end at GRAPH_PATH_MAX. */
static const char *distances_differ(const struct graph *g, const struct reach *r)
{
	uint32_t *far = calloc(g->machines, sizeof(*far));
	const char *wrong = NULL;

	for (uint32_t to = 0; to < g->machines && !wrong; to++) {
		assert_int_equal(graph_distances(g, to, far), 0);
		for (uint32_t from = 0; from < g->machines; from++)
			if (reach_distance(r, from, to) != far[from])
				wrong = "another distance than graph_distances()";
	}
	free(far);
	return wrong;
}

/* Is it a way from one to the other, and through no host? */
static bool is_way(const struct graph *g, uint32_t from, uint32_t to, const uint32_t *link,
		   uint32_t links)
{
	for (uint32_t i = 0; i < links; i++) {
		if (g->link[link[i]].from != from || (i > 0 && g->machine[from].kind == GRAPH_HOST))
			return false;
		from = g->link[link[i]].to;
	}
	return from == to;
}

static const char *paths_are_wrong(const struct graph *g, const struct reach *r, uint64_t seed)
{
	uint32_t link[GRAPH_PATH_MAX];

	for (uint32_t from = 0; from < g->machines; from++)
		for (uint32_t to = 0; to < g->machines; to++) {
			uint32_t links = reach_path(r, from, to, seed, link);

			if (links != reach_distance(r, from, to))
				return "a path has another length than the distance";
			if (links != GRAPH_NONE && !is_way(g, from, to, link, links))
				return "a path leads elsewhere";
		}
	return NULL;
}

/* Random ways, right and silly ones: each path is one all the same. */
static const char *ways_are_wrong(const struct graph *g, struct reach *r, uint64_t *random)
{
	struct reach_way way[2 * LINKS_MAX];
	unsigned int ways = 0;

	for (unsigned int i = 0; i < 2 * LINKS_MAX && g->links; i++) {
		const uint32_t link = random_below(random, g->links);

		way[ways++] = (struct reach_way){ g->link[link].from,
						  random_below(random, g->machines), link };
	}
	assert_int_equal(reach_ways_set(r, way, ways), 0);
	for (uint32_t from = 0; from < g->machines; from++)
		for (uint32_t to = 0; to < g->machines; to++) {
			uint32_t link[GRAPH_PATH_MAX];
			uint32_t links = reach_path(r, from, to, 1, link);

			if ((links == GRAPH_NONE) != (reach_distance(r, from, to) == GRAPH_NONE))
				return "ways change who is reached";
			if (links != GRAPH_NONE && !is_way(g, from, to, link, links))
				return "a path by ways leads elsewhere";
		}
	return NULL;
}

static const char *what_is_wrong(const struct graph *g, uint64_t seed)
{
	_cleanup_(reach_freep) struct reach *r = NULL;
	const char *wrong;

	assert_int_equal(reach_make(g, &r), 0);
	wrong = distances_differ(g, r);
	if (!wrong)
		wrong = paths_are_wrong(g, r, seed);
	return wrong || g->machines > MACHINES_MAX ? wrong : ways_are_wrong(g, r, &seed);
}

static const char *a_random_network(uint64_t seed)
{
	struct graph_machine machine[MACHINES_MAX] = { 0 };
	struct graph_link link[LINKS_MAX];
	unsigned int machines = 2 + random_below(&seed, MACHINES_MAX - 1), links = 0;
	unsigned int cables = random_below(&seed, LINKS_MAX / 2);
	_cleanup_(graph_freep) struct graph *g = NULL;

	for (unsigned int m = 0; m < machines; m++)
		machine[m].kind = random_below(&seed, 3);
	for (unsigned int i = 0; i < cables; i++) {
		uint32_t a = random_below(&seed, machines), b = random_below(&seed, machines);

		if (a == b)
			continue;
		link[links++] = (struct graph_link){ .from = a, .to = b };
		if (!chance(&seed, 200))
			link[links++] = (struct graph_link){ .from = b, .to = a };
	}
	assert_int_equal(graph_make(machine, machines, link, links, &g), 0);
	return what_is_wrong(g, seed);
}

static void random_networks_are_as_searches_say(void **state)
{
	run_seeds(NETWORKS, a_random_network);
}

static void networks_with_names_are_as_searches_say(void **state)
{
	static const char *const words[] = { "fat-tree:k=4", "leaf-spine", "dragonfly", "tapina" };
	struct why why;

	for (unsigned int i = 0; i < sizeof(words) / sizeof(*words); i++) {
		_cleanup_(topology_freep) struct topology *t = NULL;
		const char *wrong;

		assert_int_equal(topology_shape(words[i], &t, &why), 0);
		wrong = what_is_wrong(t->graph, i);
		if (wrong)
			fail_msg("%s: %s", words[i], wrong);
	}
}

/* Between two pods of a fat-tree of 8 there are 16 shortest paths: seeds find them all. */
static void equal_paths_are_all_taken(void **state)
{
	enum {
		PATHS = 16,
		TIMES = 200
	};
	_cleanup_(topology_freep) struct topology *t = NULL;
	_cleanup_(reach_freep) struct reach *r = NULL;
	uint32_t link[GRAPH_PATH_MAX], taken[PATHS], paths = 0;
	unsigned int times[PATHS] = { 0 };
	struct why why;

	assert_int_equal(topology_shape("fat-tree:k=8", &t, &why), 0);
	assert_int_equal(reach_make(t->graph, &r), 0);
	for (uint64_t seed = 0; seed < PATHS * TIMES; seed++) {
		unsigned int i = 0;

		assert_int_equal(reach_path(r, t->host[0], t->host[127], seed, link), 6);
		/* The third link leads to one of the cores. */
		while (i < paths && taken[i] != link[2])
			i++;
		assert_in_range(i, 0, PATHS - 1);
		if (i == paths)
			taken[paths++] = link[2];
		times[i]++;
	}
	assert_int_equal(paths, PATHS);
	for (unsigned int i = 0; i < PATHS; i++)
		assert_in_range(times[i], TIMES * 3 / 4, TIMES * 5 / 4);
}

static void nothing_leads_further_than_a_packet_lives(void **state)
{
	enum {
		LENGTH = GRAPH_PATH_MAX + 8
	};
	struct graph_machine machine[LENGTH] = { 0 };
	struct graph_link link[LENGTH];
	_cleanup_(graph_freep) struct graph *g = NULL;
	_cleanup_(reach_freep) struct reach *r = NULL;
	uint32_t path[GRAPH_PATH_MAX];

	for (uint32_t m = 0; m < LENGTH; m++) {
		machine[m].kind = GRAPH_ROUTER;
		link[m] = (struct graph_link){ .from = m, .to = (m + 1) % LENGTH };
	}
	assert_int_equal(graph_make(machine, LENGTH, link, LENGTH - 1, &g), 0);
	assert_int_equal(reach_make(g, &r), 0);
	for (uint32_t to = 0; to < LENGTH; to++) {
		uint32_t links = reach_path(r, 0, to, 1, path);

		assert_true(links == reach_distance(r, 0, to));
		assert_true(links == (to <= REACH_LINKS_MAX ? to : GRAPH_NONE));
	}
}

/* Two hosts with so many switches in a row between them, by ways as without. */
static void the_longest_path_has_as_many_links_as_a_packet_lives(void **state)
{
	enum {
		SWITCHES = REACH_LINKS_MAX + 1,
		MACHINES = SWITCHES + 2,
	};
	struct graph_machine machine[MACHINES] = { 0 };
	struct graph_link link[2 * (MACHINES - 1)];
	_cleanup_(graph_freep) struct graph *g = NULL;
	_cleanup_(reach_freep) struct reach *r = NULL;
	struct reach_way way[SWITCHES];
	uint32_t path[GRAPH_PATH_MAX];

	for (uint32_t m = 0; m + 1 < MACHINES; m++) {
		machine[m].kind = m ? GRAPH_ROUTER : GRAPH_HOST;
		link[2 * m] = (struct graph_link){ .from = m, .to = m + 1 };
		link[2 * m + 1] = (struct graph_link){ .from = m + 1, .to = m };
		if (m > 0)
			way[m - 1] = (struct reach_way){ m, MACHINES - 1, 2 * m };
	}
	assert_int_equal(graph_make(machine, MACHINES, link, 2 * (MACHINES - 1), &g), 0);
	assert_int_equal(reach_make(g, &r), 0);
	assert_int_equal(reach_distance(r, 0, MACHINES - 1), GRAPH_PATH_MAX);
	assert_int_equal(reach_path(r, 0, MACHINES - 1, 1, path), GRAPH_PATH_MAX);
	assert_int_equal(reach_ways_set(r, way, SWITCHES), 0);
	assert_int_equal(reach_path(r, 0, MACHINES - 1, 1, path), GRAPH_PATH_MAX);
	assert_true(is_way(g, 0, MACHINES - 1, path, GRAPH_PATH_MAX));
}

/* Two hosts, 0 and 5; between their switches, 1 and 4, two others, 2 and 3. */
enum {
	TO_LEFT = 2, /* the link from 1 to 2; the link back is behind each */
	TO_RIGHT = 4,
	FROM_LEFT = 6,
	FROM_RIGHT = 8,
	DIAMOND_LINKS = 12,
};

static struct graph *diamond(void)
{
	static const struct graph_machine machine[] = {
		{ .kind = GRAPH_HOST }, { .kind = GRAPH_NODE }, { .kind = GRAPH_NODE },
		{ .kind = GRAPH_NODE }, { .kind = GRAPH_NODE }, { .kind = GRAPH_HOST },
	};
	static const uint32_t cable[][2] = { { 0, 1 }, { 1, 2 }, { 1, 3 },
					     { 2, 4 }, { 3, 4 }, { 4, 5 } };
	struct graph_link link[DIAMOND_LINKS];
	struct graph *g;

	for (unsigned int i = 0; i < DIAMOND_LINKS; i++)
		link[i] = (struct graph_link){ .from = cable[i / 2][i % 2],
					       .to = cable[i / 2][!(i % 2)],
					       .capacity = 1 };
	assert_int_equal(graph_make(machine, 6, link, DIAMOND_LINKS, &g), 0);
	return g;
}

/* Which of the two in the middle are passed by paths of 100 seeds: bits 1 and 2. */
static unsigned int passed(const struct reach *r, uint32_t from, uint32_t to, uint32_t links)
{
	unsigned int middle = 0;

	for (uint64_t seed = 0; seed < 100; seed++) {
		uint32_t link[GRAPH_PATH_MAX];

		assert_int_equal(reach_path(r, from, to, seed, link), links);
		assert_true(is_way(r->graph, from, to, link, links));
		for (uint32_t i = 0; i < links; i++) {
			const uint32_t m = r->graph->link[link[i]].to;

			middle |= m == 2 || m == 3 ? 1u << (m - 2) : 0;
		}
	}
	return middle;
}

static void paths_follow_ways(void **state)
{
	_cleanup_(graph_freep) struct graph *g = diamond();
	_cleanup_(reach_freep) struct reach *r = NULL;
	const struct reach_way right = { 1, 5, TO_RIGHT }, left = { 1, 5, TO_LEFT };
	const struct reach_way longer[] = { left, { 2, 5, TO_LEFT + 1 } };
	const struct reach_way both[] = { right, left };
	const struct reach_way no_leaver = { 1, 5, FROM_RIGHT }, no_link = { 1, 5, DIAMOND_LINKS },
			       to_a_host = { 1, 5, 1 };

	assert_int_equal(reach_make(g, &r), 0);
	assert_int_equal(passed(r, 0, 5, 4), 3);
	assert_int_equal(reach_ways_set(r, &right, 1), 0);
	assert_int_equal(passed(r, 0, 5, 4), 2);
	assert_int_equal(passed(r, 5, 0, 4), 3); /* the way back is another one */
	assert_int_equal(passed(r, 0, 4, 3), 3); /* so is that to the switch itself */
	assert_int_equal(reach_ways_set(r, both, 2), 0);
	assert_int_equal(passed(r, 0, 5, 4), 3);
	/* Round in circles, and to another host: as if there were no way. */
	assert_int_equal(reach_ways_set(r, longer, 2), 0);
	assert_int_equal(passed(r, 0, 5, 4), 3);
	assert_int_equal(reach_ways_set(r, &to_a_host, 1), 0);
	assert_int_equal(passed(r, 0, 5, 4), 3);
	assert_int_equal(reach_ways_set(r, &no_leaver, 1), -EINVAL);
	assert_int_equal(reach_ways_set(r, &no_link, 1), -EINVAL);
	assert_int_equal(reach_ways_set(r, NULL, 0), 0);
	assert_int_equal(passed(r, 0, 5, 4), 3);
}

/* Two diamonds in a row, where ways know two at the first switch of each. */
static void equal_ways_of_two_stages_fall_apart(void **state)
{
	enum {
		CABLES = 10,
		SEEDS = 400
	};
	static const uint32_t cable[CABLES][2] = {
		{ 0, 1 }, { 1, 2 }, { 1, 3 }, { 2, 4 }, { 3, 4 },
		{ 4, 5 }, { 4, 6 }, { 5, 7 }, { 6, 7 }, { 7, 8 }
	};
	static const struct reach_way way[] = {
		{ 1, 8, 2 }, { 1, 8, 4 }, { 4, 8, 10 }, { 4, 8, 12 }
	};
	struct graph_machine machine[9] = { 0 };
	struct graph_link link[2 * CABLES];
	_cleanup_(graph_freep) struct graph *g = NULL;
	_cleanup_(reach_freep) struct reach *r = NULL;
	unsigned int times[4] = { 0 };

	for (uint32_t m = 1; m < 8; m++)
		machine[m].kind = GRAPH_ROUTER;
	for (unsigned int i = 0; i < 2 * CABLES; i++)
		link[i] = (struct graph_link){ .from = cable[i / 2][i % 2],
					       .to = cable[i / 2][!(i % 2)] };
	assert_int_equal(graph_make(machine, 9, link, 2 * CABLES, &g), 0);
	assert_int_equal(reach_make(g, &r), 0);
	assert_int_equal(reach_ways_set(r, way, 4), 0);
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint32_t path[GRAPH_PATH_MAX];

		assert_int_equal(reach_path(r, 0, 8, seed, path), 6);
		times[2 * (path[1] == 4) + (path[3] == 12)]++;
	}
	for (unsigned int i = 0; i < 4; i++)
		assert_in_range(times[i], SEEDS / 4 * 2 / 3, SEEDS / 4 * 4 / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_networks_are_as_searches_say),
		cmocka_unit_test(networks_with_names_are_as_searches_say),
		cmocka_unit_test(equal_paths_are_all_taken),
		cmocka_unit_test(paths_follow_ways),
		cmocka_unit_test(nothing_leads_further_than_a_packet_lives),
		cmocka_unit_test(the_longest_path_has_as_many_links_as_a_packet_lives),
		cmocka_unit_test(equal_ways_of_two_stages_fall_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
