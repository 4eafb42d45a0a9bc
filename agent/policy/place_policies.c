// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The policies: a table, and what it takes to ask one. A policy may bring a solver along. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "place_private.h"

const struct place_policy PLACE_POLICIES[] = {
	{ "none", "nothing", "nobody sums on the way", place_none },
	{ "tapina", "distances, bytes", "one node a job; the largest job first; nodes are shared",
	  place_tapina },
	{ "tapina-mg", "distances, bytes", "one node a job, by a matching of jobs and nodes",
	  place_tapina_mg },
	{ "random", "distances, bytes", "one of k random nodes a job, the nearest that has room",
	  place_random },
	{ "tor", "distances, bytes", "the same with the first k tops of rack", place_tor },
	{ "k-median", "distances, bytes", "the same with k nodes that are near to all jobs",
	  place_k_median },
	{ "soar", "distances, bytes", "trees of least bytes times links, one job after another",
	  place_soar },
	{ "traffic", "loads, distances, jobs", "trees by all that a decision costs",
	  place_traffic },
	{ "online", "loads, distances, jobs", "as traffic, but who runs moves only if that pays",
	  place_online },
	{ "least", "loads, distances, jobs", "the least cost of all trees: for small cases",
	  place_least },
	{ "exact", "distances, bytes", "one node a job, the least bytes times links: small cases",
	  place_exact },
};

const unsigned int PLACE_POLICIES_COUNT = sizeof(PLACE_POLICIES) / sizeof(*PLACE_POLICIES);

const struct place_policy *place_policy_find(const char *name)
{
	for (unsigned int i = 0; i < PLACE_POLICIES_COUNT; i++)
		if (strcmp(PLACE_POLICIES[i].name, name) == 0)
			return &PLACE_POLICIES[i];
	return NULL;
}

int place_none(const struct place_problem *p, struct place_tree *ret)
{
	for (uint32_t j = 0; j < p->jobs; j++)
		ret[j].nodes = 0;
	return 0;
}

/* --- to decide ------------------------------------------------------------------------------- */

/* Takes away the trees that do not fit, and says which; -EINVAL: a policy has made no tree. */
static int keep_what_fits(struct place_room *room, struct place_tree *tree, bool *ret_without,
			  struct place_fault *ret_fault)
{
	place_room_take_those_who_stay(room);
	for (uint32_t j = 0; j < room->p->jobs; j++) {
		const struct place_job *job = &room->p->job[j];
		struct place_fault fault = { .job = j, .machine = GRAPH_NONE };

		if (job->stays) {
			tree[j] = *job->now;
			continue;
		}
		fault.rule = place_tree_fault(room->p, job, &tree[j], &fault.node);
		if (fault.rule) {
			if (fault.node != GRAPH_NONE)
				fault.machine = tree[j].node[fault.node].machine;
			*ret_fault = fault;
			return -EINVAL;
		}
		ret_without[j] = !place_room_fits(room, j, &tree[j]);
		if (ret_without[j])
			tree[j].nodes = 0;
		place_room_take(room, j, &tree[j]);
	}
	return 0;
}

int place_decide_each(const struct place_policy *policy, const struct place_problem *p,
		      struct place_tree *ret, bool *ret_without, struct place_fault *ret_fault)
{
	_cleanup_(place_room_close) struct place_room room = { 0 };
	_cleanup_(freep) struct place_tree *tree = calloc(p->jobs + 1, sizeof(*tree));
	_cleanup_(freep) bool *without = calloc(p->jobs + 1, sizeof(*without));
	int r = place_check(p);

	*ret_fault = (struct place_fault){ .rule = NULL };
	if (!tree || !without)
		return -ENOMEM;
	if (r == 0)
		r = place_room_open(p, &room);
	if (r == 0)
		r = policy->decide(p, tree);
	if (r > 0) {
		*ret_fault = (struct place_fault){ GRAPH_NONE, GRAPH_NONE, GRAPH_NONE,
						   "it returned a number above 0" };
		return -EINVAL;
	}
	if (r == 0)
		r = keep_what_fits(&room, tree, without, ret_fault);
	if (r < 0)
		return r;
	memcpy(ret, tree, p->jobs * sizeof(*ret));
	memcpy(ret_without, without, p->jobs * sizeof(*without));
	return 0;
}

int place_decide(const struct place_policy *policy, const struct place_problem *p,
		 struct place_tree *ret, unsigned int *ret_without)
{
	_cleanup_(freep) bool *without = calloc(p->jobs + 1, sizeof(*without));
	struct place_fault fault;
	int r = without ? place_decide_each(policy, p, ret, without, &fault) : -ENOMEM;

	if (r < 0)
		return r;
	*ret_without = 0;
	for (uint32_t j = 0; j < p->jobs; j++)
		*ret_without += without[j];
	return 0;
}
