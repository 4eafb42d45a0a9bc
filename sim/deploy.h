/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A tree of machines, as a policy has decided it, in the words of agents. Pure. */
#ifndef TALLY_SIM_DEPLOY_H
#define TALLY_SIM_DEPLOY_H

#include <stdint.h>
#include <sys/socket.h>

#include "agent/core/tree.h"
#include "agent/policy/place.h"

/* Made up: each machine has one, and each worker has another. */
struct sockaddr_storage deploy_node_address(uint32_t machine);
struct sockaddr_storage deploy_worker_address(uint32_t machine, uint16_t rank);

/*
 * to[workers]: the node of the tree that each worker sends to; GRAPH_NONE: the root. Without the
 * root, and without nodes that would sum nothing: through which nobody comes, or just those who
 * come through another one. ret_machine has room for PLACE_NODES_MAX: the machines of the nodes.
 */
void deploy_tree(const struct place_tree *tree, const uint32_t *to, unsigned int workers,
		 uint32_t root, struct tree *ret, uint32_t *ret_machine);

#endif
