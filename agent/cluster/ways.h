/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The paths that routing gives: which cable packets take from node to node, as the nodes' routes
 * say (report_route). Pure.
 */
#ifndef TALLY_CLUSTER_WAYS_H
#define TALLY_CLUSTER_WAYS_H

#include "picture.h"

enum {
	WAYS_STEPS_MAX = 20000000, /* routes times machines: beyond, no ways are known */
};

/* Packets for machine `to` leave machine `at`, a node, by this cable: it is the cable's end[end].
 * Several of one `at` and `to` share the packets. */
struct way {
	unsigned int at, to, cable, end;
};

/* *ret is the caller's, to free(). Machines without an address that others know have none:
 * switches, and nodes without a service address. -ENOMEM. */
int ways_make(const struct picture *p, const struct drawing *d, struct way **ret,
	      unsigned int *ret_ways);

#endif
