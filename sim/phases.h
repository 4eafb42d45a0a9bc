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
 * Each end of a phase is an event. Only jobs that compete with the one whose phase has ended get
 * other rates: those that communicate and share a link with it that is too small for all who
 * communicate there, and so on from them. Rates of all others stay what they are, so this is no
 * approximation. Where hundreds of jobs compete, phases_near() is faster, and is one.
 */
#ifndef TALLY_SIM_PHASES_H
#define TALLY_SIM_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/policy/fair.h"

#define PHASES_NONE UINT32_MAX /* no job */

struct phases_job {
	double arrives_s; /* begins to compute; not below 0 */
	double compute_s; /* not below 0 */
	double bytes; /* not below 0; not both 0 */
	uint32_t iterations; /* at least 1 */
	struct fair_flow flow; /* limit: bytes a second; 0: the job stands still */
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

/* --- the same step by step, for those who change jobs meanwhile --------------------- */

struct phases;

/* At time 0, without jobs; jobs have numbers below `jobs`. phases_free() it. -EINVAL, -ENOMEM. */
int phases_open(const double *capacity, unsigned int links, unsigned int jobs, struct phases **ret);
void phases_free(struct phases *p); /* or NULL */
static inline void phases_freep(struct phases **p) { phases_free(*p); }

/*
 * From now on, those that compete with the very job whose phase ends get new rates at an event, and
 * then others, until so many jobs in all have; the rest keep theirs for the moment. 0, as it is at
 * first: all that need to, and that is exact. docs/simulator.md says how large the error is.
 */
void phases_near(struct phases *p, unsigned int jobs);

/*
 * Goes on to the next end of a job, but not beyond `until_s`: *ret_ended is the job, or
 * PHASES_NONE: it is until_s now. Several jobs that end at one time are told one by one. -ENOMEM;
 * -EDEADLK: until_s is INFINITY, and no phase will ever end.
 */
int phases_go(struct phases *p, double until_s, uint32_t *ret_ended);
double phases_now(const struct phases *p);

/* Job i arrives now, whatever arrives_s says. Its uses must stay until it ends. -EINVAL, -ENOMEM.
 */
int phases_begin(struct phases *p, uint32_t i, const struct phases_job *job);

/*
 * Job i, which goes on, has other links from now on: what is left of an iteration goes there.
 * Before that it stands still for stop_s, if that is not 0: it computes so much longer, or begins
 * to communicate anew what is left. -EINVAL, -ENOMEM.
 */
int phases_move(struct phases *p, uint32_t i, const struct fair_flow *flow, double stop_s);

/* Iterations that a job still has to end. */
uint32_t phases_left(const struct phases *p, uint32_t i);

/* Of a job that has ended. */
struct phases_result phases_result(const struct phases *p, uint32_t i);

/* ret[links]: what each link has carried up to now. */
void phases_carried(struct phases *p, double *ret);

/* How many phases have ended. */
uint64_t phases_events(const struct phases *p);

#endif
