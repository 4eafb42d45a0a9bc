/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel knows of interfaces, routes and neighbours. The only module that knows
 * libnl and ethtool. All of it is of the network namespace that the process is in.
 */
#ifndef TALLY_AGENT_NETLINK_H
#define TALLY_AGENT_NETLINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "agent/core/installation.h"
#include "agent/core/port_check.h"
#include "common/util.h"

struct netlink;

enum {
	NETLINK_RESOLVE_MS = 1000, /* a neighbour that is there has answered by then */
};

/* A conversation with the kernel; the caller's, for netlink_close(), which allows NULL. */
int netlink_open(struct netlink **ret);
void netlink_close(struct netlink *n);
static inline void netlink_closep(struct netlink **n) { netlink_close(*n); }

/*
 * Where frames to an address leave, and to which neighbour. A neighbour that is not known yet
 * is made known: one UDP datagram goes to the address's discard port, and the answer is waited
 * for, `wait_ms` at most. On a VLAN interface the port is the interface below it.
 * -ENETUNREACH: no route; -EHOSTUNREACH: no neighbour answered, or not yet; -EINVAL: not reached
 * over an Ethernet port.
 */
int netlink_resolve(struct netlink *n, const struct sockaddr_storage *address, unsigned int wait_ms,
		    struct hop *ret, struct why *why);

/* -ENODEV: no such interface; -EINVAL: not an Ethernet one. */
int netlink_port_read(struct netlink *n, const char *name, struct netlink_port *ret,
		      struct why *why);

#endif
