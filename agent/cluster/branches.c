// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "branches.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/policy/place.h"
#include "common/owned.h"

/* Of each machine. */
struct spot {
	bool is_in; /* the tree */
	uint32_t link; /* towards the root */
	unsigned int workers;
};

struct work {
	const struct graph *graph;
	struct spot *spot;
	struct branch *branch;
	unsigned int count;
};

/* Until the first machine that is in the tree: from there on the way is known. */
static void join(struct work *w, const uint32_t *link, uint32_t links)
{
	for (uint32_t i = 0; i < links; i++) {
		struct spot *p = &w->spot[w->graph->link[link[i]].from];

		if (p->is_in)
			return;
		*p = (struct spot){ .is_in = true, .link = link[i], .workers = p->workers };
	}
}

static void add(struct work *w, uint32_t machine, unsigned int depth)
{
	const struct spot *p = &w->spot[machine];

	w->branch[w->count++] = (struct branch){ machine, depth, p->link, p->workers };
	for (uint32_t i = 0; i < w->graph->machines; i++)
		if (w->spot[i].is_in && w->spot[i].link != GRAPH_NONE &&
		    w->graph->link[w->spot[i].link].to == machine)
			add(w, i, depth + 1);
}

int branches_make(const struct network *n, const struct sockaddr_storage *worker,
		  unsigned int workers, uint32_t root, struct branch **ret, unsigned int *ret_count)
{
	_cleanup_(freep) struct spot *spot = calloc(n->graph->machines + 1, sizeof(*spot));
	struct work w = { .graph = n->graph, .spot = spot };

	w.branch = calloc(n->graph->machines + 1, sizeof(*w.branch));
	if (!spot || !w.branch) {
		free(w.branch);
		return -ENOMEM;
	}
	spot[root] = (struct spot){ .is_in = true, .link = GRAPH_NONE };
	for (unsigned int i = 0; i < workers; i++) {
		const uint32_t at = network_worker(n, &worker[i]);
		uint32_t link[GRAPH_PATH_MAX], links = GRAPH_NONE;

		if (at != GRAPH_NONE)
			links = reach_path(n->reach, at, root, PLACE_OPTIONS.seed, link);
		if (links == GRAPH_NONE)
			continue;
		join(&w, link, links);
		spot[at].workers++;
	}
	add(&w, root, 0);
	*ret = w.branch;
	*ret_count = w.count;
	return 0;
}
