// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clients that mean harm, or are broken: many connections that say what they say, and never read.
 *
 *	hostile PATH|ADDRESS COUNT say TEXT       each says TEXT once; it may be empty
 *	hostile PATH|ADDRESS COUNT repeat TEXT    each says it over and over, as fast as it goes
 *	hostile PATH|ADDRESS COUNT garbage        each sends random bytes without end
 *
 * Prints "there" when all are connected and have begun. Ends with code 0 when the other side has
 * ended every one of them.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <tally/wire.h>

enum {
	CONNECTIONS_MAX = 1000,
	TEXT_BYTES = 4096,
};

static struct pollfd connection[CONNECTIONS_MAX];
static unsigned int count, left;
static char text[TEXT_BYTES];
static size_t text_length;

static int connect_to(const char *where)
{
	struct sockaddr_in tcp = { .sin_family = AF_INET, .sin_port = htons(TALLY_UDP_PORT) };
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	const bool is_address = inet_pton(AF_INET, where, &tcp.sin_addr) == 1;
	int fd = socket(is_address ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(local.sun_path, sizeof(local.sun_path), "%s", where);
	if (fd < 0 || connect(fd, is_address ? (void *)&tcp : (void *)&local,
			      is_address ? sizeof(tcp) : sizeof(local)) < 0)
		err(1, "%s", where);
	return fd;
}

/* Whole copies of it, as many as there is room for. */
static void text_repeat(const char *what)
{
	const size_t length = strlen(what);

	if (!length || length > sizeof(text))
		errx(2, "a text of 1 to %d bytes", TEXT_BYTES);
	while (text_length + length <= sizeof(text)) {
		/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): no string */
		memcpy(text + text_length, what, length);
		text_length += length;
	}
}

/* The same in every run. */
static void text_garble(void)
{
	static uint64_t state = 1;

	for (text_length = 0; text_length < sizeof(text); text_length++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		text[text_length] = state >> 56;
	}
}

static void end(struct pollfd *c)
{
	close(c->fd);
	c->fd = -1; /* poll() leaves it out */
	left--;
}

static void say(struct pollfd *c)
{
	if (send(c->fd, text, text_length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
		end(c);
}

int main(int argc, char **argv)
{
	const bool garbage = argc == 4 && !strcmp(argv[3], "garbage");
	const bool once = argc == 5 && !strcmp(argv[3], "say");

	if (!garbage && !once && (argc != 5 || strcmp(argv[3], "repeat") != 0))
		errx(2, "usage: hostile PATH|ADDRESS COUNT say|repeat|garbage [TEXT]");
	count = strtoul(argv[2], NULL, 10);
	if (!count || count > CONNECTIONS_MAX)
		errx(2, "1 to %d connections", CONNECTIONS_MAX);
	if (once)
		text_length = snprintf(text, sizeof(text), "%s", argv[4]);
	else if (!garbage)
		text_repeat(argv[4]);
	left = count;
	for (unsigned int i = 0; i < count; i++) {
		connection[i] = (struct pollfd){ .fd = connect_to(argv[1]) };
		connection[i].events = POLLRDHUP | (once ? 0 : POLLOUT);
		if (garbage)
			text_garble();
		if (text_length)
			say(&connection[i]);
	}
	puts("there");
	fflush(stdout);
	while (left) {
		if (poll(connection, count, -1) < 0)
			err(1, "poll");
		for (unsigned int i = 0; i < count; i++) {
			if (connection[i].revents & (POLLRDHUP | POLLHUP | POLLERR))
				end(&connection[i]);
			else if (connection[i].revents & POLLOUT)
				say(&connection[i]);
		}
	}
	return 0;
}
