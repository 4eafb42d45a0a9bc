/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets of single machines that the kernel sends elsewhere than its main table says: a rule for
 * each pair of addresses, and a table with one default route for each next node. They bear a
 * routing protocol's number of our own, by which they are known again (docs/decisions/
 * 0033-ways-of-the-clusters-own.md).
 */
#ifndef TALLY_AGENT_NETLINK_STEER_H
#define TALLY_AGENT_NETLINK_STEER_H

#include <net/if.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/why.h"

enum {
	NETLINK_STEER_PROTOCOL = 84, /* of rules and routes; `ip rule` shows it */
	NETLINK_STEER_PRIORITY = 8400, /* of rules: in front of the main table's */
	NETLINK_STEER_TABLE = 0x7a110000, /* the first one */
	NETLINK_STEER_TABLES = 64, /* next nodes of each family, at most */
};

/* Packets from this machine to that one alone; UDP ports mean nothing. */
struct netlink_steered {
	struct sockaddr_storage from, to, gateway; /* of one family */
	char port[IF_NAMESIZE]; /* that they leave by */
};

/*
 * Makes the kernel have these and no others of ours: what is there already stays, what is missing
 * comes before what is too much goes. Rules and routes of others are not touched, and a table in
 * which others have a route is not used. ret_changes: how many rules and routes came and went.
 *
 * The first thing that went wrong, and why, with all else done as far as it can be: -EPERM;
 * -ENODEV: the port is not there, or not up; -E2BIG: more next nodes than tables; -ENOMEM; -EIO:
 * the kernel refused something, or does not say what it has.
 */
int netlink_steer(const struct netlink_steered *wanted, unsigned int count,
		  unsigned int *ret_changes, struct why *why);

#endif
