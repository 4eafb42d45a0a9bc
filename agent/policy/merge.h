/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ways for a job's streams to its one root, of a network as it is: each worker sends a stream;
 * where streams meet at a machine that sums, one stream goes on. Machines that sum may stand behind
 * one another, and what they can add has no limit but their links. That is what route.h (InArt's
 * second phase) has not; it has one node on a way, and limits of nodes. Pure.
 *
 * What comes to a machine that sums goes on from there by one way, whoever has sent it. So ways
 * that meet at such a machine are the same from there on.
 */
#ifndef TALLY_POLICY_MERGE_H
#define TALLY_POLICY_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "graph.h"

enum {
	MERGE_WORKERS_MAX = 256,
	MERGE_MACHINES_MAX = 2048,
	MERGE_PATHS_MAX = 16,
	MERGE_STARTS_MAX = 64,
};

struct merge_problem {
	const struct graph *graph; /* loads of links: what others send. Who forwards nothing for
				    * this job is a GRAPH_HOST here, whatever it is elsewhere */
	const struct graph_path *lead; /* [workers]: how each one's way begins, whatever is chosen:
					* from the worker to its gateway */
	const uint32_t *worker; /* [workers]: machines */
	const unsigned int *streams; /* [workers]: that come from there, by one way; at least 1 */
	unsigned int workers; /* at least 1 */
	uint32_t root; /* a machine */
	const bool *sums; /* [machines] of the graph */
	const uint32_t *back; /* [links]: the link the other way, which results come down by; NULL:
			       * results do not count */
};

struct merge_options {
	unsigned int paths_max; /* from one machine that sums to the next: the first so many */
	unsigned int starts; /* the first two: ways that are wide enough, and the shortest ones */
	unsigned int
		nodes_max; /* on a way, behind its worker: of machines that are no GRAPH_ROUTER */
	unsigned int tries; /* of the search from each start (search.h) */
	uint64_t seed;
};

/*
 * How many streams each link has if ways[workers] are taken, results included: ret[links]. -EINVAL:
 * a way does not lead from its worker to the root, or ways part behind a machine that sums.
 */
int merge_streams(const struct merge_problem *p, const struct graph_path *way, double *ret);

/* What each worker can send then, in bytes a second: the least room of a link by its streams.
 * INFINITY: they use no link. -EINVAL, as above; -ENOMEM. */
int merge_rate(const struct merge_problem *p, const struct graph_path *way, double *ret);

/*
 * The best ways that are found: ret_way[workers], untouched on failure, *ret_rate. If all machines
 * that forward sum, and nodes_max does not matter, there are none better. No way comes to a machine
 * that is no GRAPH_ROUTER twice. -EINVAL: the problem or the options are not as it is said above;
 * -ENETUNREACH: from a gateway no way to the root was found; -E2BIG; -ENOMEM.
 */
int merge_search(const struct merge_problem *p, const struct merge_options *o,
		 struct graph_path *ret_way, double *ret_rate);

#endif
