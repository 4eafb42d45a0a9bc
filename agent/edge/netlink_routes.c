// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The kernel's main table, one entry for each interface that a prefix's packets may leave by. */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <string.h>

#include "common/owned.h"
#include "netlink_private.h"

struct table {
	struct netlink_route *route;
	uint32_t *metric;
	unsigned int count, max;
	bool full;
};

static bool is_same(const struct netlink_route *a, const struct netlink_route *b)
{
	return a->bits == b->bits && !memcmp(&a->to, &b->to, sizeof(a->to));
}

/* Of several routes to one prefix, those of the least metric count. */
static void add(struct table *t, const struct netlink_route *r, uint32_t metric)
{
	for (unsigned int i = 0; i < t->count; i++) {
		if (!is_same(&t->route[i], r) || t->metric[i] == metric)
			continue;
		if (t->metric[i] < metric)
			return;
		t->count--;
		t->route[i] = t->route[t->count];
		t->metric[i--] = t->metric[t->count];
	}
	if (t->count == t->max) {
		t->full = true;
		return;
	}
	t->metric[t->count] = metric;
	t->route[t->count++] = *r;
}

/* The gateways of a route by several interfaces, which share its packets. */
static void add_hops(struct table *t, struct nlattr *several, struct netlink_route *r,
		     uint32_t metric)
{
	struct rtnexthop *hop = nla_data(several);
	int left = nla_len(several);

	for (; RTNH_OK(hop, left); left -= RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop)) {
		r->ifindex = (uint32_t)hop->rtnh_ifindex;
		if (!(hop->rtnh_flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN)))
			add(t, r, metric);
	}
}

static bool destination(const struct rtmsg *m, struct nlattr *attribute, struct netlink_route *ret)
{
	const size_t bytes = m->rtm_family == AF_INET6 ? 16 : 4;
	struct sockaddr_in *four = (struct sockaddr_in *)&ret->to;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&ret->to;

	ret->to.ss_family = m->rtm_family;
	ret->bits = m->rtm_dst_len;
	if (!attribute)
		return !m->rtm_dst_len;
	if (nla_len(attribute) != (int)bytes || m->rtm_dst_len > 8 * bytes)
		return false;
	memcpy(bytes == 4 ? (void *)&four->sin_addr : (void *)&six->sin6_addr, nla_data(attribute),
	       bytes);
	return true;
}

static int on_route(struct nl_msg *message, void *context)
{
	struct table *t = context;
	struct nlattr *a[RTA_MAX + 1] = { 0 };
	const struct rtmsg *m = nlmsg_data(nlmsg_hdr(message));
	struct netlink_route r = { 0 };
	uint32_t metric;

	if (nlmsg_parse(nlmsg_hdr(message), sizeof(*m), a, RTA_MAX, NULL) < 0 ||
	    (m->rtm_family != AF_INET && m->rtm_family != AF_INET6) || m->rtm_type != RTN_UNICAST ||
	    m->rtm_flags & (RTM_F_CLONED | RTNH_F_DEAD) ||
	    (a[RTA_TABLE] ? nla_get_u32(a[RTA_TABLE]) : m->rtm_table) != RT_TABLE_MAIN ||
	    !destination(m, a[RTA_DST], &r))
		return NL_OK;
	metric = a[RTA_PRIORITY] ? nla_get_u32(a[RTA_PRIORITY]) : 0;
	if (a[RTA_MULTIPATH]) {
		add_hops(t, a[RTA_MULTIPATH], &r, metric);
	} else if (a[RTA_OIF]) {
		r.ifindex = nla_get_u32(a[RTA_OIF]);
		add(t, &r, metric);
	}
	/* A router may have a million: the rest stays unread, and goes with the socket. */
	return t->full ? NL_STOP : NL_OK;
}

int netlink_routes(int family, struct netlink_route *ret, unsigned int max)
{
	_cleanup_(freep) uint32_t *metric = calloc(max, sizeof(*metric));
	struct table table = { ret, metric, 0, max, false };
	struct rtmsg all = { .rtm_family = (unsigned char)family };
	int r = metric ? netlink_dump(RTM_GETROUTE, &all, sizeof(all), on_route, &table) : -ENOMEM;

	if (r < 0)
		return r;
	return table.full ? -E2BIG : (int)table.count;
}
