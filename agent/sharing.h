/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * This node in its cluster: it says hello on its links, tells the store what it sees, and knows
 * what all nodes have told (agent/cluster/picture.h). docs/cluster.md.
 */
#ifndef TALLY_AGENT_SHARING_H
#define TALLY_AGENT_SHARING_H

#include <systemd/sd-event.h>

#include "agent/cluster/events.h"
#include "agent/cluster/picture.h"
#include "sampler.h"

struct sharing;

/*
 * NULL in *ret: the configuration says no cluster. Otherwise the caller's, for sharing_close(),
 * which allows NULL, also if it fails. Whether the store is there does not matter.
 */
int sharing_open(sd_event *loop, const struct core *c, const struct sampler *s,
		 struct sharing **ret, struct why *why);
void sharing_close(struct sharing *s);

/* Are the files there that sharing_open() would need? A negative errno, and why. */
int sharing_check(const struct config *c, struct why *why);

struct store;
struct store *sharing_store(struct sharing *s);

/* When what was leased in the store has gone, somebody else is told, too; and has more to say in
 * this node's reports, which are not written where that fails. */
void sharing_tell(struct sharing *s, void (*lost)(void *context),
		  int (*report_more)(void *context, struct report *report), void *context);

const struct picture *sharing_picture(const struct sharing *s);

/* Has it all reports that the store has? */
bool sharing_is_current(const struct sharing *s);

/* Is this the agent that the cluster knows by this node's name? Another one may report as that
 * node, or this one has not reported yet: then it does nothing as that node. */
bool sharing_has_name(const struct sharing *s);

/* This node's reports say so from now on. */
void sharing_steers(struct sharing *s, bool steers);

/* What has happened in the cluster; and where to write what else does. */
const struct events *sharing_events(const struct sharing *s);
struct events *sharing_happens(struct sharing *s);

/*
 * Whom an agent asks about paths: those of the configuration, or else the other nodes of the
 * cluster, by one service address of each family. How many; ret has room for CONFIG_PEERS_MAX.
 */
unsigned int sharing_peers(const struct sharing *s, const struct config *c,
			   struct config_peer *ret);

/* Is this a service address of another node? */
bool sharing_has_root(const struct sharing *s, const struct sockaddr_storage *address);

/* What people are told of the store. */
struct sharing_state {
	const char *kind; /* "local", "etcd" */
	uint64_t heard_ns; /* when it was last heard; 0: never */
	bool is_reported; /* this node's last report is there */
	const char *trouble; /* why the last write was not done; or "" */
	const char *taken; /* who else reports as this node, and what to do; or "" */
	const char *apart; /* which node at a link is of another cluster; or "" */
	unsigned int nears; /* nodes that are heard at links */
	uint64_t reports, bytes; /* written so far */
};

struct sharing_state sharing_state(const struct sharing *s);

#endif
