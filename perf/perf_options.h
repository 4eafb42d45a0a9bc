/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tally-perf's command line, and how it comes into its job. */
#ifndef TALLY_PERF_OPTIONS_H
#define TALLY_PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/tally.h>

#include "perf_data.h"

enum {
	EXIT_USAGE = 2,
	PERF_CALLS_MAX = 10 * 1000 * 1000, /* timed, of one size */
};

enum perf_verb {
	PERF_ALLREDUCE,
	PERF_REDUCE,
	PERF_BROADCAST,
	PERF_REDUCE_SCATTER,
	PERF_ALL_GATHER,
	PERF_BARRIER,
	PERF_VERBS,
};

extern const char *const perf_verb_names[PERF_VERBS];
extern const char *const perf_type_names[], *const perf_op_names[]; /* from 1 on */

struct perf_options {
	const char *job; /* the file, or one for each root; NULL: joins through an agent */
	const char *join, *agent; /* the job's name and its agent; NULL: as libtally finds them */
	const char *token_file; /* the same */
	const char *other_agents; /* of the same cluster, as libtally takes them */
	const char *spin; /* as libtally takes it; NULL: as it finds it */
	const char *shares; /* of several roots; NULL: as libtally finds them, or equal ones */
	bool joins, ranked; /* --join, --rank were given */
	enum perf_verb verb;
	enum tally_op op;
	uint16_t rank, root;
	size_t begin, end, factor; /* sizes in bytes, each the factor times the one before */
	unsigned int iterations, warmups;
	unsigned int seconds; /* for each size, in rounds of `iterations`; 0: one round */
	uint32_t timeout_ms, late_rank_timeout_ms, join_timeout_ms; /* 0: the library's */
	enum tally_congestion congestion;
	uint16_t progress_threads; /* 0: progress is made by calls */
	struct tally_hints hints; /* for all calls */
	struct perf_data data; /* of no iteration yet */
	bool in_place, unchecked, json, hash, all_ranks, float_wild, int_wild;
};

/* Ends the process when something is wrong with the arguments, or --help asked for. */
void perf_options_read(int argc, char **argv, struct perf_options *ret);

/* Comes into the job, or ends the process. Fills in the rank if there was none. */
struct tally *perf_job_open(struct perf_options *o);

#endif
