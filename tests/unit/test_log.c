// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The log into a pipe that nobody reads for a while. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/edge/log.h"

enum {
	LINES = 2000, /* of 100 bytes or so: a pipe has room for 65,536 bytes */
};

/* What was in the pipe; the caller's. */
static char *drain(int fd)
{
	char *text = calloc(1, 1 << 20);
	ssize_t n = read(fd, text, (1 << 20) - 1);

	assert_true(text && n >= 0);
	return text;
}

static void nobody_waits_for_who_reads_the_log(void **state)
{
	int ends[2], before = dup(STDERR_FILENO);
	unsigned int there = 0, lost = 0;
	char *text, *at;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	for (int i = 0; i < LINES; i++)
		log_say(LOG_LEVEL_INFO, "line", "number=%04d %050d", i, 0);
	text = drain(ends[0]);
	for (at = text; (at = strchr(at, '\n')); at++)
		there++;
	free(text);
	log_say(LOG_LEVEL_INFO, "last", "a=b");
	text = drain(ends[0]);
	dup2(before, STDERR_FILENO);
	assert_in_range(there, 100, LINES - 1);
	at = strstr(text, "lines=");
	assert_non_null(at);
	lost = strtoul(at + strlen("lines="), NULL, 10);
	assert_int_equal(there + lost, LINES);
	assert_non_null(strstr(at, "info last: a=b\n"));
	free(text);
	close(ends[0]);
	close(ends[1]);
	close(before);
}

int main(void)
{
	const struct CMUnitTest facts[] = {
		cmocka_unit_test(nobody_waits_for_who_reads_the_log),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(facts, NULL, NULL);
}
