/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which way the vectors of a job go up: for each worker and root a node that sums on the way, or
 * none, and the paths. InArt's second phase (R-InArt, doi 10.1145/3589334.3645394), and what it is
 * compared with. Pure.
 *
 * Every worker sends to each root that root's share of its vector. All workers send at one rate,
 * in bytes a second to all roots together. A node sums what workers send to a root, and sends one
 * stream on, by one path (the paper's equation, as printed, ties that path to each worker, too). At
 * most one node sums on the way. Results, which come down, do not count.
 */
#ifndef TALLY_POLICY_ROUTE_H
#define TALLY_POLICY_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "graph.h"

#define ROUTE_NONE UINT32_MAX /* nobody sums on the way */

enum {
	ROUTE_MACHINES_MAX = 1 << 16, /* workers, and nodes */
	ROUTE_ROOTS_MAX = 256,
	ROUTE_OPTIONS_MAX = 1 << 24, /* nodes and paths of all workers and roots */
};

/* Workers, roots and nodes have numbers from 0 on; all arrays are the caller's. */
struct route_problem {
	const struct graph *graph; /* loads of links: what others send */
	const uint32_t *worker, *root; /* machines; at least one of each */
	const uint32_t *node; /* machines that may sum: of GRAPH_NODE, each once */
	unsigned int workers, roots, nodes;
	const double *share; /* of each root: not below 0, together 1 */
	const double *root_room; /* bytes a second that each root can take in */
	const double *node_room; /* bytes a second that each node can add, of what comes in */
};

struct route_options {
	unsigned int paths_max; /* from one machine to another the first so many; at least 1 */
	unsigned int nodes_max; /* of a worker and root so many: those with the shortest ways */
	unsigned int draws; /* as in rounding.h, each repaired; at least 1 */
	uint64_t seed;
	unsigned int steps_max; /* as in lp.h */
	unsigned int tries; /* as in rounding.h: from each draw a search goes on so far */
};

/* Of a worker and a root. With a share of 0: no node, and no links. */
struct route_way {
	uint32_t node; /* its number, or ROUTE_NONE */
	struct graph_path path; /* to the node's machine, or to the root */
};

struct route {
	unsigned int workers, roots, nodes;
	double rate; /* what all links, nodes and roots bear */
	double bound; /* no route has a higher rate: see each function */
	struct route_way *way; /* [worker * roots + root] */
	struct graph_path *on; /* [node * roots + root]; no links where that node sums nothing */
};

/* Frees what any function here has returned. */
void route_free(struct route *r); /* or NULL */
void route_freep(struct route **r);

/*
 * R-InArt: the best mixture of nodes and paths, by a linear program; of each worker and root one
 * node or none and one path are drawn with their shares of it (appendix B.3 there), and repaired.
 * The bound is the mixture's rate: none of the routes that `o` leaves has a higher one.
 *
 * -EINVAL: the problem or the options are not as it is said above. -ENETUNREACH: a worker has no
 * way to a root (of at most GRAPH_PATH_MAX - 1 links). -E2BIG, -ENOMEM; -EAGAIN: steps_max was not
 * enough; -EIO, as in lp.h. On failure *ret is untouched; otherwise it is the caller's.
 */
int route_inart(const struct route_problem *p, const struct route_options *o, struct route **ret);

/* The best of all routes that `o` leaves, by a search that may take for ever: for small cases. */
int route_exact(const struct route_problem *p, const struct route_options *o, struct route **ret);

/*
 * The rate that all bear if this route is taken, with the links' loads of now. -EINVAL: it is not a
 * route of this problem: other numbers of workers, roots or nodes, or paths that lead elsewhere.
 */
int route_rate(const struct route_problem *p, const struct route *r, double *ret);

/*
 * Anew, where loads have changed and the route `before` is in use. There are two ways on: from
 * `before` one step after another, as repair goes (few ways change), and a route as route_inart()
 * finds it. Who has `factor` times the rate is taken, in this order; if none has, *ret is a copy of
 * `before`. The bound is that of route_inart(). The load that `before` itself makes must not be in
 * the graph. -EINVAL also: factor is below 1, or `before` is no route of the problem.
 */
int route_again(const struct route_problem *p, const struct route_options *o,
		const struct route *before, double factor, struct route **ret);

/* Of how many workers and roots the ways differ. Both are of one problem. */
unsigned int route_moves(const struct route *a, const struct route *b);

/* --- what it is compared with ---------------------------------------------------------------- */

/*
 * Nobody sums: each worker sends by its shortest path. The bound of this and of the next two is
 * that of split_rate(), which knows no links.
 */
int route_direct(const struct route_problem *p, const struct route_options *o, struct route **ret);

/*
 * ATP (NSDI 2021), as InArt is compared with it: on each worker's shortest path the first node
 * sums. What is too much for a node does not go past it here; it makes the rate lower.
 */
int route_nearest(const struct route_problem *p, const struct route_options *o, struct route **ret);

/*
 * LBMM, load-balanced min-min: nobody sums. Of all workers and roots without a path, whose best
 * path has the least load by room on its fullest link is next, and gets that path; then repair.
 * Reconstructed: InArt names it only.
 */
int route_balanced(const struct route_problem *p, const struct route_options *o,
		   struct route **ret);

/*
 * GRID (doi 10.1109/TNET.2023.3244794): the best mixture of nodes, without links and with shortest
 * paths only; one draw. With several roots, each worker has a node for each of them, and all
 * workers send at one rate: GRID has one root. The bound is the mixture's.
 */
int route_grid(const struct route_problem *p, const struct route_options *o, struct route **ret);

/*
 * Without a linear program: the best that a search (search.h) and repair make of
 * route_direct(), route_nearest() and route_balanced(), and of `draws` routes that chance gives.
 * Never below these three; the bound is theirs.
 */
int route_search(const struct route_problem *p, const struct route_options *o, struct route **ret);

struct route_policy {
	const char *name, *what;
	int (*decide)(const struct route_problem *p, const struct route_options *o,
		      struct route **ret);
	bool equal; /* roots have equal shares, whatever the problem says */
};

extern const struct route_policy ROUTE_POLICIES[];
extern const unsigned int ROUTE_POLICIES_COUNT;

const struct route_policy *route_policy_find(const char *name); /* or NULL */
int route_decide(const struct route_policy *policy, const struct route_problem *p,
		 const struct route_options *o, struct route **ret);

#endif
