/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read this file first: the largest edge. The edges do not know each other.
 *
 * A server of text over unix and TCP sockets, for the control socket and for joining. A connection
 * ends with an error if its request is too long or not complete in time. It ends, too, if its peer
 * does not read what waits for it. Of that, and of requests that are longer than 4 KiB, a server
 * keeps at most 32 MiB. Connections take turns,
 * one request in each; a server has the loop for a few milliseconds at a time, whatever its
 * connections want.
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
	unsigned int connections_max; /* for one more, the oldest that is not kept is closed, of
				       * the address or user that has most of these; if all are
				       * kept, the new one is refused */
	unsigned int address_max; /* TCP: for one more of the same address that is not kept, its
				   * oldest one is closed; 0: as many as there are */
	int64_t priority; /* in the event loop, while there is not more to do than it has time */
	uint64_t request_timeout_ns; /* from the first byte of a request to the last; also for the
				      * first byte of a new connection, and to read an answer */
	uint64_t idle_timeout_ns; /* between two requests */
	/*
	 * Gets all bytes that were received and not used yet. Returns how many bytes it used; 0:
	 * the request is not complete. Negative: the connection ends.
	 */
	ssize_t (*read)(struct stream *s, const char *text, size_t length);
	/*
	 * Does the text begin with a whole request that takes long, so that others are read
	 * first? Those wait in a line, the ones with smaller numbers before the others, but those
	 * with the largest have every second turn; one of them is read in a turn of the loop. 0: it
	 * does not. NULL: none does.
	 */
	unsigned int (*patience)(struct stream *s, const char *text, size_t length);
	/* The connection has ended. The event loop calls this, never one of the functions
	 * below. */
	void (*end)(struct stream *s);
	/* The last answer on a connection whose request is too long (-EMSGSIZE) or late
	 * (-ETIMEDOUT), or that is one too many (-EBUSY). stream frees the text; NULL: none. */
	char *(*refuse)(int error);
};

struct stream_server;

/* `service` and `owner` stay the caller's and must outlive the server. */
int stream_server_open(sd_event *loop, const struct stream_service *service, void *owner,
		       struct stream_server **ret);

/* Ends all connections at once. NULL allowed. */
void stream_server_close(struct stream_server *server);

/*
 * Listen on a socket file of this mode, which replaces an old one without a listener, or on an
 * address with a TCP port. -EADDRINUSE: another program listens there.
 */
int stream_listen_unix(struct stream_server *server, const char *path, mode_t mode, gid_t group,
		       struct why *why);
int stream_listen_tcp(struct stream_server *server, const struct sockaddr_storage *address,
		      struct why *why);

/* Could somebody listen on this address, if nobody has its port? */
int stream_check_tcp(const struct sockaddr_storage *address, struct why *why);

unsigned int stream_connections(const struct stream_server *server);

/* --- one connection -------------------------------------------------------------------------- */

/*
 * Sends the text, now or when the peer reads. If more than 1 MiB waits for it, the connection ends.
 * If too much waits for all, others end: of the address or user for whom most waits, who has waited
 * longest.
 */
void stream_send(struct stream *s, const char *text, size_t length);

/*
 * Ends the connection when all was sent and the peer has closed its half, or its time is over. What
 * the peer still sends is read and dropped, so that it gets our last answer. end() is called once.
 */
void stream_finish(struct stream *s);

/*
 * Keeps the connection without time limits: no request is expected, but what it is told is to be
 * read in time. It is never closed to make room for another.
 */
void stream_keep(struct stream *s);

void *stream_owner(const struct stream *s); /* of the server */
void *stream_context(const struct stream *s);
void stream_context_set(struct stream *s, void *context);

/* What the peer has asked and nobody has read, as far as it has come. */
const char *stream_unread(const struct stream *s, size_t *ret_length);

/* The address of the peer. ss_family is AF_UNIX for a unix socket. */
const struct sockaddr_storage *stream_peer(const struct stream *s);

/* The interface where the peer's packets come in. 0: a unix socket, or the kernel does not say. */
uint32_t stream_port(const struct stream *s);

/* -ENOENT: there is no group of this name; `key` leads in `why`. */
int stream_group_find(const char *key, const char *name, gid_t *ret, struct why *why);

/* Has the peer closed both halves, so that nobody hears an answer any more? */
bool stream_is_deserted(const struct stream *s);

/* Who is the peer at a unix socket? All 0 but the process, -1, if it is none. */
struct ucred stream_peer_who(const struct stream *s);

/* Is the peer at a unix socket root, or a member of this group (-1: none)? */
bool stream_peer_may(const struct stream *s, gid_t group);

#endif
