/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * GET /metrics and GET /healthz over HTTP, inside the daemon's own event loop, without threads.
 * The only module that knows libmicrohttpd. A connection serves one request and has a time to
 * live, however it spends it: clients that are slow, silent or do not read hold a place
 * for that long and no longer. A client's address has few places, so that one
 * client cannot take all of them. What finds no place waits in the listening socket.
 */
#ifndef TALLY_AGENT_METRICS_HTTP_H
#define TALLY_AGENT_METRICS_HTTP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/util.h"

enum {
	METRICS_HTTP_CONNECTIONS_MAX = 32,
	METRICS_HTTP_CONNECTIONS_OF_ONE = 4, /* address */
	METRICS_HTTP_REQUEST_BYTES = 16384, /* of memory for a connection's request */
	METRICS_HTTP_LIFE_MS = 10000,
	METRICS_HTTP_FRESH_MS = 100, /* requests that come closer together get the same text */
};

struct metrics_http_options {
	/*
	 * The text for /metrics, to be freed by the other side, as of metrics_print(). Called
	 * in metrics_http_run(). A negative errno: the client gets status 500.
	 */
	int (*text)(void *context, char **ret, size_t *ret_length);
	void *context;
	uint32_t life_ms; /* of a connection; 0: METRICS_HTTP_LIFE_MS */
};

struct metrics_http;

/*
 * Listens on an IPv4 or IPv6 address; port 0 takes any that is free. The caller's, for
 * metrics_http_close(), which allows NULL and ends all connections. -EADDRINUSE,
 * -EADDRNOTAVAIL, -EAFNOSUPPORT, -EACCES, ...
 */
int metrics_http_open(const struct sockaddr *address, const struct metrics_http_options *options,
		      struct metrics_http **ret, struct why *why);
void metrics_http_close(struct metrics_http *h);
static inline void metrics_http_closep(struct metrics_http **h) { metrics_http_close(*h); }

/* Readable when metrics_http_run() has something to do. It stays metrics_http's own. */
int metrics_http_fd(const struct metrics_http *h);

/* metrics_http_run() has something to do after that long at the latest; UINT64_MAX: never. */
uint64_t metrics_http_timeout_ns(const struct metrics_http *h);

/* Does what can be done without waiting. */
void metrics_http_run(struct metrics_http *h);

/* The port that it listens on. */
uint16_t metrics_http_port(const struct metrics_http *h);

#endif
