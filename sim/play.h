/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A workload in a network under one policy: when each job ends, and what links carry. Pure.
 *
 * Jobs that arrive are placed at once (agent/policy/place.h), and go on as sim/phases.h says. A
 * link that fails carries nothing, and paths lead around it at once; a node that fails loses its
 * jobs' sums, and they are placed anew. A job that has no way any more stands still until one is
 * there again. Policies do not see failures before they happen, nor the load of other traffic.
 */
#ifndef TALLY_SIM_PLAY_H
#define TALLY_SIM_PLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/policy/place.h"
#include "agents.h"
#include "common/why.h"
#include "topology.h"
#include "workload.h"

enum {
	PLAY_CANDIDATES_MAX = 12, /* trees of which an explanation tells */
};

struct play_options {
	const struct place_policy *policy;
	struct place_options place;
	unsigned int near; /* phases_near() */
	bool moves; /* jobs that already run may be moved when others arrive or the network changes
		     */
	struct agents *agents; /* have the jobs, and are new: of this run alone; NULL: none have */
	uint32_t explain; /* a job of the workload; UINT32_MAX: none */
	void (*progress)(void *context, unsigned int ended, double now_s); /* or NULL */
	void *context;
};

struct play_job {
	double ended_s;
	double communicated_s;
	double ideal_s; /* what it would take if only the links of its workers held it up */
	double links; /* bytes on all links for each byte that a worker sends, with its last tree */
	struct place_tree tree; /* the last one */
	uint32_t moved; /* how often it got another tree */
	bool without; /* the policy's tree did not fit when the job arrived */
};

struct play_explained {
	double at_s;
	unsigned int beside; /* jobs that ran then */
	unsigned int candidates;
	struct place_candidate candidate[PLAY_CANDIDATES_MAX];
};

struct play_result {
	const struct place_policy *policy;
	struct play_job *job; /* [jobs], as in the workload */
	double *link_bytes; /* [links] */
	double ended_s; /* the last job */
	uint32_t
		*summed; /* [machines]: trees that it was a node of; jobs that moved have several */
	unsigned int nodes; /* that made sums */
	uint64_t events; /* ends of phases */
	struct play_explained *explained; /* or NULL */
	struct agents_counts agents; /* zeros: none had the jobs */
};

/*
 * *ret is the caller's to play_free(). `why` names the job. -EINVAL: the workload cannot be run in
 * this network by this policy; -EDEADLK: jobs will never end; -ENOMEM; what the policy returns.
 */
int play(const struct topology *t, const struct workload *w, const struct play_options *o,
	 struct play_result **ret, struct why *why);
void play_free(struct play_result *r); /* or NULL */
static inline void play_freep(struct play_result **r) { play_free(*r); }

/* --- figures of a result --------------------------------------------------------------------- */

struct play_figures {
	double mean_s, median_s, p95_s; /* of the jobs' completion times, from arrival to end */
	double slowdown; /* mean of completion time by ideal_s; 1 of a job whose ideal_s is 0 */
	double fairness; /* Jain's index of the tenants' or, if there is one tenant, jobs' speeds */
	double bytes; /* on all links */
	double busiest; /* its bytes by what it could carry from 0 to ended_s */
	double nodes, ended_s; /* of the result */
	double without, moved; /* jobs */
	/* What agents said, where they had the jobs: nodes of jobs' trees, jobs, and runs. */
	double whole, smaller, borrowed, none, refused, rings_moved, loans, recalled, refilled;
	uint32_t busiest_link;
};

/* -ENOMEM. Speed is 1 / slowdown; Jain's index is (sum x)^2 / (n sum x^2), 1 / n to 1. */
int play_figures(const struct topology *t, const struct workload *w, const struct play_result *r,
		 struct play_figures *ret);

#endif
