/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The traffic of the node: counters and links read once each interval, and link events; and slots,
 * more often. */
#ifndef TALLY_AGENT_SAMPLER_H
#define TALLY_AGENT_SAMPLER_H

#include <systemd/sd-event.h>

#include "agent/core/delay.h"
#include "agent/core/traffic.h"
#include "agent/edge/netlink_links.h"
#include "agent/edge/spiller.h"
#include "events.h"
#include "lateness.h"
#include "node.h"

struct sampler {
	struct driver *driver;
	const struct node *node;
	struct traffic *traffic;
	struct traffic_row *rows; /* of the last sample */
	unsigned int rows_count;
	struct spill_memory software; /* the same, of sums in software */
	uint64_t opened_ns, sampled_ns; /* when that was */
	uint64_t sampling_ns; /* CPU time that it took so far */
	struct lateness *lateness; /* who is waited for */
	struct delays delays; /* of its timer, and so of whatever the loop is asked to do */
	struct netlink_links *links;
	sd_event_source *links_io, *timer;
};

/* The caller's, for sampler_close(), which allows NULL. */
int sampler_open(sd_event *loop, struct driver *d, const struct node *n, struct sampler **ret,
		 struct why *why);
void sampler_close(struct sampler *s);

/* The links that are watched are those of these ports. */
int sampler_watch(struct sampler *s, const struct dataplane_port *ports, unsigned int count,
		  struct why *why);

/* Reads counters and links; the second one unless that was a moment ago. */
int sampler_sample(struct sampler *s, struct why *why);
int sampler_refresh(struct sampler *s, struct why *why);

#endif
