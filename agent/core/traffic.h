/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the agent knows of traffic: totals by outcome, rates, and what the rates will be, of
 * each job, tenant, port and link, and of the node. Pure; fed once a second with what the data
 * plane and the links have counted. All memory is taken at the start (some 29 MB of
 * addresses, of which only what is in use is ever touched); whatever comes and goes is bounded.
 *
 * Links live as long as the samples name them. Jobs, tenants and ports stay after their last
 * packet, so that their totals do not begin anew with each run; when there are too many, the one
 * that was silent for longest gives way.
 */
#ifndef TALLY_AGENT_TRAFFIC_H
#define TALLY_AGENT_TRAFFIC_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tally/maps.h>
#include <tally/outcome.h>

enum {
	TRAFFIC_HISTORY = 600, /* samples kept of each job and link */
	TRAFFIC_VALUES = 5, /* of a sample in a history */
	TRAFFIC_FORECAST_S = 5, /* how far a forecast looks ahead */
	TRAFFIC_ROWS_MAX = TALLY_ROWS_MAX + 2 * TALLY_PORTS_MAX, /* of a sample */
};

/*
 * What became of the packets of one job on one port, from the data plane: cumulative. Row 0
 * of a sample is of packets of no job and no known port, row 1 of jobs and ports that have gone;
 * both have job 0 and port 0.
 */
struct traffic_row {
	uint32_t job; /* 0: packets that no job's gate has let in */
	uint32_t ifindex; /* 0: at ports where the job has no row of its own */
	uint16_t tenant;
	bool again; /* packets that are in the jobs' rows, too; job 0: counts for the port only */
	struct tally_counter outcome[TALLY_OUTCOME_COUNT];
};

/* Adds TALLY_OUTCOME_COUNT counters to others. */
static inline void traffic_count(struct tally_counter *to, const struct tally_counter *from)
{
	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++) {
		to[i].packet += from[i].packet;
		to[i].byte += from[i].byte;
	}
}

struct traffic_direction {
	uint64_t packets;
	uint64_t bytes;
	uint64_t dropped;
	uint64_t errors;
};

/* An interface as it is now; counters are the kernel's, cumulative. */
struct traffic_link {
	uint32_t ifindex;
	char name[IF_NAMESIZE];
	bool up; /* somebody has set it up */
	bool carrier; /* and there is somebody at the other end */
	uint32_t mtu;
	uint32_t speed_mbps; /* 0: unknown */
	struct traffic_direction receive, transmit;
	uint64_t backlog_bytes; /* waiting in its queueing disciplines */
	uint64_t backlog_packets;
	uint64_t changes; /* of up, carrier or the operational state, since it was first seen */
};

/*
 * Rates, smoothed over a few seconds. They count frames that came in, whatever became of them;
 * copies that left are not among them.
 */
struct traffic_rates {
	double packets_per_second;
	double bytes_per_second; /* of whole frames */
	double forecast_bytes_per_second; /* TRAFFIC_FORECAST_S from now */
	double added_bytes_per_second; /* of these frames, those whose vectors were added to sums */
	double chunks_per_second; /* sums that became whole; at an inner node: of all below */
	double refused_per_second; /* packets over a rate or priority */
	double duplicate_percent; /* of the packets: their vectors were counted already; 0 .. 100 */
};

struct traffic_flow {
	struct tally_counter total[TALLY_OUTCOME_COUNT];
	struct traffic_rates rates;
};

struct traffic_speed {
	double packets_per_second;
	double bytes_per_second;
	double forecast_bytes_per_second;
};

struct traffic_link_flow {
	struct traffic_link link; /* of the last sample */
	struct traffic_speed receive, transmit;
};

/* One sample in a history: the rates of the second before it, not smoothed, in this order. */
struct traffic_moment {
	uint64_t at_ns;
	float value[TRAFFIC_VALUES];
};

enum traffic_job_value {
	TRAFFIC_JOB_PACKETS,
	TRAFFIC_JOB_BYTES,
	TRAFFIC_JOB_CHUNKS,
	TRAFFIC_JOB_REFUSED,
	TRAFFIC_JOB_DUPLICATES,
};

enum traffic_link_value {
	TRAFFIC_LINK_RECEIVE_PACKETS,
	TRAFFIC_LINK_RECEIVE_BYTES,
	TRAFFIC_LINK_TRANSMIT_PACKETS,
	TRAFFIC_LINK_TRANSMIT_BYTES,
	TRAFFIC_LINK_BACKLOG_BYTES, /* no rate: as it was at the sample */
};

struct traffic_stats {
	uint64_t samples;
	uint64_t rows_ignored; /* beyond a limit, named twice, or of no job and port behind row 1 */
	uint64_t links_ignored;
	uint64_t evicted; /* tenants and ports that gave way to others */
	unsigned int jobs, tenants, ports, links; /* known now */
};

struct traffic;

/* The caller's, for traffic_free(), which allows NULL. -ENOMEM. */
int traffic_new(struct traffic **ret);
void traffic_free(struct traffic *t);
static inline void traffic_freep(struct traffic **t) { traffic_free(*t); }

/*
 * All that there is now, in any order but for rows 0 and 1. What is named twice counts once.
 * A row of which any counter reads less than before has begun anew. What moves to row 1 when
 * a job goes is not counted again. A sample at the time of the last one, or before it, moves
 * totals but not rates.
 */
void traffic_sample(struct traffic *t, uint64_t now_ns, const struct traffic_row *rows, size_t n,
		    const struct traffic_link *links, size_t m);

/*
 * NULL: not known. Valid until the next sample. Totals go on over counters that begin anew; a
 * tenant's and a port's go on over all their jobs, but lack what a job has counted between its
 * last sample and its end. A job and its tenant have what the job's gates have let in; a port has
 * all that has come in there, and the node everything.
 */
const struct traffic_flow *traffic_node(const struct traffic *t);
const struct traffic_flow *traffic_job(const struct traffic *t, uint32_t job);
const struct traffic_flow *traffic_tenant(const struct traffic *t, uint16_t tenant);
const struct traffic_flow *traffic_port(const struct traffic *t, uint32_t ifindex);
const struct traffic_link_flow *traffic_link_flow(const struct traffic *t, uint32_t ifindex);

/* The job or tenant was deleted: another one with this number starts at 0. */
void traffic_job_forget(struct traffic *t, uint32_t job);
void traffic_tenant_forget(struct traffic *t, uint16_t tenant);

/* Up to `max` of the newest moments, oldest first. How many; 0 if not known. */
size_t traffic_job_history(const struct traffic *t, uint32_t job, struct traffic_moment *ret,
			   size_t max);
size_t traffic_link_history(const struct traffic *t, uint32_t ifindex, struct traffic_moment *ret,
			    size_t max);

struct traffic_stats traffic_stats(const struct traffic *t);

#endif
