// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Are workers still there whose connections ended with another agent? One that has closed while
 * there was no agent could not say so. Its machine does: a datagram to a UDP port that nobody
 * has any more is answered by ICMP, which a connected socket reports as ECONNREFUSED. Whoever is
 * there sees a datagram that is no message, and ignores it. Silence proves nothing.
 *
 * Workers' sockets take datagrams from the service address only, so they come from there.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent.h"
#include "agent/edge/log.h"

enum {
	ROUND_S = 2,
	SLACK_US = 100000,
};

/* One worker that was asked; lives until the next round. */
struct absentee {
	struct absentee *next;
	struct agent *agent;
	sd_event_source *io;
	int fd;
	struct job *job;
	uint16_t rank;
	uint16_t epoch;
};

void rollcall_forget(struct agent *a, const struct job *j)
{
	struct absentee **at = &a->absentees;

	while (*at) {
		struct absentee *one = *at;

		if (j && one->job != j) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		sd_event_source_disable_unref(one->io);
		close(one->fd);
		free(one);
	}
}

/* The answer, if any. Nothing but an error comes: what a worker sends, XDP takes. */
static int on_answer(sd_event_source *io, int fd, uint32_t events, void *data)
{
	struct absentee *one = data;
	char byte;

	if (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) >= 0 || errno != ECONNREFUSED)
		return 0;
	sd_event_source_set_enabled(io, SD_EVENT_OFF);
	if (one->job->epoch == one->epoch && one->job->run_window &&
	    one->job->rank[one->rank].presence == JOB_DETACHED) {
		log_say(LOG_LEVEL_INFO, "worker has gone", "job=%s rank=%u", one->job->name,
			one->rank);
		members_left(one->agent, one->job, one->rank, one->epoch);
	}
	return 0;
}

/* A socket of the service address, and nobody else's than this worker's. */
static int socket_to(const struct sockaddr_storage *service, const struct sockaddr_storage *worker)
{
	_cleanup_(closep) int fd = socket(service->ss_family,
					  SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (const void *)service, sizeof(*service)) < 0 ||
	    connect(fd, (const void *)worker, sizeof(*worker)) < 0 || send(fd, "", 1, 0) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int ask(struct agent *a, struct job *j, uint16_t rank)
{
	struct absentee *one = calloc(1, sizeof(*one));
	int r;

	if (!one)
		return -ENOMEM;
	*one = (struct absentee){
		.next = a->absentees, .agent = a, .job = j, .rank = rank, .epoch = j->epoch
	};
	one->fd = socket_to(&j->service, &j->rank[rank].address);
	if (one->fd < 0) {
		r = one->fd;
		free(one);
		return r;
	}
	a->absentees = one;
	r = sd_event_add_io(a->loop, &one->io, one->fd, EPOLLIN, on_answer, one);
	return r < 0 ? r : 0;
}

static int on_round(sd_event_source *timer, uint64_t us, void *data)
{
	struct agent *a = data;
	int r = 0;

	rollcall_forget(a, NULL);
	for (unsigned int i = 0; i < a->books.jobs; i++) {
		struct job *j = a->books.job[i];

		for (uint16_t rank = 0; j->run_window && rank < j->workers; rank++)
			if (j->rank[rank].presence == JOB_DETACHED)
				r = ask(a, j, rank) < 0 ? -1 : r;
	}
	if (r < 0)
		log_say(LOG_LEVEL_DEBUG, "not all workers could be asked", "errno=%d", errno);
	sd_event_source_set_time_relative(timer, ROUND_S * 1000000ull);
	sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
	return 0;
}

int rollcall_open(struct agent *a)
{
	int r = sd_event_add_time_relative(a->loop, &a->rollcall, CLOCK_MONOTONIC,
					   ROUND_S * 1000000ull, SLACK_US, on_round, a);

	return r < 0 ? r : 0;
}

void rollcall_close(struct agent *a)
{
	sd_event_source_disable_unref(a->rollcall);
	rollcall_forget(a, NULL);
}
