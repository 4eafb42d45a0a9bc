// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The example of docs/policies.md: a job whose workers are all behind one switch has its sums made
 * there; other jobs have none.
 */
#include "agent/policy/place.h"

/* The switch that a host is behind; GRAPH_NONE: the host has several links, or none. */
static uint32_t switch_of(const struct graph *g, uint32_t host)
{
	uint32_t first = g->leaving_at[host];

	return g->leaving_at[host + 1] == first + 1 ? g->link[g->leaving[first]].to : GRAPH_NONE;
}

int place_switch(const struct place_problem *p, struct place_tree *ret);

int place_switch(const struct place_problem *p, struct place_tree *ret)
{
	const struct graph *g = p->reach->graph;

	for (uint32_t j = 0; j < p->jobs; j++) {
		const struct place_job *job = &p->job[j];
		uint32_t machine = switch_of(g, job->worker[0]);

		for (unsigned int w = 1; w < job->workers; w++)
			if (switch_of(g, job->worker[w]) != machine)
				machine = GRAPH_NONE;
		ret[j].nodes = 0;
		if (machine != GRAPH_NONE && g->machine[machine].kind == GRAPH_NODE)
			ret[j] = (struct place_tree){ .nodes = 1,
						      .node = { { machine, GRAPH_NONE } } };
	}
	return 0;
}
