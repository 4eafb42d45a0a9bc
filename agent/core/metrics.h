/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The agent's state as Prometheus reads it: text format 0.0.4, base units, each family once with
 * its HELP and TYPE. Pure: a plain snapshot goes in, text comes out. docs/metrics.md lists
 * the families.
 *
 * How many series there can be: two for each row and outcome that is not zero, 9
 * for each job and one for each of its late ranks, 10 for each tenant and 22 for each port. Rows
 * beyond METRICS_ROWS_MAX are left out and counted, so that the text stays below 52 MB; 64 jobs on
 * 4 ports make about half a megabyte.
 */
#ifndef TALLY_AGENT_METRICS_H
#define TALLY_AGENT_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tally/maps.h>
#include <tally/outcome.h>

#include "counts.h"
#include "dataplane_state.h"
#include "delay.h"
#include "late.h"
#include "traffic.h"

enum {
	METRICS_ROWS_MAX = TALLY_ROWS_MAX + TALLY_PORTS_MAX,
};

/* What rows of no job, and row 1 of a sample, are to be called: no job has such a name. */
#define METRICS_NO_JOB "(none)"
#define METRICS_GONE_JOBS "(gone)"

enum metrics_job_state {
	METRICS_JOB_WAITING, /* nobody is there */
	METRICS_JOB_FORMING, /* some ranks are missing */
	METRICS_JOB_RUNNING,
	METRICS_JOB_SUSPENDED, /* its tenant has gone */
	METRICS_JOB_STATES,
};

/* One traffic_row with names. */
struct metrics_row {
	const char *job;
	const char *tenant;
	const char *port;
	const struct tally_counter *outcome; /* TALLY_OUTCOME_COUNT of them */
};

struct metrics_job {
	const char *name;
	const char *tenant;
	enum metrics_job_state state;
	uint32_t workers; /* that it is for */
	uint32_t joined; /* that are there */
	uint32_t slots; /* in use now */
	unsigned int lates;
	struct late_rank late[LATE_RANKS_MAX];
	struct traffic_rates rates;
};

struct metrics_tenant {
	const char *name;
	uint32_t slots_quota;
	uint32_t slots_used; /* of its quota */
	uint32_t slots_lent; /* to it */
	uint64_t software_bytes; /* memory of its sums in software */
	struct traffic_rates rates;
};

enum metrics_cluster_state {
	METRICS_CLUSTER_FORMING, /* workers are missing */
	METRICS_CLUSTER_DUE, /* to be placed */
	METRICS_CLUSTER_PLACED, /* no run is on */
	METRICS_CLUSTER_RUNNING,
	METRICS_CLUSTER_SILENT, /* its root reports nothing of it */
	METRICS_CLUSTER_STATES,
};

struct metrics_cluster {
	bool is_one; /* else nothing is printed */
	double heard_seconds; /* since the store was heard */
	bool leads;
	uint64_t nodes; /* that have reported */
	uint64_t jobs[METRICS_CLUSTER_STATES];
	uint64_t reports, report_bytes; /* that this node has written */
	uint64_t placed, moved; /* jobs, by this node as the leader */
	uint64_t ways; /* that it gave jobs, or took away */
	unsigned int kinds; /* of what has happened there, as this node has seen it: */
	const char *const *kind; /* [kinds]: words */
	const uint64_t *events; /* [kinds]: how many of each */
};

/*
 * All of it is the caller's, names too, and is only read. NULL is as good as "". Whatever a
 * name has in it is escaped. Two entries of an array must not have the same labels.
 */
struct metrics_snapshot {
	const char *version; /* of the agent */
	const char *build; /* of the data plane */
	uint32_t slots_total;
	uint32_t slots_reserved;
	uint32_t slots_used;
	const struct metrics_row *rows; /* the first one of no job: it shows also what is 0 */
	size_t row_count;
	const struct metrics_job *jobs;
	size_t job_count;
	const struct metrics_tenant *tenants;
	size_t tenant_count;
	const struct traffic_link_flow *const *links; /* as traffic_link_flow() gives them */
	size_t link_count;
	const struct dataplane_port *ports; /* that are wanted; ifindex 0: not attached */
	size_t port_count;
	struct traffic_stats traffic;
	uint64_t link_events_lost; /* netlink_links_lost() */
	struct core_counts counts;
	bool cordoned;
	unsigned int runs_in_software;
	unsigned int runs_borrowing;
	unsigned int runs_inner; /* whose root is another node */
	unsigned int inner_nodes_away; /* of jobs whose root this is: they were not reached */
	uint64_t software_bytes, software_bytes_max; /* memory of sums in software, and its limit */
	uint64_t software_evicted; /* sums that made room for others */
	uint64_t software_full; /* messages that found no memory */
	struct metrics_cluster cluster;
	struct delays delays; /* of the loop */
	double sampling_seconds; /* CPU time spent on samples of the traffic, so far */
	double looking_seconds; /* the same, on looks into slots for late ranks */
	double cpu_seconds; /* of the whole process, user and system */
	double start_seconds; /* of the process, Unix time */
	uint64_t resident_bytes;
};

/* The text, with a NUL behind its `ret_length` bytes; the caller's, to be freed. -ENOMEM. */
int metrics_print(const struct metrics_snapshot *s, char **ret, size_t *ret_length);

#endif
