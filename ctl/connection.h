/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tallyctl's end of the control socket (docs/control.md): lines of JSON. */
#ifndef TALLY_CTL_CONNECTION_H
#define TALLY_CTL_CONNECTION_H

#include <jansson.h>

#include "common/util.h"

enum {
	/* The longest answer that tallyctl reads. A newer tallyd may send more than ours does. */
	CONNECTION_LINE_BYTES_MAX = 16 << 20,
};

struct connection;

/*
 * Connects to tallyd. Each answer may take `timeout_ms`; 0: any time. The caller owns the
 * connection and closes it by connection_close(), which allows NULL. If tallyd is not there, `why`
 * says what to do.
 */
int connection_open(const char *path, unsigned int timeout_ms, struct connection **ret,
		    struct why *why);
void connection_close(struct connection *c);
static inline void connection_closep(struct connection **c) { connection_close(*c); }

/* For poll(): readable when more has come. */
int connection_fd(const struct connection *c);

/*
 * Sends a request and waits for the result, which the caller owns. -EREMOTEIO: tallyd answers with
 * an error, and `why` has its text. -ETIMEDOUT, -EPROTO, -ECONNRESET: there is no valid answer.
 */
int connection_ask(struct connection *c, const json_t *request, json_t **ret, struct why *why);

/*
 * The next line that tallyd sends without a request (trace); the caller owns it. Reads once and
 * does not wait. -EAGAIN: no whole line yet; -ECONNRESET: tallyd closed the connection.
 */
int connection_next(struct connection *c, json_t **ret, struct why *why);

#endif
