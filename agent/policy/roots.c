// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "roots.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "place_private.h"

enum {
	WEIGHED_MAX = 4096, /* nodes times parts */
	PASSES_MAX = 4,
};

#define BETTER (1 + 1e-9) /* sums of doubles that are equal differ by less */

struct worth {
	double rate; /* of all parts together */
	double cost;
};

struct choice {
	const struct place_problem *p;
	const uint32_t *part;
	unsigned int parts;
	struct place_tree *tree;
	struct place_job_cost *cost; /* [p->jobs] */
	uint32_t *node; /* that have room, the nearest ones first */
	unsigned int nodes;
	bool *is_given; /* [parts] */
};

static void choice_close(struct choice *c)
{
	free(c->tree);
	free(c->cost);
	free(c->node);
	free(c->is_given);
}

/* --- which nodes are weighed ----------------------------------------------------------------- */

struct candidate {
	double far;
	uint32_t machine;
};

static int by_distance(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->far != y->far)
		return x->far < y->far ? -1 : 1;
	return x->machine < y->machine ? -1 : 1;
}

static int nodes_find(struct choice *c)
{
	const struct graph *g = c->p->reach->graph;
	const uint32_t job = c->part[0];
	_cleanup_(freep) struct candidate *all = calloc(g->machines + 1, sizeof(*all));
	_cleanup_(place_room_close) struct place_room room = { 0 };
	unsigned int count = 0;
	int r = place_room_open(c->p, &room);

	c->node = calloc(g->machines + 1, sizeof(*c->node));
	if (r < 0 || !all || !c->node)
		return -ENOMEM;
	for (uint32_t j = 0; j < c->p->jobs; j++)
		if (c->tree[j].nodes)
			place_room_take(&room, j, &c->tree[j]);
	for (uint32_t m = 0; m < g->machines; m++) {
		const double far = place_far(c->p, job, m);

		if (g->machine[m].kind == GRAPH_NODE && isfinite(far) &&
		    place_room_has(&room, job, m))
			all[count++] = (struct candidate){ far, m };
	}
	qsort(all, count, sizeof(*all), by_distance);
	for (; c->nodes < count && c->nodes * c->parts < WEIGHED_MAX; c->nodes++)
		c->node[c->nodes] = all[c->nodes].machine;
	return c->nodes ? 0 : -ENOSPC;
}

/* --- what a choice is worth ------------------------------------------------------------------ */

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

static bool is_taken(const struct choice *c, unsigned int part, uint32_t machine)
{
	for (unsigned int i = 0; i < c->parts; i++) {
		const struct place_tree *t = &c->tree[c->part[i]];

		if (i != part && t->nodes && t->node[0].machine == machine)
			return true;
	}
	return false;
}

/* The best node for one part, with all others where they are. True: it is another one. */
static int settle(struct choice *c, unsigned int part, bool *ret_changed)
{
	struct place_tree *tree = &c->tree[c->part[part]], best = *tree;
	struct worth most = { .rate = -1 }, worth;
	bool is_free = false; /* is there a node that no other part has? */
	int r = 0;

	*ret_changed = false;
	for (unsigned int i = 0; i < c->nodes; i++)
		is_free |= !is_taken(c, part, c->node[i]);
	if (tree->nodes)
		r = weigh(c, &most);
	for (unsigned int i = 0; r == 0 && i < c->nodes; i++) {
		if (is_free && is_taken(c, part, c->node[i]))
			continue;
		*tree = place_single(c->node[i]);
		r = weigh(c, &worth);
		if (r == 0 && is_better(&worth, &most)) {
			most = worth;
			best = *tree;
			*ret_changed = true;
		}
	}
	*tree = best;
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
	if (!c.tree || !c.cost || !c.is_given)
		return -ENOMEM;
	memcpy(c.tree, tree, p->jobs * sizeof(*tree));
	for (unsigned int i = 0; i < parts; i++)
		c.is_given[i] = tree[part[i]].nodes;
	r = nodes_find(&c);
	for (unsigned int pass = 0; r == 0 && changed && pass < PASSES_MAX; pass++) {
		changed = false;
		for (unsigned int i = 0; r == 0 && i < parts; i++) {
			bool moved = false;

			if (!c.is_given[i])
				r = settle(&c, i, &moved);
			changed |= moved;
		}
	}
	if (r == 0)
		r = weigh(&c, &ignored);
	if (r < 0)
		return r;
	memcpy(tree, c.tree, p->jobs * sizeof(*tree));
	for (unsigned int i = 0; i < parts; i++)
		ret_rate[i] = c.cost[part[i]].rate;
	return 0;
}
