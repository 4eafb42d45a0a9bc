// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long `status` takes as others see it, and the noise meanwhile (tests/e2e/latency.sh).
 *
 *	latency ask CONTROL SECONDS PID
 *		asks each 10 ms, whether or not answers come; says how many asked, failed; median,
 *		99th percentile and slowest in ms; how many percent of a core PID used
 *	latency strangers ADDRESS PORT COUNT
 *		come over TCP and say nothing; all go at once
 *	latency members JOIN TOKENS COUNT
 *		join and wait for others; all go at once
 *	latency stay JOIN TOKENS COUNT
 *		join and stay
 *	latency lost JOIN TOKENS COUNT
 *		join jobs of one worker, where nobody finds them
 *	latency list CONTROL COUNT
 *		so many connections ask for all jobs, over and over
 *	latency delete CONTROL TOKENS COUNT
 *		the first of these jobs, all at once; says how many ms that took, and stays
 *
 * TOKENS is a file: in each line a job, its token and the number of its workers. All but `ask` say
 * "ready", and end by a signal. A crowd that is complete waits for SIGUSR1 before it goes; then it
 * comes and goes on its own. Workers have 2,000 addresses from 10.99.0.1 on; those that are lost
 * have 100 below 10.98.0.0.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/address.h"
#include "common/clock.h"
#include "client/join_private.h"

enum {
	PACE_MS = 10,
	PATIENCE_S = 60, /* after the last question */
	FILES = 20000,
	JOBS_MAX = 256,
	ADDRESSES = 2000,
	LOST = 100,
	JOIN_TIMEOUT_MS = 60000,
};

static struct job {
	char name[NAME_BYTES], token[TOKEN_BYTES];
	unsigned int workers;
} job[JOBS_MAX];
static unsigned int jobs;

static unsigned long number(const char *text) { return strtoul(text, NULL, 10); }

static void *room(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (!p)
		err(1, "no memory");
	return p;
}

/* -EAGAIN: all places in the queue are taken. */
static int try_connect(const char *path, int flags)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (void *)&to, sizeof(to)) == 0)
		return fd;
	if (fd < 0 || errno != EAGAIN)
		err(1, "%s", path);
	close(fd);
	return -EAGAIN;
}

static void ready(bool crowd)
{
	static bool waited;
	sigset_t go;
	int which;

	if (waited)
		return;
	waited = true;
	puts("ready");
	fflush(stdout);
	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	if (crowd)
		sigwait(&go, &which);
}

/* --- asking ---------------------------------------------------------------------------------- */

struct question {
	int fd; /* below 0: no connection yet */
	uint64_t due_ns;
};

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct shares {
	unsigned long long ran_ns, waited_ns;
};

static struct shares shares_read(const char *pid)
{
	char path[64], text[128], *end;
	struct shares s;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/schedstat", pid);
	f = fopen(path, "re");
	if (!f || !fgets(text, sizeof(text), f))
		err(1, "%s", path);
	fclose(f);
	s.ran_ns = strtoull(text, &end, 10);
	s.waited_ns = strtoull(end, NULL, 10);
	return s;
}

static void put(struct question *q, const char *control)
{
	static const char text[] = "{\"do\": \"status\"}\n";

	q->fd = try_connect(control, SOCK_NONBLOCK);
	if (q->fd >= 0 && send(q->fd, text, sizeof(text) - 1, MSG_NOSIGNAL) < 0)
		warn("send");
}

/* 1: right; -1: no answer, or a wrong one; 0: wait. */
static int answered(const struct question *q)
{
	char text[8192];
	ssize_t n = q->fd < 0 ? -1 : recv(q->fd, text, sizeof(text), MSG_DONTWAIT | MSG_PEEK);

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return -1;
	if (!memchr(text, '\n', n))
		return 0;
	return strncmp(text, "{\"ok\": true", 11) ? -1 : 1;
}

static void ask(const char *control, unsigned long seconds, const char *pid)
{
	const size_t total = seconds * 1000 / PACE_MS;
	struct question *q = room(total, sizeof(*q));
	struct pollfd *p = room(total, sizeof(*p));
	double *ms = room(total, sizeof(*ms)), all_ns;
	struct shares before = shares_read(pid), after;
	const uint64_t began_ns = clock_now_ns();
	size_t begun = 0, open = 0, done = 0, failed = 0;

	while (done < total) {
		uint64_t now_ns = clock_now_ns();

		for (; begun < total && began_ns + begun * PACE_MS * 1000000 <= now_ns; begun++)
			q[open++] = (struct question){ -1, began_ns + begun * PACE_MS * 1000000 };
		for (size_t i = 0; i < open; i++) {
			if (q[i].fd < 0)
				put(&q[i], control);
			p[i] = (struct pollfd){ .fd = q[i].fd, .events = POLLIN };
		}
		poll(p, open, 1);
		now_ns = clock_now_ns();
		for (size_t i = open; i-- > 0;) {
			bool late = now_ns > began_ns + (seconds + PATIENCE_S) * 1000000000ull;
			int a = late ? -1 : p[i].revents ? answered(&q[i]) : 0;

			if (!a)
				continue;
			failed += a < 0;
			ms[done++] = (now_ns - q[i].due_ns) / 1e6;
			if (q[i].fd >= 0)
				close(q[i].fd);
			q[i] = q[open - 1];
			p[i] = p[--open];
		}
	}
	after = shares_read(pid);
	all_ns = clock_now_ns() - began_ns;
	qsort(ms, total, sizeof(*ms), by_size);
	printf("%zu %zu %.1f %.1f %.1f %.1f %.1f\n", total, failed, ms[total / 2],
	       ms[total * 99 / 100], ms[total - 1], 100 * (after.ran_ns - before.ran_ns) / all_ns,
	       100 * (after.waited_ns - before.waited_ns) / all_ns);
}

/* --- crowds ---------------------------------------------------------------------------------- */

static void strangers(const char *address, const char *port, unsigned long count)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(number(port)) };
	const struct linger reset = { .l_onoff = 1 }; /* or their TCP ports are used up soon */
	int *fd = room(count, sizeof(*fd));

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		errx(2, "%s: no IPv4 address", address);
	for (;;) {
		for (unsigned long i = 0; i < count; i++) {
			fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
			if (fd[i] < 0 || connect(fd[i], (void *)&to, sizeof(to)) < 0)
				err(1, "%s", address);
			setsockopt(fd[i], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		}
		ready(true);
		for (unsigned long i = 0; i < count; i++)
			close(fd[i]);
	}
}

static void tokens_read(const char *path)
{
	FILE *f = fopen(path, "re");
	char workers[16];

	if (!f)
		err(1, "%s", path);
	while (jobs < JOBS_MAX &&
	       fscanf(f, "%63s %128s %15s", job[jobs].name, job[jobs].token, workers) == 3)
		job[jobs++].workers = strtoul(workers, NULL, 10);
	fclose(f);
	if (!jobs)
		errx(2, "%s: no jobs", path);
}

static int join(const char *path, const struct job *of, int rank, const char *address)
{
	const struct tally_join_options options = {
		.agent = path, .job = of->name, .token = of->token, .rank = rank, .address = address
	};
	static struct join j;

	j = (struct join){ .fd = -1 };
	join_deadline_set(&j, JOIN_TIMEOUT_MS);
	if (join_options_read(&j, &options) < 0 || join_connect(&j) < 0 || join_greet(&j) < 0)
		errx(1, "%s", tally_error());
	j.request.address = j.local;
	if (join_request_send(&j) < 0)
		errx(1, "%s", tally_error());
	return j.fd;
}

/* Worker number n, in the n-th place of the jobs. */
static int join_next(const char *path, unsigned long n)
{
	unsigned long at = n, i;
	char address[64];

	for (i = 0; at >= job[i % jobs].workers; i++)
		at -= job[i % jobs].workers;
	snprintf(address, sizeof(address), "10.99.%lu.%lu:%lu", n % ADDRESSES / 250,
		 1 + n % ADDRESSES % 250, 40000 + n / ADDRESSES);
	return join(path, &job[i % jobs], (int)at, address);
}

/* At least one word of the agent. */
static void hear(int fd)
{
	char text[JOINING_ANSWER_BYTES];
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		errx(1, "the agent has gone");
	text[n] = '\0';
	if (!strncmp(text, "error", 5))
		errx(1, "the agent says: %s", text);
}

static void members(const char *path, unsigned long count, bool stay)
{
	int *fd = room(count, sizeof(*fd));

	for (;;) {
		for (unsigned long i = 0; i < count; i++)
			fd[i] = join_next(path, i);
		for (unsigned long i = 0; i < count; i++)
			hear(fd[i]);
		ready(!stay);
		if (stay)
			pause();
		for (unsigned long i = 0; i < count; i++)
			close(fd[i]);
	}
}

/* Each has a job for itself, so that its run could begin; the agent says that nobody answers. */
static void lost(const char *path, unsigned long count)
{
	struct pollfd *p = room(count, sizeof(*p));
	char text[JOINING_ANSWER_BYTES], address[64];
	unsigned long n = 0;

	for (unsigned long i = 0; i < count; i++)
		p[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	for (;;) {
		for (unsigned long i = 0; i < count; i++) {
			if (p[i].fd >= 0 && !p[i].revents)
				continue;
			if (p[i].fd >= 0 && recv(p[i].fd, text, sizeof(text), 0) > 0)
				continue;
			close(p[i].fd);
			snprintf(address, sizeof(address), "10.98.0.%lu:40000", 1 + n % LOST);
			p[i].fd = join(path, &job[i % jobs], 0, address);
			n++;
		}
		ready(false);
		poll(p, count, -1);
	}
}

static void list(const char *control, unsigned long count)
{
	static const char text[] = "{\"do\": \"job-list\"}\n";
	static char answer[65536];
	struct pollfd *p = room(count, sizeof(*p));

	for (unsigned long i = 0; i < count; i++) {
		p[i] = (struct pollfd){ .fd = try_connect(control, 0), .events = POLLIN };
		if (p[i].fd >= 0)
			send(p[i].fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
	}
	ready(false);
	while (poll(p, count, -1) > 0)
		for (unsigned long i = 0; i < count; i++) {
			ssize_t n;

			if (!p[i].revents)
				continue;
			n = recv(p[i].fd, answer, sizeof(answer), MSG_DONTWAIT);
			if (n == 0 || (n < 0 && errno != EAGAIN))
				errx(1, "the agent has ended a connection");
			if (n > 0 && answer[n - 1] == '\n')
				send(p[i].fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
		}
}

static void delete_jobs(const char *control, unsigned long count)
{
	int *fd = room(count, sizeof(*fd));
	char answer[256];
	uint64_t began_ns;

	ready(true);
	began_ns = clock_now_ns();
	for (unsigned long i = 0; i < count; i++) {
		fd[i] = try_connect(control, 0);
		if (fd[i] < 0 ||
		    dprintf(fd[i], "{\"do\": \"job-del\", \"name\": \"%s\"}\n", job[i].name) < 0)
			err(1, "%s", control);
	}
	for (unsigned long i = 0; i < count; i++)
		if (recv(fd[i], answer, sizeof(answer), 0) < 11 ||
		    strncmp(answer, "{\"ok\": true", 11) != 0)
			errx(1, "job %s is not deleted", job[i].name);
	printf("%.0f\n", (clock_now_ns() - began_ns) / 1e6);
	fflush(stdout);
	pause();
}

int main(int argc, char **argv)
{
	struct rlimit files = { FILES, FILES };
	const char *what = argc > 1 ? argv[1] : "";
	sigset_t go;

	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, NULL);
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		err(1, "open files");
	if (argc == 5 && strstr("members stay lost delete", what))
		tokens_read(argv[3]);
	if (!strcmp(what, "ask") && argc == 5)
		ask(argv[2], number(argv[3]), argv[4]);
	else if (!strcmp(what, "strangers") && argc == 5)
		strangers(argv[2], argv[3], number(argv[4]));
	else if (!strcmp(what, "members") && argc == 5)
		members(argv[2], number(argv[4]), false);
	else if (!strcmp(what, "stay") && argc == 5)
		members(argv[2], number(argv[4]), true);
	else if (!strcmp(what, "lost") && argc == 5)
		lost(argv[2], number(argv[4]));
	else if (!strcmp(what, "delete") && argc == 5)
		delete_jobs(argv[2], number(argv[4]));
	else if (!strcmp(what, "list") && argc == 4)
		list(argv[2], number(argv[3]));
	else
		errx(2, "usage: see the first lines of tests/e2e/latency.c");
	return 0;
}
