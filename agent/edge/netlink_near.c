// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>

#include "netlink_private.h"

struct list {
	struct netlink_neighbour *neighbour;
	unsigned int count, max;
};

static inline void nl_sockp(struct nl_sock **s) { nl_socket_free(*s); }

static int on_neighbour(struct nl_msg *m, void *context)
{
	struct netlink_neighbour n;
	struct list *l = context;

	if (l->count < l->max && netlink_neighbour_parse(nlmsg_hdr(m), &n) && n.known)
		l->neighbour[l->count++] = n;
	return NL_OK;
}

int netlink_neighbours(struct netlink_neighbour *ret, unsigned int max)
{
	_cleanup_(nl_sockp) struct nl_sock *s = nl_socket_alloc();
	struct list list = { ret, 0, max };
	struct ndmsg all = { .ndm_family = AF_UNSPEC };
	int r;

	if (!s)
		return -ENOMEM;
	r = nl_socket_modify_cb(s, NL_CB_VALID, NL_CB_CUSTOM, on_neighbour, &list);
	if (r >= 0)
		r = nl_connect(s, NETLINK_ROUTE);
	if (r >= 0)
		r = nl_send_simple(s, RTM_GETNEIGH, NLM_F_DUMP, &all, sizeof(all));
	if (r >= 0)
		r = nl_recvmsgs_default(s);
	if (r < 0)
		return r == -NLE_NOMEM ? -ENOMEM : -EIO;
	return (int)list.count;
}
