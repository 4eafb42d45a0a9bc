/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The data plane of the node: taken over when the agent starts, changed when it is told to. */
#ifndef TALLY_AGENT_NODE_H
#define TALLY_AGENT_NODE_H

#include "agent/core/core.h"
#include "agent/dataplane/dataplane.h"
#include "agent/edge/netlink.h"

struct node {
	char pin[CONFIG_PATH_BYTES]; /* "": not claimed */
	struct netlink *netlink;
	struct dataplane *dataplane; /* NULL: none; another one after a node_adopt() */
	bool stale; /* others have replaced what `dataplane` has open: it is opened anew first */
	bool fresh; /* made by this agent, not found */
	bool outdated; /* what was found has another layout */
	struct dataplane_port *wanted; /* found; after attaching also why they are not native */
	unsigned int wanted_count;
};

/*
 * Claims the node and reads the books of the last agent into `books`; then takes the node over
 * that is there with all its jobs, or makes a new one. On failure node_abandon() makes it as it
 * was.
 */
int node_open(struct node *n, struct netlink *netlink, const struct config *config,
	      struct books *books, struct why *why);
void node_abandon(struct node *n, const struct config *config);

/*
 * The configuration's tenants, and what the last agent's file has, into books that are empty; what
 * stands in the way, and what to do. -ENOENT: there is no such file. After an error the caller
 * clears the books.
 */
int node_books_read(struct books *b, const struct config *config, struct why *why);
void node_close(struct node *n, bool detach);

/*
 * The ports that a configuration names, as far as they are there; then programs, slots and ports as
 * it says.
 */
int node_find_ports(struct node *n, const struct config *config, struct why *why);
int node_adopt(struct node *n, const struct config *config, const struct books *b, struct why *why);

/* -ENOSPC: a run has slots that the node is not to have any more; which, and what to do. */
int node_slots_check(struct dataplane *d, const struct config *config, const struct books *b,
		     struct why *why);

/*
 * What the kernel has of what a configuration wants: its ports, in order, *ret to be freed; what
 * else is missing, in `ret_missing`, or "". Then: all put back that can be.
 */
int node_look(struct node *n, const struct config *config, struct dataplane_port **ret,
	      struct why *ret_missing, struct why *why);
int node_mend(struct node *n, const struct config *config, struct why *why);

/* All ports that are wanted, in order; of those that are attached, how. *ret is to be freed. */
int node_ports(const struct node *n, struct dataplane_port **ret, unsigned int *ret_count,
	       struct why *why);

/* Ports whose other end loses results, to the log; as far as this process may look there. */
void node_peers_report(const struct core *c);

/* Ports and their modes, to the log. */
void node_report(const struct core *c);

#endif
