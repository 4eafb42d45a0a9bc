// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tenants of the cluster, as the JSON of docs/control.md. */
#include <errno.h>
#include <string.h>

#include "agent/core/keys_json.h"
#include "results.h"
#include "results_private.h"

/* An agent that has not heard of the tenant tells nothing of it. */
static json_t *node(const struct report *r, const struct wanted_tenant *t)
{
	static const struct report_tenant unheard = { .why = "its agent has not told of it yet" };
	const struct report_tenant *here = report_tenant_find(r, t->is.name);
	bool is_older;

	if (!here)
		here = &unheard;
	is_older = here->held && t->places && !here->gated && !here->own;
	return json_pack("{ss so sb sb sb ss}", "node", r->node, "slots",
			 results_number(here->slots), "held",
			 here->held && !is_older && here->slots >= t->is.slots, "own", here->own,
			 "apart", here->apart, "why",
			 is_older ? "its agent has not followed yet, or is an older one, which "
				    "does not know ingress points of the cluster"
				  : here->why);
}

static json_t *tenant(const struct sharing *s, const struct shared *shared,
		      const struct shared_tenant *t)
{
	const struct picture *p = sharing_picture(s);
	json_t *one = keys_json_make(&wanted_tenant_keys, &t->wanted), *nodes = json_array();
	unsigned int jobs = 0;

	for (unsigned int i = 0; i < p->nodes; i++)
		json_array_append_new(nodes, node(p->report[i], &t->wanted));
	for (unsigned int i = 0; i < shared->jobs; i++)
		jobs += shared->job[i]->revision &&
			!strcmp(shared->job[i]->job.tenant, t->wanted.is.name);
	json_object_set_new(one, "jobs", results_number(jobs));
	json_object_set_new(one, "nodes", nodes);
	return one;
}

/* One that this node has not is one that only those see who see all. */
static bool is_seen(const struct core *c, const char *name, uint64_t seen)
{
	struct why ignored;
	const int index = books_tenant_find(core_books(c), name, &ignored);

	return seen == UINT64_MAX || (index >= 0 && results_is_seen(seen, index));
}

json_t *results_tenants_seen(const struct core *c, const struct sharing *s, const struct placing *p,
			     const char *name, uint64_t seen)
{
	const struct shared *shared = placing_shared(p);
	json_t *all = json_array();

	for (unsigned int i = 0; i < shared->tenants; i++) {
		const struct shared_tenant *t = &shared->tenant[i];

		if (is_seen(c, t->wanted.is.name, seen) &&
		    (!*name || !strcmp(name, t->wanted.is.name)))
			json_array_append_new(all, tenant(s, shared, t));
	}
	return all;
}

int results_shared_tenants(const struct core *c, const struct sharing *s, const struct placing *p,
			   const struct request_filter *filter, uint64_t seen, json_t **ret,
			   struct why *why)
{
	if (!s || !placing_shared(p))
		return results_no_cluster(c, why);
	if (!placing_is_current(p))
		return why_say(why, -ENOTCONN,
			       "the store of the cluster was never heard in whole%s%s: which "
			       "tenants the cluster has is not known",
			       *sharing_state(s).trouble ? ": " : "", sharing_state(s).trouble);
	*ret = results_tenants_seen(c, s, p, filter->tenant, seen);
	if (!*filter->tenant || json_array_size(*ret))
		return 0;
	return why_say(why, -ENOENT, "the cluster has no tenant %s (tallyctl quota --cluster)",
		       filter->tenant);
}
