/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the root of a job shall be, and which way its packets: the policies of the simulator
 * (agent/policy/place.h), on the picture that live reports make. Pure.
 */
#ifndef TALLY_CLUSTER_PLACER_H
#define TALLY_CLUSTER_PLACER_H

#include "picture.h"
#include "wanted_ways.h"

/* A job that is in the network, or shall be. */
struct placer_job {
	const struct wanted_job *job;
	const struct wanted_worker *worker; /* [workers]: where they are, and by whose agent that
					     * is known: for those that the picture lacks */
	unsigned int workers;
	const char *root; /* the node that it has now; NULL: none */
	uint64_t chunks_per_second; /* that its root sums, as far as loads that are forecast
				     * have these: taken for the job's own */
	uint16_t payload_bytes; /* of its run, as its root tells; 0: not known */
	bool is_gone; /* a moment ago: loads that are forecast still have its chunks, and that is
		       * all that there is of it. Such jobs come last */
	const struct wanted_ways *ways; /* to its root, which its packets take; NULL: routing's */
	const char *const *refused; /* [refusals]: nodes that it cannot have */
	unsigned int refusals;
	bool is_gated; /* the cluster says where its tenant may come in */
};

enum {
	PLACER_JOBS_MAX = 1024,
};

/*
 * Where job[which], which has workers and no root, shall have its root, while all others stay where
 * they are: the node that costs least, by loads that are forecast, without those of these jobs
 * themselves. *ret with what was weighed. -EHOSTUNREACH: no node that may have it is reached by all
 * workers, and why; -E2BIG; -ENOMEM.
 */
int placer_place(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		 unsigned int which, struct wanted_place *ret, struct why *why);

/*
 * The same for job[which] where it has a root already: another node, if all would cost less by
 * `margin` (in parts of what it costs now), the move included. -EALREADY: there is none.
 */
int placer_better(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		  unsigned int which, double margin, struct wanted_place *ret, struct why *why);

/*
 * The same for all roots of a job, which are job[which[roots]]: those without a root get nodes of
 * their own, as far as there are enough, so that together they carry most (agent/policy/roots.h),
 * and all of them shares as their rates are. ret[roots]. Errors as of placer_place().
 */
int placer_roots(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		 const unsigned int *which, unsigned int roots, struct wanted_place *ret,
		 struct why *why);

/*
 * The same where all of them have their roots already, and `share`[roots]: other shares, or one
 * root elsewhere and other shares, if workers can send more by `margin` (in parts of what they can
 * send now); below 0: one root goes elsewhere in any case. may_move[roots]: which of them may.
 * -EALREADY: there is nothing better.
 */
int placer_roots_better(const struct picture *p, const struct placer_job *job, unsigned int jobs,
			const unsigned int *which, unsigned int roots, const uint16_t *share,
			const bool *may_move, double margin, struct wanted_place *ret,
			struct why *why);

/*
 * The ways to its roots, which are those of job[which[roots]], by which the workers of a job could
 * send most, and the shares of each call that fit these, with all others as they are: loads are
 * those that are forecast, without this job's own (agent/policy/merge.h). Each way begins at the
 * node next to its worker, as hosts have one gateway, and goes past nodes that steer alone, and
 * past a cordoned one only where that is next to a worker, or the root. Nodes that take parts in
 * trees, and have the slots for all roots, sum where streams meet. Results are taken to come back
 * the same ways. share[roots]: of now, above 0; of one root any.
 *
 * ret[roots], on the heap, and ret_share[roots] (in parts of JOINING_SHARE_MAX, at least a
 * hundredth) are untouched on failure. -EALREADY: none has `margin` more than what its packets take
 * now (in parts of that), where these take routing's ways with the best of shares. -EHOSTUNREACH:
 * it cannot have ways, and why: no root, or the picture lacks a worker, or a node next to one does
 * not steer; -E2BIG: more than WANTED_WAYS_MAX places of workers, or too large a network; -ENOMEM.
 */
int placer_ways(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		const unsigned int *which, unsigned int roots, const uint16_t *share, double margin,
		struct wanted_ways *ret, uint16_t *ret_share, struct why *why);

/*
 * What each worker could send to all roots by these ways[roots] and with these shares, in bytes a
 * second; NULL ways: by routing's own, with the nodes that agents find on them, and the best of
 * shares. INFINITY: there is no link on them. -EHOSTUNREACH: ways that are not there any more, and
 * why: they are of another job or root, lack a worker, or go past nodes that do not steer, or are
 * not next to one another. Otherwise as placer_ways().
 */
int placer_ways_rate(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		     const unsigned int *which, unsigned int roots, const uint16_t *share,
		     const struct wanted_ways *const *ways, double *ret, struct why *why);

#endif
