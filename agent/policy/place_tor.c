// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The first tops of rack. */
#include <stdlib.h>

#include "common/owned.h"
#include "place_private.h"

/* A node that a host behind one switch is behind. */
static bool is_top(const struct graph *g, const struct reach *r, uint32_t machine)
{
	for (uint32_t i = g->arriving_at[machine]; i < g->arriving_at[machine + 1]; i++)
		if (r->leaving[g->link[g->arriving[i]].from] != GRAPH_NONE)
			return true;
	return false;
}

int place_tor(const struct place_problem *p, struct place_tree *ret)
{
	_cleanup_(freep) uint32_t *node = NULL;
	unsigned int nodes, tops = 0;
	int r = place_nodes(p->reach->graph, &node, &nodes);

	if (r < 0)
		return r;
	for (unsigned int i = 0; i < nodes && tops < p->options.nodes_max; i++)
		if (is_top(p->reach->graph, p->reach, node[i]))
			node[tops++] = node[i];
	return place_fit(p, node, tops, ret);
}
