// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which nodes sum on the way to a node that is given. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "common/owned.h"
#include "place_private.h"

/* A machine on the way. */
struct spot {
	uint32_t machine;
	unsigned int up; /* the next spot towards the top; of the top, itself */
	unsigned int far; /* links from the top */
	unsigned int streams; /* that come in */
	bool may, sums;
};

struct work {
	const struct place_problem *p;
	const struct place_job *job;
	const bool *may;
	struct spot *spot; /* the top first, and each behind the one that it sends to */
	unsigned int spots;
	unsigned int *of; /* of each machine: its spot; UINT_MAX: it is not on the way */
	unsigned int *begin; /* of each worker: the spot where it is; the same */
};

static unsigned int spot_add(struct work *w, uint32_t machine, unsigned int up)
{
	struct spot *s = &w->spot[w->spots];

	*s = (struct spot){ .machine = machine, .up = up };
	s->far = w->spots ? w->spot[up].far + 1 : 0;
	w->of[machine] = w->spots;
	return w->spots++;
}

/* From where the path meets those before it down to the worker. */
static unsigned int path_add(struct work *w, uint32_t worker)
{
	uint32_t link[GRAPH_PATH_MAX];
	const uint32_t links = reach_path(w->p->reach, worker, w->spot[0].machine,
					  w->p->options.seed, link);
	uint32_t met = 0;
	unsigned int at;

	if (links == GRAPH_NONE)
		return UINT_MAX;
	if (links == 0)
		return 0;
	while (w->of[w->p->reach->graph->link[link[met]].from] == UINT_MAX && met + 1 < links)
		met++;
	at = w->of[w->p->reach->graph->link[link[met]].from];
	if (at == UINT_MAX) { /* nobody has come this way before */
		at = 0;
		met = links;
	}
	while (met-- > 0)
		at = spot_add(w, w->p->reach->graph->link[link[met]].from, at);
	return at;
}

/* From the far ends on: who gets two streams at least makes one of them. Spots are behind those
 * that they send to, so the last ones come first. */
static void streams_count(struct work *w)
{
	for (unsigned int i = 0; i < w->spots; i++)
		w->spot[i].streams = 0;
	for (unsigned int k = 0; k < w->job->workers; k++)
		if (w->begin[k] != UINT_MAX)
			w->spot[w->begin[k]].streams++;
	for (unsigned int i = w->spots; i-- > 1;) {
		struct spot *s = &w->spot[i];

		s->sums = s->may && s->streams > 1;
		w->spot[s->up].streams += s->sums ? 1 : s->streams;
	}
}

/* The first spot that sums, from this one on. */
static unsigned int next_sum(const struct work *w, unsigned int at)
{
	while (at && !w->spot[at].sums)
		at = w->spot[at].up;
	return at;
}

static int by_far(const void *a, const void *b)
{
	const struct spot *const *x = a, *const *y = b;

	if ((*x)->far != (*y)->far)
		return (*x)->far < (*y)->far ? -1 : 1;
	return (*x > *y) - (*x < *y);
}

/* The nearest to the top first, as long as there is room. */
static int tree_fill(struct work *w, struct place_tree *ret)
{
	_cleanup_(freep) struct spot **sum = calloc(w->spots + 1, sizeof(struct spot *));
	unsigned int sums = 0;

	if (!sum)
		return -ENOMEM;
	for (unsigned int i = 0; i < w->spots; i++)
		if (w->spot[i].sums)
			sum[sums++] = &w->spot[i];
	qsort(sum, sums, sizeof(struct spot *), by_far);
	for (unsigned int i = PLACE_NODES_MAX; i < sums; i++)
		sum[i]->sums = false;
	ret->nodes = sums < PLACE_NODES_MAX ? sums : PLACE_NODES_MAX;
	for (unsigned int i = 0; i < ret->nodes; i++) {
		const uint32_t parent = w->spot[next_sum(w, sum[i]->up)].machine;
		uint32_t k = GRAPH_NONE;

		for (unsigned int other = 0; other < i; other++)
			if (ret->node[other].machine == parent)
				k = other;
		ret->node[i] = (struct place_node){ sum[i]->machine, k };
	}
	return 0;
}

/* In a tree each worker sends to the nearest node (place.h): somebody who is nearer than the first
 * one on the path, or as near, sums no more. True: there was one. */
static bool one_leaves(struct work *w, const struct place_tree *tree)
{
	for (unsigned int i = 0; i < w->job->workers; i++) {
		uint32_t nearest;
		unsigned int first;

		if (w->begin[i] == UINT_MAX)
			continue;
		first = next_sum(w, w->begin[i]);
		nearest = w->of[tree->node[place_nearest(w->p->reach, w->job->worker[i], GRAPH_NONE,
							 tree)]
					.machine];
		if (nearest == first)
			continue;
		w->spot[nearest ? nearest : first].may = false;
		return true;
	}
	return false;
}

static int tree_find(struct work *w, uint32_t top, struct place_tree *ret)
{
	int r;

	for (uint32_t m = 0; m < w->p->reach->graph->machines; m++)
		w->of[m] = UINT_MAX;
	spot_add(w, top, 0);
	w->spot[0].sums = true;
	for (unsigned int i = 0; i < w->job->workers; i++)
		w->begin[i] = path_add(w, w->job->worker[i]);
	for (unsigned int i = 0; i < w->spots; i++) {
		const uint32_t m = w->spot[i].machine;

		w->spot[i].may = w->may[m] && w->p->reach->graph->machine[m].kind == GRAPH_NODE;
	}
	do {
		streams_count(w);
		r = tree_fill(w, ret);
	} while (r == 0 && one_leaves(w, ret));
	return r;
}

int place_on_the_way(const struct place_problem *p, uint32_t job, uint32_t top, const bool *may,
		     struct place_tree *ret)
{
	const struct graph *g = p->reach->graph;
	_cleanup_(freep) struct spot *spot = calloc(g->machines + 1, sizeof(*spot));
	_cleanup_(freep) unsigned int *of = calloc(g->machines + 1, sizeof(*of));
	_cleanup_(freep) unsigned int *begin = NULL;
	struct place_tree tree = { 0 };
	int r;

	if (job >= p->jobs || top >= g->machines || g->machine[top].kind != GRAPH_NODE)
		return -EINVAL;
	begin = calloc(p->job[job].workers + 1, sizeof(*begin));
	if (!spot || !of || !begin)
		return -ENOMEM;
	r = tree_find(&(struct work){ .p = p,
				      .job = &p->job[job],
				      .may = may,
				      .spot = spot,
				      .of = of,
				      .begin = begin },
		      top, &tree);
	if (r == 0)
		*ret = tree;
	return r;
}
