// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "deploy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <tally/wire.h>

enum {
	NODES = 0x0a000000, /* 10.0.0.0/9: machine m's own address is this + 1 + m, */
	WORKERS = 0x0a800000, /* and that of workers there */
	WORKER_PORT = 40000, /* and the rank */
};

static struct sockaddr_storage address_of(uint32_t base, uint32_t machine, uint16_t port)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *in = (void *)&a;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(base + 1 + machine);
	in->sin_port = htons(port);
	return a;
}

struct sockaddr_storage deploy_node_address(uint32_t machine)
{
	return address_of(NODES, machine, TALLY_UDP_PORT);
}

struct sockaddr_storage deploy_worker_address(uint32_t machine, uint16_t rank)
{
	return address_of(WORKERS, machine, WORKER_PORT + rank);
}

/*
 * Which ranks come through each node, ret[nodes], zeros before: those who send to it, and those of
 * nodes below, which stand behind it.
 */
static void sets_of(const struct place_tree *tree, const uint32_t *to, unsigned int workers,
		    struct tally_set *ret)
{
	for (unsigned int w = 0; w < workers; w++)
		if (to[w] != GRAPH_NONE)
			tally_set_add(&ret[to[w]], w);
	for (unsigned int n = tree->nodes; n-- > 0;)
		if (tree->node[n].parent != GRAPH_NONE)
			tally_set_join(&ret[tree->node[n].parent], &ret[n]);
}

/* A node through which nobody comes, or just those who come through another, sums nothing. */
static bool is_idle(const struct tree *t, const struct tally_set *ranks)
{
	bool idle = tally_set_is_empty(ranks);

	for (unsigned int i = 0; i < t->nodes; i++)
		idle |= tally_set_is_equal(&t->node[i].ranks, ranks);
	return idle;
}

void deploy_tree(const struct place_tree *tree, const uint32_t *to, unsigned int workers,
		 uint32_t root, struct tree *ret, uint32_t *ret_machine)
{
	struct tally_set set[PLACE_NODES_MAX] = { 0 };

	sets_of(tree, to, workers, set);
	ret->nodes = 0;
	for (unsigned int n = 0; n < tree->nodes; n++) {
		uint32_t machine = tree->node[n].machine;
		struct tree_node *node = &ret->node[ret->nodes];

		if (machine == root || is_idle(ret, &set[n]))
			continue;
		snprintf(node->name, sizeof(node->name), "m%u", machine);
		node->address = deploy_node_address(machine);
		node->ranks = set[n];
		ret_machine[ret->nodes++] = machine;
	}
}
