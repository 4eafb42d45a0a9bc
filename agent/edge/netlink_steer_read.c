// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the kernel has of our rules and routes, and in which of our tables others have some. */
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <string.h>

#include "common/util.h"
#include "netlink_private.h"
#include "netlink_steer_private.h"

#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif

static inline void nl_msgp(struct nl_msg **m) { nlmsg_free(*m); }

void netlink_steer_forget(struct steer_kernel *k)
{
	for (unsigned int i = 0; i < k->rules; i++)
		free(k->rule[i].message);
	for (unsigned int i = 0; i < k->hops; i++)
		free(k->hop[i].message);
	free(k->rule);
	free(k->hop);
	*k = (struct steer_kernel){ 0 };
}

struct steer_hop *netlink_steer_hop_add(struct steer_kernel *k, int family)
{
	struct steer_hop *more = reallocarray(k->hop, k->hops + 1, sizeof(*more));

	if (!more)
		return NULL;
	k->hop = more;
	more[k->hops] = (struct steer_hop){ .family = family };
	return &more[k->hops++];
}

static struct nlmsghdr *message_copy(const struct nlmsghdr *from)
{
	struct nlmsghdr *copy = malloc(from->nlmsg_len);

	if (copy)
		memcpy(copy, from, from->nlmsg_len);
	return copy;
}

static bool table_is_ours(uint32_t table, unsigned int *ret)
{
	*ret = table - NETLINK_STEER_TABLE;
	return *ret < NETLINK_STEER_TABLES;
}

/* False: it is not there, or of another family. */
static bool raw_read(const struct nlattr *a, int family, uint8_t ret[STEER_RAW_BYTES])
{
	const size_t bytes = steer_raw_bytes(family);

	if (!a || nla_len(a) != (int)bytes)
		return false;
	memcpy(ret, nla_data(a), bytes);
	return true;
}

/* --- rules ----------------------------------------------------------------------------------- */

static bool rule_is_exact(const struct fib_rule_hdr *h, struct nlattr *const *a,
			  struct steer_rule *ret)
{
	const unsigned int bits = 8 * (unsigned int)steer_raw_bytes(h->family);

	return h->action == FR_ACT_TO_TBL && !h->tos && !(h->flags & FIB_RULE_INVERT) &&
	       h->src_len == bits && h->dst_len == bits && !a[FRA_IIFNAME] && !a[FRA_OIFNAME] &&
	       !a[FRA_FWMARK] && raw_read(a[FRA_SRC], h->family, ret->from) &&
	       raw_read(a[FRA_DST], h->family, ret->to);
}

static int on_rule(struct nl_msg *message, void *context)
{
	struct steer_kernel *k = context;
	struct nlmsghdr *whole = nlmsg_hdr(message);
	const struct fib_rule_hdr *h = nlmsg_data(whole);
	struct nlattr *a[FRA_MAX + 1] = { 0 };
	struct steer_rule r = { 0 }, *more;

	if (nlmsg_parse(whole, sizeof(*h), a, FRA_MAX, NULL) < 0 ||
	    (h->family != AF_INET && h->family != AF_INET6) || !a[FRA_PROTOCOL] ||
	    nla_get_u8(a[FRA_PROTOCOL]) != NETLINK_STEER_PROTOCOL || !a[FRA_PRIORITY] ||
	    nla_get_u32(a[FRA_PRIORITY]) != NETLINK_STEER_PRIORITY || !a[FRA_TABLE] ||
	    !table_is_ours(nla_get_u32(a[FRA_TABLE]), &r.table))
		return NL_OK;
	r.family = h->family;
	r.exact = rule_is_exact(h, a, &r);
	more = reallocarray(k->rule, k->rules + 1, sizeof(*more));
	if (more)
		k->rule = more;
	r.message = message_copy(whole);
	if (!more || !r.message) {
		free(r.message);
		k->error = -ENOMEM;
		return NL_OK;
	}
	more[k->rules++] = r;
	return NL_OK;
}

/* --- routes ---------------------------------------------------------------------------------- */

static bool hop_is_exact(const struct rtmsg *m, struct nlattr *const *a, struct steer_hop *ret)
{
	if (m->rtm_type != RTN_UNICAST || m->rtm_dst_len || m->rtm_src_len || m->rtm_tos ||
	    a[RTA_MULTIPATH] || !a[RTA_OIF] ||
	    !raw_read(a[RTA_GATEWAY], m->rtm_family, ret->gateway))
		return false;
	ret->ifindex = nla_get_u32(a[RTA_OIF]);
	return true;
}

static int on_route(struct nl_msg *message, void *context)
{
	struct steer_kernel *k = context;
	struct nlmsghdr *whole = nlmsg_hdr(message);
	const struct rtmsg *m = nlmsg_data(whole);
	struct nlattr *a[RTA_MAX + 1] = { 0 };
	struct steer_hop *h;
	unsigned int table;

	if (nlmsg_parse(whole, sizeof(*m), a, RTA_MAX, NULL) < 0 ||
	    (m->rtm_family != AF_INET && m->rtm_family != AF_INET6) ||
	    m->rtm_flags & RTM_F_CLONED || !a[RTA_TABLE] ||
	    !table_is_ours(nla_get_u32(a[RTA_TABLE]), &table))
		return NL_OK;
	if (m->rtm_protocol != NETLINK_STEER_PROTOCOL) {
		k->foreign[m->rtm_family == AF_INET6] |= 1ull << table;
		return NL_OK;
	}
	h = netlink_steer_hop_add(k, m->rtm_family);
	if (h)
		h->message = message_copy(whole);
	if (!h || !h->message) {
		k->error = -ENOMEM;
		return NL_OK;
	}
	h->table = table;
	h->exact = hop_is_exact(m, a, h);
	return NL_OK;
}

/* --- asking ---------------------------------------------------------------------------------- */

/* A kernel without such a table, or without IPv6, has nothing there. */
static int dump(struct nl_sock *s, struct nl_msg *question, nl_recvmsg_msg_cb_t on,
		struct steer_kernel *k)
{
	int r = nl_socket_modify_cb(s, NL_CB_VALID, NL_CB_CUSTOM, on, k);

	if (r >= 0)
		r = nl_send_auto(s, question);
	if (r >= 0)
		r = nl_recvmsgs_default(s);
	if (r == -NLE_OBJ_NOTFOUND || r == -NLE_AF_NOSUPPORT || r == -NLE_OPNOTSUPP)
		r = 0;
	if (r < 0)
		return r == -NLE_NOMEM ? -ENOMEM : -EIO;
	return k->error;
}

static int rules_read(struct nl_sock *s, int family, struct steer_kernel *k)
{
	_cleanup_(nl_msgp) struct nl_msg *m = nlmsg_alloc_simple(RTM_GETRULE, NLM_F_DUMP);
	const struct fib_rule_hdr all = { .family = (uint8_t)family };

	if (!m || nlmsg_append(m, (void *)&all, sizeof(all), NLMSG_ALIGNTO) < 0)
		return -ENOMEM;
	return dump(s, m, on_rule, k);
}

/* One table: a router's main one may have a million routes. */
static int routes_read(struct nl_sock *s, int family, unsigned int table, struct steer_kernel *k)
{
	_cleanup_(nl_msgp) struct nl_msg *m = nlmsg_alloc_simple(RTM_GETROUTE, NLM_F_DUMP);
	const struct rtmsg all = { .rtm_family = (unsigned char)family };

	if (!m || nlmsg_append(m, (void *)&all, sizeof(all), NLMSG_ALIGNTO) < 0 ||
	    nla_put_u32(m, RTA_TABLE, NETLINK_STEER_TABLE + table) < 0)
		return -ENOMEM;
	return dump(s, m, on_route, k);
}

int netlink_steer_read(struct nl_sock *s, struct steer_kernel *ret)
{
	static const int families[] = { AF_INET, AF_INET6 };
	const int on = 1;
	int r = 0;

	/* Without it, the kernel sends all tables, whichever is asked for. */
	if (setsockopt(nl_socket_get_fd(s), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on)) <
	    0)
		return -EIO;
	for (unsigned int i = 0; r == 0 && i < 2; i++) {
		r = rules_read(s, families[i], ret);
		for (unsigned int t = 0; r == 0 && t < NETLINK_STEER_TABLES; t++)
			r = routes_read(s, families[i], t, ret);
	}
	return r;
}
