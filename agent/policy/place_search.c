// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "place_search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/owned.h"

enum {
	NODES_SMALL = 24, /* of a network: all further, fewer and other nodes are tried */
};

/* Trees that the estimate finds dearer by more than that are not weighed. */
static const double ESTIMATE_OFF = 0.2;
static const double LEAST_GAIN = 1e-9; /* so that rounding makes no circles */

void search_close(struct search *s)
{
	estimate_close(&s->estimate);
	place_room_close(&s->room);
	free(s->placed);
	free(s->free);
	free(s->node);
}

int search_open(const struct place_problem *p, struct place_tree *tree, struct search *ret)
{
	int r;

	ret->p = p;
	ret->tree = tree;
	ret->random = p->options.seed;
	ret->placed = calloc(p->jobs + 1, sizeof(*ret->placed));
	ret->free = calloc(p->jobs + 1, sizeof(*ret->free));
	if (!ret->placed || !ret->free)
		return -ENOMEM;
	for (uint32_t j = 0; j < p->jobs; j++) {
		tree[j].nodes = 0;
		if (!p->job[j].stays)
			ret->free[ret->frees++] = j;
	}
	r = place_nodes(p->reach->graph, &ret->node, &ret->nodes);
	if (r == 0)
		r = place_room_open(p, &ret->room);
	return r < 0 ? r : estimate_open(p, &ret->estimate);
}

bool search_is_small(const struct search *s) { return s->nodes > 0 && s->nodes <= NODES_SMALL; }

bool search_is_over(const struct search *s)
{
	return s->steps + s->estimate.steps > s->p->options.steps_max;
}

int search_place(struct search *s, uint32_t job, const struct place_tree *tree)
{
	int r = estimate_add(&s->estimate, job, tree);

	if (r < 0)
		return r;
	place_room_take(&s->room, job, tree);
	s->tree[job] = *tree;
	s->placed[job] = true;
	return 0;
}

int search_place_those_who_stay(struct search *s)
{
	int r = 0;

	for (uint32_t j = 0; j < s->p->jobs && r == 0; j++) {
		const struct place_job *job = &s->p->job[j];

		if (job->stays && place_room_fits(&s->room, j, job->now) &&
		    isfinite(estimate_try(&s->estimate, j, job->now)))
			r = search_place(s, j, job->now);
	}
	return r;
}

void search_lift(struct search *s, uint32_t job)
{
	if (!s->placed[job])
		return;
	estimate_remove(&s->estimate, job, &s->tree[job]);
	place_room_give(&s->room, job, &s->tree[job]);
	s->tree[job].nodes = 0;
	s->placed[job] = false;
}

/* --- other trees ----------------------------------------------------------------------------- */

static void try_set(struct search *s, uint32_t job, const uint32_t *machine, unsigned int machines,
		    struct place_tree **ret, unsigned int *ret_count)
{
	struct place_tree *tree = &(*ret)[*ret_count];

	if (machines == 0 && s->p->job[job].root == GRAPH_NONE)
		return;
	place_assemble(s->p, job, machine, machines, tree);
	*ret_count += place_room_fits(&s->room, job, tree);
}

/* In place of machine i of the set each other node, and behind the last one a further one. */
static void exchange(struct search *s, uint32_t job, uint32_t *set, unsigned int count,
		     unsigned int i, struct place_tree **ret, unsigned int *ret_count)
{
	uint32_t before = set[i];

	for (unsigned int n = 0; n < s->nodes; n++) {
		uint32_t m = s->node[n];
		bool there = false;

		for (unsigned int k = 0; k < count; k++)
			there = there || set[k] == m;
		if (there)
			continue;
		set[i] = m;
		try_set(s, job, set, i == count ? count + 1 : count, ret, ret_count);
	}
	set[i] = before;
}

/* Trees with one node more, less, or another one. The caller's to free(). */
static int neighbours(struct search *s, uint32_t job, struct place_tree **ret,
		      unsigned int *ret_count)
{
	const struct place_tree *tree = &s->tree[job];
	unsigned int nodes = s->nodes, count = tree->nodes;
	uint32_t set[PLACE_NODES_MAX + 1] = { 0 }, without[PLACE_NODES_MAX];

	*ret = calloc((size_t)(nodes + 1) * (count + 2) + PLACE_MENU_MAX, sizeof(**ret));
	*ret_count = 0;
	if (!*ret)
		return -ENOMEM;
	for (unsigned int i = 0; i < count; i++)
		set[i] = tree->node[i].machine;
	for (unsigned int i = 0; i < count; i++) {
		for (unsigned int k = 0; k + 1 < count; k++)
			without[k] = set[k < i ? k : k + 1];
		try_set(s, job, without, count - 1, ret, ret_count);
		exchange(s, job, set, count, i, ret, ret_count);
	}
	if (count < s->p->options.tree_max)
		exchange(s, job, set, count, count, ret, ret_count);
	return 0;
}

/* --- by the estimate ------------------------------------------------------------------------- */

static void consider(struct search *s, uint32_t job, const struct place_tree *tree,
		     struct place_tree *best, double *least)
{
	double cost;

	if (!place_room_fits(&s->room, job, tree))
		return;
	cost = estimate_try(&s->estimate, job, tree);
	if (cost < *least - LEAST_GAIN || (isinf(*least) && isfinite(cost))) {
		*least = cost;
		*best = *tree;
	}
}

int search_settle(struct search *s, uint32_t job, const struct place_tree *stay, double gain)
{
	struct place_tree best = { 0 };
	double least = INFINITY;

	if (stay) {
		consider(s, job, stay, &best, &least);
		least -= isfinite(least) ? gain : 0;
	}
	place_candidates(s->p, job, &s->room, &s->menu);
	for (unsigned int i = 0; i < s->menu.count; i++)
		consider(s, job, &s->menu.tree[i], &best, &least);
	return isinf(least) ? 0 : search_place(s, job, &best);
}

/* --- by true costs --------------------------------------------------------------------------- */

int search_cost(struct search *s, double *ret)
{
	struct place_cost cost;
	size_t looked = s->p->reach->graph->links;
	int r = place_cost(s->p, s->tree, &cost, NULL);

	if (r < 0)
		return r;
	for (uint32_t j = 0; j < s->p->jobs; j++)
		looked += s->estimate.job[j].uses;
	s->steps += looked * SEARCH_COST_STEPS;
	*ret = cost.total;
	return 0;
}

/* What a job's other tree makes of the cost; the tree stays if that is less. */
static int try_tree(struct search *s, uint32_t job, const struct place_tree *tree, double *cost)
{
	struct place_tree before = s->tree[job];
	double with;
	int r;

	s->tree[job] = *tree;
	r = search_cost(s, &with);
	if (r < 0 || !(with < *cost - LEAST_GAIN))
		s->tree[job] = before;
	else
		*cost = with;
	return r;
}

/* The job is lifted meanwhile, but for the tree that is written down. */
static int polish_job(struct search *s, uint32_t job, double *cost)
{
	_cleanup_(freep) struct place_tree *other = NULL;
	struct place_tree before = s->tree[job];
	unsigned int others;
	double bar;
	int r;

	search_lift(s, job);
	s->tree[job] = before;
	r = neighbours(s, job, &other, &others);
	if (r < 0)
		return r;
	place_candidates(s->p, job, &s->room, &s->menu);
	for (unsigned int i = 0; i < s->menu.count; i++)
		other[others++] = s->menu.tree[i];
	bar = estimate_try(&s->estimate, job, &before) * (1 + ESTIMATE_OFF);
	for (unsigned int i = 0; i < others && r == 0 && !search_is_over(s); i++)
		if (estimate_try(&s->estimate, job, &other[i]) < bar)
			r = try_tree(s, job, &other[i], cost);
	before = s->tree[job];
	return r < 0 ? r : search_place(s, job, &before);
}

int search_polish(struct search *s, double *cost)
{
	double before;
	int r = 0;

	do {
		before = *cost;
		for (uint32_t j = 0; j < s->p->jobs && r == 0 && !search_is_over(s); j++)
			if (s->placed[j] && !s->p->job[j].stays)
				r = polish_job(s, j, cost);
	} while (r == 0 && *cost < before && !search_is_over(s));
	return r;
}
