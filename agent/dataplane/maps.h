/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The highest floor: maps in and out. What is written was decided in agent/core/tables.h; what is
 * here knows only in which order, and what running programs must have left before.
 */
#ifndef TALLY_AGENT_DATAPLANE_MAPS_H
#define TALLY_AGENT_DATAPLANE_MAPS_H

#include "agent/core/tables.h"
#include "dataplane.h"
#include "pins.h"

int map_error(struct why *why, int error, const char *map);

/* --- maps_gates.c ---------------------------------------------------------------------------- */

/* Maps the memory of the gates, so that each is written in one go. */
int maps_gates_open(struct dataplane *d, struct why *why);
void maps_gates_close(struct dataplane *d);

/* All gates of a job, gate 0 the last: where the others are there, it changes nothing for them. */
int maps_gates_put(struct dataplane *d, const struct tables_job *j, struct why *why);

/* Those that are not in `kept`, which may be NULL. */
void maps_gates_remove(struct dataplane *d, const struct tables_job *j,
		       const struct tables_job *kept);

/* --- maps_read.c ----------------------------------------------------------------------------- */

/* Jobs and their gates, without copies, and without the node's ports; *ret for tables_close(). */
int maps_read_gates(struct dataplane *d, struct tables *ret, struct why *why);

/* Also copies: */
int maps_read_jobs(struct dataplane *d, struct tables *ret, struct why *why);

/* Copies of a job; `ret` has room for TALLY_WORKERS_MAX. How many these are, or -errno. */
int maps_read_copies(struct dataplane *d, uint32_t id, struct tables_copy *ret);

/* Is this child `i` of a job? */
bool maps_child_is(struct dataplane *d, uint32_t id, unsigned int i, struct tally_child child);

/* --- maps_write.c ---------------------------------------------------------------------------- */

/* A copy has another next hop, under both of its keys. -ENOENT. */
int maps_hop_put(struct dataplane *d, uint32_t id, unsigned int i, const struct tables_copy *copy,
		 const struct hop *hop, bool *ret_changed);

/* Gives every group of the node this program for its copies. */
int maps_groups_use(struct dataplane *d, int fanout, struct why *why);

/* --- maps_ranks.c ---------------------------------------------------------------------------- */

/* Keys and places of a job's ranks and nodes. `g`: NULL: they are forgotten. */
int maps_ranks_put(struct dataplane *d, const struct tally_job *job, const struct installation *g);

/* The rank of this index has another next hop. -ENOENT. */
int maps_rank_bind(struct dataplane *d, uint32_t index, const struct hop *hop);

/* --- sweep.c --------------------------------------------------------------------------------- */

/*
 * Frees slots of the pool that no job holds that is there and borrows, and forgets keys of ranks
 * whose job is not there. No program that found such a job runs any more.
 */
int maps_sweep(struct dataplane *d, struct why *why);

/* --- counters.c ------------------------------------------------------------------------------ */

/* Marks, in TALLY_ROWS_MAX of them, rows of `j` that `kept` does not count in (NULL: all). Any? */
bool rows_mark(const struct tables_job *j, const struct tables_job *kept, bool *rows);
bool rows_any(const bool *rows);

/*
 * What is in these rows goes into that of what has gone, and their marks go. No program counts in
 * them any more.
 */
int rows_retire(struct dataplane *d, bool *rows, struct why *why);

/* The same with what is kept of ports where no program of the node is any more. */
int ports_retire(struct dataplane *d, struct why *why);

#endif
