/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The picture of the network: what the reports of all nodes say together. Pure.
 *
 * A **segment** is what hears one another: a cable with two ends, or a switch that nobody can see
 * and that is drawn where there are more. Two ports of nodes are at one segment if each heard the
 * other (report_near). Everybody else there is a host.
 */
#ifndef TALLY_CLUSTER_PICTURE_H
#define TALLY_CLUSTER_PICTURE_H

#include <stdio.h>

#include "report.h"

enum {
	PICTURE_NODES_MAX = 4096,
	PICTURE_NAME_BYTES = 32, /* what simulators take; with its end */
};

/* Zeros: nobody has reported. For picture_close(). */
struct picture {
	struct report **report; /* by the nodes' names */
	unsigned int nodes;
};

void picture_close(struct picture *p);

/* The report of its node, in the place of one before; the picture's from now on. -ENOMEM, -E2BIG:
 * then it is freed. */
int picture_put(struct picture *p, struct report *r);
void picture_drop(struct picture *p, const char *node);

/* Its place; -1: it has not reported. */
int picture_place(const struct picture *p, const char *node);

enum picture_kind {
	PICTURE_NODE,
	PICTURE_HOST,
	PICTURE_SWITCH,
};

struct picture_machine {
	enum picture_kind kind;
	char name[PICTURE_NAME_BYTES]; /* no two of one name */
	unsigned int node; /* PICTURE_NODE: whose report it is, by its place in the picture */
	struct sockaddr_storage address; /* PICTURE_HOST: the first that was reported */
};

/* What `end[0]` sends and what it receives. A port is "" where the machine is no node. */
struct picture_cable {
	unsigned int end[2]; /* machines */
	char port[2][IF_NAMESIZE];
	uint32_t rate_mbps; /* each way: that of the slower end; 0: not known */
	uint64_t load[2], forecast[2]; /* bytes a second from each end to the other */
};

struct drawing {
	struct picture_machine *machine;
	struct picture_cable *cable;
	unsigned int machines, cables;
};

/* *ret is the caller's, for drawing_close(). -ENOMEM. */
int drawing_make(const struct picture *p, struct drawing *ret);
void drawing_close(struct drawing *d);

/* The machine that has this address; -1: there is none. */
int drawing_find(const struct picture *p, const struct drawing *d,
		 const struct sockaddr_storage *address);

#endif
