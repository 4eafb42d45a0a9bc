/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text over stream sockets, unix or TCP, for many who connect: the edge under the control
 * socket and under joining. A request that is not whole in time, or too long, ends its
 * connection, with a word; so does one who does not read what it is told. Nobody waits for
 * anybody.
 */
#ifndef TALLY_AGENT_STREAM_H
#define TALLY_AGENT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "common/util.h"

struct stream; /* one connection */

struct stream_service {
	const char *name; /* for the log */
	size_t request_bytes_max;
	unsigned int connections_max; /* one more: the oldest that is not kept makes room, or
				       * there is none */
	uint64_t request_timeout_ns; /* from a request's first byte to its last; a connection that
				      * has said nothing yet has as much time */
	uint64_t idle_timeout_ns; /* between two requests */
	/*
	 * What came so far, from the first byte that was not used yet. Returns how many bytes it
	 * used; 0: there must be more first. Negative: the connection ends.
	 */
	ssize_t (*read)(struct stream *s, const char *text, size_t length);
	/* The connection is at its end, whoever ended it. Comes from the loop, never from within
	 * one of the functions below. */
	void (*end)(struct stream *s);
	/* What one is told whose request is too long (-EMSGSIZE) or late (-ETIMEDOUT), or for whom
	 * there is no room (-EBUSY). To be freed; NULL: nothing. */
	char *(*refuse)(int error);
};

struct stream_server;

/* The service stays the caller's and must outlive the server; so must `owner`, which is its. */
int stream_server_open(sd_event *loop, const struct stream_service *service, void *owner,
		       struct stream_server **ret);

/* Ends all connections, without asking. NULL allowed. */
void stream_server_close(struct stream_server *server);

/*
 * Where to listen: a socket file of this mode, in the place of one that nobody listens on any
 * more; or an address with a port. -EADDRINUSE: somebody listens there.
 */
int stream_listen_unix(struct stream_server *server, const char *path, mode_t mode, gid_t group,
		       struct why *why);
int stream_listen_tcp(struct stream_server *server, const struct sockaddr_storage *address,
		      struct why *why);

unsigned int stream_connections(const struct stream_server *server);

/* --- one connection -------------------------------------------------------------------------- */

/* All of it, now or when the other side reads. If it reads too little the connection ends. */
void stream_send(struct stream *s, const char *text, size_t length);

/*
 * Ends it when all was sent and the other side has ended its half, or its time is over: what it
 * still sends is thrown away, so that our last words reach it. end() is called once.
 */
void stream_finish(struct stream *s);

/* No request is expected any more, so none can be late: the connection may be quiet for ever. It
 * makes room for nobody. */
void stream_keep(struct stream *s);

void *stream_owner(const struct stream *s); /* of the server */
void *stream_context(const struct stream *s);
void stream_context_set(struct stream *s, void *context);

/* Over TCP: who it is. ss_family AF_UNIX otherwise. */
const struct sockaddr_storage *stream_peer(const struct stream *s);

/* -ENOENT: there is no group of this name. */
int stream_group_find(const char *name, gid_t *ret, struct why *why);

/* Over a unix socket: is it root, or a member of this group? */
bool stream_peer_may(const struct stream *s, gid_t group);

#endif
