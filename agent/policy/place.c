// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "place.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "place_private.h"

/* --- is it sound? ---------------------------------------------------------------------------- */

static bool is_amount(double value) { return isfinite(value) && value >= 0; }
static bool is_positive(double value) { return isfinite(value) && value > 0; }

static bool is_sound(const struct place_problem *p, const struct place_job *j)
{
	const struct graph *g = p->reach->graph;

	if (j->workers == 0 || j->workers > PLACE_WORKERS_MAX || j->tenant >= PLACE_TENANTS_MAX)
		return false;
	for (unsigned int w = 0; w < j->workers; w++)
		if (j->worker[w] >= g->machines)
			return false;
	if (j->root != GRAPH_NONE && j->root >= g->machines)
		return false;
	return is_positive(j->bytes) && is_amount(j->compute_s) && is_positive(j->weight) &&
	       is_amount(j->iterations) && (j->now ? place_is_tree(p, j, j->now) : !j->stays);
}

int place_check(const struct place_problem *p)
{
	const struct place_options *o = &p->options;

	if (p->jobs > PLACE_JOBS_MAX)
		return -E2BIG;
	if (o->tree_max > PLACE_NODES_MAX || !(o->distance_max >= 0) || !is_amount(o->move_s) ||
	    !is_amount(o->margin))
		return -EINVAL;
#define PLACE_TERM(name)                \
	if (!is_amount(o->weight.name)) \
		return -EINVAL;
	PLACE_TERMS(PLACE_TERM)
#undef PLACE_TERM
	for (uint32_t j = 0; j < p->jobs; j++)
		if (!is_sound(p, &p->job[j]))
			return -EINVAL;
	return 0;
}

const char *place_tree_fault(const struct place_problem *p, const struct place_job *job,
			     const struct place_tree *tree, uint32_t *ret_node)
{
	const struct graph *g = p->reach->graph;

	*ret_node = GRAPH_NONE;
	if (tree->nodes > PLACE_NODES_MAX)
		return "there are more nodes than a tree may have";
	for (uint32_t i = 0; i < tree->nodes; i++) {
		const struct place_node *n = &tree->node[i];

		*ret_node = i;
		if (n->machine >= g->machines)
			return "there is no such machine";
		if (g->machine[n->machine].kind != GRAPH_NODE)
			return "that machine does not sum";
		if (n->parent == GRAPH_NONE && i > 0 && job->root == GRAPH_NONE)
			return "it has no parent, and the job no root: only the first node may";
		if (n->parent != GRAPH_NONE && n->parent >= i)
			return "its parent does not come before it";
		for (uint32_t k = 0; k < i; k++)
			if (tree->node[k].machine == n->machine)
				return "that machine is in the tree twice";
	}
	return NULL;
}

bool place_is_tree(const struct place_problem *p, const struct place_job *job,
		   const struct place_tree *tree)
{
	uint32_t node;

	return !place_tree_fault(p, job, tree, &node);
}

/* --- limits ---------------------------------------------------------------------------------- */

int place_room_open(const struct place_problem *p, struct place_room *ret)
{
	const struct graph *g = p->reach->graph;
	struct place_room r = { .p = p };

	r.jobs = calloc(g->machines + 1, sizeof(*r.jobs));
	r.slots = calloc(g->machines + 1, sizeof(*r.slots));
	if (!r.jobs || !r.slots) {
		place_room_close(&r);
		return -ENOMEM;
	}
	for (uint32_t m = 0; m < g->machines; m++)
		r.slots[m] = g->machine[m].slots;
	*ret = r;
	return 0;
}

void place_room_take_those_who_stay(struct place_room *r)
{
	for (uint32_t j = 0; j < r->p->jobs; j++)
		if (r->p->job[j].stays && place_room_fits(r, j, r->p->job[j].now))
			place_room_take(r, j, r->p->job[j].now);
}

void place_room_close(struct place_room *r)
{
	free(r->jobs);
	free(r->slots);
}

bool place_room_has(const struct place_room *r, uint32_t job, uint32_t machine)
{
	return r->jobs[machine] < r->p->options.jobs_max &&
	       r->slots[machine] >= r->p->job[job].slots;
}

bool place_room_fits(const struct place_room *r, uint32_t job, const struct place_tree *tree)
{
	const struct place_options *o = &r->p->options;
	unsigned int used = r->used;

	if (tree->nodes > o->tree_max)
		return false;
	for (uint32_t i = 0; i < tree->nodes; i++) {
		uint32_t m = tree->node[i].machine;

		if (!place_room_has(r, job, m))
			return false;
		used += r->jobs[m] == 0;
	}
	return used <= o->nodes_max || tree->nodes == 0;
}

void place_room_take(struct place_room *r, uint32_t job, const struct place_tree *tree)
{
	for (uint32_t i = 0; i < tree->nodes; i++) {
		uint32_t m = tree->node[i].machine;

		r->used += r->jobs[m]++ == 0;
		r->slots[m] -= r->p->job[job].slots;
	}
}

void place_room_give(struct place_room *r, uint32_t job, const struct place_tree *tree)
{
	for (uint32_t i = 0; i < tree->nodes; i++) {
		uint32_t m = tree->node[i].machine;

		r->used -= --r->jobs[m] == 0;
		r->slots[m] += r->p->job[job].slots;
	}
}

int place_allowed(const struct place_problem *p, const struct place_tree *tree)
{
	_cleanup_(place_room_close) struct place_room room = { 0 };
	int r = place_check(p);

	if (r == 0)
		r = place_room_open(p, &room);
	if (r != 0)
		return r;
	for (uint32_t j = 0; j < p->jobs; j++) {
		if (!place_is_tree(p, &p->job[j], &tree[j]))
			return -EINVAL;
		if (!place_room_fits(&room, j, &tree[j]))
			return -ENOSPC;
		place_room_take(&room, j, &tree[j]);
	}
	return 0;
}

int place_nodes(const struct graph *g, uint32_t **ret, unsigned int *ret_nodes)
{
	uint32_t *node = calloc(g->machines + 1, sizeof(*node));
	unsigned int nodes = 0;

	if (!node)
		return -ENOMEM;
	for (uint32_t m = 0; m < g->machines; m++)
		if (g->machine[m].kind == GRAPH_NODE)
			node[nodes++] = m;
	*ret = node;
	*ret_nodes = nodes;
	return 0;
}
