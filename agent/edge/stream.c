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
	UNREAD_BYTES_ALL_MAX = 32 << 20, /* for all of a server */
	UNREAD_SAID_NS = 1000000000,
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

/* For what its peer has not read: there is room only as long as something waits in it. */
static bool room_set(struct stream *s, size_t room)
{
	struct stream_server *server = s->server;
	char *out = room ? realloc(s->out, room) : NULL;

	if (room && !out)
		return false;
	if (!room)
		free(s->out);
	if (room && !s->out_room)
		TAILQ_INSERT_TAIL(&server->unread, s, late);
	else if (!room && s->out_room)
		TAILQ_REMOVE(&server->unread, s, late);
	server->unread_bytes += room - s->out_room;
	s->source->unread_bytes += room - s->out_room;
	s->out = out;
	s->out_room = room;
	return true;
}

void stream_end(struct stream *s)
{
	struct stream_server *server = s->server;

	list_put(s, NULL);
	stream_line_leave(s);
	room_set(s, 0);
	server->count--;
	server->service->end(s);
	stream_free(s);
	memory_give_back(server);
}

/* From anywhere else: the handler that is at work ends it when it is done, or the next one. */
static void end_soon(struct stream *s)
{
	if (!s->over)
		epoll_ctl(s->server->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	s->finishing = true;
	s->over = true;
	s->out_length = 0;
	room_set(s, 0);
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
		room_set(s, 0);
		if (!s->finishing)
			deadline_set(s, timeout_of(s));
	}
	watch(s);
	if (s->finishing && !s->out_length)
		part(s);
}

/* Anybody can come and not read as often as they like: a line of the log a second. */
static void end_unread(struct stream *s)
{
	struct stream_server *server = s->server;
	const uint64_t now_ns = clock_now_ns();

	server->unread_ended++;
	if (!server->unread_said_ns || now_ns - server->unread_said_ns >= UNREAD_SAID_NS) {
		log_say(LOG_LEVEL_INFO, "connection ended",
			"service=%s times=%u reason=\"the peer does not read\"",
			server->service->name, server->unread_ended);
		server->unread_said_ns = now_ns;
		server->unread_ended = 0;
	}
	end_soon(s);
}

/* Of the address or user for whom most waits, who has not read for longest. */
static struct stream *unread_oldest(const struct stream_server *server)
{
	const struct stream_list *most = server->source;
	struct stream *s;

	for (unsigned int i = 1; i < STREAM_SOURCES; i++)
		if (server->source[i].unread_bytes > most->unread_bytes)
			most = &server->source[i];
	TAILQ_FOREACH(s, &server->unread, late)
	if (s->source == most)
		break;
	return s;
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
	while (s->server->unread_bytes - s->out_room + room > UNREAD_BYTES_ALL_MAX && !s->over)
		end_unread(unread_oldest(s->server));
	if (s->over || (room > s->out_room && !room_set(s, room)))
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
			end_unread(s);
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
		end_unread(s);
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

	if (!s)
		return -ENOMEM;
	*s = (struct stream){ .server = server,
			      .source = source,
			      .fd = fd,
			      .peer = *peer,
			      .who = *who,
			      .events = EPOLLIN };
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
