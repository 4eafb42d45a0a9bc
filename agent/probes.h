/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Are workers there whose connections ended with another agent? Their machines say if not. */
#ifndef TALLY_AGENT_PROBES_H
#define TALLY_AGENT_PROBES_H

#include <systemd/sd-event.h>

#include "events.h"

struct probes;

/* The caller's, for probes_close(), which allows NULL. */
int probes_open(sd_event *loop, struct driver *d, struct probes **ret);
void probes_close(struct probes *p);

/* Asks one rank of a run. If nobody is there the core hears CORE_GONE, until probes_forget(). */
int probes_ask(struct probes *p, const struct job *j, uint16_t rank);
void probes_forget(struct probes *p);

#endif
