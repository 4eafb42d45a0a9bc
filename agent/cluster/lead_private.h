/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What lead*.c share. Nobody else includes this. */
#ifndef TALLY_CLUSTER_LEAD_PRIVATE_H
#define TALLY_CLUSTER_LEAD_PRIVATE_H

#include "lead.h"
#include "placer.h"
#include "standing.h"

/* In parts of what all costs: what changes by less moves nobody; but off a cordoned node, whatever
 * it costs. */
#define LEAD_MARGIN 0.1
#define LEAD_MARGIN_CORDONED (-1e9)

enum {
	LEAD_REFUSALS_MAX = 64, /* nodes that are told apart */
	LEAD_CALM_MS = 300000, /* who stays as it is for so long after a rest is as good as new */
};

/* --- lead_lists.c: jobs as the placer wants them --------------------------------------------- */

struct lead_lists {
	struct placer_job job[PLACER_JOBS_MAX];
	struct wanted_worker worker[PLACER_JOBS_MAX][TALLY_WORKERS_MAX];
	const char *refused[PLACER_JOBS_MAX][LEAD_REFUSALS_MAX];
	unsigned int jobs;
};

/* All that have a place, and this one, which is to get one if it is due; its number among them. */
unsigned int lead_list(const struct lead *l, const struct lead_view *v,
		       const struct shared_job *which, bool due, struct lead_lists *ret);

/* The same with all jobs of one that has several roots, by its first; ret_which[roots]. */
void lead_list_roots(const struct lead *l, const struct lead_view *v,
		     const struct shared_job *first, struct lead_lists *ret,
		     unsigned int *ret_which);

/* --- lead_roots.c ---------------------------------------------------------------------------- */

/*
 * A place for a job that is due, at another node than the roots that it has beside this one, if
 * there is any; where it is the first of several roots, places for all of them, each with its
 * share. ret_job[roots], ret[roots], *ret_count of them. Errors as of placer_place().
 */
int lead_place(const struct lead *l, const struct lead_view *v, const struct shared_job *j,
	       struct lead_lists *lists, const struct shared_job **ret_job,
	       struct wanted_place *ret, unsigned int *ret_count, struct why *why);

/* The same for all roots of a job, by its first, whose runs are on at all of them: other shares, or
 * one root elsewhere. -EALREADY: there is nothing better; -EBUSY: not now. */
int lead_better_roots(const struct lead *l, const struct lead_view *v,
		      const struct shared_job *first, double margin, const bool *may_move,
		      struct lead_lists *lists, const struct shared_job **ret_job,
		      struct wanted_place *ret, struct why *why);

/* --- lead_ways.c: ways that bear more -------------------------------------------------------- */

/* It is looked at each job's ways, and at those of one of them closely, if it is time: ret->leds
 * and what follows, up to the write. No memory: nothing is decided. */
void lead_ways(struct lead *l, const struct lead_view *v, struct lead_decision *ret);

/* Were its ways found? Then its shares are those that fit them. */
static inline bool lead_has_found_ways(const struct shared_job *j)
{
	return shared_ways(j) && j->ways->found;
}

/* What would be done about the ways of a job whose run is on, in words; "": nothing at all. */
void lead_ways_outlook(const struct lead *l, const struct lead_view *v, const struct shared_job *j,
		       struct lead_lists *lists, struct why *ret);

/* --- lead_rests.c: when a run may move ------------------------------------------------------- */

/* What this leader has seen of a job that is placed, from now on. NULL: no memory. */
struct lead_rest *lead_rest_find(struct lead *l, const struct shared_job *j, uint64_t now_ns);

/* Has it a run that sums and can be told to move, and has it been there for a while? */
bool lead_is_settled(struct lead *l, const struct lead_view *v, const struct shared_job *j);

/*
 * Are loads those that jobs make where they are now? Jobs that all have the same reason to move
 * would all go, as each is weighed beside the others as they were, where one of them was enough.
 */
bool lead_loads_are_settled(struct lead *l, const struct lead_view *v);

/* Was it placed a moment ago, and has not moved since? Then it need not wait for loads. */
bool lead_is_new(struct lead *l, const struct lead_view *v, const struct shared_job *j);

/* Its run is on where no more runs are to be. */
bool lead_must_move(const struct lead_view *v, const struct shared_job *j);
bool lead_may_move(struct lead *l, const struct lead_view *v, const struct shared_job *j);

/* By so much less all must cost with the job elsewhere. */
double lead_margin(const struct lead_view *v, const struct shared_job *j);

#endif
