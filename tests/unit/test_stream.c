// SPDX-License-Identifier: GPL-2.0-only
/*
 * The real server with real sockets, in one thread: whoever waits lets the loop turn meanwhile.
 * After each test all connections have ended once, and no file descriptor is left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "agent/edge/log.h"
#include "agent/edge/stream.h"

enum {
	REQUEST_BYTES = 64,
	LIMIT_MS = 20000, /* nothing may take longer, on whatever machine */
	PEOPLE = 600,
	NOBODY = 65534,
	GROUP = 4242,
};

static sd_event *loop;
static struct stream_server *server;
static struct why why;
static char directory[64], path[108];
static int files_before;
static gid_t group = -1;
static size_t request_most;

/* Connections that have said something, in the order of their first words. */
static struct person {
	unsigned int requests, ended;
	unsigned int before; /* requests of others before its own first one */
} person[PEOPLE];
static unsigned int people, ended, said;

/* The latest who is kept, at both ends. */
static struct stream *kept;
static int kept_fd;

/* --- the service: each request is a line, and most are answered with a line ------------------ */

static void say(struct stream *s, const char *text) { stream_send(s, text, strlen(text)); }

static void say_much(struct stream *s, size_t bytes)
{
	static char text[65536];

	memset(text, 'x', sizeof(text));
	for (; bytes > sizeof(text); bytes -= sizeof(text))
		stream_send(s, text, sizeof(text));
	stream_send(s, text, bytes);
}

/* It goes beside something unread: no more words reach it, and its own are still to be read. */
static void kept_says_its_last(void)
{
	const struct linger reset = { .l_onoff = 1 };

	assert_int_equal(send(kept_fd, "leave\n", 6, MSG_NOSIGNAL), 6);
	setsockopt(kept_fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(kept_fd);
}

static ssize_t on_text(struct stream *s, const char *text, size_t length)
{
	const char *end = memchr(text, '\n', length);
	struct person *p = stream_context(s);

	assert_in_range(length, 1, request_most);
	assert_ptr_equal(stream_owner(s), &server);
	if (!end)
		return 0;
	if (!p) {
		p = &person[people++];
		p->before = said;
		stream_context_set(s, p);
	}
	p->requests++;
	said++;
	if (!strncmp(text, "much ", 5)) {
		say_much(s, strtoul(text + 5, NULL, 10));
	} else if (!strncmp(text, "may\n", 4)) {
		say(s, stream_peer_may(s, group) ? "yes\n" : "no\n");
	} else if (!strncmp(text, "port\n", 5)) {
		char name[IF_NAMESIZE];

		say(s, if_indextoname(stream_port(s), name) ? name : "unknown");
		say(s, "\n");
	} else if (!strncmp(text, "keep\n", 5)) {
		stream_keep(s);
		say(s, "kept\n");
		kept = s;
	} else if (!strncmp(text, "bye\n", 4)) {
		say(s, "bye\n");
		stream_finish(s);
		stream_finish(s); /* allowed */
		say(s, "never said\n");
	} else if (!strncmp(text, "last\n", 5)) {
		kept_says_its_last();
		say(kept, "too late\n");
	} else if (!strncmp(text, "bad\n", 4)) {
		say(s, "no\n");
		return -EINVAL;
	} else {
		stream_send(s, text, end - text + 1);
	}
	return end - text + 1;
}

static unsigned int patience(struct stream *s, const char *text, size_t length)
{
	return length < 5 ? 0 : !strncmp(text, "list\n", 5) ? 2 : !strncmp(text, "long\n", 5);
}

static void on_end(struct stream *s)
{
	struct person *p = stream_context(s);

	if (p)
		p->ended++;
	ended++;
}

static char *refuse(int error)
{
	char *text = NULL;

	return asprintf(&text, "refused %s\n", strerrorname_np(-error)) < 0 ? NULL : text;
}

static const struct stream_service patient = {
	.name = "test",
	.request_bytes_max = REQUEST_BYTES,
	.connections_max = 1000,
	.request_timeout_ns = 3600000000000,
	.idle_timeout_ns = 3600000000000,
	.read = on_text,
	.end = on_end,
	.refuse = refuse,
};

static struct stream_service hasty(uint64_t request_ms, uint64_t idle_ms)
{
	struct stream_service service = patient;

	service.request_timeout_ns = request_ms * 1000000;
	service.idle_timeout_ns = idle_ms * 1000000;
	return service;
}

/* A file descriptor that we cannot do without. */
static int fd_is(int fd)
{
	assert(fd >= 0);
	return fd;
}

/* --- around each test ------------------------------------------------------------------------ */

static int files_open(void)
{
	DIR *all = opendir("/proc/self/fd");
	int n = 0;

	assert(all);
	while (readdir(all))
		n++;
	closedir(all);
	return n;
}

static int begin(void **state)
{
	log_level_set(LOG_LEVEL_ERROR);
	files_before = files_open();
	memset(person, 0, sizeof(person));
	people = ended = said = 0;
	group = -1;
	request_most = REQUEST_BYTES;
	snprintf(directory, sizeof(directory), "/tmp/tally-stream-XXXXXX");
	if (sd_event_new(&loop) < 0 || !mkdtemp(directory) || chmod(directory, 0755) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/socket", directory);
	return 0;
}

static int end(void **state)
{
	stream_server_close(server);
	server = NULL;
	sd_event_unref(loop);
	for (unsigned int i = 0; i < people; i++)
		assert_int_equal(person[i].ended, 1);
	assert_int_equal(files_open(), files_before);
	return rmdir(directory); /* its socket has gone with the server */
}

static void serve(const struct stream_service *service)
{
	assert_int_equal(stream_server_open(loop, service, &server, &server), 0);
	assert_int_equal(stream_listen_unix(server, path, 0666, -1, &why), 0);
}

/* --- waiting --------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* All that the server has to do now. One who always has something to do is a fault. */
static void turn(void)
{
	int64_t limit = now_ms() + LIMIT_MS;

	while (sd_event_run(loop, 0) > 0)
		assert_true(now_ms() < limit);
}

/* True: this happened at the client's end; false: `ms` have passed. The server goes on meanwhile.
 */
static bool happens(int fd, short events, int ms)
{
	int64_t limit = now_ms() + ms, left = ms;
	struct pollfd fds[] = { { .fd = fd, .events = events },
				{ .fd = sd_event_get_fd(loop), .events = POLLIN } };

	for (; left >= 0; left = limit - now_ms()) {
		turn();
		assert_true(poll(fds, 2, (int)left) >= 0);
		if (fds[0].revents)
			return true;
	}
	return false;
}

static void connections_become(unsigned int count)
{
	int64_t limit = now_ms() + LIMIT_MS;
	struct pollfd p = { .fd = sd_event_get_fd(loop), .events = POLLIN };

	for (turn(); stream_connections(server) != count; turn()) {
		assert_true(now_ms() < limit);
		assert_true(poll(&p, 1, LIMIT_MS) > 0);
	}
}

/* --- clients --------------------------------------------------------------------------------- */

static int comes(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = fd_is(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

	memcpy(address.sun_path, path, sizeof(path));
	assert_int_equal(connect(fd, (void *)&address, sizeof(address)), 0);
	return fd;
}

/* Where a server that was asked for port 0 listens: the one listening TCP socket we have. */
static int tcp_comes(int family)
{
	struct sockaddr_storage there = { 0 };
	socklen_t length;
	int listener = -1, is = 0, fd;

	for (int i = 3; i < 1024 && !(is && there.ss_family == family); i++) {
		length = sizeof(there);
		listener = i;
		if (getsockname(i, (void *)&there, &length) < 0 || there.ss_family != family)
			continue;
		length = sizeof(is);
		getsockopt(i, SOL_SOCKET, SO_ACCEPTCONN, &is, &length);
	}
	assert_true(is && listener >= 0);
	fd = fd_is(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
	assert_int_equal(connect(fd, (void *)&there, sizeof(there)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static int tcp_listen(int family)
{
	struct sockaddr_storage address = { .ss_family = family };

	if (family == AF_INET)
		((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)&address)->sin6_addr = in6addr_loopback;
	return stream_listen_tcp(server, &address, &why);
}

static void says(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* All bytes up to the end, or up to `limit` of them. */
static size_t reads(int fd, char *text, size_t limit)
{
	size_t length = 0;

	while (length < limit) {
		ssize_t n;

		assert_true(happens(fd, POLLIN, LIMIT_MS));
		n = recv(fd, text + length, limit - length, 0);
		if (n <= 0)
			break;
		length += n;
	}
	return length;
}

static void hears(int fd, const char *expected)
{
	char text[256] = "";

	reads(fd, text, strlen(expected));
	assert_string_equal(text, expected);
}

static void hears_the_end(int fd)
{
	char more;

	assert_int_equal(reads(fd, &more, 1), 0);
	close(fd);
}

static void asks(int fd, const char *request, const char *answer)
{
	says(fd, request);
	hears(fd, answer);
}

/* --- requests -------------------------------------------------------------------------------- */

static void a_request_is_answered_on_every_kind_of_socket(void **state)
{
	int fd[3];

	serve(&patient);
	assert_int_equal(tcp_listen(AF_INET), 0);
	assert_int_equal(tcp_listen(AF_INET6), 0);
	fd[0] = comes();
	fd[1] = tcp_comes(AF_INET);
	fd[2] = tcp_comes(AF_INET6);
	for (int i = 0; i < 3; i++)
		asks(fd[i], "hello\n", "hello\n");
	for (int i = 0; i < 3; i++)
		asks(fd[i], "again\n", "again\n");
	assert_int_equal(stream_connections(server), 3);
	assert_int_equal(people, 3);
	for (int i = 0; i < 3; i++) {
		asks(fd[i], "bye\n", "bye\n");
		hears_the_end(fd[i]);
	}
	connections_become(0);
	assert_int_equal(ended, 3);
}

static void where_a_connection_over_tcp_comes_in_is_known(void **state)
{
	static const int families[] = { AF_UNIX, AF_INET, AF_INET6 };

	serve(&patient);
	assert_int_equal(tcp_listen(AF_INET), 0);
	assert_int_equal(tcp_listen(AF_INET6), 0);
	for (int i = 0; i < 3; i++) {
		const bool tcp = families[i] != AF_UNIX;
		int fd = tcp ? tcp_comes(families[i]) : comes();

		asks(fd, "port\n", tcp ? "lo\n" : "unknown\n");
		asks(fd, "port\n", tcp ? "lo\n" : "unknown\n");
		asks(fd, "bye\n", "bye\n");
		hears_the_end(fd);
	}
	connections_become(0);
}

static void a_request_may_come_byte_by_byte(void **state)
{
	const char *request = "one letter after the other\n";
	int fd;

	serve(&patient);
	fd = comes();
	for (const char *c = request; *c; c++) {
		assert_int_equal(send(fd, c, 1, 0), 1);
		turn();
		assert_int_equal(said, c[1] == '\0');
	}
	hears(fd, request);
	close(fd);
	connections_become(0);
}

static void requests_in_one_write_are_answered_in_order(void **state)
{
	enum {
		REQUESTS = 500
	};
	char text[REQUESTS * 8 + 1], answers[sizeof(text)];
	int fd;

	serve(&patient);
	fd = comes();
	for (unsigned int i = 0; i < REQUESTS; i++)
		snprintf(text + i * 8, 9, "ask%04u\n", i % 10000u);
	says(fd, text);
	assert_int_equal(reads(fd, answers, sizeof(text) - 1), sizeof(text) - 1);
	assert_memory_equal(answers, text, sizeof(text) - 1);
	assert_int_equal(said, REQUESTS);
	close(fd);
	connections_become(0);
}

/* Who asks a thousand times does so between the questions of others. */
static void nobody_waits_for_all_that_another_one_asks(void **state)
{
	char text[4000];
	int much, little;

	serve(&patient);
	much = comes();
	little = comes();
	connections_become(2);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 2 ? '\n' : 'a';
	assert_int_equal(send(much, text, sizeof(text), 0), sizeof(text));
	says(little, "b\n");
	while (!person[1].requests)
		assert_true(sd_event_run(loop, 0) > 0);
	assert_in_range(person[1].before, 0, 2);
	hears(little, "b\n");
	assert_int_equal(reads(much, text, sizeof(text)), sizeof(text));
	close(much);
	close(little);
	connections_become(0);
}

/* In a turn of the loop one long request is read, and all that are short. */
static void short_requests_go_before_long_ones(void **state)
{
	enum {
		LONG = 20
	};
	struct stream_service service = patient;
	int fd[LONG], quick;
	char first;

	service.patience = patience;
	service.priority = SD_EVENT_PRIORITY_NORMAL - 1;
	serve(&service);
	for (int i = 0; i < LONG; i++) {
		fd[i] = comes();
		says(fd[i], i % 2 ? "long\nhello\n" : "long\n");
	}
	while (!said)
		assert_true(sd_event_run(loop, 0) > 0);
	quick = comes();
	says(quick, "hello\n");
	while (recv(quick, &first, 1, MSG_PEEK) < 0)
		assert_true(sd_event_run(loop, 0) > 0);
	assert_in_range(said, 2, LONG / 2);
	hears(quick, "hello\n");
	for (int i = 0; i < LONG; i++) {
		hears(fd[i], i % 2 ? "long\nhello\n" : "long\n");
		close(fd[i]);
	}
	close(quick);
	connections_become(0);
}

static void who_has_less_patience_goes_first(void **state)
{
	enum {
		LISTS = 20
	};
	struct stream_service service = patient;
	int fd[LISTS], first, second;
	char byte;

	service.patience = patience;
	serve(&service);
	for (int i = 0; i < LISTS; i++) {
		fd[i] = comes();
		says(fd[i], "list\n");
	}
	while (!said)
		assert_true(sd_event_run(loop, 0) > 0);
	first = comes();
	says(first, "long\n");
	second = comes();
	says(second, "long\n");
	while (recv(second, &byte, 1, MSG_PEEK) < 0)
		assert_true(sd_event_run(loop, 0) > 0);
	assert_in_range(said, 3, LISTS / 2);
	assert_int_equal(recv(first, &byte, 1, MSG_PEEK), 1);
	for (int i = 0; i < LISTS; i++) {
		hears(fd[i], "list\n");
		close(fd[i]);
	}
	close(first);
	close(second);
	connections_become(0);
}

/* However many others come, and come again. */
static void who_has_patience_has_turns_too(void **state)
{
	enum {
		BUSY = 8,
		REQUESTS = 200,
	};
	struct stream_service service = patient;
	char many[5 * REQUESTS], byte;
	int busy[BUSY], lists;

	service.patience = patience;
	serve(&service);
	for (size_t i = 0; i < sizeof(many); i++)
		many[i] = "long\n"[i % 5];
	for (int i = 0; i < BUSY; i++) {
		busy[i] = comes();
		assert_int_equal(send(busy[i], many, sizeof(many), 0), sizeof(many));
	}
	while (said < BUSY)
		assert_true(sd_event_run(loop, 0) > 0);
	lists = comes();
	says(lists, "list\n");
	while (recv(lists, &byte, 1, MSG_PEEK) < 0)
		assert_true(sd_event_run(loop, 0) > 0);
	assert_in_range(said, BUSY, 4 * BUSY);
	for (int i = 0; i < BUSY; i++)
		close(busy[i]);
	close(lists);
	connections_become(0);
}

/* Who has a long request waiting may go, or be closed with the server. */
static void who_waits_for_its_turn_may_go(void **state)
{
	struct stream_service service = patient;
	int fd[4];

	service.patience = patience;
	serve(&service);
	for (int i = 0; i < 4; i++) {
		fd[i] = comes();
		says(fd[i], "long\n");
	}
	connections_become(4);
	close(fd[1]);
	close(fd[3]);
	connections_become(2);
	hears(fd[2], "long\n");
	says(fd[0], "long\n");
	says(fd[2], "long\n");
	assert_true(sd_event_run(loop, 0) > 0);
	stream_server_close(server);
	server = NULL;
	close(fd[0]);
	close(fd[2]);
}

/* Answers that nobody reads do not pile up: the next request is taken when they have gone. */
static void who_does_not_read_is_not_answered_further(void **state)
{
	enum {
		ASKED = 5
	};
	static char text[ASKED * 900000];
	int fd;

	serve(&patient);
	fd = comes();
	for (int i = 0; i < ASKED; i++)
		says(fd, "much 900000\n");
	turn();
	assert_int_equal(said, 1);
	assert_int_equal(reads(fd, text, sizeof(text)), sizeof(text));
	assert_int_equal(said, ASKED);
	close(fd);
	connections_become(0);
}

static void a_request_has_at_most_so_many_bytes(void **state)
{
	char text[REQUEST_BYTES + 2];
	int fd;

	memset(text, 'a', sizeof(text));
	serve(&patient);
	fd = comes();
	text[REQUEST_BYTES - 1] = '\n';
	text[REQUEST_BYTES] = '\0';
	asks(fd, text, text);
	text[REQUEST_BYTES - 1] = 'a';
	asks(fd, text, "refused EMSGSIZE\n");
	hears_the_end(fd);
	connections_become(0);
}

/* What comes after it is thrown away, and does not throw away our words. */
static void one_who_goes_on_sending_still_hears_why_not(void **state)
{
	static char much[1 << 20];
	int fd;

	serve(&patient);
	assert_int_equal(tcp_listen(AF_INET), 0);
	memset(much, 'a', sizeof(much));
	fd = tcp_comes(AF_INET);
	for (size_t sent = 0; sent < sizeof(much);) {
		ssize_t n = send(fd, much + sent, sizeof(much) - sent, MSG_NOSIGNAL);

		assert_true(n > 0 || errno == EAGAIN);
		sent += n > 0 ? n : 0;
		assert_true(happens(fd, POLLOUT, LIMIT_MS));
	}
	hears(fd, "refused EMSGSIZE\n");
	hears_the_end(fd);
	connections_become(0);
	assert_int_equal(ended, 1);
}

static void what_is_refused_ends_and_its_rest_is_not_read(void **state)
{
	int fd;

	serve(&patient);
	fd = comes();
	asks(fd, "bad\nhello\n", "no\n");
	hears_the_end(fd);
	connections_become(0);
	assert_int_equal(said, 1);
}

/* --- time ------------------------------------------------------------------------------------ */

static void who_says_nothing_is_late(void **state)
{
	const struct stream_service service = hasty(50, 3600000);
	int fd;

	serve(&service);
	fd = comes();
	hears(fd, "refused ETIMEDOUT\n");
	hears_the_end(fd);
	connections_become(0);
}

static void half_a_request_is_late_however_many_came_before(void **state)
{
	const struct stream_service service = hasty(50, 3600000);
	int fd;

	serve(&service);
	fd = comes();
	asks(fd, "one\ntwo\nhal", "one\ntwo\n");
	hears(fd, "refused ETIMEDOUT\n");
	hears_the_end(fd);
	connections_become(0);
	assert_int_equal(said, 2);
}

static void bytes_now_and_then_do_not_buy_time(void **state)
{
	const struct stream_service service = hasty(200, 3600000);
	int fd, sent = 0;

	serve(&service);
	fd = comes();
	while (!happens(fd, POLLIN, 20))
		sent += (int)send(fd, "a", 1, MSG_NOSIGNAL);
	hears(fd, "refused ETIMEDOUT\n");
	hears_the_end(fd);
	assert_in_range(sent, 0, REQUEST_BYTES - 1);
	connections_become(0);
}

static void who_asks_nothing_more_goes_after_the_idle_time(void **state)
{
	const struct stream_service service = hasty(3600000, 50);
	int fd;

	serve(&service);
	fd = comes();
	asks(fd, "one\n", "one\n");
	hears(fd, "refused ETIMEDOUT\n");
	close(fd);
	connections_become(0);
}

static void who_is_kept_may_be_quiet(void **state)
{
	const struct stream_service service = hasty(50, 50);
	int kept, witness;

	serve(&service);
	kept = comes();
	asks(kept, "keep\n", "kept\n");
	witness = comes(); /* who came later, and is sent away before */
	hears(witness, "refused ETIMEDOUT\n");
	hears_the_end(witness);
	asks(kept, "hello\n", "hello\n");
	witness = comes();
	hears(witness, "refused ETIMEDOUT\n");
	hears_the_end(witness);
	asks(kept, "bye\n", "bye\n");
	hears_the_end(kept);
	connections_become(0);
}

static void what_was_said_before_a_reset_is_read(void **state)
{
	int fd;

	serve(&patient);
	assert_int_equal(tcp_listen(AF_INET), 0);
	kept_fd = tcp_comes(AF_INET);
	asks(kept_fd, "keep\n", "kept\n");
	fd = comes();
	says(fd, "last\n");
	connections_become(1);
	assert_int_equal(person[0].requests, 2);
	close(fd);
	connections_become(0);
}

/* Its end is ours when it has had its time, even if it never ends its half. */
static void who_never_hangs_up_is_ended(void **state)
{
	const struct stream_service service = hasty(50, 50);
	int fd;

	serve(&service);
	fd = comes();
	asks(fd, "bye\n", "bye\n");
	connections_become(0);
	assert_int_equal(ended, 1);
	hears_the_end(fd);
}

/* --- those who do not read ------------------------------------------------------------------- */

static void who_does_not_read_what_it_is_told_is_ended(void **state)
{
	int fd, other;

	serve(&patient);
	fd = comes();
	other = comes();
	says(fd, "much 2000000\n");
	asks(other, "hello\n", "hello\n");
	connections_become(1);
	assert_int_equal(ended, 1);
	asks(other, "hello\n", "hello\n");
	close(fd);
	close(other);
	connections_become(0);
}

static void who_does_not_read_an_answer_in_time_is_ended(void **state)
{
	const struct stream_service service = hasty(50, 3600000);
	int fd;

	serve(&service);
	fd = comes();
	says(fd, "much 900000\n");
	connections_become(0);
	close(fd);
}

/* Of what nobody reads a server keeps so much, and the user for whom it keeps most pays. */
static void unread_answers_have_a_limit_and_who_has_most_makes_room(void **state)
{
	enum {
		ALL = 100,
		BYTES = 900000,
		KERNEL = 100000, /* has at most so many of them */
	};
	static char text[BYTES];
	int fd[ALL], first, last;

	if (geteuid() != 0)
		skip();
	serve(&patient);
	first = comes(); /* the oldest of all */
	says(first, "much 900000\n");
	turn();
	assert_int_equal(seteuid(NOBODY), 0);
	for (int i = 0; i < ALL; i++) {
		fd[i] = comes();
		says(fd[i], "much 900000\n");
		turn();
	}
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(said, 1 + ALL);
	assert_in_range(stream_connections(server), 16, (32 << 20) / (BYTES - KERNEL));
	last = comes();
	asks(last, "hello\n", "hello\n");
	assert_int_equal(reads(first, text, sizeof(text)), sizeof(text));
	assert_int_equal(reads(fd[ALL - 1], text, sizeof(text)), sizeof(text));
	asks(first, "hello\n", "hello\n");
	for (int i = 0; i < ALL; i++)
		close(fd[i]);
	close(first);
	close(last);
	connections_become(0);
}

static void says_many(int fd, size_t bytes)
{
	static const char text[65536];

	while (bytes) {
		ssize_t n = send(fd, text, bytes < sizeof(text) ? bytes : sizeof(text),
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			turn();
		else if (n < 0) /* it has ended */
			return;
		else
			bytes -= n;
	}
	turn();
}

/* What is not a whole request yet is in the same limit. */
static void long_requests_have_a_limit_and_who_has_most_makes_room(void **state)
{
	enum {
		ALL = 100,
		BYTES = 600000,
	};
	struct stream_service service = patient;
	int fd[ALL], first;

	if (geteuid() != 0)
		skip();
	request_most = service.request_bytes_max = 1 << 20;
	serve(&service);
	first = comes(); /* the oldest of all */
	says_many(first, BYTES);
	assert_int_equal(seteuid(NOBODY), 0);
	for (int i = 0; i < ALL; i++) {
		fd[i] = comes();
		says_many(fd[i], BYTES);
	}
	assert_int_equal(seteuid(0), 0);
	connections_become(32);
	asks(fd[ALL - 1], "bye\n", ""); /* the end of a long one */
	asks(first, "\n", "");
	turn();
	assert_int_equal(said, 2);
	for (int i = 0; i < ALL; i++)
		close(fd[i]);
	close(first);
	connections_become(0);
}

static void who_is_kept_has_a_time_to_read(void **state)
{
	const struct stream_service service = hasty(200, 200);
	static char text[900000];
	int slow, quick;

	serve(&service);
	quick = comes();
	asks(quick, "keep\n", "kept\n");
	says(quick, "much 900000\n");
	assert_int_equal(reads(quick, text, sizeof(text)), sizeof(text));
	slow = comes();
	asks(slow, "keep\n", "kept\n");
	says(slow, "much 900000\n");
	connections_become(1);
	asks(quick, "hello\n", "hello\n");
	close(slow);
	close(quick);
	connections_become(0);
}

static void who_reads_late_gets_every_byte(void **state)
{
	static char text[1000000];
	int fd;

	serve(&patient);
	assert_int_equal(tcp_listen(AF_INET), 0);
	for (int i = 0; i < 2; i++) {
		fd = i ? tcp_comes(AF_INET) : comes();
		says(fd, "much 1000000\n");
		turn();
		memset(text, 0, sizeof(text));
		assert_int_equal(reads(fd, text, sizeof(text)), sizeof(text));
		for (size_t k = 0; k < sizeof(text); k++)
			assert_int_equal(text[k], 'x');
		asks(fd, "hello\n", "hello\n");
		close(fd);
		connections_become(0);
	}
}

/* --- ends ------------------------------------------------------------------------------------ */

static void who_has_ended_its_half_is_answered_first(void **state)
{
	static char text[900000];
	int fd;

	serve(&patient);
	assert_int_equal(tcp_listen(AF_INET), 0);
	for (int i = 0; i < 2; i++) {
		fd = i ? tcp_comes(AF_INET) : comes();
		says(fd, "one\ntwo\nmuch 900000\n");
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
		hears(fd, "one\ntwo\n");
		assert_int_equal(reads(fd, text, sizeof(text)), sizeof(text));
		hears_the_end(fd);
		connections_become(0);
	}
	assert_int_equal(ended, 2);
}

static void half_a_request_and_an_end_is_an_end(void **state)
{
	int fd;

	serve(&patient);
	fd = comes();
	says(fd, "hal");
	shutdown(fd, SHUT_WR);
	hears_the_end(fd);
	connections_become(0);
	assert_int_equal(said, 0);
}

static void who_closes_anywhere_ends_once(void **state)
{
	static const char *const before[] = { "",	  "hal",	   "one\n",
					      "one\nhal", "much 900000\n", "much 2000000\n",
					      "bye\n",	  "keep\n" };
	unsigned int count = sizeof(before) / sizeof(*before);

	serve(&patient);
	assert_int_equal(tcp_listen(AF_INET), 0);
	for (unsigned int i = 0; i < 4 * count; i++) {
		int fd = i & 1 ? tcp_comes(AF_INET) : comes();
		const struct linger reset = { .l_onoff = 1 };

		if (*before[i / 4])
			says(fd, before[i / 4]);
		if (i & 2) /* over TCP: without a word */
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		turn();
		close(fd);
		connections_become(0);
		assert_int_equal(ended, i + 1);
	}
}

static void a_server_that_closes_ends_everybody(void **state)
{
	static const char *const before[] = {
		"", "hal", "one\n", "much 900000\n", "bye\n", "keep\n"
	};
	int fd[6];

	serve(&patient);
	for (int i = 0; i < 6; i++) {
		fd[i] = comes();
		if (*before[i])
			says(fd[i], before[i]);
	}
	connections_become(6);
	stream_server_close(server);
	server = NULL;
	assert_int_equal(ended, 6);
	for (int i = 0; i < 6; i++)
		close(fd[i]);
	turn(); /* nothing of them is left in the loop */
}

/* --- many ------------------------------------------------------------------------------------ */

static void those_who_ask_do_not_wait_for_those_who_do_not(void **state)
{
	enum {
		ALL = 500
	};
	const struct stream_service service = hasty(LIMIT_MS * 10ull, LIMIT_MS * 10ull);
	int fd[ALL], asked = 0;

	serve(&service);
	assert_int_equal(tcp_listen(AF_INET), 0);
	for (int i = 0; i < ALL; i++) {
		fd[i] = i & 1 ? tcp_comes(AF_INET) : comes();
		if (i % 5 == 1)
			says(fd[i], "hal");
		if (i % 5 == 2) {
			says(fd[i], "bad\n\x01\xff\n\n\n");
			shutdown(fd[i], SHUT_WR);
		}
		if (i % 5 > 2)
			says(fd[i], "hello\n");
	}
	for (int i = 0; i < ALL; i++)
		if (i % 5 > 2) {
			hears(fd[i], "hello\n");
			asks(fd[i], "again\n", "again\n");
			asked++;
		}
	assert_int_equal(asked, 200);
	for (int i = 2; i < ALL; i += 5) {
		hears(fd[i], "no\n");
		hears_the_end(fd[i]);
	}
	connections_become(400); /* nobody else was ended for that */
	for (int i = 0; i < ALL; i++)
		if (i % 5 != 2)
			close(fd[i]);
	connections_become(0);
	assert_int_equal(ended, ALL);
}

/* One event in a turn of the loop would be 500 turns, and each looks at all that is ready. */
static void many_that_end_at_once_take_few_turns(void **state)
{
	enum {
		ALL = 500
	};
	int fd[ALL], turns = 0;

	serve(&patient);
	for (int i = 0; i < ALL; i++) {
		fd[i] = comes();
		turn();
	}
	connections_become(ALL);
	for (int i = 0; i < ALL; i++)
		close(fd[i]);
	for (; stream_connections(server); turns++)
		assert_true(sd_event_run(loop, LIMIT_MS * 1000ull) > 0);
	assert_in_range(turns, 1, ALL / 4);
}

static void one_address_has_not_all_places(void **state)
{
	struct stream_service service = patient;
	int fd[3], other;

	service.address_max = 2;
	serve(&service);
	assert_int_equal(tcp_listen(AF_INET), 0);
	other = comes();
	for (int i = 0; i < 3; i++) {
		fd[i] = tcp_comes(AF_INET);
		if (!i)
			asks(fd[i], "keep\n", "kept\n"); /* that does not count */
	}
	connections_become(4);
	close(tcp_comes(AF_INET));
	hears(fd[1], "refused EBUSY\n");
	hears_the_end(fd[1]);
	asks(fd[0], "hello\n", "hello\n");
	asks(other, "hello\n", "hello\n");
	for (int i = 0; i < 3; i += 2)
		close(fd[i]);
	close(other);
	connections_become(0);
}

static void one_too_many_is_told_so(void **state)
{
	struct stream_service service = patient;
	int fd[3], late;

	service.connections_max = 3;
	serve(&service);
	for (int i = 0; i < 3; i++) {
		fd[i] = comes();
		asks(fd[i], "keep\n", "kept\n");
	}
	late = comes();
	hears(late, "refused EBUSY\n");
	hears_the_end(late);
	close(fd[1]);
	connections_become(2);
	fd[1] = comes();
	asks(fd[1], "hello\n", "hello\n");
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	connections_become(0);
	assert_int_equal(ended, 4); /* who was turned away never was a connection */
}

static void strangers_who_fill_a_server_keep_nobody_out(void **state)
{
	enum {
		ALL = 8
	};
	struct stream_service service = patient;
	int kept, silent[2 * ALL], fd;

	service.connections_max = ALL;
	serve(&service);
	kept = comes(); /* the oldest of all */
	asks(kept, "keep\n", "kept\n");
	for (int i = 0; i < 2 * ALL; i++) {
		silent[i] = comes();
		turn();
		assert_in_range(stream_connections(server), 1, ALL);
	}
	fd = comes();
	asks(fd, "hello\n", "hello\n");
	asks(kept, "hello\n", "hello\n");
	for (int i = 0; i < 2 * ALL; i++) {
		bool went = i < 2 * ALL - (ALL - 2); /* two places are ours */

		assert_int_equal(happens(silent[i], POLLIN, 0), went);
		if (went)
			hears(silent[i], "refused EBUSY\n");
		close(silent[i]);
	}
	close(fd);
	close(kept);
	connections_become(0);
	assert_int_equal(ended, 2 * ALL + 2);
}

/* Who has few connections keeps them when another user takes all that there are. */
static void one_user_has_not_all_places(void **state)
{
	enum {
		ALL = 8
	};
	struct stream_service service = patient;
	int fd, other[2 * ALL];

	if (geteuid() != 0)
		skip();
	service.connections_max = ALL;
	serve(&service);
	fd = comes();
	turn();
	assert_int_equal(seteuid(NOBODY), 0);
	for (int i = 0; i < 2 * ALL; i++) {
		other[i] = comes();
		turn();
	}
	assert_int_equal(seteuid(0), 0);
	asks(fd, "hello\n", "hello\n");
	for (int i = 0; i < 2 * ALL; i++)
		close(other[i]);
	close(fd);
	connections_become(0);
}

/* Without a file descriptor to accept with, the loop must neither spin nor forget. */
static void who_finds_no_file_descriptor_is_told_so(void **state)
{
	struct rlimit before, none;
	int fd, first;

	serve(&patient);
	first = comes();
	asks(first, "hello\n", "hello\n");
	fd = comes();
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){ .rlim_cur = fd + 1, .rlim_max = before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	turn();
	setrlimit(RLIMIT_NOFILE, &before);
	hears(fd, "refused EBUSY\n");
	hears_the_end(fd);
	asks(first, "hello\n", "hello\n");
	fd = comes();
	asks(fd, "hello\n", "hello\n");
	close(fd);
	close(first);
	connections_become(0);
}

/* A machine that has died ends its connection in a minute or so, not in two hours. */
static void a_dead_machine_is_noticed(void **state)
{
	int fd, idle = 0, interval = 0, count = 0, seen = 0;

	serve(&patient);
	assert_int_equal(tcp_listen(AF_INET), 0);
	fd = tcp_comes(AF_INET);
	asks(fd, "hello\n", "hello\n");
	for (int i = 3; i < 64; i++) {
		socklen_t length = sizeof(int);
		int on = 0;

		if (i == fd || getsockopt(i, SOL_SOCKET, SO_KEEPALIVE, &on, &length) < 0 || !on)
			continue;
		seen++;
		assert_int_equal(getsockopt(i, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &length), 0);
		assert_int_equal(getsockopt(i, IPPROTO_TCP, TCP_KEEPINTVL, &interval, &length), 0);
		assert_int_equal(getsockopt(i, IPPROTO_TCP, TCP_KEEPCNT, &count, &length), 0);
	}
	assert_int_equal(seen, 1);
	assert_in_range(idle + interval * count, 10, 60);
	close(fd);
	connections_become(0);
}

/* --- who is it ------------------------------------------------------------------------------- */

/* Another process asks whether it may, and says what it heard. */
static void another_user_asks(uid_t uid, gid_t gid, gid_t extra, const char *expected)
{
	int pipes[2];
	char heard[8] = "";
	pid_t pid;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct sockaddr_un address = { .sun_family = AF_UNIX };
		int fd = fd_is(socket(AF_UNIX, SOCK_STREAM, 0));

		memcpy(address.sun_path, path, sizeof(path));
		if (setgroups(extra != (gid_t)-1, &extra) < 0 || setgid(gid) < 0 ||
		    setuid(uid) < 0 || connect(fd, (void *)&address, sizeof(address)) < 0 ||
		    send(fd, "may\n", 4, 0) != 4 || recv(fd, heard, sizeof(heard), 0) < 0)
			snprintf(heard, sizeof(heard), "error");
		_exit(write(pipes[1], heard, sizeof(heard)) != sizeof(heard));
	}
	close(pipes[1]);
	assert_int_equal(reads(pipes[0], heard, sizeof(heard)), 0);
	assert_int_equal(read(pipes[0], heard, sizeof(heard)), sizeof(heard));
	close(pipes[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_string_equal(heard, expected);
}

static void only_root_and_the_group_may(void **state)
{
	if (geteuid() != 0)
		skip();
	serve(&patient);
	another_user_asks(0, 0, -1, "yes\n");
	another_user_asks(NOBODY, NOBODY, -1, "no\n");
	another_user_asks(NOBODY, GROUP, -1, "no\n"); /* no group is configured */
	another_user_asks(NOBODY, 0, -1, "no\n"); /* the group of root is not root */
	group = GROUP;
	another_user_asks(0, 0, -1, "yes\n");
	another_user_asks(NOBODY, GROUP, -1, "yes\n");
	another_user_asks(NOBODY, NOBODY, GROUP, "yes\n");
	another_user_asks(NOBODY, NOBODY, GROUP + 1, "no\n");
	connections_become(0);
}

static void nobody_may_over_tcp(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int fd;

	serve(&patient);
	assert_int_equal(tcp_listen(AF_INET), 0);
	fd = tcp_comes(AF_INET);
	group = getgid();
	asks(fd, "may\n", "no\n");
	assert_int_equal(getsockname(fd, (void *)&address, &length), 0);
	close(fd);
	connections_become(0);
}

static void a_group_is_found_by_its_name(void **state)
{
	gid_t found = 1;

	assert_int_equal(stream_group_find("key", "root", &found, &why), 0);
	assert_int_equal(found, 0);
	assert_int_equal(stream_group_find("key", "no-such-group", &found, &why), -ENOENT);
	assert_non_null(strstr(why.text, "no-such-group"));
	assert_int_equal(found, 0);
}

/* --- listening ------------------------------------------------------------------------------- */

static void a_socket_has_its_mode_and_group(void **state)
{
	mode_t before = umask(0077);
	struct stat s;

	assert_int_equal(stream_server_open(loop, &patient, &server, &server), 0);
	assert_int_equal(stream_listen_unix(server, path, 0660, geteuid() ? -1 : GROUP, &why), 0);
	assert_int_equal(umask(before), 0077);
	assert_int_equal(stat(path, &s), 0);
	assert_int_equal(s.st_mode & 07777, 0660);
	assert_int_equal(s.st_gid, geteuid() ? getegid() : GROUP);
}

static void a_socket_that_nobody_listens_on_is_replaced(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int dead = fd_is(socket(AF_UNIX, SOCK_STREAM, 0)), fd;

	memcpy(address.sun_path, path, sizeof(path));
	assert_int_equal(bind(dead, (void *)&address, sizeof(address)), 0);
	assert_int_equal(listen(dead, 1), 0);
	close(dead);
	serve(&patient);
	fd = comes();
	asks(fd, "hello\n", "hello\n");
	close(fd);
	connections_become(0);
}

static void a_socket_that_somebody_listens_on_stays(void **state)
{
	struct stream_server *second = NULL;
	int fd;

	serve(&patient);
	assert_int_equal(stream_server_open(loop, &patient, &server, &second), 0);
	assert_int_equal(stream_listen_unix(second, path, 0666, -1, &why), -EADDRINUSE);
	assert_non_null(strstr(why.text, path));
	stream_server_close(second);
	fd = comes();
	asks(fd, "hello\n", "hello\n");
	close(fd);
	connections_become(0);
}

static void what_is_no_socket_stays(void **state)
{
	int fd = fd_is(open(path, O_WRONLY | O_CREAT, 0600));
	struct stat s;

	assert_int_equal(write(fd, "precious", 8), 8);
	close(fd);
	assert_int_equal(stream_server_open(loop, &patient, &server, &server), 0);
	assert_int_equal(stream_listen_unix(server, path, 0666, -1, &why), -EEXIST);
	assert_non_null(strstr(why.text, path));
	assert_int_equal(stat(path, &s), 0);
	assert_true(S_ISREG(s.st_mode) && s.st_size == 8);
	unlink(path);
}

static void the_name_of_a_socket_has_107_bytes(void **state)
{
	char name[130];

	assert_int_equal(stream_server_open(loop, &patient, &server, &server), 0);
	memset(name, 'a', sizeof(name));
	memcpy(name, directory, strlen(directory));
	name[strlen(directory)] = '/';
	name[108] = '\0';
	assert_int_equal(stream_listen_unix(server, name, 0666, -1, &why), -ENAMETOOLONG);
	name[107] = '\0';
	assert_int_equal(stream_listen_unix(server, name, 0666, -1, &why), 0);
}

static void an_address_is_listened_on_once(void **state)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	struct sockaddr_storage storage = { 0 };
	socklen_t length = sizeof(address);
	int other = fd_is(socket(AF_INET6, SOCK_STREAM, 0));

	assert_int_equal(bind(other, (void *)&address, sizeof(address)), 0);
	assert_int_equal(listen(other, 1), 0);
	assert_int_equal(getsockname(other, (void *)&address, &length), 0);
	memcpy(&storage, &address, sizeof(address));
	assert_int_equal(stream_server_open(loop, &patient, &server, &server), 0);
	assert_int_equal(stream_listen_tcp(server, &storage, &why), -EADDRINUSE);
	close(other);
	assert_int_equal(stream_listen_tcp(server, &storage, &why), 0);
}

/* What a configuration may name: a socket and 16 addresses. */
static void a_server_listens_in_17_places(void **state)
{
	serve(&patient);
	for (int i = 0; i < 16; i++)
		assert_int_equal(tcp_listen(AF_INET), 0);
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(a_request_is_answered_on_every_kind_of_socket),
		FACT(where_a_connection_over_tcp_comes_in_is_known),
		FACT(a_request_may_come_byte_by_byte),
		FACT(requests_in_one_write_are_answered_in_order),
		FACT(nobody_waits_for_all_that_another_one_asks),
		FACT(short_requests_go_before_long_ones),
		FACT(who_has_less_patience_goes_first),
		FACT(who_has_patience_has_turns_too),
		FACT(who_waits_for_its_turn_may_go),
		FACT(who_does_not_read_is_not_answered_further),
		FACT(a_request_has_at_most_so_many_bytes),
		FACT(one_who_goes_on_sending_still_hears_why_not),
		FACT(what_is_refused_ends_and_its_rest_is_not_read),
		FACT(who_says_nothing_is_late),
		FACT(half_a_request_is_late_however_many_came_before),
		FACT(bytes_now_and_then_do_not_buy_time),
		FACT(who_asks_nothing_more_goes_after_the_idle_time),
		FACT(who_is_kept_may_be_quiet),
		FACT(what_was_said_before_a_reset_is_read),
		FACT(who_never_hangs_up_is_ended),
		FACT(who_does_not_read_what_it_is_told_is_ended),
		FACT(who_does_not_read_an_answer_in_time_is_ended),
		FACT(unread_answers_have_a_limit_and_who_has_most_makes_room),
		FACT(long_requests_have_a_limit_and_who_has_most_makes_room),
		FACT(who_is_kept_has_a_time_to_read),
		FACT(who_reads_late_gets_every_byte),
		FACT(who_has_ended_its_half_is_answered_first),
		FACT(half_a_request_and_an_end_is_an_end),
		FACT(who_closes_anywhere_ends_once),
		FACT(a_server_that_closes_ends_everybody),
		FACT(those_who_ask_do_not_wait_for_those_who_do_not),
		FACT(many_that_end_at_once_take_few_turns),
		FACT(one_address_has_not_all_places),
		FACT(one_too_many_is_told_so),
		FACT(strangers_who_fill_a_server_keep_nobody_out),
		FACT(one_user_has_not_all_places),
		FACT(who_finds_no_file_descriptor_is_told_so),
		FACT(a_dead_machine_is_noticed),
		FACT(only_root_and_the_group_may),
		FACT(nobody_may_over_tcp),
		FACT(a_group_is_found_by_its_name),
		FACT(a_socket_has_its_mode_and_group),
		FACT(a_socket_that_nobody_listens_on_is_replaced),
		FACT(a_socket_that_somebody_listens_on_stays),
		FACT(what_is_no_socket_stays),
		FACT(the_name_of_a_socket_has_107_bytes),
		FACT(an_address_is_listened_on_once),
		FACT(a_server_listens_in_17_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
