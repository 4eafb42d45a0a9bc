/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The agent's books: tenants, jobs, and who may have how many slots. Pure; what is written here
 * is what is wanted, and the data plane follows.
 *
 * A tenant's quota is reserved for it: the quotas of all tenants together never exceed the
 * node's slots. A job takes slots from its tenant's quota when it is created, though it holds
 * them only while it runs. A quota that shrinks below what its running jobs hold drains: they
 * keep their slots until they end, nobody else gets these meanwhile, and the tenant's next runs
 * get smaller windows, each in the same proportion. The tenant "default" has what nobody
 * reserves, unless it is given a quota of its own.
 */
#ifndef TALLY_AGENT_BOOKS_H
#define TALLY_AGENT_BOOKS_H

#include <tally/maps.h>

#include "job.h"
#include "tenant.h"

enum {
	BOOKS_DEFAULT = 1, /* index of the tenant of that name; 0 is the data plane's own */
};

struct books_tenant {
	struct tenant is; /* name "": nobody has this index */
	bool configured; /* by the configuration file, which alone may change it */
	bool remainder; /* its quota is what nobody reserves */
};

struct books {
	uint32_t slots; /* of the node */
	struct books_tenant tenant[TALLY_TENANTS_MAX]; /* by the index that the data plane uses */
	struct job *job[TALLY_JOBS_MAX]; /* the books' own, by name */
	unsigned int jobs;
	bool cordoned; /* no run begins */
	bool spills; /* runs without slots are summed in software */
	bool lends; /* or get slots on loan, if there are any that nobody uses */
	bool pool; /* there are slots that runs without slots of their own borrow */
};

/* Empty, with the default tenant. */
void books_init(struct books *b, uint32_t slots);

/* Frees the jobs. */
void books_clear(struct books *b);

/* --- tenants --------------------------------------------------------------------------------- */

/*
 * The configuration's tenants, in the place of those of an earlier configuration; jobs that one of
 * them had left behind are its own again, and so are those of one that agents share. `rest`: the
 * default, if it is among them, has what nobody reserves. On failure the books are
 * half-way: the caller has a copy. -EEXIST: one of runtime has the name; -EBUSY: one that is not
 * there any more has jobs; -ENOSPC: tenants of runtime have the slots.
 */
int books_configure(struct books *b, const struct tenant *tenants, unsigned int count, bool rest,
		    struct why *why);

/* Its index, or -ENOENT with the names that there are. */
int books_tenant_find(const struct books *b, const char *name, struct why *why);

/*
 * Enters a new tenant, or changes the one at `index`. -EEXIST: the name is taken; -ENOSPC: more
 * slots than are free, or no room for another tenant. Returns the index.
 */
int books_tenant_add(struct books *b, const struct tenant *t, struct why *why);
int books_tenant_set(struct books *b, unsigned int index, const struct tenant *t, struct why *why);

/*
 * One of an earlier agent's books: whatever it has, it keeps, also where the configuration has
 * another of its name, but for the default tenant, and those that agents share. `rest`: it has what
 * nobody reserves. -EEXIST: those books have had the name already; -ENOSPC: no room for another
 * tenant.
 */
int books_tenant_restore(struct books *b, const struct tenant *t, bool rest, struct why *why);

/* -ENOSPC: all that tenants keep, by quota or in running jobs, is more than the node has. */
int books_fit(const struct books *b, struct why *why);

/* Tenants that agents share keep no slots but those of running jobs: this node's own come first. */
void books_yield(struct books *b);

/* All jobs by the names of their tenants: afterwards, or when tenants were put back by a copy. */
void books_settle(struct books *b);

/* -EBUSY: it has jobs; -EPERM: the default tenant. */
int books_tenant_del(struct books *b, unsigned int index, struct why *why);

uint32_t books_quota(const struct books *b, unsigned int index);

/* Slots that its running jobs hold: of its own, on loan; and that all its jobs were promised. */
uint32_t books_held(const struct books *b, unsigned int index);
uint32_t books_lent(const struct books *b, unsigned int index);
uint32_t books_promised(const struct books *b, unsigned int index);

/* Slots that no next job of it can have: those of other tenants, and what its own jobs were
 * promised; where it may have some on loan, at most those that runs have. */
uint32_t books_kept(const struct books *b, unsigned int index);

/* Slots that are some tenant's: by quota, or still held by its jobs. The default's only if it
 * has a quota of its own. */
uint32_t books_reserved(const struct books *b);

/* --- jobs ------------------------------------------------------------------------------------ */

/* By its name, or its number in the network. NULL: there is none. */
struct job *books_job_find(const struct books *b, const char *name);

/* The inner job that the root calls so: here it may have another name (inner.c). */
struct job *books_inner_find(const struct books *b, const char *name,
			     const struct sockaddr_storage *root);
const struct job *books_job_numbered(const struct books *b, uint32_t id);

/*
 * May a tenant have one more of what the node has `max` of, and `held[i]` is tenant i's? Each
 * tenant that there is has `own` that nobody else gets, so none keeps all others out.
 */
bool books_may_have(const struct books *b, const unsigned int held[TALLY_TENANTS_MAX],
		    unsigned int tenant, unsigned int own, unsigned int max);

/* -ENOSPC: with this job its tenant would have others' places for jobs, or for inner nodes. */
int books_share_check(const struct books *b, const struct job *j, struct why *why);

/*
 * Takes a job over, unless it fails. `j->id` is its number in the network, from 1 on: -EINVAL.
 * -EEXIST: name or number are taken, and another tenant's job is not named; -ENOSPC: more slots
 * than the tenant's quota has left, and it may not spill; or too many jobs; with the numbers. An
 * inner job borrows then.
 */
int books_job_add(struct books *b, struct job *j, struct why *why);

/*
 * The same for a job of an earlier agent's books: whatever it has, it keeps, also if it has only
 * the name of a tenant that is not there (0): then it is suspended.
 */
int books_job_restore(struct books *b, struct job *j, struct why *why);

/* Takes it out and frees it; or the caller has it again. */
void books_job_del(struct books *b, struct job *j);
void books_job_take(struct books *b, struct job *j);

/*
 * A number that no job has: `random`, or, if it is 0 or taken, the next one that is free. Jobs of
 * different agents have no number in common then, but by chance.
 */
uint32_t books_job_id(const struct books *b, uint32_t random);

/*
 * May its runs be summed in software? Software cannot tell which VLAN a message came by: not where
 * the tenant has an ingress point with one. It is the root of a job, and no inner node.
 */
bool books_may_spill(const struct books *b, const struct job *j);

/*
 * May its runs borrow slots, with software as their root? Sums of several ranks have no rank's key,
 * and a packet that a swap sends up comes in where another job's did, which ingress points would
 * refuse.
 */
bool books_may_borrow(const struct books *b, const struct job *j);

/*
 * -EBUSY, and why: the run that is on is in software, or on loan, which ends there, and a tenant
 * with these ingress points may have no such run.
 */
int books_run_check(const struct tenant *t, const struct job *j, struct why *why);

/* The same of all runs of the tenant at `index`, but for those that were so `before`. */
int books_runs_check(const struct books *b, unsigned int index, const struct tenant *before,
		     struct why *why);

/*
 * The window of a job's next run: a power of two, as large as the quota allows and at most what
 * was asked for. -ENOSPC: nothing is left, for now. A job that was over its quota and now is not,
 * is promised its slots.
 */
int books_run_window(const struct books *b, struct job *j, uint16_t *ret, struct why *why);

#endif
