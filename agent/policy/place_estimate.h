/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a decision costs, nearly, kept up to date while jobs come, go and move: for searches, which
 * ask thousands of times. All terms are those of place.h but for rates: here a job gets of each
 * link its share by weight, whether others take theirs or not, and its rate is the least of these.
 * Fair rates are never lower. Pure.
 */
#ifndef TALLY_POLICY_PLACE_ESTIMATE_H
#define TALLY_POLICY_PLACE_ESTIMATE_H

#include "place_private.h"

struct estimate_user {
	uint32_t job, times;
};

struct estimate_link {
	double room, capacity, load;
	double weight; /* of all uses: weight of the job times how often */
	double offered; /* bytes a second, if nothing slows jobs down */
	struct estimate_user *user;
	unsigned int users, space;
};

struct estimate_job {
	bool placed;
	struct fair_use *use;
	unsigned int uses;
	double alone_s, without; /* as in place_private.h; they never change */
	double bytes; /* times links */
	double level; /* the most weight by room of its links: bytes / weight * level is its time */
	double slow; /* slowdown - 1 */
	double full; /* the largest use of its links */
	double moves;
	bool changed; /* its level, since it was placed */
};

struct estimate {
	const struct place_problem *p;
	struct estimate_link *link;
	struct estimate_job *job;
	unsigned int *nodes; /* of each machine: jobs that sum there */
	unsigned int used, all_nodes, tenants;
	double *slow, *weight; /* of each tenant, of placed jobs */
	struct place_terms sum; /* of placed jobs: bytes, and moves by weight; use: the largest */
	double without, all_weight;
	bool summed; /* `sum` is as jobs are */
	struct place_walk walk;
	double *level; /* [jobs]: while a tree is tried, 0: as it was */
	uint32_t *touched; /* [jobs] */
	double *more; /* [tenants]: likewise */
	size_t steps; /* uses that were looked at */
};

int estimate_open(const struct place_problem *p, struct estimate *ret); /* -ENOMEM */
void estimate_close(struct estimate *e);

/*
 * What all would cost if the job, which is not placed, had this tree; INFINITY if it would fail.
 */
double estimate_try(struct estimate *e, uint32_t job, const struct place_tree *tree);

/* Places the job. It does not fail with this tree. -ENOMEM: it is not placed. */
int estimate_add(struct estimate *e, uint32_t job, const struct place_tree *tree);

/* The other way; the tree is the one it was placed with. */
void estimate_remove(struct estimate *e, uint32_t job, const struct place_tree *tree);

#endif
