// SPDX-License-Identifier: GPL-2.0-only
/* sources: sim/sim_options.c sim/draw.c agent/policy/[a-z]*.c sim/slots_check.c */
/* libraries: -lglpk -lm */
/* Command lines of tally-sim, a word between two bytes 0. */
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "sim/sim_options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	WORDS_MAX = 32,
};

static void must(bool is_right)
{
	if (!is_right)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *text = calloc(1, size + 1);
	const char *word[WORDS_MAX] = { "tally-sim" };
	struct why why = { "" };
	struct sim_options o;
	int words = 1;

	must(text != NULL);
	if (size)
		memcpy(text, data, size);
	for (size_t at = 0; at < size && words < WORDS_MAX; at += strlen(text + at) + 1)
		word[words++] = text + at;
	if (sim_options_parse(words, word, &o, &why) != 0) {
		must(*why.text != '\0');
		return 0;
	}
	must(o.policies <= SIM_OPTIONS_POLICIES_MAX && o.verb <= SIM_OPTIONS_VERSION);
	must(o.verb != SIM_OPTIONS_RUN || (o.network && o.workload && o.policies > 0));
	must(o.place.nodes_max > 0 && o.place.jobs_max > 0 && o.place.tree_max <= PLACE_NODES_MAX);
	return 0;
}
