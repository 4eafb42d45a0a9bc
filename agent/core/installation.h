/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A job on one node, from what people say to what stands in the maps. Pure. Two steps:
 * installation_plan() says which copies of a result leave the node and to whom; the caller finds
 * the next hop of each; installation_address() makes the map entries of its copies. Where the job's
 * slots, group and children lie, tables.h decides.
 */
#ifndef TALLY_AGENT_INSTALLATION_H
#define TALLY_AGENT_INSTALLATION_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <tally/maps.h>

#include "common/jobfile.h"
#include "common/why.h"

enum {
	INSTALLATION_VIAS_MAX = 64, /* child nodes of a job on one node */
	INSTALLATION_BASE_ANY = -1, /* slot_base: wherever */
	HOP_WAIT_MS = 1000, /* a neighbour that is up answers within this time */
};

/* These ranks come, summed up, from a child node: one copy for all goes to its address. */
struct installation_via {
	struct tally_set ranks;
	struct sockaddr_storage address;
};

struct installation_role {
	bool root;
	struct sockaddr_storage address; /* of this node, an inner one; family 0: nobody says */
	struct tally_set below; /* ranks that come through this node; the root's are everyone */
	unsigned int vias;
	struct installation_via via[INSTALLATION_VIAS_MAX];
};

/* Where frames to an address leave this node, and to which neighbour. */
struct hop {
	uint32_t port; /* ifindex */
	char port_name[IF_NAMESIZE];
	uint32_t mtu;
	uint8_t mac[6]; /* of the neighbour */
	uint8_t port_mac[6];
	/* Of this machine, on the link to the address; IPv4: the first four. 0: behind a gateway.
	 */
	uint8_t source[16];
};

/* One copy of a result. */
struct installation_copy {
	struct tally_set below; /* who gets it: a rank, or all ranks below a child node */
	uint16_t key; /* of the tag, by number: that of the rank, or that of nodes */
	struct sockaddr_storage address;
	struct hop
		hop; /* the caller's part, between installation_plan() and installation_address() */
	struct tally_child child; /* without row and port */
};

struct installation {
	uint32_t id; /* the job's */
	bool anew; /* its run may be there already: what is below the node has changed */
	struct tally_job job;
	struct sockaddr_storage address; /* as in the role */
	struct tally_key key[TALLY_KEYS_MAX]; /* by number, if the job is keyed; secrets */
	bool node_key; /* key[TALLY_NODE_KEY] is one */
	unsigned int copies; /* 1 .. TALLY_WORKERS_MAX */
	struct installation_copy copy[TALLY_WORKERS_MAX];
};

/*
 * The job and its copies, in the order of their lowest ranks, without hops, keys, slots and
 * group. -EINVAL: ranks that the job does not have or that are named twice, an inner node
 * without ranks below, a child node of another address family; a key that the node needs and that
 * is not known: of a rank below, or, in a tree, of the nodes.
 */
int installation_plan(const struct run *file, const struct installation_role *role,
		      struct installation *ret, struct why *why);

/*
 * A planned job has no slots of its own, and borrows. The node is an inner one; if it has the node
 * key, it tags sums of several ranks with it. Where its range begins in the pool, tables.h decides,
 * unless the caller does (slot_base).
 */
void installation_borrow(struct installation *g);

/* Who gets copy `index` of those that installation_plan() makes; none: there is no such copy. */
struct tally_set installation_ranks(const struct installation_role *role, unsigned int workers,
				    unsigned int index);

/*
 * Children out of the hops.
 * -EMSGSIZE: a port's MTU is too small for the job's payload.
 */
int installation_address(struct installation *g, struct why *why);

/*
 * The port that all messages of the worker at this hop come in by; 0: it may be any. Whoever is on
 * the same link as the service address answers by that link; others go as their routes say.
 */
uint32_t installation_port(const struct tally_job *job, const struct hop *hop);

#endif
