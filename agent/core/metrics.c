// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "metrics.h"
#include "common/keys.h"
#include "common/owned.h"

/* --- the text format ------------------------------------------------------------------------- */

/* help: our own words, without backslashes and line feeds, which would have to be escaped. */
static void family(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP tally_%s %s\n# TYPE tally_%s %s\n", name, help, name, type);
}

/*
 * The format wants UTF-8 and would refuse all of the text for one byte that is not; names of
 * interfaces may have any. So bytes that are not printable ASCII are shown as "\xff".
 */
static void label_value(FILE *f, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)(text ? text : ""); *c; c++) {
		if (*c == '\n')
			fputs("\\n", f);
		else if (*c == '"' || *c == '\\')
			fprintf(f, "\\%c", *c);
		else if (*c < 0x20 || *c > 0x7e)
			fprintf(f, "\\\\x%02x", *c);
		else
			fputc(*c, f);
	}
}

/* {a="x",b="y"}, of pairs that end with NULL. */
static void labels(FILE *f, const char *const *pair)
{
	for (size_t i = 0; pair[i]; i += 2) {
		fprintf(f, "%c%s=\"", i ? ',' : '{', pair[i]);
		label_value(f, pair[i + 1]);
		fputc('"', f);
	}
	fputc('}', f);
}

#define LABELS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void whole(FILE *f, const char *name, const char *const *pair, uint64_t value)
{
	fprintf(f, "tally_%s", name);
	if (pair)
		labels(f, pair);
	fprintf(f, " %" PRIu64 "\n", value);
}

static void real(FILE *f, const char *name, const char *const *pair, double value)
{
	fprintf(f, "tally_%s", name);
	if (pair)
		labels(f, pair);
	fprintf(f, " %.10g\n", value);
}

/* A family with one value and no labels. */
static void single(FILE *f, const char *name, const char *type, const char *help, uint64_t value)
{
	family(f, name, type, help);
	whole(f, name, NULL, value);
}

/* --- what became of packets ------------------------------------------------------------------ */

static size_t rows_shown(const struct metrics_snapshot *s)
{
	return s->row_count < METRICS_ROWS_MAX ? s->row_count : METRICS_ROWS_MAX;
}

/* The row of no job shows every outcome there is; others what has happened to them. */
static void rows_print(FILE *f, const struct metrics_snapshot *s, const char *name, bool bytes)
{
	for (size_t i = 0; i < rows_shown(s); i++) {
		const struct metrics_row *row = &s->rows[i];

		for (unsigned int k = 0; k < TALLY_OUTCOME_COUNT; k++) {
			if (i > 0 && row->outcome[k].packet == 0)
				continue;
			whole(f, name,
			      LABELS("outcome", tally_outcome_name(k), "job", row->job, "tenant",
				     row->tenant, "port", row->port),
			      bytes ? row->outcome[k].byte : row->outcome[k].packet);
		}
	}
}

static void outcomes_print(FILE *f, const struct metrics_snapshot *s)
{
	fputs("# HELP tally_packets_total Packets by what became of them.", f);
	for (unsigned int k = 0; k < TALLY_OUTCOME_COUNT; k++)
		fprintf(f, " %s: %s.", tally_outcome_name(k), tally_outcome_meaning(k));
	fputs("\n# TYPE tally_packets_total counter\n", f);
	rows_print(f, s, "packets_total", false);
	family(f, "bytes_total", "counter",
	       "Bytes of whole frames by what became of them; outcomes as in packets_total.");
	rows_print(f, s, "bytes_total", true);
	single(f, "metrics_rows_omitted", "gauge",
	       "Jobs and ports that packets_total and bytes_total have no room for.",
	       s->row_count - rows_shown(s));
}

/* --- slots, jobs, tenants -------------------------------------------------------------------- */

static void slots_print(FILE *f, const struct metrics_snapshot *s)
{
	family(f, "slots", "gauge",
	       "Slots of the node: all, reserved by tenants' quotas, and in use by jobs.");
	whole(f, "slots", LABELS("state", "total"), s->slots_total);
	whole(f, "slots", LABELS("state", "reserved"), s->slots_reserved);
	whole(f, "slots", LABELS("state", "used"), s->slots_used);
	family(f, "tenant_slots", "gauge",
	       "Slots of a tenant: its quota, how many of that are in use, and those on loan.");
	for (size_t i = 0; i < s->tenant_count; i++) {
		const struct metrics_tenant *t = &s->tenants[i];

		whole(f, "tenant_slots", LABELS("tenant", t->name, "kind", "quota"),
		      t->slots_quota);
		whole(f, "tenant_slots", LABELS("tenant", t->name, "kind", "used"), t->slots_used);
		whole(f, "tenant_slots", LABELS("tenant", t->name, "kind", "lent"), t->slots_lent);
	}
	family(f, "tenant_software_memory_bytes", "gauge",
	       "Memory of a tenant's sums in software.");
	for (size_t i = 0; i < s->tenant_count; i++)
		whole(f, "tenant_software_memory_bytes", LABELS("tenant", s->tenants[i].name),
		      s->tenants[i].software_bytes);
}

static void lates_print(FILE *f, const struct metrics_snapshot *s)
{
	char rank[8];

	family(f, "job_late_part", "gauge",
	       "Of a rank that the others wait for: in which part of the looks it is missing.");
	for (size_t i = 0; i < s->job_count; i++)
		for (unsigned int k = 0; k < s->jobs[i].lates; k++) {
			snprintf(rank, sizeof(rank), "%u", s->jobs[i].late[k].rank);
			real(f, "job_late_part",
			     LABELS("job", s->jobs[i].name, "tenant", s->jobs[i].tenant, "rank",
				    rank),
			     s->jobs[i].late[k].percent / 100.0);
		}
}

static void jobs_print(FILE *f, const struct metrics_snapshot *s)
{
	static const char *const names[METRICS_JOB_STATES] = {
		[METRICS_JOB_WAITING] = "waiting",
		[METRICS_JOB_FORMING] = "forming",
		[METRICS_JOB_RUNNING] = "running",
		[METRICS_JOB_SUSPENDED] = "suspended",
	};
	uint64_t count[METRICS_JOB_STATES] = { 0 };

	for (size_t i = 0; i < s->job_count; i++)
		count[s->jobs[i].state]++;
	family(f, "jobs", "gauge", "Jobs by state.");
	for (unsigned int i = 0; i < METRICS_JOB_STATES; i++)
		whole(f, "jobs", LABELS("state", names[i]), count[i]);
	family(f, "job_workers", "gauge",
	       "Workers of a job: how many it has, and how many have joined.");
	for (size_t i = 0; i < s->job_count; i++) {
		const struct metrics_job *j = &s->jobs[i];

		whole(f, "job_workers", LABELS("job", j->name, "tenant", j->tenant, "kind", "all"),
		      j->workers);
		whole(f, "job_workers",
		      LABELS("job", j->name, "tenant", j->tenant, "kind", "joined"), j->joined);
	}
	family(f, "job_slots", "gauge", "Slots in use by a job.");
	for (size_t i = 0; i < s->job_count; i++)
		whole(f, "job_slots", LABELS("job", s->jobs[i].name, "tenant", s->jobs[i].tenant),
		      s->jobs[i].slots);
	lates_print(f, s);
}

/* One family for jobs and one for tenants. */
struct rate_family {
	const char *name;
	const char *help;
	size_t offset; /* in struct traffic_rates */
	double unit;
};

static_assert(TRAFFIC_FORECAST_S == 5, "the helps below say 5 seconds");

#define RATE(field) offsetof(struct traffic_rates, field)

static const struct rate_family rate_families[] = {
	{ "packets_per_second", "Packets that came in, smoothed over some seconds.",
	  RATE(packets_per_second), 1 },
	{ "bytes_per_second", "Bytes of whole frames that came in, smoothed over some seconds.",
	  RATE(bytes_per_second), 1 },
	{ "forecast_bytes_per_second", "What bytes_per_second is expected to be in 5 seconds.",
	  RATE(forecast_bytes_per_second), 1 },
	{ "chunks_per_second", "Sums that became whole, smoothed over some seconds.",
	  RATE(chunks_per_second), 1 },
	{ "refused_packets_per_second", "Packets over a rate.", RATE(refused_per_second), 1 },
	{ "duplicates_ratio", "Share of the packets whose vectors were counted already, 0 to 1.",
	  RATE(duplicate_percent), 0.01 },
};

static double rate_of(const struct traffic_rates *rates, const struct rate_family *family)
{
	const void *field = (const char *)rates + family->offset;

	return *(const double *)field * family->unit;
}

static void rates_print(FILE *f, const struct metrics_snapshot *s, const struct rate_family *r)
{
	char name[64];

	snprintf(name, sizeof(name), "job_%s", r->name);
	family(f, name, "gauge", r->help);
	for (size_t i = 0; i < s->job_count; i++)
		real(f, name, LABELS("job", s->jobs[i].name, "tenant", s->jobs[i].tenant),
		     rate_of(&s->jobs[i].rates, r));
	snprintf(name, sizeof(name), "tenant_%s", r->name);
	family(f, name, "gauge", r->help);
	for (size_t i = 0; i < s->tenant_count; i++)
		real(f, name, LABELS("tenant", s->tenants[i].name),
		     rate_of(&s->tenants[i].rates, r));
}

/* --- links ----------------------------------------------------------------------------------- */

struct link_family {
	const char *name;
	const char *type;
	const char *help;
	size_t offset; /* in struct traffic_link_flow */
	size_t size; /* of a whole number; 0: a double */
};

#define WHOLE(field) \
	offsetof(struct traffic_link_flow, field), sizeof(((struct traffic_link_flow *)0)->field)
#define REAL(field) offsetof(struct traffic_link_flow, field), 0

static const struct link_family link_families[] = {
	{ "up", "gauge", "1 if the link is set up.", WHOLE(link.up) },
	{ "carrier", "gauge", "1 if the link has a carrier.", WHOLE(link.carrier) },
	{ "mtu_bytes", "gauge", "Largest packet that the link takes.", WHOLE(link.mtu) },
	{ "changes_total", "counter", "Changes of the link's state.", WHOLE(link.changes) },
	{ "receive_packets_total", "counter", "Packets received.", WHOLE(link.receive.packets) },
	{ "receive_bytes_total", "counter", "Bytes received.", WHOLE(link.receive.bytes) },
	{ "receive_dropped_total", "counter", "Packets received and dropped.",
	  WHOLE(link.receive.dropped) },
	{ "receive_errors_total", "counter", "Packets received with errors.",
	  WHOLE(link.receive.errors) },
	{ "transmit_packets_total", "counter", "Packets sent.", WHOLE(link.transmit.packets) },
	{ "transmit_bytes_total", "counter", "Bytes sent.", WHOLE(link.transmit.bytes) },
	{ "transmit_dropped_total", "counter", "Packets dropped instead of sent.",
	  WHOLE(link.transmit.dropped) },
	{ "transmit_errors_total", "counter", "Packets that could not be sent.",
	  WHOLE(link.transmit.errors) },
	{ "backlog_bytes", "gauge", "Waiting in the link's queueing disciplines.",
	  WHOLE(link.backlog_bytes) },
	{ "backlog_packets", "gauge", "Waiting in the link's queueing disciplines.",
	  WHOLE(link.backlog_packets) },
	{ "receive_packets_per_second", "gauge", "Received, smoothed over some seconds.",
	  REAL(receive.packets_per_second) },
	{ "receive_bytes_per_second", "gauge", "Received, smoothed over some seconds.",
	  REAL(receive.bytes_per_second) },
	{ "receive_forecast_bytes_per_second", "gauge",
	  "What receive_bytes_per_second is expected to be in 5 seconds.",
	  REAL(receive.forecast_bytes_per_second) },
	{ "transmit_packets_per_second", "gauge", "Sent, smoothed over some seconds.",
	  REAL(transmit.packets_per_second) },
	{ "transmit_bytes_per_second", "gauge", "Sent, smoothed over some seconds.",
	  REAL(transmit.bytes_per_second) },
	{ "transmit_forecast_bytes_per_second", "gauge",
	  "What transmit_bytes_per_second is expected to be in 5 seconds.",
	  REAL(transmit.forecast_bytes_per_second) },
};

static void link_value(FILE *f, const char *name, const struct traffic_link_flow *link,
		       const struct link_family *family)
{
	const void *field = (const char *)link + family->offset;
	const char *const *pair = LABELS("link", link->link.name);

	if (family->size)
		whole(f, name, pair, key_number_load(field, family->size));
	else
		real(f, name, pair, *(const double *)field);
}

static void links_print(FILE *f, const struct metrics_snapshot *s)
{
	char name[64];

	for (size_t k = 0; k < sizeof(link_families) / sizeof(*link_families); k++) {
		const struct link_family *l = &link_families[k];

		snprintf(name, sizeof(name), "link_%s", l->name);
		family(f, name, l->type, l->help);
		for (size_t i = 0; i < s->link_count; i++)
			link_value(f, name, s->links[i], l);
	}
	family(f, "link_speed_bytes_per_second", "gauge",
	       "Speed of the link; missing if the driver does not say.");
	for (size_t i = 0; i < s->link_count; i++)
		if (s->links[i]->link.speed_mbps)
			whole(f, "link_speed_bytes_per_second",
			      LABELS("link", s->links[i]->link.name),
			      s->links[i]->link.speed_mbps * 125000ull);
}

static void ports_print(FILE *f, const struct metrics_snapshot *s)
{
	family(f, "port_attached", "gauge", "1 if Tally's program is on the port, 0 if not.");
	for (size_t i = 0; i < s->port_count; i++)
		whole(f, "port_attached", LABELS("port", s->ports[i].name), !!s->ports[i].ifindex);
}

/* --- the agent itself ------------------------------------------------------------------------ */

#define LABEL(name, label) label,

static void refusals_print(FILE *f, const char *name, const char *help, const char *const *label,
			   const uint64_t *count, size_t n)
{
	family(f, name, "counter", help);
	for (size_t i = 0; i < n; i++)
		whole(f, name, LABELS("reason", label[i]), count[i]);
}

/* Series that are 0 are there, too: an increase from nothing is none that a rule could see. */
static void counts_print(FILE *f, const struct core_counts *c)
{
	static const char *const joins[] = { CORE_JOIN_REFUSALS(LABEL) };
	static const char *const runs[] = { CORE_RUN_REFUSALS(LABEL) };

	single(f, "runs_total", "counter", "Runs that have begun.", c->runs_begun);
	single(f, "runs_moved_total", "counter",
	       "Runs that got other slots, so that another one found enough in a row.",
	       c->runs_moved);
	single(f, "loans_total", "counter", "Runs that began with slots on loan.", c->loans);
	single(f, "runs_refilled_total", "counter",
	       "Runs without slots of their own that got some and went on there.",
	       c->runs_refilled);
	single(f, "loans_recalled_total", "counter",
	       "Runs that gave slots on loan back, and went on in software.", c->loans_recalled);
	refusals_print(f, "runs_refused_total",
		       "Runs that did not begin although all workers were there.", runs,
		       c->runs_refused, CORE_RUN_REFUSAL_COUNT);
	refusals_print(f, "joins_refused_total", "Workers that were not let in.", joins,
		       c->joins_refused, CORE_JOIN_REFUSAL_COUNT);
	single(f, "state_write_failures_total", "counter",
	       "How often the state file could not be written.", c->saves_failed);
	single(f, "state_saved", "gauge", "1: the last write of the state file succeeded; or 0.",
	       !c->save_fails);
}

static void delays_print(FILE *f, const struct delays *d)
{
	uint64_t count = 0;

	family(f, "loop_delay_seconds", "histogram",
	       "How long what was due waited until the agent came to it.");
	for (unsigned int i = 0; i <= DELAY_BOUNDS; i++) {
		count += d->count[i];
		whole(f, "loop_delay_seconds_bucket",
		      LABELS("le", i < DELAY_BOUNDS ? delay_bounds[i] : "+Inf"), count);
	}
	real(f, "loop_delay_seconds_sum", NULL, d->seconds);
	whole(f, "loop_delay_seconds_count", NULL, count);
}

static void agent_print(FILE *f, const struct metrics_snapshot *s)
{
	family(f, "build_info", "gauge", "Always 1; the labels have the versions.");
	whole(f, "build_info", LABELS("version", s->version, "dataplane", s->build), 1);
	family(f, "sampling_cpu_seconds_total", "counter",
	       "CPU time that sampling the traffic took.");
	real(f, "sampling_cpu_seconds_total", NULL, s->sampling_seconds);
	family(f, "late_cpu_seconds_total", "counter",
	       "CPU time that looking for late ranks took.");
	real(f, "late_cpu_seconds_total", NULL, s->looking_seconds);
	single(f, "samples_total", "counter", "Samples taken of the traffic.", s->traffic.samples);
	single(f, "sampling_ignored_total", "counter",
	       "Rows and links of samples that were ignored because of a limit.",
	       s->traffic.rows_ignored + s->traffic.links_ignored);
	single(f, "sampling_evicted_total", "counter",
	       "Tenants and ports that were dropped to make room for others.", s->traffic.evicted);
	single(f, "link_events_lost_total", "counter",
	       "How often the kernel lost events of links because the agent was too slow.",
	       s->link_events_lost);

	single(f, "runs_in_software", "gauge", "Runs that are summed in software, without slots.",
	       s->runs_in_software);
	family(f, "software_memory_bytes", "gauge",
	       "Memory of sums in software, and its limit (spill.memory_mib).");
	whole(f, "software_memory_bytes", LABELS("kind", "used"), s->software_bytes);
	whole(f, "software_memory_bytes", LABELS("kind", "limit"), s->software_bytes_max);
	single(f, "software_evicted_total", "counter",
	       "Sums in software that were forgotten to make room for others.",
	       s->software_evicted);
	single(f, "software_full_total", "counter",
	       "Messages that software refused because no sum could make room.", s->software_full);
	single(f, "runs_borrowing", "gauge", "Runs without slots of their own, which borrow some.",
	       s->runs_borrowing);
	single(f, "runs_inner", "gauge", "Runs at which this node is an inner one.", s->runs_inner);
	single(f, "inner_nodes_away", "gauge",
	       "Inner nodes of jobs that were not told of a run, or of a job's end: they are not "
	       "reached, or refuse.",
	       s->inner_nodes_away);
	single(f, "cordoned", "gauge", "1 if no run begins: tallyctl uncordon.", s->cordoned);
	counts_print(f, &s->counts);
	delays_print(f, &s->delays);

	/* Under the names that all of Prometheus' own libraries use. */
	fprintf(f,
		"# HELP process_cpu_seconds_total CPU time of the agent, user and system.\n"
		"# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total %.10g\n"
		"# HELP process_resident_memory_bytes Resident memory of the agent.\n"
		"# TYPE process_resident_memory_bytes gauge\n"
		"process_resident_memory_bytes %" PRIu64 "\n"
		"# HELP process_start_time_seconds Start of the agent, Unix time.\n"
		"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %.3f\n",
		s->cpu_seconds, s->resident_bytes, s->start_seconds);
}

static void cluster_print(FILE *f, const struct metrics_cluster *c)
{
	static const char *const state[METRICS_CLUSTER_STATES] = {
		[METRICS_CLUSTER_FORMING] = "forming", [METRICS_CLUSTER_DUE] = "due",
		[METRICS_CLUSTER_PLACED] = "placed",   [METRICS_CLUSTER_RUNNING] = "running",
		[METRICS_CLUSTER_SILENT] = "silent",
	};

	if (!c->is_one)
		return;
	family(f, "cluster_heard_seconds", "gauge", "Since the store was heard.");
	real(f, "cluster_heard_seconds", NULL, c->heard_seconds);
	single(f, "cluster_leads", "gauge", "1: this node decides where jobs are summed.",
	       c->leads);
	single(f, "cluster_nodes", "gauge", "Nodes that have reported, this one among them.",
	       c->nodes);
	family(f, "cluster_jobs", "gauge", "Jobs of the cluster by state, as this node knows.");
	for (unsigned int i = 0; i < METRICS_CLUSTER_STATES; i++)
		whole(f, "cluster_jobs", LABELS("state", state[i]), c->jobs[i]);
	single(f, "cluster_reports_total", "counter", "Reports that this node has written.",
	       c->reports);
	single(f, "cluster_report_bytes_total", "counter", "Bytes of these.", c->report_bytes);
	single(f, "cluster_placed_total", "counter",
	       "Jobs that this node, as the leader, gave a first place.", c->placed);
	single(f, "cluster_moved_total", "counter",
	       "Jobs that this node, as the leader, gave another place.", c->moved);
	single(f, "cluster_ways_total", "counter",
	       "Times that this node, as the leader, gave a job ways or took them away.", c->ways);
	family(f, "cluster_events_total", "counter",
	       "What has happened in the cluster, as this node has seen it.");
	for (unsigned int i = 0; i < c->kinds; i++)
		whole(f, "cluster_events_total", LABELS("kind", c->kind[i]), c->events[i]);
}

int metrics_print(const struct metrics_snapshot *s, char **ret, size_t *ret_length)
{
	_cleanup_(freep) char *text = NULL;
	size_t length = 0;
	FILE *f = open_memstream(&text, &length);
	bool failed;

	if (!f)
		return -ENOMEM;
	agent_print(f, s);
	cluster_print(f, &s->cluster);
	slots_print(f, s);
	jobs_print(f, s);
	for (size_t i = 0; i < sizeof(rate_families) / sizeof(*rate_families); i++)
		rates_print(f, s, &rate_families[i]);
	links_print(f, s);
	ports_print(f, s);
	outcomes_print(f, s);
	failed = ferror(f);
	if (fclose(f) != 0 || failed)
		return -ENOMEM;
	*ret = TAKE_PTR(text);
	*ret_length = length;
	return 0;
}
