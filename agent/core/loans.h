/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The policy of loans: whose runs give free slots back that they have on loan, for a run that needs
 * these slots. Pure. A run within its tenant's quota takes them from anybody. A run that would have
 * them on loan itself takes them only from tenants that have more on loan than its own tenant then
 * has: so tenants that want more than their quotas come to share what is free, as far as whole runs
 * allow (max-min fairness).
 */
#ifndef TALLY_AGENT_LOANS_H
#define TALLY_AGENT_LOANS_H

#include <stdbool.h>
#include <stdint.h>
#include <tally/maps.h>

/* A run whose slots are on loan. */
struct loan {
	unsigned int tenant; /* below TALLY_TENANTS_MAX */
	uint32_t slots;
	bool recalled; /* the decision */
};

/* A run that begins. */
struct loans_want {
	unsigned int tenant; /* whose it is */
	uint32_t slots;
	uint32_t free; /* that nobody uses */
	bool own; /* within its tenant's quota; otherwise on loan */
};

/*
 * Marks those that are recalled: of the tenant that has most on loan, the smallest run that is
 * enough, or else its largest, until there are enough slots. Returns how many; 0: enough are free.
 * -ENOSPC: that would not help, and none is marked.
 */
int loans_recall(struct loan *loan, unsigned int count, const struct loans_want *want);

#endif
