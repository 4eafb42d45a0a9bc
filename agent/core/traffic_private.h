/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What traffic*.c share. Nobody else includes this. */
#ifndef TALLY_AGENT_TRAFFIC_PRIVATE_H
#define TALLY_AGENT_TRAFFIC_PRIVATE_H

#include <assert.h>

#include "forecast.h"
#include "traffic.h"

enum {
	INDEX_MAX = 1024,
	APART = 2, /* rows of no job and port, and of those that have gone */
};

static_assert((int)TALLY_JOBS_MAX <= (int)INDEX_MAX, "jobs fit an index");
static_assert((int)TALLY_TENANTS_MAX <= (int)INDEX_MAX, "tenants fit an index");
static_assert((int)TALLY_PORTS_MAX <= (int)INDEX_MAX, "ports and links fit an index");

/*
 * Numbers to things in a table, bounded. The first `count` entries are in use, in the order of
 * their ids; behind are free places.
 */
struct index {
	unsigned int count, max;
	size_t thing_bytes;
	char *things;
	struct {
		uint32_t id, place;
	} entry[INDEX_MAX];
};

void traffic_index_init(struct index *x, void *things, size_t thing_bytes, unsigned int max);

/* The thing of an id; NULL: none. */
void *traffic_index_find(const struct index *x, uint32_t id);

/* The thing of entry number `at`. */
void *traffic_index_at(const struct index *x, unsigned int at);

/* A thing, all zeros, for an id that has none; NULL: no room. */
void *traffic_index_add(struct index *x, uint32_t id);

/* The entry number `at`; those behind it move up by one. */
void traffic_index_remove(struct index *x, unsigned int at);

/* The entry of an id, if it has one. */
void traffic_index_forget(struct index *x, uint32_t id);

struct flow {
	struct traffic_flow shown; /* the first thing in it */
	uint64_t seen; /* number of the sample that named it last */
	struct forecast_rate rate[TRAFFIC_VALUES]; /* by enum traffic_job_value */
	struct forecast_rate added; /* bytes */
	struct predict_holt trend;
};

struct ring {
	unsigned int next, count;
	struct traffic_moment moment[TRAFFIC_HISTORY];
};

struct job_series {
	struct flow flow; /* the first thing in it */
	struct ring ring;
};

struct link_series {
	struct traffic_link_flow shown; /* the first thing in it */
	uint64_t named, sampled; /* numbers of samples, the last ones that did so */
	struct forecast_rate rate[TRAFFIC_LINK_BACKLOG_BYTES]; /* by enum traffic_link_value */
	struct predict_holt receive, transmit;
	struct ring ring;
};

struct traffic {
	struct traffic_stats stats;
	struct flow node;
	struct index jobs, tenants, ports, links;
	struct job_series job[TALLY_JOBS_MAX];
	struct flow tenant[TALLY_TENANTS_MAX];
	struct flow port[TALLY_PORTS_MAX];
	struct link_series link[TALLY_PORTS_MAX];

	/* Of the last sample, to take differences: rows behind those apart, as row_order() says. */
	struct traffic_row apart[APART];
	struct traffic_row *last, *next;
	size_t last_count, next_count;
	const struct traffic_row *sorted[TRAFFIC_ROWS_MAX];
	/* Counted for jobs that have gone since, and not yet seen to move to row 1. */
	struct tally_counter moving[TALLY_OUTCOME_COUNT];
	struct traffic_row rows[2][TRAFFIC_ROWS_MAX];
};

/* All totals at zero, no rates. */
void traffic_flow_begin(struct flow *f);

/* Counts a sample's rows into the flows, and makes new ones. */
void traffic_rows(struct traffic *t, const struct traffic_row *rows, size_t n);

#endif
