/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the reader of workloads (workload.c), its tables (workload_keys.c) and its generators
 * (workload_make.c) share. Pure. */
#ifndef TALLY_SIM_WORKLOAD_PRIVATE_H
#define TALLY_SIM_WORKLOAD_PRIVATE_H

#include "workload.h"

enum {
	WORKLOAD_MIX_MAX = 16, /* models of a mix */
	WORKLOAD_LINE_MAX = 8192,
};

enum workload_hosts {
	HOSTS_ANY,
	HOSTS_NEAR
};

/* A mix: each model with its weight. */
struct workload_mix {
	uint8_t model[WORKLOAD_MIX_MAX];
	double weight[WORKLOAD_MIX_MAX];
	unsigned int models;
};

/* What a line `job` or `jobs` says. */
struct workload_line {
	char name[WORKLOAD_NAME_BYTES];
	struct workload_mix mix;
	struct draw bytes, compute, iterations, workers, slots;
	double arrives_s, every_s, weight;
	uint32_t count, tenant, tenants;
	unsigned int hosts; /* enum workload_hosts */
	/* Of machines, as machines: */
	uint32_t worker[WORKLOAD_WORKERS_MAX];
	unsigned int named; /* in `worker` */
	uint32_t root; /* GRAPH_NONE: none */
	bool any_root; /* a host by chance, which is no worker of the job */
};

struct workload_failure_line {
	struct draw for_s;
	double at_s, every_s, until_s;
};

struct workload_name;

/* The root of a reading: where names of machines are looked up. */
struct workload_reader {
	struct reading reading;
	struct workload_line *line;
	const struct topology *topology;
	struct workload_name *names; /* of machines: sorted, as many as there are */
	void *claims; /* names of jobs: tree of struct claim (workload.c) */
	unsigned int failures_lines; /* up to now: two of them draw other failures */
	struct workload *workload;
	size_t job_room, failure_room;
	uint64_t seed;
};

/* GRAPH_NONE: there is none. */
uint32_t workload_machine(const struct workload_reader *r, const char *name);

/* Of job i of a line. */
void workload_job_name(const struct workload_line *line, bool is_one, uint32_t i,
		       char ret[WORKLOAD_NAME_BYTES]);

/* Jobs of a line, from job `jobs` on. -ENOMEM, -E2BIG, -ENOENT: fewer hosts than workers. */
int workload_make_jobs(struct workload_reader *r, const struct workload_line *line, bool is_one,
		       uint64_t *random);
int workload_make_failures(struct workload_reader *r, const struct workload_failure_line *line,
			   bool of_links, uint64_t *random);
int workload_add_failure(struct workload_reader *r, const struct workload_failure *f);

#endif
