// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tally-node spill: the root of jobs in user space, until a signal ends it. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/address.h"
#include "spill/serve.h"
#include "tally_node.h"

static int job_put(struct spill *s, const struct run *run, const struct installation *g,
		   struct why *why)
{
	static struct spill_child child[TALLY_WORKERS_MAX];
	int r;

	for (unsigned int i = 0; i < g->copies; i++)
		child[i] = (struct spill_child){ .below = g->copy[i].below,
						 .key = g->copy[i].key,
						 .address = g->copy[i].address };
	r = spill_job_put(s, &(struct spill_job_options){ .everyone = g->job.everyone,
							  .service = run->service,
							  .id = run->job,
							  .epoch = run->epoch,
							  .window = run->window,
							  .payload_bytes = run->payload_bytes,
							  .children = g->copies,
							  .child = child,
							  .key = run->keys ? run->key : NULL });
	return r < 0 ? why_say(why, r, "job %u: %s", run->job, strerror(-r)) : 0;
}

/* Readable when this process is to end. */
static int end_open(void)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	return signalfd(-1, &ends, SFD_CLOEXEC);
}

static void print_counters(const struct serve *s, const struct spill *spill, uint32_t id)
{
	const struct tally_counter *of_job = spill_counters(spill, &id);
	const struct tally_counter *others = spill_counters(spill, NULL);
	struct spill_memory m = spill_memory(spill);

	for (int i = 0; i < TALLY_OUTCOME_COUNT; i++)
		if (of_job[i].packet + others[i].packet)
			printf("%-14s %12" PRIu64 "  %s\n", tally_outcome_name(i),
			       (uint64_t)(of_job[i].packet + others[i].packet),
			       tally_outcome_meaning(i));
	printf("memory of sums %zu of %zu bytes; evicted %" PRIu64 ", refused %" PRIu64
	       ", not sent %" PRIu64 "\n",
	       m.bytes, m.bytes_max, m.evicted, m.full, serve_unsent(s));
}

int node_spill(const struct command_line *q, struct why *why)
{
	_cleanup_(serve_closep) struct serve *serve = NULL;
	static struct installation installation;
	static struct run run;
	struct serve_socket *socket = NULL;
	struct pollfd wait[2];
	int r;

	r = jobfile_read(q->arguments[0], &run, why->text, sizeof(why->text));
	if (r == 0)
		r = installation_plan(&run, &q->role, &installation, why);
	if (r == 0)
		r = serve_open(q->memory, &serve);
	if (r == 0)
		r = serve_listen(&serve, 1, &run.service, true, &socket, why);
	if (r == 0)
		r = job_put(serve_spill(serve), &run, &installation, why);
	if (r < 0)
		return r;
	wait[0] = (struct pollfd){ .fd = serve_fd(socket), .events = POLLIN };
	wait[1] = (struct pollfd){ .fd = end_open(), .events = POLLIN };
	printf("job %u epoch %u: summed in software\n", run.job, run.epoch);
	while (poll(wait, 2, -1) >= 0 && !wait[1].revents)
		serve_some(serve, socket);
	close(wait[1].fd);
	print_counters(serve, serve_spill(serve), run.job);
	return 0;
}
