/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The links that the agent watches: what they have counted, and word when one changes. Also
 * word of neighbours, so that the agent can follow a MAC that moves. All of it is of the
 * network namespace that the process was in at netlink_links_open(). Reading and events use
 * a socket each, so neither waits for the other.
 */
#ifndef TALLY_AGENT_NETLINK_LINKS_H
#define TALLY_AGENT_NETLINK_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "agent/core/traffic.h"
#include "common/util.h"

enum {
	NETLINK_LINKS_BURST = 256, /* messages that one dispatch takes; the rest waits */
};

struct netlink_neighbour {
	uint32_t ifindex; /* a VLAN interface has neighbours of its own */
	struct sockaddr_storage address; /* IPv4 or IPv6, no port, no scope */
	bool known; /* its MAC can be used; otherwise it failed, is being asked for, or went */
	uint8_t mac[6]; /* 0 if not known */
};

/* Called by netlink_links_dispatch(). Each may be NULL. */
struct netlink_links_events {
	/* A watched link's up, carrier or operational state has changed, or it came or went. */
	void (*link)(void *context, uint32_t ifindex);
	/* The kernel's entry was touched, of any interface; often the MAC is what it was. */
	void (*neighbour)(void *context, const struct netlink_neighbour *neighbour);
	/*
	 * There were more events than the socket holds, and some are lost. Links were read anew
	 * and told of; what the caller knows of neighbours it must read anew.
	 */
	void (*lost)(void *context);
};

struct netlink_links;

/* The caller's, for netlink_links_close(), which allows NULL. `context` is for the events. */
int netlink_links_open(const struct netlink_links_events *events, void *context,
		       struct netlink_links **ret, struct why *why);
void netlink_links_close(struct netlink_links *l);
static inline void netlink_links_closep(struct netlink_links **l) { netlink_links_close(*l); }

/*
 * From now on these links, and only these. They need not be there yet. Those that were
 * watched before keep their counts of changes. -E2BIG: more than TALLY_PORTS_MAX.
 */
int netlink_links_watch(struct netlink_links *l, const uint32_t *ifindexes, size_t count,
			struct why *why);

/*
 * All watched links that are there, in the order of the watch; `ret` has room for `max`.
 * How many. -EIO: the kernel did not answer.
 */
int netlink_links_read(struct netlink_links *l, struct traffic_link *ret, size_t max,
		       struct why *why);

/* Readable when there is something to dispatch. It stays netlink_links' own. */
int netlink_links_fd(const struct netlink_links *l);

/* Takes what events there are, NETLINK_LINKS_BURST at most, and does not wait. -EIO. */
int netlink_links_dispatch(struct netlink_links *l, struct why *why);

/* How often events were lost. */
uint64_t netlink_links_lost(const struct netlink_links *l);

#endif
