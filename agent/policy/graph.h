/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read this file first, then docs/policies.md. A network as policies see it: machines, and directed
 * links with what they can carry and what they carry now. Pure.
 *
 * Machines and links have numbers from 0 on, in the order in which they were given. A path is a
 * sequence of links, and simple: it comes to no machine twice. Hosts begin and end paths and
 * forward nothing; a host that forwards is a router.
 */
#ifndef TALLY_POLICY_GRAPH_H
#define TALLY_POLICY_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#define GRAPH_NONE UINT32_MAX /* no machine, no link, no way */

enum {
	GRAPH_MACHINES_MAX = 1 << 20,
	GRAPH_LINKS_MAX = 1 << 23,
	GRAPH_PATH_MAX = 64, /* of a path: a packet's usual TTL */
};

enum graph_kind {
	GRAPH_HOST,
	GRAPH_NODE, /* forwards, and has slots to sum in */
	GRAPH_ROUTER, /* forwards only */
};

struct graph_machine {
	enum graph_kind kind;
	uint32_t slots; /* 0 but for GRAPH_NODE */
};

/* One direction; a cable is two. Several may lead from one machine to the same other one. */
struct graph_link {
	uint32_t from, to; /* machines, not the same */
	double capacity, load; /* bytes a second; not below 0, and finite */
};

/* What stands in `machine` and `link` may be changed, but not from where to where a link leads. */
struct graph {
	unsigned int machines, links;
	struct graph_machine *machine;
	struct graph_link *link;
	/* Links of machine m, by number: x[x_at[m]] and those behind it, before x[x_at[m + 1]]. */
	uint32_t *leaving_at, *leaving; /* that leave it */
	uint32_t *arriving_at, *arriving; /* that come to it */
};

/* Copies what it is given; *ret is the caller's to graph_free(). -EINVAL, -E2BIG, -ENOMEM. */
int graph_make(const struct graph_machine *machine, unsigned int machines,
	       const struct graph_link *link, unsigned int links, struct graph **ret);
void graph_free(struct graph *g); /* or NULL */
void graph_freep(struct graph **g);

/* What is left of a link's capacity; 0 where there is more load than capacity. */
double graph_room(const struct graph_link *link);

/*
 * How far each machine is from `to`: links of the shortest path; GRAPH_NONE: no way. `ret` has room
 * for g->machines. -EINVAL, -ENOMEM.
 */
int graph_distances(const struct graph *g, uint32_t to, uint32_t *ret);

struct graph_path {
	unsigned int links; /* 0: from a machine to itself */
	uint32_t link[GRAPH_PATH_MAX];
};

/*
 * Which path comes first, as strcmp() says it: the shorter one; of two equally long ones, that with
 * the lower number where they part.
 */
int graph_path_compare(const struct graph_path *a, const struct graph_path *b);

/*
 * The first `max` simple paths of at most GRAPH_PATH_MAX links, in the order of
 * graph_path_compare(); with max = 1 the shortest path (J. Y. Yen, "Finding the K shortest loopless
 * paths in a network", Management Science 17, 1971; no path is found twice by E. L. Lawler's rule,
 * ibid. 18, 1972). Returns how many there are, up to max. -EINVAL, -ENOMEM.
 */
int graph_paths(const struct graph *g, uint32_t from, uint32_t to, unsigned int max,
		struct graph_path *ret);

#endif
