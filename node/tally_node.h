/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tally-node's commands. Each returns 0, or a negative errno with the reason in `why`. */
#ifndef TALLY_AGENT_TALLY_NODE_H
#define TALLY_AGENT_TALLY_NODE_H

#include "agent/core/installation.h"
#include "agent/dataplane/dataplane.h"

/* The command line, checked. */
struct command_line {
	const char *pin;
	enum dataplane_mode mode;
	uint32_t slots; /* 0: not given */
	struct tally_pool pool;
	bool has_pool; /* given */
	bool borrows;
	bool borrow_any; /* slots of the pool, by a hash */
	uint32_t borrow_base; /* otherwise: of the job's range there */
	size_t memory; /* bytes */
	unsigned int threads;
	bool replace;
	bool share;
	bool json;
	bool all;
	struct installation_role role;
	char **arguments;
	int count;
};

/* ports.c */
int node_attach(const struct command_line *q, struct why *why);
int node_detach(const struct command_line *q, struct why *why);
int node_stats(const struct command_line *q, struct why *why);

/* jobs.c */
int job_add(const struct command_line *q, struct why *why);
int job_del(const struct command_line *q, struct why *why);
int job_list(const struct command_line *q, struct why *why);

/* spill.c */
int node_spill(const struct command_line *q, struct why *why);

#endif
