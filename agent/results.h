/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the agent knows, as the JSON of docs/control.md. Each result is a new reference of the
 * caller's, NULL if there is no memory. Nothing secret is in any of them but
 * for tokens.
 */
#ifndef TALLY_AGENT_RESULTS_H
#define TALLY_AGENT_RESULTS_H

#include <jansson.h>

#include "agent/core/carry.h"
#include "sampler.h"
#include "placing.h"
#include "sharing.h"

/* `carry`, here and below: NULL, as long as nothing was told, or can be. */
json_t *results_status(const struct core *core, const struct carry *carry, const struct sampler *s,
		       uint64_t seen);

/* One tenant by its index. */
json_t *results_tenant(const struct books *b, unsigned int index);

/* With its token. -ENOENT: there is no such job. */
json_t *results_created(const struct job *j);
int results_token(const struct books *b, const char *name, json_t **ret, struct why *why);

/* What became of a document: the job as it is now. */
json_t *results_applied(const struct job *j);

/* The document of an inner node, by its index, for the run of a job that is on. */
json_t *results_document(const struct job *j, unsigned int index);

/*
 * The documents of a job's run, for one inner node or all. -ENOENT: there is no such job or node;
 * -EINVAL: it has no inner nodes, or its root is elsewhere; -ESRCH: it has no run.
 */
int results_documents(const struct books *b, const struct request_documents *q, json_t **ret,
		      struct why *why);

/*
 * What `filter` names, or all. -ENOENT: there is none of that name. Here and below: `seen` has a
 * bit for each tenant that, with its jobs, may be shown; the others are as if they were not there.
 */
int results_tenants(const struct books *b, const struct request_filter *filter, uint64_t seen,
		    json_t **ret, struct why *why);
int results_jobs(const struct books *b, const struct carry *carry, const struct lateness *lateness,
		 const struct request_filter *filter, uint64_t seen, json_t **ret, struct why *why);

/*
 * Totals by outcome, or the history of a job or a port. -EINVAL: the filter's names or their
 * number; -ENOENT: there is no such job, tenant or port.
 */
int results_stats(const struct core *c, const struct sampler *s,
		  const struct request_filter *filter, uint64_t seen, json_t **ret,
		  struct why *why);

/* What agents share, and how; null where this node is in no cluster. */
json_t *results_cluster(const struct core *c, const struct sharing *s);

/* -ENOENT: this node is in no cluster. */
int results_no_cluster(const struct core *c, struct why *why);

/* Jobs that agents share, all or one. -ENOENT. */
int results_shared(const struct core *c, const struct sharing *s, const struct placing *p,
		   const struct steering *steering, const struct request_filter *filter,
		   uint64_t seen, json_t **ret, struct why *why);

/* Tenants that agents share, all or one, with what each node holds of them. -ENOENT. */
int results_shared_tenants(const struct core *c, const struct sharing *s, const struct placing *p,
			   const struct request_filter *filter, uint64_t seen, json_t **ret,
			   struct why *why);

/* What is wrong with that, for people, to this array. */
void results_cluster_troubles(const struct sharing *s, const struct placing *p,
			      const struct steering *steering, const struct core *c, uint64_t seen,
			      json_t *troubles);

/* The picture of the network. -ENOENT: this node is in no cluster. */
int results_topology(const struct core *c, const struct sharing *s, json_t **ret, struct why *why);

/* What has happened in the cluster; of jobs, to those whose tenants are seen. The same. */
int results_events(const struct core *c, const struct sharing *s, uint64_t seen, json_t **ret,
		   struct why *why);

json_t *results_links(const struct core *c, const struct sampler *s);
json_t *results_top(const struct core *c, const struct sampler *s, uint64_t seen);

#endif
