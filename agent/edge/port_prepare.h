/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From an interface as the kernel describes it to a port of the data plane. */
#ifndef TALLY_AGENT_PORT_PREPARE_H
#define TALLY_AGENT_PORT_PREPARE_H

#include "agent/dataplane/dataplane.h"
#include "netlink.h"

/*
 * An interface as the data plane wants it. Where native mode would panic the kernel, AUTO
 * becomes generic and `refused` says why; NATIVE is -EOPNOTSUPP.
 */
int port_prepare(const struct netlink_port *p, enum dataplane_mode mode, struct dataplane_port *ret,
		 struct why *why);

#endif
