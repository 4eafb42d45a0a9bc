// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "hellos.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "agent/cluster/hello.h"
#include "common/util.h"

enum {
	FAMILIES = 2,
	BURST = 256, /* datagrams of one turn of the loop */
	HOPS = 255, /* what arrives with fewer has passed a router: RFC 5082 */
	CONTROL_BYTES = 256,
};

struct hellos {
	hellos_heard *heard;
	void *context;
	int fd[FAMILIES]; /* IPv4, IPv6; -1: this machine has none */
	sd_event_source *io[FAMILIES];
};

union control {
	char bytes[CONTROL_BYTES];
	struct cmsghdr align;
};

/* --- sending --------------------------------------------------------------------------------- */

static void control_put(struct msghdr *m, int level, int type, const void *what, size_t size)
{
	struct cmsghdr *c = m->msg_control;

	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(size), .cmsg_level = level, .cmsg_type = type };
	memcpy(CMSG_DATA(c), what, size);
	m->msg_controllen = CMSG_SPACE(size);
}

static void send4(int fd, uint32_t ifindex, struct iovec *what)
{
	const struct in_pktinfo info = { .ipi_ifindex = (int)ifindex };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(HELLO_PORT),
				  .sin_addr.s_addr = htonl(INADDR_BROADCAST) };
	union control control = { 0 };
	struct msghdr m = { .msg_name = &to,
			    .msg_namelen = sizeof(to),
			    .msg_iov = what,
			    .msg_iovlen = 1,
			    .msg_control = &control };

	control_put(&m, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send6(int fd, uint32_t ifindex, struct iovec *what)
{
	const struct in6_pktinfo info = { .ipi6_ifindex = ifindex };
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
				   .sin6_port = htons(HELLO_PORT),
				   .sin6_addr = { { { 0xff, 2, [15] = 1 } } },
				   .sin6_scope_id = ifindex };
	union control control = { 0 };
	struct msghdr m = { .msg_name = &to,
			    .msg_namelen = sizeof(to),
			    .msg_iov = what,
			    .msg_iovlen = 1,
			    .msg_control = &control };

	control_put(&m, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void hellos_send(struct hellos *h, uint32_t ifindex, const uint8_t *bytes, size_t length)
{
	struct iovec what = { (void *)bytes, length };

	if (h->fd[0] >= 0)
		send4(h->fd[0], ifindex, &what);
	if (h->fd[1] >= 0)
		send6(h->fd[1], ifindex, &what);
}

/* --- receiving ------------------------------------------------------------------------------- */

static void control_read(const struct cmsghdr *c, uint32_t *ret_ifindex, int *ret_hops)
{
	struct in6_pktinfo info6;
	struct in_pktinfo info4;

	if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
		memcpy(&info4, CMSG_DATA(c), sizeof(info4));
		*ret_ifindex = (uint32_t)info4.ipi_ifindex;
	} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
		memcpy(&info6, CMSG_DATA(c), sizeof(info6));
		*ret_ifindex = info6.ipi6_ifindex;
	} else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
		   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT)) {
		memcpy(ret_hops, CMSG_DATA(c), sizeof(*ret_hops));
	}
}

/* False: nothing is there any more. */
static bool receive(struct hellos *h, int fd)
{
	uint8_t bytes[HELLO_BYTES + 1]; /* one more, so that what is too long is not taken */
	struct iovec into = { bytes, sizeof(bytes) };
	union control control;
	struct msghdr m = { .msg_iov = &into,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t length = recvmsg(fd, &m, MSG_DONTWAIT);
	uint32_t ifindex = 0;
	int hops = 0;

	if (length < 0)
		return errno == EINTR;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		control_read(c, &ifindex, &hops);
	if (ifindex && hops == HOPS)
		h->heard(h->context, ifindex, bytes, (size_t)length);
	return true;
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *data)
{
	for (unsigned int i = 0; i < BURST && receive(data, fd); i++)
		;
	return 0;
}

/* --- open and close -------------------------------------------------------------------------- */

struct option {
	int level, name, value;
};

static const struct option options4[] = {
	{ SOL_SOCKET, SO_BROADCAST, 1 },
	{ SOL_SOCKET, SO_REUSEADDR, 1 }, /* several agents of a machine hear the same */
	{ IPPROTO_IP, IP_PKTINFO, 1 },
	{ IPPROTO_IP, IP_TTL, HOPS },
	{ IPPROTO_IP, IP_RECVTTL, 1 },
};

static const struct option options6[] = {
	{ SOL_SOCKET, SO_REUSEADDR, 1 },
	{ IPPROTO_IPV6, IPV6_V6ONLY, 1 },
	{ IPPROTO_IPV6, IPV6_RECVPKTINFO, 1 },
	{ IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1 },
	{ IPPROTO_IPV6, IPV6_MULTICAST_HOPS, HOPS },
	{ IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0 },
};

static int socket_open(int family, const struct option *option, size_t options, int *ret)
{
	const struct sockaddr_in at4 = { .sin_family = AF_INET, .sin_port = htons(HELLO_PORT) };
	const struct sockaddr_in6 at6 = { .sin6_family = AF_INET6, .sin6_port = htons(HELLO_PORT) };
	_cleanup_(closep) int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return errno == EAFNOSUPPORT ? 0 : -errno;
	for (size_t i = 0; i < options; i++)
		if (setsockopt(fd, option[i].level, option[i].name, &option[i].value,
			       sizeof(option[i].value)) < 0)
			return -errno;
	r = family == AF_INET ? bind(fd, (const void *)&at4, sizeof(at4))
			      : bind(fd, (const void *)&at6, sizeof(at6));
	if (r < 0)
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

int hellos_open(sd_event *loop, hellos_heard *heard, void *context, struct hellos **ret,
		struct why *why)
{
	struct hellos *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	*h = (struct hellos){ .heard = heard, .context = context, .fd = { -1, -1 } };
	r = socket_open(AF_INET, options4, sizeof(options4) / sizeof(*options4), &h->fd[0]);
	if (r == 0)
		r = socket_open(AF_INET6, options6, sizeof(options6) / sizeof(*options6),
				&h->fd[1]);
	if (r < 0)
		why_say(why, r, "cannot listen for other nodes at UDP port %d: %s", HELLO_PORT,
			strerror(-r));
	for (unsigned int i = 0; i < FAMILIES && r >= 0; i++)
		if (h->fd[i] >= 0)
			r = sd_event_add_io(loop, &h->io[i], h->fd[i], EPOLLIN, on_io, h);
	if (r < 0) {
		hellos_close(h);
		return r;
	}
	*ret = h;
	return 0;
}

void hellos_close(struct hellos *h)
{
	if (!h)
		return;
	for (unsigned int i = 0; i < FAMILIES; i++) {
		sd_event_source_disable_unref(h->io[i]);
		closep(&h->fd[i]);
	}
	free(h);
}
