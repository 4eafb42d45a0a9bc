/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tree of a job on the network: the paths from its workers to its root, as the leader weighs
 * them. Pure. */
#ifndef TALLY_CLUSTER_BRANCHES_H
#define TALLY_CLUSTER_BRANCHES_H

#include "network.h"

/* A machine of the tree. The root comes first, and each of the others behind the one that it sends
 * to, before that one's next. */
struct branch {
	uint32_t machine;
	unsigned int depth; /* links from the root */
	uint32_t link; /* towards the root; of the root GRAPH_NONE */
	unsigned int workers; /* that are there */
};

/*
 * *ret is the caller's, to free(). Workers that the picture lacks, or that have no way to the
 * machine `root`, are left out. Where paths part after they have met, the first one is drawn.
 * -ENOMEM.
 */
int branches_make(const struct network *n, const struct sockaddr_storage *worker,
		  unsigned int workers, uint32_t root, struct branch **ret,
		  unsigned int *ret_count);

#endif
