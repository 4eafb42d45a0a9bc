/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where this node sends packets to workers next: agent/core/paths.h. */
#ifndef TALLY_AGENT_HOPS_H
#define TALLY_AGENT_HOPS_H

#include "agent/core/paths.h"
#include "agent/edge/netlink.h"
#include "steering.h"

/* The result of CORE_RESOLVE: by the ways that are wanted, or else as netlink_resolve(). `s` may be
 * NULL. */
int hops_resolve(struct netlink *n, const struct steering *s, const struct core_action *a,
		 struct hop *ret, struct why *why);

/* Workers without a way, and addresses that cannot be read, are left out. */
void hops_look(struct netlink *n, const struct paths_question *q, struct paths_view *ret);

#endif
