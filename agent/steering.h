/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * This node's part of the ways that the cluster wants (agent/cluster/steer.h): what the store says
 * becomes rules and routes of the kernel (agent/edge/netlink_steer.h), and these go when it says so
 * no more, when the store has not been heard for as long as a lease, and when the agent ends. The
 * data plane sends results itself, past the kernel's rules: its next nodes are asked for here.
 */
#ifndef TALLY_AGENT_STEERING_H
#define TALLY_AGENT_STEERING_H

#include <systemd/sd-event.h>

#include "agent/cluster/steer.h"
#include "events.h"

struct steering;

/*
 * Takes away what an agent before this one left, unless it is wanted still. NULL in *ret: this node
 * is in no cluster. Otherwise the caller's, for steering_close(), which allows NULL and leaves
 * nothing in the kernel: before the cluster's other modules are closed.
 */
int steering_open(sd_event *loop, struct driver *d, struct sharing *sharing,
		  const struct placing *placing, struct steering **ret);
void steering_close(struct steering *s);

/* Routes of the kernel have changed: ours may be gone. NULL is allowed. */
void steering_hurry(struct steering *s);

/* What is known of a job's ways; NULL: it has none. `s` may be NULL. */
const struct steer_job *steering_job(const struct steering *s, const char *job);

/* Where this node sends packets from `from` to `to`; NULL: as routing has it. `s` may be NULL. */
const struct steer_route *steering_route(const struct steering *s,
					 const struct sockaddr_storage *from,
					 const struct sockaddr_storage *to);

/* Why this node does not steer, although it is to; "": it does, or is not to. `s` may be NULL. */
const char *steering_trouble(const struct steering *s);

#endif
