/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What netlink*.c share: libnl's objects. Nobody else includes this. */
#ifndef TALLY_AGENT_NETLINK_PRIVATE_H
#define TALLY_AGENT_NETLINK_PRIVATE_H

#include <netlink/netlink.h>
#include <netlink/route/link.h>

#include "common/util.h"
#include "netlink.h"

/* What a message says of a neighbour. False: of none, or of none at an address of the Internet. */
bool netlink_neighbour_parse(struct nlmsghdr *message, struct netlink_neighbour *ret);

/*
 * Another socket for requests, if there can be one. What broke off, as without memory, leaves an
 * answer in the old one, and each later request would stumble over it.
 */
void netlink_renew(struct nl_sock **request);

/*
 * An interface by index, or by name where the index is 0; the caller puts it back. -ENODEV: there
 * is none; -ENOMEM; -EIO: the kernel does not say. The socket may be another one afterwards.
 */
int netlink_link_get(struct nl_sock **request, uint32_t ifindex, const char *name,
		     struct rtnl_link **ret);

/*
 * All that the kernel has, by a socket of its own, message by message; `on` may end that with
 * NL_STOP. `head` is what the request begins with, such as a struct rtmsg. -ENOMEM; -EIO: the
 * kernel does not say.
 */
int netlink_dump(int type, void *head, size_t bytes, nl_recvmsg_msg_cb_t on, void *context);

static inline void nl_cachep(struct nl_cache **c) { nl_cache_free(*c); }
static inline void linkp(struct rtnl_link **l) { rtnl_link_put(*l); }

#endif
