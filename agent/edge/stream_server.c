// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where connections come from, and what becomes of those for which there is no room. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/address.h"
#include "log.h"
#include "stream_private.h"

enum {
	BACKLOG = 512,
	/* A machine that has died is noticed after 15 + 3 * 5 seconds. */
	KEEPALIVE_IDLE_S = 15,
	KEEPALIVE_INTERVAL_S = 5,
	KEEPALIVE_COUNT = 3,
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

/*
 * Where all is full, who has been here longest and is not kept makes room: strangers who only
 * connect, however many, do not keep out those who have something to say.
 */
static bool place_make(struct stream_server *server)
{
	struct stream *oldest = NULL;

	if (server->count < server->service->connections_max)
		return true;
	for (struct stream *s = server->streams; s; s = s->next) /* the newest comes first */
		oldest = s->kept ? oldest : s;
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

static int on_connection(sd_event_source *source, int listener, uint32_t events, void *data)
{
	struct stream_server *server = data;
	struct sockaddr_storage peer = { .ss_family = AF_UNIX };
	socklen_t length = sizeof(peer);
	int fd;

	fd = accept4(listener, (void *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			accept_and_turn_away(server, listener);
		return 0;
	}
	if (peer.ss_family != AF_UNIX)
		keepalive_set(fd);
	if (!place_make(server) || stream_new(server, fd, &peer) < 0)
		turn_away(server, fd);
	return 0;
}

int stream_server_open(sd_event *loop, const struct stream_service *service, void *owner,
		       struct stream_server **ret)
{
	struct stream_server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->loop = loop;
	server->service = service;
	server->owner = owner;
	server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	*ret = server;
	return 0;
}

void stream_server_close(struct stream_server *server)
{
	if (!server)
		return;
	while (server->streams)
		stream_end(server->streams);
	for (unsigned int i = 0; i < server->listeners; i++) {
		sd_event_source_disable_unref(server->listener[i].io);
		close(server->listener[i].fd);
		if (server->listener[i].path)
			unlink(server->listener[i].path);
		free(server->listener[i].path);
	}
	closep(&server->spare);
	free(server);
}

static int listen_on(struct stream_server *server, int fd, const char *path)
{
	sd_event_source *io;
	int r;

	if (server->listeners == STREAM_LISTENERS_MAX)
		return -ENOSPC;
	if (listen(fd, BACKLOG) < 0)
		return -errno;
	r = sd_event_add_io(server->loop, &io, fd, EPOLLIN, on_connection, server);
	if (r < 0)
		return r;
	server->listener[server->listeners].fd = fd;
	server->listener[server->listeners].io = io;
	server->listener[server->listeners++].path = path ? strdup(path) : NULL;
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
		r = -errno;
	if (r == 0 && chmod(path, mode) < 0)
		r = -errno;
	if (r == 0)
		r = listen_on(server, fd, path);
	if (r < 0)
		return why_say(why, r, "cannot listen on %s: %s", path, strerror(-r));
	(void)TAKE_FD(fd);
	return 0;
}

int stream_listen_tcp(struct stream_server *server, const struct sockaddr_storage *address,
		      struct why *why)
{
	_cleanup_(closep) int fd = socket(address->ss_family,
					  SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char text[ADDRESS_BYTES];
	int on = 1, r;

	if (fd < 0)
		return why_say(why, -errno, "cannot open a TCP socket: %m");
	endpoint_print(address, text, sizeof(text));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (const void *)address, sizeof(*address)) < 0)
		return why_say(why, -errno, "cannot listen on %s: %m", text);
	r = listen_on(server, fd, NULL);
	if (r < 0)
		return why_say(why, r, "cannot listen on %s: %s", text, strerror(-r));
	(void)TAKE_FD(fd);
	return 0;
}

unsigned int stream_connections(const struct stream_server *server) { return server->count; }
