// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Baselines with a fixed set of nodes, in which each job takes the best one that has room. */
#include <math.h>
#include <stdlib.h>

#include "common/owned.h"
#include "place_private.h"

double place_far(const struct place_problem *p, uint32_t job, uint32_t machine)
{
	const struct place_job *j = &p->job[job];
	double links = 0;

	if (machine == GRAPH_NONE)
		return INFINITY;
	for (unsigned int w = 0; w < j->workers; w++) {
		uint32_t far = reach_distance(p->reach, j->worker[w], machine);

		if (far == GRAPH_NONE)
			return INFINITY;
		links += far;
	}
	return j->bytes * links;
}

int place_fit(const struct place_problem *p, const uint32_t *machine, unsigned int machines,
	      struct place_tree *ret)
{
	_cleanup_(place_room_close) struct place_room room = { 0 };
	int r = place_room_open(p, &room);

	if (r == 0)
		place_room_take_those_who_stay(&room);
	for (uint32_t j = 0; j < p->jobs && r == 0; j++) {
		double least = place_far(p, j, p->job[j].root);

		ret[j].nodes = 0;
		if (p->job[j].stays)
			continue;
		for (unsigned int i = 0; i < machines; i++) {
			struct place_tree tree = place_single(machine[i]);
			double far = place_far(p, j, machine[i]);

			if (far < least && place_room_fits(&room, j, &tree)) {
				least = far;
				ret[j] = tree;
			}
		}
		place_room_take(&room, j, &ret[j]);
	}
	return r;
}
