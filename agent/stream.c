// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "log.h"
#include "stream.h"

enum {
	LISTENERS_MAX = 32, /* a socket and all addresses that a configuration may name */
	BACKLOG = 512,
	SEND_BYTES_MAX = 1 << 20, /* that wait for one who does not read */
	READ_BYTES = 4096, /* at once */
	TIMER_SLACK_US = 100000,
	CROWD = 16, /* connections; what fewer of them need is not worth a look */
	/* A machine that has died is noticed after 15 + 3 * 5 seconds. */
	KEEPALIVE_IDLE_S = 15,
	KEEPALIVE_INTERVAL_S = 5,
	KEEPALIVE_COUNT = 3,
};

struct stream {
	struct stream_server *server;
	struct stream *next, **before; /* in the server's list */
	int fd;
	sd_event_source *io, *timer;
	struct sockaddr_storage peer;
	char *in; /* request_bytes_max */
	size_t in_length;
	size_t in_most; /* that it ever was: what is behind was never touched */
	char *out;
	size_t out_length, out_room;
	bool kept; /* no deadlines */
	bool finishing; /* when `out` is empty */
	bool heard_all; /* the other side has ended its half */
	bool over; /* nothing is left to do */
	bool more; /* there may be a whole request in `in`; nothing is read meanwhile */
	void *context;
};

struct stream_server {
	const struct stream_service *service;
	void *owner;
	sd_event *loop;
	struct {
		int fd;
		sd_event_source *io;
		char *path; /* of a unix socket */
	} listener[LISTENERS_MAX];
	unsigned int listeners;
	struct stream *streams;
	unsigned int count;
	unsigned int count_most; /* since the last time that memory was given back */
	int spare; /* a file descriptor kept for when there are no others */
};

/* --- ending ---------------------------------------------------------------------------------- */

static void stream_free(struct stream *s)
{
	sd_event_source_disable_unref(s->io);
	sd_event_source_disable_unref(s->timer);
	close(s->fd);
	if (s->in)
		explicit_bzero(s->in, s->in_most);
	free(s->in);
	free(s->out);
	free(s);
}

/*
 * When most of a crowd has gone, or one for whom much was kept: glibc would keep what they needed,
 * since it is in pieces.
 */
static void memory_give_back(struct stream_server *server, size_t room)
{
	const bool crowd = server->count_most > CROWD && server->count <= server->count_most / 4;

	if (!crowd && room < SEND_BYTES_MAX / 2)
		return;
	malloc_trim(0);
	server->count_most = server->count;
}

/* Out of the list, and the owner is told. Only the event loop's own handlers come here. */
static void stream_end(struct stream *s)
{
	struct stream_server *server = s->server;
	const size_t room = s->out_room;

	if (s->next)
		s->next->before = s->before;
	*s->before = s->next;
	server->count--;
	server->service->end(s);
	stream_free(s);
	memory_give_back(server, room);
}

/* From anywhere else: the handler that is at work ends it when it is done, or the next one. */
static void end_soon(struct stream *s)
{
	s->finishing = true;
	s->over = true;
	s->out_length = 0;
	sd_event_source_set_enabled(s->io, SD_EVENT_OFF);
	sd_event_source_set_time_accuracy(s->timer, 1);
	sd_event_source_set_time_relative(s->timer, 0);
	sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

static void deadline_set(struct stream *s, uint64_t timeout_ns)
{
	if (s->kept)
		return;
	sd_event_source_set_time_relative(s->timer, timeout_ns / 1000);
	sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

/* Everything is said. Who closes a socket with something unread in it takes its words back. */
static void part(struct stream *s)
{
	if (s->heard_all)
		end_soon(s);
	else
		shutdown(s->fd, SHUT_WR);
}

void stream_finish(struct stream *s)
{
	if (s->finishing)
		return;
	s->finishing = true;
	s->kept = false;
	deadline_set(s, s->server->service->request_timeout_ns);
	if (!s->out_length)
		part(s);
}

/* --- sending --------------------------------------------------------------------------------- */

static void watch(struct stream *s)
{
	uint32_t events = s->heard_all || s->more ? 0 : EPOLLIN;

	sd_event_source_set_io_events(s->io, events | (s->out_length || s->more ? EPOLLOUT : 0));
}

static void flush(struct stream *s)
{
	size_t sent = 0;

	while (sent < s->out_length) {
		ssize_t n = send(s->fd, s->out + sent, s->out_length - sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			end_soon(s);
			return;
		}
		if (n < 0)
			break;
		sent += n;
	}
	if (sent)
		memmove(s->out, s->out + sent, s->out_length - sent);
	s->out_length -= sent;
	watch(s);
	if (s->finishing && !s->out_length)
		part(s);
}

static bool room_make(struct stream *s, size_t length)
{
	size_t room = s->out_room ? s->out_room : READ_BYTES;
	char *out;

	if (length > SEND_BYTES_MAX || s->out_length + length > SEND_BYTES_MAX)
		return false;
	while (room < s->out_length + length)
		room *= 2;
	if (room == s->out_room)
		return true;
	out = realloc(s->out, room);
	if (!out)
		return false;
	s->out = out;
	s->out_room = room;
	return true;
}

void stream_send(struct stream *s, const char *text, size_t length)
{
	if (s->finishing)
		return;
	if (!room_make(s, length)) {
		log_say(LOG_LEVEL_INFO, "connection ended",
			"service=%s reason=\"it does not read\"", s->server->service->name);
		end_soon(s);
		return;
	}
	memcpy(s->out + s->out_length, text, length);
	s->out_length += length;
	flush(s);
}

/* --- receiving ------------------------------------------------------------------------------- */

void stream_keep(struct stream *s)
{
	s->kept = true;
	if (!s->finishing)
		sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
}

static void refuse(struct stream *s, int error)
{
	_cleanup_(freep) char *text = s->server->service->refuse(error);

	if (text)
		stream_send(s, text, strlen(text));
	stream_finish(s);
}

/*
 * One request in a turn of the loop, so that nobody waits for all that another one asks; and
 * none before the last answer has gone, so that answers which are not read do not pile up.
 */
static void request_read(struct stream *s)
{
	const struct stream_service *service = s->server->service;
	ssize_t n = 0;

	s->more = s->out_length > 0;
	if (!s->more) {
		n = service->read(s, s->in, s->in_length);
		if (n < 0)
			stream_finish(s);
	}
	if (n > 0) {
		memmove(s->in, s->in + n, s->in_length - n);
		s->in_length -= n;
		s->more = s->in_length > 0;
	}
	if (s->finishing) {
		s->more = false;
	} else if (n > 0) {
		deadline_set(s,
			     s->in_length ? service->request_timeout_ns : service->idle_timeout_ns);
	} else if (!s->more && s->in_length == service->request_bytes_max) {
		refuse(s, -EMSGSIZE);
	}
	watch(s);
}

/* The other side has ended its half: what it asked before is answered, then we end ours. */
static void heard_all(struct stream *s)
{
	s->heard_all = true;
	watch(s);
	if (s->finishing && !s->out_length)
		end_soon(s);
	else
		stream_finish(s);
}

static void receive(struct stream *s)
{
	size_t room = s->server->service->request_bytes_max - s->in_length;
	ssize_t n = recv(s->fd, s->in + s->in_length, room < READ_BYTES ? room : READ_BYTES,
			 MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		end_soon(s);
	} else if (n == 0) {
		heard_all(s);
	} else if (!s->finishing) {
		if (!s->in_length)
			deadline_set(s, s->server->service->request_timeout_ns);
		s->in_length += n;
		if (s->in_length > s->in_most)
			s->in_most = s->in_length;
		request_read(s);
	}
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *data)
{
	struct stream *s = data;

	if (events & EPOLLOUT)
		flush(s);
	if (s->more && !s->out_length && !s->finishing)
		request_read(s);
	else if (events & EPOLLIN)
		receive(s);
	else if (events & (EPOLLHUP | EPOLLERR))
		end_soon(s);
	if (s->over)
		stream_end(s);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t us, void *data)
{
	struct stream *s = data;

	if (s->finishing)
		stream_end(s);
	else
		refuse(s, -ETIMEDOUT);
	return 0;
}

/* --- connections ----------------------------------------------------------------------------- */

static int stream_new(struct stream_server *server, int fd, const struct sockaddr_storage *peer)
{
	struct stream *s = calloc(1, sizeof(*s));
	uint64_t us = server->service->request_timeout_ns / 1000;

	if (!s)
		return -ENOMEM;
	*s = (struct stream){ .server = server, .fd = fd, .peer = *peer };
	s->in = malloc(server->service->request_bytes_max);
	if (!s->in || sd_event_add_io(server->loop, &s->io, fd, EPOLLIN, on_io, s) < 0 ||
	    sd_event_add_time_relative(server->loop, &s->timer, CLOCK_MONOTONIC, us, TIMER_SLACK_US,
				       on_timer, s) < 0) {
		s->fd = -1;
		stream_free(s);
		return -ENOMEM;
	}
	s->next = server->streams;
	s->before = &server->streams;
	if (s->next)
		s->next->before = &s->next;
	server->streams = s;
	server->count++;
	if (server->count > server->count_most)
		server->count_most = server->count;
	return 0;
}

/* Too many: it is told so if that goes at once. */
static void turn_away(const struct stream_server *server, int fd)
{
	_cleanup_(freep) char *text = server->service->refuse(-EBUSY);

	if (text)
		send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
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
	if (server->count >= server->service->connections_max || stream_new(server, fd, &peer) < 0)
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

	if (server->listeners == LISTENERS_MAX)
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
		return why_say(why, -ENAMETOOLONG, "%s: more than %zu bytes", path,
			       sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (is_in_the_way(path))
		return why_say(why, -EEXIST, "%s: is there and is no socket: move it away", path);
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
	int on = 1, r;

	if (fd < 0)
		return why_say(why, -errno, "no TCP: %m");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (const void *)address, sizeof(*address)) < 0)
		return why_say(why, -errno, "cannot listen there: %m");
	r = listen_on(server, fd, NULL);
	if (r < 0)
		return why_say(why, r, "cannot listen there: %s", strerror(-r));
	(void)TAKE_FD(fd);
	return 0;
}

unsigned int stream_connections(const struct stream_server *server) { return server->count; }

void *stream_owner(const struct stream *s) { return s->server->owner; }

void *stream_context(const struct stream *s) { return s->context; }

void stream_context_set(struct stream *s, void *context) { s->context = context; }

const struct sockaddr_storage *stream_peer(const struct stream *s) { return &s->peer; }

int stream_group_find(const char *name, gid_t *ret, struct why *why)
{
	const struct group *found = getgrnam(name);

	if (!found)
		return why_say(why, -ENOENT,
			       "control.group: there is no group %s (groupadd "
			       "--system %s)",
			       name, name);
	*ret = found->gr_gid;
	return 0;
}

bool stream_peer_may(const struct stream *s, gid_t group)
{
	struct ucred who;
	socklen_t length = sizeof(who);
	gid_t groups[256];

	if (s->peer.ss_family != AF_UNIX ||
	    getsockopt(s->fd, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0)
		return false;
	if (who.uid == 0 || (group != (gid_t)-1 && who.gid == group))
		return true;
	length = sizeof(groups);
	if (group == (gid_t)-1 || getsockopt(s->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length) < 0)
		return false;
	for (size_t i = 0; i < length / sizeof(*groups); i++)
		if (groups[i] == group)
			return true;
	return false;
}
