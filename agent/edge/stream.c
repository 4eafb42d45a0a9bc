// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One connection: what it says, what it is told, and how it ends. */
#include <errno.h>
#include <grp.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "log.h"
#include "stream_private.h"

enum {
	UNREAD_BYTES_MAX = 1 << 20, /* that wait for one who does not read */
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
	free(s);
}

/* When most of a crowd has gone: glibc would keep what they needed, since it is in pieces. */
static void memory_give_back(struct stream_server *server)
{
	if (server->count_most <= CROWD || server->count > server->count_most / 4)
		return;
	malloc_trim(0);
	server->count_most = server->count;
}

void stream_end(struct stream *s)
{
	struct stream_server *server = s->server;

	list_put(s, NULL);
	stream_line_leave(s);
	stream_room_leave(s);
	server->count--;
	server->service->end(s);
	stream_free(s);
	memory_give_back(server);
}

void stream_end_soon(struct stream *s)
{
	if (!s->over)
		epoll_ctl(s->server->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	s->finishing = true;
	stream_room_leave(s);
	sd_event_source_set_time_accuracy(s->timer, 1);
	sd_event_source_set_time_relative(s->timer, 0);
	sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

/* Of a request, and of its answer: each is to be taken in time. */
static uint64_t timeout_of(const struct stream *s)
{
	return s->in_length || s->out_length ? s->server->service->request_timeout_ns
					     : s->server->service->idle_timeout_ns;
}

/* Who is kept has a time for reading only. */
static void deadline_set(struct stream *s, uint64_t timeout_ns)
{
	if (s->kept && !s->out_length) {
		sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time_relative(s->timer, timeout_ns / 1000);
	sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

/* Everything is said. Who closes a socket with something unread in it takes its words back. */
static void part(struct stream *s)
{
	if (s->heard_all)
		stream_end_soon(s);
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

/* As much of it as goes at once. */
static size_t send_now(const struct stream *s, const char *text, size_t length)
{
	size_t sent = 0;

	while (sent < length) {
		ssize_t n = send(s->fd, text + sent, length - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		/* Whoever has gone hears nothing more, and may have said something before. */
		sent = n < 0 ? length : sent + n;
	}
	return sent;
}

static void flush(struct stream *s)
{
	size_t sent = send_now(s, s->out, s->out_length);

	s->out_length -= sent;
	if (s->out_length) {
		memmove(s->out, s->out + sent, s->out_length);
	} else if (s->out_room) {
		stream_room_out(s, 0);
		if (!s->finishing)
			deadline_set(s, timeout_of(s));
	}
	watch(s);
	if (s->finishing && !s->out_length)
		part(s);
}

/* False: it does not read, or has to make room for others who do. */
static bool unread_add(struct stream *s, const char *text, size_t length)
{
	const size_t need = s->out_length + length;
	size_t room = s->out_room;

	if (need > UNREAD_BYTES_MAX)
		return false;
	if (room < need)
		room = 2 * room > need ? 2 * room : need;
	if (room > s->out_room &&
	    (!stream_room_make(s, room - s->out_room) || !stream_room_out(s, room)))
		return false;
	memcpy(s->out + s->out_length, text, length);
	s->out_length = need;
	return true;
}

void stream_send(struct stream *s, const char *text, size_t length)
{
	const bool reads = !s->out_length;
	size_t sent = 0;

	if (s->finishing)
		return;
	if (reads)
		sent = send_now(s, text, length);
	if (sent < length && !unread_add(s, text + sent, length - sent)) {
		if (!s->over)
			stream_end_held(s);
		return;
	}
	if (reads && s->out_length)
		deadline_set(s, timeout_of(s));
	watch(s);
}

/* --- receiving ------------------------------------------------------------------------------- */

void stream_keep(struct stream *s)
{
	if (s->finishing || s->kept)
		return;
	s->kept = true;
	list_put(s, &s->server->kept);
	if (!s->out_length)
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
	unsigned int patience = 0;
	ssize_t n = 0;

	s->more = s->out_length > 0;
	if (!s->more && !its_turn && service->patience)
		patience = service->patience(s, s->in, s->in_length);
	if (patience) {
		stream_line_join(s, patience);
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
		if (s->in_room > STREAM_READ_BYTES && s->in_length <= STREAM_READ_BYTES)
			stream_room_in(s, STREAM_READ_BYTES);
	}
	if (s->finishing) {
		s->more = false;
	} else if (n > 0) {
		deadline_set(s, timeout_of(s));
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
		stream_end_soon(s);
	else
		stream_finish(s);
}

/* A request that is longer than others. False: it has to make room for those. */
static bool in_grow(struct stream *s)
{
	const size_t most = s->server->service->request_bytes_max, before = s->in_room;
	const size_t room = 2 * before < most ? 2 * before : most;

	if (s->in_length < before || before == most)
		return true;
	return stream_room_make(s, before > STREAM_READ_BYTES ? room - before : room) &&
	       stream_room_in(s, room);
}

static void receive(struct stream *s)
{
	char dropped[STREAM_READ_BYTES], *into = dropped;
	size_t room = sizeof(dropped);
	ssize_t n;

	if (!s->finishing && !in_grow(s)) {
		stream_end_soon(s);
		return;
	}
	if (!s->finishing) {
		into = s->in + s->in_length;
		room = s->in_room - s->in_length;
	}
	n = recv(s->fd, into, room < STREAM_READ_BYTES ? room : STREAM_READ_BYTES, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		stream_end_soon(s);
	} else if (n == 0) {
		heard_all(s);
	} else if (!s->finishing) {
		if (!s->in_length && !s->kept)
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
		stream_end_soon(s);
	if (s->over)
		stream_end(s);
}

/* Every second time of those with the most patience: they have a turn, however many others come. */
static struct stream *line_next(struct stream_server *server)
{
	const struct stream *last = TAILQ_LAST(&server->line, stream_queue);
	struct stream *s = TAILQ_FIRST(&server->line);

	server->turns++;
	while (server->turns % 2 && s && s->in_line < last->in_line)
		s = TAILQ_NEXT(s, turn);
	return s;
}

void stream_line_read(struct stream_server *server)
{
	struct stream *s = line_next(server);

	if (!s)
		return;
	stream_line_leave(s);
	if (!s->finishing)
		request_read(s, true);
	if (s->over)
		stream_end(s);
	stream_line_arm(server);
}

static int on_timer(sd_event_source *source, uint64_t us, void *data)
{
	struct stream *s = data;

	if (s->out_length)
		stream_end_held(s);
	if (s->finishing)
		stream_end(s);
	else
		refuse(s, -ETIMEDOUT);
	return 0;
}

/* --- from outside ---------------------------------------------------------------------------- */

int stream_new(struct stream_server *server, struct stream_list *source, int fd,
	       const struct sockaddr_storage *peer, const struct ucred *who)
{
	struct stream *s = calloc(1, sizeof(*s));
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = s };
	uint64_t us = server->service->request_timeout_ns / 1000;
	const size_t request_most = server->service->request_bytes_max;

	if (!s)
		return -ENOMEM;
	*s = (struct stream){ .server = server,
			      .source = source,
			      .fd = fd,
			      .peer = *peer,
			      .who = *who,
			      .events = EPOLLIN };
	if (!stream_room_in(s,
			    request_most < STREAM_READ_BYTES ? request_most : STREAM_READ_BYTES) ||
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

const char *stream_unread(const struct stream *s, size_t *ret_length)
{
	*ret_length = s->in_length;
	return s->in;
}

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

struct ucred stream_peer_who(const struct stream *s) { return s->who; }

bool stream_peer_may(const struct stream *s, gid_t group)
{
	const struct ucred who = s->who;
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
