// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where connections come from, and what becomes of those for which there is no room. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/address.h"
#include "common/clock.h"
#include "stream_private.h"

enum {
	BACKLOG = 512,
	/* A machine that has died is noticed after 15 + 3 * 5 seconds. */
	KEEPALIVE_IDLE_S = 15,
	KEEPALIVE_INTERVAL_S = 5,
	KEEPALIVE_COUNT = 3,
	LOCAL_SEND_BYTES = 16 << 10, /* that the kernel keeps of a local one who does not read */
	TURN_NS = 5000000, /* that connections have the loop for, before others have their turn */
	IPV6_NETWORK_BYTES = 8, /* whoever has one address has all of its network */
};

/* Too many: it is told so if that goes at once. */
static void say_busy(const struct stream_server *server, int fd)
{
	_cleanup_(freep) char *text = server->service->refuse(-EBUSY);

	if (text)
		send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void turn_away(const struct stream_server *server, int fd)
{
	say_busy(server, fd);
	close(fd);
}

/* FNV-1a of the address, or of the user at a unix socket. */
static struct stream_list *source_of(struct stream_server *server,
				     const struct sockaddr_storage *peer, const struct ucred *who)
{
	const bool local = peer->ss_family == AF_UNIX;
	size_t bytes = sizeof(who->uid);
	const uint8_t *raw = local ? (void *)&who->uid : address_raw(peer, &bytes);
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < bytes && i < IPV6_NETWORK_BYTES; i++)
		hash = (hash ^ raw[i]) * 16777619u;
	hash ^= hash >> 16;
	return &server->source[local ? hash % STREAM_USERS
				     : STREAM_USERS + hash % (STREAM_SOURCES - STREAM_USERS)];
}

/*
 * Where all is full, who has been here longest and is not kept makes room, among those of the
 * address or user that has most: strangers who only connect, however many, do not keep out those
 * who have something to say.
 */
static bool place_make(struct stream_server *server, const struct stream_list *source)
{
	const bool local = source < server->source + STREAM_USERS;
	const unsigned int address_max = local ? 0 : server->service->address_max;
	struct stream *oldest;

	if (!address_max || source->count < address_max) {
		if (server->count < server->service->connections_max)
			return true;
		for (unsigned int i = 0; i < STREAM_SOURCES; i++)
			if (server->source[i].count > source->count)
				source = &server->source[i];
	}
	oldest = TAILQ_FIRST(&source->all);
	if (!oldest)
		return false;
	if (!oldest->out_length)
		say_busy(server, oldest->fd);
	stream_end(oldest);
	return true;
}

/* The kernel's own times are hours, for which nobody else could have a dead worker's rank. */
static void keepalive_set(int fd)
{
	const int on = 1, idle_s = KEEPALIVE_IDLE_S, interval_s = KEEPALIVE_INTERVAL_S;
	const int count = KEEPALIVE_COUNT;
	const unsigned int unread_ms = 1000 * (KEEPALIVE_IDLE_S + 3 * KEEPALIVE_INTERVAL_S);

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	/* the same for one who dies while something is on the way to it */
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unread_ms, sizeof(unread_ms));
}

/* Whoever cannot be accepted stays in the queue, and the loop would be woken for it for ever. */
static void accept_and_turn_away(struct stream_server *server, int listener)
{
	int fd;

	if (server->spare >= 0)
		close(server->spare);
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		turn_away(server, fd);
	server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Its process, and little memory of the kernel, which would take 200 KB. */
static void local_set(int fd, struct ucred *ret)
{
	const int bytes = LOCAL_SEND_BYTES;
	socklen_t length = sizeof(*ret);

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &length) < 0)
		*ret = (struct ucred){ .pid = -1 };
}

static void on_connection(struct stream_server *server, int listener)
{
	struct sockaddr_storage peer = { .ss_family = AF_UNIX };
	socklen_t length = sizeof(peer);
	struct ucred who = { .pid = -1 };
	struct stream_list *source;
	int fd;

	fd = accept4(listener, (void *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			accept_and_turn_away(server, listener);
		return;
	}
	if (peer.ss_family == AF_UNIX)
		local_set(fd, &who);
	else
		keepalive_set(fd);
	source = source_of(server, &peer, &who);
	if (!place_make(server, source) || stream_new(server, source, fd, &peer, &who) < 0)
		turn_away(server, fd);
}

/* --- turns ----------------------------------------------------------------------------------- */

/*
 * One event at a time is taken from the kernel, which puts its connection at the end of those that
 * are ready: so nobody waits for more than all others once. sd-event alone asks for all that is
 * ready before each single event.
 */
static int on_ready(sd_event_source *io, int fd, uint32_t events, void *data)
{
	struct stream_server *server = data;
	const uint64_t end_ns = clock_now_ns() + TURN_NS;
	struct epoll_event e;
	bool more;

	while ((more = clock_now_ns() < end_ns) && epoll_wait(fd, &e, 1, 0) > 0) {
		struct stream_listener *l = e.data.ptr;

		if (l >= server->listener && l < server->listener + STREAM_LISTENERS_MAX)
			on_connection(server, l->fd);
		else
			stream_on_io(e.data.ptr, e.events);
	}
	/* Who has more to do than time goes on behind all others. */
	sd_event_source_set_priority(io,
				     more ? server->service->priority : SD_EVENT_PRIORITY_NORMAL);
	return 0;
}

/* --- the line --------------------------------------------------------------------------------- */

/* A timer that is set anew each time: sd-event would take a source that is always there first. */
void stream_line_arm(struct stream_server *server)
{
	if (TAILQ_EMPTY(&server->line))
		return;
	sd_event_source_set_time_relative(server->next_in_line, 0);
	sd_event_source_set_enabled(server->next_in_line, SD_EVENT_ONESHOT);
}

void stream_line_join(struct stream *s, unsigned int patience)
{
	struct stream_queue *line = &s->server->line;
	struct stream *before = TAILQ_LAST(line, stream_queue);
	const bool is_first = !before;

	while (before && before->in_line > patience)
		before = TAILQ_PREV(before, stream_queue, turn);
	s->in_line = patience;
	if (before)
		TAILQ_INSERT_AFTER(line, before, s, turn);
	else
		TAILQ_INSERT_HEAD(line, s, turn);
	if (is_first)
		stream_line_arm(s->server);
	sd_event_source_set_enabled(s->timer, SD_EVENT_OFF); /* the request is whole */
}

void stream_line_leave(struct stream *s)
{
	if (s->in_line)
		TAILQ_REMOVE(&s->server->line, s, turn);
	s->in_line = 0;
}

static int on_line(sd_event_source *timer, uint64_t us, void *data)
{
	stream_line_read(data);
	return 0;
}

int stream_server_open(sd_event *loop, const struct stream_service *service, void *owner,
		       struct stream_server **ret)
{
	struct stream_server *server = calloc(1, sizeof(*server));
	int r;

	*ret = server;
	if (!server)
		return -ENOMEM;
	server->loop = loop;
	server->service = service;
	server->owner = owner;
	TAILQ_INIT(&server->kept.all);
	TAILQ_INIT(&server->line);
	TAILQ_INIT(&server->held);
	for (unsigned int i = 0; i < STREAM_SOURCES; i++)
		TAILQ_INIT(&server->source[i].all);
	server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0)
		return -errno;
	r = sd_event_add_io(loop, &server->io, server->epoll, EPOLLIN, on_ready, server);
	if (r >= 0)
		r = sd_event_source_set_priority(server->io, service->priority);
	if (r >= 0)
		r = sd_event_add_time(loop, &server->next_in_line, CLOCK_MONOTONIC, 0, 1, on_line,
				      server);
	return r < 0 ? r : sd_event_source_set_enabled(server->next_in_line, SD_EVENT_OFF);
}

static void list_end(struct stream_list *list)
{
	while (!TAILQ_EMPTY(&list->all))
		stream_end(TAILQ_FIRST(&list->all));
}

void stream_server_close(struct stream_server *server)
{
	if (!server)
		return;
	for (unsigned int i = 0; i < STREAM_SOURCES; i++)
		list_end(&server->source[i]);
	list_end(&server->kept);
	for (unsigned int i = 0; i < server->listeners; i++) {
		close(server->listener[i].fd);
		if (server->listener[i].path)
			unlink(server->listener[i].path);
		free(server->listener[i].path);
	}
	sd_event_source_disable_unref(server->io);
	sd_event_source_disable_unref(server->next_in_line);
	closep(&server->epoll);
	closep(&server->spare);
	free(server);
}

static int listen_on(struct stream_server *server, int fd, const char *path)
{
	struct stream_listener *l = &server->listener[server->listeners];
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = l };

	if (server->listeners == STREAM_LISTENERS_MAX)
		return -ENOSPC;
	if (listen(fd, BACKLOG) < 0 || epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &e) < 0)
		return -errno;
	*l = (struct stream_listener){ fd, path ? strdup(path) : NULL };
	server->listeners++;
	return 0;
}

/* What is there and is not a socket is somebody's, whatever the configuration says. */
static bool is_in_the_way(const char *path)
{
	struct stat s;

	return lstat(path, &s) == 0 && !S_ISSOCK(s.st_mode);
}

/* Is somebody listening there? */
static bool is_answered(const struct sockaddr_un *address)
{
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd >= 0 &&
	       (connect(fd, (const void *)address, sizeof(*address)) == 0 || errno == EAGAIN);
}

int stream_listen_unix(struct stream_server *server, const char *path, mode_t mode, gid_t group,
		       struct why *why)
{
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	mode_t umask_before;
	int r;

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(address.sun_path))
		return why_say(why, -ENAMETOOLONG, "%s: the path has more than %zu bytes", path,
			       sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (is_in_the_way(path))
		return why_say(why, -EEXIST,
			       "%s: the file exists and is not a socket: move it away", path);
	if (is_answered(&address))
		return why_say(why, -EADDRINUSE, "%s: another tallyd listens there", path);
	unlink(path);
	umask_before = umask(0177); /* closed to others until it has its owner and mode */
	r = bind(fd, (const void *)&address, sizeof(address)) < 0 ? -errno : 0;
	umask(umask_before);
	if (r == 0 && group != (gid_t)-1 && chown(path, -1, group) < 0)
		return why_say(why, -errno,
			       "cannot give %s to group %u: %m. tallyd's user must be in the group "
			       "(SupplementaryGroups= in a drop-in of tallyd.service)",
			       path, group);
	if (r == 0 && chmod(path, mode) < 0)
		r = -errno;
	if (r == 0)
		r = listen_on(server, fd, path);
	if (r < 0)
		return why_say(why, r, "cannot listen on %s: %s", path, strerror(-r));
	(void)TAKE_FD(fd);
	return 0;
}

static int tcp_bind(const struct sockaddr_storage *address, bool any_port, int *ret,
		    struct why *why)
{
	struct sockaddr_storage at = *address;
	_cleanup_(closep) int fd = socket(address->ss_family,
					  SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char text[ADDRESS_BYTES];
	int on = 1;

	if (fd < 0)
		return why_say(why, -errno, "cannot open a TCP socket: %m");
	if (any_port)
		endpoint_port_set(&at, 0);
	endpoint_print(address, text, sizeof(text));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	/* an address may come later */
	setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
	if (bind(fd, (const void *)&at, sizeof(at)) < 0)
		return why_say(why, -errno, "cannot listen on %s: %m", text);
	*ret = TAKE_FD(fd);
	return 0;
}

int stream_check_tcp(const struct sockaddr_storage *address, struct why *why)
{
	_cleanup_(closep) int fd = -1;

	return tcp_bind(address, true, &fd, why);
}

int stream_listen_tcp(struct stream_server *server, const struct sockaddr_storage *address,
		      struct why *why)
{
	_cleanup_(closep) int fd = -1;
	char text[ADDRESS_BYTES];
	int r;

	r = tcp_bind(address, false, &fd, why);
	if (r < 0)
		return r;
	r = listen_on(server, fd, NULL);
	endpoint_print(address, text, sizeof(text));
	if (r < 0)
		return why_say(why, r, "cannot listen on %s: %s", text, strerror(-r));
	(void)TAKE_FD(fd);
	return 0;
}

/* What a datagram has beside it, the kernel keeps of a connection's first packet. */
uint32_t stream_port(const struct stream *s)
{
	const bool ipv6 = s->peer.ss_family == AF_INET6;
	const int level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, on = 1;
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} info = { .bytes = "" };
	socklen_t length = sizeof(info);
	uint32_t port;

	if (s->peer.ss_family == AF_UNIX ||
	    setsockopt(s->fd, level, ipv6 ? IPV6_RECVPKTINFO : IP_PKTINFO, &on, sizeof(on)) < 0 ||
	    getsockopt(s->fd, level, ipv6 ? IPV6_2292PKTOPTIONS : IP_PKTOPTIONS, &info, &length) <
		    0)
		return 0;
	memcpy(&port,
	       CMSG_DATA(&info.head) + (ipv6 ? offsetof(struct in6_pktinfo, ipi6_ifindex)
					     : offsetof(struct in_pktinfo, ipi_ifindex)),
	       sizeof(port));
	return port;
}

unsigned int stream_connections(const struct stream_server *server) { return server->count; }
