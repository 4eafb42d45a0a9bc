// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Placement by all that a decision costs. Jobs settle one after another, the largest first, each
 * where all costs least by the estimate (place_estimate.h); then each one is lifted and settles
 * anew, until nobody moves. Small networks go on by true costs: kicks (one job gets a tree at
 * random) and what can be mended after them, as long as there are steps (H. Lourenço, O. Martin, T.
 * Stützle, "Iterated local search", 2003).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "place_search.h"
#include "random.h"

enum {
	PASSES_MAX = 8,
	MOVED_LEAST = 20, /* one job of so many: fewer are not worth another pass */
	KICKS_MAX = 1000,
};

struct ranked {
	bool needs_node; /* nobody else makes its results */
	double value;
	uint32_t job;
};

/* Jobs that need a node first, then the largest. */
static int by_value(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->needs_node != y->needs_node)
		return x->needs_node ? -1 : 1;
	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return (x->job > y->job) - (x->job < y->job);
}

static struct ranked *rank(const struct place_problem *p)
{
	struct ranked *order = calloc(p->jobs + 1, sizeof(*order));

	if (!order)
		return NULL;
	for (uint32_t j = 0; j < p->jobs; j++)
		order[j] = (struct ranked){ p->job[j].root == GRAPH_NONE,
					    p->job[j].bytes * p->job[j].workers, j };
	qsort(order, p->jobs, sizeof(*order), by_value);
	return order;
}

/*
 * Jobs that are faster or slower than when they settled are lifted, and settle anew. Returns how
 * many have moved.
 */
static int pass(struct search *s, const struct ranked *order)
{
	int moved = 0;

	for (uint32_t i = 0; i < s->p->jobs && !search_is_over(s); i++) {
		uint32_t job = order[i].job;
		struct place_tree before = s->tree[job];
		bool placed = s->placed[job];
		int r;

		if (s->p->job[job].stays || (placed && !s->estimate.job[job].changed))
			continue;
		search_lift(s, job);
		r = search_settle(s, job, placed ? &before : NULL, 0);
		if (r < 0)
			return r;
		moved += !placed || !place_same(&before, &s->tree[job]);
	}
	return moved;
}

static int settle_all(struct search *s)
{
	const struct place_problem *p = s->p;
	_cleanup_(freep) struct ranked *order = rank(p);
	struct place_problem single = *p; /* so that nodes are left for all who need one */
	int r = search_place_those_who_stay(s), moved = 1;

	single.options.tree_max = p->options.tree_max ? 1 : 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->p->jobs && r == 0; i++) {
		if (p->job[order[i].job].stays)
			continue;
		s->p = order[i].needs_node ? &single : p;
		r = search_settle(s, order[i].job, p->job[order[i].job].now, 0);
	}
	s->p = p;
	for (unsigned int i = 0; i < PASSES_MAX && r == 0 && moved > 0; i++) {
		moved = pass(s, order);
		r = moved < 0 ? moved : 0;
		if (moved < (int)(p->jobs / MOVED_LEAST))
			break;
	}
	return r;
}

/* --- kicks ----------------------------------------------------------------------------------- */

static uint32_t below(struct search *s, uint32_t limit)
{
	return (uint32_t)(random_bits(&s->random) % limit);
}

/* One job gets one of its candidates at random, and another one settles anew. */
static int kick_job(struct search *s)
{
	uint32_t job = s->free[below(s, s->frees)], other = s->free[below(s, s->frees)];
	struct place_tree tree;
	int r = 0;

	search_lift(s, job);
	search_lift(s, other);
	place_candidates(s->p, job, &s->room, &s->menu);
	if (s->menu.count > 0) {
		tree = s->menu.tree[below(s, s->menu.count)];
		if (isfinite(estimate_try(&s->estimate, job, &tree)))
			r = search_place(s, job, &tree);
	}
	return r < 0 || job == other ? r : search_settle(s, other, NULL, 0);
}

/* Lifts all jobs, and places them with these trees as far as they fit. */
static int place_all(struct search *s, const struct place_tree *tree)
{
	int r = 0;

	for (uint32_t j = 0; j < s->p->jobs; j++)
		search_lift(s, j);
	r = search_place_those_who_stay(s);
	for (uint32_t j = 0; j < s->p->jobs && r == 0; j++)
		if (!s->p->job[j].stays && place_room_fits(&s->room, j, &tree[j]) &&
		    isfinite(estimate_try(&s->estimate, j, &tree[j])))
			r = search_place(s, j, &tree[j]);
	for (uint32_t j = 0; j < s->p->jobs && r == 0; j++)
		if (!s->placed[j] && !s->p->job[j].stays)
			r = search_settle(s, j, NULL, 0);
	return r;
}

static uint32_t exchanged(uint32_t machine, uint32_t a, uint32_t b)
{
	if (machine == a)
		return b;
	return machine == b ? a : machine;
}

/* Two nodes take each other's jobs. */
static int kick_nodes(struct search *s, struct place_tree *tree)
{
	uint32_t a = s->node[below(s, s->nodes)], b = s->node[below(s, s->nodes)];
	uint32_t set[PLACE_NODES_MAX];

	for (uint32_t j = 0; j < s->p->jobs; j++) {
		for (unsigned int i = 0; i < s->tree[j].nodes; i++)
			set[i] = exchanged(s->tree[j].node[i].machine, a, b);
		place_assemble(s->p, j, set, s->tree[j].nodes, &tree[j]);
	}
	return place_all(s, tree);
}

/* Two jobs take each other's nodes. */
static int kick_jobs(struct search *s, struct place_tree *tree)
{
	uint32_t pair[2] = { s->free[below(s, s->frees)], s->free[below(s, s->frees)] };
	uint32_t set[PLACE_NODES_MAX];

	for (uint32_t j = 0; j < s->p->jobs; j++)
		tree[j] = s->tree[j];
	for (unsigned int k = 0; k < 2; k++) {
		const struct place_tree *its = &s->tree[pair[1 - k]];

		for (unsigned int i = 0; i < its->nodes; i++)
			set[i] = its->node[i].machine;
		place_assemble(s->p, pair[k], set, its->nodes, &tree[pair[k]]);
	}
	return place_all(s, tree);
}

/* All jobs get some of a few nodes at random: the few that may be in use. */
static int kick_all(struct search *s, struct place_tree *tree)
{
	const struct place_options *o = &s->p->options;
	unsigned int few = o->nodes_max < s->nodes ? o->nodes_max : s->nodes;
	uint32_t set[PLACE_NODES_MAX];

	for (unsigned int i = 0; i < few; i++) {
		unsigned int k = i + below(s, s->nodes - i);
		uint32_t moved = s->node[i];

		s->node[i] = s->node[k];
		s->node[k] = moved;
	}
	for (uint32_t j = 0; j < s->p->jobs; j++) {
		unsigned int count = 0;

		for (unsigned int i = 0; i < few && count < o->tree_max; i++)
			if (below(s, 2))
				set[count++] = s->node[i];
		place_assemble(s->p, j, set, count, &tree[j]);
	}
	return place_all(s, tree);
}

static int kick(struct search *s, struct place_tree *tree)
{
	switch (below(s, 4)) {
	case 0:
		return kick_nodes(s, tree);
	case 1:
		return kick_jobs(s, tree);
	case 2:
		return kick_all(s, tree);
	default:
		return kick_job(s);
	}
}

/* Kicks that do not pay are taken back. */
static int improve(struct search *s, struct place_tree *best, double *least)
{
	_cleanup_(freep) struct place_tree *kicked = calloc(s->p->jobs + 1, sizeof(*kicked));
	double cost;
	int r = kicked ? search_cost(s, least) : -ENOMEM;

	if (r == 0)
		r = search_polish(s, least);
	if (r == 0)
		memcpy(best, s->tree, s->p->jobs * sizeof(*best));
	for (unsigned int i = 0; i < KICKS_MAX && r == 0 && !search_is_over(s); i++) {
		r = kick(s, kicked);
		if (r == 0)
			r = search_cost(s, &cost);
		if (r == 0)
			r = search_polish(s, &cost);
		if (r == 0 && cost < *least) {
			*least = cost;
			memcpy(best, s->tree, s->p->jobs * sizeof(*best));
		} else if (r == 0) {
			r = place_all(s, best);
		}
	}
	return r;
}

static int decide(const struct place_problem *p, struct place_tree *ret)
{
	_cleanup_(freep) struct search *s = calloc(1, sizeof(*s));
	_cleanup_(freep) struct place_tree *best = calloc(p->jobs + 1, sizeof(*best));
	double cost;
	int r;

	if (!s || !best)
		return -ENOMEM;
	r = search_open(p, ret, s);
	if (r == 0)
		r = settle_all(s);
	if (r == 0 && s->frees > 0 && !search_is_over(s) && search_is_small(s)) {
		r = improve(s, best, &cost);
		if (r == 0)
			memcpy(ret, best, p->jobs * sizeof(*ret));
	}
	search_close(s);
	return r;
}

int place_traffic(const struct place_problem *p, struct place_tree *ret)
{
	return place_served(p, decide, ret);
}
