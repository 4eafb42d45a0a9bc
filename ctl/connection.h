/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's control socket (docs/control.md), from the other side: lines of JSON. */
#ifndef TALLY_CTL_CONNECTION_H
#define TALLY_CTL_CONNECTION_H

#include <jansson.h>

#include "common/util.h"

enum {
	/* of an answer: what tallyctl can hold. Another tallyd may send longer ones than ours. */
	CONNECTION_LINE_BYTES_MAX = 16 << 20,
};

struct connection;

/*
 * Waits for no answer longer than `timeout_ms`; 0: for ever. The caller's, for
 * connection_close() (NULL allowed). Where nobody is there, `why` says what to do.
 */
int connection_open(const char *path, unsigned int timeout_ms, struct connection **ret,
		    struct why *why);
void connection_close(struct connection *c);
static inline void connection_closep(struct connection **c) { connection_close(*c); }

/* For poll(): a line may be there. */
int connection_fd(const struct connection *c);

/*
 * Asks, and waits for the answer's result, which is the caller's. The daemon's error is `why`'s
 * text and the value returned. -ETIMEDOUT, -EPROTO, -ECONNRESET: no answer that can be used.
 */
int connection_ask(struct connection *c, const json_t *request, json_t **ret, struct why *why);

/*
 * The next line that came without being asked for, the caller's. -EAGAIN: none is there yet (it
 * reads once and does not wait); -ECONNRESET: the daemon has closed.
 */
int connection_next(struct connection *c, json_t **ret, struct why *why);

#endif
