/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who pays: a tenant, its quota, and where its messages may come in. Pure. The configuration,
 * the control socket, the agent's books and the data plane all speak of tenants in this form.
 */
#ifndef TALLY_AGENT_TENANT_H
#define TALLY_AGENT_TENANT_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/name.h"
#include "common/why.h"

#define TENANT_DEFAULT "default" /* each node has one of this name */

enum {
	TENANT_POINTS_MAX = 16,
	TENANT_POINT_BYTES = 128, /* fits any printed ingress point, with its end */
	TENANT_PLACES_MAX = 64, /* of a cluster's tenant, at all nodes together */
	TENANT_PLACE_BYTES = NAME_BYTES + TENANT_POINT_BYTES, /* the same for "NODE/POINT" */
	TENANT_PRIORITY_MAX = 255,
	TENANT_GROUP_BYTES = 33, /* of the name of a group of users, with its end */
	TENANT_VLAN_ANY = -1,
	TENANT_VLAN_MAX = 4094,
};

/* Of packets and of bytes a second: what the token buckets of the data plane are made for. */
#define TENANT_RATE_MAX 1000000000000ULL

/* An ingress point: what comes in here may be the tenant's. */
struct tenant_point {
	char port[IF_NAMESIZE];
	int vlan; /* TENANT_VLAN_ANY; 0: untagged; 1 .. 4094 */
	struct sockaddr_storage source; /* ss_family 0: any */
	uint8_t source_bits; /* of the prefix; all bits behind it are 0 */
};

/* One of a tenant of the cluster: at this node. */
struct tenant_place {
	char node[NAME_BYTES];
	struct tenant_point point;
};

struct tenant {
	char name[NAME_BYTES];
	char group[TENANT_GROUP_BYTES]; /* of users who may change its jobs; "": none */
	uint32_t slots; /* reserved for it */
	uint64_t packets_per_second; /* from and to its workers, together; 0: no limit */
	uint64_t bytes_per_second; /* the same in bytes of whole frames */
	uint8_t priority; /* (this + 1) / 256 of its messages' priority counts */
	unsigned int points; /* 0: it may come in anywhere, or if it is gated, nowhere */
	struct tenant_point point[TENANT_POINTS_MAX];
	bool clustered; /* agents share it (agent/placing.h), */
	bool gated; /* and also where it may come in; otherwise its points are this node's own */
};

/* May an interface have this name? As the kernel sees it, and printable. */
bool tenant_port_is_valid(const char *name);

/* "eth1", "eth1 vlan 5", "eth1 source 10.0.0.0/24", "eth1 vlan 0 source fd77::/64". -EINVAL. */
int tenant_point_parse(const char *text, struct tenant_point *ret, struct why *why);

/* What tenant_point_parse() takes back. Cut if too long. */
void tenant_point_print(const struct tenant_point *point, char *text, size_t size);

/* "n0/eth1 vlan 5". Whatever has a "/" in its first word is meant so, as no port has. -EINVAL. */
bool tenant_is_place(const char *text);
int tenant_place_parse(const char *text, struct tenant_place *ret, struct why *why);
void tenant_place_print(const struct tenant_place *place, char *text, size_t size);

/* All of them, with "; " between two. Cut if too long. */
void tenant_points_print(const struct tenant *t, char *text, size_t size);

bool tenant_is_anywhere(const struct tenant *t);
bool tenant_is_nowhere(const struct tenant *t);

/*
 * May messages from this address come in, as far as that is known? `port`: that they come in by,
 * without a VLAN tag; "": any, with any tag.
 */
bool tenant_may_come(const struct tenant *t, const char *port, const struct sockaddr_storage *from);

#endif
