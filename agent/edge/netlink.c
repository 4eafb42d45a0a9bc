// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netlink/route/link.h>
#include <netlink/route/link/vlan.h>
#include <netlink/route/route.h>
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

static inline void nl_addrp(struct nl_addr **a) { nl_addr_put(*a); }
static inline void routep(struct rtnl_route **r) { rtnl_route_put(*r); }
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

static struct nl_addr *nl_addr_of(const struct sockaddr_storage *a)
{
	size_t bytes;
	const void *raw = address_raw(a, &bytes);

	return nl_addr_build(a->ss_family, raw, bytes);
}

/* The interface, and the address whose MAC is wanted: a gateway's or the target's own. */
static int route_find(struct netlink *n, struct nl_addr *target, const char *text, int *ret_ifindex,
		      struct nl_addr **ret_next, struct why *why)
{
	_cleanup_(routep) struct rtnl_route *route = NULL;
	struct rtnl_nexthop *hop;
	struct nl_addr *next;

	if (rtnl_route_lookup(n->request, target, &route) < 0)
		return why_say(why, -ENETUNREACH, "there is no route to %s (ip route get %s)", text,
			       text);
	if (rtnl_route_get_type(route) != RTN_UNICAST)
		return why_say(why, -EINVAL, "%s: %s", text,
			       rtnl_route_get_type(route) == RTN_LOCAL
				       ? "is an address of this machine itself"
				       : "blackhole or unreachable route (ip route get)");
	hop = rtnl_route_nexthop_n(route, 0);
	if (!hop)
		return why_say(why, -ENETUNREACH, "the route to %s has no next hop", text);
	next = rtnl_route_nh_get_gateway(hop);
	if (!next)
		next = rtnl_route_nh_get_via(hop);
	*ret_next = nl_addr_get(next ? next : target);
	*ret_ifindex = rtnl_route_nh_get_ifindex(hop);
	return 0;
}

/* False: not one of the Internet's. */
static bool address_fill(int family, const struct nlattr *a, struct sockaddr_storage *ret)
{
	size_t bytes;
	void *raw;

	*ret = (struct sockaddr_storage){ .ss_family = family };
	raw = address_raw(ret, &bytes);
	if ((family != AF_INET && family != AF_INET6) || (size_t)nla_len(a) != bytes)
		return false;
	memcpy(raw, nla_data(a), bytes);
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
	if (!attribute[NDA_DST] || !address_fill(entry->ndm_family, attribute[NDA_DST], &n.address))
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

static int on_neighbour(struct nl_msg *m, void *context)
{
	netlink_neighbour_parse(nlmsg_hdr(m), context);
	return NL_OK;
}

/* Asks for this one alone. -ENOENT: nothing known that could be used. */
static int neighbour_find(struct netlink *n, int ifindex, struct nl_addr *next, uint8_t ret[6])
{
	struct ndmsg entry = { .ndm_family = nl_addr_get_family(next), .ndm_ifindex = ifindex };
	_cleanup_(msgp) struct nl_msg *m = nlmsg_alloc_simple(RTM_GETNEIGH, 0);
	_cleanup_(cbp) struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);
	struct netlink_neighbour found = { 0 };
	int r;

	if (!m || !cb || nlmsg_append(m, &entry, sizeof(entry), NLMSG_ALIGNTO) < 0 ||
	    nla_put_addr(m, NDA_DST, next) < 0)
		return -ENOMEM;
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, on_neighbour, &found);
	r = nl_send_auto(n->request, m);
	if (r >= 0)
		r = nl_recvmsgs(n->request, cb);
	if (r >= 0)
		r = nl_wait_for_ack(n->request);
	if (r < 0 && r != -NLE_OBJ_NOTFOUND)
		return -EIO;
	if (!found.known)
		return -ENOENT;
	memcpy(ret, found.mac, sizeof(found.mac));
	return 0;
}

/* One datagram to where nobody listens: the kernel asks for the neighbour to send it. */
static void neighbour_provoke(const struct sockaddr_storage *address)
{
	_cleanup_(closep) int fd = socket(address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage to = *address;
	socklen_t length = to.ss_family == AF_INET ? sizeof(struct sockaddr_in)
						   : sizeof(struct sockaddr_in6);

	endpoint_port_set(&to, DISCARD_PORT);
	if (fd >= 0)
		sendto(fd, "", 0, MSG_DONTWAIT, (struct sockaddr *)&to, length);
}

static int neighbour_wait(struct netlink *n, const struct sockaddr_storage *address, int ifindex,
			  struct nl_addr *next, unsigned int wait_ms, uint8_t ret[6])
{
	int r = neighbour_find(n, ifindex, next, ret);
	uint64_t end_ns = clock_now_ns() + wait_ms * 1000000ull, now_ns;

	if (r != -ENOENT)
		return r;
	neighbour_provoke(address);
	while ((r = neighbour_find(n, ifindex, next, ret)) == -ENOENT) {
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

	if (rtnl_link_get_kernel(n->request, ifindex, NULL, &link) < 0)
		return why_say(why, -ENODEV, "%s: the interface of the route has gone", text);
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

static int resolve(struct netlink *n, const struct sockaddr_storage *address, unsigned int wait_ms,
		   struct hop *ret, struct why *why)
{
	_cleanup_(nl_addrp) struct nl_addr *target = nl_addr_of(address);
	_cleanup_(nl_addrp) struct nl_addr *next = NULL;
	char text[ADDRESS_BYTES];
	struct hop hop = { 0 };
	int r, ifindex = 0;

	if (!target)
		return -ENOMEM;
	address_print(address, text, sizeof(text));
	r = route_find(n, target, text, &ifindex, &next, why);
	if (r < 0)
		return r;
	r = port_fill(n, ifindex, text, &hop, why);
	if (r < 0)
		return r;
	r = neighbour_wait(n, address, ifindex, next, wait_ms, hop.mac);
	if (r == -EHOSTUNREACH)
		return why_say(
			why, r,
			"%s: no neighbour answers on %s. Check that the machine is up and the "
			"cable is in (ip neigh show dev %s)",
			text, hop.port_name, hop.port_name);
	if (r < 0)
		return why_say(why, r, "%s: cannot read the neighbours of %s", text, hop.port_name);
	*ret = hop;
	return 0;
}

int netlink_resolve(struct netlink *n, const struct sockaddr_storage *address, unsigned int wait_ms,
		    struct hop *ret, struct why *why)
{
	int r = resolve(n, address, wait_ms, ret, why);

	if (r < 0 && r != -EHOSTUNREACH)
		netlink_renew(&n->request);
	return r;
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

	if (fd < 0)
		return -errno;
	if (strlen(name) >= IF_NAMESIZE || rtnl_link_get_kernel(n->request, 0, name, &link) < 0) {
		netlink_renew(&n->request);
		return why_say(why, -ENODEV,
			       "%s: no such interface in this network namespace (ip link)", name);
	}
	if (rtnl_link_get_arptype(link) != ARPHRD_ETHER)
		return why_say(why, -EINVAL, "%s: is not an Ethernet interface", name);
	p.ifindex = rtnl_link_get_ifindex(link);
	p.mtu = rtnl_link_get_mtu(link);
	p.up = rtnl_link_get_flags(link) & IFF_UP;
	snprintf(p.name, sizeof(p.name), "%s", name);
	driver_read(fd, &p);
	ethtool_features(fd, p.name, coalescing_add, &p);
	*ret = p;
	return 0;
}
