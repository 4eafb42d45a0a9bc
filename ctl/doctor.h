/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tallyctl doctor: the checks, and what they look at. */
#ifndef TALLY_CTL_DOCTOR_H
#define TALLY_CTL_DOCTOR_H

#include "agent/edge/netlink.h"
#include "agent/edge/netlink_facts.h"
#include "connection.h"
#include "ctl.h"
#include "finding.h"

struct doctor_neighbours;

struct doctor {
	struct connection *connection; /* to tallyd; NULL: it did not answer */
	json_t *status, *jobs, *tenants, *top; /* tallyd's answers; NULL: none */
	const char *no_daemon; /* why tallyd did not answer */
	int daemon_error; /* the same as a negative errno */
	pid_t daemon; /* that has the socket; 0: none */
	const char *socket;
	double answer_ms; /* that tallyd took to answer `status` */
	bool root;
	unsigned int cpus;
	unsigned int ports;
	struct doctor_neighbours *neighbours; /* that results go to; NULL: nobody was asked */
	struct findings *findings;
};

struct doctor_port {
	struct netlink_port port;
	struct netlink_facts facts;
	const json_t *status; /* of this port, from tallyd's status; NULL: none */
	bool native; /* an XDP program runs in the driver, or would if attached now */
	bool tc; /* Tally runs in TC here */
};

/* A check adds what it finds, or nothing if it does not apply. `p` is NULL for those of the node.
 */
struct doctor_check {
	const char *name;
	void (*run)(struct doctor *d, const struct doctor_port *p);
};

/* The last entry has a NULL name. */
extern const struct doctor_check doctor_node_checks[];
extern const struct doctor_check doctor_daemon_checks[]; /* what tallyd was told to do */
extern const struct doctor_check doctor_port_checks[];

/* Which jobs and which ports refuse packets now? */
void doctor_refused_check(struct doctor *d, const struct doctor_port *p);

/* Does the node hear its cluster's store and other nodes, and has it its name alone? */
void doctor_cluster_check(struct doctor *d, const struct doctor_port *p);

/* Is this one of the troubles that doctor_cluster_check() tells of? */
bool doctor_is_of_cluster(const struct doctor *d, const char *trouble);

/* The first asks all neighbours at once; the second says of those behind a port what was wrong. */
void doctor_neighbours_ask(struct doctor *d, const struct doctor_port *p);
void doctor_neighbours_check(struct doctor *d, const struct doctor_port *p);

/* Does another XDP program keep tallyd, which has not got the port, from it? Then that is found. */
bool doctor_port_is_taken(struct doctor *d, const struct doctor_port *p);

/* Has this machine the address? True also if it cannot be asked. */
bool doctor_is_own_address(const char *text);

#define found_ok(d, ...) finding_add((d)->findings, FINDING_OK, __VA_ARGS__)
#define found_unknown(d, ...) finding_add((d)->findings, FINDING_UNKNOWN, __VA_ARGS__)
#define found_warn(d, ...) finding_add((d)->findings, FINDING_WARN, __VA_ARGS__)
#define found_fail(d, ...) finding_add((d)->findings, FINDING_FAIL, __VA_ARGS__)
#define found_mend(d, ...) finding_mend((d)->findings, __VA_ARGS__)

/* The first line of a file of /proc or /sys; -errno. */
int doctor_read_line(const char *path, char *text, size_t size);

/* The number in such a file; `otherwise` if the file has none. */
long doctor_read_number(const char *path, long otherwise);

#endif
