/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What happens in a network: jobs that come, and links and nodes that fail, from a text that people
 * write. Pure.
 *
 * A line is `job NAME KEY=VALUE...` (one job), `jobs NAME KEY=VALUE...` (many, by chance),
 * `fail MACHINE KEY=VALUE...`, `fail MACHINE MACHINE KEY=VALUE...` (a machine; the cables between
 * two), or `failures links|nodes KEY=VALUE...` (by chance). # begins a remark. docs/simulator.md
 * has the keys. Names of jobs are unique. The same text, network and seed make the same jobs,
 * whatever else a run does.
 */
#ifndef TALLY_SIM_WORKLOAD_H
#define TALLY_SIM_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "common/keys.h"
#include "common/why.h"
#include "draw.h"
#include "topology.h"

enum {
	WORKLOAD_BYTES_MAX = 16 << 20, /* of a text */
	WORKLOAD_NAME_BYTES = 32, /* of a job, with its end and perhaps .NUMBER */
	WORKLOAD_JOBS_MAX = 1 << 16,
	WORKLOAD_WORKERS_MAX = 256, /* of a job */
	WORKLOAD_FAILURES_MAX = 1 << 16,
	WORKLOAD_TENANTS_MAX = 1 << 16,
};

struct workload_job {
	char name[WORKLOAD_NAME_BYTES];
	uint32_t *worker; /* [workers]: machines */
	unsigned int workers;
	uint32_t root; /* makes the results; GRAPH_NONE: the top of its tree does */
	double arrives_s, compute_s; /* compute_s: of an iteration */
	double bytes; /* of a gradient: what each worker sends in an iteration */
	double weight; /* of its share of a link */
	uint32_t iterations, tenant, slots;
	unsigned int number; /* in the order of the text */
};

/* From at_s on, for for_s seconds; one of the two is GRAPH_NONE. */
struct workload_failure {
	uint32_t machine;
	uint32_t link; /* and the other direction of the cable, link ^ 1 */
	double at_s, for_s;
	unsigned int number; /* in the order of the text */
};

struct workload {
	struct workload_job *job; /* by arrival */
	struct workload_failure *failure; /* by time */
	unsigned int jobs, failures;
};

/*
 * `name` is the file's, for `why`, which says "FILE:LINE: what is wrong". *ret is the caller's to
 * workload_free(), and untouched on failure. -EINVAL, -ENOMEM, -E2BIG: too many jobs.
 */
int workload_parse(const char *name, const char *text, size_t length, const struct topology *t,
		   uint64_t seed, struct workload **ret, struct why *why);
void workload_free(struct workload *w); /* or NULL */
static inline void workload_freep(struct workload **w) { workload_free(*w); }

/* For documents (tools/keys.c). */
extern const struct keys workload_job_keys, workload_jobs_keys, workload_fail_keys,
	workload_failures_keys;

#endif
