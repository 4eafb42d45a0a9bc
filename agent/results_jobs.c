// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Results of requests about jobs. */
#include <errno.h>
#include <string.h>

#include "agent/core/holders.h"
#include "agent/core/keys_json.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/ranks.h"
#include "results_private.h"

static const char *member_state(const struct job_rank *r)
{
	static const char *const in_run[] = { [JOB_ABSENT] = "missing",
					      [JOB_RUNNING] = "running",
					      [JOB_DETACHED] = "detached",
					      [JOB_LEFT] = "left" };

	return r->waiting ? "joined" : in_run[r->presence];
}

/* The ranks right below an inner node. */
static json_t *below(const struct document *d)
{
	json_t *all = json_array();

	for (unsigned int i = 0; i < d->ranks; i++)
		json_array_append_new(
			all, json_pack("{so ss so}", "rank", results_number(d->rank[i].rank),
				       "state", "below", "address",
				       results_printed(endpoint_print, &d->rank[i].address)));
	return all;
}

static json_t *members(const struct job *j)
{
	json_t *all = json_array();

	for (unsigned int i = 0; i < j->workers; i++) {
		const struct job_rank *r = &j->rank[i];
		const struct sockaddr_storage *at = r->waiting ? &r->next : &r->address;
		bool known = r->waiting || r->presence != JOB_ABSENT;

		json_array_append_new(all, json_pack("{so ss so}", "rank", results_number(i),
						     "state", member_state(r), "address",
						     known ? results_printed(endpoint_print, at)
							   : json_string("")));
	}
	return all;
}

/* Of an inner node of this root's job. Whoever carries documents by hand knows better. */
static void node_state(const struct job *j, unsigned int node, const struct carry *carry,
		       json_t *into)
{
	const struct carry_way *w = carry && j->run_window ? carry_find(carry, j, node) : NULL;
	const bool away = w && carry_is_away(w);

	json_object_set_new(into, "state",
			    json_string(!w	  ? ""
					: w->told ? "told"
					: away	  ? "away"
						  : "telling"));
	json_object_set_new(into, "trouble", json_string(away ? carry_trouble(w) : ""));
}

/* Of the job's tree: at its root all inner nodes, at an inner node those right below. */
static json_t *nodes(const struct job *j, const struct carry *carry)
{
	const struct tree_node *node = j->document ? j->document->below
				       : j->tree   ? j->tree->node
						   : NULL;
	const unsigned int count = j->document ? j->document->nodes : j->tree ? j->tree->nodes : 0;
	json_t *all = json_array();

	for (unsigned int i = 0; i < count; i++) {
		json_t *one = keys_json_make(&tree_node_keys, &node[i]);

		node_state(j, i, j->document ? NULL : carry, one);
		json_array_append_new(all, one);
	}
	return all;
}

const char *results_job_state(const struct job *j)
{
	if (job_is_suspended(j))
		return "suspended";
	if (job_is_running(j))
		return "running";
	return job_joined(j) ? "forming" : "waiting";
}

bool results_borrows(const struct books *b, const struct job *j)
{
	return j->run_window && j->borrows && b->pool;
}

bool results_passes_on(const struct books *b, const struct job *j)
{
	return j->run_window && j->document && j->borrows && !b->pool;
}

unsigned int results_below(const struct job *j)
{
	struct installation_role role;

	if (!j->document)
		return 0;
	job_role(j, &role);
	return tally_set_count(&role.below);
}

static json_t *missing(const struct job *j)
{
	struct tally_set ranks = job_missing(j);
	char text[RANKS_BYTES] = "";

	if (!j->run_window)
		ranks_print(&ranks, text, sizeof(text));
	return json_string(text);
}

static json_t *lates(const struct lateness *lateness, const struct job *j)
{
	struct late_rank late[LATE_RANKS_MAX];
	const unsigned int count = lateness_of(lateness, j, late);
	json_t *all = json_array();

	for (unsigned int i = 0; i < count; i++)
		json_array_append_new(all,
				      json_pack("{so so}", "rank", results_number(late[i].rank),
						"percent", results_number(late[i].percent)));
	return all;
}

/* Members only of a job that was named: all of them together would be megabytes. */
static json_t *job(const struct books *b, const struct job *j, const struct carry *carry,
		   const struct lateness *lateness, bool named)
{
	struct why no_slots;

	holders_explain(b, j, &no_slots);
	return json_pack(
		"{ss so ss ss ss sb sb sb sb sb sb so so so sb so so so so so so so so so ss ss sb ss ss so}",
		"name", j->name, "id", results_number(j->id), "tenant", j->tenant_name, "state",
		results_job_state(j), "role", j->document ? "inner" : "root", "in_software",
		j->run_window && j->spilled, "borrows", results_borrows(b, j), "passes_on",
		results_passes_on(b, j), "on_loan", job_is_lent(j), "sealed", j->sealed,
		"clustered", j->clustered, "workers", results_number(j->workers), "window",
		results_number(j->run_window ? j->run_window : j->window), "payload",
		results_number(j->payload_bytes), "payload_fits", j->fits, "epoch",
		results_number(j->epoch), "slots", results_number(job_slots(j)), "service",
		results_printed(address_print, &j->service), "joined",
		results_number(job_joined(j)), "below", results_number(results_below(j)), "missing",
		missing(j), "incomplete_s",
		results_number(j->incomplete_ns ? (clock_now_ns() - j->incomplete_ns) / 1000000000
						: 0),
		"nodes", named ? nodes(j, carry) : json_array(), "members",
		!named	      ? json_array()
		: j->document ? below(j->document)
			      : members(j),
		"trouble", j->trouble.text, "no_slots", no_slots.text, "finds_tree",
		j->tree && j->tree->found, "left_out", j->left_out.text, "astray",
		j->run_window ? j->astray.text : "", "late", lates(lateness, j));
}

json_t *results_created(const struct job *j)
{
	return json_pack("{ss sI ss}", "name", j->name, "id", (json_int_t)j->id, "token", j->token);
}

const struct job *results_job_find(const struct books *b, const char *name, uint64_t seen,
				   struct why *why)
{
	const struct job *j = books_job_find(b, name);

	j = j && results_is_seen(seen, j->tenant) ? j : NULL;
	if (!j)
		why_say(why, -ENOENT, "there is no job %s (tallyctl job list)", name);
	return j;
}

int results_token(const struct books *b, const char *name, json_t **ret, struct why *why)
{
	const struct job *j = results_job_find(b, name, UINT64_MAX, why);

	if (!j)
		return -ENOENT;
	if (j->document)
		return job_is_inner(j, why);
	*ret = json_pack("{ss}", "token", j->token);
	return 0;
}

/* --- trees ----------------------------------------------------------------------------------- */

json_t *results_applied(const struct job *j)
{
	return json_pack("{ss sI so sb ss}", "name", j->name, "id", (json_int_t)j->id, "epoch",
			 results_number(j->epoch), "running", job_is_running(j), "trouble",
			 j->trouble.text);
}

json_t *results_document(const struct job *j, unsigned int index)
{
	_cleanup_(freep) struct document *d = malloc(sizeof(*d));
	_cleanup_(freep) struct run *run = malloc(sizeof(*run));
	json_t *document;

	if (!d || !run)
		return NULL;
	job_this_run(j, run);
	job_run_keys(j, &j->draw, run);
	document_make(j->tree, index, j->name, run, d);
	d->birth = j->birth;
	document = keys_json_make(&document_keys, d);
	if (!d->generation) /* agents that know of no such thing take the document, too */
		json_object_del(document, "generation");
	if (!d->birth)
		json_object_del(document, "birth");
	if (!d->keys)
		json_object_del(document, "keys");
	explicit_bzero(run, sizeof(*run));
	explicit_bzero(d, sizeof(*d));
	return document;
}

int results_documents(const struct books *b, const struct request_documents *q, json_t **ret,
		      struct why *why)
{
	const struct job *j = results_job_find(b, q->job, UINT64_MAX, why);
	int only = TREE_ROOT;

	if (!j)
		return -ENOENT;
	if (j->document)
		return job_is_inner(j, why);
	if (!j->tree)
		return why_say(why, -EINVAL, "job %s has no inner nodes (job create --tree)",
			       j->name);
	if (*q->node)
		only = tree_find(j->tree, q->node, why);
	if (*q->node && only < 0)
		return only;
	if (!j->run_window)
		return why_say(why, -ESRCH,
			       "job %s has no run now: its documents are there when all workers "
			       "have joined",
			       j->name);
	*ret = json_array();
	for (unsigned int i = 0; i < j->tree->nodes; i++)
		if (only == TREE_ROOT || only == (int)i)
			json_array_append_new(*ret, results_document(j, i));
	return 0;
}

/* --- lists ----------------------------------------------------------------------------------- */

int results_jobs(const struct books *b, const struct carry *carry, const struct lateness *lateness,
		 const struct request_filter *filter, uint64_t seen, json_t **ret, struct why *why)
{
	json_t *all;

	if ((*filter->job && !results_job_find(b, filter->job, seen, why)) ||
	    (*filter->tenant && results_tenant_find(b, filter->tenant, seen, why) < 0))
		return -ENOENT;
	all = *ret = json_array();
	for (unsigned int i = 0; i < b->jobs; i++) {
		const struct job *j = b->job[i];
		if (!results_is_seen(seen, j->tenant) ||
		    (*filter->job && strcmp(filter->job, j->name) != 0) ||
		    (*filter->tenant && strcmp(filter->tenant, j->tenant_name) != 0))
			continue;
		json_array_append_new(all, job(b, j, carry, lateness, *filter->job));
	}
	return 0;
}
