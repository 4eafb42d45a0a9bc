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
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/join_private.h"
#include "common/address.h"

enum {
	WORKERS_MAX = TALLY_WORKERS_MAX,
	FIRST_PORT = 40000,
	TIMEOUT_MS = 60000,
};

static struct join worker[WORKERS_MAX];

static void ask(struct join *j, const struct tally_join_options *options, int rank)
{
	*j = (struct join){ .fd = -1 };
	join_deadline_set(j, TIMEOUT_MS);
	if (join_options_read(j, options) < 0 || join_connect(j) < 0 || join_greet(j) < 0)
		errx(1, "%s", tally_error());
	j->request.rank = rank;
	j->request.address = j->local;
	endpoint_port_set(&j->request.address, FIRST_PORT + rank);
	if (join_request_send(j) < 0)
		errx(1, "%s", tally_error());
}

/* The next thing that the agent says. */
static enum joining_kind hear(struct join *j)
{
	static struct joining_answer answer;

	if (join_answer_read(j, &answer) < 0)
		errx(1, "%s", tally_error());
	if (answer.kind == JOINING_ERROR)
		errx(1, "the agent says: %s", answer.text);
	return answer.kind;
}

int main(int argc, char **argv)
{
	struct tally_join_options options = { 0 };
	unsigned long cycles;
	int workers;

	if (argc != 7)
		errx(2, "usage: cycles SOCKET JOB TOKEN-FILE WORKERS ADDRESS CYCLES");
	if (setenv("TALLY_TOKEN_FILE", argv[3], 1) < 0)
		err(1, "setenv");
	options.agent = argv[1];
	options.job = argv[2];
	options.address = argv[5];
	workers = (int)strtol(argv[4], NULL, 10);
	cycles = strtoul(argv[6], NULL, 10);
	if (workers < 1 || workers > WORKERS_MAX)
		errx(2, "1 to %d workers", WORKERS_MAX);
	for (unsigned long i = 0; i < cycles || i == 0; i++) {
		enum joining_kind kind = JOINING_WAITING;

		for (int k = 0; k < workers; k++) {
			ask(&worker[k], &options, k);
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
