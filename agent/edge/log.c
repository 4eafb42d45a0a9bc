// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

enum {
	LINE_BYTES = 2048, /* fits a pipe that has any room */
};

static enum log_level level_most = LOG_LEVEL_INFO;
static unsigned int lines_lost; /* since the last one that was written */

static const struct {
	const char *name;
	const char *journal;
} levels[] = {
	[LOG_LEVEL_ERROR] = { "error", SD_ERR },
	[LOG_LEVEL_WARNING] = { "warning", SD_WARNING },
	[LOG_LEVEL_INFO] = { "info", SD_INFO },
	[LOG_LEVEL_DEBUG] = { "debug", SD_DEBUG },
};

void log_level_set(enum log_level most) { level_most = most; }

/* The journal knows the time and the level; people at a terminal do not. */
static int prefix_print(char *line, enum log_level level)
{
	struct timespec now;
	struct tm utc;

	if (getenv("JOURNAL_STREAM"))
		return snprintf(line, LINE_BYTES, "%s", levels[level].journal);
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	return snprintf(line, LINE_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ %s ",
			utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
			utc.tm_sec, now.tv_nsec / 1000000, levels[level].name);
}

/* Ends the line. False: there is no room now, and the agent does not wait for who reads its log. */
static bool line_write(char *line, int n)
{
	struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };
	ssize_t written;

	line[n++] = '\n';
	if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
		return false;
	written = send(STDERR_FILENO, line, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (written < 0 && errno == ENOTSOCK)
		written = write(STDERR_FILENO, line, n);
	return written == n;
}

static bool losses_say(void)
{
	char line[LINE_BYTES + 1];
	int n = prefix_print(line, LOG_LEVEL_WARNING);

	n += snprintf(line + n, LINE_BYTES - n, "log lines lost: nobody read them: lines=%u",
		      lines_lost);
	if (!line_write(line, n))
		return false;
	lines_lost = 0;
	return true;
}

void log_say(enum log_level level, const char *what, const char *facts, ...)
{
	char line[LINE_BYTES + 1];
	va_list values;
	int n;

	if (level > level_most)
		return;
	n = prefix_print(line, level);
	n += snprintf(line + n, LINE_BYTES - n, "%s%s", what, *facts ? ": " : "");
	if (n < LINE_BYTES) {
		va_start(values, facts);
		vsnprintf(line + n, LINE_BYTES - n, facts, values);
		va_end(values);
	}
	for (char *c = line; *c; c++) /* what others sent must not make lines of its own */
		if (*c < ' ' || *c > '~')
			*c = '?';
	if ((lines_lost && !losses_say()) || !line_write(line, (int)strlen(line)))
		lines_lost++;
}
