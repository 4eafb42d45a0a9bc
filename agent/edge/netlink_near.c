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

int netlink_dump(int type, void *head, size_t bytes, nl_recvmsg_msg_cb_t on, void *context)
{
	_cleanup_(nl_sockp) struct nl_sock *s = nl_socket_alloc();
	int r;

	if (!s)
		return -ENOMEM;
	r = nl_socket_modify_cb(s, NL_CB_VALID, NL_CB_CUSTOM, on, context);
	if (r >= 0)
		r = nl_connect(s, NETLINK_ROUTE);
	if (r >= 0)
		r = nl_send_simple(s, type, NLM_F_DUMP, head, bytes);
	if (r >= 0)
		r = nl_recvmsgs_default(s);
	if (r < 0)
		return r == -NLE_NOMEM ? -ENOMEM : -EIO;
	return 0;
}

int netlink_neighbours(struct netlink_neighbour *ret, unsigned int max)
{
	struct list list = { ret, 0, max };
	struct ndmsg all = { .ndm_family = AF_UNSPEC };
	int r = netlink_dump(RTM_GETNEIGH, &all, sizeof(all), on_neighbour, &list);

	return r < 0 ? r : (int)list.count;
}
