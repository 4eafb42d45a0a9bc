/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Jobs that share the slots of one node, packet by packet: the node and the roots run the rules
 * that ship (tally/slot.h, tally/borrowed.h), and words do not matter. Pure.
 *
 * Each iteration a job computes, and each of its workers then sends its chunks, up to `spread`
 * late. A tick is the time of a packet on a link; each worker has a link to the node, and so has
 * the root of each job. What is not summed at the node waits in the queue to the root, which has no
 * end: nothing is lost. Recovery is ideal: a rank whose contribution is in a slot for a round trip
 * and the spread flushes it, one rank after the other, and nobody sends again what is in a queue.
 * What the root drops since it overlaps is sent again at once.
 */
#ifndef TALLY_SIM_SLOTS_H
#define TALLY_SIM_SLOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <tally/borrowed.h>

#include "common/why.h"

enum {
	SLOTS_JOBS_MAX = 1024,
	SLOTS_MAX = 1 << 20,
	SLOTS_WORKERS_MAX = TALLY_SMALL_WORKERS_MAX,
};

/* Who gets a slot. */
struct slots_policy {
	const char *name, *what;
	bool is_static; /* a ring of reserved slots for each job, and windows of half a ring */
	bool in_ranges; /* each job has a range, and the ranges begin at equal distances */
	bool same_priority; /* of all chunks of all jobs: 1 */
	struct tally_borrowed_policy rule;
};

extern const struct slots_policy SLOTS_POLICIES[];
extern const unsigned int SLOTS_POLICIES_COUNT;

const struct slots_policy *slots_policy_find(const char *name); /* or NULL */

/* Times in ticks. */
struct slots_job {
	unsigned int workers; /* 1 to SLOTS_WORKERS_MAX */
	unsigned int iterations; /* at least 1 */
	uint32_t chunks, compute; /* of an iteration; at least one chunk */
	uint32_t compute_more; /* by chance, for the whole job: up to so much, less one */
	uint64_t arrives;
};

struct slots_options {
	const struct slots_policy *policy;
	const struct slots_job *job;
	unsigned int jobs; /* 1 to SLOTS_JOBS_MAX */
	uint32_t slots; /* 1 to SLOTS_MAX; of `static` two for each job at least */
	uint32_t window; /* chunks that a worker has in flight; 1 to TALLY_WINDOW_MAX */
	uint32_t hop; /* from worker to node, and from node to root: a quarter of a round trip */
	uint32_t spread; /* how late workers begin to send, by chance */
	uint64_t seed;
	uint64_t ticks_max; /* -EDEADLK after these; 0: there is no limit */
};

struct slots_result {
	uint64_t *ended; /* [jobs]: when each job had its last result */
	double mean; /* ticks from arrival to end */
	double to_roots; /* packets from the node to roots, for each chunk */
	uint64_t swapped,
		refused; /* contributions that took a slot of another chunk, or got none */
};

/* Are they as said above? -EINVAL. */
int slots_check(const struct slots_options *o, struct why *why);

/*
 * ret->ended is the caller's to free(). As slots_check(); -EDEADLK: a job does not end; -ENOMEM.
 */
int slots_run(const struct slots_options *o, struct slots_result *ret, struct why *why);

#endif
