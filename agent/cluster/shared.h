/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All that is wanted of a cluster, as the store's keys say it (wanted.h): tenants, jobs, where they
 * are placed, who waits for that, which nodes have refused, and which ways packets shall take. A
 * mirror by names. Pure.
 */
#ifndef TALLY_CLUSTER_SHARED_H
#define TALLY_CLUSTER_SHARED_H

#include <tally/maps.h>

#include "agent/core/tenant_keys.h"
#include "wanted_ways.h"

enum {
	SHARED_JOBS_MAX = 1024,
	SHARED_TENANTS_MAX = TALLY_TENANTS_MAX, /* no node can have more */
	SHARED_KEY_BYTES = 256, /* of the store */
	SHARED_WHY_BYTES = 512,
};

struct shared_worker {
	char id[NAME_BYTES + 24]; /* NODE/NUMBER */
	struct wanted_worker is;
};

struct shared_refusal {
	char node[NAME_BYTES];
	char why[SHARED_WHY_BYTES]; /* in printable words */
};

struct shared_job {
	char name[NAME_BYTES];
	uint64_t revision; /* of the job's key; 0: the job is not wanted (any more) */
	struct wanted_job job;
	uint64_t place_revision; /* the same of its place */
	struct wanted_place place;
	uint64_t ways_revision; /* the same of its ways */
	struct wanted_ways *ways; /* NULL: those that routing has; see shared_ways() */
	unsigned int workers, refusals;
	struct shared_worker *worker; /* who waits */
	struct shared_refusal *refusal; /* of each node one */
};

struct shared_tenant {
	struct wanted_tenant wanted;
	uint64_t revision; /* of its key */
};

/* Zeros: nothing is wanted. For shared_close(). */
struct shared {
	struct shared_job **job; /* by name */
	unsigned int jobs;
	struct shared_tenant tenant[SHARED_TENANTS_MAX]; /* by name */
	unsigned int tenants;
};

void shared_close(struct shared *s);

/*
 * A key has this value, or NULL: it is not there. Keys of other things are left alone. -EINVAL: it
 * is not understood, and why: then it is as if it was not there; -E2BIG: more jobs than
 * SHARED_JOBS_MAX, or tenants than SHARED_TENANTS_MAX; -ENOMEM.
 */
int shared_take(struct shared *s, const char *key, const char *value, uint64_t revision,
		struct why *why);

/* That is wanted; or NULL. */
const struct shared_job *shared_find(const struct shared *s, const char *name);

/* Of a job with several roots: the job at root `which` (1 ..), which is wanted; or NULL. */
const struct shared_job *shared_root(const struct shared *s, const struct shared_job *j,
				     unsigned int which);

/* NULL: the cluster has no such tenant. */
const struct shared_tenant *shared_tenant_find(const struct shared *s, const char *name);

/* A job of the tenant that is wanted; NULL: there is none. */
const struct shared_job *shared_tenant_job(const struct shared *s, const char *name);

/* Has it a place, and is that this job's, and not that of an earlier one of its name? */
bool shared_is_placed(const struct shared_job *j);

/* The ways that its packets shall take to the root that it has; NULL: those that routing has. */
const struct wanted_ways *shared_ways(const struct shared_job *j);

#endif
