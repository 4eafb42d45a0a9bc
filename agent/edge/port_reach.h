/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Do results reach all children, whichever port completes them? */
#ifndef TALLY_AGENT_PORT_REACH_H
#define TALLY_AGENT_PORT_REACH_H

#include "agent/core/dataplane_state.h"
#include "agent/core/installation.h"

/*
 * Native XDP can redirect only to drivers that accept such frames; others drop them silently.
 * -EOPNOTSUPP: a child of the installation (with addresses) is behind such a port, as far as the
 * kernel says (since 6.3), and some port of the node runs native XDP.
 */
int port_reach_check(const struct dataplane_port *ports, unsigned int count,
		     const struct installation *g, struct why *why);

#endif
