/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who gets how many slots beyond quotas: whose runs give free slots back that they have on loan,
 * for a run that needs these slots. Pure.
 *
 * A run within its tenant's quota takes them from anybody: so a quota holds, whatever the policy
 * says. What is on loan is shared by weights that a policy gives to tenants. A run that would have
 * slots on loan itself takes them only from tenants that, by weight, have no less on loan
 * afterwards than its own tenant: so tenants that want more than their quotas come to share what is
 * free, as far as whole runs allow (weighted max-min fairness).
 */
#ifndef TALLY_POLICY_QUOTA_H
#define TALLY_POLICY_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <tally/maps.h>

/* --- policies -------------------------------------------------------------------------------- */

/* What is known of a tenant. Rates: of all of its runs, those in software too; not below 0. */
struct quota_use {
	double packets_per_second;
	double bytes_per_second;
	double forecast_bytes_per_second; /* in a few seconds (predict.h) */
	double added_bytes_per_second; /* of these bytes, those that were added to sums */
	double refused_per_second; /* of these packets, those over a rate or priority */
	double chunks_per_second; /* sums that became whole */
	uint32_t held; /* slots of its runs, of its quota and on loan */
	uint32_t in_software; /* slots that its runs in software would have */
};

struct quota_policy {
	const char *name, *what; /* `quotas` of the configuration has this name */
	/* ret_weight[i] of each tenant; what is no positive number counts for next to nothing. */
	void (*weigh)(const struct quota_use *use, unsigned int tenants, double *ret_weight);
};

extern const struct quota_policy QUOTA_POLICIES[];
extern const unsigned int QUOTA_POLICIES_COUNT;

const struct quota_policy *quota_policy_find(const char *name); /* or NULL */

/* --- loans ----------------------------------------------------------------------------------- */

/* A run whose slots are on loan. */
struct quota_loan {
	unsigned int tenant; /* below TALLY_TENANTS_MAX */
	uint32_t slots;
	bool recalled; /* the decision */
};

/* A run that begins. */
struct quota_want {
	unsigned int tenant; /* whose it is */
	uint32_t slots;
	uint32_t free; /* that nobody uses */
	bool own; /* within its tenant's quota; otherwise on loan */
};

/*
 * Marks those that are recalled: of the tenant that by weight has most on loan, the smallest run
 * that is enough, or else its largest, until there are enough slots. `use` is of each tenant, below
 * TALLY_TENANTS_MAX. Returns how many; 0: enough are free. -ENOSPC: that would not help, and none
 * is marked.
 */
int quota_recall(const struct quota_policy *policy, const struct quota_use *use,
		 struct quota_loan *loan, unsigned int count, const struct quota_want *want);

#endif
