// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "http.h"

#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "common/owned.h"

enum {
	CONNECT_MS = 2000,
	SILENT_MS = 10000, /* a connection on which nothing is acknowledged */
	IDLE_S = 5, /* from the last packet to a probe */
	PROBE_S = 2,
	PROBES = 3,
};

struct http_call {
	LIST_ENTRY(http_call) list;
	struct http *http;
	CURL *easy;
	struct curl_slist *headers;
	struct http_request is; /* its texts are not there any more */
	char *body;
	char *text; /* that has come and was not told yet */
	size_t length, room;
	bool is_sent; /* or a part of it */
	bool is_over, is_told; /* told: in a callback now */
	bool is_cancelled;
	CURLcode code;
	char why[CURL_ERROR_SIZE];
};

struct http {
	sd_event *loop;
	CURLM *multi;
	sd_event_source *timer;
	const char *ca, *certificate, *key;
	LIST_HEAD(http_calls, http_call) calls;
	bool pumps;
};

/* --- one call -------------------------------------------------------------------------------- */

static void call_free(struct http_call *c)
{
	LIST_REMOVE(c, list);
	if (c->easy) {
		curl_multi_remove_handle(c->http->multi, c->easy);
		curl_easy_cleanup(c->easy);
	}
	curl_slist_free_all(c->headers);
	if (c->body)
		explicit_bzero(c->body, strlen(c->body));
	if (c->text)
		explicit_bzero(c->text, c->length);
	free(c->body);
	free(c->text);
	free(c);
}

static size_t on_bytes(char *bytes, size_t one, size_t count, void *context)
{
	struct http_call *c = context;

	if (c->length + count > HTTP_BYTES_MAX)
		return 0;
	if (c->length + count > c->room) {
		size_t room = 2 * (c->length + count) + 4096;
		char *text = realloc(c->text, room);

		if (!text)
			return 0;
		c->text = text;
		c->room = room;
	}
	memcpy(c->text + c->length, bytes, count);
	c->length += count;
	return count;
}

/*
 * libcurl sends a request again by itself where a connection that had been kept ends without an
 * answer. But the request may have been taken, so it is sent once.
 */
static int on_request(void *context, char *to, char *from, int to_port, int from_port)
{
	struct http_call *c = context;
	bool again = c->is_sent;

	c->is_sent = true;
	return again ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* A peer that has gone without a word is found out. */
static int on_socket_made(void *context, curl_socket_t fd, curlsocktype purpose)
{
	const int on = 1, idle = IDLE_S, probe = PROBE_S, probes = PROBES, silent = SILENT_MS;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe, sizeof(probe));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent, sizeof(silent));
	return CURL_SOCKOPT_OK;
}

static int add_header(struct http_call *c, const char *header)
{
	struct curl_slist *longer = curl_slist_append(c->headers, header);

	if (!longer)
		return -ENOMEM;
	c->headers = longer;
	return 0;
}

static int add_headers(struct http_call *c, const char *token)
{
	char header[1024];
	int r = add_header(c, "Content-Type: application/json");

	if (r == 0)
		r = add_header(c, "Expect:"); /* no question before a large body */
	if (r < 0 || !token)
		return r;
	snprintf(header, sizeof(header), "Authorization: %s", token);
	r = add_header(c, header);
	explicit_bzero(header, sizeof(header));
	return r;
}

#define SET(option, value) (r = r ? r : (int)curl_easy_setopt(c->easy, option, value))

static int call_set(struct http_call *c, const struct http_request *q)
{
	const struct http *h = c->http;
	int r = add_headers(c, q->token);

	if (r < 0)
		return r;
	SET(CURLOPT_URL, q->url);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_POSTFIELDS, c->body);
	SET(CURLOPT_HTTPHEADER, c->headers);
	SET(CURLOPT_WRITEFUNCTION, on_bytes);
	SET(CURLOPT_WRITEDATA, c);
	SET(CURLOPT_SOCKOPTFUNCTION, on_socket_made);
	SET(CURLOPT_PREREQFUNCTION, on_request);
	SET(CURLOPT_PREREQDATA, c);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	SET(CURLOPT_TIMEOUT_MS, (long)q->timeout_ms);
	SET(CURLOPT_ERRORBUFFER, c->why);
	SET(CURLOPT_PRIVATE, c);
	if (h->ca)
		SET(CURLOPT_CAINFO, h->ca);
	if (h->certificate)
		SET(CURLOPT_SSLCERT, h->certificate);
	if (h->key)
		SET(CURLOPT_SSLKEY, h->key);
	return r ? -ENOMEM : 0;
}

int http_start(struct http *h, const struct http_request *q, struct http_call **ret)
{
	struct http_call *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->http = h;
	c->is = *q;
	LIST_INSERT_HEAD(&h->calls, c, list);
	c->body = strdup(q->body);
	c->easy = curl_easy_init();
	r = c->body && c->easy ? call_set(c, q) : -ENOMEM;
	if (r == 0 && curl_multi_add_handle(h->multi, c->easy) != CURLM_OK)
		r = -ENOMEM;
	if (r < 0) {
		call_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void http_cancel(struct http_call *c)
{
	if (!c)
		return;
	if (c->is_told)
		c->is_cancelled = true; /* whoever tells frees it */
	else
		call_free(c);
}

/* --- telling --------------------------------------------------------------------------------- */

static enum http_end end_of(const struct http_call *c)
{
	if (c->code == CURLE_OK)
		return HTTP_ANSWERED;
	return c->is_sent ? HTTP_BROKEN : HTTP_NOT_SENT;
}

/* A line that has come as a whole, or all of an answer that is over. False: there is none. */
static bool call_tell(struct http_call *c)
{
	char *end = c->is.line && c->length ? memchr(c->text, '\n', c->length) : NULL;
	size_t used;

	c->is_told = true;
	if (end) {
		used = (size_t)(end - c->text) + 1;
		c->is.line(c->is.context, c->text, used - 1);
		c->length -= used;
		memmove(c->text, c->text + used, c->length);
	} else if (c->is_over) {
		c->is.done(c->is.context, end_of(c), c->text ? c->text : "", c->length,
			   c->code == CURLE_OK ? ""
			   : *c->why	       ? c->why
					       : curl_easy_strerror(c->code));
		c->is_cancelled = true;
	} else {
		c->is_told = false;
		return false;
	}
	c->is_told = false;
	if (c->is_cancelled)
		call_free(c);
	return true;
}

static bool any_tell(struct http *h)
{
	struct http_call *c;

	LIST_FOREACH(c, &h->calls, list)
	if (call_tell(c))
		return true; /* others may have gone by that */
	return false;
}

static void pump(struct http *h)
{
	CURLMsg *message;
	int left;

	if (h->pumps)
		return;
	h->pumps = true;
	do {
		while ((message = curl_multi_info_read(h->multi, &left))) {
			struct http_call *c;

			if (message->msg != CURLMSG_DONE)
				continue;
			curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&c);
			c->is_over = true;
			c->code = message->data.result;
		}
	} while (any_tell(h));
	h->pumps = false;
}

/* --- libcurl in the loop --------------------------------------------------------------------- */

static int on_fd(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct http *h = context;
	int running, what = (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
			    (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			    (events & EPOLLERR ? CURL_CSELECT_ERR : 0);

	curl_multi_socket_action(h->multi, fd, what, &running);
	pump(h);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct http *h = context;
	int running;

	curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	pump(h);
	return 0;
}

static int on_socket_wanted(CURL *easy, curl_socket_t fd, int what, void *context, void *socket)
{
	struct http *h = context;
	sd_event_source *source = socket;
	uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0u) |
			  (what & CURL_POLL_OUT ? EPOLLOUT : 0u);

	if (what == CURL_POLL_REMOVE) {
		sd_event_source_disable_unref(source);
		curl_multi_assign(h->multi, fd, NULL);
		return 0;
	}
	if (source)
		return sd_event_source_set_io_events(source, events) < 0 ? -1 : 0;
	if (sd_event_add_io(h->loop, &source, fd, events, on_fd, h) < 0)
		return -1;
	curl_multi_assign(h->multi, fd, source);
	return 0;
}

static int on_timer_wanted(CURLM *multi, long ms, void *context)
{
	struct http *h = context;

	if (ms < 0)
		return sd_event_source_set_enabled(h->timer, SD_EVENT_OFF) < 0 ? -1 : 0;
	if (sd_event_source_set_time_relative(h->timer, (uint64_t)ms * 1000) < 0 ||
	    sd_event_source_set_enabled(h->timer, SD_EVENT_ONESHOT) < 0)
		return -1;
	return 0;
}

static int multi_make(struct http *h)
{
	h->multi = curl_multi_init();
	if (!h->multi)
		return -ENOMEM;
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wanted);
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
	return 0;
}

int http_open(sd_event *loop, const char *ca, const char *certificate, const char *key,
	      struct http **ret)
{
	struct http *h;
	int r;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -EIO;
	h = calloc(1, sizeof(*h));
	if (!h) {
		curl_global_cleanup();
		return -ENOMEM;
	}
	h->loop = sd_event_ref(loop);
	h->ca = ca;
	h->certificate = certificate;
	h->key = key;
	LIST_INIT(&h->calls);
	r = sd_event_add_time_relative(loop, &h->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, h);
	if (r >= 0)
		r = sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);
	if (r >= 0)
		r = multi_make(h);
	if (r < 0) {
		http_close(h);
		return r;
	}
	*ret = h;
	return 0;
}

void http_close(struct http *h)
{
	struct http_call *c;

	if (!h)
		return;
	while ((c = LIST_FIRST(&h->calls)))
		call_free(c);
	if (h->multi)
		curl_multi_cleanup(h->multi);
	sd_event_source_disable_unref(h->timer);
	sd_event_unref(h->loop);
	free(h);
	curl_global_cleanup();
}
