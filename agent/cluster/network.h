/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The picture as policies see it: a graph with capacities and loads, and the paths that routing
 * has. Machines have the numbers of the drawing; cable c is links 2c, from its first end, and
 * 2c + 1. Pure.
 */
#ifndef TALLY_CLUSTER_NETWORK_H
#define TALLY_CLUSTER_NETWORK_H

#include "agent/policy/reach.h"
#include "picture.h"

struct network {
	const struct picture *picture; /* the caller's; it must stay */
	struct drawing drawing;
	struct graph *graph; /* loads are those that are forecast */
	struct reach *reach;
};

/* *ret is the caller's, for network_close(), which allows zeros. -ENOMEM, -E2BIG. */
int network_make(const struct picture *p, struct network *ret);
void network_close(struct network *n);

/* The machine that is the node of this name; GRAPH_NONE: it has not reported. */
uint32_t network_node(const struct network *n, const char *node);

/* The machine where a worker receives at this address; GRAPH_NONE: the picture lacks it. */
uint32_t network_worker(const struct network *n, const struct sockaddr_storage *address);

#endif
