/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The workers' side of the agent: they connect, and the core is told what they say. */
#ifndef TALLY_AGENT_WORKERS_H
#define TALLY_AGENT_WORKERS_H

#include <systemd/sd-event.h>

#include "events.h"

struct workers;

/* The caller's, for workers_close(), which allows NULL and ends all connections. */
int workers_open(sd_event *loop, struct driver *d, struct workers **ret, struct why *why);
void workers_close(struct workers *w);

/*
 * Listens at all addresses where it does not yet. -EADDRINUSE: another program listens there, which
 * workers_open() does not mind; so this is tried again now and then.
 */
int workers_listen(struct workers *w, struct why *why);

/* Performs CORE_TELL. */
void workers_tell(const struct core_action *a);

#endif
