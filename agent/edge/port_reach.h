/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Do results reach all children, whichever port completes them? */
#ifndef TALLY_AGENT_PORT_REACH_H
#define TALLY_AGENT_PORT_REACH_H

#include "agent/core/dataplane_state.h"
#include "agent/core/installation.h"
#include "netlink_facts.h"

/*
 * Native XDP can redirect only to drivers that accept such frames; others drop them silently.
 * -EOPNOTSUPP: a child of the installation (with addresses) is behind such a port, as far as the
 * kernel says (since 6.3), and some port of the node runs native XDP.
 */
int port_reach_check(const struct dataplane_port *ports, unsigned int count,
		     const struct installation *g, struct why *why);

/*
 * Does a veth's other end lose what native XDP sends there? 0: no; 1: yes, and `ret_why` says why,
 * `ret_mend` the command that helps. Negative: that cannot be seen, and `ret_why` says why; only
 * who may enter the other end's namespace can. `native`: XDP is, or would be, in the port's driver.
 */
int port_peer_check(const struct netlink_facts *facts, const char *port, bool native,
		    bool (*is_native)(uint32_t ifindex), struct netlink_peer *ret,
		    struct why *ret_why, struct why *ret_mend);

#endif
