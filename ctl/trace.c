// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tallyctl trace: prints sampled packets, a line each, until the user ends it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "connection.h"
#include "ctl.h"
#include "table.h"

/* The widths are fixed, because later lines are not known. */
#define HEADINGS "%14s  %-12s %-16s %5s %10s  %-12s %-15s %-12s %6s\n"
#define EVENT "%14.6f  %-12s %-16s %5.0f %10.0f  %-12s %-15s %-12s %6.0f\n"

/* Times are seconds since the first line. */
static void event_print(const json_t *event, double *began_ns)
{
	double time_ns = field_number(event, "time_ns");
	struct cell job = { 0 }, port = { 0 };

	if (*began_ns < 0)
		*began_ns = time_ns;
	cell_text(event, "name", &job);
	if (!strcmp(job.text, "-"))
		cell_number(event, "job", &job);
	cell_text(event, "port", &port);
	printf(EVENT, (time_ns - *began_ns) / 1e9, field_text(event, "outcome"), job.text,
	       field_number(event, "epoch"), field_number(event, "seq"), field_text(event, "ranks"),
	       port.text, field_text(event, "kind"), field_number(event, "bytes"));
}

static void line_print(const struct ctl *ctl, const json_t *line, double *began_ns)
{
	if (ctl->json)
		ctl_dump(line);
	else if (field(line, "lost"))
		printf("%s%.0f packets are missing here: the trace had no room%s\n",
		       style_begin(&ctl->style, COLOUR_YELLOW), field_number(line, "lost"),
		       style_end(&ctl->style, COLOUR_YELLOW));
	else
		event_print(line, began_ns);
}

/* Prints all lines that have come. 1: the reader of our output has gone. */
static int lines_take(const struct ctl *ctl, struct connection *c, double *began_ns,
		      struct why *why)
{
	int r;

	for (;;) {
		_cleanup_(json_decrefp) json_t *line = NULL;

		r = connection_next(c, &line, why);
		if (r < 0)
			break;
		if (!ctl->json)
			ctl_disarm(line);
		line_print(ctl, line, began_ns);
	}
	if (fflush(stdout) == EOF)
		return 1;
	return r == -EAGAIN ? 0 : r;
}

/* ^C and SIGTERM end a trace. */
static int signals_open(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

int trace(const struct ctl *ctl, struct why *why)
{
	_cleanup_(connection_closep) struct connection *c = NULL;
	_cleanup_(json_decrefp) json_t *request = request_make(ctl), *result = NULL;
	_cleanup_(closep) int signals = signals_open();
	double began_ns = -1;
	int r;

	if (signals < 0)
		return -errno;
	r = connection_open(ctl->socket, ctl->timeout_ms, &c, why);
	if (r == 0)
		r = connection_ask(c, request, &result, why);
	if (r == 0 && !ctl->json)
		printf(HEADINGS, "SECONDS", "OUTCOME", "JOB", "EPOCH", "SEQ", "RANKS", "PORT",
		       "KIND", "BYTES");
	while (r == 0) {
		/* An event of standard output means that its reader has gone. */
		struct pollfd fds[] = { { .fd = connection_fd(c), .events = POLLIN },
					{ .fd = signals, .events = POLLIN },
					{ .fd = STDOUT_FILENO, .events = 0 } };

		r = lines_take(ctl, c, &began_ns, why);
		if (r == 0 && poll(fds, 3, -1) < 0 && errno != EINTR)
			r = -errno;
		if (r == 0 && (fds[1].revents || fds[2].revents))
			return 0;
	}
	return r > 0 ? 0 : r;
}
