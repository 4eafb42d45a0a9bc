/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read this file first: what others see of this folder. Then pins.h, the lowest floor.
 *
 * The data plane of one node, as it stands in the kernel: programs on the node's ports and
 * their maps, all pinned in one directory of a BPF file system. Nothing is kept in memory,
 * so that any process can go on where another one stopped. Only this folder knows libbpf.
 *
 * Whatever changes or reads a node holds a lock on its directory meanwhile; others wait. Where a
 * process has claimed the node, others do not wait but get -EBUSY. All functions return 0 or a
 * negative errno, and then `why` says what is wrong and what to do.
 */
#ifndef TALLY_AGENT_DATAPLANE_H
#define TALLY_AGENT_DATAPLANE_H

#include <stdbool.h>
#include <stdint.h>
#include <tally/maps.h>

#include "agent/core/dataplane_state.h"
#include "agent/core/installation.h"
#include "agent/core/tables.h"
#include "agent/core/traffic.h"
#include "common/util.h"

/* Also what the library has to say goes to stderr. */
void dataplane_be_verbose(void);

/* As many as the kernel may ever have. */
unsigned int dataplane_cpus(void);

/*
 * Makes this process the node's agent until it ends. From then on every other process gets -EBUSY
 * from all functions here; -EBUSY here: another process is. There need not be a node yet.
 */
int dataplane_claim(const char *pin, struct why *why);

/* It is that no more. The directory goes if there is no node in it. */
void dataplane_unclaim(const char *pin);

/*
 * Loads programs, makes maps with `slots` slots and a pool (NULL: none), pins all below `pin` and
 * attaches to each port that is there (ifindex), in this order. All or nothing. Mounts the BPF file
 * system if it is missing. A node that is not whole, or has another layout, goes first if this
 * process has claimed it. -EEXIST: a node is there already; -EBUSY: a port has another XDP program
 * that could share it, and is not to; or, where not AUTO, one that a BPF link holds; -EINVAL: one
 * that ours cannot call.
 */
int dataplane_attach(const char *pin, uint32_t slots, const struct tally_pool *pool,
		     struct dataplane_port *ports, unsigned int count, struct why *why);

/*
 * Puts freshly loaded programs in place of the running ones, port by port without a gap.
 * All maps stay, with the sums under way in them. `slots` 0: as many as before; another number
 * begins with empty slots and a new boot number, which clients heal. `pool` NULL: as before;
 * another number of slots begins with an empty pool, and what was in it is lost as frames are.
 * Afterwards the node is on exactly these ports; count 0: on those it was on. A port whose mode is
 * to be another is attached anew, with a short gap at this port alone. All or nothing. An open
 * struct dataplane is stale afterwards: open it anew. -ENOENT: no node; -ENOSPC: the jobs have more
 * slots than that; -ESTALE: the maps are those of another version.
 */
int dataplane_replace(const char *pin, uint32_t slots, const struct tally_pool *pool,
		      struct dataplane_port *ports, unsigned int count, struct why *why);

/*
 * Detaches from all ports, in whatever namespace they are, and removes all pins. -EXDEV: a port
 * with another program beside ours, or one by TC, is in another namespace; nothing has changed.
 */
int dataplane_detach(const char *pin, struct why *why);

struct dataplane;

/*
 * The maps of a running node, locked; the caller's, for dataplane_close() (NULL allowed). -ENOENT:
 * no node, or not a whole one; -ESTALE: one whose maps are those of another version.
 */
int dataplane_open(const char *pin, struct dataplane **ret, struct why *why);
void dataplane_close(struct dataplane *d);
static inline void dataplane_closep(struct dataplane **d) { dataplane_close(*d); }

/* -EINVAL: that cannot be the directory of a node. */
int dataplane_pin_check(const char *pin, struct why *why);

/* -ESTALE: the node pinned there has maps of another layout. Takes no lock. */
int dataplane_layout_check(const char *pin, struct why *why);

/*
 * Looks whether the kernel has all that was pinned of an open node of this process. -ENOENT, and
 * `why` says how much is missing; -EMFILE: too few files may be opened to see that, or ports.
 */
int dataplane_check(struct dataplane *d, struct why *why);

/*
 * Puts back what dataplane_check() misses, and our program on each of these ports that has none; a
 * port with ifindex 0 is not there, and other ports are left. A port that cannot be attached says
 * why in `refused`, and the others go on. Sums under way stay.
 */
int dataplane_mend(struct dataplane *d, struct dataplane_port *ports, unsigned int count,
		   struct why *why);

/*
 * Which programs these are: ours, and whether the running node's are the same, and no replacement
 * was cut off.
 */
uint64_t dataplane_build(void);
bool dataplane_is_current(struct dataplane *d);

/*
 * The node's ports: ifindex (0: gone), name ("" in another namespace), mode, beside; *ret is to be
 * freed.
 */
int dataplane_ports(struct dataplane *d, struct dataplane_port **ret, unsigned int *ret_count,
		    struct why *why);

/* Is there an XDP program in this port's driver, whosever? 1 or 0; or why nobody knows. */
int dataplane_native(uint32_t ifindex);
bool dataplane_is_native(uint32_t ifindex); /* false, too, where nobody knows */

/* The number of the XDP program on this port, if that is not one of Tally's; 0: none is seen. */
uint32_t dataplane_other_program(uint32_t ifindex);

/* Is a program of the node on this port? 1 or 0; or the kernel does not say: -ENOMEM, ... */
int dataplane_is_attached(struct dataplane *d, uint32_t ifindex);

/* --- tenants: who pays for a job, and what that allows. 0 is the node's own, without limits. ---
 */

/*
 * Writes limits and sources of tenant `index`, 1 .. TALLY_TENANTS_MAX - 1; what it had before goes.
 * A bucket keeps its level where its limit stays. -EINVAL: no such index, rate or prefix; -ENOSPC:
 * no room for the sources, and nothing has changed.
 */
int dataplane_tenant_put(struct dataplane *d, uint32_t index, const struct dataplane_limits *limits,
			 const struct dataplane_source *sources, unsigned int count,
			 struct why *why);

/* Forgets it. Its jobs go first: without sources, nothing comes in by a restricted gate. */
int dataplane_tenant_del(struct dataplane *d, uint32_t index, struct why *why);

/* --- jobs --- */

/*
 * All jobs, slots and attached ports of the node; *ret is the caller's, for tables_close(). Where a
 * job lies, the caller decides in these tables (agent/core/tables.h); here it is only written.
 */
int dataplane_tables_read(struct dataplane *d, struct tables *ret, struct why *why);

/*
 * Writes a job that tables_install() has placed, out of `g`; the job is known last. `before`: what
 * the tables have of the job's id, or NULL. The kernel may fail before anything has changed, or
 * nothing of either is left: read the tables anew.
 */
int dataplane_job_put(struct dataplane *d, const struct tables_job *before,
		      const struct tables_job *j, const struct installation *g, struct why *why);

/*
 * Writes the gates that tables_regate() has chosen for a running job; what came in by a gate that
 * goes stays counted. On failure read the tables anew. Many jobs that change or go are waited for
 * together: when rows are read, a job is put, or the node is closed.
 */
int dataplane_job_regate(struct dataplane *d, const struct tables_job *before,
			 const struct tables_job *now, struct why *why);

/*
 * The slots of running jobs are elsewhere from now on, and begin empty; what is on the way to these
 * jobs meanwhile finds no job. Where a ring comes to lie, rings that move too may have been: all go
 * before the first one comes. On failure some of these jobs have no gates: read the tables anew.
 */
int dataplane_jobs_move(struct dataplane *d, const struct tables *now,
			const struct tables_move *move, unsigned int count, struct why *why);

/* Removes a job that the tables have. On failure read the tables anew. */
int dataplane_job_remove(struct dataplane *d, const struct tables_job *j, struct why *why);

/*
 * A running job's copies, in the order of installation_plan(), have these next hops now: each gets
 * other MACs where they have changed. *ret_changed of them did; a hop with port 0 is not known, and
 * its copy stays as it is; *ret_elsewhere are behind another port, and stay too. -ENOENT.
 */
int dataplane_job_follow(struct dataplane *d, uint32_t id, const struct hop *hops,
			 unsigned int count, unsigned int *ret_changed, unsigned int *ret_elsewhere,
			 struct why *why);

/*
 * All rows, summed over all CPUs; *ret is to be freed. The first is what is of no job and no known
 * port, the second is of what has gone: both say job 0 and port 0. Last come two of each port.
 * Waits for nobody.
 */
int dataplane_rows(struct dataplane *d, struct traffic_row **ret, unsigned int *ret_count,
		   struct why *why);

/*
 * Programs that have found a job before it was removed, or a gate, have ended after this, and what
 * they counted is put away: whoever opens the node finds that, also where this process was killed.
 * The kernel waits for them (a grace period of RCU) in each write into the map of groups; so one
 * wait is for all that went since the last one, and is put off until somebody calls this, or gets
 * what was a job's. A job that is put pays by the way, with its group.
 */
int dataplane_settle(struct dataplane *d, struct why *why);

/* A slot as it is at this moment, whoever works at it. -ENOENT: there are not so many. */
int dataplane_slot_read(struct dataplane *d, uint32_t index, struct tally_slot *ret);

/* The sum of all rows, each packet once; `ret` has TALLY_OUTCOME_COUNT of them. */
int dataplane_counters(struct dataplane *d, struct tally_counter *ret, struct why *why);

uint32_t dataplane_slots(const struct dataplane *d);
struct tally_pool dataplane_pool(const struct dataplane *d);

/* --- trace: single packets, as they came in and with what became of them --- */

/* One packet in `every` (on each CPU) is told; 0: none. `one_job`: only of that job. */
int dataplane_trace_set(struct dataplane *d, uint32_t every, bool one_job, uint32_t job,
			struct why *why);

struct dataplane_trace;

/* For one reader at a time. It goes on when `d` is closed, and when programs are replaced. */
int dataplane_trace_open(struct dataplane *d, struct dataplane_trace **ret, struct why *why);
void dataplane_trace_close(struct dataplane_trace *t);
static inline void dataplane_trace_closep(struct dataplane_trace **t) { dataplane_trace_close(*t); }

/* Readable when there are events; the trace's own. */
int dataplane_trace_fd(const struct dataplane_trace *t);

/* Calls `each` for all events that are there; how many these were, or a negative errno. */
int dataplane_trace_read(struct dataplane_trace *t,
			 void (*each)(void *context, const struct tally_event *event),
			 void *context);

/* Events since it was opened that found no room. */
uint64_t dataplane_trace_lost(const struct dataplane_trace *t);

#endif
