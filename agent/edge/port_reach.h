/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Do results arrive, from whichever of the node's ports they are made at? */
#ifndef TALLY_AGENT_PORT_REACH_H
#define TALLY_AGENT_PORT_REACH_H

#include "agent/core/dataplane_state.h"
#include "agent/core/installation.h"

/*
 * XDP in a driver sends only through drivers that take its frames; others drop them without a word.
 * -EOPNOTSUPP: a child of the (addressed) group is behind such a port, as far as the kernel says
 * (since 6.3), and some of the node's ports runs XDP in its driver.
 */
int port_reach_check(const struct dataplane_port *ports, unsigned int count,
		     const struct installation *g, struct why *why);

#endif
