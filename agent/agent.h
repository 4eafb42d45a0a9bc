/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read this file first: then tallyd.c, members.c (workers), control.c (requests).
 *
 * The agent of one node: where everything meets. node.c takes the node over; agent.c keeps its
 * data plane as the books say and watches the traffic; places.c has the workers, control.c those
 * who ask; tallyd.c starts and ends it all. One thread, one event loop.
 */
#ifndef TALLY_AGENT_AGENT_H
#define TALLY_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "agent/core/books.h"
#include "agent/core/config.h"
#include "agent/core/request.h"
#include "agent/core/traffic.h"
#include "common/util.h"
#include "agent/dataplane/dataplane.h"
#include "agent/edge/netlink.h"
#include "agent/edge/stream.h"

struct mac_cache;
struct metrics_http;
struct netlink_links;
struct netlink_neighbour;
struct dataplane_trace;
struct member; /* places.c */
struct tracer; /* tracing.c */
struct absentee; /* rollcall.c */

struct agent {
	const char *config_path;
	struct config *config;
	sd_event *loop;
	uint64_t started_ns;

	struct books books;
	sd_event_source *saver; /* armed while the books have what the disk has not */
	struct dataplane *dataplane;
	struct dataplane_port *ports; /* as attached; names, modes and reasons */
	unsigned int ports_count;

	struct netlink *netlink;
	struct netlink_links *links;
	sd_event_source *links_io;
	struct mac_cache *macs;
	sd_event_source *follower; /* armed while neighbours may have changed */
	struct traffic *traffic;
	struct traffic_row *rows; /* of the last sample */
	unsigned int rows_count;
	sd_event_source *sampler;
	uint64_t sampled_ns; /* when that was */
	uint64_t sampling_ns; /* CPU time that it took so far */

	struct stream_server *control;
	gid_t control_group;
	struct tracer *tracers;
	struct dataplane_trace *trace;
	sd_event_source *trace_io;

	struct stream_server *joining;
	struct member *places;

	struct absentee *absentees;
	sd_event_source *rollcall;

	struct metrics_http *metrics;
	sd_event_source *metrics_io, *metrics_timer;
};

/* --- agent.c --------------------------------------------------------------------------------- */

/* Reads the data plane, plans, applies: afterwards it is as the books say. */
int agent_reconcile(struct agent *a, struct why *why);

/* The books, to disk. */
int agent_save(struct agent *a, struct why *why);

/*
 * The same in a tenth of a second, once for all that changes meanwhile: for what is not worse
 * than an agent that was killed if it is lost, such as ranks that left. What agent_save_soon()
 * promised agent_save_now() does at once; it says in the log what fails.
 */
void agent_save_soon(struct agent *a);
void agent_save_now(struct agent *a);

/* Everybody has come: slots, an epoch, map entries. On failure nobody has moved. */
int agent_run_begin(struct agent *a, struct job *j, struct why *why);

/* Its run is over, or the job goes; frees its slots. */
void agent_run_end(struct agent *a, struct job *j);

/* Is there a way to a worker there? Asks for its neighbour, and does not wait for the answer. */
int agent_meet(struct agent *a, const struct sockaddr_storage *address, struct why *why);

/* The links that are watched are those of the node's ports. */
int agent_watch_ports(struct agent *a, struct why *why);

/* Of one of the node's ports; "" for any other. */
const char *agent_port_name(const struct agent *a, uint32_t ifindex);

/* Once each interval: counters and links. */
int agent_watch(struct agent *a, struct why *why);

/* The same, unless that was a moment ago. */
int agent_watch_anew(struct agent *a, struct why *why);

/* --- node.c ---------------------------------------------------------------------------------- */

/*
 * Takes the node over: the one that is there with all its jobs, or a new one. Reads the books
 * of the last agent, and brings the data plane to what they say. On failure the data plane is
 * as it was.
 */
int agent_node_open(struct agent *a, struct why *why);

/* Another configuration, in the place of the one that is there. All or nothing. */
int agent_reconfigure(struct agent *a, struct config *config, struct why *why);

/* --- places.c: workers that joined ----------------------------------------------------------- */

int members_open(struct agent *a, struct why *why);
void members_close(struct agent *a);

/* The job goes: everyone is told why and leaves. */
void members_cancel(struct agent *a, const struct job *j, const char *words);

/* A rank is not at this run any more; if it was the last one, the run is over. */
void members_left(struct agent *a, struct job *j, uint16_t rank, uint16_t epoch);

/* --- rollcall.c: workers that another agent knew --------------------------------------------- */

int rollcall_open(struct agent *a);
void rollcall_close(struct agent *a);

/* The job goes; NULL: all of them. */
void rollcall_forget(struct agent *a, const struct job *j);

/* --- follow.c: neighbours that change while jobs run ------------------------------------------ */

/* From now on copies of results go where their neighbours are; beginning with all that run. */
int follow_open(struct agent *a);
void follow_close(struct agent *a);

/* The kernel says something of a neighbour. */
void follow_neighbour(struct agent *a, const struct netlink_neighbour *n);

/* Any of them may have changed: all are looked at, soon. */
void follow_all(struct agent *a);

/* --- control.c: those who ask ---------------------------------------------------------------- */

int control_open(struct agent *a, struct why *why);
void control_close(struct agent *a);

/* --- tracing.c ------------------------------------------------------------------------------- */

/* From now on the connection is told of packets, until tracing_end(). -ENOENT: no such job. */
int tracing_begin(struct agent *a, struct stream *s, const struct request_filter *q,
		  struct why *why);
void tracing_end(struct agent *a, struct stream *s);

/* --- export.c: metrics ----------------------------------------------------------------------- */

int export_open(struct agent *a, struct why *why);
void export_close(struct agent *a);

#endif
