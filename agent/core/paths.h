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

/* What is known of the paths of a job's run at one time. */
struct paths {
	const struct paths_view *root;
	unsigned int workers, peers;
	const struct sockaddr_storage *worker; /* where they are, by rank */
	const struct config_peer *peer;
	const struct paths_view *view[CONFIG_PEERS_MAX]; /* what peer i says; NULL: no answer */
	bool silent[CONFIG_PEERS_MAX]; /* no answer, but a view that paths_silent() has made */
};

enum {
	PATHS_NOWHERE = -2, /* on no path */
	PATHS_DISPUTES_MAX = 8,
};

/* Who lies on the paths, by peer. Also nodes that add nothing up, and so are not in the tree. */
struct paths_walk {
	int above[CONFIG_PEERS_MAX]; /* whom paths come from: a peer, TREE_ROOT or PATHS_NOWHERE */
	struct tally_set ranks[CONFIG_PEERS_MAX]; /* whose paths go through the peer */
	unsigned int disputes;
	struct sockaddr_storage dispute[PATHS_DISPUTES_MAX]; /* next addresses: see below */
};

/*
 * The inner nodes of the job: those peers that lie on the paths, each with the ranks whose path
 * goes through it. A peer gets the keys of these ranks, so what it says of its addresses is not
 * simply believed: an address of a worker or of the root is no peer's, one that the configuration
 * has of a peer is no other one's, and a peer with `also` has no address besides. A path ends where
 * the next address is no peer's, or that of several; where it
 * comes to a node twice; and where it comes to a node from elsewhere than another path does. A node
 * that would have nothing to add up (one rank, or one inner node and no rank besides) is left out.
 */
void paths_tree(const struct paths *p, struct paths_walk *ret_walk, struct tree *ret);

/*
 * Appends who says that an address on the paths is its own, where several say so, or the address is
 * not theirs. `size` is that of `text`, with the end.
 */
void paths_disputes_say(const struct paths *p, const struct paths_walk *walk, char *text,
			size_t size);

/*
 * The view of a peer that does not answer: paths go on from there as they did, and its addresses
 * are those that it had.
 */
void paths_silent(const struct paths_walk *was, const struct config_peer *peer, unsigned int peers,
		  unsigned int index, const struct sockaddr_storage *own, unsigned int owns,
		  struct paths_view *ret);

/*
 * As paths_tree(), after the tree that was. Nobody can tell a silent node what else to do: one that
 * would have something else to do is left out, and has no view in `p` any more.
 */
void paths_tree_after(struct paths *p, const struct tree *was, struct paths_walk *ret_walk,
		      struct tree *ret);

#endif
