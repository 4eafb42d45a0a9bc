// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/pkt_sched.h>
#include <netlink/route/classifier.h>

#include "netlink_filters.h"
#include "netlink_private.h"

static inline void nl_sockp(struct nl_sock **s) { nl_socket_free(*s); }

int netlink_filters_count(uint32_t ifindex)
{
	const uint32_t parents[] = { TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS),
				     TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS) };
	_cleanup_(nl_sockp) struct nl_sock *s = nl_socket_alloc();
	int count = 0;

	if (!s || nl_connect(s, NETLINK_ROUTE) < 0)
		return -EIO;
	for (size_t i = 0; i < sizeof(parents) / sizeof(*parents); i++) {
		_cleanup_(nl_cachep) struct nl_cache *filters = NULL;

		if (rtnl_cls_alloc_cache(s, (int)ifindex, parents[i], &filters) < 0)
			return -EIO;
		count += nl_cache_nitems(filters);
	}
	return count;
}
