/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tallyctl trace: what becomes of single packets, for as long as somebody asks. */
#ifndef TALLY_AGENT_TRACING_H
#define TALLY_AGENT_TRACING_H

#include "agent/edge/stream.h"
#include "node.h"

struct tracer;

struct tracing {
	sd_event *loop;
	const struct node *node;
	const struct core *core;
	struct tracer *tracers; /* the rest begins as zero */
	struct dataplane_trace *trace;
	sd_event_source *io;
};

/* From now on the connection is told of packets, until tracing_end(). -ENOENT: no such job. */
int tracing_begin(struct tracing *g, struct stream *s, const struct request_filter *q,
		  struct why *why);
void tracing_end(struct tracing *g, struct stream *s);

#endif
