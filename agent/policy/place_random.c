// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Random nodes. */
#include <stdlib.h>

#include "common/owned.h"
#include "place_private.h"
#include "random.h"

int place_random(const struct place_problem *p, struct place_tree *ret)
{
	_cleanup_(freep) uint32_t *node = NULL;
	uint64_t random = p->options.seed;
	unsigned int nodes, taken;
	int r = place_nodes(p->reach->graph, &node, &nodes);

	if (r < 0)
		return r;
	taken = nodes < p->options.nodes_max ? nodes : p->options.nodes_max;
	for (unsigned int i = 0; i < taken; i++) {
		unsigned int k = i + random_bits(&random) % (nodes - i);
		uint32_t moved = node[i];

		node[i] = node[k];
		node[k] = moved;
	}
	return place_fit(p, node, taken, ret);
}
