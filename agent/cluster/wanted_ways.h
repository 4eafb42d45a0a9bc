/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ways that the packets of a job's workers shall take to its root, as a value of the store
 * (docs/cluster.md). Where there is none, they take those that routing has. Printed and parsed by
 * wanted_print() and wanted_parse(). Pure.
 */
#ifndef TALLY_CLUSTER_WANTED_WAYS_H
#define TALLY_CLUSTER_WANTED_WAYS_H

#include "wanted.h"

#define WANTED_WAYS "ways/" /* JOB */

enum {
	WANTED_WAYS_MAX = 64,
	WANTED_WAY_NODES_MAX = 16,
	WANTED_WAY_SUMS_MAX = 64,
};

struct wanted_way {
	struct sockaddr_storage worker; /* its address, with TALLY_UDP_PORT */
	unsigned int nodes;
	char node[WANTED_WAY_NODES_MAX][NAME_BYTES]; /* first the node next to the worker, last
						      * the root */
};

/* Large: on the heap. */
struct wanted_ways {
	uint64_t birth; /* of the job */
	char root[NAME_BYTES]; /* the node */
	struct sockaddr_storage address; /* its service address, which workers send to */
	char why[WANTED_WHY_BYTES]; /* in words */
	bool found; /* by the leader, who gives them up; those of others it leaves alone */
	unsigned int sums, ways;
	char sum[WANTED_WAY_SUMS_MAX][NAME_BYTES]; /* nodes that sum on the way */
	struct wanted_way way[WANTED_WAYS_MAX];
};

extern const struct keys wanted_ways_keys;

/* The place of `node` on the way; -1: it is not on it. */
int wanted_way_place(const struct wanted_way *w, const char *node);

bool wanted_ways_sum_at(const struct wanted_ways *w, const char *node);

/*
 * Do they make sense? -EINVAL: a way that does not end at the root, or is at a node twice; two ways
 * of one worker; a worker of another address family than the root; a node that sums, and is on no
 * way, or is the root; a way with more such nodes than a tree may have levels; two ways that pass
 * one node that sums, and part behind it.
 */
int wanted_ways_check(const struct wanted_ways *w, struct why *why);

#endif
