// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "common/owned.h"
#include "play_private.h"

/* Links and machines of the topology; links that have failed are left out. */
static int draw(struct play_network *n)
{
	const struct graph *g = n->topology->graph;
	_cleanup_(freep) struct graph_link *link = calloc(g->links + 1, sizeof(*link));
	unsigned int links = 0;
	int r;

	if (!link)
		return -ENOMEM;
	for (uint32_t l = 0; l < g->links; l++) {
		if (n->failed_links[l])
			continue;
		n->origin[links] = l;
		link[links++] = g->link[l];
	}
	reach_free(TAKE_PTR(n->reach));
	graph_free(TAKE_PTR(n->graph));
	n->failed = links < g->links;
	r = graph_make(g->machine, g->machines, link, links, &n->graph);
	if (r == 0)
		r = reach_make(n->graph, &n->reach);
	/* Routers go round what has failed, and nobody knows how. */
	if (r == 0 && !n->failed)
		r = reach_ways_set(n->reach, n->topology->way, n->topology->ways);
	return r;
}

int play_network_open(const struct topology *t, struct play_network *ret)
{
	struct play_network n = { .topology = t };
	int r;

	n.failed_links = calloc(t->graph->links + 1, sizeof(*n.failed_links));
	n.origin = calloc(t->graph->links + 1, sizeof(*n.origin));
	r = n.failed_links && n.origin ? draw(&n) : -ENOMEM;
	if (r < 0) {
		play_network_close(&n);
		return r;
	}
	*ret = n;
	return 0;
}

void play_network_close(struct play_network *n)
{
	reach_free(n->reach);
	graph_free(n->graph);
	free(n->failed_links);
	free(n->origin);
}

int play_network_fail(struct play_network *n, const struct workload_failure *f, bool begins)
{
	const struct graph *g = n->topology->graph;

	for (uint32_t l = 0; l < g->links; l++)
		if (l == f->link || l == (f->link ^ 1) || g->link[l].from == f->machine ||
		    g->link[l].to == f->machine)
			n->failed_links[l] += begins ? 1 : -1;
	return draw(n);
}

int play_network_uses(const struct play_network *n, const struct place_job *job,
		      const struct place_tree *tree, const struct place_options *o,
		      struct fair_use **ret, unsigned int *ret_uses)
{
	const struct place_problem one = {
		.reach = n->reach, .job = job, .jobs = 1, .options = *o
	};
	struct fair_use *use;
	unsigned int uses;
	int r = place_uses(&one, 0, tree, &use, &uses);

	if (r < 0)
		return r;
	for (unsigned int u = 0; u < uses; u++)
		use[u].link = n->origin[use[u].link];
	*ret = use;
	*ret_uses = uses;
	return 0;
}
