/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Carries documents to the inner nodes of this node's jobs (docs/trees.md): what is wanted is in
 * the core's books, agent/core/carry.h knows what was told, agent/edge/teller.h tells.
 */
#ifndef TALLY_AGENT_CARRIER_H
#define TALLY_AGENT_CARRIER_H

#include <systemd/sd-event.h>

#include "agent/core/carry.h"
#include "events.h"

struct carrier;

/* The caller's, for carrier_close(), which allows NULL and waits for nobody. */
int carrier_open(sd_event *loop, const struct core *core, struct carrier **ret);
void carrier_close(struct carrier *c);

/* What was told, and what was not; NULL: nothing yet, or no secret to tell it by. */
const struct carry *carrier_carry(const struct carrier *c);

/* The books may have changed. NULL: there is none yet. */
void carrier_look(struct carrier *c);

#endif
