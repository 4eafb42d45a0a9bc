/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of route.h share: paths of a problem, and what can be chosen among them. */
#ifndef TALLY_POLICY_ROUTE_PRIVATE_H
#define TALLY_POLICY_ROUTE_PRIVATE_H

#include "choices.h"
#include "route.h"

/* -EINVAL, -E2BIG: as route_inart() says. */
int route_check(const struct route_problem *p, const struct route_options *o);

/* No route has a higher rate, whatever links bear: that of split_rate(). */
double route_bound(const struct route_problem *p);

/* A route without ways, of the problem's numbers. -ENOMEM. */
int route_new(const struct route_problem *p, struct route **ret);

/* --- paths ----------------------------------------------------------------------------------- */

/*
 * Where the paths of workers begin: hosts with a single link, to the same machine, have one origin
 * together, behind that link. What they can choose is the same, and that link bears the same
 * whatever they choose; so a best mixture treats them alike, and need not tell them apart.
 */
struct route_origin {
	uint32_t machine;
	unsigned int workers;
};

struct route_span {
	uint32_t first, count;
};

struct route_ways {
	const struct route_problem *p;
	unsigned int paths_max, nodes_max;
	struct route_origin *origin;
	unsigned int origins;
	uint32_t *origin_of; /* of each worker */
	uint32_t *leaves_by; /* of each worker: its link to the origin; GRAPH_NONE: it is there */
	uint32_t *near; /* [(origin * roots + root) * nodes_max + i]: nodes, then ROUTE_NONE */
	struct route_span *span; /* see route_span_of() */
	struct graph_path *path;
	uint32_t paths, paths_room;
};

/* The problem and the options have been checked, and stay while the ways are in use. */
int route_ways_open(const struct route_problem *p, const struct route_options *o,
		    struct route_ways *ret);
void route_ways_close(struct route_ways *w);

/*
 * Paths from an origin (its number) or a node (origins and its number) to a node (its number) or a
 * root (nodes and its number). What nobody can want is not looked for, and has none.
 */
struct route_span route_span_of(const struct route_ways *w, uint32_t from, uint32_t to);

/* --- choices --------------------------------------------------------------------------------- */

struct route_meaning {
	uint32_t node; /* ROUTE_NONE: nobody sums; or it is the node that sends on */
	uint32_t path; /* of the ways; ROUTE_NONE: nothing to be chosen */
};

/*
 * Choices: of each worker (or origin) for each root; then of each node for each root, from
 * `first_on` on; last the workers' links to their origins. Options lie in the same order for
 * workers and for origins, with and without links. Resources: links, nodes, roots.
 */
struct route_menu {
	const struct route_ways *ways;
	bool by_origin, with_links;
	struct choices choices;
	double unit; /* rates and rooms are in units of so many bytes a second */
	double *room;
	struct choice *choice;
	struct choice *pair; /* of each origin and root */
	struct choice *now; /* that options are added to */
	struct choices_option *option;
	struct route_meaning *meaning; /* of each option */
	struct choices_use *use;
	uint32_t first_on, options, uses;
};

int route_menu_open(const struct route_ways *w, bool by_origin, bool with_links,
		    struct route_menu *ret);
void route_menu_close(struct route_menu *m);

/* Both are of a menu by worker. */
const struct route_meaning *route_meaning_of(const struct route_menu *m, uint32_t choice,
					     uint32_t option);
/* The rate is that of what is taken. -ENOMEM. */
int route_of(const struct route_menu *m, const uint32_t *taken, double bound, struct route **ret);

/* The options that make this route. False: it goes by nodes or paths that are not to be chosen. */
bool route_taken(const struct route_menu *m, const struct route *route, uint32_t *ret_taken);

/*
 * The best mixture, found by origin, for the choices of this menu by worker: ret_share as in
 * choices.h, *ret_bound in bytes a second.
 */
int route_mix(const struct route_menu *m, bool with_links, unsigned int steps_max,
	      double *ret_share, double *ret_bound);

/* Both of a problem that has been checked. *ret is empty before, and must stay where it is. */
struct route_offer {
	struct route_ways ways;
	struct route_menu menu; /* by worker, with links */
};

int route_offer_open(const struct route_problem *p, const struct route_options *o,
		     struct route_offer *ret);
void route_offer_close(struct route_offer *f);

/* route_inart() with what can be chosen. */
int route_round(const struct route_menu *m, const struct route_options *o, struct route **ret);

#endif
