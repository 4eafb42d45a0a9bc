// SPDX-License-Identifier: GPL-2.0-only
/* The metrics' HTTP server, asked by real sockets: good clients, bad ones, and too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/edge/metrics_http.h"

enum {
	WAIT_MS = 10000,
	LIFE_MS = 400,
	CLIENTS_MAX = 128,
	ANSWER_BYTES = 4096,
	LARGE = 16 << 20,
};

static struct metrics_http *h;
static struct why why;
static unsigned int calls;
static int text_result;
static size_t text_bytes; /* 0: a small one */
static int client[CLIENTS_MAX];
static unsigned int clients;
static char answer[ANSWER_BYTES];

static int text_make(void *context, char **ret, size_t *ret_length)
{
	size_t n = text_bytes ? text_bytes : 8;
	char *text;

	assert_ptr_equal(context, &calls);
	calls++;
	if (text_result < 0)
		return text_result;
	text = malloc(n);
	if (!text)
		return -ENOMEM;
	memset(text, 'x', n);
	text[n - 1] = '\n';
	*ret = text;
	*ret_length = n;
	return 0;
}

static int open_with(uint32_t life_ms)
{
	const struct metrics_http_options options = { text_make, &calls, life_ms };
	const struct sockaddr_in any = { .sin_family = AF_INET };

	return metrics_http_open((const struct sockaddr *)&any, &options, &h, &why);
}

static int prepare(void **state)
{
	calls = 0;
	text_result = 0;
	text_bytes = 0;
	clients = 0;
	return open_with(LIFE_MS);
}

static int clean_up(void **state)
{
	while (clients)
		close(client[--clients]);
	metrics_http_close(h);
	h = NULL;
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* One turn of the daemon's loop, which also ends when `fd` is readable (-1: no such). */
static bool turn(int fd, int64_t wait_ms)
{
	struct pollfd p[2] = { { .fd = metrics_http_fd(h), .events = POLLIN },
			       { .fd = fd, .events = POLLIN } };
	uint64_t due_ns = metrics_http_timeout_ns(h);
	int64_t due_ms = due_ns == UINT64_MAX ? INT64_MAX : (int64_t)(due_ns / 1000000);
	bool due = due_ms <= wait_ms;

	/* No run beyond what the fd and the timeout ask for: a daemon makes no other. */
	poll(p, 2, (int)(due ? due_ms + (due_ns > 0) : wait_ms));
	if (p[0].revents || (due && !p[1].revents))
		metrics_http_run(h);
	return p[1].revents;
}

static void serve_for(int64_t ms)
{
	int64_t end = now_ms() + ms, left;

	while ((left = end - now_ms()) > 0)
		turn(-1, left);
}

/* A client at 127.0.0.<host>. */
static int connect_from(uint32_t host)
{
	struct sockaddr_in from = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(0x7f000000 + host) };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(metrics_http_tcp_port(h)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || clients == CLIENTS_MAX) {
		fail_msg("no socket for a client");
		abort(); /* which the analyser knows not to return */
	}
	client[clients++] = fd;
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	/* On the loopback it is there at once, unless too many wait already. */
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		assert_int_equal(errno, EINPROGRESS);
	return fd;
}

static void say(int fd, const void *text, size_t n)
{
	assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
}

/* Serves until the connection ends; what came stands in `answer`, and how much is returned. */
static size_t hear(int fd)
{
	int64_t end = now_ms() + WAIT_MS;
	size_t total = 0;
	char bytes[65536];
	ssize_t n;

	memset(answer, 0, sizeof(answer));
	for (;;) {
		if (!turn(fd, 100)) {
			if (now_ms() > end)
				fail_msg("no answer");
			continue;
		}
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n <= 0)
			return total;
		for (ssize_t i = 0; i < n && total + i < sizeof(answer) - 1; i++)
			answer[total + i] = bytes[i];
		total += n;
	}
}

static void ask(uint32_t host, const char *request)
{
	int fd = connect_from(host);

	say(fd, request, strlen(request));
	hear(fd);
}

static void assert_status(const char *status)
{
	if (strncmp(answer, "HTTP/1.1 ", 9) != 0 || strncmp(answer + 9, status, 3) != 0)
		fail_msg("not %s: '%s'", status, answer);
}

static void assert_has(const char *words)
{
	if (!strstr(answer, words))
		fail_msg("'%s' is not in '%s'", words, answer);
}

static const char get_metrics[] = "GET /metrics HTTP/1.1\r\nHost: n0\r\n\r\n";
static const char get_health[] = "GET /healthz HTTP/1.1\r\nHost: n0\r\n\r\n";

static void metrics_are_served_and_the_connection_ends(void **state)
{
	ask(1, get_metrics);
	assert_status("200");
	assert_has("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
	assert_has("Connection: close\r\n");
	assert_has("\r\n\r\nxxxxxxx\n");
	assert_int_equal(calls, 1);
}

static void health_needs_no_metrics(void **state)
{
	text_result = -ENOMEM;
	ask(1, get_health);
	assert_status("200");
	assert_has("\r\n\r\nok\n");
	assert_int_equal(calls, 0);
}

static void a_query_is_no_part_of_the_path(void **state)
{
	ask(1, "GET /metrics?name=x HTTP/1.1\r\nHost: n0\r\n\r\n");
	assert_status("200");
}

static void other_paths_are_not_found(void **state)
{
	static const char *const paths[] = { "/",	  "/metrics/",	    "/metric", "/healthz2",
					     "//metrics", "/../etc/passwd", "*" };
	char request[128];

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: n0\r\n\r\n", paths[i]);
		ask(1, request);
		assert_status("404");
	}
	assert_int_equal(calls, 0);
}

static void other_methods_are_not_allowed(void **state)
{
	static const char *const methods[] = { "HEAD", "PUT", "DELETE", "OPTIONS", "get", "BREW" };
	char request[128];

	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		snprintf(request, sizeof(request), "%s /metrics HTTP/1.1\r\nHost: n0\r\n\r\n",
			 methods[i]);
		ask(1, request);
		assert_status("405");
		assert_has("Allow: GET\r\n");
	}
	ask(1, "POST /metrics HTTP/1.1\r\nHost: n0\r\nContent-Length: 5\r\n\r\nhello");
	assert_status("405");
	assert_int_equal(calls, 0);
}

static void metrics_that_fail_are_an_error_of_the_server(void **state)
{
	text_result = -ENOMEM;
	ask(1, get_metrics);
	assert_status("500");
	text_result = 0;
	ask(1, get_metrics);
	assert_status("200");
}

static void a_request_may_come_in_pieces(void **state)
{
	int fd = connect_from(1);

	for (size_t i = 0; i + 1 < sizeof(get_metrics); i++) {
		say(fd, get_metrics + i, 1);
		turn(fd, 1);
	}
	hear(fd);
	assert_status("200");
}

static void requests_close_together_get_the_same_text(void **state)
{
	int fd[4];

	for (unsigned int i = 0; i < 4; i++) {
		fd[i] = connect_from(1);
		say(fd[i], get_metrics, sizeof(get_metrics) - 1);
	}
	for (unsigned int i = 0; i < 4; i++) {
		hear(fd[i]);
		assert_status("200");
	}
	assert_int_equal(calls, 1);
	serve_for(METRICS_HTTP_FRESH_MS);
	ask(1, get_metrics);
	assert_int_equal(calls, 2);
}

/* Whatever comes, the connection ends and others are served. */
static void garbage_ends_its_connection_only(void **state)
{
	static char long_line[2 * METRICS_HTTP_REQUEST_BYTES];
	static const char *const garbage[] = {
		"\r\n\r\n\r\n\r\n",
		"GET\r\n\r\n",
		"GET /metrics\r\n\r\n",
		"GET /metrics HTTP/9.9\r\n\r\n",
		"\x16\x03\x01\x02\x01\x01\xfc\x03\x03",
		"GET /metrics HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\n",
	};

	srand(4);
	for (size_t i = 0; i < sizeof(garbage) / sizeof(*garbage); i++)
		ask(2, garbage[i]);
	for (unsigned int i = 0; i < 40; i++) {
		char bytes[300];
		int fd = connect_from(3 + i / 4);

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (char)(rand() % 4 ? rand() : "\r\n :"[rand() % 4]);
		say(fd, bytes, sizeof(bytes));
	}
	memset(long_line, 'a', sizeof(long_line));
	say(connect_from(20), long_line, sizeof(long_line));
	ask(1, get_metrics);
	assert_status("200");
}

/* 100 of one client: it has a few places, and everybody else the others. */
static void half_open_connections_do_not_hold_others(void **state)
{
	int64_t begin = now_ms();

	for (unsigned int i = 0; i < 100; i++) {
		send(connect_from(2), "GET /met", 8, MSG_NOSIGNAL);
		turn(-1, 0);
	}
	ask(1, get_metrics);
	assert_status("200");
	assert_true(now_ms() - begin < LIFE_MS); /* before any of them had to end */
}

/* Silent ones from everywhere take all places; they end, and what waits comes in. */
static void all_places_are_free_again_after_a_life(void **state)
{
	for (unsigned int i = 0; i < 100; i++)
		connect_from(10 + i / METRICS_HTTP_CONNECTIONS_OF_ONE);
	turn(-1, 0);
	for (unsigned int i = 0; i < 3; i++)
		ask(1, get_health);
	assert_status("200");
}

static void a_client_that_drips_ends_with_its_life(void **state)
{
	int64_t begin = now_ms();
	int fd = connect_from(1);
	unsigned int sent = 0;

	say(fd, "GET /metrics HTTP/1.1\r\nX: ", 26);
	while (send(fd, "x", 1, MSG_NOSIGNAL) == 1 && now_ms() - begin < WAIT_MS) {
		sent++;
		serve_for(20);
	}
	assert_true(now_ms() - begin >= LIFE_MS);
	assert_true(now_ms() - begin < 5ll * LIFE_MS);
	assert_true(sent > 5);
}

static void a_client_that_does_not_read_ends_with_its_life(void **state)
{
	int64_t begin = now_ms();
	int lazy = connect_from(2);

	text_bytes = LARGE;
	say(lazy, get_metrics, sizeof(get_metrics) - 1);
	serve_for(50);
	ask(1, get_health);
	assert_status("200");
	assert_true(now_ms() - begin < LIFE_MS);
	serve_for(2ll * LIFE_MS);
	assert_true(hear(lazy) < LARGE);
	assert_int_equal(metrics_http_timeout_ns(h), UINT64_MAX); /* nobody is left */
}

static void a_large_text_arrives_whole(void **state)
{
	int fd;

	metrics_http_close(h);
	assert_int_equal(open_with(0), 0); /* this may take a while under sanitizers */
	text_bytes = LARGE;
	fd = connect_from(1);
	say(fd, get_metrics, sizeof(get_metrics) - 1);
	assert_in_range(hear(fd), LARGE, LARGE + 1000);
	assert_has("Content-Length: 16777216\r\n");
}

/* It would be the end of the process, were SIGPIPE not seen to. */
static void a_client_that_goes_in_the_middle_of_the_answer_is_no_harm(void **state)
{
	const struct linger reset = { .l_onoff = 1 };
	int64_t end = now_ms() + WAIT_MS;
	int fd = connect_from(1);

	text_bytes = LARGE;
	say(fd, get_metrics, sizeof(get_metrics) - 1);
	while (!turn(fd, 100))
		assert_true(now_ms() < end);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	assert_int_equal(client[--clients], fd);
	close(fd);
	serve_for(20);
	ask(1, get_health);
	assert_status("200");
}

static void a_port_in_use_is_named(void **state)
{
	struct sockaddr_in taken = { .sin_family = AF_INET,
				     .sin_port = htons(metrics_http_tcp_port(h)) };
	const struct metrics_http_options options = { text_make, &calls, 0 };
	struct metrics_http *second = NULL;
	char port[16];

	snprintf(port, sizeof(port), ":%u", metrics_http_tcp_port(h));
	assert_int_equal(metrics_http_open((struct sockaddr *)&taken, &options, &second, &why),
			 -EADDRINUSE);
	assert_null(second);
	assert_non_null(strstr(why.text, port));
	taken.sin_addr.s_addr = htonl(0xcb007107); /* 203.0.113.7, nobody's */
	taken.sin_port = 0;
	assert_int_equal(metrics_http_open((struct sockaddr *)&taken, &options, &second, &why),
			 0); /* until it comes */
	metrics_http_close(second);
	second = NULL;
	taken.sin_family = AF_UNIX;
	assert_int_equal(metrics_http_open((struct sockaddr *)&taken, &options, &second, &why),
			 -EAFNOSUPPORT);
}

static void ipv6_is_served_too(void **state)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const struct metrics_http_options options = { text_make, &calls, LIFE_MS };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	metrics_http_close(h);
	h = NULL;
	if (fd < 0) {
		skip(); /* a kernel without IPv6 */
		abort();
	}
	client[clients++] = fd;
	r = metrics_http_open((struct sockaddr *)&to, &options, &h, &why);
	if (r == -EADDRNOTAVAIL)
		skip(); /* IPv6 is switched off */
	assert_int_equal(r, 0);
	to.sin6_port = htons(metrics_http_tcp_port(h));
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	say(fd, get_health, sizeof(get_health) - 1);
	hear(fd);
	assert_status("200");
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, prepare, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(metrics_are_served_and_the_connection_ends),
		FACT(health_needs_no_metrics),
		FACT(a_query_is_no_part_of_the_path),
		FACT(other_paths_are_not_found),
		FACT(other_methods_are_not_allowed),
		FACT(metrics_that_fail_are_an_error_of_the_server),
		FACT(a_request_may_come_in_pieces),
		FACT(requests_close_together_get_the_same_text),
		FACT(garbage_ends_its_connection_only),
		FACT(half_open_connections_do_not_hold_others),
		FACT(all_places_are_free_again_after_a_life),
		FACT(a_client_that_drips_ends_with_its_life),
		FACT(a_client_that_does_not_read_ends_with_its_life),
		FACT(a_large_text_arrives_whole),
		FACT(a_client_that_goes_in_the_middle_of_the_answer_is_no_harm),
		FACT(a_port_in_use_is_named),
		FACT(ipv6_is_served_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
