/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read this file first. A network that jobs are simulated on: the graph that policies see, and what
 * people call its machines. Pure.
 *
 * A network comes from a shape with numbers (shapes.c), such as "fat-tree:k=8,rate=100gbit", or
 * from a text in the testbed's format (testbed_file.c) or in GraphML (graphml.h). A cable is two
 * links, one behind the other: the first one leads from the machine that was named first.
 */
#ifndef TALLY_SIM_TOPOLOGY_H
#define TALLY_SIM_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/policy/graph.h"
#include "agent/policy/reach.h"
#include "common/why.h"

enum {
	TOPOLOGY_NAME_BYTES = 32, /* of a machine, with its end */
	TOPOLOGY_WORDS_BYTES = 256, /* of a shape and its numbers */
};

/* What holds where a network says nothing else. */
struct topology_defaults {
	double rate; /* bytes a second of each direction of a cable */
	uint32_t slots; /* of each node */
};

#define TOPOLOGY_DEFAULTS ((struct topology_defaults){ .rate = 1.25e9, .slots = 65536 })

struct topology {
	struct graph *graph;
	char (*name)[TOPOLOGY_NAME_BYTES]; /* [graph->machines] */
	uint32_t *host; /* [hosts]: the machines that are hosts, in their order */
	unsigned int hosts;
	struct reach_way *way; /* that packets take where nothing has failed; others are shortest */
	unsigned int *way_line; /* [ways]: where the text says it */
	unsigned int ways;
};

/*
 * The network that `words` describe, "SHAPE" or "SHAPE:KEY=VALUE,...". `why` names the shape, key
 * or number that is wrong, and what is allowed. *ret is the caller's to topology_free(), and
 * untouched on failure. -EINVAL, -ENOMEM.
 */
int topology_shape(const char *words, struct topology **ret, struct why *why);

/*
 * Do these words name a shape, and not a file? A file is known by a dot or a slash in its name,
 * unless a shape's name leads, as in fat-tree:rate=2.5gbit, which topology_shape() refuses.
 */
bool topology_is_shape(const char *words);

/* As topology_shape(), for a text in the testbed's format (scripts/testbed); `why` begins with the
 * line. */
int topology_testbed(const char *text, size_t length, const struct topology_defaults *defaults,
		     struct topology **ret, struct why *why);

/*
 * Do ways lead where they say? How many circles and dead ends there are; `why` says of the first
 * one in the text which line leads there. Packets take shortest paths where ways lead round, or to
 * a host that is not theirs (reach.h), so that is no error: a network that is alive may look so
 * while its routes change. -ENOMEM.
 */
int topology_astray(const struct topology *t, struct why *why);

void topology_free(struct topology *t); /* or NULL */
static inline void topology_freep(struct topology **t) { topology_free(*t); }

/* May no machine have this name? Workloads say root=any and root=none. */
bool topology_is_word(const char *name);

/* Its number, or GRAPH_NONE. */
uint32_t topology_machine(const struct topology *t, const char *name);

/* For people: each shape on a line, with its keys, what they may be and are by default. */
const char *topology_help(char *text, size_t size);

/*
 * As tc writes rates: a number, k, m, g or t, perhaps with i behind it, and bit, or bps for bytes,
 * such as 10gbit. *ret in bytes a second. False: it is none, or 0, or above 10^15 bit.
 */
bool topology_rate(const char *text, double *ret);

#endif
