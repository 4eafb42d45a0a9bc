/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tallyctl doctor: the checks, and what they look at. */
#ifndef TALLY_CTL_DOCTOR_H
#define TALLY_CTL_DOCTOR_H

#include "agent/edge/netlink.h"
#include "agent/edge/netlink_facts.h"
#include "ctl.h"
#include "finding.h"

struct doctor {
	const json_t *status, *jobs, *tenants; /* the daemon's; NULL: nobody answers */
	const char *no_daemon; /* why nobody does */
	const char *socket;
	double answer_ms; /* that its status took */
	bool root;
	unsigned int cpus;
	unsigned int ports;
	struct findings *findings;
};

struct doctor_port {
	struct netlink_port port;
	struct netlink_facts facts;
	const json_t *status; /* the daemon's word on it; NULL: none */
	bool native; /* an XDP program runs in its driver, or would if it were attached */
	bool tc; /* Tally serves it without XDP */
};

/* Each adds what it finds; one that has nothing to do with this port adds nothing. */
struct doctor_node_check {
	const char *name;
	void (*run)(struct doctor *d);
};

struct doctor_port_check {
	const char *name;
	void (*run)(struct doctor *d, const struct doctor_port *p);
};

/* Closed by a NULL name. */
extern const struct doctor_node_check doctor_node_checks[];
extern const struct doctor_port_check doctor_port_checks[];

/* A file of /proc or /sys: its first line; -errno. */
int doctor_read_line(const char *path, char *text, size_t size);

/* A number in such a file; `otherwise` if it cannot be read. */
long doctor_read_number(const char *path, long otherwise);

#endif
