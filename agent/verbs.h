/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests that change something: the books first, then the data plane, then the disk. If one
 * of them refuses, all are as before. Each returns 0 with the JSON of docs/control.md in *ret, the
 * caller's, or a negative errno with the reason in `why`.
 */
#ifndef TALLY_AGENT_VERBS_H
#define TALLY_AGENT_VERBS_H

#include <jansson.h>

#include "agent.h"
#include "agent/core/request.h"

int verb_tenant_add(struct agent *a, const struct request *q, json_t **ret, struct why *why);
int verb_tenant_set(struct agent *a, const struct request *q, json_t **ret, struct why *why);
int verb_tenant_del(struct agent *a, const struct request *q, json_t **ret, struct why *why);

int verb_job_create(struct agent *a, const struct request *q, json_t **ret, struct why *why);
int verb_job_token(struct agent *a, const struct request *q, json_t **ret, struct why *why);
int verb_job_del(struct agent *a, const struct request *q, json_t **ret, struct why *why);

#endif
