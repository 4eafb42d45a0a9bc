/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What results.c and results_jobs.c share. Nobody else includes this. */
#ifndef TALLY_AGENT_RESULTS_PRIVATE_H
#define TALLY_AGENT_RESULTS_PRIVATE_H

#include "results.h"

json_t *results_number(uint64_t n);

/* `print`: address_print() or endpoint_print(). */
json_t *results_printed(void (*print)(const struct sockaddr_storage *, char *, size_t),
			const struct sockaddr_storage *address);

/* `seen`: tenants, a bit for each. */
/* Tenants of the cluster, of which `name` is one, or "": all. */
json_t *results_tenants_seen(const struct core *c, const struct sharing *s, const struct placing *p,
			     const char *name, uint64_t seen);

/* Null: routing has its packets' ways. */
json_t *results_ways(const struct shared_job *j, const struct steering *steering);

bool results_is_seen(uint64_t seen, unsigned int tenant);

/* Its index. Whoever may not see all of them does not hear which there are. */
int results_tenant_find(const struct books *b, const char *name, uint64_t seen, struct why *why);

/* NULL: there is no such job, and `why` says so. */
const struct job *results_job_find(const struct books *b, const char *name, uint64_t seen,
				   struct why *why);

/* "running", "forming". */
const char *results_job_state(const struct job *j);

/* Has its run slots of the pool? */
bool results_borrows(const struct books *b, const struct job *j);

/* Has its run no slots at this inner node, nor a pool? Then packets pass as they come. */
bool results_passes_on(const struct books *b, const struct job *j);

/* How many ranks come through this inner node; 0 at a root. */
unsigned int results_below(const struct job *j);

#endif
