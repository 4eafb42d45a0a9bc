// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "roots.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "place_private.h"

enum {
	WORK_MAX = 4000000, /* machines times jobs times what is weighed in earnest, in one pass */
	WEIGHED_LEAST = 32, /* but so many nodes, of all parts together, */
	WEIGHED_LEAST_OF_ONE = 8, /* and so many of one */
	PASSES_MAX = 3,
};

#define BETTER (1 + 1e-9) /* sums of doubles that are equal differ by less */

struct worth {
	double rate; /* of all parts together */
	double cost;
};

struct candidate {
	uint32_t machine;
	double far;
	unsigned int parts_max; /* that there is room for, of those that are to be placed */
	struct fair_use *use; /* what a part there uses of each link */
	unsigned int uses;
	double guess; /* the rate of all parts, with one of them here */
};

struct choice {
	const struct place_problem *p;
	const uint32_t *part;
	unsigned int parts;
	struct place_tree *tree;
	struct place_job_cost *cost; /* [p->jobs] */
	struct candidate *node; /* that have room */
	unsigned int nodes;
	bool *is_given; /* [parts] */
	double *weight; /* of each link: of all flows on it, as often as they use it */
};

static void choice_close(struct choice *c)
{
	for (unsigned int i = 0; i < c->nodes; i++)
		free(c->node[i].use);
	free(c->tree);
	free(c->cost);
	free(c->node);
	free(c->is_given);
	free(c->weight);
}

/* --- which nodes are weighed ----------------------------------------------------------------- */

static int candidate_add(struct choice *c, uint32_t machine, unsigned int parts_max)
{
	struct candidate *n = &c->node[c->nodes];
	const struct place_tree tree = place_single(machine);
	int r;

	*n = (struct candidate){ .machine = machine,
				 .far = place_far(c->p, c->part[0], machine),
				 .parts_max = parts_max };
	r = place_uses(c->p, c->part[0], &tree, &n->use, &n->uses);
	if (r == -EHOSTUNREACH)
		return 0;
	c->nodes += r == 0;
	return r;
}

/* How many parts could be there, of as many as there are. */
static unsigned int parts_that_fit(const struct choice *c, struct place_room *room,
				   uint32_t machine)
{
	const struct place_tree tree = place_single(machine);
	unsigned int parts = 0;

	while (parts < c->parts && place_room_has(room, c->part[0], machine)) {
		place_room_take(room, c->part[0], &tree);
		parts++;
	}
	for (unsigned int i = 0; i < parts; i++)
		place_room_give(room, c->part[0], &tree);
	return parts;
}

static int nodes_find(struct choice *c)
{
	const struct graph *g = c->p->reach->graph;
	_cleanup_(place_room_close) struct place_room room = { 0 };
	int r = place_room_open(c->p, &room);

	if (r < 0)
		return r;
	for (uint32_t j = 0; j < c->p->jobs; j++)
		if (c->tree[j].nodes && place_room_fits(&room, j, &c->tree[j]))
			place_room_take(&room, j, &c->tree[j]);
	for (uint32_t m = 0; r == 0 && m < g->machines; m++) {
		const unsigned int parts = g->machine[m].kind == GRAPH_NODE
						   ? parts_that_fit(c, &room, m)
						   : 0;

		if (parts)
			r = candidate_add(c, m, parts);
	}
	return r == 0 && !c->nodes ? -ENOSPC : r;
}

/* --- a guess, which is quick ----------------------------------------------------------------- */

static void uses_add(struct choice *c, const struct fair_use *use, unsigned int uses, double weight)
{
	for (unsigned int i = 0; i < uses; i++)
		c->weight[use[i].link] += use[i].times * weight;
}

static int weights_fill(struct choice *c)
{
	for (uint32_t j = 0; j < c->p->jobs; j++) {
		_cleanup_(freep) struct fair_use *use = NULL;
		unsigned int uses = 0;
		int r = 0;

		if (c->tree[j].nodes || c->p->job[j].root != GRAPH_NONE)
			r = place_uses(c->p, j, &c->tree[j], &use, &uses);
		if (r < 0 && r != -EHOSTUNREACH)
			return r;
		uses_add(c, use, r == 0 ? uses : 0, c->p->job[j].weight);
	}
	return 0;
}

/* As if each link gave each flow its share, whether others take theirs or not. */
static double guess_one(const struct choice *c, const struct fair_use *use, unsigned int uses)
{
	const double weight = c->p->job[c->part[0]].weight;
	double rate = INFINITY;

	for (unsigned int i = 0; i < uses; i++)
		rate = fmin(rate, place_link_room(&c->p->reach->graph->link[use[i].link]) * weight /
					  c->weight[use[i].link]);
	return rate;
}

static const struct candidate *candidate_of(const struct choice *c, unsigned int part)
{
	const struct place_tree *t = &c->tree[c->part[part]];

	for (unsigned int i = 0; t->nodes && i < c->nodes; i++)
		if (c->node[i].machine == t->node[0].machine)
			return &c->node[i];
	return NULL;
}

/* Of all parts, with this one at `n`; its own uses are in no weight. */
static double guess_all(struct choice *c, unsigned int part, const struct candidate *n)
{
	const double weight = c->p->job[c->part[0]].weight;
	double rate;

	uses_add(c, n->use, n->uses, weight);
	rate = guess_one(c, n->use, n->uses);
	for (unsigned int i = 0; i < c->parts; i++) {
		const struct candidate *other = i == part ? NULL : candidate_of(c, i);

		if (other)
			rate += guess_one(c, other->use, other->uses);
	}
	uses_add(c, n->use, n->uses, -weight);
	return rate;
}

static int by_guess(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	const bool apart = x->guess < 0 || y->guess < 0
				   ? x->guess != y->guess
				   : x->guess * BETTER < y->guess || y->guess * BETTER < x->guess;

	if (apart)
		return x->guess > y->guess ? -1 : 1;
	if (x->far != y->far)
		return x->far < y->far ? -1 : 1;
	return x->machine < y->machine ? -1 : 1;
}

/* --- what a choice is worth, in earnest ------------------------------------------------------ */

/* Parts that have no node yet have failed, and count in no term. */
static int weigh(const struct choice *c, struct worth *ret)
{
	struct place_cost all;
	int r = place_cost(c->p, c->tree, &all, c->cost);

	if (r < 0)
		return r;
	*ret = (struct worth){ 0 };
#define PLACE_TERM(name) ret->cost += all.part.name;
	PLACE_TERMS(PLACE_TERM)
#undef PLACE_TERM
	for (unsigned int i = 0; i < c->parts; i++)
		ret->rate += c->cost[c->part[i]].rate;
	return 0;
}

static bool is_better(const struct worth *a, const struct worth *than)
{
	if (a->rate > than->rate * BETTER)
		return true;
	return a->rate * BETTER >= than->rate && a->cost < than->cost / BETTER;
}

/* Which other parts are there: all, or those alone that were to be placed, too. */
static unsigned int parts_at(const struct choice *c, unsigned int part, uint32_t machine, bool all)
{
	unsigned int parts = 0;

	for (unsigned int i = 0; i < c->parts; i++) {
		const struct place_tree *t = &c->tree[c->part[i]];

		parts += i != part && (all || !c->is_given[i]) && t->nodes &&
			 t->node[0].machine == machine;
	}
	return parts;
}

static bool has_room(const struct choice *c, unsigned int part, const struct candidate *n)
{
	return parts_at(c, part, n->machine, false) < n->parts_max;
}

/* Nodes in the order of what they promise; those that other parts have come last, as long as there
 * are others, and those without room are none. Returns how many are worth weighing. */
static unsigned int candidates_sort(struct choice *c, unsigned int part)
{
	unsigned int is_free = 0, fit = 0;

	for (unsigned int i = 0; i < c->nodes; i++) {
		is_free += !parts_at(c, part, c->node[i].machine, true);
		fit += has_room(c, part, &c->node[i]);
	}
	for (unsigned int i = 0; i < c->nodes; i++) {
		struct candidate *n = &c->node[i];

		if (!has_room(c, part, n))
			n->guess = -2;
		else if (is_free && parts_at(c, part, n->machine, true))
			n->guess = -1;
		else
			n->guess = guess_all(c, part, n);
	}
	qsort(c->node, c->nodes, sizeof(*c->node), by_guess);
	return is_free ? is_free : fit;
}

static unsigned int weighed_max(const struct choice *c)
{
	const double work = (double)c->p->reach->graph->machines * c->p->jobs * c->parts;
	const double least = fmin(WEIGHED_LEAST_OF_ONE, (double)WEIGHED_LEAST / c->parts);

	return (unsigned int)fmax(fmax(least, 1), fmin(WORK_MAX / work, c->nodes));
}

/* The best node for one part, with all others where they are. *ret_changed: it is another one. */
static int settle(struct choice *c, unsigned int part, bool *ret_changed)
{
	const double weight = c->p->job[c->part[0]].weight;
	struct place_tree *tree = &c->tree[c->part[part]], best = *tree;
	const struct candidate *was = candidate_of(c, part);
	struct worth most = { .rate = -1 }, worth;
	unsigned int count;
	int r = 0;

	*ret_changed = false;
	if (was) {
		uses_add(c, was->use, was->uses, -weight);
		r = weigh(c, &most);
	}
	count = candidates_sort(c, part);
	for (unsigned int i = 0; r == 0 && i < count && i < weighed_max(c); i++) {
		*tree = place_single(c->node[i].machine);
		r = weigh(c, &worth);
		if (r == 0 && is_better(&worth, &most)) {
			most = worth;
			best = *tree;
			*ret_changed = true;
		}
	}
	*tree = best;
	was = candidate_of(c, part);
	if (was)
		uses_add(c, was->use, was->uses, weight);
	return r;
}

int roots_choose(const struct place_problem *p, const uint32_t *part, unsigned int parts,
		 struct place_tree *tree, double *ret_rate)
{
	_cleanup_(choice_close) struct choice c = { .p = p, .part = part, .parts = parts };
	bool changed = true;
	struct worth ignored;
	int r;

	if (!parts)
		return -EINVAL;
	c.tree = calloc(p->jobs + 1, sizeof(*c.tree));
	c.cost = calloc(p->jobs + 1, sizeof(*c.cost));
	c.is_given = calloc(parts, sizeof(*c.is_given));
	c.node = calloc(p->reach->graph->machines + 1, sizeof(*c.node));
	c.weight = calloc(p->reach->graph->links + 1, sizeof(*c.weight));
	if (!c.tree || !c.cost || !c.is_given || !c.node || !c.weight)
		return -ENOMEM;
	memcpy(c.tree, tree, p->jobs * sizeof(*tree));
	for (unsigned int i = 0; i < parts; i++)
		c.is_given[i] = tree[part[i]].nodes;
	r = nodes_find(&c);
	if (r == 0)
		r = weights_fill(&c);
	for (unsigned int pass = 0; r == 0 && changed && pass < PASSES_MAX; pass++) {
		changed = false;
		for (unsigned int i = 0; r == 0 && i < parts; i++) {
			bool moved = false;

			if (!c.is_given[i])
				r = settle(&c, i, &moved);
			changed |= moved;
		}
	}
	for (unsigned int i = 0; r == 0 && i < parts; i++)
		r = c.tree[part[i]].nodes ? 0 : -ENOSPC;
	if (r == 0)
		r = weigh(&c, &ignored);
	if (r < 0)
		return r;
	memcpy(tree, c.tree, p->jobs * sizeof(*tree));
	for (unsigned int i = 0; i < parts; i++)
		ret_rate[i] = c.cost[part[i]].rate;
	return 0;
}
