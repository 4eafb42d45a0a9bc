/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a node's data plane is, and is to be: its ports, tenants and gates as plain
 * structs. What decides says it in these words; agent/dataplane/ reads and makes it.
 */
#ifndef TALLY_AGENT_DATAPLANE_STATE_H
#define TALLY_AGENT_DATAPLANE_STATE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <tally/maps.h>

#include "common/why.h"

#define DATAPLANE_PIN "/sys/fs/bpf/tally"

enum {
	DATAPLANE_SLOTS = 4096,
	DATAPLANE_SLOTS_MAX = 1 << 18, /* 900 MB */
	DATAPLANE_XDP_MTU = 3500, /* about what native XDP takes in one buffer */
};

enum dataplane_mode {
	DATAPLANE_AUTO, /* native; generic where the driver refuses; TC where XDP cannot be had */
	DATAPLANE_NATIVE, /* in the driver, before the stack makes anything of the frame */
	DATAPLANE_GENERIC, /* in the stack */
	DATAPLANE_TC, /* no XDP: behind it, at the ingress of the port's clsact qdisc */
};

struct dataplane_port {
	uint32_t ifindex; /* 0: no interface has this name; after attaching also: not attached */
	char name[IF_NAMESIZE];
	enum dataplane_mode mode; /* wanted; after attaching: any but AUTO */
	bool share; /* wanted: where another XDP program is, it stays and sees what Tally passes */
	uint32_t beside; /* after attaching: the number of that program, or 0 */
	bool attached; /* when looked at: a program of the node is on the port */
	/* Why not attached; after attaching why not native, and if so why not generic; or "" */
	struct why refused;
};

/* What a tenant may send. Tenant 0 is the node's own, without limits. */
struct dataplane_limits {
	uint64_t packets_per_second; /* 0: no limit; up to TALLY_RATE_MAX */
	uint64_t bytes_per_second; /* the same; of whole frames */
	uint8_t priority; /* its share where slots are scarce */
};

/* Where messages of a tenant may come from. */
struct dataplane_source {
	uint32_t ifindex;
	int vlan; /* -1: any; 0: untagged */
	struct sockaddr_storage address; /* ss_family 0: any */
	uint8_t bits; /* of the address's prefix; what is behind it does not matter */
};

/* Where a job's messages may come in; the rest is of the maps (tables.h), not of what is wanted. */
struct dataplane_gate {
	uint32_t ifindex;
	bool restricted; /* only from its tenant's sources, whatever kind of message it is */
	bool anywhere; /* gate 0, if it takes what comes in by any port */
	uint32_t row; /* that counts: from TALLY_ROW_PORTS on this gate alone, else its job */
};

#endif
