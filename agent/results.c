// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/address.h"
#include "common/clock.h"
#include "common/ranks.h"
#include "results_private.h"

json_t *results_number(uint64_t n) { return json_integer((json_int_t)n); }

/* Rates are rounded: nobody needs a hundredth of a packet a second. */
static json_t *rate(double r) { return json_real((double)(int64_t)(r * 100 + 0.5) / 100); }

json_t *results_printed(void (*print)(const struct sockaddr_storage *, char *, size_t),
			const struct sockaddr_storage *address)
{
	char text[ADDRESS_BYTES];

	print(address, text, sizeof(text));
	return json_string(text);
}

/* --- status ---------------------------------------------------------------------------------- */

static json_t *slots(const struct books *b)
{
	uint32_t used = 0, lent = 0;

	for (unsigned int i = 0; i < b->jobs; i++) {
		used += job_slots(b->job[i]);
		lent += job_is_lent(b->job[i]) ? job_slots(b->job[i]) : 0;
	}
	return json_pack("{so so so so}", "total", results_number(b->slots), "reserved",
			 results_number(books_reserved(b)), "used", results_number(used), "lent",
			 results_number(lent));
}

static json_t *ports(const struct core *c, const struct sampler *s)
{
	unsigned int count;
	const struct dataplane_port *p = core_ports(c, &count);
	json_t *all = json_array();

	for (; count; p++, count--) {
		const char *mode = p->ifindex ? config_modes[p->mode] : "gone";
		const struct traffic_link_flow *f = traffic_link_flow(s->traffic, p->ifindex);

		json_array_append_new(all, json_pack("{ss so ss ss so sb}", "name", p->name,
						     "ifindex", results_number(p->ifindex), "mode",
						     mode, "why", p->refused.text, "beside",
						     results_number(p->beside), "down",
						     f && !(f->link.up && f->link.carrier)));
	}
	return all;
}

static json_t *joining(const struct config *c)
{
	json_t *all = json_array();

	if (*c->join_socket)
		json_array_append_new(all, json_string(c->join_socket));
	for (unsigned int i = 0; i < c->listens; i++)
		json_array_append_new(all, results_printed(endpoint_print, &c->listen[i]));
	return all;
}

static json_t *services(const struct config *c)
{
	json_t *all = json_array();

	for (unsigned int i = 0; i < c->services; i++)
		json_array_append_new(all, results_printed(address_print, &c->service[i]));
	return all;
}

enum runs {
	RUNS_ALL,
	RUNS_IN_SOFTWARE,
	RUNS_BORROWING, /* slots of the pool */
	RUNS_INNER, /* whose root is elsewhere */
};

static json_t *runs_count(const struct books *b, enum runs which)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < b->jobs; i++)
		n += job_is_running(b->job[i]) &&
		     (which != RUNS_IN_SOFTWARE || b->job[i]->spilled) &&
		     (which != RUNS_BORROWING || (b->job[i]->borrows && b->pool)) &&
		     (which != RUNS_INNER || b->job[i]->document);
	return results_number(n);
}

static unsigned int tenants_count(const struct books *b)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		n += *b->tenant[i].is.name != '\0';
	return n;
}

/* Maps whose entries may run out, as far as the core knows them now. */
static json_t *maps(const struct core *c)
{
	const struct tables *t = core_tables(c);
	uint32_t gates = 0, copies = 0;

	for (unsigned int i = 0; t && i < t->jobs; i++) {
		gates += t->job[i].gates;
		copies += t->job[i].copies;
	}
	return json_pack("{s{si si} s{si si} s{si si}}", "jobs", "used", t ? t->jobs : 0, "max",
			 TALLY_JOBS_MAX, "gates", "used", gates, "max", TALLY_GATES_MAX, "children",
			 "used", copies, "max", TALLY_CHILDREN_MAX);
}

/* Without a job, nobody can say whose it is: that is for those who may see all. */
static void away_say(const struct books *b, const struct carry_way *w, uint64_t seen, json_t *all)
{
	const struct job *j = books_job_numbered(b, w->id);
	struct why text;

	j = j && strcmp(j->name, w->job) == 0 ? j : NULL; /* numbers are given again */
	if (!carry_is_away(w) || (j ? !results_is_seen(seen, j->tenant) : seen != UINT64_MAX))
		return;
	carry_explain(w, j, &text);
	json_array_append_new(all, json_string(text.text));
}

static void forgotten_say(const struct books *b, const struct carry *carry, uint64_t seen,
			  json_t *all)
{
	struct why text, ignored;

	for (const struct carry_tenant *t = carry ? carry_forgotten(carry, NULL, &text) : NULL; t;
	     t = carry_forgotten(carry, t, &text))
		if (results_tenant_find(b, t->name, seen, &ignored) >= 0 || seen == UINT64_MAX)
			json_array_append_new(all, json_string(text.text));
}

static json_t *troubles(const struct core *c, const struct carry *carry, uint64_t seen)
{
	const struct books *b = core_books(c);
	json_t *all = json_array();
	struct why text;

	for (unsigned int i = 0; i < CORE_TROUBLES; i++)
		if (core_trouble_seen(c, i, seen, &text))
			json_array_append_new(all, json_string(text.text));
	for (unsigned int i = 0; i < b->jobs; i++) {
		const struct job *j = b->job[i];

		if (j->document && !job_is_running(j) && *j->trouble.text &&
		    results_is_seen(seen, j->tenant))
			json_array_append_new(
				all, json_sprintf("job %s: its run waits at this inner node: %s",
						  j->name, j->trouble.text));
		if (j->run_window && *j->astray.text && results_is_seen(seen, j->tenant))
			json_array_append_new(all,
					      json_sprintf("job %s: %s", j->name, j->astray.text));
		if (books_run_check(&b->tenant[j->tenant].is, j, &text) < 0 &&
		    results_is_seen(seen, j->tenant))
			json_array_append_new(all, json_string(text.text));
		if (j->run_window && *j->left_out.text && results_is_seen(seen, j->tenant))
			json_array_append_new(all, json_sprintf("job %s: its tree lacks nodes: %s",
								j->name, j->left_out.text));
	}
	for (const struct carry_way *w = carry ? carry->first : NULL; w; w = w->next)
		away_say(b, w, seen, all);
	forgotten_say(b, carry, seen, all);
	return all;
}

json_t *results_status(const struct core *core, const struct carry *carry, const struct sampler *s,
		       uint64_t seen)
{
	const struct config *c = core_config(core);
	const struct books *b = core_books(core);
	uint64_t uptime_ns = clock_now_ns() - s->opened_ns;
	char build[24];

	snprintf(build, sizeof(build), "%016llx", (unsigned long long)dataplane_build());
	return json_pack("{ss ss sb so so so so ss so so ss so so so so so so so so so ss so}",
			 "version", TALLY_VERSION_TEXT, "build", build, "cordoned", b->cordoned,
			 "runs", runs_count(b, RUNS_ALL), "runs_in_software",
			 runs_count(b, RUNS_IN_SOFTWARE), "runs_borrowing",
			 runs_count(b, RUNS_BORROWING), "runs_inner", runs_count(b, RUNS_INNER),
			 "config", core_path(core), "pid", results_number(getpid()), "uptime_s",
			 results_number(uptime_ns / 1000000000), "pin", c->pin, "troubles",
			 troubles(core, carry, seen), "maps", maps(core), "ports", ports(core, s),
			 "slots", slots(b), "tenants", results_number(tenants_count(b)), "jobs",
			 results_number(b->jobs), "services", services(c), "join", joining(c),
			 "metrics",
			 c->metrics.ss_family ? results_printed(endpoint_print, &c->metrics)
					      : json_string(""),
			 "not_saved", core_not_saved(core), "sampling_core_percent",
			 rate(uptime_ns ? 100.0 * s->sampling_ns / uptime_ns : 0));
}

/* --- tenants --------------------------------------------------------------------------------- */

bool results_is_seen(uint64_t seen, unsigned int tenant) { return seen >> tenant & 1; }

int results_tenant_find(const struct books *b, const char *name, uint64_t seen, struct why *why)
{
	int index = books_tenant_find(b, name, why);

	if (seen == UINT64_MAX || (index >= 0 && results_is_seen(seen, index)))
		return index;
	return why_say(why, -ENOENT, "there is no tenant %s that you may see", name);
}

static json_t *points(const struct tenant *t)
{
	json_t *all = json_array();
	char text[TENANT_POINT_BYTES];

	for (unsigned int i = 0; i < t->points; i++) {
		tenant_point_print(&t->point[i], text, sizeof(text));
		json_array_append_new(all, json_string(text));
	}
	return all;
}

json_t *results_tenant(const struct books *b, unsigned int index)
{
	const struct books_tenant *t = &b->tenant[index];
	uint32_t quota = books_quota(b, index), held = books_held(b, index);
	unsigned int jobs = 0;

	for (unsigned int i = 0; i < b->jobs; i++)
		jobs += b->job[i]->tenant == index;
	return json_pack("{ss ss ss so so so sb so so so so so}", "name", t->is.name, "from",
			 t->configured	   ? "config"
			 : t->is.clustered ? "cluster"
					   : "runtime",
			 "group", t->is.group, "slots", results_number(quota), "slots_used",
			 results_number(held), "slots_lent", results_number(books_lent(b, index)),
			 "draining", held > quota, "packets_per_second",
			 results_number(t->is.packets_per_second), "bytes_per_second",
			 results_number(t->is.bytes_per_second), "priority",
			 results_number(t->is.priority), "ingress", points(&t->is), "jobs",
			 results_number(jobs));
}

int results_tenants(const struct books *b, const struct request_filter *filter, uint64_t seen,
		    json_t **ret, struct why *why)
{
	json_t *all;

	if (*filter->tenant && results_tenant_find(b, filter->tenant, seen, why) < 0)
		return -ENOENT;
	all = *ret = json_array();
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++) {
		const char *name = b->tenant[i].is.name;

		if (*name && results_is_seen(seen, i) &&
		    (!*filter->tenant || !strcmp(filter->tenant, name)))
			json_array_append_new(all, results_tenant(b, i));
	}
	return 0;
}

/* --- traffic --------------------------------------------------------------------------------- */

static const struct traffic_flow nothing;

static const struct traffic_flow *flow_or_nothing(const struct traffic_flow *f)
{
	return f ? f : &nothing;
}

static json_t *outcomes(const struct traffic_flow *f)
{
	const struct tally_counter *c = flow_or_nothing(f)->total;
	json_t *all = json_object();

	for (int i = 0; i < TALLY_OUTCOME_COUNT; i++)
		json_object_set_new(all, tally_outcome_name(i),
				    json_pack("{so so}", "packets", results_number(c[i].packet),
					      "bytes", results_number(c[i].byte)));
	return all;
}

/* NULL: the node has no such port, and `why` says so. */
static const struct dataplane_port *port_find(const struct core *c, const char *name,
					      struct why *why)
{
	unsigned int count;

	for (const struct dataplane_port *p = core_ports(c, &count); count; p++, count--)
		if (!strcmp(p->name, name))
			return p;
	why_say(why, -ENOENT, "%s is not one of the node's ports (tallyctl links)", name);
	return NULL;
}

/* Seconds since 1970 of a moment of the monotonic clock. */
static json_t *unix_time(uint64_t at_ns)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return rate((double)now.tv_sec + (double)now.tv_nsec / 1e9 -
		    (double)(clock_now_ns() - at_ns) / 1e9);
}

/* The keys of a moment's values, in the order of enum traffic_job_value and traffic_link_value. */
static const char *const job_keys[TRAFFIC_VALUES] = {
	"packets_per_second", "bytes_per_second",      "chunks_per_second",
	"refused_per_second", "duplicates_per_second",
};

static const char *const port_keys[TRAFFIC_VALUES] = {
	"receive_packets_per_second", "receive_bytes_per_second", "transmit_packets_per_second",
	"transmit_bytes_per_second", "backlog_bytes"
};

static json_t *history(const struct traffic_moment *moment, size_t n, const char *const *key)
{
	json_t *all = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *one = json_pack("{so}", "time_s", unix_time(moment[i].at_ns));

		for (unsigned int k = 0; k < TRAFFIC_VALUES; k++)
			json_object_set_new(one, key[k], rate(moment[i].value[k]));
		json_array_append_new(all, one);
	}
	return all;
}

int results_stats(const struct core *c, const struct sampler *s,
		  const struct request_filter *filter, uint64_t seen, json_t **ret, struct why *why)
{
	struct traffic_moment moment[TRAFFIC_HISTORY];
	const uint32_t most = filter->history;
	const struct dataplane_port *p;
	const struct job *j;
	int tenant;

	if (!!*filter->job + !!*filter->tenant + !!*filter->port > 1)
		return why_say(why, -EINVAL, "stats: one of job, tenant and port at a time");
	if (most && !*filter->job && !*filter->port)
		return why_say(why, -EINVAL, "stats: history: name a job or a port");
	if (*filter->job) {
		j = results_job_find(core_books(c), filter->job, seen, why);
		if (!j)
			return -ENOENT;
		*ret = most ? history(moment, traffic_job_history(s->traffic, j->id, moment, most),
				      job_keys)
			    : outcomes(traffic_job(s->traffic, j->id));
	} else if (*filter->port) {
		p = port_find(c, filter->port, why);
		if (!p)
			return -ENOENT;
		*ret = most ? history(moment,
				      traffic_link_history(s->traffic, p->ifindex, moment, most),
				      port_keys)
			    : outcomes(traffic_port(s->traffic, p->ifindex));
	} else if (*filter->tenant) {
		tenant = results_tenant_find(core_books(c), filter->tenant, seen, why);
		if (tenant < 0)
			return tenant;
		*ret = outcomes(traffic_tenant(s->traffic, tenant));
	} else {
		*ret = outcomes(traffic_node(s->traffic));
	}
	return 0;
}

static json_t *direction(const struct traffic_direction *d, const struct traffic_speed *s)
{
	return json_pack("{so so so so so so so}", "packets", results_number(d->packets), "bytes",
			 results_number(d->bytes), "dropped", results_number(d->dropped), "errors",
			 results_number(d->errors), "packets_per_second",
			 rate(s->packets_per_second), "bytes_per_second", rate(s->bytes_per_second),
			 "forecast_bytes_per_second", rate(s->forecast_bytes_per_second));
}

json_t *results_links(const struct core *c, const struct sampler *s)
{
	unsigned int count;
	const struct dataplane_port *p = core_ports(c, &count);
	json_t *all = json_array();

	for (; count; p++, count--) {
		const struct traffic_link_flow *f = traffic_link_flow(s->traffic, p->ifindex);
		const struct traffic_link *l;

		if (!f)
			continue;
		l = &f->link;
		json_array_append_new(
			all, json_pack("{ss so sb sb so so so so so so so}", "name", l->name,
				       "ifindex", results_number(l->ifindex), "up", l->up,
				       "carrier", l->carrier, "mtu", results_number(l->mtu),
				       "speed_mbps", results_number(l->speed_mbps), "receive",
				       direction(&l->receive, &f->receive), "transmit",
				       direction(&l->transmit, &f->transmit), "backlog_bytes",
				       results_number(l->backlog_bytes), "backlog_packets",
				       results_number(l->backlog_packets), "changes",
				       results_number(l->changes)));
	}
	return all;
}

static json_t *top_job(const struct books *b, const struct traffic *t, const struct job *j)
{
	const struct traffic_rates *r = &flow_or_nothing(traffic_job(t, j->id))->rates;

	return json_pack(
		"{ss ss ss ss sb sb sb so so so so so so so so so so so}", "name", j->name,
		"tenant", j->tenant_name, "state", results_job_state(j), "role",
		j->document ? "inner" : "root", "in_software", j->run_window && j->spilled,
		"borrows", results_borrows(b, j), "passes_on", results_passes_on(b, j), "below",
		results_number(results_below(j)), "epoch", results_number(j->epoch), "workers",
		results_number(j->workers), "joined", results_number(job_joined(j)), "slots",
		results_number(job_slots(j)), "packets_per_second", rate(r->packets_per_second),
		"bytes_per_second", rate(r->bytes_per_second), "forecast_bytes_per_second",
		rate(r->forecast_bytes_per_second), "chunks_per_second", rate(r->chunks_per_second),
		"duplicate_percent", rate(r->duplicate_percent), "refused_per_second",
		rate(r->refused_per_second));
}

static json_t *top_tenant(const struct books *b, const struct traffic *traffic, unsigned int i)
{
	const struct traffic_rates *r = &flow_or_nothing(traffic_tenant(traffic, i))->rates;
	const struct tenant *t = &b->tenant[i].is;

	return json_pack("{ss so so so so so so so}", "name", t->name, "slots",
			 results_number(books_quota(b, i)), "slots_used",
			 results_number(books_held(b, i)), "packets_per_second",
			 rate(r->packets_per_second), "bytes_per_second", rate(r->bytes_per_second),
			 "packets_limit", results_number(t->packets_per_second), "bytes_limit",
			 results_number(t->bytes_per_second), "refused_per_second",
			 rate(r->refused_per_second));
}

json_t *results_top(const struct core *c, const struct sampler *s, uint64_t seen)
{
	const struct books *b = core_books(c);
	json_t *jobs = json_array(), *tenants = json_array();
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	for (unsigned int i = 0; i < b->jobs; i++)
		if (results_is_seen(seen, b->job[i]->tenant))
			json_array_append_new(jobs, top_job(b, s->traffic, b->job[i]));
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		if (*b->tenant[i].is.name && results_is_seen(seen, i))
			json_array_append_new(tenants, top_tenant(b, s->traffic, i));
	return json_pack("{so so so so so so}", "time_s", results_number(now.tv_sec), "interval_s",
			 rate(core_config(c)->sample_ms / 1000.0), "slots", slots(b), "jobs", jobs,
			 "tenants", tenants, "links", results_links(c, s));
}
