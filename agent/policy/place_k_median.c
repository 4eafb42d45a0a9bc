// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The k nodes for which bytes times links are least if nodes had room for all jobs: one after
 * another, always the one that saves most, and then swaps of one node for another as long as they
 * save (V. Arya et al., "Local search heuristics for k-median", SIAM Journal on Computing 33,
 * 2004).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/owned.h"
#include "place_private.h"

struct median {
	const struct place_problem *p;
	unsigned int nodes, open;
	uint32_t *node; /* those that are open first */
	double *cost; /* [job * nodes + i]: with node[i] */
	double *without; /* [jobs] */
	double *best, *second; /* [jobs]: of the open ones, or without */
	uint32_t *whose; /* [jobs]: the best one, as an index; GRAPH_NONE: without */
	unsigned int steps; /* left */
};

static void median_close(struct median *m)
{
	free(m->node);
	free(m->cost);
	free(m->without);
	free(m->best);
	free(m->second);
	free(m->whose);
}

static int median_open(const struct place_problem *p, struct median *m)
{
	int r = place_nodes(p->reach->graph, &m->node, &m->nodes);

	if (r < 0)
		return r;
	m->p = p;
	m->steps = p->options.steps_max;
	m->cost = calloc((size_t)p->jobs * m->nodes + 1, sizeof(*m->cost));
	m->without = calloc(p->jobs + 1, sizeof(*m->without));
	m->best = calloc(p->jobs + 1, sizeof(*m->best));
	m->second = calloc(p->jobs + 1, sizeof(*m->second));
	m->whose = calloc(p->jobs + 1, sizeof(*m->whose));
	if (!m->cost || !m->without || !m->best || !m->second || !m->whose)
		return -ENOMEM;
	for (uint32_t j = 0; j < p->jobs; j++) {
		/* Where nobody makes results without a node, each node saves. */
		m->without[j] = fmin(place_far(p, j, p->job[j].root),
				     p->job[j].bytes * p->job[j].workers * GRAPH_PATH_MAX);
		for (unsigned int i = 0; i < m->nodes; i++)
			m->cost[(size_t)j * m->nodes + i] = place_far(p, j, m->node[i]);
	}
	return 0;
}

static double cost_at(const struct median *m, uint32_t job, uint32_t i)
{
	return m->cost[(size_t)job * m->nodes + i];
}

/* Of each job the best and the second best of what is open. */
static void rank(struct median *m)
{
	for (uint32_t j = 0; j < m->p->jobs; j++) {
		m->best[j] = m->without[j];
		m->second[j] = INFINITY;
		m->whose[j] = GRAPH_NONE;
		for (uint32_t i = 0; i < m->open; i++) {
			double cost = cost_at(m, j, i);

			if (cost < m->best[j]) {
				m->second[j] = m->best[j];
				m->best[j] = cost;
				m->whose[j] = i;
			} else if (cost < m->second[j]) {
				m->second[j] = cost;
			}
		}
	}
}

/* What is saved if `in` is opened, and `out` (or none: GRAPH_NONE) is closed. */
static double saved(struct median *m, uint32_t in, uint32_t out)
{
	double sum = 0;

	for (uint32_t j = 0; j < m->p->jobs; j++) {
		double left = m->whose[j] == out && out != GRAPH_NONE ? m->second[j] : m->best[j];

		sum += m->best[j] - fmin(left, cost_at(m, j, in));
	}
	m->steps = m->steps > m->p->jobs ? m->steps - m->p->jobs : 0;
	return sum;
}

static void exchange(struct median *m, uint32_t a, uint32_t b)
{
	uint32_t node = m->node[a];

	m->node[a] = m->node[b];
	m->node[b] = node;
	for (uint32_t j = 0; j < m->p->jobs; j++) {
		double *row = &m->cost[(size_t)j * m->nodes], cost = row[a];

		row[a] = row[b];
		row[b] = cost;
	}
}

/* Opens the node that saves most. False: none does. */
static bool open_one(struct median *m)
{
	double most = 0;
	uint32_t best = GRAPH_NONE;

	rank(m);
	for (uint32_t i = m->open; i < m->nodes; i++) {
		double sum = saved(m, i, GRAPH_NONE);

		if (sum > most) {
			most = sum;
			best = i;
		}
	}
	if (best == GRAPH_NONE)
		return false;
	exchange(m, m->open++, best);
	return true;
}

/* The first swap that saves a thousandth, so that rounding makes no circles. */
static bool swap_one(struct median *m)
{
	double all = 0;

	rank(m);
	for (uint32_t j = 0; j < m->p->jobs; j++)
		all += m->best[j];
	for (uint32_t out = 0; out < m->open; out++)
		for (uint32_t in = m->open; in < m->nodes && m->steps > 0; in++)
			if (saved(m, in, out) > all / 1000) {
				exchange(m, out, in);
				return true;
			}
	return false;
}

int place_k_median(const struct place_problem *p, struct place_tree *ret)
{
	_cleanup_(median_close) struct median m = { 0 };
	unsigned int limit;
	int r = median_open(p, &m);

	if (r < 0)
		return r;
	limit = m.nodes < p->options.nodes_max ? m.nodes : p->options.nodes_max;
	while (m.open < limit && open_one(&m))
		;
	while (m.steps > 0 && swap_one(&m))
		;
	return place_fit(p, m.node, m.open, ret);
}
