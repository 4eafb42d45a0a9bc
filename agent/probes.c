// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A datagram to a UDP port that nobody has any more is answered by ICMP, which quotes the datagram:
 * only who has seen its random bytes can answer so. Whoever is there sees a datagram that is no
 * message, and ignores it. Silence proves nothing.
 *
 * Workers' sockets take datagrams from the service address and its port only, so they come from
 * there: from the spiller's socket where it has that port. A second socket of that port would take
 * what workers send to the spiller.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/edge/refused.h"
#include "agent/edge/spiller.h"
#include "common/util.h"
#include "probes.h"

enum {
	PROBE_BYTES = SPILLER_ASK_BYTES, /* 0, which begins no message, and random ones */
};

/* One worker that was asked. */
struct probe {
	struct probe *next;
	struct driver *driver;
	sd_event_source *io;
	int fd; /* -1: asked from the spiller's */
	uint8_t datagram[PROBE_BYTES];
	struct core_event gone; /* if it is */
};

struct probes {
	sd_event *loop;
	struct driver *driver;
	sd_event_source *refused;
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

/* Answers, if any. Nothing but errors comes: what a worker sends, XDP takes. */
static int on_answer(sd_event_source *io, int fd, uint32_t events, void *data)
{
	struct probe *p = data;
	uint8_t quoted[PROBE_BYTES] = { 0 };
	unsigned int left = REFUSED_MAX;
	bool gone = false;
	ssize_t n;

	while ((n = refused_read(fd, &left, quoted, sizeof(quoted))) >= 0)
		gone |= n == sizeof(quoted) && !memcmp(quoted, p->datagram, sizeof(quoted));
	recv(fd, quoted, sizeof(quoted), MSG_DONTWAIT); /* a forged one has left an error, too */
	if (!gone)
		return 0;
	sd_event_source_set_enabled(io, SD_EVENT_OFF);
	driver_handle(p->driver, &p->gone);
	return 0;
}

/* The same of those that were asked from the spiller's sockets. */
static int on_refused(sd_event_source *io, int fd, uint32_t events, void *data)
{
	const struct probes *all = data;
	uint8_t quoted[PROBE_BYTES];
	const struct probe *p;

	for (int i = 0; i < REFUSED_MAX && read(fd, quoted, sizeof(quoted)) == sizeof(quoted);
	     i++) {
		p = all->first;
		while (p && memcmp(quoted, p->datagram, sizeof(quoted)) != 0)
			p = p->next;
		if (p)
			driver_handle(p->driver, &p->gone);
	}
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

static int probe_send(struct probes *all, struct probe *p, const struct sockaddr_storage *service,
		      const struct sockaddr_storage *worker)
{
	int r = spiller_ask(driver_spiller(all->driver), service, worker, p->datagram);

	if (r != -ENOENT)
		return r;
	p->fd = socket_to(service, worker);
	if (p->fd < 0)
		return p->fd;
	r = sd_event_add_io(all->loop, &p->io, p->fd, EPOLLIN, on_answer, p);
	if (r < 0)
		return r;
	return send(p->fd, p->datagram, sizeof(p->datagram), 0) < 0 ? -errno : 0;
}

int probes_ask(struct probes *all, const struct job *j, uint16_t rank)
{
	_cleanup_(probe_freep) struct probe *p = calloc(1, sizeof(*p));
	const size_t random = sizeof(p->datagram) - 1;
	int r;

	if (!p)
		return -ENOMEM;
	p->fd = -1;
	p->driver = all->driver;
	p->gone = (struct core_event){ .kind = CORE_GONE, .gone = { j->id, rank, j->epoch } };
	if (getrandom(p->datagram + 1, random, 0) != (ssize_t)random)
		return -EIO;
	r = probe_send(all, p, &j->service, &j->rank[rank].address);
	if (r < 0)
		return r;
	p->next = all->first;
	all->first = TAKE_PTR(p);
	return 0;
}

void probes_forget(struct probes *all)
{
	spiller_forget(driver_spiller(all->driver));
	while (all->first) {
		struct probe *p = all->first;

		all->first = p->next;
		probe_free(p);
	}
}

int probes_open(sd_event *loop, struct driver *d, struct probes **ret)
{
	struct probes *all = calloc(1, sizeof(*all));
	int r;

	*ret = all;
	if (!all)
		return -ENOMEM;
	all->loop = loop;
	all->driver = d;
	r = sd_event_add_io(loop, &all->refused, spiller_refused_fd(driver_spiller(d)), EPOLLIN,
			    on_refused, all);
	return r < 0 ? r : 0;
}

void probes_close(struct probes *all)
{
	if (!all)
		return;
	sd_event_source_disable_unref(all->refused);
	probes_forget(all);
	free(all);
}
