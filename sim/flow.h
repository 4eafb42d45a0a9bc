/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a job uses of which link, so that its rate can be found (agent/policy/fair.h). Pure.
 *
 * Where a node sums, each worker sends to the node, the node sends one sum to the root, and the
 * root one result to the node, which has a copy for each worker. Where nobody sums, each worker
 * sends to the root, and the root sends each one a result. Copies that take the same link are
 * counted each.
 */
#ifndef TALLY_SIM_FLOW_H
#define TALLY_SIM_FLOW_H

#include <stdint.h>

#include "agent/policy/fair.h"
#include "agent/policy/graph.h"

struct flow_job {
	const uint32_t *worker; /* [workers]: machines */
	unsigned int workers;
	uint32_t root; /* makes the results */
	uint32_t node; /* sums on the way; GRAPH_NONE: nobody does */
	uint64_t seed; /* of the paths */
};

/*
 * The uses of a job, each link once, by number; *ret is the caller's to free(). Each message takes
 * one of the shortest paths, drawn link by link, as routers spread flows over equal paths; the same
 * seed draws the same. -EINVAL: a machine that is not there; -EHOSTUNREACH: no way; -ENOMEM.
 */
int flow_make(const struct graph *g, const struct flow_job *job, struct fair_use **ret,
	      unsigned int *ret_uses);

#endif
