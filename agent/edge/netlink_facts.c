// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include "ethtool.h"
#include "netlink_facts.h"
#include "netlink_private.h"

enum {
	/* linux/netdev.h, which is younger than the kernels that we build on */
	NETDEV_GET = 1,
	NETDEV_IFINDEX = 1,
	NETDEV_XDP = 3,
	XDP_CAN_RUN = 1 << 0,
	XDP_CAN_REDIRECT = 1 << 1,
	XDP_CAN_BE_SENT = 1 << 2,

	PROCESSES_MAX = 1 << 16, /* whose namespaces are looked through */
};

static inline void nl_sockp(struct nl_sock **s) { nl_socket_free(*s); }
static inline void nl_msgp(struct nl_msg **m) { nlmsg_free(*m); }
static inline void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* --- one attribute of one answer ------------------------------------------------------------- */

struct wanted {
	int header_bytes; /* between netlink's header and the attributes */
	int attribute;
	void *ret;
	size_t size;
	bool found;
};

static int attribute_take(struct nl_msg *message, void *context)
{
	struct wanted *w = context;
	struct nlattr *a = nlmsg_find_attr(nlmsg_hdr(message), w->header_bytes, w->attribute);

	if (a && (size_t)nla_len(a) >= w->size) {
		memcpy(w->ret, nla_data(a), w->size);
		w->found = true;
	}
	return NL_OK;
}

/* Sends it and waits for the answer. -ENOENT: refused, or without that attribute. */
static int attribute_ask(struct nl_sock *s, struct nl_msg *message, struct wanted *w)
{
	int r;

	nl_socket_modify_cb(s, NL_CB_VALID, NL_CB_CUSTOM, attribute_take, w);
	r = nl_send_auto(s, message);
	if (r >= 0)
		r = nl_recvmsgs_default(s);
	return r >= 0 && w->found ? 0 : -ENOENT;
}

static int socket_open(int protocol, struct nl_sock **ret)
{
	_cleanup_(nl_sockp) struct nl_sock *s = nl_socket_alloc();

	if (!s || nl_connect(s, protocol) < 0)
		return -EIO;
	nl_socket_disable_auto_ack(s); /* each request has one answer, or an error in its place */
	*ret = TAKE_PTR(s);
	return 0;
}

/* A generic netlink request with one attribute, and one attribute of its answer. */
static int generic_ask(struct nl_sock *s, int family, int command, int key, const void *value,
		       int value_bytes, struct wanted *w)
{
	_cleanup_(nl_msgp) struct nl_msg *m = nlmsg_alloc_simple(family, NLM_F_REQUEST);
	struct genlmsghdr head = { .cmd = command, .version = 1 };

	w->header_bytes = GENL_HDRLEN;
	if (!m || nlmsg_append(m, &head, sizeof(head), NLMSG_ALIGNTO) < 0 ||
	    nla_put(m, key, value_bytes, value) < 0)
		return -ENOMEM;
	return attribute_ask(s, m, w);
}

/* Does the driver say that it can all of this? */
static enum netlink_answer features_ask(uint32_t ifindex, uint64_t wanted)
{
	_cleanup_(nl_sockp) struct nl_sock *s = NULL;
	uint64_t features = 0;
	uint16_t family = 0;
	struct wanted id = { .attribute = CTRL_ATTR_FAMILY_ID, .ret = &family, .size = 2 };
	struct wanted xdp = { .attribute = NETDEV_XDP, .ret = &features, .size = 8 };

	if (socket_open(NETLINK_GENERIC, &s) < 0 ||
	    generic_ask(s, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, "netdev",
			sizeof("netdev"), &id) < 0 ||
	    generic_ask(s, family, NETDEV_GET, NETDEV_IFINDEX, &ifindex, sizeof(ifindex), &xdp) < 0)
		return NETLINK_UNKNOWN;
	return (features & wanted) == wanted ? NETLINK_YES : NETLINK_NO;
}

enum netlink_answer netlink_takes_xdp(uint32_t ifindex)
{
	return features_ask(ifindex, XDP_CAN_BE_SENT);
}

/* --- ethtool --------------------------------------------------------------------------------- */

/* Legacy flags: few, but with no table of names to ask for first. */
static enum netlink_answer flag_read(int fd, const char *name, uint32_t command, uint32_t mask)
{
	struct ethtool_value value = { .cmd = command };

	if (!ethtool(fd, name, &value))
		return NETLINK_UNKNOWN;
	return value.data & mask ? NETLINK_YES : NETLINK_NO;
}

static enum netlink_answer hash_read(int fd, const char *name)
{
	struct ethtool_rxnfc flow = { .cmd = ETHTOOL_GRXFH, .flow_type = UDP_V4_FLOW };

	if (!ethtool(fd, name, &flow))
		return NETLINK_UNKNOWN;
	return flow.data & (RXH_L4_B_0_1 | RXH_L4_B_2_3) ? NETLINK_YES : NETLINK_NO;
}

/* Features by their names, as newer ones have no flag. */
struct asked {
	const char *feature;
	enum netlink_answer answer;
};

static void answer_take(void *context, const char *feature, bool active)
{
	struct asked *q = context;

	if (!strcmp(feature, q->feature))
		q->answer = active ? NETLINK_YES : NETLINK_NO;
}

static enum netlink_answer feature_read(int fd, const char *name, const char *feature)
{
	struct asked q = { .feature = feature, .answer = NETLINK_UNKNOWN };

	ethtool_features(fd, name, answer_take, &q);
	return q.answer;
}

/* --- facts ----------------------------------------------------------------------------------- */

static bool is_enslaved_to_bond(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/net/%s/bonding_slave", name);
	return access(path, F_OK) == 0;
}

int netlink_facts_read(const char *name, uint32_t ifindex, struct netlink_facts *ret,
		       struct why *why)
{
	_cleanup_(closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	_cleanup_(linkp) struct rtnl_link *link = NULL;
	_cleanup_(nl_sockp) struct nl_sock *s = NULL;
	struct netlink_facts f = { .peer_namespace = -1 };
	const char *kind;
	int r;

	if (fd < 0 || socket_open(NETLINK_ROUTE, &s) < 0)
		return -EIO;
	r = netlink_link_get(&s, ifindex, NULL, &link);
	if (r < 0)
		return why_say(why, r, "%s: %s", name,
			       r == -ENODEV ? "the interface has gone" : strerror(-r));
	kind = rtnl_link_get_type(link);
	if (kind && !strcmp(kind, "veth")) {
		f.peer = rtnl_link_get_link(link);
		rtnl_link_get_link_netnsid(link, &f.peer_namespace);
	} else if (kind) {
		snprintf(f.kind, sizeof(f.kind), "%.15s", kind);
	}
	f.native = features_ask(ifindex, XDP_CAN_RUN | XDP_CAN_REDIRECT);
	f.vlan_stripped = flag_read(fd, name, ETHTOOL_GFLAGS, ETH_FLAG_RXVLAN);
	f.ports_hashed = hash_read(fd, name);
	f.enslaved_to_bond = is_enslaved_to_bond(name);
	*ret = f;
	return 0;
}

/* --- the other end --------------------------------------------------------------------------- */

/* The number that our namespace has for this one; -1: none. */
static int namespace_number(struct nl_sock *s, int fd)
{
	_cleanup_(nl_msgp) struct nl_msg *m = nlmsg_alloc_simple(RTM_GETNSID, NLM_F_REQUEST);
	struct rtgenmsg head = { .rtgen_family = AF_UNSPEC };
	int number = -1;
	struct wanted w = { .header_bytes = sizeof(head),
			    .attribute = NETNSA_NSID,
			    .ret = &number,
			    .size = sizeof(number) };

	if (!m || nlmsg_append(m, &head, sizeof(head), NLMSG_ALIGNTO) < 0 ||
	    nla_put_u32(m, NETNSA_FD, fd) < 0 || attribute_ask(s, m, &w) < 0)
		return -1;
	return number;
}

/* Of the namespace that we are in. */
static int peer_look(uint32_t ifindex, bool (*is_native)(uint32_t), struct netlink_peer *ret)
{
	_cleanup_(closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (!if_indextoname(ifindex, ret->name))
		return -ENOENT;
	ret->native = is_native(ifindex);
	ret->gro = flag_read(fd, ret->name, ETHTOOL_GGRO, 1) == NETLINK_YES;
	ret->segments = feature_read(fd, ret->name, "tx-udp-segmentation") == NETLINK_YES;
	ret->inserts_vlan = flag_read(fd, ret->name, ETHTOOL_GFLAGS, ETH_FLAG_TXVLAN) ==
			    NETLINK_YES;
	return 0;
}

/* Goes there, looks, and comes back: without a way back this process is of no more use. */
static int peer_look_in(int namespace, uint32_t ifindex, bool (*is_native)(uint32_t),
			struct netlink_peer *ret)
{
	_cleanup_(closep) int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int r;

	if (home < 0)
		return -errno;
	if (setns(namespace, CLONE_NEWNET) < 0)
		return -errno;
	r = peer_look(ifindex, is_native, ret);
	if (setns(home, CLONE_NEWNET) < 0)
		abort();
	return r;
}

/* Opens each candidate in turn until one has the number. -ENOENT: none has. */
static int namespace_find(struct nl_sock *s, const char *directory, const char *suffix, int number,
			  char *name, size_t name_size, int *ret)
{
	_cleanup_(closedirp) DIR *d = opendir(directory);
	struct dirent *entry;

	for (unsigned int i = 0; d && i < PROCESSES_MAX && (entry = readdir(d)); i++) {
		_cleanup_(closep) int fd = -1;
		char path[512];

		if (*entry->d_name == '.' ||
		    (*suffix && strspn(entry->d_name, "0123456789") != strlen(entry->d_name)))
			continue;
		snprintf(path, sizeof(path), "%s/%s%s", directory, entry->d_name, suffix);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || namespace_number(s, fd) != number)
			continue;
		snprintf(name, name_size, "%.40s", entry->d_name);
		*ret = TAKE_FD(fd);
		return 0;
	}
	return -ENOENT;
}

int netlink_peer_read(const struct netlink_facts *facts, bool (*is_native)(uint32_t ifindex),
		      struct netlink_peer *ret, struct why *why)
{
	_cleanup_(nl_sockp) struct nl_sock *s = NULL;
	_cleanup_(closep) int namespace = -1;
	struct netlink_peer p = { 0 };
	char name[44] = "";
	int r;

	if (facts->peer_namespace < 0) {
		r = peer_look(facts->peer, is_native, &p);
		if (r == 0)
			*ret = p;
		return r;
	}
	if (geteuid() != 0)
		return why_say(
			why, -EPERM,
			"the other end is in another namespace, and only root can look there");
	if (socket_open(NETLINK_ROUTE, &s) < 0)
		return -EIO;
	if (namespace_find(s, "/run/netns", "", facts->peer_namespace, name, sizeof(name),
			   &namespace) == 0) {
		snprintf(p.where, sizeof(p.where), "namespace %.36s", name);
		snprintf(p.enter, sizeof(p.enter), "nsenter --net=/run/netns/%.36s ", name);
	} else if (namespace_find(s, "/proc", "/ns/net", facts->peer_namespace, name, sizeof(name),
				  &namespace) == 0) {
		snprintf(p.where, sizeof(p.where), "namespace of process %.10s", name);
		snprintf(p.enter, sizeof(p.enter), "nsenter --net --target %.10s ", name);
	} else {
		return why_say(
			why, -ENOENT,
			"the other end is in a namespace that has no name and no process here");
	}
	r = peer_look_in(namespace, facts->peer, is_native, &p);
	if (r < 0)
		return why_say(why, r, "cannot look at the other end, in the %s: %s", p.where,
			       strerror(-r));
	*ret = p;
	return 0;
}
