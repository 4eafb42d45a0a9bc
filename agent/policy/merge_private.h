/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What merge*.c share. Nobody else includes this. */
#ifndef TALLY_POLICY_MERGE_PRIVATE_H
#define TALLY_POLICY_MERGE_PRIVATE_H

#include <stddef.h>

#include "choices.h"
#include "merge.h"

/* Does it sum on the way? */
static inline bool merge_sums_at(const struct merge_problem *p, uint32_t machine)
{
	return p->sums[machine] && machine != p->root;
}

/* Where the choice of this worker's way begins. */
static inline uint32_t merge_gateway(const struct merge_problem *p, unsigned int worker)
{
	const struct graph_path *lead = &p->lead[worker];

	return lead->links ? p->graph->link[lead->link[lead->links - 1]].to : p->worker[worker];
}

/* --- a tree to the root ---------------------------------------------------------------------- */

/* Of each machine. */
struct merge_spot {
	uint32_t link; /* towards the root; of the root, and where there is no way, GRAPH_NONE */
	uint32_t order; /* the wider ways come first, the root's is 0; GRAPH_NONE: it forwards
			 * nothing, or has no way */
	uint32_t hops;
	double width; /* the least room of a link on the way; below 0: no way */
};

/* room[links]: what counts for room. ret[machines]. -ENOMEM. */
int merge_tree(const struct merge_problem *p, const double *room, struct merge_spot *ret);

/* From this machine by the tree to the next one that sums, or to the root; it has a way there. */
void merge_tree_leg(const struct merge_problem *p, const struct merge_spot *spot, uint32_t machine,
		    struct graph_path *ret);

/* --- legs ------------------------------------------------------------------------------------ */

/* Part of a way: from a gateway or a machine that sums, past machines that do not, to the next that
 * does, or to the root. */
struct merge_leg {
	uint32_t from, to;
	struct graph_path path;
};

struct merge_legs {
	struct merge_leg *leg; /* those of one `from` together */
	uint32_t *at; /* [machines + 1]: where those from a machine begin */
	uint32_t legs, room;
};

/* For merge_legs_close(), also on failure. The first paths_max of each from and to; in large
 * networks, after so many, the first one, and to the nearest alone. -ENOMEM. */
int merge_legs_open(const struct merge_problem *p, unsigned int paths_max, struct merge_legs *ret);
void merge_legs_close(struct merge_legs *l);

/* --- choices --------------------------------------------------------------------------------- */

/* Choices of one root after the other: of each worker; then of each machine that sums, the farthest
 * first; then what all leads use. The first option is that of the tree. */
struct merge_menu {
	const struct merge_problem *all; /* [roots] */
	unsigned int roots;
	uint32_t first[MERGE_ROOTS_MAX]; /* choice of each */
	const struct merge_problem *p; /* of them, whose choices are added */
	struct choices choices;
	double *room;
	struct choice *choice;
	uint32_t *choice_of; /* [machines], for p; CHOICES_NONE: it does not sum */
	struct choices_option *option;
	struct graph_path *path; /* [options] */
	size_t *use_at; /* [options] */
	struct choices_use *use;
	size_t options, options_room, uses, uses_room;
};

/* legs[roots], spot[roots][machines]. For merge_menu_close(), also on failure. Legs lead to where
 * the order is lower. -ENOMEM. */
int merge_menu_open(const struct merge_problem *p, unsigned int roots,
		    const struct merge_legs *legs, const struct merge_spot *spot,
		    struct merge_menu *ret);
void merge_menu_close(struct merge_menu *m);

/* False: a way is too long, passes more than nodes_max machines that are no GRAPH_ROUTER, or one of
 * these twice. ret: of all roots. */
bool merge_ways_of(const struct merge_menu *m, const uint32_t *taken, unsigned int nodes_max,
		   struct graph_path *ret);

/* Options by which ways are as merge_ways_of() does not have them go, and the tree's are taken
 * instead. False: there are none such. */
bool merge_menu_mend(struct merge_menu *m, unsigned int nodes_max, uint32_t *taken);

/* --- ways ------------------------------------------------------------------------------------ */

/* Goes from one search to the next: the shares of its p[roots] may change meanwhile. */
struct merge_finder {
	struct merge_problem p[MERGE_ROOTS_MAX];
	unsigned int roots, ways; /* of all roots */
	const struct merge_options *o;
	unsigned int starts; /* of these options, or fewer */
	uint64_t work; /* legs that starts have gone through, all together */
	struct merge_legs legs[MERGE_ROOTS_MAX];
	double *room; /* [links]: what the tree of this start takes for it */
	double *load; /* [links]: of what leads */
	struct merge_spot *spot; /* [roots][machines] */
	struct graph_path *way, *best; /* [ways]; best: what was found */
	double rate; /* of the best; below 0: there is none */
	double bound, bound_of_leads; /* of these ways; of all, whatever the shares are, as a
				       * worker has as many streams to each root */
	uint64_t seed;
};

/* For merge_finder_close(), also on failure. Errors as of merge_search(). */
int merge_finder_open(const struct merge_problem *p, unsigned int roots,
		      const struct merge_options *o, struct merge_finder *ret);
void merge_finder_close(struct merge_finder *f);

/* False: what was searched through is enough for networks of this size. */
bool merge_has_time(const struct merge_finder *f);

/* merge_search() with the shares of now: f->best and f->rate. */
int merge_find(struct merge_finder *f);

#endif
