// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which trees are worth weighing for a job. */
#include <errno.h>
#include <stdlib.h>

#include "common/owned.h"
#include "place_private.h"

enum {
	NEAREST_MAX = 16, /* single nodes that are weighed */
};

/* A node, and how many links it is from the root and all workers. */
struct near {
	uint32_t machine, links;
};

static int by_links(const void *a, const void *b)
{
	const struct near *x = a, *y = b;

	if (x->links != y->links)
		return x->links < y->links ? -1 : 1;
	return (x->machine > y->machine) - (x->machine < y->machine);
}

/* Up to GRAPH_NONE, which stays what it is. */
static void add(uint32_t *links, uint32_t more)
{
	*links = *links == GRAPH_NONE || more == GRAPH_NONE ? GRAPH_NONE : *links + more;
}

static uint32_t links_of(const struct place_problem *p, uint32_t job, uint32_t machine)
{
	const struct place_job *j = &p->job[job];
	uint32_t links = 0;

	for (unsigned int w = 0; w < j->workers; w++)
		add(&links, reach_distance(p->reach, j->worker[w], machine));
	if (j->root != GRAPH_NONE)
		add(&links, reach_distance(p->reach, machine, j->root));
	return links;
}

int place_candidates(const struct place_problem *p, uint32_t job, struct place_tree **ret,
		     unsigned int *ret_trees)
{
	_cleanup_(freep) uint32_t *node = NULL;
	_cleanup_(freep) struct near *near = NULL;
	struct place_tree *tree;
	unsigned int nodes;
	int r = place_nodes(p->reach->graph, &node, &nodes);

	if (r < 0)
		return r;
	near = calloc(nodes + 1, sizeof(*near));
	tree = calloc(NEAREST_MAX + 1, sizeof(*tree));
	if (!near || !tree) {
		free(tree);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < nodes; i++)
		near[i] = (struct near){ node[i], links_of(p, job, node[i]) };
	qsort(near, nodes, sizeof(*near), by_links);
	*ret_trees = 1;
	for (unsigned int i = 0; i < nodes && i < NEAREST_MAX && near[i].links != GRAPH_NONE; i++)
		tree[(*ret_trees)++] = place_single(near[i].machine);
	*ret = tree;
	return 0;
}
