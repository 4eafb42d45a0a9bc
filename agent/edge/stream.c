// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One connection: what it says, what it is told, and how it ends. */
#include <errno.h>
#include <grp.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

#include "log.h"
#include "stream_private.h"

enum {
	SEND_BYTES_MAX = 1 << 20, /* that wait for one who does not read */
	READ_BYTES = 4096, /* at once */
	TIMER_SLACK_US = 100000,
	CROWD = 16, /* connections; what fewer of them need is not worth a look */
};

/* --- where it stands ------------------------------------------------------------------------- */

/* Behind all others of the list. NULL: nowhere. */
static void list_put(struct stream *s, struct stream_list *list)
{
	if (s->list) {
		TAILQ_REMOVE(&s->list->all, s, place);
		s->list->count--;
	}
	s->list = list;
	if (list) {
		TAILQ_INSERT_TAIL(&list->all, s, place);
		list->count++;
	}
}

/* A timer that is set anew each time: sd-event would take a source that is always there first. */
static void line_arm(struct stream_server *server)
{
	if (TAILQ_EMPTY(&server->line))
		return;
	sd_event_source_set_time_relative(server->next_in_line, 0);
	sd_event_source_set_enabled(server->next_in_line, SD_EVENT_ONESHOT);
}

static void line_join(struct stream *s)
{
	s->in_line = true;
	TAILQ_INSERT_TAIL(&s->server->line, s, turn);
	if (TAILQ_FIRST(&s->server->line) == s)
		line_arm(s->server);
	sd_event_source_set_enabled(s->timer, SD_EVENT_OFF); /* the request is whole */
}

static void line_leave(struct stream *s)
{
	if (s->in_line)
		TAILQ_REMOVE(&s->server->line, s, turn);
	s->in_line = false;
}

static void events_set(struct stream *s, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = s };

	if (events != s->events && !s->over)
		epoll_ctl(s->server->epoll, EPOLL_CTL_MOD, s->fd, &e);
	s->events = events;
}

/* --- ending ---------------------------------------------------------------------------------- */

static void stream_free(struct stream *s)
{
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

void stream_end(struct stream *s)
{
	struct stream_server *server = s->server;
	const size_t room = s->out_room;

	list_put(s, NULL);
	line_leave(s);
	server->count--;
	server->service->end(s);
	stream_free(s);
	memory_give_back(server, room);
}

/* From anywhere else: the handler that is at work ends it when it is done, or the next one. */
static void end_soon(struct stream *s)
{
	if (!s->over)
		epoll_ctl(s->server->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	s->finishing = true;
	s->over = true;
	s->out_length = 0;
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
	if (s->kept)
		list_put(s, s->source);
	s->kept = false;
	deadline_set(s, s->server->service->request_timeout_ns);
	if (!s->out_length)
		part(s);
}

/* --- sending --------------------------------------------------------------------------------- */

static void watch(struct stream *s)
{
	uint32_t events = s->heard_all || s->more || s->in_line ? 0 : EPOLLIN;

	events_set(s, events | (s->out_length || s->more ? EPOLLOUT : 0));
}

static void flush(struct stream *s)
{
	size_t sent = 0;

	while (sent < s->out_length) {
		ssize_t n = send(s->fd, s->out + sent, s->out_length - sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		/* Whoever has gone hears nothing more, and may have said something before. */
		sent = n < 0 ? s->out_length : sent + n;
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
			"service=%s reason=\"the peer does not read\"", s->server->service->name);
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
	if (s->finishing || s->kept)
		return;
	s->kept = true;
	list_put(s, &s->server->kept);
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
static void request_read(struct stream *s, bool its_turn)
{
	const struct stream_service *service = s->server->service;
	ssize_t n = 0;

	s->more = s->out_length > 0;
	if (!s->more && !its_turn && service->is_long && service->is_long(s->in, s->in_length)) {
		line_join(s);
		watch(s);
		return;
	}
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
		request_read(s, false);
	}
}

void stream_on_io(struct stream *s, uint32_t events)
{
	if (events & EPOLLOUT)
		flush(s);
	if (s->more && !s->out_length && !s->finishing)
		request_read(s, false);
	else if (events & EPOLLIN)
		receive(s);
	else if (events & (EPOLLHUP | EPOLLERR))
		end_soon(s);
	if (s->over)
		stream_end(s);
}

void stream_line_read(struct stream_server *server)
{
	struct stream *s = TAILQ_FIRST(&server->line);

	if (!s)
		return;
	line_leave(s);
	if (!s->finishing)
		request_read(s, true);
	if (s->over)
		stream_end(s);
	line_arm(server);
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

/* --- from outside ---------------------------------------------------------------------------- */

int stream_new(struct stream_server *server, struct stream_list *source, int fd,
	       const struct sockaddr_storage *peer)
{
	struct stream *s = calloc(1, sizeof(*s));
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = s };
	uint64_t us = server->service->request_timeout_ns / 1000;

	if (!s)
		return -ENOMEM;
	*s = (struct stream){
		.server = server, .source = source, .fd = fd, .peer = *peer, .events = EPOLLIN
	};
	s->in = malloc(server->service->request_bytes_max);
	if (!s->in ||
	    sd_event_add_time_relative(server->loop, &s->timer, CLOCK_MONOTONIC, us, TIMER_SLACK_US,
				       on_timer, s) < 0 ||
	    epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
		s->fd = -1;
		stream_free(s);
		return -ENOMEM;
	}
	list_put(s, source);
	server->count++;
	if (server->count > server->count_most)
		server->count_most = server->count;
	return 0;
}

void *stream_owner(const struct stream *s) { return s->server->owner; }

void *stream_context(const struct stream *s) { return s->context; }

void stream_context_set(struct stream *s, void *context) { s->context = context; }

const struct sockaddr_storage *stream_peer(const struct stream *s) { return &s->peer; }

int stream_group_find(const char *key, const char *name, gid_t *ret, struct why *why)
{
	const struct group *found = getgrnam(name);

	if (!found)
		return why_say(why, -ENOENT, "%s: there is no group %s (groupadd --system %s)", key,
			       name, name);
	*ret = found->gr_gid;
	return 0;
}

bool stream_is_deserted(const struct stream *s)
{
	struct pollfd peer = { .fd = s->fd };

	return poll(&peer, 1, 0) > 0;
}

struct ucred stream_peer_who(const struct stream *s)
{
	struct ucred who = { .pid = -1 };
	socklen_t length = sizeof(who);

	if (s->peer.ss_family != AF_UNIX ||
	    getsockopt(s->fd, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0)
		return (struct ucred){ .pid = -1 };
	return who;
}

bool stream_peer_may(const struct stream *s, gid_t group)
{
	const struct ucred who = stream_peer_who(s);
	gid_t groups[256];
	socklen_t length;

	if (who.pid < 0)
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
