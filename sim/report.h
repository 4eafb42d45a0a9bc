/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What came of a simulation, for people and for programs. */
#ifndef TALLY_SIM_REPORT_H
#define TALLY_SIM_REPORT_H

#include <stdio.h>

#include "play.h"

enum {
	REPORT_JOBS_MAX = 50, /* of a text for people; programs get all */
	REPORT_NAME_BYTES = 80, /* of a link, with its end */
};

struct report {
	const char *network, *workload; /* as they were given */
	const struct topology *topology;
	const struct workload *jobs;
	uint64_t seed;
	const char *agents; /* the file of their configuration; NULL: there are none */
	struct play_result *const *result; /* [results]: one for each policy */
	const struct play_figures *figures; /* [results] */
	unsigned int results;
};

/* A row for each figure, a column for each policy; then the jobs, if there are not too many. */
void report_text(const struct report *r, FILE *to);

/* One object: network, policies with figures, jobs and links. docs/simulator.md has the keys. */
void report_json(const struct report *r, FILE *to);

/* A header, and a line for each policy and job. */
void report_csv(const struct report *r, FILE *to);

/* Why job `job` lies where each policy has placed it. */
void report_explain(const struct report *r, uint32_t job, FILE *to);

/* "FROM > TO"; `ret` is also returned. */
const char *report_link(const struct topology *t, uint32_t link, char ret[REPORT_NAME_BYTES]);

#endif
