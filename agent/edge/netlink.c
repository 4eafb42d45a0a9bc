// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netlink/route/link.h>
#include <netlink/route/link/vlan.h>
#include <netlink/msg.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "common/address.h"
#include "common/clock.h"
#include "ethtool.h"
#include "netlink.h"
#include "netlink_private.h"

enum {
	DISCARD_PORT = 9,
};

struct netlink {
	struct nl_sock *request;
	struct nl_sock *events; /* neighbours that come to be known */
};

static inline void msgp(struct nl_msg **m) { nlmsg_free(*m); }
static inline void cbp(struct nl_cb **cb) { nl_cb_put(*cb); }

void netlink_close(struct netlink *n)
{
	if (!n)
		return;
	nl_socket_free(n->request);
	nl_socket_free(n->events);
	free(n);
}

int netlink_open(struct netlink **ret)
{
	_cleanup_(netlink_closep) struct netlink *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->request = nl_socket_alloc();
	n->events = nl_socket_alloc();
	if (!n->request || !n->events)
		return -ENOMEM;
	nl_socket_disable_seq_check(n->events);
	if (nl_connect(n->request, NETLINK_ROUTE) < 0 || nl_connect(n->events, NETLINK_ROUTE) < 0 ||
	    nl_socket_set_nonblocking(n->events) < 0 ||
	    nl_socket_add_memberships(n->events, RTNLGRP_NEIGH, 0) < 0)
		return -EIO;
	*ret = TAKE_PTR(n);
	return 0;
}

void netlink_renew(struct nl_sock **request)
{
	struct nl_sock *fresh = nl_socket_alloc();

	if (!fresh || nl_connect(fresh, NETLINK_ROUTE) < 0) {
		nl_socket_free(fresh);
		return;
	}
	nl_socket_free(*request);
	*request = fresh;
}

/* Does an answer wait that nobody has read? The kernel writes all of them before send() returns. */
static bool answer_is_left(struct nl_sock *s)
{
	char byte;

	return recv(nl_socket_get_fd(s), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

int netlink_link_get(struct nl_sock **request, uint32_t ifindex, const char *name,
		     struct rtnl_link **ret)
{
	int r = rtnl_link_get_kernel(*request, (int)ifindex, name, ret);

	const bool is_said = r == -NLE_NODEV || r == -NLE_OBJ_NOTFOUND || (r >= 0 && *ret);

	/* libnl does not say that it found no memory for the acknowledgement behind a link. */
	if (!is_said || answer_is_left(*request))
		netlink_renew(request);
	if (is_said)
		return r < 0 ? -ENODEV : 0;
	/* "Success" without a link is what libnl says when it found no memory for the answer. */
	return r >= 0 || r == -NLE_NOMEM ? -ENOMEM : -EIO;
}

/* False: not one of the Internet's. */
static bool address_fill(int family, const void *from, size_t length, struct sockaddr_storage *ret)
{
	size_t bytes;
	void *raw;

	*ret = (struct sockaddr_storage){ .ss_family = family };
	raw = address_raw(ret, &bytes);
	if ((family != AF_INET && family != AF_INET6) || length != bytes)
		return false;
	memcpy(raw, from, bytes);
	return true;
}

bool netlink_neighbour_parse(struct nlmsghdr *message, struct netlink_neighbour *ret)
{
	struct netlink_neighbour n = { 0 };
	struct nlattr *attribute[NDA_MAX + 1], *mac;
	struct ndmsg *entry;

	if (nlmsg_parse(message, sizeof(*entry), attribute, NDA_MAX, NULL) < 0)
		return false;
	entry = nlmsg_data(message);
	if (!attribute[NDA_DST] || !address_fill(entry->ndm_family, nla_data(attribute[NDA_DST]),
						 (size_t)nla_len(attribute[NDA_DST]), &n.address))
		return false;
	n.ifindex = (uint32_t)entry->ndm_ifindex;
	mac = attribute[NDA_LLADDR];
	n.known = message->nlmsg_type == RTM_NEWNEIGH &&
		  !(entry->ndm_state & (NUD_INCOMPLETE | NUD_FAILED)) && mac &&
		  nla_len(mac) == sizeof(n.mac);
	if (n.known)
		memcpy(n.mac, nla_data(mac), sizeof(n.mac));
	*ret = n;
	return true;
}

/* A request, and what comes back. Less than 0: libnl's number. */
static int ask(struct netlink *n, struct nl_msg *request, nl_recvmsg_msg_cb_t take, void *context)
{
	_cleanup_(cbp) struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);
	int r;

	if (!cb)
		return -NLE_NOMEM;
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, take, context);
	r = nl_send_auto(n->request, request);
	if (r >= 0)
		r = nl_recvmsgs(n->request, cb);
	if (r >= 0)
		r = nl_wait_for_ack(n->request);
	return r;
}

static int address_put(struct nl_msg *m, int attribute, struct sockaddr_storage address)
{
	size_t bytes;
	const void *raw = address_raw(&address, &bytes);

	return nla_put(m, attribute, (int)bytes, raw);
}

struct way {
	bool known;
	uint8_t type; /* RTN_... */
	int ifindex; /* 0: no next hop */
	bool direct; /* without a gateway */
	struct sockaddr_storage next; /* whose MAC is wanted: a gateway's or the target's own */
	uint8_t source[16]; /* of this machine */
};

static int on_route(struct nl_msg *m, void *context)
{
	struct way *way = context;
	struct nlattr *attribute[RTA_MAX + 1];
	struct rtmsg *route = nlmsg_data(nlmsg_hdr(m));
	const struct rtvia *via;

	if (nlmsg_parse(nlmsg_hdr(m), sizeof(*route), attribute, RTA_MAX, NULL) < 0)
		return NL_OK;
	way->known = true;
	way->type = route->rtm_type;
	way->ifindex = attribute[RTA_OIF] ? (int)nla_get_u32(attribute[RTA_OIF]) : 0;
	if (attribute[RTA_GATEWAY]) {
		way->known = address_fill(route->rtm_family, nla_data(attribute[RTA_GATEWAY]),
					  (size_t)nla_len(attribute[RTA_GATEWAY]), &way->next);
	} else if (attribute[RTA_VIA]) {
		via = nla_data(attribute[RTA_VIA]);
		way->known = address_fill(via->rtvia_family, via->rtvia_addr,
					  (size_t)nla_len(attribute[RTA_VIA]) - sizeof(*via),
					  &way->next);
	} else {
		way->direct = true;
	}
	if (attribute[RTA_PREFSRC])
		nla_memcpy(way->source, attribute[RTA_PREFSRC], sizeof(way->source));
	return NL_OK;
}

/*
 * By messages of our own: libnl's rtnl_route_lookup() (3.7) reads and writes through NULL where it
 * finds no memory.
 */
static int route_find(struct netlink *n, const struct sockaddr_storage *target, const char *text,
		      struct way *ret, struct why *why)
{
	struct rtmsg route = {
		.rtm_family = (uint8_t)target->ss_family,
		.rtm_dst_len = target->ss_family == AF_INET ? 32 : 128,
	};
	_cleanup_(msgp) struct nl_msg *m = nlmsg_alloc_simple(RTM_GETROUTE, 0);
	struct way way = { .next = *target };
	int r;

	if (!m || nlmsg_append(m, &route, sizeof(route), NLMSG_ALIGNTO) < 0 ||
	    address_put(m, RTA_DST, *target) < 0)
		return -ENOMEM;
	r = ask(n, m, on_route, &way);
	if (r == -NLE_NOMEM)
		return -ENOMEM;
	if (r < 0 || !way.known)
		return why_say(why, -ENETUNREACH, "there is no route to %s (ip route get %s)", text,
			       text);
	if (way.type != RTN_UNICAST)
		return why_say(why, -EINVAL, "%s: %s", text,
			       way.type == RTN_LOCAL
				       ? "is an address of this node itself: workers are on other "
					 "machines, or in network namespaces behind a port"
				       : "blackhole or unreachable route (ip route get)");
	if (!way.ifindex)
		return why_say(why, -ENETUNREACH, "the route to %s has no next hop", text);
	*ret = way;
	return 0;
}

static int on_neighbour(struct nl_msg *m, void *context)
{
	netlink_neighbour_parse(nlmsg_hdr(m), context);
	return NL_OK;
}

/* Asks for this one alone. -ENOENT: nothing known that could be used. */
static int neighbour_find(struct netlink *n, const struct way *way, uint8_t ret[6])
{
	struct ndmsg entry = { .ndm_family = (uint8_t)way->next.ss_family,
			       .ndm_ifindex = way->ifindex };
	_cleanup_(msgp) struct nl_msg *m = nlmsg_alloc_simple(RTM_GETNEIGH, 0);
	struct netlink_neighbour found = { 0 };
	int r;

	if (!m || nlmsg_append(m, &entry, sizeof(entry), NLMSG_ALIGNTO) < 0 ||
	    address_put(m, NDA_DST, way->next) < 0)
		return -ENOMEM;
	r = ask(n, m, on_neighbour, &found);
	if (r < 0 && r != -NLE_OBJ_NOTFOUND)
		return -EIO;
	if (!found.known)
		return -ENOENT;
	memcpy(ret, found.mac, sizeof(found.mac));
	return 0;
}

/* One datagram to where nobody listens: the kernel asks for the neighbour to send it. `port`: by
 * this one; or "". */
static void neighbour_provoke(const struct sockaddr_storage *address, const char *port)
{
	_cleanup_(closep) int fd = socket(address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage to = *address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&to;
	socklen_t length = to.ss_family == AF_INET ? sizeof(struct sockaddr_in)
						   : sizeof(struct sockaddr_in6);

	endpoint_port_set(&to, DISCARD_PORT);
	if (fd < 0 || (*port && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, port,
					   (socklen_t)strlen(port)) < 0))
		return;
	if (*port && to.ss_family == AF_INET6)
		six->sin6_scope_id = if_nametoindex(port);
	sendto(fd, "", 0, MSG_DONTWAIT | (*port ? MSG_DONTROUTE : 0), (struct sockaddr *)&to,
	       length);
}

/* `address` and `port`: where a datagram goes that the neighbour is asked for. */
static int neighbour_wait(struct netlink *n, const struct sockaddr_storage *address,
			  const char *port, const struct way *way, unsigned int wait_ms,
			  uint8_t ret[6])
{
	int r = neighbour_find(n, way, ret);
	uint64_t end_ns = clock_now_ns() + wait_ms * 1000000ull, now_ns;

	if (r != -ENOENT)
		return r;
	neighbour_provoke(address, port);
	while ((r = neighbour_find(n, way, ret)) == -ENOENT) {
		struct pollfd p = { .fd = nl_socket_get_fd(n->events), .events = POLLIN };

		now_ns = clock_now_ns();
		if (now_ns >= end_ns || poll(&p, 1, (end_ns - now_ns) / 1000000) <= 0)
			return -EHOSTUNREACH;
		nl_recvmsgs_default(n->events);
	}
	return r;
}

/* The interface's own part of a hop. */
static int port_fill(struct netlink *n, int ifindex, const char *text, struct hop *ret,
		     struct why *why)
{
	_cleanup_(linkp) struct rtnl_link *link = NULL;
	struct nl_addr *mac;
	int r;

	r = netlink_link_get(&n->request, (uint32_t)ifindex, NULL, &link);
	if (r < 0)
		return why_say(why, r, "%s: %s", text,
			       r == -ENODEV ? "the interface of the route has gone" : strerror(-r));
	mac = rtnl_link_get_addr(link);
	if (rtnl_link_get_arptype(link) != ARPHRD_ETHER || !mac || nl_addr_get_len(mac) != 6)
		return why_say(why, -EINVAL, "%s: is reached over %s, which is not Ethernet", text,
			       rtnl_link_get_name(link));
	memcpy(ret->port_mac, nl_addr_get_binary_addr(mac), 6);
	ret->mtu = rtnl_link_get_mtu(link);
	ret->port = rtnl_link_is_vlan(link) ? rtnl_link_get_link(link) : ifindex;
	if (!if_indextoname(ret->port, ret->port_name))
		return why_say(why, -EINVAL, "%s: the interface below %s is in another namespace",
			       text, rtnl_link_get_name(link));
	return 0;
}

/* The way, and the hop without its neighbour. */
static int way_find(struct netlink *n, const struct sockaddr_storage *address, const char *text,
		    struct way *ret_way, struct hop *ret, struct why *why)
{
	int r = route_find(n, address, text, ret_way, why);

	if (r == 0)
		r = port_fill(n, ret_way->ifindex, text, ret, why);
	if (r == 0 && ret_way->direct)
		memcpy(ret->source, ret_way->source, sizeof(ret->source));
	return r;
}

/* The neighbour of a hop that is known but for it. */
static int resolve(struct netlink *n, const struct sockaddr_storage *address, const char *port,
		   const struct way *way, unsigned int wait_ms, struct hop *hop, struct why *why)
{
	char text[ADDRESS_BYTES];
	int r = neighbour_wait(n, address, port, way, wait_ms, hop->mac);

	address_print(address, text, sizeof(text));
	if (r == -EHOSTUNREACH)
		return why_say(
			why, r,
			"%s: no neighbour answers on %s. Check that the machine is up and the "
			"cable is in (ip neigh show dev %s)",
			text, hop->port_name, hop->port_name);
	if (r < 0)
		return why_say(why, r, "%s: cannot read the neighbours of %s", text,
			       hop->port_name);
	return 0;
}

/* What has failed may have left an answer behind. */
static int resolved(struct netlink *n, int r, const struct hop *hop, struct hop *ret)
{
	if (r < 0 && r != -EHOSTUNREACH)
		netlink_renew(&n->request);
	if (r == 0)
		*ret = *hop;
	return r;
}

int netlink_resolve(struct netlink *n, const struct sockaddr_storage *address, unsigned int wait_ms,
		    struct hop *ret, struct why *why)
{
	char text[ADDRESS_BYTES];
	struct hop hop = { 0 };
	struct way way;
	int r;

	address_print(address, text, sizeof(text));
	r = way_find(n, address, text, &way, &hop, why);
	if (r == 0)
		r = resolve(n, address, "", &way, wait_ms, &hop, why);
	return resolved(n, r, &hop, ret);
}

int netlink_resolve_at(struct netlink *n, const struct sockaddr_storage *neighbour,
		       const char *port, unsigned int wait_ms, struct hop *ret, struct why *why)
{
	const struct way way = { .ifindex = (int)if_nametoindex(port), .next = *neighbour };
	char text[ADDRESS_BYTES];
	struct hop hop = { 0 };
	int r;

	address_print(neighbour, text, sizeof(text));
	if (!way.ifindex)
		return why_say(why, -ENODEV, "%s: there is no %s to send to it by", text, port);
	r = port_fill(n, way.ifindex, text, &hop, why);
	if (r == 0)
		r = resolve(n, neighbour, port, &way, wait_ms, &hop, why);
	return resolved(n, r, &hop, ret);
}

int netlink_next(struct netlink *n, const struct sockaddr_storage *address,
		 struct netlink_next *ret, struct why *why)
{
	char text[ADDRESS_BYTES];
	struct hop hop = { 0 };
	struct way way;
	int r;

	address_print(address, text, sizeof(text));
	r = way_find(n, address, text, &way, &hop, why);
	if (r < 0) {
		netlink_renew(&n->request);
		return r;
	}
	*ret = (struct netlink_next){ .hop = hop,
				      .ifindex = (uint32_t)way.ifindex,
				      .address = way.next };
	memcpy(ret->source, way.source, sizeof(ret->source));
	return 0;
}

/* --- ethtool --------------------------------------------------------------------------------- */

static void driver_read(int fd, struct netlink_port *p)
{
	struct ethtool_drvinfo driver = { .cmd = ETHTOOL_GDRVINFO };
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };

	if (ethtool(fd, p->name, &driver))
		snprintf(p->driver, sizeof(p->driver), "%.31s", driver.driver);
	if (ethtool(fd, p->name, &channels)) {
		p->channels = channels.combined_count;
		p->channels_max = channels.max_combined;
	}
}

/* Plain GRO leaves UDP alone unless one of these is on, or a socket asks for it. */
static void coalescing_add(void *context, const char *feature, bool active)
{
	static const char *const names[] = { "rx-lro", "rx-gro-hw", "rx-gro-list",
					     "rx-udp-gro-forwarding" };
	struct netlink_port *p = context;
	size_t n = strlen(p->coalescing);

	for (size_t i = 0; active && i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(feature, names[i]))
			snprintf(p->coalescing + n, sizeof(p->coalescing) - n, " %s off", feature);
}

int netlink_port_read(struct netlink *n, const char *name, struct netlink_port *ret,
		      struct why *why)
{
	_cleanup_(closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	_cleanup_(linkp) struct rtnl_link *link = NULL;
	struct netlink_port p = { 0 };
	int r;

	if (fd < 0)
		return -errno;
	r = strlen(name) < IF_NAMESIZE ? netlink_link_get(&n->request, 0, name, &link) : -ENODEV;
	if (r < 0)
		return why_say(why, r, "%s: %s", name,
			       r == -ENODEV
				       ? "no such interface in this network namespace (ip link)"
				       : strerror(-r));
	if (rtnl_link_get_arptype(link) != ARPHRD_ETHER)
		return why_say(why, -EINVAL, "%s: is not an Ethernet interface", name);
	p.ifindex = rtnl_link_get_ifindex(link);
	p.mtu = rtnl_link_get_mtu(link);
	p.up = rtnl_link_get_flags(link) & IFF_UP;
	p.carrier = rtnl_link_get_carrier(link);
	snprintf(p.name, sizeof(p.name), "%s", name);
	driver_read(fd, &p);
	ethtool_features(fd, p.name, coalescing_add, &p);
	*ret = p;
	return 0;
}
