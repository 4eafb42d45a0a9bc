/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files place*.c share, and nobody else needs. */
#ifndef TALLY_POLICY_PLACE_PRIVATE_H
#define TALLY_POLICY_PLACE_PRIVATE_H

#include <stddef.h>

#include "place.h"

/* --- what trees leave of the limits ---------------------------------------------------------- */

struct place_room {
	const struct place_problem *p;
	unsigned int used; /* nodes */
	unsigned int *jobs; /* of each machine */
	uint32_t *slots; /* left, of each machine */
};

int place_room_open(const struct place_problem *p, struct place_room *ret); /* -ENOMEM */
void place_room_close(struct place_room *r);
void place_room_take_those_who_stay(struct place_room *r);

/* Which rule a tree of this job breaks, and which of its nodes (GRAPH_NONE: all); NULL: none. */
const char *place_tree_fault(const struct place_problem *p, const struct place_job *job,
			     const struct place_tree *tree, uint32_t *ret_node);

/* Is it a tree for this job? Is it within the limits beside what has been taken? */
bool place_is_tree(const struct place_problem *p, const struct place_job *job,
		   const struct place_tree *tree);
bool place_room_has(const struct place_room *r, uint32_t job,
		    uint32_t machine); /* nodes_max apart */
bool place_room_fits(const struct place_room *r, uint32_t job, const struct place_tree *tree);
void place_room_take(struct place_room *r, uint32_t job, const struct place_tree *tree);
void place_room_give(struct place_room *r, uint32_t job, const struct place_tree *tree);

/* --- which links a tree uses ----------------------------------------------------------------- */

/* All 0 between two walks. */
struct place_walk {
	uint32_t *times; /* of each link */
	uint32_t *link; /* those that are used, as they come */
	unsigned int links;
};

int place_walk_open(const struct graph *g, struct place_walk *ret); /* -ENOMEM */
void place_walk_close(struct place_walk *w);

/*
 * Counts the links of a job with this tree. -EHOSTUNREACH: nobody makes results, or there is no
 * way. The links stay counted until place_walk_clear(), also after a failure.
 */
int place_walk_tree(const struct place_problem *p, uint32_t job, const struct place_tree *tree,
		    struct place_walk *w);
void place_walk_clear(struct place_walk *w);

/* --- of jobs --------------------------------------------------------------------------------- */

/* Bytes times links in an iteration if nobody sums; without a root, if the first worker did. */
double place_bytes_without(const struct place_problem *p, uint32_t job);

/*
 * The seconds of an iteration in an empty network: its machines' own links alone hold it up.
 * Workers of one host share its link; those on the root's machine need none.
 */
double place_alone_s(const struct place_problem *p, uint32_t job);

/* Bytes a second that a worker sends when nothing slows its job down; 0: an iteration takes none.
 */
double place_offered(const struct place_job *job, double alone_s);

/* What it costs the job to leave `now` for this tree, as the term `moves` has it, by slowdown. */
double place_move(const struct place_problem *p, uint32_t job, const struct place_tree *tree);

/* What is left of a link for jobs: at least a hundredth, as others give way, too. */
double place_link_room(const struct graph_link *link);

/* The same nodes below the same parents, in whatever order. */
bool place_same(const struct place_tree *a, const struct place_tree *b);

/* --- trees worth weighing -------------------------------------------------------------------- */

enum {
	PLACE_MENU_MAX = 24,
};

struct place_menu {
	struct place_tree tree[PLACE_MENU_MAX]; /* none twice */
	unsigned int count;
};

void place_menu_add(struct place_menu *m, const struct place_tree *tree);

/* The tree of a set of nodes; of a job without a root, the first one is the top. */
void place_assemble(const struct place_problem *p, uint32_t job, const uint32_t *machine,
		    unsigned int machines, struct place_tree *ret);

/*
 * Trees worth weighing for a job: none, and sets that save links. With `room` only those that fit
 * beside what has been taken.
 */
void place_candidates(const struct place_problem *p, uint32_t job, const struct place_room *room,
		      struct place_menu *ret);

static inline struct place_tree place_single(uint32_t machine)
{
	return (struct place_tree){ .nodes = 1, .node = { { machine, GRAPH_NONE } } };
}

/* All machines that sum, by number; the caller's to free(). -ENOMEM. */
int place_nodes(const struct graph *g, uint32_t **ret, unsigned int *ret_nodes);

/* Bytes times links from a job's workers to a machine; INFINITY: no way, or GRAPH_NONE. */
double place_far(const struct place_problem *p, uint32_t job, uint32_t machine);

/*
 * The jobs in their order: each takes the machine with room that is the least far of these, if that
 * is less far than its root. -ENOMEM.
 */
int place_fit(const struct place_problem *p, const uint32_t *machine, unsigned int machines,
	      struct place_tree *ret);

/*
 * Decides for those jobs alone that some tree could serve. While one has none, all costs are
 * INFINITY, and a search for less would go on to its last step. -ENOMEM, or what `decide` returns.
 */
int place_served(const struct place_problem *p,
		 int (*decide)(const struct place_problem *p, struct place_tree *ret),
		 struct place_tree *ret);

/* --- policies: one file each ----------------------------------------------------------------- */

int place_none(const struct place_problem *p, struct place_tree *ret);
int place_tapina(const struct place_problem *p, struct place_tree *ret);
int place_tapina_mg(const struct place_problem *p, struct place_tree *ret);
int place_random(const struct place_problem *p, struct place_tree *ret);
int place_tor(const struct place_problem *p, struct place_tree *ret);
int place_k_median(const struct place_problem *p, struct place_tree *ret);
int place_soar(const struct place_problem *p, struct place_tree *ret);
int place_online(const struct place_problem *p, struct place_tree *ret); /* place_again() */
int place_traffic(const struct place_problem *p, struct place_tree *ret);
int place_least(const struct place_problem *p, struct place_tree *ret);
int place_exact(const struct place_problem *p, struct place_tree *ret);

#endif
