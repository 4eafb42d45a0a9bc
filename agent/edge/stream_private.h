/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What stream.c, one connection, and stream_server.c, all of them, share. Nobody else includes
 * this. */
#ifndef TALLY_AGENT_STREAM_PRIVATE_H
#define TALLY_AGENT_STREAM_PRIVATE_H

#include "stream.h"

enum {
	STREAM_LISTENERS_MAX = 32, /* a socket and all addresses that a configuration may name */
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
	} listener[STREAM_LISTENERS_MAX];
	unsigned int listeners;
	struct stream *streams;
	unsigned int count;
	unsigned int count_most; /* since the last time that memory was given back */
	int spare; /* a file descriptor kept for when there are no others */
};

/* A new connection of the server's. -ENOMEM, and then `fd` is still the caller's. */
int stream_new(struct stream_server *server, int fd, const struct sockaddr_storage *peer);

/* Out of the list, and the owner is told. Only the event loop's own handlers may do that. */
void stream_end(struct stream *s);

#endif
