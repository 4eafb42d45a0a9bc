/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What play.c (jobs) and play_network.c (what is left of the network) share. Pure. */
#ifndef TALLY_SIM_PLAY_PRIVATE_H
#define TALLY_SIM_PLAY_PRIVATE_H

#include "phases.h"
#include "play.h"

/* The network without what has failed. */
struct play_network {
	const struct topology *topology;
	unsigned int *failed_links; /* [links of the topology]: how many failures each is in */
	struct graph *graph; /* of the links that are left */
	struct reach *reach;
	uint32_t *origin; /* [graph->links]: their numbers in the topology */
	bool failed; /* something has */
};

int play_network_open(const struct topology *t, struct play_network *ret); /* -ENOMEM, -E2BIG */
void play_network_close(struct play_network *n);

/* A failure begins or ends. Who uses its links must be led anew. -ENOMEM. */
int play_network_fail(struct play_network *n, const struct workload_failure *f, bool begins);

/*
 * What a job with this tree uses, by links of the topology: the caller's to free().
 * -EHOSTUNREACH, -ENOMEM.
 */
int play_network_uses(const struct play_network *n, const struct place_job *job,
		      const struct place_tree *tree, const struct place_options *o,
		      struct fair_use **ret, unsigned int *ret_uses);

#endif
