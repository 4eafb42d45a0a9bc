// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "netlink_steer.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <string.h>
#include <sys/ioctl.h>

#include "common/address.h"
#include "common/util.h"
#include "netlink_private.h"
#include "netlink_steer_private.h"

struct work {
	struct nl_sock *socket;
	struct steer_kernel kernel;
	unsigned int changes;
	int error; /* the first one, */
	struct why *why; /* and what it was */
};

static inline void nl_sockp(struct nl_sock **s) { nl_socket_free(*s); }

static const void *raw_of(const struct sockaddr_storage *address)
{
	size_t bytes;

	return address_raw((struct sockaddr_storage *)address, &bytes);
}

/* --- what went wrong ------------------------------------------------------------------------- */

static void note(struct work *w, int error, const char *what, const char *said)
{
	if (w->error < 0)
		return;
	w->error = why_say(w->why, error, "the kernel %s: %s", what, said);
}

/* The kernel does it, or says why not; the message goes. `absent_is_fine`: it went by itself. */
static bool do_it(struct work *w, struct nl_msg *message, const char *what, bool absent_is_fine)
{
	int r;

	if (!message) {
		note(w, -ENOMEM, what, "no memory");
		return false;
	}
	r = nl_send_sync(w->socket, message);
	if (r < 0 && absent_is_fine && (r == -NLE_OBJ_NOTFOUND || r == -NLE_NODEV))
		return true;
	if (r < 0)
		note(w,
		     r == -NLE_PERM    ? -EPERM
		     : r == -NLE_NOMEM ? -ENOMEM
				       : -EIO,
		     what, nl_geterror(r));
	else
		w->changes++;
	return r >= 0;
}

/* --- next nodes, each with a table ----------------------------------------------------------- */

static bool is_alone(const struct work *w, const struct steer_hop *h)
{
	if (w->kernel.foreign[h->family == AF_INET6] >> h->table & 1)
		return false;
	for (unsigned int i = 0; i < w->kernel.hops; i++) {
		const struct steer_hop *o = &w->kernel.hop[i];

		if (o != h && o->family == h->family && o->table == h->table)
			return false;
	}
	return true;
}

/* -1: all have routes of somebody. */
static int table_free(const struct work *w, int family)
{
	for (unsigned int t = 0; t < NETLINK_STEER_TABLES; t++) {
		const struct steer_hop here = { .family = family, .table = t };

		if (is_alone(w, &here))
			return (int)t;
	}
	return -1;
}

static struct nl_msg *hop_message(const struct steer_hop *h)
{
	struct nl_msg *m = nlmsg_alloc_simple(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
	/* The next node's address need not be of a network that this port is in. */
	const struct rtmsg head = { .rtm_family = (unsigned char)h->family,
				    .rtm_protocol = NETLINK_STEER_PROTOCOL,
				    .rtm_type = RTN_UNICAST,
				    .rtm_scope = RT_SCOPE_UNIVERSE,
				    .rtm_flags = RTNH_F_ONLINK };

	if (m && nlmsg_append(m, (void *)&head, sizeof(head), NLMSG_ALIGNTO) == 0 &&
	    nla_put_u32(m, RTA_TABLE, NETLINK_STEER_TABLE + h->table) == 0 &&
	    nla_put_u32(m, RTA_OIF, h->ifindex) == 0 &&
	    nla_put(m, RTA_GATEWAY, (int)steer_raw_bytes(h->family), h->gateway) == 0)
		return m;
	nlmsg_free(m);
	return NULL;
}

/* Its number; 0: it is not there, or not up, and the kernel takes no route. */
static uint32_t port_up(const char *port)
{
	_cleanup_(closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { 0 };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", port);
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0 || !(r.ifr_flags & IFF_UP))
		return 0;
	return if_nametoindex(port);
}

/* The table by which its packets leave; -1: there is none. */
static int table_of(struct work *w, const struct netlink_steered *s)
{
	const int family = s->gateway.ss_family;
	const size_t bytes = steer_raw_bytes(family);
	const uint32_t ifindex = port_up(s->port);
	struct steer_hop *h;
	int table;

	for (unsigned int i = 0; i < w->kernel.hops; i++) {
		h = &w->kernel.hop[i];
		if (h->family != family || !h->exact || h->ifindex != ifindex ||
		    memcmp(h->gateway, raw_of(&s->gateway), bytes) != 0 || !is_alone(w, h))
			continue;
		h->wanted = true;
		return (int)h->table;
	}
	table = table_free(w, family);
	if (!ifindex || table < 0) {
		note(w, ifindex ? -E2BIG : -ENODEV, "cannot be told of a next node",
		     ifindex ? "others use all tables, or there are more next nodes than these"
			     : "the port is not there, or not up");
		return -1;
	}
	h = netlink_steer_hop_add(&w->kernel, family);
	if (!h) {
		note(w, -ENOMEM, "is not told of a next node", "no memory");
		return -1;
	}
	h->table = (unsigned int)table;
	h->ifindex = ifindex;
	memcpy(h->gateway, raw_of(&s->gateway), bytes);
	h->wanted = h->exact = do_it(w, hop_message(h), "takes no route", false);
	if (h->wanted)
		return table;
	w->kernel.hops--;
	return -1;
}

/* --- rules ----------------------------------------------------------------------------------- */

static struct nl_msg *rule_message(const struct netlink_steered *s, unsigned int table)
{
	const int family = s->from.ss_family, bytes = (int)steer_raw_bytes(family);
	struct nl_msg *m = nlmsg_alloc_simple(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);
	const struct fib_rule_hdr head = { .family = (uint8_t)family,
					   .src_len = (uint8_t)(8 * bytes),
					   .dst_len = (uint8_t)(8 * bytes),
					   .action = FR_ACT_TO_TBL };

	if (m && nlmsg_append(m, (void *)&head, sizeof(head), NLMSG_ALIGNTO) == 0 &&
	    nla_put(m, FRA_SRC, bytes, raw_of(&s->from)) == 0 &&
	    nla_put(m, FRA_DST, bytes, raw_of(&s->to)) == 0 &&
	    nla_put_u32(m, FRA_TABLE, NETLINK_STEER_TABLE + table) == 0 &&
	    nla_put_u32(m, FRA_PRIORITY, NETLINK_STEER_PRIORITY) == 0 &&
	    nla_put_u8(m, FRA_PROTOCOL, NETLINK_STEER_PROTOCOL) == 0)
		return m;
	nlmsg_free(m);
	return NULL;
}

static void rule_want(struct work *w, const struct netlink_steered *s)
{
	const int family = s->from.ss_family, table = table_of(w, s);
	const size_t bytes = steer_raw_bytes(family);

	for (unsigned int i = 0; table >= 0 && i < w->kernel.rules; i++) {
		struct steer_rule *r = &w->kernel.rule[i];

		if (r->wanted || r->family != family || !r->exact ||
		    r->table != (unsigned int)table ||
		    memcmp(r->from, raw_of(&s->from), bytes) != 0 ||
		    memcmp(r->to, raw_of(&s->to), bytes) != 0)
			continue;
		r->wanted = true;
		return;
	}
	if (table >= 0)
		do_it(w, rule_message(s, (unsigned int)table), "takes no rule", false);
}

/* --- what is too much ------------------------------------------------------------------------ */

/* With all that the kernel told of it: nothing else is like that. */
static void delete(struct work *w, const struct nlmsghdr *as_told, int type, const char *what)
{
	struct nl_msg *m = nlmsg_alloc_simple(type, 0);

	if (m && nlmsg_append(m, (char *)as_told + NLMSG_HDRLEN, as_told->nlmsg_len - NLMSG_HDRLEN,
			      0) < 0) {
		nlmsg_free(m);
		m = NULL;
	}
	do_it(w, m, what, true);
}

static void clean(struct work *w)
{
	for (unsigned int i = 0; i < w->kernel.rules; i++)
		if (!w->kernel.rule[i].wanted)
			delete (w, w->kernel.rule[i].message, RTM_DELRULE, "deletes no rule");
	for (unsigned int i = 0; i < w->kernel.hops; i++)
		if (!w->kernel.hop[i].wanted)
			delete (w, w->kernel.hop[i].message, RTM_DELROUTE, "deletes no route");
}

int netlink_steer(const struct netlink_steered *wanted, unsigned int count,
		  unsigned int *ret_changes, struct why *why)
{
	_cleanup_(nl_sockp) struct nl_sock *s = nl_socket_alloc();
	struct work w = { .socket = s, .why = why };
	int r;

	if (!s)
		return -ENOMEM;
	if (nl_connect(s, NETLINK_ROUTE) < 0)
		return why_say(why, -EIO, "the kernel does not listen");
	r = netlink_steer_read(s, &w.kernel);
	if (r < 0) {
		netlink_steer_forget(&w.kernel);
		return why_say(why, r, "the kernel does not say which rules and routes it has");
	}
	for (unsigned int i = 0; i < count; i++)
		rule_want(&w, &wanted[i]);
	clean(&w);
	netlink_steer_forget(&w.kernel);
	*ret_changes = w.changes;
	return w.error;
}
