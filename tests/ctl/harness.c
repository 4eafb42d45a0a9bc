// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

char out[HARNESS_TEXT_BYTES], err[HARNESS_TEXT_BYTES];
static char directory[] = "/tmp/tallyctl-test.XXXXXX";
static int listener = -1;
static pid_t running; /* 0: none */

const char *harness_path(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

int harness_up(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(directory))
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", harness_path("socket"));
	setenv("TALLY_SOCKET", address.sun_path, 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return listen(listener, 8);
}

int harness_down(void **state)
{
	static const char *const made[] = { "socket", "out", "err", "token" };

	close(listener);
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++)
		unlink(harness_path(made[i]));
	return rmdir(directory);
}

int harness_clear(void **state)
{
	struct pollfd fd = { .fd = listener, .events = POLLIN };

	if (running) {
		kill(running, SIGKILL);
		waitpid(running, NULL, 0);
		running = 0;
	}
	while (poll(&fd, 1, 0) == 1)
		close(accept(listener, NULL, NULL));
	return 0;
}

static void become(const char *const *arguments, int output)
{
	const char *build = getenv("TALLY_BUILD");
	char program[256];
	int error = open(harness_path("err"), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (output >= 0)
		dup2(output, STDOUT_FILENO);
	if (error >= 0)
		dup2(error, STDERR_FILENO);
	snprintf(program, sizeof(program), "%s/tests/ctl/tallyctl", build ? build : "build");
	if (!strcmp(arguments[0], "tallyctl"))
		execv(program, (char *const *)arguments);
	execvp(arguments[0], (char *const *)arguments);
	_exit(127);
}

pid_t program_start_into(const char *const *arguments, int output)
{
	pid_t pid = fork();

	if (pid == 0)
		become(arguments, output);
	assert_true(pid > 0);
	running = pid;
	return pid;
}

pid_t program_start(const char *const *arguments)
{
	int output = open(harness_path("out"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	pid_t pid;

	assert_true(output >= 0);
	pid = program_start_into(arguments, output);
	close(output);
	return pid;
}

pid_t program_start_on_terminal(const char *const *arguments, int rows, int *ret_terminal)
{
	const struct winsize size = { .ws_row = rows, .ws_col = 100 };
	pid_t pid = forkpty(ret_terminal, NULL, NULL, &size);

	if (pid == 0)
		become(arguments, -1);
	assert_true(pid > 0);
	running = pid;
	return pid;
}

static void file_read(const char *name, char *text)
{
	int fd = open(harness_path(name), O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, HARNESS_TEXT_BYTES - 1);

	text[n > 0 ? n : 0] = '\0';
	close(fd);
}

int program_end(pid_t pid)
{
	struct pollfd ended = { .fd = syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	int status, in_time;

	assert_true(ended.fd >= 0);
	in_time = poll(&ended, 1, HARNESS_WAIT_MS);
	close(ended.fd);
	if (in_time != 1)
		kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	running = 0;
	file_read("out", out);
	file_read("err", err);
	assert_int_equal(in_time, 1);
	if (!WIFEXITED(status))
		fail_msg("ended by signal %d: %s", WTERMSIG(status), err);
	return WEXITSTATUS(status);
}

int connection_take(pid_t pid)
{
	struct pollfd fds[] = { { .fd = listener, .events = POLLIN },
				{ .fd = syscall(SYS_pidfd_open, pid, 0), .events = POLLIN } };
	int r = poll(fds, 2, HARNESS_WAIT_MS);

	close(fds[1].fd);
	assert_true(r > 0);
	return fds[0].revents ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
}

void request_expect(int connection, const char *request)
{
	static char line[HARNESS_TEXT_BYTES];
	size_t n = 0;

	assert_true(connection >= 0);
	while (n + 1 < sizeof(line) && (!n || line[n - 1] != '\n')) {
		struct pollfd fd = { .fd = connection, .events = POLLIN };
		ssize_t got;

		assert_int_equal(poll(&fd, 1, HARNESS_WAIT_MS), 1);
		got = read(connection, line + n, sizeof(line) - 1 - n);
		if (got <= 0)
			fail_msg("the connection ended instead of a request");
		n += got;
	}
	assert_true(n && line[n - 1] == '\n');
	line[n - 1] = '\0';
	assert_string_equal(line, request);
}

void answer_give(int connection, const char *answer)
{
	size_t length = strlen(answer);

	assert_int_equal(write(connection, answer, length), length);
	assert_int_equal(write(connection, "\n", 1), 1);
}

int ask(const char *const *arguments, const char *request, const char *answer)
{
	pid_t pid = program_start(arguments);
	int connection = connection_take(pid);

	if (connection < 0) {
		program_end(pid);
		fail_msg("it did not ask: %s", err);
	}
	request_expect(connection, request);
	answer_give(connection, answer);
	close(connection);
	return program_end(pid);
}

int run(const char *const *arguments)
{
	pid_t pid = program_start(arguments);

	assert_int_equal(connection_take(pid), -1);
	return program_end(pid);
}

void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

void assert_has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' is in '%s'", part, text);
}
