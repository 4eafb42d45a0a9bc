/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests over HTTP in an event loop, by libcurl. Callbacks come from the loop; they may start and
 * cancel requests, also their own, but not close it all.
 */
#ifndef TALLY_AGENT_STORE_HTTP_H
#define TALLY_AGENT_STORE_HTTP_H

#include <stddef.h>
#include <systemd/sd-event.h>

struct http;
struct http_call;

enum {
	HTTP_BYTES_MAX = 96 << 20, /* of an answer, or of a line of a stream */
};

enum http_end {
	HTTP_ANSWERED, /* whatever the status is */
	HTTP_NOT_SENT, /* nobody was reached */
	HTTP_BROKEN, /* the request may have been taken or not */
};

struct http_request {
	const char *url;
	const char *body; /* JSON, of a POST; copied, and wiped at the end */
	const char *token; /* of the header Authorization; or NULL */
	unsigned int timeout_ms; /* 0: none */
	/* Each line of the answer, without its end, as it comes; NULL: `done` gets the whole. */
	void (*line)(void *context, const char *text, size_t length);
	/* The last word. `why`: in words, unless it was answered. */
	void (*done)(void *context, enum http_end end, const char *text, size_t length,
		     const char *why);
	void *context;
};

/* Files, or NULL; they must live as long. The caller's for http_close(). -ENOMEM, -EIO. */
int http_open(sd_event *loop, const char *ca, const char *certificate, const char *key,
	      struct http **ret);
void http_close(struct http *h); /* or NULL; cancels what is under way */

/* -ENOMEM. *ret lives until `done` was called, or http_cancel(). */
int http_start(struct http *h, const struct http_request *q, struct http_call **ret);
void http_cancel(struct http_call *c); /* or NULL: `done` does not come */

#endif
