// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Why a job lies where it lies: what other trees would cost. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "place_private.h"

/* Trees of one job, none twice. */
struct menu {
	struct place_tree *tree;
	unsigned int count, room;
};

static void menu_close(struct menu *m) { free(m->tree); }

static void menu_add(struct menu *m, const struct place_tree *tree)
{
	for (unsigned int i = 0; i < m->count; i++)
		if (place_same(&m->tree[i], tree))
			return;
	if (m->count < m->room)
		m->tree[m->count++] = *tree;
}

/* The tree that the job has, then the others that fit beside all other jobs. */
static int menu_open(const struct place_problem *p, const struct place_tree *tree, uint32_t job,
		     struct menu *ret)
{
	_cleanup_(place_room_close) struct place_room room = { 0 };
	_cleanup_(freep) struct place_tree *offered = NULL;
	unsigned int trees;
	int r = place_candidates(p, job, &offered, &trees);

	if (r == 0)
		r = place_room_open(p, &room);
	if (r < 0)
		return r;
	ret->room = trees + 1;
	ret->tree = calloc(ret->room, sizeof(*ret->tree));
	if (!ret->tree)
		return -ENOMEM;
	menu_add(ret, &tree[job]);
	for (uint32_t j = 0; j < p->jobs; j++)
		if (j != job)
			place_room_take(&room, j, &tree[j]);
	for (unsigned int i = 0; i < trees; i++)
		if (place_room_fits(&room, job, &offered[i]))
			menu_add(ret, &offered[i]);
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

/* The chosen one first, then the cheapest; those whose job fails come last. */
static int by_total(const void *a, const void *b)
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
	_cleanup_(menu_close) struct menu menu = { 0 };
	_cleanup_(freep) struct place_tree *all = calloc(p->jobs + 1, sizeof(*all));
	_cleanup_(freep) struct place_candidate *candidate = NULL;
	int r = job < p->jobs ? place_allowed(p, tree) : -EINVAL;

	if (!all)
		return -ENOMEM;
	if (r == 0)
		r = menu_open(p, tree, job, &menu);
	if (r < 0)
		return r;
	candidate = calloc(menu.count + 1, sizeof(*candidate));
	if (!candidate)
		return -ENOMEM;
	memcpy(all, tree, p->jobs * sizeof(*all));
	for (unsigned int i = 0; i < menu.count && r == 0; i++) {
		candidate[i].tree = menu.tree[i];
		candidate[i].chosen = i == 0;
		r = weigh(p, all, job, &candidate[i]);
	}
	if (r < 0)
		return r;
	qsort(candidate, menu.count, sizeof(*candidate), by_total);
	max = max < menu.count ? max : menu.count;
	memcpy(ret, candidate, max * sizeof(*ret));
	return (int)max;
}
