/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What netlink*.c share: ownership of libnl's objects, and ethtool. Nobody else includes this. */
#ifndef TALLY_AGENT_NETLINK_PRIVATE_H
#define TALLY_AGENT_NETLINK_PRIVATE_H

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>

#include "util.h"

static inline void nl_cachep(struct nl_cache **c) { nl_cache_free(*c); }
static inline void linkp(struct rtnl_link **l) { rtnl_link_put(*l); }

/* One ethtool command on an interface; `fd` is any socket. */
static inline bool ethtool(int fd, const char *name, void *command)
{
	struct ifreq request = { .ifr_data = command };

	memcpy(request.ifr_name, name, strnlen(name, IF_NAMESIZE - 1));
	return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

#endif
