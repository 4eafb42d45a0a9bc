/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nodes over real sockets that run the rules that ship, for workers of this process. A test turns a
 * node itself, or gives it a thread. Addresses are the process's own (127.x.y.*), since tests run
 * at the same time: ranks have .2 and .3, nodes .101 and .102.
 */
#ifndef TALLY_TESTS_UNIT_PROGRESS_WORLD_H
#define TALLY_TESTS_UNIT_PROGRESS_WORLD_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/memory_node.h"

enum {
	RANKS = 2,
	WINDOW = 16,
	PAYLOAD = 128, /* 32 int32 */
	NODE_HOST = 101, /* and what follows it */
	RANK_HOST = 2,
	STRANGER_HOST = 9,
	NETWORKS = 65000, /* of processes; 127.0.*.* are others' */
	PATIENCE_MS = 20000, /* for what must come; only a test that fails waits so long */
};

static const struct tally_set everyone = { { (1 << RANKS) - 1 } };

struct node {
	int fd;
	uint16_t worker_port;
	struct memory_slot slot[2 * WINDOW];
	struct memory_node rules;
	int drop; /* so many datagrams are lost */
	uint8_t priority; /* of the last one that came */
	bool ends; /* its thread */
	pthread_t thread;
};

static inline struct sockaddr_in loopback(uint8_t host, uint16_t udp_port)
{
	static pid_t of; /* also what a process has forked */
	const uint32_t network = 0x7f010000 + ((of ?: (of = getpid())) % NETWORKS << 8);

	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(udp_port),
				     .sin_addr.s_addr = htonl(network | host) };
}

struct loopback_text {
	char s[32];
};

/* An address for tally_open(): "127.x.y.host:port", or without a port if `udp_port` is 0. */
static inline struct loopback_text loopback_text(uint8_t host, uint16_t udp_port)
{
	const struct sockaddr_in at = loopback(host, udp_port);
	struct loopback_text t;
	char address[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &at.sin_addr, address, sizeof(address));
	snprintf(t.s, sizeof(t.s), udp_port ? "%s:%d" : "%s", address, udp_port);
	return t;
}

static inline void node_take(struct node *n, const struct message *m)
{
	const struct tally_set sender = tally_header_set(&m->header);
	enum tally_to to;
	struct visit v;

	visit_begin(&n->rules, m, &v);
	to = tally_outcome_to(visit_end(&n->rules, &v));
	for (int rank = 0; rank < RANKS; rank++) {
		const struct tally_set me = { { 1ull << rank } };
		struct sockaddr_in at = loopback(RANK_HOST + rank, n->worker_port);
		struct message copy;

		if (to != TALLY_TO_GROUP &&
		    (to != TALLY_TO_SENDER || !tally_set_is_equal(&me, &sender)))
			continue;
		copy = message_copy(&v.message, &me);
		sendto(n->fd, &copy.header, message_bytes(&copy), 0, (void *)&at, sizeof(at));
	}
}

/* What is there now. Returns how many datagrams it was. */
static inline int node_turn(struct node *n)
{
	struct message m = { 0 };
	int count = 0;

	while (recv(n->fd, &m.header, sizeof(m.header) + sizeof(m.word), MSG_DONTWAIT) > 0) {
		count++;
		n->priority = m.header.priority;
		if (n->drop)
			n->drop--;
		else
			node_take(n, &m);
	}
	return count;
}

static inline void *node_main(void *argument)
{
	struct node *n = argument;
	struct pollfd p = { .fd = n->fd, .events = POLLIN };

	while (!__atomic_load_n(&n->ends, __ATOMIC_ACQUIRE)) {
		poll(&p, 1, 10);
		node_turn(n);
	}
	return argument;
}

static inline int node_thread_start(struct node *n)
{
	return pthread_create(&n->thread, NULL, node_main, n);
}

static inline void node_thread_end(struct node *n)
{
	__atomic_store_n(&n->ends, true, __ATOMIC_RELEASE);
	pthread_join(n->thread, NULL);
	n->ends = false;
}

/* Root `which` of a run: its workers have port 40000 + `which`. */
static inline int node_open(struct node *n, uint16_t which)
{
	struct sockaddr_in at = loopback(NODE_HOST + which, TALLY_UDP_PORT);

	*n = (struct node){
		.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
		.worker_port = 40000 + which,
		.rules = { .role = { .everyone = &everyone,
				     .below = &everyone,
				     .epoch = 1,
				     .blocks_max = MESSAGE_BLOCKS_MAX,
				     .root = true },
			   .boot = 1,
			   .frames_grow = true,
			   .slots = 2 * WINDOW,
			   .slot = n->slot },
	};
	return n->fd < 0 ? -1 : bind(n->fd, (void *)&at, sizeof(at));
}

#endif
