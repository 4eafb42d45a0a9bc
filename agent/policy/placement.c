// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "placement.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/owned.h"
#include "lp.h"

/* --- costs ----------------------------------------------------------------------------------- */

static double cost_of(const struct placement_job *job, const uint32_t *distance)
{
	double links = 0;

	for (unsigned int w = 0; w < job->workers; w++) {
		if (distance[job->worker[w]] == GRAPH_NONE)
			return INFINITY;
		links += distance[job->worker[w]];
	}
	return job->bytes * links;
}

int placement_costs(const struct graph *g, const struct placement_job *job, unsigned int jobs,
		    const uint32_t *machine, unsigned int machines, double *ret_cost)
{
	_cleanup_(freep) uint32_t *distance = NULL;

	for (unsigned int j = 0; j < jobs; j++)
		for (unsigned int w = 0; w < job[j].workers; w++)
			if (job[j].worker[w] >= g->machines)
				return -EINVAL;
	distance = calloc(g->machines + 1, sizeof(*distance));
	if (!distance)
		return -ENOMEM;
	for (unsigned int i = 0; i < machines; i++) {
		int r = graph_distances(g, machine[i], distance);

		if (r < 0)
			return r;
		for (unsigned int j = 0; j < jobs; j++)
			ret_cost[(size_t)j * machines + i] = cost_of(&job[j], distance);
	}
	return 0;
}

static double cost_at(const struct placement *p, uint32_t job, uint32_t node)
{
	return node == PLACEMENT_NONE ? p->without[job] : p->cost[(size_t)job * p->nodes + node];
}

double placement_cost(const struct placement *p, const uint32_t *node)
{
	double cost = 0;

	for (unsigned int j = 0; j < p->jobs; j++)
		cost += cost_at(p, j, node[j]);
	return cost;
}

/* --- one after another ----------------------------------------------------------------------- */

struct ranked {
	double value;
	uint32_t index;
};

/* The largest first; of equals the lowest index. */
static int by_value(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* The best node with room for this job, of all or of those in use; PLACEMENT_NONE: there is none.
 */
static uint32_t best_node(const struct placement *p, uint32_t job, const unsigned int *held,
			  bool in_use)
{
	uint32_t best = PLACEMENT_NONE;
	double least = INFINITY;

	for (uint32_t n = 0; n < p->nodes; n++) {
		if (held[n] >= p->jobs_max || (in_use && held[n] == 0))
			continue;
		if (cost_at(p, job, n) < least) {
			least = cost_at(p, job, n);
			best = n;
		}
	}
	return best;
}

static uint32_t choose(const struct placement *p, uint32_t job, double distance_max,
		       const unsigned int *held, unsigned int used)
{
	uint32_t known = best_node(p, job, held, true);

	if (used >= p->nodes_max)
		return known;
	if (known != PLACEMENT_NONE && cost_at(p, job, known) <= distance_max * p->size[job])
		return known;
	return best_node(p, job, held, false);
}

int placement_reuse(const struct placement *p, double distance_max, uint32_t *ret_node)
{
	_cleanup_(freep) struct ranked *order = calloc(p->jobs + 1, sizeof(*order));
	_cleanup_(freep) unsigned int *held = calloc(p->nodes + 1, sizeof(*held));
	unsigned int used = 0;

	if (!order || !held)
		return -ENOMEM;
	for (uint32_t j = 0; j < p->jobs; j++)
		order[j] = (struct ranked){ p->size[j], j };
	qsort(order, p->jobs, sizeof(*order), by_value);
	for (uint32_t i = 0; i < p->jobs; i++) {
		uint32_t node = choose(p, order[i].index, distance_max, held, used);

		ret_node[order[i].index] = node;
		if (node != PLACEMENT_NONE)
			used += held[node]++ == 0;
	}
	return 0;
}

/* --- a matching ------------------------------------------------------------------------------ */

struct matching {
	const struct placement *p;
	struct ranked *wish; /* of each job: nodes, the best first */
	uint32_t *next; /* of each job: the wish that comes next */
	uint32_t *waiting; /* jobs without a node, the last one first */
	unsigned int *held;
	bool *dropped; /* nodes that are not to be used */
	double *saved; /* by each node, when nodes are dropped */
	uint32_t *node; /* of each job; the caller's */
};

static void matching_close(struct matching *m)
{
	free(m->wish);
	free(m->next);
	free(m->waiting);
	free(m->held);
	free(m->dropped);
	free(m->saved);
}

static int matching_open(const struct placement *p, uint32_t *node, struct matching *ret)
{
	struct matching m = { .p = p, .node = node };

	m.wish = calloc((size_t)p->jobs * p->nodes + 1, sizeof(*m.wish));
	m.next = calloc(p->jobs + 1, sizeof(*m.next));
	m.waiting = calloc(p->jobs + 1, sizeof(*m.waiting));
	m.held = calloc(p->nodes + 1, sizeof(*m.held));
	m.dropped = calloc(p->nodes + 1, sizeof(*m.dropped));
	m.saved = calloc(p->nodes + 1, sizeof(*m.saved));
	if (!m.wish || !m.next || !m.waiting || !m.held || !m.dropped || !m.saved) {
		matching_close(&m);
		return -ENOMEM;
	}
	for (uint32_t j = 0; j < p->jobs; j++) {
		struct ranked *wish = &m.wish[(size_t)j * p->nodes];

		for (uint32_t n = 0; n < p->nodes; n++)
			wish[n] = (struct ranked){ -cost_at(p, j, n), n };
		qsort(wish, p->nodes, sizeof(*wish), by_value);
	}
	*ret = m;
	return 0;
}

/* The smallest job of a node, if it is smaller than this one; PLACEMENT_NONE: there is none. */
static uint32_t smaller_job(const struct matching *m, uint32_t node, uint32_t job)
{
	uint32_t smallest = job;

	for (uint32_t j = 0; j < m->p->jobs; j++)
		if (m->node[j] == node && m->p->size[j] < m->p->size[smallest])
			smallest = j;
	return smallest == job ? PLACEMENT_NONE : smallest;
}

/* Proposes to the job's next node. Returns who has no node now: the job, another one, or none. */
static uint32_t propose(struct matching *m, uint32_t job)
{
	uint32_t node = m->wish[(size_t)job * m->p->nodes + m->next[job]++].index, gone;

	if (m->dropped[node] || isinf(cost_at(m->p, job, node)))
		return job;
	if (m->held[node] < m->p->jobs_max) {
		m->held[node]++;
		m->node[job] = node;
		return PLACEMENT_NONE;
	}
	gone = smaller_job(m, node, job);
	if (gone == PLACEMENT_NONE)
		return job;
	m->node[gone] = PLACEMENT_NONE;
	m->node[job] = node;
	return gone;
}

static void match(struct matching *m)
{
	const struct placement *p = m->p;
	uint32_t waiting = 0;

	for (uint32_t n = 0; n < p->nodes; n++)
		m->held[n] = 0;
	for (uint32_t j = p->jobs; j-- > 0;) {
		m->node[j] = PLACEMENT_NONE;
		m->next[j] = 0;
		m->waiting[waiting++] = j;
	}
	while (waiting) {
		uint32_t job = m->waiting[--waiting];

		while (job != PLACEMENT_NONE && m->next[job] < p->nodes)
			job = propose(m, job);
	}
}

/* The node in use that saves least; of equals the first. */
static uint32_t least_node(const struct matching *m)
{
	uint32_t least = PLACEMENT_NONE;

	for (uint32_t n = 0; n < m->p->nodes; n++)
		if (!m->dropped[n] && (least == PLACEMENT_NONE || m->saved[n] < m->saved[least]))
			least = n;
	return least;
}

/* Nodes without jobs, and then those that save least, until no more are left than may be used. */
static void drop_nodes(struct matching *m)
{
	unsigned int used = 0;

	for (uint32_t j = 0; j < m->p->jobs; j++)
		if (m->node[j] != PLACEMENT_NONE)
			m->saved[m->node[j]] += m->p->without[j] - cost_at(m->p, j, m->node[j]);
	for (uint32_t n = 0; n < m->p->nodes; n++) {
		m->dropped[n] = m->held[n] == 0;
		used += !m->dropped[n];
	}
	for (; used > m->p->nodes_max; used--)
		m->dropped[least_node(m)] = true;
}

int placement_match(const struct placement *p, uint32_t *ret_node)
{
	_cleanup_(matching_close) struct matching m = { 0 };
	int r = matching_open(p, ret_node, &m);

	if (r < 0)
		return r;
	match(&m);
	drop_nodes(&m);
	match(&m);
	return 0;
}

/* --- the best one ---------------------------------------------------------------------------- */

/* Variables: a node's use; then job j at node n, and last without a node. */
static uint32_t share_of(const struct placement *p, uint32_t job, uint32_t node)
{
	return p->nodes + job * (p->nodes + 1) + node;
}

/* A job that no node and no root can be reached from gets no node, and that costs nothing. */
static void add_job(const struct placement *p, struct lp *l, uint32_t job)
{
	uint32_t once = lp_row(l, 1, 1);
	bool has_way = false;

	for (uint32_t n = 0; n <= p->nodes; n++) {
		double cost = cost_at(p, job, n < p->nodes ? n : PLACEMENT_NONE);
		bool can = !isinf(cost) || (n == p->nodes && !has_way);

		has_way |= !isinf(cost);
		lp_term(l, once, lp_whole(l, 0, can, isinf(cost) ? 0 : cost), 1);
	}
}

/*
 * A node in use has no more than jobs_max; and none where it is not in use. The factor is no larger
 * than it must be: beside 2^32 the solver takes a 1 for nothing.
 */
static void add_node(const struct placement *p, struct lp *l, uint32_t node)
{
	uint32_t full = lp_row(l, -INFINITY, 0);

	lp_term(l, full, node, -fmin(p->jobs_max, p->jobs));
	for (uint32_t j = 0; j < p->jobs; j++) {
		uint32_t only = lp_row(l, -INFINITY, 0);

		lp_term(l, full, share_of(p, j, node), 1);
		lp_term(l, only, share_of(p, j, node), 1);
		lp_term(l, only, node, -1);
	}
}

int placement_exact(const struct placement *p, unsigned int steps_max, uint32_t *ret_node)
{
	_cleanup_(lp_closep) struct lp *l = NULL;
	enum lp_outcome outcome;
	uint32_t used;
	int r;

	r = lp_open(&l);
	if (r < 0)
		return r;
	used = lp_row(l, -INFINITY, fmin(p->nodes_max, p->nodes));
	for (uint32_t n = 0; n < p->nodes; n++)
		lp_term(l, used, lp_whole(l, 0, 1, 0), 1);
	for (uint32_t j = 0; j < p->jobs; j++)
		add_job(p, l, j);
	for (uint32_t n = 0; n < p->nodes; n++)
		add_node(p, l, n);
	r = lp_minimise(l, steps_max, &outcome);
	if (r < 0)
		return r;
	if (outcome != LP_OPTIMAL)
		return outcome == LP_UNFINISHED ? -EAGAIN : -ENOSPC;
	for (uint32_t j = 0; j < p->jobs; j++) {
		ret_node[j] = PLACEMENT_NONE;
		for (uint32_t n = 0; n < p->nodes; n++)
			if (lp_value(l, share_of(p, j, n)) > 0)
				ret_node[j] = n;
	}
	return 0;
}
