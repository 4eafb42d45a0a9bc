// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "log.h"

enum {
	LINE_BYTES = 2048,
};

static enum log_level level_most = LOG_LEVEL_INFO;

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

void log_say(enum log_level level, const char *what, const char *facts, ...)
{
	char line[LINE_BYTES];
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
	fprintf(stderr, "%s\n", line);
}
