/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by stream.c (a connection) and stream_server.c (all connections), and by no other file. */
#ifndef TALLY_AGENT_STREAM_PRIVATE_H
#define TALLY_AGENT_STREAM_PRIVATE_H

#include <sys/queue.h>

#include "agent/core/config.h"
#include "stream.h"

enum {
	STREAM_LISTENERS_MAX = 1 + CONFIG_LISTENS_MAX, /* a unix socket and TCP addresses */
	STREAM_USERS = 64, /* sources: users with the same hash are one */
	STREAM_SOURCES = STREAM_USERS + 256, /* and addresses, behind them */
	STREAM_READ_BYTES = 4096, /* at once */
};

/* Connections, the oldest first. */
struct stream_list {
	TAILQ_HEAD(stream_queue, stream) all;
	unsigned int count;
	size_t held_bytes; /* that all of this source take, also who is kept: stream_room.c */
};

struct stream {
	struct stream_server *server;
	struct stream_list *source, *list; /* by its address or user; the one that it is in */
	TAILQ_ENTRY(stream) place; /* in `list` */
	TAILQ_ENTRY(stream) turn; /* in the server's line, while `in_line` */
	TAILQ_ENTRY(stream) holds; /* in the server's `held`: much is in `in`, or some in `out` */
	int fd;
	uint32_t events; /* that are waited for */
	sd_event_source *timer;
	struct sockaddr_storage peer;
	struct ucred who; /* its process, at a unix socket; otherwise -1 */
	char *in;
	size_t in_length, in_room; /* of request_bytes_max */
	size_t in_most; /* the largest in_length so far; bytes behind were never touched */
	char *out; /* NULL: the peer has read all */
	size_t out_length, out_room;
	bool kept; /* has no time limits */
	bool finishing; /* ends when `out` is empty */
	bool heard_all; /* the peer has closed its half */
	bool over; /* to be ended by the event loop */
	bool more; /* `in` may have another request, which is handled before more is read */
	unsigned int in_line; /* `in` has a request that waits for its turn: its patience; or 0 */
	void *context;
};

struct stream_server {
	const struct stream_service *service;
	void *owner;
	sd_event *loop;
	int epoll; /* of all listeners and connections */
	sd_event_source *io; /* of it */
	struct stream_listener {
		int fd;
		char *path; /* of a unix socket */
	} listener[STREAM_LISTENERS_MAX];
	unsigned int listeners;
	struct stream_list source[STREAM_SOURCES];
	struct stream_list kept;
	struct stream_queue held; /* whose answers or long requests wait, the oldest first */
	size_t held_bytes; /* of all sources */
	unsigned int held_ended; /* since the log had that */
	uint64_t held_said_ns;
	struct stream_queue line; /* whose requests wait for their turn */
	sd_event_source *next_in_line;
	unsigned int turns; /* of the line */
	unsigned int count;
	unsigned int count_most; /* since memory was last given back to the system */
	int spare; /* a file descriptor in reserve, for when the limit is reached */
};

/* Adds a connection to the server and owns `fd`. -ENOMEM: `fd` is still the caller's. */
int stream_new(struct stream_server *server, struct stream_list *source, int fd,
	       const struct sockaddr_storage *peer, const struct ucred *who);

/* What epoll says of the connection. */
void stream_on_io(struct stream *s, uint32_t events);

/* From anywhere: the handler that is at work ends it when it is done, or the next one. */
void stream_end_soon(struct stream *s);

/* Room for what it has not read (0: none any more), and for its request. False: no memory. */
bool stream_room_out(struct stream *s, size_t room);
bool stream_room_in(struct stream *s, size_t room);

/* It is over: nothing that it holds counts any more. */
void stream_room_leave(struct stream *s);

/* It holds what others need, or too long. Logged. */
void stream_end_held(struct stream *s);

/* Ends others, if so many bytes more are too many. False: it is the one that ends. */
bool stream_room_make(struct stream *s, size_t more);

/* A connection waits in the line, or not any more; the first one has its turn soon. */
void stream_line_join(struct stream *s, unsigned int patience);
void stream_line_leave(struct stream *s);
void stream_line_arm(struct stream_server *server);

/* Reads the first request of the line. */
void stream_line_read(struct stream_server *server);

/* Removes the connection and calls end(). Only handlers of the event loop may call this. */
void stream_end(struct stream *s);

#endif
