// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "place_estimate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/owned.h"

void estimate_close(struct estimate *e)
{
	for (uint32_t l = 0; e->link && l < e->p->reach->graph->links; l++)
		free(e->link[l].user);
	for (uint32_t j = 0; e->job && j < e->p->jobs; j++)
		free(e->job[j].use);
	free(e->link);
	free(e->job);
	free(e->nodes);
	free(e->slow);
	free(e->weight);
	free(e->level);
	free(e->touched);
	free(e->more);
	place_walk_close(&e->walk);
}

static void fill(struct estimate *e)
{
	const struct graph *g = e->p->reach->graph;

	for (uint32_t l = 0; l < g->links; l++) {
		e->link[l].room = place_link_room(&g->link[l]);
		e->link[l].capacity = g->link[l].capacity;
		e->link[l].load = g->link[l].load;
	}
	for (uint32_t m = 0; m < g->machines; m++)
		e->all_nodes += g->machine[m].kind == GRAPH_NODE;
	for (uint32_t j = 0; j < e->p->jobs; j++) {
		e->job[j].alone_s = place_alone_s(e->p, j);
		e->job[j].without = place_bytes_without(e->p, j);
	}
}

int estimate_open(const struct place_problem *p, struct estimate *ret)
{
	const struct graph *g = p->reach->graph;

	*ret = (struct estimate){ .p = p };
	for (uint32_t j = 0; j < p->jobs; j++)
		if (p->job[j].tenant >= ret->tenants)
			ret->tenants = p->job[j].tenant + 1;
	ret->link = calloc(g->links + 1, sizeof(*ret->link));
	ret->job = calloc(p->jobs + 1, sizeof(*ret->job));
	ret->nodes = calloc(g->machines + 1, sizeof(*ret->nodes));
	ret->slow = calloc(ret->tenants + 1, sizeof(*ret->slow));
	ret->weight = calloc(ret->tenants + 1, sizeof(*ret->weight));
	ret->level = calloc(p->jobs + 1, sizeof(*ret->level));
	ret->touched = calloc(p->jobs + 1, sizeof(*ret->touched));
	ret->more = calloc(ret->tenants + 1, sizeof(*ret->more));
	if (!ret->link || !ret->job || !ret->nodes || !ret->slow || !ret->weight || !ret->level ||
	    !ret->touched || !ret->more)
		return -ENOMEM;
	fill(ret);
	return place_walk_open(g, &ret->walk);
}

/* --- one job --------------------------------------------------------------------------------- */

/* Slowdown - 1 at a level; INFINITY on links that carry nothing. */
static double slow_at(const struct estimate *e, uint32_t job, double level)
{
	const struct place_job *j = &e->p->job[job];
	double iteration_s = j->compute_s + j->bytes / j->weight * level;

	return e->job[job].alone_s > 0 ? iteration_s / e->job[job].alone_s - 1 : 0;
}

static double level_of(const struct estimate_link *l, double more)
{
	return (l->weight + more) / l->room;
}

static double use_of(const struct estimate_link *l, double more)
{
	return (l->load + l->offered + more) / l->capacity;
}

static void set_level(struct estimate *e, uint32_t job, double level)
{
	struct estimate_job *j = &e->job[job];
	double slow = slow_at(e, job, level);

	j->changed = true;
	j->level = level;
	e->slow[e->p->job[job].tenant] += e->p->job[job].weight * (slow - j->slow);
	j->slow = slow;
}

/* What the uses of a placed job say of it, as links are now. */
static void look(struct estimate *e, uint32_t job)
{
	struct estimate_job *j = &e->job[job];
	double level = 0;

	j->full = 0;
	for (unsigned int i = 0; i < j->uses; i++) {
		level = fmax(level, level_of(&e->link[j->use[i].link], 0));
		j->full = fmax(j->full, use_of(&e->link[j->use[i].link], 0));
	}
	e->steps += j->uses;
	if (level != j->level)
		set_level(e, job, level);
}

/* --- what a tree would cost ------------------------------------------------------------------ */

/* What the job itself would be, on the links that have been walked. */
struct trial {
	double level, full, bytes;
	unsigned int touched;
};

/* Others on a link would be slower if it rose above their level. */
static void touch(struct estimate *e, const struct estimate_link *l, double level, struct trial *t)
{
	for (unsigned int i = 0; i < l->users; i++) {
		uint32_t other = l->user[i].job;

		if (level <= e->job[other].level || level <= e->level[other])
			continue;
		if (e->level[other] == 0)
			e->touched[t->touched++] = other;
		e->level[other] = level;
	}
	e->steps += l->users;
}

static void try_links(struct estimate *e, uint32_t job, struct trial *t)
{
	const struct place_job *j = &e->p->job[job];
	double offered = place_offered(j, e->job[job].alone_s);

	for (unsigned int i = 0; i < e->walk.links; i++) {
		const struct estimate_link *l = &e->link[e->walk.link[i]];
		uint32_t times = e->walk.times[e->walk.link[i]];
		double level = level_of(l, j->weight * times);

		t->bytes += j->bytes * times;
		t->level = fmax(t->level, level);
		t->full = fmax(t->full, use_of(l, offered * times));
		touch(e, l, level, t);
	}
	e->steps += e->walk.links;
}

/* Sums by tenant, with what has been touched; clears that. */
static void add_times(struct estimate *e, uint32_t job, const struct trial *t, double slow,
		      struct place_terms *ret)
{
	double all = 0, weight = 0;

	e->more[e->p->job[job].tenant] += e->p->job[job].weight * slow;
	for (unsigned int i = 0; i < t->touched; i++) {
		uint32_t other = e->touched[i];

		e->more[e->p->job[other].tenant] += e->p->job[other].weight *
						    (slow_at(e, other, e->level[other]) -
						     e->job[other].slow);
		e->level[other] = 0;
	}
	for (unsigned int n = 0; n < e->tenants; n++) {
		double its = e->weight[n] +
			     (n == e->p->job[job].tenant ? e->p->job[job].weight : 0);

		all += e->slow[n] + e->more[n];
		weight += its;
		if (its > 0)
			ret->fair = fmax(ret->fair, (e->slow[n] + e->more[n]) / its);
		e->more[n] = 0;
	}
	ret->time = all / weight;
}

static double total(const struct place_terms *value, const struct place_terms *weight)
{
	double sum = 0;

#define PLACE_TERM(name) sum += value->name * weight->name;
	PLACE_TERMS(PLACE_TERM)
#undef PLACE_TERM
	return sum;
}

static void sum_jobs(struct estimate *e)
{
	e->sum = (struct place_terms){ 0 };
	e->without = e->all_weight = 0;
	for (uint32_t j = 0; j < e->p->jobs; j++) {
		if (!e->job[j].placed)
			continue;
		e->sum.bytes += e->job[j].bytes;
		e->sum.moves += e->p->job[j].weight * e->job[j].moves;
		e->sum.use = fmax(e->sum.use, e->job[j].full);
		e->without += e->job[j].without;
		e->all_weight += e->p->job[j].weight;
	}
	e->summed = true;
}

/* The terms that are sums or maxima of jobs. */
static void add_jobs(struct estimate *e, uint32_t job, const struct trial *t, double moves,
		     struct place_terms *ret)
{
	double weight = e->p->job[job].weight, without;

	if (!e->summed)
		sum_jobs(e);
	without = e->without + e->job[job].without;
	ret->use = fmax(e->sum.use, t->full);
	ret->bytes = without > 0 ? (e->sum.bytes + t->bytes) / without : 0;
	ret->moves = (e->sum.moves + weight * moves) / (e->all_weight + weight);
}

double estimate_try(struct estimate *e, uint32_t job, const struct place_tree *tree)
{
	struct place_terms value = { 0 };
	struct trial t = { 0 };
	unsigned int used = e->used;
	double slow = INFINITY;

	if (place_walk_tree(e->p, job, tree, &e->walk) == 0) {
		try_links(e, job, &t);
		slow = slow_at(e, job, t.level);
	}
	place_walk_clear(&e->walk);
	for (unsigned int i = 0; i < tree->nodes; i++)
		used += e->nodes[tree->node[i].machine] == 0;
	value.nodes = e->all_nodes ? (double)used / e->all_nodes : 0;
	add_times(e, job, &t, slow, &value);
	add_jobs(e, job, &t, place_move(e->p, job, tree), &value);
	return isfinite(slow) ? total(&value, &e->p->options.weight) : INFINITY;
}

/* --- to place -------------------------------------------------------------------------------- */

static int add_user(struct estimate_link *l, uint32_t job, uint32_t times)
{
	if (l->users == l->space) {
		unsigned int space = 2 * l->space + 2;
		struct estimate_user *user = reallocarray(l->user, space, sizeof(*user));

		if (!user)
			return -ENOMEM;
		l->user = user;
		l->space = space;
	}
	l->user[l->users++] = (struct estimate_user){ job, times };
	return 0;
}

/* Anew, from all users, so that nothing of those who have left stays as rounding. */
static void sum_up(struct estimate *e, struct estimate_link *l)
{
	l->weight = l->offered = 0;
	for (unsigned int i = 0; i < l->users; i++) {
		const struct place_job *j = &e->p->job[l->user[i].job];

		l->weight += j->weight * l->user[i].times;
		l->offered += place_offered(j, e->job[l->user[i].job].alone_s) * l->user[i].times;
	}
	e->steps += l->users;
}

static void drop_user(struct estimate_link *l, uint32_t job)
{
	for (unsigned int i = 0; i < l->users; i++)
		if (l->user[i].job == job)
			l->user[i] = l->user[--l->users];
}

/* Who shares links with a job that has come. */
static void rise(struct estimate *e, const struct fair_use *use, unsigned int uses)
{
	for (unsigned int i = 0; i < uses; i++) {
		const struct estimate_link *l = &e->link[use[i].link];
		double level = level_of(l, 0), full = use_of(l, 0);

		for (unsigned int k = 0; k < l->users; k++) {
			uint32_t other = l->user[k].job;

			e->job[other].full = fmax(e->job[other].full, full);
			if (level > e->job[other].level)
				set_level(e, other, level);
		}
		e->steps += l->users;
	}
}

/* Whom the link holds up now will look anew. A level may differ by rounding from when it was set.
 */
static void note_held(struct estimate *e, const struct estimate_link *l, unsigned int *touched)
{
	static const double NEARLY = 1 + 1e-9;
	double level = level_of(l, 0) * NEARLY, full = use_of(l, 0) * NEARLY;

	for (unsigned int k = 0; k < l->users; k++) {
		uint32_t other = l->user[k].job;

		if (e->level[other] > 0 ||
		    (e->job[other].level > level && e->job[other].full > full))
			continue;
		e->level[other] = 1;
		e->touched[(*touched)++] = other;
	}
}

static void leave(struct estimate *e, uint32_t job)
{
	struct estimate_job *j = &e->job[job];

	for (unsigned int i = 0; i < j->uses; i++) {
		drop_user(&e->link[j->use[i].link], job);
		sum_up(e, &e->link[j->use[i].link]);
	}
}

static int come(struct estimate *e, uint32_t job)
{
	struct estimate_job *j = &e->job[job];

	for (unsigned int i = 0; i < j->uses; i++) {
		struct estimate_link *l = &e->link[j->use[i].link];

		if (add_user(l, job, (uint32_t)j->use[i].times) < 0) {
			leave(e, job);
			return -ENOMEM;
		}
		sum_up(e, l);
		j->bytes += e->p->job[job].bytes * j->use[i].times;
	}
	return 0;
}

static int take_uses(struct estimate *e, uint32_t job, const struct place_tree *tree)
{
	struct estimate_job *j = &e->job[job];
	int r = place_walk_tree(e->p, job, tree, &e->walk);

	j->use = r < 0 ? NULL : calloc(e->walk.links + 1, sizeof(*j->use));
	j->uses = 0;
	j->bytes = 0;
	for (unsigned int i = 0; j->use && i < e->walk.links; i++) {
		uint32_t l = e->walk.link[i];

		j->use[j->uses++] = (struct fair_use){ l, e->walk.times[l] };
	}
	place_walk_clear(&e->walk);
	return j->use ? 0 : -ENOMEM;
}

static void forget_uses(struct estimate_job *j)
{
	free(j->use);
	j->use = NULL;
	j->uses = 0;
	j->bytes = j->level = j->slow = j->full = j->moves = 0;
	j->changed = false;
}

int estimate_add(struct estimate *e, uint32_t job, const struct place_tree *tree)
{
	struct estimate_job *j = &e->job[job];
	unsigned int tenant = e->p->job[job].tenant;

	if (take_uses(e, job, tree) < 0 || come(e, job) < 0) {
		forget_uses(j);
		return -ENOMEM;
	}
	j->placed = true;
	e->summed = false;
	j->moves = place_move(e->p, job, tree);
	e->weight[tenant] += e->p->job[job].weight;
	for (unsigned int i = 0; i < tree->nodes; i++)
		e->used += e->nodes[tree->node[i].machine]++ == 0;
	rise(e, j->use, j->uses);
	j->changed = false;
	return 0;
}

void estimate_remove(struct estimate *e, uint32_t job, const struct place_tree *tree)
{
	struct estimate_job *j = &e->job[job];
	unsigned int tenant = e->p->job[job].tenant, touched = 0;

	j->placed = false;
	e->summed = false;
	e->slow[tenant] -= e->p->job[job].weight * j->slow;
	e->weight[tenant] -= e->p->job[job].weight;
	for (unsigned int i = 0; i < tree->nodes; i++)
		e->used -= --e->nodes[tree->node[i].machine] == 0;
	for (unsigned int i = 0; i < j->uses; i++)
		note_held(e, &e->link[j->use[i].link], &touched);
	leave(e, job);
	for (unsigned int i = 0; i < touched; i++) {
		e->level[e->touched[i]] = 0;
		if (e->touched[i] != job)
			look(e, e->touched[i]);
	}
	forget_uses(j);
}
