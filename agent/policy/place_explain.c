// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Why a job lies where it lies: what other trees would cost. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "place_private.h"

/* The tree that the job has, then the others that fit beside all other jobs. */
static int open_menu(const struct place_problem *p, const struct place_tree *tree, uint32_t job,
		     struct place_menu *ret)
{
	_cleanup_(place_room_close) struct place_room room = { 0 };
	_cleanup_(freep) struct place_menu *others = calloc(1, sizeof(*others));
	int r = place_room_open(p, &room);

	if (r < 0)
		return r;
	if (!others)
		return -ENOMEM;
	for (uint32_t j = 0; j < p->jobs; j++)
		if (j != job)
			place_room_take(&room, j, &tree[j]);
	place_candidates(p, job, &room, others);
	place_menu_add(ret, &tree[job]);
	for (unsigned int i = 0; i < others->count; i++)
		place_menu_add(ret, &others->tree[i]);
	return 0;
}

static int weigh(const struct place_problem *p, struct place_tree *tree, uint32_t job,
		 struct place_candidate *c)
{
	_cleanup_(freep) struct place_job_cost *cost = calloc(p->jobs + 1, sizeof(*cost));
	int r;

	if (!cost)
		return -ENOMEM;
	tree[job] = c->tree;
	r = place_cost(p, tree, &c->cost, cost);
	if (r == 0)
		c->job = cost[job];
	return r;
}

int place_candidate_compare(const void *a, const void *b)
{
	const struct place_candidate *x = a, *y = b;

	if (x->chosen != y->chosen)
		return x->chosen ? -1 : 1;
	if (x->cost.failed != y->cost.failed)
		return x->cost.failed < y->cost.failed ? -1 : 1;
	return (x->cost.total > y->cost.total) - (x->cost.total < y->cost.total);
}

int place_explain(const struct place_problem *p, const struct place_tree *tree, uint32_t job,
		  unsigned int max, struct place_candidate *ret)
{
	_cleanup_(freep) struct place_menu *menu = calloc(1, sizeof(*menu));
	_cleanup_(freep) struct place_tree *all = calloc(p->jobs + 1, sizeof(*all));
	_cleanup_(freep) struct place_candidate *candidate = NULL;
	int r = job < p->jobs ? place_allowed(p, tree) : -EINVAL;

	if (!all || !menu)
		return -ENOMEM;
	if (r == 0)
		r = open_menu(p, tree, job, menu);
	if (r < 0)
		return r;
	candidate = calloc(menu->count + 1, sizeof(*candidate));
	if (!candidate)
		return -ENOMEM;
	memcpy(all, tree, p->jobs * sizeof(*all));
	for (unsigned int i = 0; i < menu->count && r == 0; i++) {
		candidate[i].tree = menu->tree[i];
		candidate[i].chosen = i == 0;
		r = weigh(p, all, job, &candidate[i]);
	}
	if (r < 0)
		return r;
	qsort(candidate, menu->count, sizeof(*candidate), place_candidate_compare);
	max = max < menu->count ? max : menu->count;
	memcpy(ret, candidate, max * sizeof(*ret));
	return (int)max;
}
