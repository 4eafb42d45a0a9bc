/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What netlink_steer*.c share. Nobody else includes this. */
#ifndef TALLY_AGENT_NETLINK_STEER_PRIVATE_H
#define TALLY_AGENT_NETLINK_STEER_PRIVATE_H

#include <netlink/netlink.h>
#include <stdbool.h>

#include "netlink_steer.h"

enum {
	STEER_RAW_BYTES = 16, /* of an address; IPv4 has four */
};

/* One of ours, as the kernel tells it. */
struct steer_rule {
	struct nlmsghdr *message; /* as it came: by that it is deleted */
	int family;
	unsigned int table; /* its number among ours */
	bool exact; /* it has a source and a destination, of one machine each, and nothing else */
	uint8_t from[STEER_RAW_BYTES], to[STEER_RAW_BYTES];
	bool wanted;
};

struct steer_hop {
	struct nlmsghdr *message; /* NULL: it is not there yet */
	int family;
	unsigned int table;
	bool exact; /* a default route by one gateway */
	uint32_t ifindex;
	uint8_t gateway[STEER_RAW_BYTES];
	bool wanted;
};

/* Zeros: nothing is known. For netlink_steer_forget(). */
struct steer_kernel {
	struct steer_rule *rule;
	struct steer_hop *hop;
	unsigned int rules, hops;
	uint64_t foreign[2]; /* of IPv4 and IPv6, a bit for each table: others have a route there */
	int error; /* while it is read */
};

void netlink_steer_forget(struct steer_kernel *k);

/* What the kernel has. -ENOMEM, -EIO. */
int netlink_steer_read(struct nl_sock *s, struct steer_kernel *ret);

/* One more, zeros but for its family; NULL: no memory. */
struct steer_hop *netlink_steer_hop_add(struct steer_kernel *k, int family);

static inline size_t steer_raw_bytes(int family) { return family == AF_INET ? 4 : 16; }

#endif
