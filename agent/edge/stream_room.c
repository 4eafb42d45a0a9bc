// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory for what peers have not read, and for long requests: a limit for all of a server. */
#include <string.h>

#include "common/clock.h"
#include "log.h"
#include "stream_private.h"

enum {
	HELD_BYTES_MAX = 32 << 20,
	ENDED_SAID_NS = 1000000000,
};

/* What is short takes no more than the connection itself does. */
static size_t held(const struct stream *s)
{
	if (s->over)
		return 0;
	return s->out_room + (s->in_room > STREAM_READ_BYTES ? s->in_room : 0);
}

static void held_changed(struct stream *s, size_t before)
{
	struct stream_server *server = s->server;
	const size_t now = held(s);

	if (now && !before)
		TAILQ_INSERT_TAIL(&server->held, s, holds);
	else if (!now && before)
		TAILQ_REMOVE(&server->held, s, holds);
	server->held_bytes += now - before;
	s->source->held_bytes += now - before;
}

bool stream_room_out(struct stream *s, size_t room)
{
	const size_t before = held(s);
	char *out = room ? realloc(s->out, room) : NULL;

	if (room && !out)
		return false;
	if (!room)
		free(s->out);
	s->out = out;
	s->out_room = room;
	held_changed(s, before);
	return true;
}

/* A request may have secrets in it. */
bool stream_room_in(struct stream *s, size_t room)
{
	const size_t before = held(s);
	char *in = malloc(room);

	if (!in)
		return false;
	if (s->in) {
		memcpy(in, s->in, s->in_length);
		explicit_bzero(s->in, s->in_most);
	}
	free(s->in);
	s->in = in;
	s->in_room = room;
	s->in_most = s->in_length;
	held_changed(s, before);
	return true;
}

/* Its handler may be at work on `in`, which is freed with the connection. */
void stream_room_leave(struct stream *s)
{
	const size_t before = held(s);

	free(s->out);
	s->out = NULL;
	s->out_length = s->out_room = 0;
	s->over = true;
	held_changed(s, before);
}

/* Anybody can come and not read as often as they like: a line of the log a second. */
void stream_end_held(struct stream *s)
{
	struct stream_server *server = s->server;
	const uint64_t now_ns = clock_now_ns();

	server->held_ended++;
	if (!server->held_said_ns || now_ns - server->held_said_ns >= ENDED_SAID_NS) {
		log_say(LOG_LEVEL_INFO, "connection ended", "service=%s times=%u reason=\"%s\"",
			server->service->name, server->held_ended,
			s->in_room > STREAM_READ_BYTES && !s->out_length
				? "too many long requests wait for their ends"
				: "the peer does not read");
		server->held_said_ns = now_ns;
		server->held_ended = 0;
	}
	stream_end_soon(s);
}

/* Of the address or user that holds most, who has held some for longest. */
static struct stream *held_oldest(const struct stream_server *server)
{
	const struct stream_list *most = server->source;
	struct stream *s;

	for (unsigned int i = 1; i < STREAM_SOURCES; i++)
		if (server->source[i].held_bytes > most->held_bytes)
			most = &server->source[i];
	TAILQ_FOREACH(s, &server->held, holds)
	if (s->source == most)
		break;
	return s;
}

bool stream_room_make(struct stream *s, size_t more)
{
	while (s->server->held_bytes + more > HELD_BYTES_MAX && !s->over)
		stream_end_held(held_oldest(s->server));
	return !s->over;
}
