// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Jobs that no tree can serve are left out of searches. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/owned.h"
#include "place_private.h"

static bool reaches(const struct reach *r, uint32_t a, uint32_t b)
{
	return reach_distance(r, a, b) != GRAPH_NONE && reach_distance(r, b, a) != GRAPH_NONE;
}

static bool all_reach(const struct reach *r, const struct place_job *j, uint32_t machine)
{
	for (unsigned int w = 0; w < j->workers; w++)
		if (!reaches(r, j->worker[w], machine))
			return false;
	return true;
}

/*
 * By its root, or by one node, if nobody else were there. Nodes forward, so several would serve no
 * job that none of them could, but for paths that are longer than a packet lives.
 */
static bool can_be_served(const struct place_problem *p, const struct place_room *empty,
			  uint32_t job)
{
	const struct place_job *j = &p->job[job];

	if (j->root != GRAPH_NONE && all_reach(p->reach, j, j->root))
		return true;
	for (uint32_t m = 0; m < p->reach->graph->machines; m++) {
		const struct place_tree tree = place_single(m);

		if (p->reach->graph->machine[m].kind == GRAPH_NODE &&
		    place_room_fits(empty, job, &tree) && all_reach(p->reach, j, m) &&
		    (j->root == GRAPH_NONE || reaches(p->reach, m, j->root)))
			return true;
	}
	return false;
}

int place_served(const struct place_problem *p,
		 int (*decide)(const struct place_problem *p, struct place_tree *ret),
		 struct place_tree *ret)
{
	_cleanup_(place_room_close) struct place_room empty = { 0 };
	_cleanup_(freep) struct place_job *job = calloc(p->jobs + 1, sizeof(*job));
	_cleanup_(freep) struct place_tree *tree = calloc(p->jobs + 1, sizeof(*tree));
	_cleanup_(freep) uint32_t *number = calloc(p->jobs + 1, sizeof(*number));
	struct place_problem served = *p;
	int r = job && tree && number ? place_room_open(p, &empty) : -ENOMEM;

	if (r < 0)
		return r;
	served.jobs = 0;
	served.job = job;
	for (uint32_t j = 0; j < p->jobs; j++) {
		ret[j].nodes = 0;
		if (!can_be_served(p, &empty, j))
			continue;
		number[served.jobs] = j;
		job[served.jobs++] = p->job[j];
	}
	r = decide(&served, tree);
	for (uint32_t i = 0; i < served.jobs && r == 0; i++)
		ret[number[i]] = tree[i];
	return r;
}
