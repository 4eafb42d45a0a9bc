// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The cluster, as the JSON of docs/control.md. */
#include <errno.h>
#include <string.h>

#include "agent/cluster/branches.h"
#include "agent/cluster/standing.h"
#include "agent/cluster/ways.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/owned.h"
#include "results.h"
#include "results_private.h"
#include "steering.h"

enum {
	SILENT_S = 10, /* as long as a lease */
	WAYS_SHOWN_MAX = 20000, /* of more, none: an answer has two megabytes */
};

static json_t *node(const struct report *r, const char *name)
{
	char address[ADDRESS_BYTES] = "";
	unsigned int running = 0;

	for (unsigned int i = 0; i < r->jobs; i++)
		running += r->job[i].runs;
	if (r->services)
		address_print(&r->service[0], address, sizeof(address));
	return json_pack("{ss ss ss ss sb so so so so}", "kind", "node", "name", name, "address",
			 address, "version", r->version, "cordoned", r->cordoned, "slots",
			 results_number(r->slots), "slots_free", results_number(r->slots_free),
			 "jobs", results_number(r->jobs), "running", results_number(running));
}

static json_t *machine(const struct picture *p, const struct picture_machine *m)
{
	char address[ADDRESS_BYTES];

	if (m->kind == PICTURE_NODE)
		return node(p->report[m->node], m->name);
	if (m->kind == PICTURE_SWITCH)
		return json_pack("{ss ss}", "kind", "switch", "name", m->name);
	address_print(&m->address, address, sizeof(address));
	return json_pack("{ss ss ss}", "kind", "host", "name", m->name, "address", address);
}

/* What an end sends. */
static json_t *end(const struct drawing *d, const struct picture_cable *c, unsigned int i)
{
	return json_pack("{ss ss so so}", "name", d->machine[c->end[i]].name, "port", c->port[i],
			 "bytes_per_second", results_number(c->load[i]),
			 "forecast_bytes_per_second", results_number(c->forecast[i]));
}

static json_t *cable(const struct drawing *d, const struct picture_cable *c)
{
	return json_pack("{so so so}", "from", end(d, c, 0), "to", end(d, c, 1), "rate_mbps",
			 results_number(c->rate_mbps));
}

/* Of the store, and of who is in the cluster: a list of words. */
static json_t *troubles_of(const struct sharing_state *state)
{
	const uint64_t silent_s = (clock_now_ns() - state->heard_ns) / 1000000000;
	json_t *all = json_array();

	if (*state->taken)
		json_array_append_new(all, json_string(state->taken));
	if (*state->apart)
		json_array_append_new(all, json_string(state->apart));
	if (!state->heard_ns)
		json_array_append_new(all,
				      json_sprintf("the store of the cluster was never heard: %s",
						   state->trouble));
	else if (silent_s >= SILENT_S)
		json_array_append_new(
			all,
			json_sprintf("the store of the cluster has not been heard for %ju s; what "
				     "this node knows of others is as old%s%s",
				     (uintmax_t)silent_s, *state->trouble ? ": " : "",
				     state->trouble));
	else if (*state->trouble)
		json_array_append_new(all,
				      json_sprintf("the store of the cluster does not take this "
						   "node's report: %s",
						   state->trouble));
	return all;
}

json_t *results_cluster(const struct core *c, const struct sharing *s)
{
	const struct config_cluster *config = &core_config(c)->cluster;
	struct sharing_state state;
	json_t *heard;

	if (!s)
		return json_null();
	state = sharing_state(s);
	heard = state.heard_ns ? json_real((double)(clock_now_ns() - state.heard_ns) / 1e9)
			       : json_null();
	return json_pack(
		"{ss ss ss so sb ss so so so so so ss}", "name", config->name, "node", config->node,
		"store", state.kind, "heard_s", heard, "reported", state.is_reported, "trouble",
		state.trouble, "nodes", results_number(sharing_picture(s)->nodes), "reports",
		results_number(state.reports), "report_bytes", results_number(state.bytes), "nears",
		results_number(state.nears), "troubles", troubles_of(&state), "apart", state.apart);
}

/* Of tenants of the cluster, at this node. */
static void tenant_troubles(const struct report *r, json_t *troubles)
{
	for (unsigned int i = 0; i < r->tenants; i++)
		if (!r->tenant[i].held && !r->tenant[i].apart)
			json_array_append_new(
				troubles, json_sprintf("tenant %s of the cluster has not the slots "
						       "or ingress points here that it is to have, "
						       "but %u slots: %s",
						       r->tenant[i].name, r->tenant[i].slots,
						       r->tenant[i].why));
}

void results_cluster_troubles(const struct sharing *s, const struct placing *p,
			      const struct steering *steering, const struct core *c, uint64_t seen,
			      json_t *troubles)
{
	const struct sharing_state state = s ? sharing_state(s) : (struct sharing_state){ 0 };
	json_t *of_store;
	struct why why;
	int at;

	if (!s)
		return;
	at = picture_place(sharing_picture(s), core_config(c)->cluster.node);
	if (placing_left(p, seen, &why))
		json_array_append_new(troubles, json_string(why.text));
	if (*steering_trouble(steering))
		json_array_append_new(troubles,
				      json_sprintf("packets take the ways of routing here: %s",
						   steering_trouble(steering)));
	if (!*state.taken && at >= 0)
		tenant_troubles(sharing_picture(s)->report[at], troubles);
	of_store = troubles_of(&state);
	json_array_extend(troubles, of_store);
	json_decref(of_store);
}

int results_no_cluster(const struct core *c, struct why *why)
{
	return why_say(why, -ENOENT,
		       "this node is in no cluster: give it a name at cluster.node in %s, and "
		       "restart tallyd",
		       core_path(c));
}

/* Which way packets for `to` leave `at`, where routes say that. */
static int ways(const struct picture *p, const struct drawing *d, json_t **ret)
{
	_cleanup_(freep) struct way *way = NULL;
	unsigned int count = 0;
	int r = ways_make(p, d, &way, &count);

	*ret = json_array();
	for (unsigned int i = 0; r == 0 && i < count && count <= WAYS_SHOWN_MAX; i++) {
		const struct picture_cable *c = &d->cable[way[i].cable];

		json_array_append_new(*ret, json_pack("[sss]", d->machine[way[i].at].name,
						      d->machine[way[i].to].name,
						      d->machine[c->end[!way[i].end]].name));
	}
	return r;
}

int results_topology(const struct core *c, const struct sharing *s, json_t **ret, struct why *why)
{
	_cleanup_(drawing_close) struct drawing d = { 0 };
	json_t *machines, *cables, *paths = NULL;
	int r;

	if (!s)
		return results_no_cluster(c, why);
	r = drawing_make(sharing_picture(s), &d);
	if (r == 0)
		r = ways(sharing_picture(s), &d, &paths);
	if (r < 0) {
		json_decref(paths);
		return r;
	}
	machines = json_array();
	cables = json_array();
	for (unsigned int i = 0; i < d.machines; i++)
		json_array_append_new(machines, machine(sharing_picture(s), &d.machine[i]));
	for (unsigned int i = 0; i < d.cables; i++)
		json_array_append_new(cables, cable(&d, &d.cable[i]));
	*ret = json_pack("{so so so so}", "cluster", results_cluster(c, s), "machines", machines,
			 "links", cables, "ways", paths);
	return 0;
}

/* --- jobs ------------------------------------------------------------------------------------ */

/* As people want it in a word. */
static const char *const state_words[STANDING_COUNT] = {
	[STANDING_FORMING] = "forming",	      [STANDING_DUE] = "to be placed",
	[STANDING_PLACED] = "placed",	      [STANDING_RUNNING] = "running",
	[STANDING_SILENT] = "root is silent",
};

static const char *state_word(const struct shared_job *j, const struct picture *p)
{
	const struct report *elsewhere = standing_elsewhere(j, p);
	const struct report_job *there = elsewhere ? standing_at(j, elsewhere)
						   : standing_there(j, p);

	return there && there->in_software ? "in software" : state_words[standing_of(j, p)];
}

static json_t *weighed(const struct wanted_weighed *w, unsigned int count)
{
	json_t *all = json_array();

	for (; count; w++, count--)
		json_array_append_new(all, json_pack("{ss ss ss ss ss}", "node", w->node, "total",
						     w->total, "bytes", w->bytes, "use", w->use,
						     "time", w->time));
	return all;
}

/* Does the node sum for the job below its root? */
static bool is_inner(const struct report *r, const char *job)
{
	for (unsigned int i = 0; i < r->jobs; i++)
		if (r->job[i].inner && !strcmp(r->job[i].name, job))
			return r->job[i].runs && !r->job[i].in_software;
	return false;
}

static json_t *branch(const struct network *n, const struct branch *b, const char *job)
{
	const struct picture_machine *m = &n->drawing.machine[b->machine];
	const struct picture_cable *c = b->depth ? &n->drawing.cable[b->link / 2] : NULL;
	const bool sums = !b->depth ||
			  (m->kind == PICTURE_NODE && is_inner(n->picture->report[m->node], job));

	return json_pack("{ss so sb so so so so}", "name", m->name, "depth",
			 results_number(b->depth), "sums", sums, "workers",
			 results_number(b->workers), "rate_mbps",
			 results_number(c ? c->rate_mbps : 0), "up_bytes_per_second",
			 results_number(c ? c->load[b->link % 2] : 0), "down_bytes_per_second",
			 results_number(c ? c->load[!(b->link % 2)] : 0));
}

/* The paths from its workers to its root. Empty, where these are not in the picture. */
static json_t *tree(const struct picture *p, const struct shared_job *j)
{
	_cleanup_(network_close) struct network n = { 0 };
	_cleanup_(freep) struct branch *b = NULL;
	unsigned int count = 0;
	json_t *all = json_array();
	uint32_t root;

	if (network_make(p, &n) < 0)
		return all;
	root = network_node(&n, j->place.root);
	if (root != GRAPH_NONE)
		branches_make(&n, j->place.worker, j->place.workers, root, &b, &count);
	for (unsigned int i = 0; i < count; i++)
		json_array_append_new(all, branch(&n, &b[i], j->name));
	return all;
}

/* Of several roots, what part of each call is this one's; 0: nobody knows yet. */
static double share(const struct shared *s, const struct shared_job *j)
{
	unsigned int all = 0;

	if (!j->job.roots)
		return 1;
	for (unsigned int i = 1; i <= j->job.roots; i++) {
		const struct shared_job *root = shared_root(s, j, i);

		if (!root || !shared_is_placed(root))
			return 0;
		all += root->place.share ? root->place.share : 1;
	}
	return (double)(j->place.share ? j->place.share : 1) / all;
}

static void job_lates(const struct report *r, const struct shared_job *j, bool inner,
		      bool told[TALLY_WORKERS_MAX], json_t *into)
{
	for (unsigned int i = 0; i < r->jobs; i++) {
		const struct report_job *there = &r->job[i];

		if (there->id != j->job.id || there->inner != inner)
			continue;
		for (unsigned int k = 0; k < there->lates; k++) {
			const struct report_late *l = &there->late[k];

			if (told[l->rank])
				continue;
			told[l->rank] = true;
			json_array_append_new(into, json_pack("{so so ss}", "rank",
							      results_number(l->rank), "percent",
							      results_number(l->percent), "node",
							      r->node));
		}
	}
}

/* An inner node knows which one of its ranks it is, of which its root knows only that it is one of
 * them: so those come first. */
static json_t *lates(const struct picture *p, const struct shared_job *j)
{
	bool told[TALLY_WORKERS_MAX] = { false };
	json_t *all = json_array();

	for (unsigned int pass = 0; pass < 2; pass++)
		for (unsigned int i = 0; i < p->nodes; i++)
			job_lates(p->report[i], j, pass == 0, told, all);
	return all;
}

static json_t *refusals(const struct shared_job *j)
{
	json_t *all = json_array();

	for (unsigned int i = 0; i < j->refusals; i++)
		json_array_append_new(all, json_pack("{ss ss}", "node", j->refusal[i].node, "why",
						     j->refusal[i].why));
	return all;
}

/* Of one that was named: all of them together would take too long. */
static json_t *shared_job(const struct sharing *s, const struct placing *p,
			  const struct steering *steering, const struct shared_job *j, bool named)
{
	struct why outlook = { "" };
	const bool placed = shared_is_placed(j);
	const struct report_job *there = standing_there(j, sharing_picture(s));
	json_t *refused = json_array();

	if (named)
		placing_outlook(p, j, &outlook);
	for (unsigned int i = 0; i < j->refusals; i++)
		json_array_append_new(refused, json_string(j->refusal[i].node));
	return json_pack(
		"{ss so ss ss so so so so so ss so ss so so so ss so so so so}", "name", j->name,
		"id", results_number(j->job.id), "tenant", j->job.tenant, "state",
		state_word(j, sharing_picture(s)), "workers", results_number(j->job.workers),
		"waiting", results_number(j->workers), "roots",
		results_number(j->job.roots ? j->job.roots : 1), "which",
		results_number(j->job.roots ? j->job.which : 1), "share",
		json_real(share(placing_shared(p), j)), "root", placed ? j->place.root : "",
		"address",
		placed ? results_printed(address_print, &j->place.address) : json_string(""), "why",
		placed ? j->place.why : "", "chunks_per_second",
		results_number(there ? there->chunks_per_second : 0), "refused", refused,
		"refusals", named ? refusals(j) : json_array(), "outlook", outlook.text, "weighed",
		named && placed ? weighed(j->place.weighed, j->place.weighs) : json_array(), "tree",
		named && placed ? tree(sharing_picture(s), j) : json_array(), "ways",
		named ? results_ways(j, steering) : json_null(), "late",
		lates(sharing_picture(s), j));
}

/* A tenant that this node has not is one that only those see who see all. */
static bool is_seen(const struct core *c, const char *name, uint64_t seen)
{
	struct why ignored;
	const int tenant = books_tenant_find(core_books(c), name, &ignored);

	return seen == UINT64_MAX || (tenant >= 0 && results_is_seen(seen, tenant));
}

int results_shared(const struct core *c, const struct sharing *s, const struct placing *p,
		   const struct steering *steering, const struct request_filter *filter,
		   uint64_t seen, json_t **ret, struct why *why)
{
	const struct shared *shared = placing_shared(p);
	json_t *jobs;

	if (!s || !shared)
		return results_no_cluster(c, why);
	jobs = json_array();
	for (unsigned int i = 0; i < shared->jobs; i++) {
		const struct shared_job *j = shared->job[i];

		if (j->revision && is_seen(c, j->job.tenant, seen) &&
		    (!*filter->job || !strcmp(filter->job, j->name)))
			json_array_append_new(jobs, shared_job(s, p, steering, j, *filter->job));
	}
	if (*filter->job && !json_array_size(jobs)) {
		json_decref(jobs);
		return why_say(why, -ENOENT, "the cluster has no job %s (tallyctl cluster)",
			       filter->job);
	}
	*ret = json_pack("{so ss so so}", "cluster", results_cluster(c, s), "leader",
			 placing_leader(p), "jobs", jobs, "tenants",
			 results_tenants_seen(c, s, p, "", seen));
	return 0;
}

/* --- what has happened ----------------------------------------------------------------------- */

static json_t *event(const struct cluster_event *e)
{
	return json_pack("{sf ss ss ss ss ss so}", "time_s", (double)e->at_ms / 1e3, "kind",
			 events_words[e->kind], "job", e->job, "node", e->node, "from", e->from,
			 "why", e->why, "weighed", weighed(e->weighed, e->weighs));
}

int results_events(const struct core *c, const struct sharing *s, uint64_t seen, json_t **ret,
		   struct why *why)
{
	const struct events *e = s ? sharing_events(s) : NULL;
	json_t *all;

	if (!e)
		return results_no_cluster(c, why);
	all = json_array();
	for (unsigned int i = 0; i < events_known(e); i++) {
		const struct cluster_event *one = events_at(e, i);

		if (!*one->job || is_seen(c, one->tenant, seen))
			json_array_append_new(all, event(one));
	}
	*ret = json_pack("{so so}", "cluster", results_cluster(c, s), "events", all);
	return 0;
}
