/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A decision that is being made better: trees of all jobs, what they leave of the limits, and what
 * they cost by the estimate. `traffic` and the online form share this. Pure.
 */
#ifndef TALLY_POLICY_PLACE_SEARCH_H
#define TALLY_POLICY_PLACE_SEARCH_H

#include "place_estimate.h"

enum {
	/* What it takes to weigh a decision as place_cost() does, in steps for each link and use.
	 */
	SEARCH_COST_STEPS = 30,
};

struct search {
	const struct place_problem *p;
	struct estimate estimate;
	struct place_room room;
	struct place_tree *tree; /* [jobs]; the caller's */
	uint32_t *node; /* all machines that sum */
	unsigned int nodes;
	bool *placed; /* [jobs]: it does not fail with its tree */
	uint32_t *free; /* [frees]: jobs that need not stay where they are */
	unsigned int frees;
	struct place_menu menu;
	size_t steps; /* of true costs */
	uint64_t random;
};

int search_open(const struct place_problem *p, struct place_tree *tree, struct search *ret);
void search_close(struct search *s);

bool search_is_small(const struct search *s); /* true costs are worth their steps */
bool search_is_over(const struct search *s); /* steps_max is reached */

/* -ENOMEM. The tree fits, and the job does not fail. */
int search_place(struct search *s, uint32_t job, const struct place_tree *tree);
int search_place_those_who_stay(struct search *s); /* where they are; -ENOMEM */
void search_lift(struct search *s, uint32_t job); /* the other way */

/*
 * Places a job, which is not placed, where all costs least by the estimate: on one of the
 * candidates, or on `stay` (or NULL), which is taken unless another one costs less by `gain`. Where
 * it fails anyhow, it is not placed, and has no tree.
 */
int search_settle(struct search *s, uint32_t job, const struct place_tree *stay, double gain);

/*
 * By true costs: takes other trees, one job after another, until none makes it less, or it is over.
 * *cost is that of the trees before, and afterwards.
 */
int search_polish(struct search *s, double *cost);

/* What the trees cost; INFINITY if a job fails. */
int search_cost(struct search *s, double *ret);

#endif
