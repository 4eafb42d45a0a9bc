/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the agent knows, as the JSON of docs/control.md. Each result is a new reference of the
 * caller's, NULL if there is no memory. Nothing secret is in any of them.
 */
#ifndef TALLY_AGENT_RESULTS_H
#define TALLY_AGENT_RESULTS_H

#include <jansson.h>

#include "agent.h"
#include "agent/core/request.h"

json_t *results_status(const struct agent *a);

/* One tenant by its index. */
json_t *results_tenant(const struct agent *a, unsigned int index);

/* What `filter` names, or all. */
json_t *results_tenants(const struct agent *a, const struct request_filter *filter);
json_t *results_jobs(const struct agent *a, const struct request_filter *filter);

/*
 * Totals by outcome, or the history of a job or a port. -EINVAL: the filter's names or their
 * number; -ENOENT: there is no such job, tenant or port.
 */
int results_stats(const struct agent *a, const struct request_filter *filter, json_t **ret,
		  struct why *why);

json_t *results_links(const struct agent *a);
json_t *results_top(const struct agent *a);

#endif
