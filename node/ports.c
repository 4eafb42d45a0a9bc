// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tally-node attach, detach, stats. */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/edge/netlink.h"
#include "agent/core/port_check.h"
#include "tally_node.h"

/* Says how the port is attached, and warns of what makes it slow. */
static void port_report(const struct netlink_port *facts, const struct dataplane_port *p)
{
	const char *name = p->name;

	if (p->mode == DATAPLANE_NATIVE) {
		printf("%s: native\n", name);
	} else {
		printf("%s: %s%s%s%s\n", name, p->mode == DATAPLANE_TC ? "tc" : "generic",
		       *p->refused.text ? " (not native: " : "", p->refused.text,
		       *p->refused.text ? ")" : "");
		if (facts->mtu > DATAPLANE_XDP_MTU && *p->refused.text)
			warnx("%s: MTU %u is more than native XDP takes in one buffer, about %d",
			      name, facts->mtu, DATAPLANE_XDP_MTU);
		if (*facts->coalescing)
			warnx("%s: an offload may join several messages into one frame, which passes this "
			      "node without being summed (outcome COALESCED): ethtool -K %s%s",
			      name, name, facts->coalescing);
		if (!strcmp(facts->driver, "veth"))
			warnx("%s: the other end of this veth may send several messages as one frame "
			      "(UDP_SEGMENT), which passes this node without being summed (outcome "
			      "COALESCED): there, ethtool -K DEV tx-udp-segmentation off",
			      name);
	}
	if (p->beside)
		printf("%s: XDP program %u stays, and sees what Tally passes\n", name, p->beside);
	if (!facts->up)
		warnx("%s: is down (ip link set %s up)", name, name);
}

static int ports_read(const struct command_line *q, struct netlink_port *facts,
		      struct dataplane_port *ports, struct why *why)
{
	_cleanup_(netlink_closep) struct netlink *n = NULL;
	int r;

	r = netlink_open(&n);
	for (int i = 0; r == 0 && i < q->count; i++) {
		r = netlink_port_read(n, q->arguments[i], &facts[i], why);
		if (r == 0)
			r = port_prepare(&facts[i], q->mode, dataplane_cpus(),
					 dataplane_is_native(facts[i].ifindex), &ports[i], why);
		ports[i].share = q->share;
		for (int j = 0; r == 0 && j < i; j++)
			if (facts[j].ifindex == facts[i].ifindex)
				r = why_say(why, -EINVAL, "%s: the interface is named twice",
					    facts[i].name);
	}
	return r;
}

int node_attach(const struct command_line *q, struct why *why)
{
	_cleanup_(freep) struct dataplane_port *ports = calloc(q->count + 1, sizeof(*ports));
	_cleanup_(freep) struct netlink_port *facts = calloc(q->count + 1, sizeof(*facts));
	int r;

	if (!ports || !facts)
		return -ENOMEM;
	r = ports_read(q, facts, ports, why);
	if (r < 0)
		return r;
	if (q->replace)
		r = dataplane_replace(q->pin, q->slots, q->has_pool ? &q->pool : NULL, ports,
				      q->count, why);
	else
		r = dataplane_attach(q->pin, q->slots ? q->slots : DATAPLANE_SLOTS, &q->pool, ports,
				     q->count, why);
	for (int i = 0; i < q->count; i++) {
		if (r == 0)
			port_report(&facts[i], &ports[i]);
		else if (facts[i].mtu > DATAPLANE_XDP_MTU && *ports[i].refused.text)
			warnx("%s: MTU %u is more than native XDP takes in one buffer, about %d: ip link "
			      "set %s mtu %d, and its peer too",
			      facts[i].name, facts[i].mtu, DATAPLANE_XDP_MTU, facts[i].name,
			      DATAPLANE_XDP_MTU);
	}
	return r;
}

int node_detach(const struct command_line *q, struct why *why)
{
	return dataplane_detach(q->pin, why);
}

static void stats_print(const struct tally_counter *c, bool all)
{
	printf("%-14s %15s %18s  %s\n", "outcome", "packets", "bytes", "meaning");
	for (int i = 0; i < TALLY_OUTCOME_COUNT; i++)
		if (all || c[i].packet)
			printf("%-14s %15" PRIu64 " %18" PRIu64 "  %s\n", tally_outcome_name(i),
			       (uint64_t)c[i].packet, (uint64_t)c[i].byte,
			       tally_outcome_meaning(i));
}

static void stats_print_json(const struct tally_counter *c)
{
	for (int i = 0; i < TALLY_OUTCOME_COUNT; i++)
		printf("%s\"%s\":{\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", i ? "," : "{",
		       tally_outcome_name(i), (uint64_t)c[i].packet, (uint64_t)c[i].byte);
	printf("}\n");
}

int node_stats(const struct command_line *q, struct why *why)
{
	_cleanup_(dataplane_closep) struct dataplane *d = NULL;
	struct tally_counter counters[TALLY_OUTCOME_COUNT] = { 0 };
	int r;

	r = dataplane_open(q->pin, &d, why);
	if (r == 0)
		r = dataplane_counters(d, counters, why);
	if (r < 0)
		return r;
	if (q->json)
		stats_print_json(counters);
	else
		stats_print(counters, q->all);
	return 0;
}
