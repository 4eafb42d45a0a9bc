// SPDX-License-Identifier: GPL-2.0-only
/* tallyctl top on a real terminal: what it draws, and how it leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "harness.h"

#define ENTER "\033[?1049h"
#define LEAVE "\033[?1049l"
#define REQUEST "{\"do\":\"top\"}"

static int terminal;
static char screen[HARNESS_TEXT_BYTES]; /* all that was drawn since the last look */
static size_t drawn;
static struct termios before;

/* A job of this rate for each letter of `names`. */
static const char *frame(const char *names)
{
	static char text[HARNESS_TEXT_BYTES];
	size_t n = sprintf(text, "{\"ok\":true,\"result\":{\"time_s\":1,\"slots\":{\"total\":4096,"
				 "\"reserved\":2048,\"used\":1024,\"lent\":512},\"jobs\":[");

	for (size_t i = 0; names[i]; i++)
		n += sprintf(text + n,
			     "%s{\"name\":\"job-%c\",\"tenant\":\"red\",\"state\":\"running\","
			     "\"workers\":4,\"joined\":4,\"slots\":256,\"bytes_per_second\":%zu,"
			     "\"forecast_bytes_per_second\":%zu,\"refused_per_second\":%zu}",
			     i ? "," : "", names[i], 1000000 * (i + 1), 2000000 * (i + 1), i);
	sprintf(text + n, "],\"tenants\":[],\"links\":[]}}");
	return text;
}

static void answer(pid_t pid, const char *names)
{
	int connection = connection_take(pid);

	request_expect(connection, REQUEST);
	answer_give(connection, frame(names));
	close(connection);
}

/* Reads the terminal until this has been drawn. */
static void await_drawn(const char *part)
{
	while (!strstr(screen, part)) {
		struct pollfd fd = { .fd = terminal, .events = POLLIN };
		ssize_t n;

		if (poll(&fd, 1, HARNESS_WAIT_MS) != 1)
			fail_msg("'%s' was never drawn; there is '%s'", part, screen);
		assert_true(drawn + 1 < sizeof(screen));
		n = read(terminal, screen + drawn, sizeof(screen) - 1 - drawn);
		if (n <= 0)
			fail_msg("it ended before '%s' was drawn; there is '%s'", part, screen);
		drawn += n;
		screen[drawn] = '\0';
	}
}

static void look_away(void)
{
	drawn = 0;
	*screen = '\0';
}

static void assert_terminal_is_as_before(void)
{
	struct termios now;

	assert_int_equal(tcgetattr(terminal, &now), 0);
	assert_int_equal(now.c_lflag, before.c_lflag);
	assert_memory_equal(now.c_cc, before.c_cc, sizeof(now.c_cc));
}

/* It runs and has drawn its first frame. */
static pid_t top_start(const char *names)
{
	pid_t pid;

	look_away();
	pid = program_start_on_terminal(ARGUMENTS("top", "--interval", "1"), 24, &terminal);
	assert_int_equal(tcgetattr(terminal, &before), 0);
	assert_true(before.c_lflag & ICANON);
	answer(pid, names);
	await_drawn("q quits");
	return pid;
}

/* With 0, its terminal left as it was. */
static void assert_ends_well(pid_t pid)
{
	await_drawn(LEAVE);
	assert_terminal_is_as_before();
	assert_int_equal(program_end(pid), 0);
	assert_string_equal(err, "");
	close(terminal);
}

static void it_draws_on_a_screen_of_its_own(void **state)
{
	pid_t pid = top_start("ab");
	struct termios now;

	assert_true(strstr(screen, ENTER) < strstr(screen, "job-b"));
	assert_true(strstr(screen, "job-b") < strstr(screen, "job-a")); /* the busiest first */
	assert_has(screen, "\033[1;31m1/s\033[0m"); /* refused in red */
	assert_has(screen, "16 Mbit/s ↗");
	assert_int_equal(tcgetattr(terminal, &now), 0);
	assert_false(now.c_lflag & (ICANON | ECHO));
	assert_int_equal(write(terminal, "xq", 2), 2);
	assert_ends_well(pid);
}

static void it_draws_again_each_interval(void **state)
{
	pid_t pid = top_start("a");

	look_away();
	answer(pid, "abc");
	await_drawn("job-c");
	await_drawn("q quits");
	assert_has(screen, "█"); /* a rate that was there twice has a line */
	assert_int_equal(write(terminal, "q", 1), 1);
	assert_ends_well(pid);
}

static void interrupt_restores_the_terminal(void **state)
{
	pid_t pid = top_start("a");

	assert_int_equal(write(terminal, "\003", 1), 1); /* as the key does */
	assert_ends_well(pid);
}

static void termination_restores_the_terminal(void **state)
{
	pid_t pid = top_start("a");

	kill(pid, SIGTERM);
	assert_ends_well(pid);
}

/* No descriptor tells that: it is asked for, each millisecond. */
static void await_stopped(pid_t pid)
{
	int status = 0;
	pid_t changed = 0;

	for (int i = 0; i < HARNESS_WAIT_MS && !changed; i++) {
		changed = waitpid(pid, &status, WUNTRACED | WNOHANG);
		poll(NULL, 0, !changed);
	}
	assert_int_equal(changed, pid);
	assert_true(WIFSTOPPED(status));
}

static void suspension_restores_the_terminal_until_it_goes_on(void **state)
{
	pid_t pid = top_start("a");

	look_away();
	assert_int_equal(write(terminal, "\032", 1), 1);
	await_stopped(pid);
	await_drawn(LEAVE);
	assert_terminal_is_as_before();
	look_away();
	kill(pid, SIGCONT);
	await_drawn(ENTER);
	await_drawn("q quits");
	assert_int_equal(write(terminal, "q", 1), 1);
	assert_ends_well(pid);
}

static void a_smaller_terminal_gets_fewer_jobs(void **state)
{
	const struct winsize small = { .ws_row = 13, .ws_col = 60 };
	pid_t pid = top_start("abcdefghij");

	assert_has(screen, "job-a");
	look_away();
	assert_int_equal(ioctl(terminal, TIOCSWINSZ, &small), 0); /* which makes SIGWINCH */
	await_drawn("more");
	await_drawn("\033[J");
	assert_has(screen, "job-j");
	assert_has(screen, "job-e"); /* 13 lines have room for 6, and for how many there are */
	assert_has(screen, "+ 4 more");
	assert_has_not(screen, "job-a");
	assert_has_not(screen, "rate or priority"); /* cut at the width */
	kill(pid, SIGINT);
	assert_ends_well(pid);
}

static void it_outlives_a_daemon_that_is_restarted(void **state)
{
	pid_t pid = top_start("a");
	int connection;

	look_away();
	connection = connection_take(pid);
	request_expect(connection, REQUEST);
	close(connection);
	await_drawn("tallyd closed the connection");
	assert_has(screen, "job-a");
	look_away();
	answer(pid, "b");
	await_drawn("q quits");
	assert_has(screen, "job-b");
	kill(pid, SIGINT);
	assert_ends_well(pid);
}

static void without_a_daemon_it_never_leaves_the_ordinary_screen(void **state)
{
	pid_t pid;

	look_away();
	pid = program_start_on_terminal(ARGUMENTS("top", "--socket", "/nowhere"), 24, &terminal);
	assert_int_equal(program_end(pid), 1);
	assert_has(err, "tallyd is not running");
	assert_int_equal(read(terminal, screen, sizeof(screen)), -1); /* not a byte was drawn */
	assert_int_equal(errno, EIO);
	close(terminal);
}

static void once_is_one_frame_without_escapes(void **state)
{
	assert_int_equal(ask(ARGUMENTS("top", "--once"), REQUEST, frame("ab")), 0);
	assert_has_not(out, "\033");
	assert_has_not(out, "q quits");
	assert_has(out,
		   "slots █████░░░░░░░░░░░░░░░ 1,024 of 4,096 in use, 2,048 reserved, 512 on loan");
	assert_has(out,
		   "JOB    TENANT  STATE    WORKERS  SLOTS      RECEIVES  SUMS  AGAIN  "
		   "REFUSED\n"
		   "job-b  red     running      4/4    256   16 Mbit/s ↗     -      -      1/s\n");
}

/* Nobody joins at an inner node, and nobody is missing there. */
static void a_job_of_an_inner_node_is_not_a_dead_one(void **state)
{
	assert_int_equal(ask(ARGUMENTS("top", "--once"), REQUEST,
			     "{\"ok\":true,\"result\":{\"jobs\":[{\"name\":\"tree\",\"role\":"
			     "\"inner\",\"state\":\"running\",\"workers\":8,\"joined\":0,"
			     "\"below\":4}]}}"),
			 0);
	assert_has(out, "inner   4 of 8");
}

static void frames_go_to_a_pipe_one_after_the_other(void **state)
{
	pid_t pid = program_start(ARGUMENTS("top"));

	answer(pid, "a");
	answer(pid, "b");
	kill(pid, SIGINT);
	assert_int_equal(program_end(pid), 0);
	assert_has_not(out, "\033");
	assert_has(out, "job-a");
}

static void json_is_a_line_for_each_frame(void **state)
{
	assert_int_equal(ask(ARGUMENTS("top", "--once", "--json"), REQUEST,
			     "{\"ok\":true,\"result\":{\"jobs\":[]}}"),
			 0);
	assert_string_equal(out, "{\"jobs\":[]}\n");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(it_draws_on_a_screen_of_its_own, harness_clear),
		cmocka_unit_test_teardown(it_draws_again_each_interval, harness_clear),
		cmocka_unit_test_teardown(interrupt_restores_the_terminal, harness_clear),
		cmocka_unit_test_teardown(termination_restores_the_terminal, harness_clear),
		cmocka_unit_test_teardown(suspension_restores_the_terminal_until_it_goes_on,
					  harness_clear),
		cmocka_unit_test_teardown(a_smaller_terminal_gets_fewer_jobs, harness_clear),
		cmocka_unit_test_teardown(it_outlives_a_daemon_that_is_restarted, harness_clear),
		cmocka_unit_test_teardown(without_a_daemon_it_never_leaves_the_ordinary_screen,
					  harness_clear),
		cmocka_unit_test_teardown(once_is_one_frame_without_escapes, harness_clear),
		cmocka_unit_test_teardown(a_job_of_an_inner_node_is_not_a_dead_one, harness_clear),
		cmocka_unit_test_teardown(frames_go_to_a_pipe_one_after_the_other, harness_clear),
		cmocka_unit_test_teardown(json_is_a_line_for_each_frame, harness_clear),
	};

	return cmocka_run_group_tests(tests, harness_up, harness_down);
}
