// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One connected UDP socket. Batches both ways: runs of new frames of one length go out as one
 * UDP_SEGMENT send, and come in as the kernel put them together (UDP_GRO), where it does.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/address.h"
#include "common/clock.h"
#include "error.h"
#include "segments.h"
#include "transport.h"
#include "way.h"

enum {
	SEGMENTED_BYTES_MAX = 65000,
	RECEIVES = TRANSPORT_RECEIVES, /* of one system call, each up to 64 datagrams */
	RECEIVE_BYTES = 65536,
	STRANGERS_MAX = 65536, /* datagrams that came before udp_connect(): a queue has fewer */
};

/* Room for two numbers beside a message: how it was put together, and how it was marked. */
union control {
	char space[2 * CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

struct udp {
	struct channel channel;
	int fd;
	struct segments segments;
	struct mmsghdr in[RECEIVES];
	struct iovec in_iov[RECEIVES];
	union control in_control[RECEIVES];
	uint8_t *buffer; /* [RECEIVES][RECEIVE_BYTES] */
};

/* One sendmmsg() worth of messages, each a run of datagrams. */
struct outgoing {
	struct mmsghdr message[TRANSPORT_BATCH];
	struct iovec iov[TRANSPORT_BATCH];
	union control control[TRANSPORT_BATCH];
};

static struct udp *udp_of(const struct channel *c)
{
	return (struct udp *)((char *)c - offsetof(struct udp, channel));
}

/*
 * Packets are never cut in pieces. The path's MTU is not asked for now, nor believed: that is what
 * some ICMP packet said, which anybody can forge, and who believes it sends nothing for ten
 * minutes.
 */
static int check_mtu(int fd, int family, size_t message_bytes)
{
	bool ip4 = family == AF_INET;
	size_t headers = ip4 ? 28 : 48;
	int discover = ip4 ? IP_PMTUDISC_PROBE : IPV6_PMTUDISC_PROBE;
	uint32_t mtu;
	char name[IFNAMSIZ];

	setsockopt(fd, ip4 ? IPPROTO_IP : IPPROTO_IPV6, ip4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER,
		   &discover, sizeof(discover));
	mtu = way_interface_mtu(fd, name);
	if (mtu && message_bytes + headers > mtu)
		return error_set(-EMSGSIZE,
				 "packets of %zu bytes do not fit the MTU of %u of %s: lower the "
				 "job's payload to %zu or raise the MTU",
				 message_bytes + headers, mtu, name,
				 (mtu - headers - sizeof(struct tally_header)) / 64 * 64);
	return 0;
}

static void set_buffers(int fd, size_t bytes)
{
	int want = bytes < 64 << 20 ? bytes : 64 << 20;

	/* The FORCE variants need CAP_NET_ADMIN; without it the system's limit must do. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof(want)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &want, sizeof(want));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &want, sizeof(want)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof(want));
}

int address_refuse(int error, const struct sockaddr_storage *local)
{
	char text[ADDRESS_BYTES];

	endpoint_print(local, text, sizeof(text));
	return error_set(-error, "cannot bind to %s, this worker's address: %s", text,
			 strerror(error));
}

static int udp_bind(struct udp *u, const struct sockaddr_storage *local)
{
	u->fd = socket(local->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (u->fd < 0)
		return error_set(-errno, "cannot create a UDP socket: %s", strerror(errno));
	if (bind(u->fd, (const struct sockaddr *)local, endpoint_length(local)) < 0)
		return address_refuse(errno, local);
	/* Not there before Linux 5.0: then they come one by one. */
	setsockopt(u->fd, SOL_UDP, UDP_GRO, &(int){ 1 }, sizeof(int));
	return 0;
}

static void udp_close(struct channel *c)
{
	struct udp *u = udp_of(c);

	if (u->fd >= 0)
		close(u->fd);
	free(u->buffer);
	free(u);
}

static int udp_open(const struct sockaddr_storage *local, struct channel **ret)
{
	struct udp *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return error_set(-ENOMEM, "out of memory");
	u->channel.transport = &transport_udp;
	u->fd = -1;
	u->buffer = malloc(RECEIVES * RECEIVE_BYTES);
	r = u->buffer ? udp_bind(u, local) : error_set(-ENOMEM, "out of memory");
	if (r < 0) {
		udp_close(&u->channel);
		return r;
	}
	for (size_t i = 0; i < RECEIVES; i++)
		u->in_iov[i] = (struct iovec){ u->buffer + i * RECEIVE_BYTES, RECEIVE_BYTES };
	*ret = &u->channel;
	return 0;
}

static void udp_local(const struct channel *c, struct sockaddr_storage *ret)
{
	*ret = (struct sockaddr_storage){ 0 };
	getsockname(udp_of(c)->fd, (struct sockaddr *)ret, &(socklen_t){ sizeof(*ret) });
}

static int udp_connect(struct channel *c, const struct sockaddr_storage *service,
		       size_t message_bytes, size_t messages)
{
	int fd = udp_of(c)->fd;

	if (connect(fd, (const struct sockaddr *)service, endpoint_length(service)) < 0)
		return error_set(-errno, "cannot connect to the service address: %s",
				 strerror(errno));
	/* What came before is from anybody, and nothing has been sent that it could answer. */
	for (size_t i = 0; i < STRANGERS_MAX && recv(fd, NULL, 0, MSG_DONTWAIT) >= 0; i++)
		continue;
	segments_init(&udp_of(c)->segments, messages, (uint32_t)clock_now_ns());
	/* A socket buffer is charged for the memory behind a packet, about twice its bytes. */
	set_buffers(fd, messages * (message_bytes + 1024) * 2);
	return check_mtu(fd, service->ss_family, message_bytes);
}

/* How many datagrams from d[0] on can go as one segmented send: all but the last of one length. */
static size_t run_length(struct segments *s, const struct datagram *d, size_t n)
{
	size_t bytes = d[0].length, run = 1;

	if (!d[0].fresh)
		return 1;
	while (run < n && d[run].fresh && d[run - 1].length == d[0].length &&
	       d[run].length <= d[0].length && bytes + d[run].length <= SEGMENTED_BYTES_MAX)
		bytes += d[run++].length;
	run = segments_allow(s, run);
	for (size_t i = 0; i < run; i++)
		*d[i].in_run = run > 1;
	return run;
}

static void segment_as(struct msghdr *m, void *control, uint16_t bytes)
{
	struct cmsghdr *c;

	memset(control, 0, CMSG_SPACE(sizeof(bytes)));
	m->msg_control = control;
	m->msg_controllen = CMSG_SPACE(sizeof(bytes));
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(bytes));
	memcpy(CMSG_DATA(c), &bytes, sizeof(bytes));
}

static unsigned int compose(struct segments *s, const struct datagram *d, size_t n,
			    struct outgoing *out)
{
	unsigned int messages = 0;

	for (size_t i = 0, run; i < n; i += run, messages++) {
		struct msghdr *m = &out->message[messages].msg_hdr;

		run = run_length(s, d + i, n - i);
		for (size_t j = i; j < i + run; j++)
			out->iov[j] = (struct iovec){ (void *)d[j].bytes, d[j].length };
		*m = (struct msghdr){ .msg_iov = &out->iov[i], .msg_iovlen = run };
		if (run > 1)
			segment_as(m, out->control[messages].space, d[i].length);
	}
	return messages;
}

/* Said by somebody on the way, of an earlier datagram; or by this machine, of this one. */
static void too_large(struct channel *c) { c->mtu = way_known_mtu(udp_of(c)->fd); }

static size_t udp_send(struct channel *c, const struct datagram *d, size_t n)
{
	struct udp *u = udp_of(c);
	struct outgoing out;
	unsigned int messages = compose(&u->segments, d, n, &out), sent = 0;
	size_t datagrams = 0;
	bool told = false; /* in place of sending this one */

	while (sent < messages) {
		int r = sendmmsg(u->fd, out.message + sent, messages - sent, MSG_DONTWAIT);

		if (r < 0 && errno == EAGAIN)
			break;
		if (r < 0 && errno == ECONNREFUSED) {
			c->refused = true; /* an earlier datagram was; this one was not sent */
			continue;
		}
		if (r < 0 && out.message[sent].msg_hdr.msg_iovlen > 1 &&
		    (errno == EINVAL || errno == EIO)) {
			segments_refused(&u->segments); /* not here: what is left, one by one */
			return datagrams + udp_send(c, d + datagrams, n - datagrams);
		}
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && errno == EMSGSIZE)
			too_large(c);
		if (r < 0 && !told) { /* by anybody, of an earlier datagram */
			told = true;
			continue;
		}
		told = false;
		if (r < 0)
			r = 1; /* as good as lost on the wire */
		while (r--)
			datagrams += out.message[sent++].msg_hdr.msg_iovlen;
	}
	return datagrams;
}

/* The length of the datagrams that were put together; 0: it is only one. */
static uint16_t segment_bytes(struct msghdr *m)
{
	int bytes = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
			memcpy(&bytes, CMSG_DATA(c), sizeof(bytes));
	return bytes;
}

/* Has it met congestion on its way? What was put together has all the same mark. */
static bool is_marked(struct msghdr *m)
{
	int tos = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == SOL_IP && c->cmsg_type == IP_TOS)
			tos = *CMSG_DATA(c);
		else if (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_TCLASS)
			memcpy(&tos, CMSG_DATA(c), sizeof(tos));
	}
	return (tos & IPTOS_ECN_MASK) == IPTOS_ECN_CE;
}

/* Cuts what came as one into datagrams; at most `max`. */
static size_t split(struct msghdr *m, size_t length, struct datagram *ret, size_t max)
{
	const uint8_t *bytes = m->msg_iov->iov_base;
	const bool marked = is_marked(m);
	size_t each = segment_bytes(m), n = 0;

	for (; length && n < max; n++) {
		size_t one = each && each < length ? each : length;

		ret[n] = (struct datagram){ .bytes = bytes, .length = one, .marked = marked };
		bytes += one;
		length -= one;
	}
	return n;
}

static size_t udp_receive(struct channel *c, struct datagram *ret)
{
	struct udp *u = udp_of(c);
	size_t n = 0;
	int messages;

	for (int i = 0; i < RECEIVES; i++)
		u->in[i].msg_hdr = (struct msghdr){ .msg_iov = &u->in_iov[i],
						    .msg_iovlen = 1,
						    .msg_control = &u->in_control[i],
						    .msg_controllen = sizeof(u->in_control[i]) };
	messages = recvmmsg(u->fd, u->in, RECEIVES, MSG_DONTWAIT, NULL);
	if (messages < 0 && errno == ECONNREFUSED)
		c->refused = true;
	if (messages < 0 && errno == EMSGSIZE)
		too_large(c);
	for (int i = 0; i < messages; i++)
		n += split(&u->in[i].msg_hdr, u->in[i].msg_len, ret + n,
			   TRANSPORT_RECEIVED_MAX - n);
	return n;
}

/* ECT(0): what a router would do with a packet of TCP that takes marks. */
static void udp_take_marks(struct channel *c)
{
	const int fd = udp_of(c)->fd, on = 1, tos = IPTOS_ECN_ECT0;
	struct sockaddr_storage own = { 0 };

	getsockname(fd, (void *)&own, &(socklen_t){ sizeof(own) });
	if (own.ss_family == AF_INET) {
		setsockopt(fd, SOL_IP, IP_RECVTOS, &on, sizeof(on));
		setsockopt(fd, SOL_IP, IP_TOS, &tos, sizeof(tos));
	} else {
		setsockopt(fd, SOL_IPV6, IPV6_RECVTCLASS, &on, sizeof(on));
		setsockopt(fd, SOL_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
	}
}

static int udp_fd(const struct channel *c) { return udp_of(c)->fd; }

static void udp_feedback(struct channel *c, const struct window_runs *runs)
{
	segments_judge(&udp_of(c)->segments, runs);
}

const struct transport transport_udp = {
	.open = udp_open,
	.local = udp_local,
	.connect = udp_connect,
	.send = udp_send,
	.receive = udp_receive,
	.fd = udp_fd,
	.feedback = udp_feedback,
	.take_marks = udp_take_marks,
	.close = udp_close,
};
