// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "serve.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/address.h"
#include "common/clock.h"
#include "common/owned.h"
#include "listen.h"

enum {
	RECEIVES = 8, /* of one system call, each up to 64 datagrams */
	RECEIVE_BYTES = 65536,
	REPLIES = 1024, /* that wait to be sent */
	RUN_MAX = 64, /* datagrams of one segmented send */
	RUN_BYTES_MAX = 65000,
	SENDS = 64, /* runs of one system call */
	ROOM_WAIT_MS = 10, /* for room in the socket's buffer */
	AGAIN_MAX = 64, /* of the runs of one call, after errors */
};

/* Room for one number beside a message that leaves. */
union control {
	char space[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* Beside what has come: the length of its datagrams, their mark, and the interface. */
union control_in {
	char space[2 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct cmsghdr align;
};

_Static_assert(sizeof(struct in_pktinfo) <= sizeof(struct in6_pktinfo), "there is room for both");

/* What leaves: to one address, or to all children of its job. */
struct waiting {
	struct spill_reply reply;
	struct sockaddr_storage sender;
};

/* Runs that go with one system call. The datagrams of a run are of one length. */
struct outgoing {
	unsigned int runs;
	struct mmsghdr run[SENDS];
	struct iovec iov[SENDS][2 * RUN_MAX];
	union control control[SENDS];
	unsigned int parts[SENDS]; /* of each datagram: header, or header and payload */
	uint64_t header[SENDS][RUN_MAX][SPILL_HEADER_WORDS];
};

struct serve_socket {
	struct serve_socket *next;
	struct serve_socket *beside; /* ring: the sockets of other threads at this address */
	struct sockaddr_storage service;
	int fd;
	bool segments; /* the kernel cuts runs */
};

struct serve {
	struct spill *spill;
	struct serve_socket *sockets;
	struct serve_socket *from; /* what waits leaves by this one */
	uint64_t unsent;
	unsigned int waiting;
	struct waiting wait[REPLIES];
	struct outgoing out;
	struct mmsghdr in[RECEIVES];
	struct iovec in_iov[RECEIVES];
	struct spill_way way[RECEIVES];
	union control_in in_control[RECEIVES];
	uint8_t *buffer; /* [RECEIVES][RECEIVE_BYTES] */
	uint64_t aligned[RECEIVE_BYTES / sizeof(uint64_t)];
};

/* --- out */

/* A run where the kernel does not cut runs. */
static void send_singly(struct serve *s, const struct msghdr *run, unsigned int parts)
{
	for (size_t i = 0; i < run->msg_iovlen; i += parts) {
		struct msghdr one = { .msg_name = run->msg_name,
				      .msg_namelen = run->msg_namelen,
				      .msg_iov = run->msg_iov + i,
				      .msg_iovlen = parts };

		s->unsent += sendmsg(s->from->fd, &one, MSG_DONTWAIT) < 0;
	}
}

/*
 * Waits for room, but not for long: what is not sent is lost, and asked for again. An error may be
 * of something that left before: who has gone, or whoever forges ICMP, makes any send fail once.
 */
static void outgoing_send(struct serve *s)
{
	struct outgoing *o = &s->out;
	struct pollfd room = { .events = POLLOUT };
	unsigned int again = 0;

	if (!o->runs)
		return;
	room.fd = s->from->fd;
	for (unsigned int sent = 0; sent < o->runs;) {
		int r = sendmmsg(room.fd, o->run + sent, o->runs - sent, MSG_DONTWAIT);

		if (r > 0) {
			sent += r;
		} else if (errno == EINTR ||
			   (errno == EAGAIN && poll(&room, 1, ROOM_WAIT_MS) > 0)) {
			continue;
		} else if (errno == EINVAL || errno == EIO) {
			s->from->segments = false;
			send_singly(s, &o->run[sent].msg_hdr, o->parts[sent]);
			sent++;
		} else if (again++ >= AGAIN_MAX) {
			s->unsent += o->run[sent].msg_hdr.msg_iovlen / o->parts[sent];
			sent++;
		}
	}
	o->runs = 0;
}

static void segment_as(struct msghdr *m, union control *control, uint16_t bytes)
{
	struct cmsghdr *c;

	*control = (union control){ { 0 } };
	m->msg_control = control;
	m->msg_controllen = sizeof(*control);
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(bytes));
	memcpy(CMSG_DATA(c), &bytes, sizeof(bytes));
}

/* Does this datagram go on with the last run, which is to the same address? */
static bool run_goes_on(const struct serve *s, const struct msghdr *run, unsigned int parts,
			size_t bytes)
{
	size_t datagrams = run->msg_iovlen / parts, each = run->msg_iov[0].iov_len;

	each += parts > 1 ? run->msg_iov[1].iov_len : 0;
	return s->from->segments && datagrams < RUN_MAX && each == bytes &&
	       (datagrams + 1) * bytes <= RUN_BYTES_MAX;
}

static void outgoing_add(struct serve *s, const struct sockaddr_storage *to,
			 const uint64_t header[static SPILL_HEADER_WORDS],
			 const struct spill_reply *r, size_t payload_bytes)
{
	struct outgoing *o = &s->out;
	struct msghdr *run = o->runs ? &o->run[o->runs - 1].msg_hdr : NULL;
	unsigned int parts = payload_bytes ? 2 : 1;
	size_t bytes = r->header_bytes + payload_bytes;
	uint64_t *copy;

	if (run && run->msg_name == to && o->parts[o->runs - 1] == parts &&
	    run_goes_on(s, run, parts, bytes)) {
		if (run->msg_iovlen == parts)
			segment_as(run, &o->control[o->runs - 1], bytes);
	} else {
		if (o->runs == SENDS)
			outgoing_send(s);
		run = &o->run[o->runs].msg_hdr;
		*run = (struct msghdr){ .msg_name = (void *)to,
					.msg_namelen = endpoint_length(to),
					.msg_iov = o->iov[o->runs] };
		o->parts[o->runs++] = parts;
	}
	copy = o->header[o->runs - 1][run->msg_iovlen / parts];
	memcpy(copy, header, r->header_bytes);
	run->msg_iov[run->msg_iovlen++] = (struct iovec){ copy, r->header_bytes };
	if (payload_bytes)
		run->msg_iov[run->msg_iovlen++] = (struct iovec){ (void *)r->word, payload_bytes };
}

/* The replies from `first` on that go to the group of one job: child by child, for long runs. */
static unsigned int group_add(struct serve *s, unsigned int first)
{
	const struct spill_job *job = s->wait[first].reply.job;
	unsigned int last = first, children;
	uint64_t header[SPILL_HEADER_WORDS];
	const struct spill_child *child = spill_children(job, &children);

	while (last < s->waiting && s->wait[last].reply.job == job &&
	       s->wait[last].reply.to == TALLY_TO_GROUP)
		last++;
	for (unsigned int c = 0; c < children; c++) {
		for (unsigned int i = first; i < last; i++) {
			const struct spill_reply *r = &s->wait[i].reply;
			size_t payload_bytes = spill_copy(r, &child[c], header);

			outgoing_add(s, &child[c].address, header, r, payload_bytes);
		}
	}
	return last;
}

static void settle(void *context)
{
	struct serve *s = context;

	for (unsigned int i = 0; i < s->waiting;) {
		struct waiting *w = &s->wait[i];

		if (w->reply.to == TALLY_TO_GROUP) {
			i = group_add(s, i);
			continue;
		}
		outgoing_add(s, &w->sender, w->reply.header, &w->reply, w->reply.payload_bytes);
		i++;
	}
	outgoing_send(s);
	s->waiting = 0;
	spill_settled(s->spill);
}

/* --- in */

static void take(struct serve *s, const void *datagram, size_t length, const struct spill_way *way,
		 uint64_t now_ns)
{
	struct waiting *w;

	if (s->waiting == REPLIES)
		settle(s);
	if ((uintptr_t)datagram % sizeof(uint64_t))
		datagram = memcpy(s->aligned, datagram, length);
	/* Into a place of its own: what waits before may be sent meanwhile. */
	w = &s->wait[s->waiting];
	spill_message(s->spill, datagram, length, &s->from->service, way, now_ns, &w->reply);
	if (w->reply.to == TALLY_TO_NOBODY)
		return;
	if (s->waiting == 0 && w != s->wait)
		s->wait[0] = *w; /* the others have been sent */
	w = &s->wait[s->waiting++];
	w->sender = way->from;
}

/*
 * The length of the datagrams that were put together, all of it if it is only one; and the
 * interface that all of them came in by, and their mark.
 */
static size_t control_read(struct msghdr *m, size_t length, struct spill_way *ret)
{
	struct in6_pktinfo in6 = { 0 };
	struct in_pktinfo in4 = { 0 };
	int bytes = 0, tos = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
			memcpy(&bytes, CMSG_DATA(c), sizeof(bytes));
		else if (c->cmsg_level == SOL_IP && c->cmsg_type == IP_PKTINFO)
			memcpy(&in4, CMSG_DATA(c), sizeof(in4));
		else if (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_PKTINFO)
			memcpy(&in6, CMSG_DATA(c), sizeof(in6));
		else if (c->cmsg_level == SOL_IP && c->cmsg_type == IP_TOS)
			tos = *CMSG_DATA(c);
		else if (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_TCLASS)
			memcpy(&tos, CMSG_DATA(c), sizeof(tos));
	ret->interface = in4.ipi_ifindex ? (uint32_t)in4.ipi_ifindex : in6.ipi6_ifindex;
	ret->marked = (tos & IPTOS_ECN_MASK) == IPTOS_ECN_CE;
	return bytes > 0 ? (size_t)bytes : length;
}

static int receive(struct serve *s)
{
	for (int i = 0; i < RECEIVES; i++)
		s->in[i].msg_hdr = (struct msghdr){ .msg_name = &s->way[i].from,
						    .msg_namelen = sizeof(s->way[i].from),
						    .msg_iov = &s->in_iov[i],
						    .msg_iovlen = 1,
						    .msg_control = &s->in_control[i],
						    .msg_controllen = sizeof(s->in_control[i]) };
	return recvmmsg(s->from->fd, s->in, RECEIVES, MSG_DONTWAIT, NULL);
}

unsigned int serve_some(struct serve *s, struct serve_socket *socket)
{
	uint64_t now_ns = clock_now_ns();
	unsigned int messages = 0;
	int runs;

	s->from = socket;
	runs = receive(s);
	for (int i = 0; i < runs; i++) {
		const uint8_t *bytes = s->in_iov[i].iov_base;
		size_t left = s->in[i].msg_len, each;

		each = control_read(&s->in[i].msg_hdr, left, &s->way[i]);

		for (; left; messages++) {
			size_t one = each < left ? each : left;

			take(s, bytes, one, &s->way[i], now_ns);
			bytes += one;
			left -= one;
		}
	}
	settle(s);
	return messages;
}

/* --- who has gone */

/* At all sockets of the address: the kernel takes one of them, whoever has asked. */
static int hear_errors(const struct serve_socket *s, int on)
{
	const bool ipv6 = s->service.ss_family == AF_INET6;
	const struct serve_socket *each = s;

	do {
		if (setsockopt(each->fd, ipv6 ? SOL_IPV6 : SOL_IP, ipv6 ? IPV6_RECVERR : IP_RECVERR,
			       &on, sizeof(on)) < 0)
			return -errno;
		each = each->beside;
	} while (each != s);
	return 0;
}

int serve_ask(struct serve_socket *s, const struct sockaddr_storage *to, const void *bytes,
	      size_t length)
{
	int r = hear_errors(s, true);

	if (r < 0)
		return r;
	if (sendto(s->fd, bytes, length, MSG_DONTWAIT, (const void *)to, endpoint_length(to)) < 0)
		return -errno;
	return 0;
}

void serve_forget(struct serve_socket *s) { hear_errors(s, false); }

struct spill *serve_spill(struct serve *s) { return s->spill; }

int serve_fd(const struct serve_socket *s) { return s->fd; }

uint64_t serve_unsent(const struct serve *s) { return s->unsent; }

/* --- life */

static int sockets_open(struct sockaddr_storage *service, bool local, unsigned int threads,
			struct serve_socket **ret, int *ret_fd, struct why *why)
{
	for (unsigned int i = 0; i < threads; i++) {
		ret[i] = calloc(1, sizeof(**ret));
		if (!ret[i])
			return why_say(why, -ENOMEM, "out of memory");
	}
	return listen_open(service, local, threads, ret_fd, why);
}

int serve_listen(struct serve *const *serve, unsigned int threads,
		 const struct sockaddr_storage *service, bool local, struct serve_socket **ret,
		 struct why *why)
{
	struct serve_socket *socket[LISTEN_THREADS_MAX] = { NULL };
	struct sockaddr_storage at = *service;
	int fd[LISTEN_THREADS_MAX];
	int r = sockets_open(&at, local, threads, socket, fd, why);

	for (unsigned int i = 0; i < threads; i++) {
		if (r < 0) {
			free(socket[i]);
			continue;
		}
		*socket[i] = (struct serve_socket){ .next = serve[i]->sockets,
						    .beside = socket[(i + 1) % threads],
						    .service = at,
						    .fd = fd[i],
						    .segments = true };
		ret[i] = serve[i]->sockets = socket[i];
	}
	return r;
}

int serve_open(size_t bytes_max, struct serve **ret)
{
	_cleanup_(serve_closep) struct serve *s = calloc(1, sizeof(*s));
	uint16_t boot = 0;

	if (!s)
		return -ENOMEM;
	if (getrandom(&boot, sizeof(boot), 0) != sizeof(boot))
		boot = clock_now_ns();
	s->buffer = malloc(RECEIVES * RECEIVE_BYTES);
	s->spill = spill_new(bytes_max, boot, settle, s);
	if (!s->buffer || !s->spill)
		return -ENOMEM;
	for (int i = 0; i < RECEIVES; i++)
		s->in_iov[i] = (struct iovec){ s->buffer + i * RECEIVE_BYTES, RECEIVE_BYTES };
	*ret = TAKE_PTR(s);
	return 0;
}

void serve_close(struct serve *s)
{
	if (!s)
		return;
	spill_free(s->spill);
	while (s->sockets) {
		struct serve_socket *next = s->sockets->next;

		close(s->sockets->fd);
		free(s->sockets);
		s->sockets = next;
	}
	free(s->buffer);
	free(s);
}
