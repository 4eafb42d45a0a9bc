// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One node a job, by bytes times links from workers to node: what placement.h has. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/owned.h"
#include "place_private.h"
#include "placement.h"

struct single {
	uint32_t *machine; /* of each node */
	double *cost, *without, *size;
	uint32_t *node; /* of each job */
	struct placement p;
};

static void single_close(struct single *s)
{
	free(s->machine);
	free(s->cost);
	free(s->without);
	free(s->size);
	free(s->node);
}

/* Where nobody can make results, no node is further away than none. */
static double cost_without(const struct place_problem *p, uint32_t job)
{
	double cost = place_far(p, job, p->job[job].root);

	return isinf(cost) ? p->job[job].bytes * p->job[job].workers * GRAPH_PATH_MAX : cost;
}

static int single_open(const struct place_problem *p, struct single *ret)
{
	unsigned int nodes, jobs = p->jobs;
	int r = place_nodes(p->reach->graph, &ret->machine, &nodes);

	if (r < 0)
		return r;
	ret->cost = calloc((size_t)jobs * nodes + 1, sizeof(*ret->cost));
	ret->without = calloc(jobs + 1, sizeof(*ret->without));
	ret->size = calloc(jobs + 1, sizeof(*ret->size));
	ret->node = calloc(jobs + 1, sizeof(*ret->node));
	if (!ret->cost || !ret->without || !ret->size || !ret->node)
		return -ENOMEM;
	for (uint32_t j = 0; j < jobs; j++) {
		ret->size[j] = p->job[j].bytes * p->job[j].workers;
		ret->without[j] = cost_without(p, j);
		for (uint32_t n = 0; n < nodes; n++)
			ret->cost[(size_t)j * nodes + n] = place_far(p, j, ret->machine[n]);
	}
	ret->p = (struct placement){ .jobs = jobs,
				     .nodes = nodes,
				     .size = ret->size,
				     .cost = ret->cost,
				     .without = ret->without,
				     .nodes_max = p->options.nodes_max,
				     .jobs_max = p->options.jobs_max };
	return 0;
}

/*
 * A job that stays has no other node, comes before all in size, and is dearest without: so the
 * rules give it that again, and take it away for nobody.
 */
static void hold(struct single *s, uint32_t job, const struct place_tree *now)
{
	s->size[job] = INFINITY;
	s->without[job] = now->nodes ? INFINITY : 0;
	for (uint32_t n = 0; n < s->p.nodes; n++)
		if (!now->nodes || s->machine[n] != now->node[0].machine)
			s->cost[(size_t)job * s->p.nodes + n] = INFINITY;
}

typedef int single_rule(const struct placement *p, const struct place_options *o, uint32_t *ret);

static int decide(const struct place_problem *p, single_rule *rule, struct place_tree *ret)
{
	_cleanup_(single_close) struct single s = { 0 };
	int r = single_open(p, &s);

	for (uint32_t j = 0; j < p->jobs && r == 0; j++)
		if (p->job[j].stays)
			hold(&s, j, p->job[j].now);
	if (r == 0)
		r = rule(&s.p, &p->options, s.node);
	if (r < 0)
		return r;
	for (uint32_t j = 0; j < p->jobs; j++) {
		ret[j].nodes = 0;
		if (s.node[j] != PLACEMENT_NONE)
			ret[j] = place_single(s.machine[s.node[j]]);
	}
	return 0;
}

static int reuse(const struct placement *p, const struct place_options *o, uint32_t *ret)
{
	return placement_reuse(p, o->distance_max, ret);
}

static int match(const struct placement *p, const struct place_options *o, uint32_t *ret)
{
	return placement_match(p, ret);
}

static int exact(const struct placement *p, const struct place_options *o, uint32_t *ret)
{
	return placement_exact(p, o->steps_max, ret);
}

int place_tapina(const struct place_problem *p, struct place_tree *ret)
{
	return decide(p, reuse, ret);
}

int place_tapina_mg(const struct place_problem *p, struct place_tree *ret)
{
	return decide(p, match, ret);
}

int place_exact(const struct place_problem *p, struct place_tree *ret)
{
	return decide(p, exact, ret);
}
