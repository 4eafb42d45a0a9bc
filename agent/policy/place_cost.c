// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a decision costs, term by term. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "place_private.h"

static const double ROOM_LEAST = 0.01; /* of a link's capacity, whatever load there is */

double place_link_room(const struct graph_link *link)
{
	return fmax(graph_room(link), ROOM_LEAST * link->capacity);
}

/* --- which links a tree uses ----------------------------------------------------------------- */

int place_walk_open(const struct graph *g, struct place_walk *ret)
{
	struct place_walk w = { 0 };

	w.times = calloc(g->links + 1, sizeof(*w.times));
	w.link = calloc(g->links + 1, sizeof(*w.link));
	if (!w.times || !w.link) {
		place_walk_close(&w);
		return -ENOMEM;
	}
	*ret = w;
	return 0;
}

void place_walk_close(struct place_walk *w)
{
	free(w->times);
	free(w->link);
}

void place_walk_clear(struct place_walk *w)
{
	while (w->links)
		w->times[w->link[--w->links]] = 0;
}

static bool walk(const struct place_problem *p, uint32_t from, uint32_t to, struct place_walk *w)
{
	uint32_t link[GRAPH_PATH_MAX];
	uint32_t links = reach_path(p->reach, from, to, p->options.seed, link);

	if (links == GRAPH_NONE)
		return false;
	for (uint32_t i = 0; i < links; i++)
		if (w->times[link[i]]++ == 0)
			w->link[w->links++] = link[i];
	return true;
}

static bool walk_both(const struct place_problem *p, uint32_t a, uint32_t b, struct place_walk *w)
{
	return walk(p, a, b, w) && walk(p, b, a, w);
}

uint32_t place_nearest(const struct reach *reach, uint32_t worker, uint32_t root,
		       const struct place_tree *tree)
{
	uint32_t least = GRAPH_NONE, best = GRAPH_NONE;

	if (root != GRAPH_NONE)
		least = reach_distance(reach, worker, root);
	for (uint32_t i = 0; i < tree->nodes; i++) {
		uint32_t links = reach_distance(reach, worker, tree->node[i].machine);

		if (links < least || (links == least && best == GRAPH_NONE)) {
			least = links;
			best = i;
		}
	}
	return best;
}

int place_walk_tree(const struct place_problem *p, uint32_t job, const struct place_tree *tree,
		    struct place_walk *w)
{
	const struct place_job *j = &p->job[job];

	for (unsigned int i = 0; i < j->workers; i++) {
		uint32_t node = place_nearest(p->reach, j->worker[i], j->root, tree);
		uint32_t to = node == GRAPH_NONE ? j->root : tree->node[node].machine;

		if (to == GRAPH_NONE || !walk_both(p, j->worker[i], to, w))
			return -EHOSTUNREACH;
	}
	for (uint32_t i = 0; i < tree->nodes; i++) {
		uint32_t parent = tree->node[i].parent;
		uint32_t to = parent == GRAPH_NONE ? j->root : tree->node[parent].machine;

		if (to != GRAPH_NONE && !walk_both(p, tree->node[i].machine, to, w))
			return -EHOSTUNREACH;
	}
	return 0;
}

static int by_link(const void *a, const void *b)
{
	const struct fair_use *x = a, *y = b;

	return (x->link > y->link) - (x->link < y->link);
}

static int uses_of(const struct place_walk *w, struct fair_use **ret, unsigned int *ret_uses)
{
	struct fair_use *use = calloc(w->links + 1, sizeof(*use));

	if (!use)
		return -ENOMEM;
	for (unsigned int i = 0; i < w->links; i++)
		use[i] = (struct fair_use){ w->link[i], w->times[w->link[i]] };
	qsort(use, w->links, sizeof(*use), by_link);
	*ret = use;
	*ret_uses = w->links;
	return 0;
}

int place_uses(const struct place_problem *p, uint32_t job, const struct place_tree *tree,
	       struct fair_use **ret, unsigned int *ret_uses)
{
	_cleanup_(place_walk_close) struct place_walk w = { 0 };
	int r = job < p->jobs && place_is_tree(p, &p->job[job], tree) ? place_check(p) : -EINVAL;

	if (r == 0)
		r = place_walk_open(p->reach->graph, &w);
	if (r == 0)
		r = place_walk_tree(p, job, tree, &w);
	return r < 0 ? r : uses_of(&w, ret, ret_uses);
}

/* --- of one job ------------------------------------------------------------------------------ */

double place_bytes_without(const struct place_problem *p, uint32_t job)
{
	const struct place_job *j = &p->job[job];
	uint32_t root = j->root == GRAPH_NONE ? j->worker[0] : j->root;
	double links = 0;

	for (unsigned int w = 0; w < j->workers; w++) {
		uint32_t up = reach_distance(p->reach, j->worker[w], root);
		uint32_t down = reach_distance(p->reach, root, j->worker[w]);

		links += (up == GRAPH_NONE ? GRAPH_PATH_MAX : up) +
			 (down == GRAPH_NONE ? GRAPH_PATH_MAX : down);
	}
	return j->bytes * links;
}

/* The largest capacity of these links of a machine; INFINITY where it has none. */
static double widest(const struct graph *g, const uint32_t *link, uint32_t begin, uint32_t end)
{
	double most = begin == end ? INFINITY : 0;

	for (uint32_t i = begin; i < end; i++)
		most = fmax(most, g->link[link[i]].capacity);
	return most;
}

static double own_rate(const struct graph *g, uint32_t m)
{
	return fmin(widest(g, g->leaving, g->leaving_at[m], g->leaving_at[m + 1]),
		    widest(g, g->arriving, g->arriving_at[m], g->arriving_at[m + 1]));
}

/* How many of a job's messages must leave a machine: one where it may make the sums itself. */
static unsigned int messages_of(const struct place_problem *p, const struct place_job *j,
				uint32_t m)
{
	unsigned int workers = 0;

	for (unsigned int w = 0; w < j->workers; w++)
		workers += j->worker[w] == m;
	return p->reach->graph->machine[m].kind == GRAPH_NODE ? 1 : workers;
}

/* Where all workers are on one machine, which may make the results, no link is used. */
static bool needs_links(const struct place_problem *p, const struct place_job *j)
{
	const uint32_t m = j->worker[0];

	if (j->root != m &&
	    (j->root != GRAPH_NONE || p->reach->graph->machine[m].kind != GRAPH_NODE))
		return true;
	for (unsigned int w = 1; w < j->workers; w++)
		if (j->worker[w] != m)
			return true;
	return false;
}

double place_alone_s(const struct place_problem *p, uint32_t job)
{
	const struct place_job *j = &p->job[job];
	const struct graph *g = p->reach->graph;
	double rate = j->root == GRAPH_NONE ? INFINITY : own_rate(g, j->root);

	if (!needs_links(p, j))
		return j->compute_s;
	for (unsigned int w = 0; w < j->workers; w++)
		if (j->worker[w] != j->root)
			rate = fmin(rate,
				    own_rate(g, j->worker[w]) / messages_of(p, j, j->worker[w]));
	return j->compute_s + j->bytes / rate;
}

double place_offered(const struct place_job *job, double alone_s)
{
	return alone_s > 0 ? job->bytes / alone_s : 0;
}

static uint32_t parent_machine(const struct place_tree *t, uint32_t i)
{
	return t->node[i].parent == GRAPH_NONE ? GRAPH_NONE : t->node[t->node[i].parent].machine;
}

bool place_same(const struct place_tree *a, const struct place_tree *b)
{
	unsigned int same = 0;

	for (uint32_t i = 0; i < a->nodes; i++)
		for (uint32_t k = 0; k < b->nodes; k++)
			same += a->node[i].machine == b->node[k].machine &&
				parent_machine(a, i) == parent_machine(b, k);
	return a->nodes == b->nodes && same == a->nodes;
}

double place_move(const struct place_problem *p, uint32_t job, const struct place_tree *tree)
{
	const struct place_job *j = &p->job[job];
	double alone_s;

	if (!j->now || place_same(j->now, tree))
		return 0;
	alone_s = place_alone_s(p, job);
	if (alone_s <= 0)
		return 0;
	return p->options.move_s / (fmax(j->iterations, 1) * alone_s);
}

/* --- of all jobs ----------------------------------------------------------------------------- */

struct weighing {
	const struct place_problem *p;
	const struct place_tree *tree;
	struct place_walk walk;
	struct fair_flow *flow; /* [jobs]; of jobs that failed without links */
	double *room, *offered, *carried; /* [links] */
	double *rate; /* [jobs] */
	struct place_job_cost *job;
	double *slow, *weight; /* [tenants] */
	bool *used; /* [machines] */
};

static void weighing_close(struct weighing *w)
{
	for (uint32_t j = 0; w->flow && j < w->p->jobs; j++)
		free((void *)w->flow[j].use);
	free(w->flow);
	free(w->room);
	free(w->offered);
	free(w->carried);
	free(w->rate);
	free(w->job);
	free(w->slow);
	free(w->weight);
	free(w->used);
	place_walk_close(&w->walk);
}

static unsigned int tenants(const struct place_problem *p)
{
	unsigned int most = 0;

	for (uint32_t j = 0; j < p->jobs; j++)
		if (p->job[j].tenant >= most)
			most = p->job[j].tenant + 1;
	return most;
}

static int weighing_open(struct weighing *w)
{
	const struct graph *g = w->p->reach->graph;
	unsigned int t = tenants(w->p), jobs = w->p->jobs;

	w->flow = calloc(jobs + 1, sizeof(*w->flow));
	w->room = calloc(g->links + 1, sizeof(*w->room));
	w->offered = calloc(g->links + 1, sizeof(*w->offered));
	w->carried = calloc(g->links + 1, sizeof(*w->carried));
	w->rate = calloc(jobs + 1, sizeof(*w->rate));
	w->job = calloc(jobs + 1, sizeof(*w->job));
	w->slow = calloc(t + 1, sizeof(*w->slow));
	w->weight = calloc(t + 1, sizeof(*w->weight));
	w->used = calloc(g->machines + 1, sizeof(*w->used));
	if (!w->flow || !w->room || !w->offered || !w->carried || !w->rate || !w->job || !w->slow ||
	    !w->weight || !w->used)
		return -ENOMEM;
	for (uint32_t l = 0; l < g->links; l++)
		w->room[l] = place_link_room(&g->link[l]);
	return place_walk_open(g, &w->walk);
}

/* What a job uses of links; where it has no way, nothing. */
static int add_flow(struct weighing *w, uint32_t j)
{
	struct fair_flow *f = &w->flow[j];
	struct fair_use *use = NULL;
	int r = place_walk_tree(w->p, j, &w->tree[j], &w->walk);

	*f = (struct fair_flow){ .weight = w->p->job[j].weight, .limit = INFINITY };
	if (r == -EHOSTUNREACH) {
		w->job[j].failed = true;
		f->limit = 0;
		r = 0;
	} else if (r == 0) {
		r = uses_of(&w->walk, &use, &f->uses);
		f->use = use;
	}
	place_walk_clear(&w->walk);
	return r;
}

static void weigh_job(struct weighing *w, uint32_t j, struct place_cost *c)
{
	const struct place_job *job = &w->p->job[j];
	const struct fair_flow *f = &w->flow[j];
	struct place_job_cost *cost = &w->job[j];
	double alone_s = place_alone_s(w->p, j), iteration_s = job->compute_s;

	if (w->rate[j] > 0)
		iteration_s += job->bytes / w->rate[j];
	if (cost->failed || w->rate[j] <= 0 || !isfinite(alone_s)) {
		*cost = (struct place_job_cost){ .failed = true, .narrowest = GRAPH_NONE };
		c->failed++;
		return;
	}
	*cost = (struct place_job_cost){ .rate = w->rate[j],
					 .alone_s = alone_s,
					 .iteration_s = iteration_s,
					 .slowdown = alone_s > 0 ? iteration_s / alone_s : 1,
					 .narrowest = GRAPH_NONE,
					 .moved = place_move(w->p, j, &w->tree[j]) > 0 };
	for (unsigned int i = 0; i < f->uses; i++) {
		cost->bytes += job->bytes * f->use[i].times;
		w->offered[f->use[i].link] += place_offered(job, alone_s) * f->use[i].times;
		w->carried[f->use[i].link] += w->rate[j] * f->use[i].times;
	}
}

/* Of a job's links that which is fullest at the rates of all. */
static void find_narrowest(const struct weighing *w, uint32_t j)
{
	const struct fair_flow *f = &w->flow[j];
	double most = -1;

	for (unsigned int i = 0; i < f->uses && !w->job[j].failed; i++) {
		uint32_t l = f->use[i].link;

		if (w->carried[l] / w->room[l] > most) {
			most = w->carried[l] / w->room[l];
			w->job[j].narrowest = l;
		}
	}
}

static void weigh_links(const struct weighing *w, struct place_cost *c)
{
	const struct graph *g = w->p->reach->graph;

	for (uint32_t l = 0; l < g->links; l++) {
		double use = (g->link[l].load + w->offered[l]) / g->link[l].capacity;

		if (w->offered[l] > 0 && (c->fullest == GRAPH_NONE || use > c->value.use)) {
			c->value.use = use;
			c->fullest = l;
		}
	}
}

static void weigh_nodes(const struct weighing *w, struct place_cost *c)
{
	const struct graph *g = w->p->reach->graph;
	unsigned int nodes = 0;

	for (uint32_t j = 0; j < w->p->jobs; j++)
		for (uint32_t i = 0; i < w->tree[j].nodes; i++)
			w->used[w->tree[j].node[i].machine] = true;
	for (uint32_t m = 0; m < g->machines; m++) {
		nodes += g->machine[m].kind == GRAPH_NODE;
		c->nodes += w->used[m];
	}
	c->value.nodes = nodes ? (double)c->nodes / nodes : 0;
}

/* Means by weight: of all jobs, and of each tenant's. */
static void weigh_times(const struct weighing *w, struct place_cost *c)
{
	double bytes = 0, without = 0, slow = 0, weight = 0, moves = 0;

	for (uint32_t j = 0; j < w->p->jobs; j++) {
		const struct place_job *job = &w->p->job[j];

		if (w->job[j].failed)
			continue;
		bytes += w->job[j].bytes;
		without += place_bytes_without(w->p, j);
		weight += job->weight;
		slow += job->weight * (w->job[j].slowdown - 1);
		moves += job->weight * place_move(w->p, j, &w->tree[j]);
		c->moved += w->job[j].moved;
		w->weight[job->tenant] += job->weight;
		w->slow[job->tenant] += job->weight * (w->job[j].slowdown - 1);
	}
	for (unsigned int t = 0; t < tenants(w->p); t++)
		if (w->weight[t] > 0)
			c->value.fair = fmax(c->value.fair, w->slow[t] / w->weight[t]);
	c->value.bytes = without > 0 ? bytes / without : 0;
	c->value.time = weight > 0 ? slow / weight : 0;
	c->value.moves = weight > 0 ? moves / weight : 0;
}

static void add_up(const struct place_terms *weight, struct place_cost *c)
{
	c->total = 0;
#define PLACE_TERM(name)                             \
	c->part.name = weight->name * c->value.name; \
	c->total += c->part.name;
	PLACE_TERMS(PLACE_TERM)
#undef PLACE_TERM
	if (c->failed)
		c->total = INFINITY;
}

static int weigh(struct weighing *w, struct place_cost *c)
{
	const struct place_problem *p = w->p;
	int r = weighing_open(w);

	for (uint32_t j = 0; j < p->jobs && r == 0; j++)
		r = add_flow(w, j);
	if (r == 0)
		r = fair_rates(w->room, p->reach->graph->links, w->flow, p->jobs, w->rate);
	if (r < 0)
		return r;
	for (uint32_t j = 0; j < p->jobs; j++)
		weigh_job(w, j, c);
	for (uint32_t j = 0; j < p->jobs; j++)
		find_narrowest(w, j);
	weigh_links(w, c);
	weigh_nodes(w, c);
	weigh_times(w, c);
	add_up(&p->options.weight, c);
	return 0;
}

int place_cost(const struct place_problem *p, const struct place_tree *tree, struct place_cost *ret,
	       struct place_job_cost *ret_job)
{
	_cleanup_(weighing_close) struct weighing w = { .p = p, .tree = tree };
	struct place_cost c = { .fullest = GRAPH_NONE };
	int r = place_check(p);

	for (uint32_t j = 0; j < p->jobs && r == 0; j++)
		r = place_is_tree(p, &p->job[j], &tree[j]) ? 0 : -EINVAL;
	if (r == 0)
		r = weigh(&w, &c);
	if (r != 0)
		return r;
	*ret = c;
	if (ret_job && w.job)
		memcpy(ret_job, w.job, p->jobs * sizeof(*ret_job));
	return 0;
}
