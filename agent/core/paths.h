/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tree of a job as routing has it (docs/trees.md). The root's agent and those of other nodes
 * say where each of them sends a packet to each worker next; whose address that is says which node
 * comes next, and so on. Pure.
 */
#ifndef TALLY_AGENT_PATHS_H
#define TALLY_AGENT_PATHS_H

#include "config.h"
#include "tree.h"

enum {
	PATHS_OWN_MAX = 128, /* addresses of a node */
};

/* Packets to these ranks go to this address next, unless it is the worker's own. */
struct paths_hop {
	struct sockaddr_storage address;
	struct tally_set ranks;
};

/* What a node's agent says. */
struct paths_view {
	unsigned int owns;
	struct sockaddr_storage own[PATHS_OWN_MAX]; /* the node's addresses; ports mean nothing */
	unsigned int hops;
	struct paths_hop hop[TALLY_WORKERS_MAX];
};

/* What it is asked: next hops to workers, by rank. */
struct paths_question {
	unsigned int workers;
	struct sockaddr_storage worker[TALLY_WORKERS_MAX];
};

extern const struct keys paths_question_keys;
extern const struct keys paths_view_keys;

/* A worker's next hop: into `v`, with the others that have the same. */
void paths_hop_add(struct paths_view *v, unsigned int rank, const struct sockaddr_storage *next);

/*
 * The inner nodes of a job of `workers` ranks: those of `peer` that lie on the paths, each with the
 * ranks whose path goes through it. `view[i]` is what peer i says, or NULL: it did not answer. A
 * path ends where the next address is no peer's, or that of several; where it comes to a node
 * twice; and where it comes to a node from elsewhere than another path does. A node that would have
 * nothing to add up (one rank, or one inner node and no rank besides) is left out.
 */
void paths_tree(const struct paths_view *root, const struct config_peer *peer,
		struct paths_view *const *view, unsigned int peers, unsigned int workers,
		struct tree *ret);

#endif
