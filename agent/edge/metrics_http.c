// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "common/address.h"
#include "common/clock.h"
#include "metrics_http.h"

enum {
	BACKLOG = 64, /* connections that wait for a place */
};

/* One connection. */
struct client {
	int fd; /* the library's; -1: free, or shut down already */
	uint64_t end_ns;
};

struct metrics_http {
	struct MHD_Daemon *daemon;
	struct MHD_Response *ok, *not_found, *not_allowed, *failed;
	struct MHD_Response *text; /* NULL: none yet */
	uint64_t text_ns; /* when it was made */
	struct metrics_http_options options;
	uint64_t life_ns;
	bool closed; /* a connection has ended, and what waits may come in */
	struct client client[METRICS_HTTP_CONNECTIONS_MAX];
};

static void response_free(struct MHD_Response *r)
{
	if (r)
		MHD_destroy_response(r);
}

void metrics_http_close(struct metrics_http *h)
{
	if (!h)
		return;
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	response_free(h->ok);
	response_free(h->not_found);
	response_free(h->not_allowed);
	response_free(h->failed);
	response_free(h->text);
	free(h);
}

/* --- answers --------------------------------------------------------------------------------- */

static bool header(struct MHD_Response *r, const char *name, const char *value)
{
	return MHD_add_response_header(r, name, value) == MHD_YES;
}

/* One request a connection: a place is free again as soon as the answer is out. NULL: memory. */
static struct MHD_Response *response_new(char *text, size_t length,
					 enum MHD_ResponseMemoryMode mode, const char *type)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(length, text, mode);

	if (!r) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free(text);
		return NULL;
	}
	if (header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) &&
	    header(r, MHD_HTTP_HEADER_CONNECTION, "close"))
		return r;
	MHD_destroy_response(r);
	return NULL;
}

static struct MHD_Response *response_of(const char *text)
{
	/* The library does not write to what it is told to keep. */
	return response_new((char *)text, strlen(text), MHD_RESPMEM_PERSISTENT, "text/plain");
}

static bool responses_make(struct metrics_http *h)
{
	h->ok = response_of("ok\n");
	h->not_found = response_of("There is no such page. The pages are /metrics and /healthz.\n");
	h->not_allowed = response_of("Only GET is allowed.\n");
	h->failed = response_of("tallyd could not make the metrics.\n");
	return h->ok && h->not_found && h->not_allowed && h->failed &&
	       header(h->not_allowed, MHD_HTTP_HEADER_ALLOW, MHD_HTTP_METHOD_GET);
}

/* The text, made anew unless it is fresh. NULL: there is none. */
static struct MHD_Response *text_of(struct metrics_http *h)
{
	uint64_t now = clock_now_ns();
	size_t length = 0;
	char *text = NULL;

	if (h->text && now - h->text_ns < METRICS_HTTP_FRESH_MS * 1000000ull)
		return h->text;
	response_free(h->text);
	h->text = NULL;
	if (h->options.text(h->options.context, &text, &length) < 0)
		return NULL;
	h->text = response_new(text, length, MHD_RESPMEM_MUST_FREE,
			       "text/plain; version=0.0.4; charset=utf-8");
	h->text_ns = now;
	return h->text;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **request)
{
	struct metrics_http *h = context;
	bool metrics = !strcmp(url, "/metrics");
	struct MHD_Response *text;

	if (!metrics && strcmp(url, "/healthz") != 0)
		return MHD_queue_response(connection, MHD_HTTP_NOT_FOUND, h->not_found);
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
		return MHD_queue_response(connection, MHD_HTTP_METHOD_NOT_ALLOWED, h->not_allowed);
	if (!metrics)
		return MHD_queue_response(connection, MHD_HTTP_OK, h->ok);
	text = text_of(h);
	if (!text)
		return MHD_queue_response(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, h->failed);
	return MHD_queue_response(connection, MHD_HTTP_OK, text);
}

/* --- connections ----------------------------------------------------------------------------- */

static int fd_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

/* The library has a limit on silence only; this is one on whole connections. */
static void on_connection(void *context, struct MHD_Connection *connection, void **its_client,
			  enum MHD_ConnectionNotificationCode code)
{
	struct metrics_http *h = context;
	struct client *p = *its_client;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (p)
			*p = (struct client){ .fd = -1 };
		h->closed = true;
		return;
	}
	for (unsigned int i = 0; i < METRICS_HTTP_CONNECTIONS_MAX; i++) {
		p = &h->client[i];
		if (p->end_ns)
			continue;
		*p = (struct client){ .fd = fd_of(connection),
				      .end_ns = clock_now_ns() + h->life_ns };
		*its_client = p;
		return;
	}
}

/* The library sees them end, and closes them. */
static void end_old(struct metrics_http *h)
{
	uint64_t now = clock_now_ns();

	for (unsigned int i = 0; i < METRICS_HTTP_CONNECTIONS_MAX; i++) {
		struct client *p = &h->client[i];

		if (p->fd < 0 || now < p->end_ns)
			continue;
		shutdown(p->fd, SHUT_RDWR);
		p->fd = -1;
	}
}

void metrics_http_run(struct metrics_http *h)
{
	end_old(h);
	h->closed = false;
	MHD_run(h->daemon);
}

uint64_t metrics_http_timeout_ns(const struct metrics_http *h)
{
	uint64_t now = clock_now_ns(), end = UINT64_MAX;
	MHD_UNSIGNED_LONG_LONG ms;

	/* If all places were taken, the library listens again only in its next run. */
	if (h->closed)
		return 0;
	for (unsigned int i = 0; i < METRICS_HTTP_CONNECTIONS_MAX; i++)
		if (h->client[i].fd >= 0 && h->client[i].end_ns < end)
			end = h->client[i].end_ns;
	if (end != UINT64_MAX)
		end = end > now ? end - now : 0;
	if (MHD_get_timeout(h->daemon, &ms) == MHD_YES && ms * 1000000 < end)
		end = ms * 1000000;
	return end;
}

int metrics_http_fd(const struct metrics_http *h)
{
	return MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

uint16_t metrics_http_tcp_port(const struct metrics_http *h)
{
	return MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

/* --- listening ------------------------------------------------------------------------------- */

static socklen_t address_bytes(const struct sockaddr *a)
{
	return a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* By ourselves, since the library does not say why it cannot. */
static int listen_on(const struct sockaddr *a, int *ret, struct why *why)
{
	_cleanup_(closep) int fd = -1;
	const int on = 1;
	char text[96];

	if (a->sa_family != AF_INET && a->sa_family != AF_INET6)
		return why_say(why, -EAFNOSUPPORT, "metrics: the address is neither IPv4 nor IPv6");
	endpoint_print((const void *)a, text, sizeof(text));
	fd = socket(a->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return why_say(why, -errno, "metrics: cannot open a socket for %s: %m", text);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	/* an address may come later */
	setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
	if (bind(fd, a, address_bytes(a)) < 0 || listen(fd, BACKLOG) < 0)
		return why_say(why, -errno, "metrics: cannot listen on %s: %m", text);
	*ret = TAKE_FD(fd);
	return 0;
}

int metrics_http_open(const struct sockaddr *address, const struct metrics_http_options *options,
		      struct metrics_http **ret, struct why *why)
{
	_cleanup_(metrics_http_closep) struct metrics_http *h = calloc(1, sizeof(*h));
	int fd = -1, r;

	if (!h)
		return why_say(why, -ENOMEM, "metrics: no memory");
	for (unsigned int i = 0; i < METRICS_HTTP_CONNECTIONS_MAX; i++)
		h->client[i].fd = -1;
	h->options = *options;
	h->life_ns = (options->life_ms ? options->life_ms : METRICS_HTTP_LIFE_MS) * 1000000ull;
	if (!responses_make(h))
		return why_say(why, -ENOMEM, "metrics: no memory for answers");
	r = listen_on(address, &fd, why);
	if (r < 0)
		return r;
	/* From here on the socket is the library's, also if it fails. */
	h->daemon = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, answer, h, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)METRICS_HTTP_CONNECTIONS_MAX,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned int)METRICS_HTTP_CONNECTIONS_OF_ONE,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)METRICS_HTTP_REQUEST_BYTES,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
	if (!h->daemon)
		return why_say(why, -EIO, "metrics: cannot start the HTTP server");
	*ret = TAKE_PTR(h);
	return 0;
}
