// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Nodes that sum on the way: the leader decides where roots are, and each root's agent finds who
 * sums between it and the workers (docs/cluster.md). So roots are weighed with these nodes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "placer_private.h"

enum {
	CANDIDATES_MAX = 32, /* that are weighed once more; place.h has no more of them */
};

static bool has_part(const struct report *r, uint32_t id)
{
	for (unsigned int i = 0; i < r->jobs; i++)
		if (r->job[i].inner && r->job[i].id == id)
			return true;
	return false;
}

/* A cordoned node begins no part, and keeps those that it has. */
static bool may_sum(const struct report *r, const struct wanted_job *job)
{
	return r->inner &&
	       (has_part(r, job->id) || (!r->cordoned && r->slots_free >= placer_slots(job)));
}

/* The tree of job `of` of the problem with its root at this machine. */
static int expand(const struct placer_work *w, const struct place_problem *p, uint32_t of,
		  uint32_t top, struct place_tree *ret)
{
	const struct drawing *d = &w->network.drawing;
	_cleanup_(freep) bool *may = calloc(d->machines + 1, sizeof(*may));

	if (!may)
		return -ENOMEM;
	for (unsigned int i = 0; i < d->machines && placer_node(w, top)->inner; i++)
		may[i] = d->machine[i].kind == PICTURE_NODE &&
			 may_sum(placer_node(w, i), w->job[w->of[of]].job);
	return place_on_the_way(p, of, top, may, ret);
}

static bool somebody_is_inner(const struct picture *p)
{
	for (unsigned int i = 0; i < p->nodes; i++)
		if (p->report[i]->inner)
			return true;
	return false;
}

int placer_inner_open(struct placer_work *w, const struct place_problem *p)
{
	int r = 0;

	if (!somebody_is_inner(w->picture))
		return 0;
	w->inner_job = calloc(p->jobs + 1, sizeof(*w->inner_job));
	w->inner_now = calloc(p->jobs + 1, sizeof(*w->inner_now));
	if (!w->inner_job || !w->inner_now)
		return -ENOMEM;
	memcpy(w->inner_job, p->job, p->jobs * sizeof(*w->inner_job));
	for (uint32_t i = 0; i < p->jobs && r == 0; i++) {
		if (!p->job[i].now)
			continue;
		r = expand(w, p, i, p->job[i].now->node[0].machine, &w->inner_now[i]);
		w->inner_job[i].now = &w->inner_now[i];
	}
	w->inner = *p;
	w->inner.job = w->inner_job;
	return r;
}

void placer_inner_close(struct placer_work *w)
{
	free(w->inner_job);
	free(w->inner_now);
}

static int all_expand(const struct placer_work *w, const struct place_tree *tree,
		      struct place_tree *ret)
{
	int r = 0;

	for (uint32_t i = 0; i < w->inner.jobs && r == 0; i++)
		if (tree[i].nodes)
			r = expand(w, &w->inner, i, tree[i].node[0].machine, &ret[i]);
	return r;
}

static int weigh_again(const struct placer_work *w, const struct place_tree *tree, uint32_t which,
		       struct place_candidate *c, unsigned int count)
{
	_cleanup_(freep) struct place_tree *all = calloc(w->inner.jobs + 1, sizeof(*all));
	_cleanup_(freep) struct place_job_cost *cost = calloc(w->inner.jobs + 1, sizeof(*cost));
	int r = all && cost ? all_expand(w, tree, all) : -ENOMEM;

	for (unsigned int i = 0; i < count && r == 0; i++) {
		if (!c[i].tree.nodes)
			continue;
		c[i].chosen &= w->job[w->of[which]].root != NULL;
		r = expand(w, &w->inner, which, c[i].tree.node[0].machine, &all[which]);
		if (r < 0)
			break;
		c[i].tree = all[which];
		r = place_cost(&w->inner, all, &c[i].cost, cost);
		c[i].job = cost[which];
	}
	if (r == 0)
		qsort(c, count, sizeof(*c), place_candidate_compare);
	return r;
}

int placer_explain(const struct placer_work *w, const struct place_problem *p,
		   const struct place_tree *tree, uint32_t which, unsigned int max,
		   struct place_candidate *ret)
{
	_cleanup_(freep) struct place_candidate *c = calloc(CANDIDATES_MAX, sizeof(*c));
	int r, count = c ? place_explain(p, tree, which, CANDIDATES_MAX, c) : -ENOMEM;

	if (count < 0)
		return count;
	r = w->inner_job ? weigh_again(w, tree, which, c, (unsigned int)count) : 0;
	if (r < 0)
		return r;
	count = count < (int)max ? count : (int)max;
	memcpy(ret, c, (size_t)count * sizeof(*c));
	return count;
}
