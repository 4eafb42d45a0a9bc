/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where messages of a tenant may come in, and where one came in. Pure. The data plane asks the same
 * of frames (bpf/gate.bpf.h). Here the kernel has taken tags away: what it hands to a port itself
 * had none, and what had one comes by an interface of its own, which is no port.
 */
#ifndef TALLY_SPILL_POINTS_H
#define TALLY_SPILL_POINTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <tally/outcome.h>

enum {
	SPILL_POINTS_MAX = 16, /* of a tenant */
};

struct spill_point {
	uint32_t port; /* ifindex, never 0 */
	bool tagged; /* names a VLAN: nothing comes in by it here */
	struct sockaddr_storage source; /* ss_family 0: any */
	uint8_t bits; /* of the source's prefix; what is behind it does not matter */
};

struct spill_points {
	bool anywhere; /* there is nothing to ask; otherwise without points nothing comes in */
	unsigned int count;
	struct spill_point point[SPILL_POINTS_MAX];
};

/* Of a message. */
struct spill_way {
	uint32_t interface; /* that the kernel took it from; 0: not known, so it is no point's */
	struct sockaddr_storage from;
	bool marked; /* it met congestion (CE) */
};

/* GO_ON; OTHER_PORT: no point has this port; OTHER_SOURCE: none also has its VLAN and address. */
enum tally_outcome spill_points_ask(const struct spill_points *p, const struct spill_way *way);

#endif
