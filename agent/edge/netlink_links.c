// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <netlink/msg.h>
#include <netlink/route/qdisc.h>

#include "common/address.h"
#include "ethtool.h"
#include "netlink_links.h"
#include "netlink_private.h"

enum {
	EVENTS_BYTES = 1 << 20, /* that wait to be dispatched: some hundred changes */
	LINK_MODE_WORDS_MAX = 127, /* of each of ethtool's three masks; the kernel uses 4 */
};

/* What a change is a change of. */
struct state {
	bool there;
	bool up;
	bool carrier;
	uint8_t operational;
};

_Static_assert(sizeof(struct state) == 4, "states are compared as bytes");

struct watch {
	uint32_t ifindex;
	struct state state; /* as last told */
	uint64_t changes;
	uint32_t speed_mbps;
	bool speed_is_old; /* the link has changed since */
};

struct netlink_links {
	struct nl_sock *request;
	struct nl_sock *events;
	int ethtool_fd;
	struct netlink_links_events on;
	void *context;
	uint64_t lost;
	bool rerouted; /* routes have changed, and nobody was told */
	bool resync; /* events were lost; links are to be read when the rest is taken */
	unsigned int count;
	struct watch watch[TALLY_PORTS_MAX];
};

void netlink_links_close(struct netlink_links *l)
{
	if (!l)
		return;
	nl_socket_free(l->request);
	nl_socket_free(l->events);
	closep(&l->ethtool_fd);
	free(l);
}

/* --- events ---------------------------------------------------------------------------------- */

static struct watch *watch_find(struct netlink_links *l, uint32_t ifindex)
{
	for (unsigned int i = 0; i < l->count; i++)
		if (l->watch[i].ifindex == ifindex)
			return &l->watch[i];
	return NULL;
}

static const char *state_name(const struct state *s)
{
	return !s->there ? "gone" : !s->up ? "down" : !s->carrier ? "no carrier" : "up";
}

static void state_set(struct netlink_links *l, struct watch *w, struct state state)
{
	if (!memcmp(&w->state, &state, sizeof(state)))
		return;
	w->state = state;
	w->speed_is_old = true;
	w->changes++;
	if (l->on.link)
		l->on.link(l->context, w->ifindex, state_name(&state));
}

static uint8_t attribute_u8(struct nlattr *a) { return a && nla_len(a) >= 1 ? nla_get_u8(a) : 0; }

/* A bridge tells of its ports by the same messages, of a family of its own. */
static void link_event(struct netlink_links *l, struct nlmsghdr *message)
{
	struct nlattr *attribute[IFLA_MAX + 1];
	struct state state = { 0 };
	struct ifinfomsg *info;
	struct watch *w;

	if (nlmsg_parse(message, sizeof(*info), attribute, IFLA_MAX, NULL) < 0)
		return;
	info = nlmsg_data(message);
	w = watch_find(l, (uint32_t)info->ifi_index);
	if (info->ifi_family != AF_UNSPEC)
		return;
	if (!w) {
		if (l->on.other && attribute[IFLA_IFNAME])
			l->on.other(l->context, nla_get_string(attribute[IFLA_IFNAME]));
		return;
	}
	if (message->nlmsg_type == RTM_NEWLINK) {
		state.there = true;
		state.up = info->ifi_flags & IFF_UP;
		state.carrier = attribute_u8(attribute[IFLA_CARRIER]);
		state.operational = attribute_u8(attribute[IFLA_OPERSTATE]);
	}
	state_set(l, w, state);
}

static void neighbour_event(struct netlink_links *l, struct nlmsghdr *message)
{
	struct netlink_neighbour n;

	if (l->on.neighbour && netlink_neighbour_parse(message, &n))
		l->on.neighbour(l->context, &n);
}

static void address_event(struct netlink_links *l, struct nlmsghdr *message)
{
	const struct ifaddrmsg *address = nlmsg_data(message);

	if (l->on.address && nlmsg_valid_hdr(message, sizeof(*address)) &&
	    watch_find(l, address->ifa_index))
		l->on.address(l->context);
}

static int on_message(struct nl_msg *m, void *context)
{
	struct nlmsghdr *message = nlmsg_hdr(m);

	switch (message->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		link_event(context, message);
		break;
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		neighbour_event(context, message);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		address_event(context, message);
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		((struct netlink_links *)context)->rerouted = true;
		break;
	default:
		break;
	}
	return NL_OK;
}

static struct state state_of(struct rtnl_link *link)
{
	return (struct state){
		.there = true,
		.up = rtnl_link_get_flags(link) & IFF_UP,
		.carrier = rtnl_link_get_carrier(link),
		.operational = rtnl_link_get_operstate(link),
	};
}

static int state_read(struct netlink_links *l, uint32_t ifindex, struct state *ret)
{
	_cleanup_(linkp) struct rtnl_link *link = NULL;
	int r = netlink_link_get(&l->request, ifindex, NULL, &link);

	if (r < 0 && r != -ENODEV)
		return r;
	*ret = (struct state){ 0 };
	if (r == 0)
		*ret = state_of(link);
	return 0;
}

static int resync(struct netlink_links *l)
{
	for (unsigned int i = 0; i < l->count; i++) {
		struct state state;
		int r = state_read(l, l->watch[i].ifindex, &state);

		if (r < 0)
			return r;
		state_set(l, &l->watch[i], state);
	}
	l->resync = false;
	if (l->on.lost)
		l->on.lost(l->context);
	return 0;
}

static int dispatch(struct netlink_links *l, struct why *why)
{
	for (unsigned int i = 0; i < NETLINK_LINKS_BURST; i++) {
		int r = nl_recvmsgs_default(l->events);

		if (r == -NLE_NOMEM) { /* libnl's word for ENOBUFS */
			l->lost++;
			l->resync = true;
		} else if (r == -NLE_AGAIN) {
			/* What is in the socket is older than what is read now. */
			if (l->resync && resync(l) < 0)
				return why_say(
					why, -EIO,
					"cannot read the links again after the kernel lost events");
			return 0;
		} else if (r < 0) {
			return why_say(why, -EIO, "cannot read the kernel's events of links: %s",
				       nl_geterror(r));
		}
	}
	return 0;
}

int netlink_links_dispatch(struct netlink_links *l, struct why *why)
{
	int r = dispatch(l, why);

	if (l->rerouted && l->on.route)
		l->on.route(l->context);
	l->rerouted = false;
	return r;
}

int netlink_links_fd(const struct netlink_links *l) { return nl_socket_get_fd(l->events); }

uint64_t netlink_links_lost(const struct netlink_links *l) { return l->lost; }

int netlink_links_open(const struct netlink_links_events *events, void *context,
		       struct netlink_links **ret, struct why *why)
{
	_cleanup_(netlink_links_closep) struct netlink_links *l = calloc(1, sizeof(*l));
	const int events_bytes = EVENTS_BYTES;
	int r;

	if (!l)
		return why_say(why, -ENOMEM, "no memory to watch links");
	l->on = *events;
	l->context = context;
	l->ethtool_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	l->request = nl_socket_alloc();
	l->events = nl_socket_alloc();
	if (l->ethtool_fd < 0 || !l->request || !l->events)
		return why_say(why, -ENOMEM, "no sockets to watch links");
	nl_socket_disable_seq_check(l->events);
	nl_socket_modify_cb(l->events, NL_CB_VALID, NL_CB_CUSTOM, on_message, l);
	r = nl_connect(l->request, NETLINK_ROUTE);
	if (r >= 0)
		r = nl_connect(l->events, NETLINK_ROUTE);
	if (r >= 0)
		r = nl_socket_set_nonblocking(l->events);
	if (r >= 0)
		r = nl_socket_add_memberships(l->events, RTNLGRP_LINK, RTNLGRP_NEIGH,
					      RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
					      RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, 0);
	if (r < 0)
		return why_say(why, -EIO, "cannot subscribe to the kernel's events of links: %s",
			       nl_geterror(r));
	/* Only root may have so much; with less, events are lost sooner, which is seen to. */
	setsockopt(nl_socket_get_fd(l->events), SOL_SOCKET, SO_RCVBUFFORCE, &events_bytes,
		   sizeof(events_bytes));
	*ret = TAKE_PTR(l);
	return 0;
}

int netlink_links_watch(struct netlink_links *l, const uint32_t *ifindexes, size_t count,
			struct why *why)
{
	_cleanup_(freep) struct watch *next = NULL;

	if (count > TALLY_PORTS_MAX)
		return why_say(why, -E2BIG, "%zu links are too many to watch; at most %d", count,
			       TALLY_PORTS_MAX);
	next = calloc(count + 1, sizeof(*next));
	if (!next)
		return why_say(why, -ENOMEM, "no memory to watch %zu links", count);
	for (size_t i = 0; i < count; i++) {
		const struct watch *known = watch_find(l, ifindexes[i]);

		next[i].ifindex = ifindexes[i];
		next[i].speed_is_old = true;
		if (known)
			next[i] = *known;
		else if (state_read(l, ifindexes[i], &next[i].state) < 0)
			return why_say(why, -EIO, "cannot read link %u", ifindexes[i]);
	}
	memcpy(l->watch, next, count * sizeof(*next));
	l->count = count;
	return 0;
}

/* --- reading --------------------------------------------------------------------------------- */

/*
 * The masks that follow are not wanted, but the kernel tells the speed only to those who have
 * room for them; it says in a first answer, as a negative number, for how many words.
 */
static uint32_t speed_read(int fd, const char *name)
{
	struct {
		struct ethtool_link_settings head;
		uint32_t masks[3 * LINK_MODE_WORDS_MAX];
	} is = { .head = { .cmd = ETHTOOL_GLINKSETTINGS } };

	if (!ethtool(fd, name, &is) || is.head.link_mode_masks_nwords >= 0 ||
	    is.head.link_mode_masks_nwords < -LINK_MODE_WORDS_MAX)
		return 0;
	is.head.cmd = ETHTOOL_GLINKSETTINGS;
	is.head.link_mode_masks_nwords = (int8_t)-is.head.link_mode_masks_nwords;
	if (!ethtool(fd, name, &is) || is.head.speed == (uint32_t)SPEED_UNKNOWN)
		return 0;
	return is.head.speed;
}

/* A root's queue holds what is in the queues below it, by the kernel's own books. */
static void backlog_read(struct nl_cache *qdiscs, struct traffic_link *link)
{
	struct rtnl_qdisc *root = rtnl_qdisc_get_by_parent(qdiscs, (int)link->ifindex, TC_H_ROOT);

	if (!root)
		return;
	link->backlog_bytes = rtnl_tc_get_stat(TC_CAST(root), RTNL_TC_BACKLOG);
	link->backlog_packets = rtnl_tc_get_stat(TC_CAST(root), RTNL_TC_QLEN);
	rtnl_qdisc_put(root);
}

static void link_fill(struct netlink_links *l, struct watch *w, struct rtnl_link *link,
		      struct traffic_link *ret)
{
	const char *name = rtnl_link_get_name(link);

	*ret = (struct traffic_link){
		.ifindex = w->ifindex,
		.up = rtnl_link_get_flags(link) & IFF_UP,
		.carrier = rtnl_link_get_carrier(link),
		.mtu = rtnl_link_get_mtu(link),
		.receive = {
			.packets = rtnl_link_get_stat(link, RTNL_LINK_RX_PACKETS),
			.bytes = rtnl_link_get_stat(link, RTNL_LINK_RX_BYTES),
			.dropped = rtnl_link_get_stat(link, RTNL_LINK_RX_DROPPED),
			.errors = rtnl_link_get_stat(link, RTNL_LINK_RX_ERRORS),
		},
		.transmit = {
			.packets = rtnl_link_get_stat(link, RTNL_LINK_TX_PACKETS),
			.bytes = rtnl_link_get_stat(link, RTNL_LINK_TX_BYTES),
			.dropped = rtnl_link_get_stat(link, RTNL_LINK_TX_DROPPED),
			.errors = rtnl_link_get_stat(link, RTNL_LINK_TX_ERRORS),
		},
		.changes = w->changes,
	};
	snprintf(ret->name, sizeof(ret->name), "%s", name ? name : "");
	if (w->speed_is_old) /* asked once a change: some drivers ask their hardware */
		w->speed_mbps = speed_read(l->ethtool_fd, ret->name);
	w->speed_is_old = false;
	ret->speed_mbps = w->speed_mbps;
}

int netlink_links_read(struct netlink_links *l, struct traffic_link *ret, size_t max,
		       struct why *why)
{
	_cleanup_(nl_cachep) struct nl_cache *qdiscs = NULL;
	size_t count = 0;
	int r;

	r = rtnl_qdisc_alloc_cache(l->request, &qdiscs);
	if (r < 0) {
		netlink_renew(&l->request);
		return why_say(why, -EIO, "cannot read the queueing disciplines: %s",
			       nl_geterror(r));
	}
	for (unsigned int i = 0; i < l->count && count < max; i++) {
		_cleanup_(linkp) struct rtnl_link *link = NULL;
		struct watch *w = &l->watch[i];

		r = netlink_link_get(&l->request, w->ifindex, NULL, &link);
		if (r == -ENODEV)
			continue;
		if (r < 0)
			return why_say(why, r, "cannot read link %u", w->ifindex);
		link_fill(l, w, link, &ret[count]);
		backlog_read(qdiscs, &ret[count++]);
	}
	return (int)count;
}
