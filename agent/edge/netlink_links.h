/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The links that the agent watches: their counters, and events when one changes. Also events of
 * neighbours, so that the agent can follow a MAC that moves. All of it is of the network namespace
 * that the process was in at netlink_links_open(). Reading and events have a socket each, so
 * neither waits for the other.
 */
#ifndef TALLY_AGENT_NETLINK_LINKS_H
#define TALLY_AGENT_NETLINK_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "agent/core/traffic.h"
#include "common/util.h"
#include "netlink.h"

enum {
	NETLINK_LINKS_BURST = 256, /* messages of one dispatch; the others wait */
};

/* netlink_links_dispatch() calls these. Each may be NULL. */
struct netlink_links_events {
	/* A watched link's up, carrier or operational state has changed, or it came or went. */
	void (*link)(void *context, uint32_t ifindex, const char *state); /* for people */
	/* A link that is not watched has come, or changed. */
	void (*other)(void *context, const char *name);
	/* The kernel changed an entry, on any interface; often the MAC is the same. */
	void (*neighbour)(void *context, const struct netlink_neighbour *neighbour);
	/* A watched link has another address now, so there may be another way to somebody. */
	void (*address)(void *context);
	/* Routes have come, gone or changed: once for all that came together. */
	void (*route)(void *context);
	/*
	 * The socket was full and the kernel lost events. netlink_links has read the links again
	 * and called link(); the caller must read neighbours again.
	 */
	void (*lost)(void *context);
};

struct netlink_links;

/* The caller owns the result; netlink_links_close() allows NULL. `context` goes to events. */
int netlink_links_open(const struct netlink_links_events *events, void *context,
		       struct netlink_links **ret, struct why *why);
void netlink_links_close(struct netlink_links *l);
static inline void netlink_links_closep(struct netlink_links **l) { netlink_links_close(*l); }

/*
 * Watches these links from now on, and no others. A link need not exist yet. Links that were
 * watched before keep their counts of changes. -E2BIG: more than TALLY_PORTS_MAX.
 */
int netlink_links_watch(struct netlink_links *l, const uint32_t *ifindexes, size_t count,
			struct why *why);

/*
 * Reads all watched links that exist, in the order of the watch; `ret` has room for `max`. Returns
 * how many. -EIO: the kernel did not answer.
 */
int netlink_links_read(struct netlink_links *l, struct traffic_link *ret, size_t max,
		       struct why *why);

/* For poll(): readable when there are events. Do not close it. */
int netlink_links_fd(const struct netlink_links *l);

/* Handles the events that are there, NETLINK_LINKS_BURST at most. Does not wait. -EIO. */
int netlink_links_dispatch(struct netlink_links *l, struct why *why);

/* How often the kernel lost events. */
uint64_t netlink_links_lost(const struct netlink_links *l);

#endif
