// SPDX-License-Identifier: GPL-2.0-only
/*
 * Joins and leaves, over and over, through an agent's unix socket; workers receive nothing, so
 * an address is all they need.
 *
 *	cycles SOCKET JOB TOKEN-FILE WORKERS ADDRESS CYCLES
 *
 * With as many WORKERS as the job has, every cycle is a run that begins and ends; with fewer, they
 * come, wait, and go. CYCLES 0: joins once, says so, and stays until standard input ends.
 */
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/address.h"
#include "common/joining.h"
#include "common/name.h"

enum {
	WORKERS_MAX = TALLY_WORKERS_MAX,
	FIRST_PORT = 40000,
};

struct worker {
	int fd;
	char text[JOINING_ANSWER_BYTES];
	size_t length;
};

static struct worker worker[WORKERS_MAX];
static char token[TOKEN_BYTES];

static void token_read(const char *path)
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(token, sizeof(token), f))
		err(1, "%s", path);
	token[strcspn(token, "\n")] = '\0';
	fclose(f);
}

static void ask(struct worker *w, const char *path, const char *job, const char *address, int rank)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct joining_message q = { .rank = rank };
	char text[JOINING_MESSAGE_BYTES];
	char endpoint[64];
	size_t length = 0;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	snprintf(q.job, sizeof(q.job), "%s", job);
	memcpy(q.token, token, sizeof(q.token));
	snprintf(endpoint, sizeof(endpoint), "%s:%d", address, FIRST_PORT + rank);
	if (address_parse(endpoint, 0, &q.address) < 0)
		errx(2, "%s: no address", address);
	if (joining_message_print(&q, text, sizeof(text), &length) < 0)
		errx(2, "%s: no job's name", job);
	w->length = 0;
	w->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (w->fd < 0 || connect(w->fd, (void *)&to, sizeof(to)) < 0)
		err(1, "%s", path);
	if (send(w->fd, text, length, MSG_NOSIGNAL) != (ssize_t)length)
		err(1, "send");
}

/* The next thing that the agent says. */
static enum joining_kind hear(struct worker *w)
{
	static struct joining_answer answer;
	char why[256];
	size_t used = 0;
	int r;

	while ((r = joining_answer_parse(w->text, w->length, &answer, &used, why, sizeof(why))) ==
	       -EAGAIN) {
		ssize_t n = recv(w->fd, w->text + w->length, sizeof(w->text) - w->length, 0);

		if (n <= 0)
			errx(1, "the agent has gone");
		w->length += n;
	}
	if (r < 0)
		errx(1, "the agent says: %s", why);
	if (answer.kind == JOINING_ERROR)
		errx(1, "the agent says: %s", answer.text);
	memmove(w->text, w->text + used, w->length - used);
	w->length -= used;
	return answer.kind;
}

int main(int argc, char **argv)
{
	unsigned long cycles;
	int workers;

	if (argc != 7)
		errx(2, "usage: cycles SOCKET JOB TOKEN-FILE WORKERS ADDRESS CYCLES");
	token_read(argv[3]);
	workers = (int)strtol(argv[4], NULL, 10);
	cycles = strtoul(argv[6], NULL, 10);
	if (workers < 1 || workers > WORKERS_MAX)
		errx(2, "1 to %d workers", WORKERS_MAX);
	for (unsigned long i = 0; i < cycles || i == 0; i++) {
		enum joining_kind kind = JOINING_WAITING;

		for (int k = 0; k < workers; k++) {
			ask(&worker[k], argv[1], argv[2], argv[5], k);
			kind = hear(&worker[k]);
		}
		if (!cycles) {
			puts("joined");
			fflush(stdout);
			return getchar() == EOF ? 0 : 1;
		}
		for (int k = 0; k < workers; k++) {
			while (kind == JOINING_RUN && k < workers - 1 &&
			       hear(&worker[k]) != JOINING_RUN)
				;
			close(worker[k].fd);
		}
	}
	return 0;
}
