/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the edges of the agent know of its driver: who takes events, and the core to look at. */
#ifndef TALLY_AGENT_EVENTS_H
#define TALLY_AGENT_EVENTS_H

#include "agent/core/core.h"

struct driver;
struct netlink;
struct spiller;
struct sharing;
struct placing;
struct steering;

/* The core decides, and what it decides is done when this returns. */
void driver_handle(struct driver *d, const struct core_event *e);

/*
 * Reads the configuration's file again, and does what it says. On failure, of which the log has a
 * line, all is as it was.
 */
int driver_reload(struct driver *d, struct why *why);

/* The kernel has other routes: workers may be elsewhere. */
void driver_routes_changed(struct driver *d);

/* Packets of jobs take other ways from now on: trees may be others. */
void driver_ways_changed(struct driver *d);

const struct core *driver_core(const struct driver *d);

/* Rates of a tenant have been measured: core_measured(). */
void driver_measured(struct driver *d, unsigned int tenant, const struct quota_use *rates);
const struct carry *driver_carry(const struct driver *d); /* NULL: as carrier_carry() */
struct spiller *driver_spiller(const struct driver *d);
struct placing *driver_placing(const struct driver *d); /* NULL: the same */
/* A worker that the core knows, by its connection, which ends if `ends`: its job has another root.
 */
void driver_say_elsewhere(void *connection, const struct sockaddr_storage *root, bool ends);
/* The same: its job's roots have these shares from now on. */
void driver_say_shares(void *connection, const uint16_t *share, unsigned int roots);

const struct sharing *driver_sharing(const struct driver *d); /* NULL: in no cluster */
const struct steering *driver_steering(const struct driver *d); /* NULL: the same */
struct netlink *driver_netlink(const struct driver *d);

#endif
