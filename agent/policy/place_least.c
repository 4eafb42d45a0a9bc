// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The least cost there is, by trying all decisions: each job with each set of at most tree_max
 * nodes, made a tree as place_assemble() does it. For small cases; a decision is a step.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "place_private.h"

struct trees {
	struct place_tree *tree;
	unsigned int count, space;
};

struct all {
	const struct place_problem *p;
	struct place_room room;
	struct trees *job; /* [jobs] */
	uint32_t *node;
	unsigned int nodes, steps;
	struct place_tree *now, *best;
	double least;
};

static void all_close(struct all *a)
{
	for (uint32_t j = 0; a->job && j < a->p->jobs; j++)
		free(a->job[j].tree);
	place_room_close(&a->room);
	free(a->job);
	free(a->node);
	free(a->now);
	free(a->best);
}

static int add_tree(struct trees *t, const struct place_tree *tree)
{
	if (t->count == t->space) {
		unsigned int space = 2 * t->space + 16;
		struct place_tree *more = reallocarray(t->tree, space, sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->tree = more;
		t->space = space;
	}
	t->tree[t->count++] = *tree;
	return 0;
}

/* Of a job without a root, each node of the set may be the top. */
static int add_set(struct all *a, uint32_t job, uint32_t *set, unsigned int count)
{
	unsigned int tops = a->p->job[job].root == GRAPH_NONE ? count : 1;
	struct place_tree tree;
	int r = 0;

	for (unsigned int i = 0; i < tops && r == 0; i++) {
		uint32_t first = set[0];

		if (count > 0) {
			set[0] = set[i];
			set[i] = first;
		}
		place_assemble(a->p, job, set, count, &tree);
		if (place_room_fits(&a->room, job, &tree))
			r = add_tree(&a->job[job], &tree);
		if (count > 0) {
			set[i] = set[0];
			set[0] = first;
		}
	}
	return r;
}

static int add_sets(struct all *a, uint32_t job, uint32_t *set, unsigned int count,
		    unsigned int begin)
{
	int r = add_set(a, job, set, count);

	if (a->job[job].count > a->p->options.steps_max)
		return -EAGAIN;
	for (unsigned int i = begin; i < a->nodes && count < a->p->options.tree_max && r == 0;
	     i++) {
		set[count] = a->node[i];
		r = add_sets(a, job, set, count + 1, i + 1);
	}
	return r;
}

static int weigh(struct all *a)
{
	struct place_cost cost;
	int r;

	if (a->steps++ >= a->p->options.steps_max)
		return -EAGAIN;
	r = place_cost(a->p, a->now, &cost, NULL);
	if (r == 0 && cost.total < a->least) {
		a->least = cost.total;
		memcpy(a->best, a->now, a->p->jobs * sizeof(*a->best));
	}
	return r;
}

static int try_all(struct all *a, uint32_t job)
{
	int r = 0;

	if (job == a->p->jobs)
		return weigh(a);
	for (unsigned int i = 0; i < a->job[job].count && r == 0; i++) {
		const struct place_tree *tree = &a->job[job].tree[i];

		if (!place_room_fits(&a->room, job, tree))
			continue;
		place_room_take(&a->room, job, tree);
		a->now[job] = *tree;
		r = try_all(a, job + 1);
		place_room_give(&a->room, job, tree);
	}
	return r;
}

static int decide(const struct place_problem *p, struct place_tree *ret)
{
	_cleanup_(all_close) struct all a = { .p = p, .least = INFINITY };
	uint32_t set[PLACE_NODES_MAX + 1] = { 0 };
	int r = place_room_open(p, &a.room);

	a.job = calloc(p->jobs + 1, sizeof(*a.job));
	a.now = calloc(p->jobs + 1, sizeof(*a.now));
	a.best = calloc(p->jobs + 1, sizeof(*a.best));
	if (!a.job || !a.now || !a.best)
		return -ENOMEM;
	if (r == 0)
		r = place_nodes(p->reach->graph, &a.node, &a.nodes);
	for (uint32_t j = 0; j < p->jobs && r == 0; j++)
		r = p->job[j].stays ? add_tree(&a.job[j], p->job[j].now)
				    : add_sets(&a, j, set, 0, 0);
	if (r == 0)
		r = try_all(&a, 0);
	if (r == 0)
		memcpy(ret, a.best, p->jobs * sizeof(*ret));
	return r;
}

int place_least(const struct place_problem *p, struct place_tree *ret)
{
	return place_served(p, decide, ret);
}
