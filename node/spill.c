// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tally-node spill: the root of jobs in user space, until a signal ends it. */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/edge/look.h"
#include "agent/edge/spiller.h"
#include "common/address.h"
#include "common/owned.h"
#include "tally_node.h"

/* The second file would take the place of the first one. */
static int refuse_twice(const struct command_line *q, int at, uint32_t *job, struct why *why)
{
	for (int i = 0; i < at; i++)
		if (job[i] == job[at])
			return why_say(why, -EEXIST, "%s: job %u is that of %s already",
				       q->arguments[at], job[at], q->arguments[i]);
	return 0;
}

/* It may come later: then nothing is to be done here. */
static void warn_of_address(const struct run *run)
{
	char text[ADDRESS_BYTES];

	if (look_is_own(&run->service))
		return;
	address_print(&run->service, text, sizeof(text));
	warnx("job %u: this machine has no address %s: nothing comes here until it has", run->job,
	      text);
}

/* `job`: of each file so far, and of this one. */
static int job_put(struct spiller *s, const struct command_line *q, int at, uint32_t *job,
		   struct why *why)
{
	static struct installation installation;
	static struct run run;
	int r = jobfile_read(q->arguments[at], &run, why->text, sizeof(why->text));

	job[at] = run.job;
	if (r == 0)
		r = refuse_twice(q, at, job, why);
	if (r == 0)
		r = installation_plan(&run, &q->role, &installation, why);
	if (r == 0)
		r = spiller_put(s, &installation, why);
	if (r < 0)
		return r;
	warn_of_address(&run);
	printf("job %u epoch %u: summed in software\n", run.job, run.epoch);
	return 0;
}

/* Readable when this process is to end; before there are threads, which then do not. */
static int end_open(void)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	return signalfd(-1, &ends, SFD_CLOEXEC);
}

static void print_counters(struct spiller *s)
{
	struct tally_counter counter[TALLY_OUTCOME_COUNT];
	struct spill_memory m = spiller_memory(s);
	uint64_t unsent;

	spiller_count(s, counter, &unsent);
	for (int i = 0; i < TALLY_OUTCOME_COUNT; i++)
		if (counter[i].packet)
			printf("%-14s %12" PRIu64 "  %s\n", tally_outcome_name(i),
			       (uint64_t)counter[i].packet, tally_outcome_meaning(i));
	printf("memory of sums %zu of %zu bytes; evicted %" PRIu64 ", refused %" PRIu64
	       ", not sent %" PRIu64 "\n",
	       m.bytes, m.bytes_max, m.evicted, m.full, unsent);
}

int node_spill(const struct command_line *q, struct why *why)
{
	_cleanup_(spiller_closep) struct spiller *s = NULL;
	_cleanup_(freep) uint32_t *job = calloc(q->count, sizeof(*job));
	_cleanup_(closep) int end = end_open();
	struct pollfd wait = { .fd = end, .events = POLLIN };
	int r;

	if (end < 0)
		return -errno;
	if (!job)
		return -ENOMEM;
	r = spiller_open(q->memory, q->threads, true, &s);
	for (int i = 0; r == 0 && i < q->count; i++)
		r = job_put(s, q, i, job, why);
	if (r < 0)
		return r;
	while (poll(&wait, 1, -1) < 0)
		;
	print_counters(s);
	return 0;
}
