/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line of tally-sim. Pure. */
#ifndef TALLY_SIM_OPTIONS_H
#define TALLY_SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/policy/place.h"
#include "common/why.h"
#include "slots.h"

enum {
	SIM_OPTIONS_POLICIES_MAX = 16,
	SIM_OPTIONS_SIZES_MAX = 16, /* numbers of slots that are compared */
};

enum sim_options_verb {
	SIM_OPTIONS_RUN,
	SIM_OPTIONS_SLOTS,
	SIM_OPTIONS_POLICIES,
	SIM_OPTIONS_NETWORKS,
	SIM_OPTIONS_MODELS,
	SIM_OPTIONS_HELP,
	SIM_OPTIONS_VERSION,
};

/* Texts are those of the command line. */
struct sim_options {
	enum sim_options_verb verb;
	const char *network, *workload;
	const struct place_policy *policy[SIM_OPTIONS_POLICIES_MAX];
	unsigned int policies;
	struct place_options place;
	unsigned int near; /* 0: all */
	uint64_t seed;
	double background; /* of links between switches; below 1 */
	const struct slots_policy
		*slots_policy[SIM_OPTIONS_POLICIES_MAX]; /* of SIM_OPTIONS_SLOTS: */
	unsigned int slots_policies;
	uint32_t size[SIM_OPTIONS_SIZES_MAX];
	unsigned int sizes;
	double round_trip_us, spread_us;
	uint32_t window;
	bool moves, json, csv, progress;
	const char *agents; /* a file; NULL: none */
	const char *explain; /* the name of a job; NULL: none */
	const char *plot; /* a folder; NULL: none */
	const char *picture; /* a file; NULL: none */
};

/* Of main()'s. -EINVAL: `why` says what is wrong. */
int sim_options_parse(int words, const char *const *word, struct sim_options *ret, struct why *why);

/* For --help: all options, with what they do. */
extern const char SIM_OPTIONS_HELP_TEXT[];

#endif
