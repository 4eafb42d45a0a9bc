/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Jobs of several nodes (docs/trees.md). The agent of a job's root knows the job's tree. When a run
 * begins there, it makes a document for each inner node: all that this node's agent must know of
 * the run. Pure.
 */
#ifndef TALLY_AGENT_TREE_H
#define TALLY_AGENT_TREE_H

#include "common/jobfile.h"
#include "common/keys.h"
#include "common/name.h"
#include "common/why.h"
#include "installation.h"

enum {
	TREE_NODES_MAX = INSTALLATION_VIAS_MAX, /* inner nodes of a job */
	TREE_ROOT = -1, /* the job's root, where a node of a tree is named by its index */
};

struct tree_node {
	char name[NAME_BYTES];
	struct sockaddr_storage address; /* its own, with TALLY_UDP_PORT: results come there */
	struct tally_set ranks; /* all that come through it */
};

/*
 * The inner nodes. One whose ranks are some of another's lies below that one; ranks in no node's
 * set come to the root as they are.
 */
struct tree {
	bool found; /* by the agents, which find it anew when routes change; else it was written */
	uint32_t generation; /* how often it was found anew */
	unsigned int nodes;
	struct tree_node node[TREE_NODES_MAX];
};

struct document_rank {
	uint16_t rank;
	struct sockaddr_storage address; /* where the worker receives */
};

/*
 * What one inner node is to do in one run. Its keys are secrets: of a job that has rank keys those
 * of all ranks that come through the node, in their order, and behind them that of nodes.
 */
struct document {
	char job[NAME_BYTES];
	char node[NAME_BYTES]; /* whose it is */
	struct sockaddr_storage address; /* of that node, with TALLY_UDP_PORT */
	struct sockaddr_storage root; /* the service address that workers send to */
	uint32_t id;
	uint64_t birth; /* of the job, by which a later one of its number is known; or 0 */
	uint16_t epoch;
	uint32_t generation; /* of the job's tree: a later one of the same run is to be followed */
	uint16_t window; /* of the run: a power of two, 1 .. TALLY_WINDOW_MAX */
	uint16_t payload_bytes;
	uint16_t workers; /* of the job, 1 .. TALLY_WORKERS_MAX */
	unsigned int ranks; /* right below the node */
	struct document_rank rank[TALLY_WORKERS_MAX];
	unsigned int nodes; /* right below it, with all ranks that come through them */
	struct tree_node below[TREE_NODES_MAX];
	unsigned int keys; /* 0: the job has none */
	struct tally_key key[TALLY_KEYS_MAX];
};

/* Of struct tree_node and struct document: in requests, documents and the state file. */
extern const struct keys tree_node_keys;
extern const struct keys document_keys;

/*
 * May this be the tree of a job with this service address? -EINVAL: a rank that the job has not;
 * names or addresses that are the same, or the root's; another address family; two nodes of which
 * neither lies below the other, and that have ranks in common; more than TALLY_LEVELS_MAX levels.
 */
int tree_check(const struct tree *t, unsigned int workers, const struct sockaddr_storage *service,
	       struct why *why);

/* Of a tree that somebody wrote. -EINVAL: to the root such an address is its own machine. */
int tree_addresses_check(const struct tree *t, struct why *why);

/* The nodes of `now` in the place of those that were found before: a later generation. */
void tree_follow(struct tree *t, const struct tree *now);

/* The same nodes, in whichever order? */
bool tree_is_equal(const struct tree *a, const struct tree *b);

/* What TREE_ROOT or inner node `index` has to do. */
void tree_role(const struct tree *t, int index, struct installation_role *ret);

/* Inner node `i`, and `of`, which may be TREE_ROOT. */
bool tree_is_right_below(const struct tree *t, unsigned int i, int of);

/* The index of the node with this address, or -ENOENT. */
int tree_at(const struct tree *t, const struct sockaddr_storage *address);

/* Would these two nodes have the same document, but for what is of the run, and its generation? */
bool tree_has_same(const struct tree *a, unsigned int node_a, const struct tree *b,
		   unsigned int node_b);

/* Its index, or -ENOENT with the names that there are. */
int tree_find(const struct tree *t, const char *name, struct why *why);

/* The document of inner node `index` for a run of `job`, with its keys if the run has some. */
void document_make(const struct tree *t, unsigned int index, const char *job, const struct run *run,
		   struct document *ret);

/*
 * Does it make sense? -EINVAL: no rank below the node, a rank that the job has not or that is
 * named twice, addresses of two families, a node that is its own root; a node at the address of
 * this one, of the root or of another; too few keys, or too many.
 */
int document_check(const struct document *d, struct why *why);

/*
 * And may a node take it? -EINVAL: a rank at the address of this node, of the root, or of another
 * child, or at the nodes' UDP port. Agents of before took such documents, and state files have
 * them.
 */
int document_check_ranks(const struct document *d, struct why *why);

/*
 * `own`: one more address of the node. -EINVAL: a child is there, and would get what the node hands
 * on to itself.
 */
int document_check_own(const struct document *d, const struct sockaddr_storage *own,
		       struct why *why);

bool document_is_equal(const struct document *a, const struct document *b);

/* Also with another generation: then the tree has changed elsewhere. */
bool document_says_same(const struct document *a, const struct document *b);

/* The run as far as the node has to know it, for installation_plan(); but for its keys. */
void document_run(const struct document *d, struct run *ret);
void document_run_keys(const struct document *d, struct run *run);
void document_role(const struct document *d, struct installation_role *ret);

#endif
