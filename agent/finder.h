/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the trees of this node's jobs, where agents are to do that (docs/trees.md), and finds them
 * anew while runs are on: asks this node's routing and the agents of other nodes, and says to the
 * core what agent/core/paths.h makes of the answers.
 */
#ifndef TALLY_AGENT_FINDER_H
#define TALLY_AGENT_FINDER_H

#include <systemd/sd-event.h>

#include "events.h"

struct finder;

/* The caller's, for finder_close(), which allows NULL and waits for nobody. */
int finder_open(sd_event *loop, struct driver *d, struct finder **ret);
void finder_close(struct finder *f);

/* The books may have changed. NULL: there is none yet. */
void finder_look(struct finder *f);

/* Routes have changed: all trees are to be found anew now. */
void finder_hurry(struct finder *f);

#endif
