/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Jobs that compute and communicate by turns, on links that they share: an exact simulation of
 * fluid flows. Pure.
 *
 * An iteration of a job is `compute_s` seconds in which it needs no link, and then `bytes` bytes
 * that all of its workers have to exchange (the whole gradient, once). While it communicates, a job
 * is one flow (agent/policy/fair.h): all its links go at one rate. Rates are fair at any moment
 * among those jobs that communicate then. Packets, queues, loss and the time of a round trip are
 * not there, and slots never run out.
 *
 * Each end of a phase is an event, and each event finds all rates anew: for tens of jobs, or for
 * thousands of iterations, not for a day of a data centre.
 */
#ifndef TALLY_SIM_PHASES_H
#define TALLY_SIM_PHASES_H

#include <stdint.h>

#include "agent/policy/fair.h"

struct phases_job {
	double arrives_s; /* begins to compute; not below 0 */
	double compute_s; /* not below 0 */
	double bytes; /* not below 0; not both 0 */
	uint32_t iterations; /* at least 1 */
	struct fair_flow flow; /* limit: bytes a second */
};

struct phases_result {
	double ended_s;
	double communicated_s; /* in all iterations together */
};

/*
 * Runs all jobs to their end. `link_bytes`, if not NULL, has room for `links`: what each link
 * carried. Outputs are untouched on failure. -EINVAL: a number out of range; -ENOMEM;
 * -EDEADLK: a job that communicates has a rate of 0, and nothing else happens any more.
 */
int phases_run(const double *capacity, unsigned int links, const struct phases_job *job,
	       unsigned int jobs, struct phases_result *ret, double *link_bytes);

#endif
