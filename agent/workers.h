/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The workers' side of the agent: they connect, and the core is told what they say. Agents of other
 * nodes come to the same port (peers.h).
 */
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

/* Was it asked here, by another agent? Then CORE_ANSWER is this, with its line (or NULL). */
bool workers_asked(const struct workers *w, const void *connection);
void workers_answer(const struct core_action *a, const char *line);

/* To a worker of the core's: the root of its job is elsewhere; and whether its connection ends. */
void workers_say_elsewhere(void *connection, const struct sockaddr_storage *root, bool ends);

/* To a worker of the core's, in a run of a job with several roots: what each of them has of calls
 * to come. */
void workers_say_shares(void *connection, const uint16_t *share, unsigned int roots);

/* Performs CORE_DROP. */
void workers_drop(void *connection);

/* Performs CORE_TELL. */
void workers_tell(const struct core_action *a);

#endif
