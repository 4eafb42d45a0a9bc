/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much of a job's vector each root gets. InArt's first phase (L-InArt, doi
 * 10.1145/3589334.3645394). Pure.
 *
 * The paper drops links and paths, lets what a worker sends to a root be mixed (some straight, some
 * by nodes), and finds the shares by Lagrange multipliers; it does not say how. What is left is a
 * linear program over rates: with F[s] = rate * share[s],
 *
 *	most of sum F[s], so that for each worker w, root s and node v
 *	straight[s][w] + sum over v of summed[s][w][v] = F[s]
 *	sum over s and w of summed[s][w][v] <= node_room[v]
 *	summed[s][w][v] <= on[s][v]
 *	sum over w of straight[s][w] + sum over v of on[s][v] <= root_room[s]
 *
 * Not the paper's, and checked against the program: as workers are alike, its optimum is
 *
 *	R / W + (1 - 1 / W) * min(N / W, R)		R, N: the room of all roots, of all nodes
 *
 * and many splits have it: those where the summed part G[s] of each root, with the sum of this
 * minimum, is no more than root_room[s]. So the paper's first phase does not say which split to
 * take; the functions below are three ways to take one.
 */
#ifndef TALLY_POLICY_SPLIT_H
#define TALLY_POLICY_SPLIT_H

#include <stdint.h>

enum {
	SPLIT_ROOTS_MAX = 256,
	SPLIT_TRIES_MAX = 1 << 20, /* of split_search() */
};

struct split_problem {
	unsigned int workers, roots; /* at least 1 */
	unsigned int nodes;
	const double *root_room; /* bytes a second that each root can take in; not all 0 */
	const double *node_room; /* bytes a second that each node can add, of what comes in */
};

/*
 * All functions: -EINVAL where a number is not as it is said; then nothing is returned. Rates are
 * those of a worker, in bytes a second to all roots together.
 */

/* The highest rate of all splits: no split and no routes have a higher one. */
int split_bound(const struct split_problem *p, double *ret_rate);

/* The highest rate of this split: no routes have a higher one. Shares: not below 0, together 1. */
int split_rate(const struct split_problem *p, const double *share, double *ret_rate);

/* Shares as the roots' rooms are. This is one of the splits that have the highest rate. */
int split_by_room(const struct split_problem *p, double *ret_share);

/*
 * The paper's manner: a price on the room of each root and node (a multiplier for each constraint),
 * which rises where more is asked for than there is, and falls where less is (projected
 * subgradients, steps that shrink with the square root of their number). Shares are those of the
 * mean of what is asked for in the second half of the rounds. RECONSTRUCTED: the paper has no such
 * steps. More rounds come nearer to the highest rate. rounds: at least 1. -ENOMEM.
 */
int split_by_prices(const struct split_problem *p, unsigned int rounds, double *ret_share);

/*
 * The best of a grid, by a measure of the caller's, such as the rate of a route: all splits whose
 * shares are multiples of 1 / parts, and the one by room. Of equals that by room, then the first.
 * `rate` returns a rate, not below 0, or what went wrong, which split_search() then returns.
 * -E2BIG: more than SPLIT_TRIES_MAX splits. -ENOMEM.
 */
int split_search(const struct split_problem *p, unsigned int parts,
		 int (*rate)(void *context, const double *share, double *ret), void *context,
		 double *ret_share, double *ret_rate);

#endif
