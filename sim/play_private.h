/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What play.c (what happens), play_flows.c (what jobs use) and play_network.c (what is left of the
 * network) share. Pure.
 */
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

/* A failure that begins or ends. */
struct change {
	double at_s;
	uint32_t failure;
	bool begins;
};

/* A job, while it runs. */
struct player {
	struct fair_use *use; /* that `phases` has of it */
	unsigned int uses;
	bool runs, is_begun; /* is_begun: `phases` has it */
	bool stands; /* it has no way */
	bool is_placed; /* its tree counts; else the next decision finds one */
};

struct play {
	const struct topology *topology;
	const struct workload *workload;
	const struct play_options *o;
	struct why *why;
	struct play_network network;
	struct phases *phases;
	struct player *player; /* [jobs] */
	struct change *change; /* [changes]: by time */
	unsigned int changes;
	uint32_t *running; /* jobs in the order of their numbers: what policies are asked about, */
	struct place_job *asked; /* in their words, */
	struct place_tree *tree; /* and what they say */
	bool *without; /* of these: whose tree had no room */
	unsigned int runs, ended;
	struct play_result *result;
};

/* In the words of policies, with the tree that it has now. */
struct place_job play_asked(const struct play *p, uint32_t i);

/* To the agents of its tree, after those of another one, if there are any. -ENOMEM. */
int play_bring(struct play *p, uint32_t i);

/* A job has its first tree, and begins. -EINVAL, -ENOMEM. */
int play_begin(struct play *p, uint32_t i);

/* The links of a job as its tree and the network are now; moved: it stands still meanwhile. */
int play_lead(struct play *p, uint32_t i, bool moved);

#endif
