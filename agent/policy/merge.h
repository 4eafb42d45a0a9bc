/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ways for a job's streams to its roots, of a network as it is: each worker sends a stream to each
 * root; where streams to one root meet at a machine that sums, one stream goes on. Machines that
 * sum may stand behind one another, and what they can add has no limit but their links. That is
 * what route.h (InArt's second phase) has not; it has one node on a way, and limits of nodes. Pure.
 *
 * What comes to a machine that sums goes on from there by one way, whoever has sent it. So ways to
 * one root that meet at such a machine are the same from there on.
 *
 * Of several roots each has a share of each call, as in InArt (doi 10.1145/3589334.3645394, section
 * 3): who sends at a rate of R in all sends R * share[s] to root s. Sums for different roots do not
 * meet. With n[s][e] streams to root s on link e, results included, workers can send
 *
 *	R = the least of room[e] / sum over s of share[s] * n[s][e]	over all links e
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
	MERGE_ROOTS_MAX = 16,
	MERGE_PARTS_MAX = 1 << 16,
};

/* Of one root. Those of several are p[roots], with one graph; ways[] are those of the first root's
 * workers, then those of the next one's, and so on. */
struct merge_problem {
	const struct graph *graph; /* loads of links: what others send. Who forwards nothing for
				    * this job is a GRAPH_HOST here, whatever it is elsewhere */
	const struct graph_path *lead; /* [workers]: how each one's way begins, whatever is chosen:
					* from the worker to its gateway */
	const uint32_t *worker; /* [workers]: machines */
	const unsigned int *streams; /* [workers]: that come from there, by one way; at least 1 */
	unsigned int workers; /* at least 1 */
	uint32_t root; /* a machine */
	double share; /* of each call: above 0; 1 of one root */
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
 * How many streams each link has if the ways of one root are taken, results included: ret[links].
 * -EINVAL: a way does not lead from its worker to the root, or ways part behind a machine that
 * sums.
 */
int merge_streams(const struct merge_problem *p, const struct graph_path *way, double *ret);

/* What each worker can send then to all roots together, in bytes a second. INFINITY: they use no
 * link. -EINVAL, as above, or graphs differ; -ENOMEM. */
int merge_rate(const struct merge_problem *p, unsigned int roots, const struct graph_path *way,
	       double *ret);

/*
 * The best ways that are found: ret_way, untouched on failure, *ret_rate. Of one root, if all
 * machines that forward sum, and nodes_max does not matter, there are none better. No way comes to
 * a machine that is no GRAPH_ROUTER twice. In large networks fewer paths and starts are looked at
 * than the options have, so that it takes tenths of a second. -EINVAL: the problem or
 * the options are not as it is said above; -ENETUNREACH: from a gateway no way to a root was found;
 * -E2BIG; -ENOMEM.
 */
int merge_search(const struct merge_problem *p, unsigned int roots, const struct merge_options *o,
		 struct graph_path *ret_way, double *ret_rate);

/* --- shares ---------------------------------------------------------------------------------- */

/* What shares may be. The shares of problems do not matter, but where it is said. */
struct merge_split {
	unsigned int parts; /* a share is part[root] / parts, */
	unsigned int least; /* and part[root] at least so much: 1 .. parts / roots */
	unsigned int searches; /* ways are searched for so many splits at most, at least 1 */
};

/*
 * Better shares for ways that stay: part[roots], which are `parts` together, before and after.
 * Parts go from one root to another, as many as make R highest, pair after pair, until none does.
 * R is the least of linear functions of the shares in the divisor, so 1 / R is convex in what two
 * roots have: of two roots there are no better shares. *ret_rate as of merge_rate(). -EINVAL; as
 * there, -ENOMEM.
 */
int merge_split(const struct merge_problem *p, unsigned int roots, const struct graph_path *way,
		const struct merge_split *split, unsigned int *part, double *ret_rate);

/*
 * The best ways and shares that are found: ways by merge_search() for shares, shares by
 * merge_split() for these ways, in turns, as long as that makes the rate higher. Begun is with the
 * problems' shares, with shares by what each root's links bear (split_by_room()), and equal ones;
 * then with the best ones, of which a half, or a quarter, and so on to 1/16 of one root's share
 * goes to another. The first search has o->starts, the others a quarter of these, so all together
 * takes as long as (split->searches + 3) / 4 times merge_search(), or less. It ends at once where
 * what leads to gateways bears no more. ret_part[roots]. Errors as of merge_search().
 */
int merge_search_split(const struct merge_problem *p, unsigned int roots,
		       const struct merge_options *o, const struct merge_split *split,
		       unsigned int *ret_part, struct graph_path *ret_way, double *ret_rate);

#endif
