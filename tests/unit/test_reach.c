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

static const char *what_is_wrong(const struct graph *g, uint64_t seed)
{
	_cleanup_(reach_freep) struct reach *r = NULL;
	const char *wrong;

	assert_int_equal(reach_make(g, &r), 0);
	wrong = distances_differ(g, r);
	return wrong ? wrong : paths_are_wrong(g, r, seed);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_networks_are_as_searches_say),
		cmocka_unit_test(networks_with_names_are_as_searches_say),
		cmocka_unit_test(equal_paths_are_all_taken),
		cmocka_unit_test(nothing_leads_further_than_a_packet_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
