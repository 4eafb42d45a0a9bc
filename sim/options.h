/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line of tally-sim. Pure. */
#ifndef TALLY_SIM_OPTIONS_H
#define TALLY_SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/policy/place.h"
#include "common/why.h"

enum {
	OPTIONS_POLICIES_MAX = 16,
};

enum options_verb {
	OPTIONS_RUN,
	OPTIONS_POLICIES,
	OPTIONS_NETWORKS,
	OPTIONS_MODELS,
	OPTIONS_HELP,
};

/* Texts are those of the command line. */
struct options {
	enum options_verb verb;
	const char *network, *workload;
	const struct place_policy *policy[OPTIONS_POLICIES_MAX];
	unsigned int policies;
	struct place_options place;
	unsigned int near; /* 0: all */
	uint64_t seed;
	bool moves, json, csv, progress;
	const char *explain; /* the name of a job; NULL: none */
	const char *plot; /* a folder; NULL: none */
	const char *picture; /* a file; NULL: none */
};

/* Of main()'s. -EINVAL: `why` says what is wrong. */
int options_parse(int words, const char *const *word, struct options *ret, struct why *why);

/* For --help: all options, with what they do. */
extern const char OPTIONS_HELP_TEXT[];

#endif
