/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers GET /metrics and GET /healthz over HTTP, in tallyd's event loop, without threads. The
 * only module that knows libmicrohttpd. A connection serves one request and ends after life_ms at
 * the latest, whatever the client does. One address may have few connections only, so that one
 * client cannot take all of them. Further clients wait in the listening socket.
 */
#ifndef TALLY_AGENT_METRICS_HTTP_H
#define TALLY_AGENT_METRICS_HTTP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/util.h"

enum {
	METRICS_HTTP_CONNECTIONS_MAX = 32,
	METRICS_HTTP_CONNECTIONS_OF_ONE = 4, /* per address of clients */
	METRICS_HTTP_REQUEST_BYTES = 16384, /* of memory for a connection's request */
	METRICS_HTTP_LIFE_MS = 10000,
	METRICS_HTTP_FRESH_MS = 100, /* requests within this time get the same text */
};

struct metrics_http_options {
	/*
	 * Makes the text for /metrics, as metrics_print() does; metrics_http frees the text.
	 * metrics_http_run() calls this. A negative errno: the client gets status 500.
	 */
	int (*text)(void *context, char **ret, size_t *ret_length);
	void *context;
	uint32_t life_ms; /* of a connection; 0: METRICS_HTTP_LIFE_MS */
};

struct metrics_http;

/*
 * Listens on an IPv4 or IPv6 address; TCP port 0 is any free one. The caller owns the result;
 * metrics_http_close() allows NULL and ends all connections. The address need not be there yet.
 * -EADDRINUSE, -EAFNOSUPPORT, -EACCES, ...
 */
int metrics_http_open(const struct sockaddr *address, const struct metrics_http_options *options,
		      struct metrics_http **ret, struct why *why);
void metrics_http_close(struct metrics_http *h);
static inline void metrics_http_closep(struct metrics_http **h) { metrics_http_close(*h); }

/* For poll(): readable when metrics_http_run() has something to do. Do not close it. */
int metrics_http_fd(const struct metrics_http *h);

/* Call metrics_http_run() after this time at the latest; UINT64_MAX: no limit. */
uint64_t metrics_http_timeout_ns(const struct metrics_http *h);

/* Does what can be done without waiting. */
void metrics_http_run(struct metrics_http *h);

/* The TCP port of the listening socket, which matters if port 0 was asked for. */
uint16_t metrics_http_tcp_port(const struct metrics_http *h);

#endif
