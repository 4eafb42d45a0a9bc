/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel knows of interfaces, routes and neighbours, in the network namespace of the
 * process. Only the files netlink*.c know libnl and ethtool.
 */
#ifndef TALLY_AGENT_NETLINK_H
#define TALLY_AGENT_NETLINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "agent/core/installation.h"
#include "agent/core/port_check.h"
#include "common/util.h"

struct netlink_neighbour {
	uint32_t ifindex; /* a VLAN interface has neighbours of its own */
	struct sockaddr_storage address; /* IPv4 or IPv6, without UDP port and scope */
	bool known; /* `mac` is valid; if not, the neighbour does not answer, or not yet, or went */
	uint8_t mac[6]; /* 0 if not known */
};

struct netlink;

/* Opens sockets to the kernel. The caller owns them; netlink_close() allows NULL. */
int netlink_open(struct netlink **ret);
void netlink_close(struct netlink *n);
static inline void netlink_closep(struct netlink **n) { netlink_close(*n); }

/*
 * The port by which frames to an address leave, and the neighbour they go to. If the kernel does
 * not know the neighbour yet, this sends one UDP datagram to the address's discard UDP port, and
 * waits for the neighbour `wait_ms` at most. For a VLAN interface the port is the interface below.
 * -ENETUNREACH: no route; -EHOSTUNREACH: no neighbour answered, or not yet; -EINVAL: the way does
 * not leave by an Ethernet port.
 */
int netlink_resolve(struct netlink *n, const struct sockaddr_storage *address, unsigned int wait_ms,
		    struct hop *ret, struct why *why);

/*
 * The same of a neighbour at this port, whatever routes there are; the datagram goes to it.
 * -ENODEV: the port has gone; -EHOSTUNREACH; -EINVAL.
 */
int netlink_resolve_at(struct netlink *n, const struct sockaddr_storage *neighbour,
		       const char *port, unsigned int wait_ms, struct hop *ret, struct why *why);

/* Who takes frames to an address first, as the route says. */
struct netlink_next {
	struct hop hop; /* without the neighbour's MAC */
	uint32_t ifindex; /* that the route names: of a VLAN interface, and not of the port below */
	struct sockaddr_storage address; /* a gateway's, or the address itself */
	uint8_t source[16]; /* of this machine; IPv4: the first four */
};

/* The same without the neighbour. -ENETUNREACH, -EINVAL. */
int netlink_next(struct netlink *n, const struct sockaddr_storage *address,
		 struct netlink_next *ret, struct why *why);

/*
 * All neighbours of all interfaces that the kernel knows, in its order; `ret` has room for `max`.
 * Returns how many; -ENOMEM; -EIO: the kernel does not say.
 */
int netlink_neighbours(struct netlink_neighbour *ret, unsigned int max);

struct netlink_route {
	struct sockaddr_storage to; /* the prefix, whose other bits are 0; without UDP port */
	uint8_t bits; /* of the prefix; 0: all that have no other route */
	uint32_t ifindex; /* that its packets leave by */
};

/*
 * Routes of the main table for AF_INET or AF_INET6, in the kernel's order; where several interfaces
 * share the packets of a prefix, an entry for each. `ret` has room for `max`. Returns how many;
 * -E2BIG: there are more; -ENOMEM; -EIO: the kernel does not say.
 */
int netlink_routes(int family, struct netlink_route *ret, unsigned int max);

/* -ENODEV: no such interface; -EINVAL: not an Ethernet one; -ENOMEM; -EIO: the kernel does not say.
 */
int netlink_port_read(struct netlink *n, const char *name, struct netlink_port *ret,
		      struct why *why);

#endif
