/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who uses a port's clsact qdisc? It may be taken away only when nobody does. */
#ifndef TALLY_AGENT_NETLINK_FILTERS_H
#define TALLY_AGENT_NETLINK_FILTERS_H

#include <stdint.h>

/* TC filters at ingress and egress of the port, whosever; -EIO: the kernel does not say. */
int netlink_filters_count(uint32_t ifindex);

#endif
