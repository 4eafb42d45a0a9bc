/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranks that others wait for (agent/core/late.h), of all runs that have slots of their own at this
 * node: a timer looks into these slots. What it costs has a bound: LATE_READS_MAX slots each
 * LATE_EVERY_MS for each of LATENESS_RUNS_MAX runs; where there are more, they take turns. What is
 * summed in software or in the pool is not looked at.
 */
#ifndef TALLY_AGENT_LATENESS_H
#define TALLY_AGENT_LATENESS_H

#include <systemd/sd-event.h>

#include "agent/core/late.h"
#include "events.h"
#include "node.h"

enum {
	LATENESS_RUNS_MAX = 16, /* at once */
};

struct lateness;

/* The caller's, for lateness_close(), which allows NULL, also if it fails. -ENOMEM, ... */
int lateness_open(sd_event *loop, const struct driver *d, const struct node *n,
		  struct lateness **ret);
void lateness_close(struct lateness *l);

/* Who is late in the job's run, by rank; how many. None, too, where nobody looks. */
unsigned int lateness_of(const struct lateness *l, const struct job *j,
			 struct late_rank ret[LATE_RANKS_MAX]);

/* CPU time that looks took so far. */
uint64_t lateness_cpu_ns(const struct lateness *l);

#endif
