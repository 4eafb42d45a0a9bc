/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The streams of one job in the picture, for placer_ways.c. Nobody else includes this. */
#ifndef TALLY_CLUSTER_PLACER_STREAMS_H
#define TALLY_CLUSTER_PLACER_STREAMS_H

#include "agent/policy/merge.h"
#include "placer_private.h"

/* Workers at one address are one place: their packets go one way. */
struct placer_streams {
	const struct network *network;
	const struct placer_job *job;
	uint32_t root;
	unsigned int places;
	struct sockaddr_storage *address; /* [places], with TALLY_UDP_PORT */
	uint32_t *worker; /* [places]: machines */
	unsigned int *streams; /* [places] */
	struct graph_path *lead; /* [places]: to the first node, which may be the root */
	struct graph_path *way; /* [places]: that are taken now */
	bool *sums; /* [machines]: where streams are summed on these */
	uint32_t *back; /* [links]: the other way */
};

/*
 * For placer_streams_close(), also on failure. Ways are routing's. -EHOSTUNREACH, and why: no root,
 * or a worker that is not in the picture or has no way to it; -E2BIG: more than TALLY_WORKERS_MAX
 * workers; -ENOMEM.
 */
int placer_streams_open(const struct network *n, const struct placer_job *j,
			struct placer_streams *ret, struct why *why);
void placer_streams_close(struct placer_streams *s);

/* These ways instead of routing's. -EHOSTUNREACH: they are not there, and why; then nothing
 * changes but that; -ENOMEM. */
int placer_streams_by(struct placer_streams *s, const struct wanted_ways *ways, struct why *why);

/* The ways that its packets take: the job's; where it has none, or they are not there any more,
 * routing's. -ENOMEM. */
int placer_streams_now(struct placer_streams *s);

/* As policies want them, on this graph; they stay the streams' own. */
struct merge_problem placer_streams_problem(const struct placer_streams *s, const struct graph *g);

/* The node of a machine; NULL: it is none. */
const struct report *placer_streams_node(const struct placer_streams *s, uint32_t machine);

#endif
