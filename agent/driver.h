/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read this file first: then events.h, tallyd.c, driver.c; what is decided is in core/core.h.
 *
 * The driver of the agent's core: it opens the edges of one node, hands the core what they bring,
 * and performs what the core decides (agent/core/core.h) with them. One thread, one event loop.
 */
#ifndef TALLY_AGENT_DRIVER_H
#define TALLY_AGENT_DRIVER_H

#include <systemd/sd-event.h>

#include "events.h"

/*
 * Takes the node over and serves it, from the loop. `path` is the configuration's, which is the
 * driver's from now on. *ret is the caller's, for driver_close(), also if it fails.
 */
int driver_open(sd_event *loop, struct config *config, const char *path, struct driver **ret,
		struct why *why);

/* The configuration, as config_read(); if its state file is a link, then what that leads to. */
int driver_config_read(const char *path, struct config **ret, struct why *why);

/*
 * Would it start with this configuration, of `path`, and have what it needs to talk with other
 * agents? If so `why` may have a warning, or is "".
 */
int driver_check(const struct config *config, const char *path, struct why *why);

/* `detach`: without its data plane. */
void driver_close(struct driver *d, bool detach);

/* After a start that failed: a data plane that this agent made goes, one that it found stays. */
void driver_abandon(struct driver *d);

#endif
