/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The token buckets of a tenant, out of what it may send. Pure. */
#ifndef TALLY_AGENT_LIMITS_H
#define TALLY_AGENT_LIMITS_H

#include <tally/maps.h>

#include "dataplane_state.h"

/* A bucket whose rate stays keeps its level. The lock is the caller's. */
void limits_put(const struct dataplane_limits *l, struct tally_tenant *t);

#endif
