/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by stream.c (a connection) and stream_server.c (all connections), and by no other file. */
#ifndef TALLY_AGENT_STREAM_PRIVATE_H
#define TALLY_AGENT_STREAM_PRIVATE_H

#include "agent/core/config.h"
#include "stream.h"

enum {
	STREAM_LISTENERS_MAX = 1 + CONFIG_LISTENS_MAX, /* a unix socket and TCP addresses */
};

struct stream {
	struct stream_server *server;
	struct stream *next, **before; /* in the server's list */
	int fd;
	sd_event_source *io, *timer;
	struct sockaddr_storage peer;
	char *in; /* request_bytes_max */
	size_t in_length;
	size_t in_most; /* the largest in_length so far; bytes behind were never touched */
	char *out;
	size_t out_length, out_room;
	bool kept; /* has no time limits */
	bool finishing; /* ends when `out` is empty */
	bool heard_all; /* the peer has closed its half */
	bool over; /* to be ended by the event loop */
	bool more; /* `in` may have another request, which is handled before more is read */
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
	unsigned int count_most; /* since memory was last given back to the system */
	int spare; /* a file descriptor in reserve, for when the limit is reached */
};

/* Adds a connection to the server and owns `fd`. -ENOMEM: `fd` is still the caller's. */
int stream_new(struct stream_server *server, int fd, const struct sockaddr_storage *peer);

/* Removes the connection and calls end(). Only handlers of the event loop may call this. */
void stream_end(struct stream *s);

#endif
