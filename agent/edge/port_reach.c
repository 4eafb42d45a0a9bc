// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include "netlink_facts.h"
#include "port_reach.h"

/* The port of this number, or with 0 any, if it is native; NULL: it is not. */
static const struct dataplane_port *native_find(const struct dataplane_port *ports,
						unsigned int count, uint32_t ifindex)
{
	for (unsigned int i = 0; i < count; i++)
		if (ports[i].ifindex && ports[i].mode == DATAPLANE_NATIVE &&
		    (!ifindex || ports[i].ifindex == ifindex))
			return &ports[i];
	return NULL;
}

int port_reach_check(const struct dataplane_port *ports, unsigned int count,
		     const struct installation *g, struct why *why)
{
	const struct dataplane_port *native = native_find(ports, count, 0);

	for (unsigned int i = 0; native && i < g->copies; i++) {
		const struct hop *h = &g->copy[i].hop;

		if (native_find(ports, count, h->port) || netlink_takes_xdp(h->port) != NETLINK_NO)
			continue;
		return why_say(
			why, -EOPNOTSUPP,
			"%s cannot send frames that native XDP on %s redirects, so results "
			"would not arrive. Attach %s with --mode generic or tc instead (mode: "
			"in the configuration). A veth can send such frames if its other end "
			"has an XDP program (XDP_PASS is enough) or GRO",
			h->port_name, native->name, native->name);
	}
	return 0;
}

/* The pin has both names: many peers are called eth0. */
int port_peer_check(const struct netlink_facts *facts, const char *port, bool native,
		    bool (*is_native)(uint32_t ifindex), struct netlink_peer *ret,
		    struct why *ret_why, struct why *ret_mend)
{
	struct why said = { "" };
	int r = netlink_peer_read(facts, is_native, ret, &said);

	if (r < 0)
		return why_say(ret_why, r,
			       "%.300s. The other end must have an XDP program in native mode "
			       "(XDP_PASS is enough)",
			       *said.text ? said.text : "cannot look at the other end");
	if (!native || ret->native)
		return 0;
	why_say(ret_mend, 0, "%stally-node attach %s --slots 2 --pin " DATAPLANE_PIN "-%s-%s",
		ret->enter, ret->name, port, ret->name);
	return why_say(ret_why, 1,
		       "the other end, %s%s%s, has no XDP program: %s. Any program that passes "
		       "frames is enough, such as an empty node",
		       ret->name, *ret->where ? " in " : "", ret->where,
		       ret->gro ? "the kernel counts answers to retransmissions (XDP_TX) as sent "
				  "and never delivers them"
				: "a veth with native XDP drops all results");
}
