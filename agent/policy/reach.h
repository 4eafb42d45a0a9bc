/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How far all machines of a network are from one another, and which of the shortest paths packets
 * take: made once for a network, so that placements can be weighed by the thousand. Loads and
 * capacities may change meanwhile; links and machines may not. Pure.
 *
 * Most machines are hosts behind one switch. Such a host is a link further away than its switch, so
 * only the **inner** machines, all others, have a row in the table.
 */
#ifndef TALLY_POLICY_REACH_H
#define TALLY_POLICY_REACH_H

#include <stddef.h>

#include "graph.h"

enum {
	REACH_INNER_MAX = 1 << 14,
	REACH_LINKS_MAX = GRAPH_PATH_MAX - 2, /* between inner machines */
	REACH_NONE = 255, /* in the table: no way */
};

/* Packets to `to` that are at `at` take this link: what routing says, where it is known. */
struct reach_way {
	uint32_t at, to, link;
};

struct reach {
	const struct graph *graph; /* the caller's; it must stay */
	unsigned int inner;
	uint32_t *index; /* of each machine: its row, or that of its switch */
	uint32_t *leaving, *arriving; /* of a host behind one switch: its links; else GRAPH_NONE */
	uint32_t *machine; /* [inner] */
	uint8_t *far; /* [to * inner + from]: links between inner machines */
	/* Links between inner machines from row x: next_link[next_at[x]] and those behind it. */
	uint32_t *next_at, *next_link, *next_row; /* and the rows that they lead to */
	struct reach_way *way; /* in order of `at` and `to` */
	unsigned int ways;
};

/* *ret is the caller's to reach_free(). -E2BIG: more than REACH_INNER_MAX; -ENOMEM. */
int reach_make(const struct graph *g, struct reach **ret);
void reach_free(struct reach *r); /* or NULL */
static inline void reach_freep(struct reach **r) { reach_free(*r); }

/*
 * Paths follow these ways from now on, and where there is none, links that lead nearer. Several of
 * one `at` and `to` share the packets: a path takes one of them by its hash. Where ways lead
 * nowhere, or round in circles, the path is as without. Distances stay those of shortest paths. The
 * ways are copied; -ENOMEM, -EINVAL: a link that does not leave `at`, or a machine that is not
 * there.
 */
int reach_ways_set(struct reach *r, const struct reach_way *way, unsigned int ways);

/* Links of the shortest path; GRAPH_NONE: there is none that is short enough. */
static inline uint32_t reach_distance(const struct reach *r, uint32_t from, uint32_t to)
{
	uint32_t far = r->far[(size_t)r->index[to] * r->inner + r->index[from]];

	if (from == to)
		return 0;
	if (far == REACH_NONE)
		return GRAPH_NONE;
	return far + (r->leaving[from] != GRAPH_NONE) + (r->leaving[to] != GRAPH_NONE);
}

/*
 * The path that ways give, or one of the shortest ones, link by link, as routers choose among equal
 * ones by a hash: the same machines and seed have the same path. Returns its length, or GRAPH_NONE.
 */
uint32_t reach_path(const struct reach *r, uint32_t from, uint32_t to, uint64_t seed,
		    uint32_t ret_link[GRAPH_PATH_MAX]);

#endif
