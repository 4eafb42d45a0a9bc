/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What placer*.c share. Nobody else includes this. */
#ifndef TALLY_CLUSTER_PLACER_PRIVATE_H
#define TALLY_CLUSTER_PLACER_PRIVATE_H

#include "agent/policy/place.h"
#include "network.h"
#include "placer.h"

/* The caller fills in the first five. */
struct placer_work {
	const struct picture *picture;
	const struct placer_job *job;
	unsigned int jobs;
	const unsigned int *due; /* [dues]: which of these are to be placed; the roots of one job,
				  * or one job */
	unsigned int dues;
	struct network network; /* nodes that may not have them have no slots here */
	uint32_t *worker; /* machines of all workers, of one job after another */
	struct place_job *place;
	unsigned int *of; /* of each of these: its number among all */
	struct place_tree *now;
	bool software; /* no node has the slots */
	/* The same problem with nodes that sum on the way in the trees that jobs have. NULL: there
	 * are no such nodes. */
	struct place_job *inner_job;
	struct place_tree *inner_now;
	struct place_problem inner;
};

/* For placer_work_close(), also on failure. -EHOSTUNREACH: no node may have them; -E2BIG, -ENOMEM.
 */
int placer_work_open(struct placer_work *w, struct why *why);
void placer_work_close(struct placer_work *w);

/*
 * Once: loads of jobs are taken out of those that are measured. ret_due[dues]: the numbers of
 * w->due among its jobs. -EHOSTUNREACH: a worker of these is not in the picture; -ENOMEM.
 */
int placer_problem(struct placer_work *w, struct place_problem *ret, uint32_t *ret_due,
		   struct why *why);

uint32_t placer_slots(const struct wanted_job *job); /* that it takes of a node */

/* What one stream of the job takes of a link now, in bytes a second. */
double placer_bytes_per_second(const struct placer_job *j);

/* Out of the loads of links, by the ways that its packets take; what the picture lacks has none.
 * -ENOMEM. */
int placer_loads_take(const struct network *n, const struct placer_job *j);

const struct report *placer_node(const struct placer_work *w, uint32_t machine);

/* A place as far as it is known before the decision, and what the decision adds. */
void placer_place_begin(const struct placer_job *j, struct wanted_place *ret);
void placer_place_fill(const struct placer_work *w, const struct place_tree *tree,
		       struct wanted_place *ret);

void placer_weighed_fill(const struct placer_work *w, const struct place_candidate *c,
			 struct wanted_weighed *ret);

/* The same of those that do not fail. */
void placer_all_weighed_fill(const struct placer_work *w, const struct place_candidate *c,
			     int count, struct wanted_place *ret);

/* What else job[which] of the problem could have, with all others as they are. */
int placer_weigh(const struct placer_work *w, const struct place_problem *p,
		 const struct place_tree *tree, uint32_t which, struct wanted_place *ret);

/* --- placer_inner.c: nodes on the way -------------------------------------------------------- */

/* Fills in w->inner* for this problem. -ENOMEM. */
int placer_inner_open(struct placer_work *w, const struct place_problem *p);
void placer_inner_close(struct placer_work *w);

/* As place_explain(), with nodes that sum on the way in all trees. Where there are such, the
 * cheapest one comes first for a job that has no root. */
int placer_explain(const struct placer_work *w, const struct place_problem *p,
		   const struct place_tree *tree, uint32_t which, unsigned int max,
		   struct place_candidate *ret);

#endif
