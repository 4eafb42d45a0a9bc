/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tree of a job on the network: the paths from its workers to its root, as routing has them
 * (ways.h), or else shortest ones. Pure.
 */
#ifndef TALLY_CLUSTER_BRANCHES_H
#define TALLY_CLUSTER_BRANCHES_H

#include "picture.h"

/* A machine of the tree. The root comes first, and each of the others behind the one that it sends
 * to, before that one's next. */
struct branch {
	unsigned int machine; /* of the drawing */
	unsigned int depth; /* cables from the root */
	unsigned int cable,
		end; /* towards the root: the cable's end[end] is this machine; not of the root */
	unsigned int workers; /* that are there */
};

/*
 * *ret is the caller's, to free(). Workers that the picture lacks, or that have no way to the
 * machine `root`, are left out. -ENOMEM.
 */
int branches_make(const struct picture *p, const struct drawing *d,
		  const struct sockaddr_storage *worker, unsigned int workers, unsigned int root,
		  struct branch **ret, unsigned int *ret_count);

#endif
