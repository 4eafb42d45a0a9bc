/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Read this file first: the words that the tests of this folder are written in.
 *
 * The real tallyctl, built with sanitizers, and what stands in for the daemon: this process,
 * which listens on a real socket, checks each request byte by byte and answers as it is told.
 */
#ifndef TALLY_TESTS_CTL_HARNESS_H
#define TALLY_TESTS_CTL_HARNESS_H

#include <sys/types.h>

enum {
	HARNESS_TEXT_BYTES = 65536,
	HARNESS_WAIT_MS = 20000, /* for anything: long, as nothing should ever take it */
};

/* What the program that has ended had to say. */
extern char out[HARNESS_TEXT_BYTES], err[HARNESS_TEXT_BYTES];

/* A directory of its own with the socket in it; for cmocka's group. */
int harness_up(void **state);
int harness_down(void **state);

/* After each test: what a failed one left running ends, and does not disturb the next. */
int harness_clear(void **state);

/* A file's name in that directory. Stays valid until the next call. */
const char *harness_path(const char *name);

/* Puts arguments together; the last is NULL. */
#define ARGUMENTS(...) ((const char *const[]){ "tallyctl", __VA_ARGS__, NULL })

/*
 * Starts it, or another program by arguments[0]: with its output to a file of ours, to a file
 * descriptor, or on a terminal of so many rows and 100 columns. Errors go to a file.
 */
pid_t program_start(const char *const *arguments);
pid_t program_start_into(const char *const *arguments, int output);
pid_t program_start_on_terminal(const char *const *arguments, int rows, int *ret_terminal);

/* Its exit code; what it wrote is in `out` and `err`. Fails the test if it never ends. */
int program_end(pid_t pid);

/* The program's next connection, or -1 if it ended without one. */
int connection_take(pid_t pid);

/* Its next line, which must be this; and an answer, to which the end of line is added. */
void request_expect(int connection, const char *request);
void answer_give(int connection, const char *answer);

/* All in one: runs it, expects one request, answers, and returns the exit code. */
int ask(const char *const *arguments, const char *request, const char *answer);

/* Runs it, expects that it does not connect. */
int run(const char *const *arguments);

void assert_has(const char *text, const char *part);
void assert_has_not(const char *text, const char *part);

#endif
