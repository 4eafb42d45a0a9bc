// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A datagram to a UDP port that nobody has any more is answered by ICMP, which quotes the datagram:
 * only who has seen its random bytes can answer so. Whoever is there sees a datagram that is no
 * message, and ignores it. Silence proves nothing.
 *
 * Workers' sockets take datagrams from the service address only, so they come from there.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/errqueue.h> /* behind time.h, which it needs */

#include "common/util.h"
#include "probes.h"

enum {
	PROBE_BYTES = 1 + 16,
};

/* One worker that was asked. */
struct probe {
	struct probe *next;
	struct driver *driver;
	sd_event_source *io;
	int fd;
	uint8_t datagram[PROBE_BYTES]; /* 0, which begins no message, and random bytes */
	struct core_event gone; /* if it is */
};

struct probes {
	sd_event *loop;
	struct driver *driver;
	struct probe *first;
};

static void probe_free(struct probe *p)
{
	if (!p)
		return;
	sd_event_source_disable_unref(p->io);
	closep(&p->fd);
	free(p);
}

static void probe_freep(struct probe **p) { probe_free(*p); }

static bool is_refusal(const struct msghdr *m)
{
	const struct sock_extended_err *e;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR((struct msghdr *)m, c)) {
		if (!(c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) &&
		    !(c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR))
			continue;
		e = (const void *)CMSG_DATA(c);
		return e->ee_errno == ECONNREFUSED;
	}
	return false;
}

/* Answers, if any. Nothing but errors comes: what a worker sends, XDP takes. */
static int on_answer(sd_event_source *io, int fd, uint32_t events, void *data)
{
	struct probe *p = data;
	uint8_t quoted[PROBE_BYTES] = { 0 }, control[256];
	struct iovec into = { quoted, sizeof(quoted) };
	struct msghdr m = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = control };
	bool gone = false;
	ssize_t n;

	while (m.msg_controllen = sizeof(control),
	       (n = recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT)) >= 0)
		gone |= n == sizeof(quoted) && is_refusal(&m) &&
			!memcmp(quoted, p->datagram, sizeof(quoted));
	recv(fd, quoted, sizeof(quoted), MSG_DONTWAIT); /* a forged one has left an error, too */
	if (!gone)
		return 0;
	sd_event_source_set_enabled(io, SD_EVENT_OFF);
	driver_handle(p->driver, &p->gone);
	return 0;
}

/* A socket of the service address, and nobody else's than this worker's. */
static int socket_to(const struct sockaddr_storage *service, const struct sockaddr_storage *worker)
{
	_cleanup_(closep) int fd = socket(service->ss_family,
					  SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const bool ipv6 = service->ss_family == AF_INET6;
	int on = 1;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, ipv6 ? SOL_IPV6 : SOL_IP, ipv6 ? IPV6_RECVERR : IP_RECVERR, &on,
		       sizeof(on)) < 0 ||
	    bind(fd, (const void *)service, sizeof(*service)) < 0 ||
	    connect(fd, (const void *)worker, sizeof(*worker)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int probe_send(struct probe *p)
{
	const size_t random = sizeof(p->datagram) - 1;

	if (getrandom(p->datagram + 1, random, 0) != (ssize_t)random)
		return -EIO;
	return send(p->fd, p->datagram, sizeof(p->datagram), 0) < 0 ? -errno : 0;
}

int probes_ask(struct probes *all, const struct job *j, uint16_t rank)
{
	_cleanup_(probe_freep) struct probe *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->driver = all->driver;
	p->gone = (struct core_event){ .kind = CORE_GONE, .gone = { j->id, rank, j->epoch } };
	p->fd = socket_to(&j->service, &j->rank[rank].address);
	if (p->fd < 0)
		return p->fd;
	r = sd_event_add_io(all->loop, &p->io, p->fd, EPOLLIN, on_answer, p);
	if (r >= 0)
		r = probe_send(p);
	if (r < 0)
		return r;
	p->next = all->first;
	all->first = TAKE_PTR(p);
	return 0;
}

void probes_forget(struct probes *all)
{
	while (all->first) {
		struct probe *p = all->first;

		all->first = p->next;
		probe_free(p);
	}
}

int probes_open(sd_event *loop, struct driver *d, struct probes **ret)
{
	struct probes *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->loop = loop;
	all->driver = d;
	*ret = all;
	return 0;
}

void probes_close(struct probes *all)
{
	if (all)
		probes_forget(all);
	free(all);
}
