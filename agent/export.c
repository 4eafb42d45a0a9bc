// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What Prometheus is told: names for the numbers of the last sample (docs/metrics.md). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agent/cluster/standing.h"
#include "agent/core/metrics.h"
#include "agent/edge/log.h"
#include "agent/edge/metrics_http.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/file.h"
#include "export.h"
#include "placing.h"

enum {
	TIMER_SLACK_US = 10000,
	STATM_BYTES_MAX = 4096,
	ROW_GONE = 1, /* of each sample; see dataplane_rows() */
};

struct exporter {
	const struct core *core;
	const struct carrier *carrier;
	const struct sampler *sampler;
	const struct sharing *sharing; /* NULL: no cluster; then `placing` is none either */
	const struct placing *placing;
	sd_event *loop;
	struct metrics_http *http; /* NULL: another program has the port */
	sd_event_source *io, *timer;
};

/* Everything that a snapshot points to. */
struct exposition {
	struct metrics_row row[METRICS_ROWS_MAX];
	struct tally_counter gone[TALLY_OUTCOME_COUNT];
	struct metrics_job job[TALLY_JOBS_MAX];
	struct metrics_tenant tenant[TALLY_TENANTS_MAX];
	const struct traffic_link_flow *link[TALLY_PORTS_MAX];
	char build[24];
	struct metrics_snapshot snapshot;
};

/* --- names ----------------------------------------------------------------------------------- */

/* Jobs and ports that went since the sample are counted where the next one will find them. */
static void gone_add(struct exposition *e, const struct traffic_row *row)
{
	for (unsigned int k = 0; k < TALLY_OUTCOME_COUNT; k++) {
		e->gone[k].packet += row->outcome[k].packet;
		e->gone[k].byte += row->outcome[k].byte;
	}
}

static void rows_fill(const struct exporter *x, struct exposition *e)
{
	const struct books *b = core_books(x->core);
	size_t n = 0;

	for (unsigned int i = 0; i < x->sampler->rows_count && n < METRICS_ROWS_MAX; i++) {
		const struct traffic_row *row = &x->sampler->rows[i];
		const struct job *j = row->job ? books_job_numbered(b, row->job) : NULL;
		const char *port = core_port_name(x->core, row->ifindex);
		const bool gone = (row->job && !j) || (row->ifindex && !*port);

		if (row->again)
			continue;
		if (i == ROW_GONE || gone)
			gone_add(e, row);
		if (gone)
			continue;
		e->row[n++] = (struct metrics_row){
			.job = j	       ? j->name
			       : i == ROW_GONE ? METRICS_GONE_JOBS
					       : METRICS_NO_JOB,
			.tenant = j ? j->tenant_name : "",
			.port = port,
			.outcome = i == ROW_GONE ? e->gone : row->outcome,
		};
	}
	e->snapshot.rows = e->row;
	e->snapshot.row_count = n;
}

static enum metrics_job_state state_of(const struct job *j, uint32_t joined)
{
	if (job_is_suspended(j))
		return METRICS_JOB_SUSPENDED;
	if (job_is_running(j))
		return METRICS_JOB_RUNNING;
	return joined ? METRICS_JOB_FORMING : METRICS_JOB_WAITING;
}

static void jobs_fill(const struct exporter *x, struct exposition *e)
{
	const struct carry *carry = carrier_carry(x->carrier);
	const struct books *b = core_books(x->core);

	for (unsigned int i = 0; i < b->jobs; i++) {
		const struct job *j = b->job[i];
		const struct traffic_flow *flow = traffic_job(x->sampler->traffic, j->id);
		uint32_t joined = job_joined(j);

		e->job[i] = (struct metrics_job){
			.name = j->name,
			.tenant = j->tenant_name,
			.state = state_of(j, joined),
			.workers = j->workers,
			.joined = joined,
			.slots = job_slots(j),
		};
		e->job[i].lates = lateness_of(x->sampler->lateness, j, e->job[i].late);
		if (flow)
			e->job[i].rates = flow->rates;
		e->snapshot.slots_used += job_slots(j);
		e->snapshot.runs_in_software += j->run_window && j->spilled;
		e->snapshot.runs_borrowing += job_is_running(j) && j->borrows;
		e->snapshot.runs_inner += job_is_running(j) && j->document;
	}
	for (const struct carry_way *w = carry ? carry->first : NULL; w; w = w->next)
		e->snapshot.inner_nodes_away += carry_is_away(w);
	e->snapshot.jobs = e->job;
	e->snapshot.job_count = b->jobs;
}

static void tenants_fill(const struct exporter *x, struct exposition *e)
{
	const struct books *b = core_books(x->core);
	size_t n = 0;

	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++) {
		const struct traffic_flow *flow = traffic_tenant(x->sampler->traffic, i);

		if (!*b->tenant[i].is.name)
			continue;
		e->tenant[n] = (struct metrics_tenant){
			.name = b->tenant[i].is.name,
			.slots_quota = books_quota(b, i),
			.slots_used = books_held(b, i),
			.slots_lent = books_lent(b, i),
			.software_bytes = x->sampler->software.tenant_bytes[i],
		};
		if (flow)
			e->tenant[n].rates = flow->rates;
		n++;
	}
	e->snapshot.tenants = e->tenant;
	e->snapshot.tenant_count = n;
}

static void links_fill(const struct exporter *x, struct exposition *e)
{
	unsigned int count;
	const struct dataplane_port *p = core_ports(x->core, &count);
	size_t n = 0;

	e->snapshot.ports = p;
	e->snapshot.port_count = count;
	for (; count; p++, count--) {
		e->link[n] = traffic_link_flow(x->sampler->traffic, p->ifindex);
		n += e->link[n] != NULL;
	}
	e->snapshot.links = e->link;
	e->snapshot.link_count = n;
}

/* --- the agent itself ------------------------------------------------------------------------ */

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

static uint64_t resident_bytes(void)
{
	_cleanup_(freep) char *text = NULL;
	const char *resident;
	size_t length;

	if (file_read("/proc/self/statm", STATM_BYTES_MAX, &text, &length) < 0)
		return 0;
	resident = strchr(text, ' '); /* behind the whole size, in pages */
	return resident ? strtoull(resident, NULL, 10) * sysconf(_SC_PAGESIZE) : 0;
}

static void self_fill(const struct exporter *x, struct exposition *e)
{
	const struct books *b = core_books(x->core);
	struct metrics_snapshot *s = &e->snapshot;
	struct timespec now;
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(e->build, sizeof(e->build), "%016llx", (unsigned long long)dataplane_build());
	s->version = TALLY_VERSION_TEXT;
	s->build = e->build;
	s->slots_total = b->slots;
	s->slots_reserved = books_reserved(b);
	s->counts = *core_counts(x->core);
	s->cordoned = b->cordoned;
	s->software_bytes = x->sampler->software.bytes;
	s->software_bytes_max = x->sampler->software.bytes_max;
	s->software_evicted = x->sampler->software.evicted;
	s->software_full = x->sampler->software.full;
	s->delays = x->sampler->delays;
	s->traffic = traffic_stats(x->sampler->traffic);
	s->link_events_lost = netlink_links_lost(x->sampler->links);
	s->sampling_seconds = (double)x->sampler->sampling_ns / 1e9;
	s->looking_seconds = (double)lateness_cpu_ns(x->sampler->lateness) / 1e9;
	s->cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
	s->start_seconds = (double)now.tv_sec -
			   (double)(clock_now_ns() - x->sampler->opened_ns) / 1e9;
	s->resident_bytes = resident_bytes();
}

/* --- the cluster ----------------------------------------------------------------------------- */

static void cluster_fill(const struct exporter *x, struct metrics_cluster *ret)
{
	_Static_assert((int)METRICS_CLUSTER_STATES == (int)STANDING_COUNT &&
			       (int)METRICS_CLUSTER_SILENT == (int)STANDING_SILENT,
		       "the same states in the same order");
	const struct shared *shared = placing_shared(x->placing);
	struct placing_counts counts;
	struct sharing_state state;

	if (!x->sharing || !shared)
		return;
	state = sharing_state(x->sharing);
	counts = placing_counts(x->placing);
	*ret = (struct metrics_cluster){
		.is_one = true,
		.heard_seconds = (double)(clock_now_ns() - (state.heard_ns
								    ? state.heard_ns
								    : x->sampler->opened_ns)) /
				 1e9,
		.leads = !strcmp(placing_leader(x->placing), core_config(x->core)->cluster.node),
		.nodes = sharing_picture(x->sharing)->nodes,
		.reports = state.reports,
		.report_bytes = state.bytes,
		.placed = counts.placed,
		.moved = counts.moved,
		.ways = counts.ways,
		.kinds = EVENTS_KIND_COUNT,
		.kind = events_words,
		.events = sharing_events(x->sharing)->count,
	};
	for (unsigned int i = 0; i < shared->jobs; i++)
		if (shared->job[i]->revision)
			ret->jobs[standing_of(shared->job[i], sharing_picture(x->sharing))]++;
}

static int exposition_text(void *context, char **ret, size_t *ret_length)
{
	_cleanup_(freep) struct exposition *e = calloc(1, sizeof(*e));
	const struct exporter *x = context;

	if (!e)
		return -ENOMEM;
	rows_fill(x, e);
	jobs_fill(x, e);
	tenants_fill(x, e);
	links_fill(x, e);
	self_fill(x, e);
	cluster_fill(x, &e->snapshot.cluster);
	return metrics_print(&e->snapshot, ret, ret_length);
}

/* --- in the loop ----------------------------------------------------------------------------- */

static void timer_set(struct exporter *x)
{
	uint64_t ns = metrics_http_timeout_ns(x->http);

	if (ns == UINT64_MAX) {
		sd_event_source_set_enabled(x->timer, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time_relative(x->timer, ns / 1000);
	sd_event_source_set_enabled(x->timer, SD_EVENT_ONESHOT);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *data)
{
	struct exporter *x = data;

	metrics_http_run(x->http);
	timer_set(x);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t us, void *data)
{
	return on_io(source, -1, 0, data);
}

static void exporter_unlisten(struct exporter *x)
{
	x->io = sd_event_source_disable_unref(x->io);
	x->timer = sd_event_source_disable_unref(x->timer);
	metrics_http_close(TAKE_PTR(x->http));
}

static int taken_say(const struct sockaddr_storage *listen, struct why *why)
{
	char text[ADDRESS_BYTES];

	endpoint_print(listen, text, sizeof(text));
	return why_say(why, -EADDRINUSE,
		       "another program listens at %s (ss -tlnp 'sport = :%u'), so nobody can read "
		       "metrics there; tallyd takes the port when it is free",
		       text, endpoint_port(listen));
}

int exporter_listen(struct exporter *x, struct why *why)
{
	struct metrics_http_options options = { .text = exposition_text, .context = x };
	const struct sockaddr_storage *listen;
	int r;

	if (!x || x->http)
		return 0;
	listen = &core_config(x->core)->metrics;
	r = metrics_http_open((const void *)listen, &options, &x->http, why);
	if (r == -EADDRINUSE)
		return taken_say(listen, why);
	if (r == 0)
		r = sd_event_add_io(x->loop, &x->io, metrics_http_fd(x->http), EPOLLIN, on_io, x);
	if (r >= 0)
		r = sd_event_add_time_relative(x->loop, &x->timer, CLOCK_MONOTONIC, 0,
					       TIMER_SLACK_US, on_timer, x);
	if (r < 0)
		exporter_unlisten(x);
	return r < 0 ? r : 0;
}

int exporter_open(sd_event *loop, const struct core *core, const struct carrier *carrier,
		  const struct sampler *sampler, const struct sharing *sharing,
		  const struct placing *placing, struct exporter **ret, struct why *why)
{
	struct exporter *x;
	int r;

	if (!core_config(core)->metrics.ss_family)
		return 0;
	*ret = x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	*x = (struct exporter){
		.loop = loop,
		.core = core,
		.carrier = carrier,
		.sampler = sampler,
		.sharing = sharing,
		.placing = placing,
	};
	r = exporter_listen(x, why);
	return r == -EADDRINUSE ? 0 : r;
}

void exporter_close(struct exporter *x)
{
	if (x)
		exporter_unlisten(x);
	free(x);
}
