/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What stands in the maps of a node, and where the next job goes: its index, slots, gates with
 * their rows of counters, and children. Pure. Whoever has a node keeps one struct tables, or reads
 * it from the maps (agent/dataplane); asks one of the tables_*() that decide; writes what they say
 * into the maps; and then tells the struct by tables_put() or tables_forget().
 */
#ifndef TALLY_AGENT_TABLES_H
#define TALLY_AGENT_TABLES_H

#include <stdbool.h>
#include <stdint.h>
#include <tally/maps.h>

#include "common/owned.h"
#include "common/why.h"
#include "dataplane_state.h"
#include "installation.h"

/* A copy of a result: in the maps the children (job, port, index) and (job, 0, number of copy). */
struct tables_copy {
	uint32_t port; /* ifindex */
	uint32_t index; /* among the job's copies through this port, without holes */
	uint32_t row; /* that counts the copy: of the port's gate, or else of the job */
};

/* One job. It owns its arrays: tables_job_close(). */
struct tables_job {
	uint32_t id;
	bool broken; /* no gate 0: a process died while it wrote the job or removed the job */
	struct tally_job job; /* the group is the index too */
	unsigned int copies; /* up to TALLY_WORKERS_MAX */
	struct tables_copy *copy; /* in the order of installation_plan() */
	unsigned int gates;
	/* The first is gate 0, if it is there: ifindex 0, it judges all ports without a gate. */
	struct dataplane_gate *gate;
};

/* All jobs of a node. Zeros are a node without slots, ports and jobs; for tables_close(). */
struct tables {
	uint32_t slots;
	uint32_t pool; /* slots that jobs borrow */
	unsigned int ports;
	uint32_t *port; /* where the node is attached: ifindexes */
	unsigned int jobs; /* up to TALLY_JOBS_MAX, and broken ones */
	struct tables_job *job; /* by their ids */
	bool freed[TALLY_ROWS_MAX]; /* lately: a job gets one of these rows only after a wait */
};

void tables_job_close(struct tables_job *j);
void tables_close(struct tables *t);

/* Copies of what they own, for the caller to close. -ENOMEM. */
int tables_job_copy(const struct tables_job *j, struct tables_job *ret);
int tables_copy(const struct tables *t, struct tables *ret);

/* Gates may be in another order. */
bool tables_job_is_equal(const struct tables_job *a, const struct tables_job *b);

/* NULL: no such job. Valid until the tables change. */
const struct tables_job *tables_find(const struct tables *t, uint32_t id);

/*
 * Where a planned and addressed job goes; *ret is the caller's. Slots are chosen around those of
 * all other jobs (rings.h), or a range in the pool (pool.h); an older epoch of the job makes room,
 * and gates that it has keep their rows. `gates`: where messages may come in; NULL: everywhere.
 * Each job has a row. Its gates at ports that workers are behind have rows of their own, then its
 * other gates, as far as there are rows: TALLY_PORT_ROWS_OF_TENANT for each tenant, whatever others
 * have, and the rest for who comes first. -EINVAL: a copy leaves by a port where the node is not
 * attached, or a gate is given twice; -EEXIST: the job is there with this epoch, and all copies
 * leave by the same ports; -ENOSPC: no children, slots, group or gates; -ENOMEM.
 */
int tables_install(const struct tables *now, const struct installation *wanted,
		   const struct dataplane_gate *gates, unsigned int count, struct tables_job *ret,
		   struct why *why);

/*
 * Slots for a job (slot_mask + 1), or its range in the pool, as tables_install() gives them:
 * slot_base. -ENOSPC, -ENOMEM.
 */
int tables_place(const struct tables *now, uint32_t id, struct tally_job *job, struct why *why);

/* A run's ring that is to lie elsewhere, in the same epoch. */
struct tables_move {
	uint32_t id; /* the job's */
	uint32_t slot_base;
};

/*
 * Rings that must move so that a run of job `id` finds this many slots in a row; those of jobs for
 * which `may_move` says false, and of broken jobs, stay. Returns how many, in *ret, the caller's to
 * free(); 0: none, since there is room. -ENOSPC: that does not help; -ENOMEM.
 */
int tables_make_room(const struct tables *now, uint32_t id, uint32_t slots,
		     bool (*may_move)(const void *context, const struct tables_job *job),
		     const void *context, struct tables_move **ret);

/* These stand in the maps now. */
void tables_move(struct tables *t, const struct tables_move *move, unsigned int count);

/* The job with other gates; the others keep their rows. -ENOENT, -EINVAL, -ENOSPC, -ENOMEM. */
int tables_regate(const struct tables *now, uint32_t id, const struct dataplane_gate *gates,
		  unsigned int count, struct tables_job *ret, struct why *why);

/* The job that has to go: valid until the tables change. -ENOENT, and `why` says so. */
int tables_remove(const struct tables *now, uint32_t id, const struct tables_job **ret,
		  struct why *why);

/* Says that there is none: -ENOENT. */
int tables_no_job(uint32_t id, struct why *why);

/* The job stands in the maps now, in place of what the job's id had there. Takes *job. -ENOMEM. */
int tables_put(struct tables *t, struct tables_job *job);

/* Nothing of the job stands in the maps any more. */
void tables_forget(struct tables *t, uint32_t id);

/* Where the job counts what leaves by this port; TALLY_ROW_NO_JOB: the job has no gate 0. */
uint32_t tables_row(const struct tables_job *j, uint32_t ifindex);

/* Does the job have this gate? `j` may be NULL. */
const struct dataplane_gate *tables_gate_find(const struct tables_job *j, uint32_t ifindex);

#endif
