// SPDX-License-Identifier: GPL-2.0-only
/* The rate of a route where nodes let pass what is too much for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/bench/past.h"

enum {
	SWITCHES = 3,
	WORKERS = 8,
	ROOT = SWITCHES,
	MACHINES = SWITCHES + 1 + WORKERS,
	LINKS = 2 * (SWITCHES + WORKERS),
};

/*
 * GRID's example (figure 1, doi 10.1109/TNET.2023.3244794): three switches that add 9 have four,
 * two and two workers, and a link of 3 to the root, which takes in 9.
 */
static double rate_with(double node, double *ret_strict)
{
	static const uint32_t behind[WORKERS] = { 0, 0, 0, 0, 1, 1, 2, 2 };
	static const double share = 1, root_room = 9;
	static const uint32_t root = ROOT, nodes[] = { 0, 1, 2 };
	const struct route_options o = { .paths_max = 1, .nodes_max = 3, .draws = 1 };
	double node_room[] = { node, node, node }, rate;
	struct graph_machine machine[MACHINES] = { { GRAPH_NODE, 0 },
						   { GRAPH_NODE, 0 },
						   { GRAPH_NODE, 0 } };
	struct graph_link link[LINKS];
	uint32_t worker[WORKERS];
	struct route_problem p = { .worker = worker,
				   .root = &root,
				   .node = nodes,
				   .workers = WORKERS,
				   .roots = 1,
				   .nodes = SWITCHES,
				   .share = &share,
				   .root_room = &root_room,
				   .node_room = node_room };
	struct graph *g;
	struct route *r;

	for (uint32_t i = 0; i < LINKS / 2; i++) {
		uint32_t from = i < SWITCHES ? i : i + 1,
			 to = i < SWITCHES ? ROOT : behind[i - SWITCHES];

		link[2 * i] = (struct graph_link){ from, to, 3, 0 };
		link[2 * i + 1] = (struct graph_link){ to, from, 3, 0 };
		if (i >= SWITCHES)
			worker[i - SWITCHES] = from;
	}
	assert_int_equal(graph_make(machine, MACHINES, link, LINKS, &g), 0);
	p.graph = g;
	assert_int_equal(route_nearest(&p, &o, &r), 0);
	*ret_strict = r->rate;
	rate = past_rate(&p, r);
	route_free(r);
	graph_free(g);
	return rate;
}

static void what_is_too_much_goes_past(void **state)
{
	double strict;

	assert_float_equal(rate_with(9, &strict), 9.75 / 4, 1e-6);
	assert_float_equal(strict, 9.0 / 4, 1e-6);
}

/* A switch that can add all bears what it bears anyway: here the links do, at 3. */
static void what_a_node_can_add_is_added(void **state)
{
	double strict;

	assert_float_equal(rate_with(12, &strict), 3, 1e-6);
	assert_float_equal(strict, 3, 1e-6);
}

/* Next to nothing is summed: four workers share a link of 3. */
static void nodes_without_room_are_routers(void **state)
{
	double strict;

	assert_float_equal(rate_with(1e-6, &strict), 0.75, 1e-5);
	assert_true(strict < 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_too_much_goes_past),
		cmocka_unit_test(what_a_node_can_add_is_added),
		cmocka_unit_test(nodes_without_room_are_routers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
