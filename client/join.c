// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "common/address.h"
#include "common/clock.h"
#include "common/owned.h"
#include "common/ranks.h"
#include "join_private.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "error.h"

enum {
	JOIN_TIMEOUT_MS = 60000,
	LEAVE_TIMEOUT_MS = 1000,
};

static void deadline_set(struct join *j, uint32_t timeout_ms)
{
	j->timeout_ms = timeout_ms;
	j->deadline_ns = clock_now_ns() + timeout_ms * UINT64_C(1000000);
}

/* --- the connection: every wait ends at the deadline */

static int late(const struct join *j)
{
	bool one = tally_set_is_single(&j->missing);
	char ranks[RANKS_BYTES];

	if (tally_set_is_empty(&j->missing))
		return error_set(-ETIMEDOUT, "the agent at %s did not answer for %.1f s",
				 j->agent_text, j->timeout_ms / 1e3);
	ranks_print(&j->missing, ranks, sizeof(ranks));
	return error_set(-ETIMEDOUT, "rank%s %.200s of job %s %s not come within %.1f s",
			 one ? "" : "s", ranks, j->request.job, one ? "has" : "have",
			 j->timeout_ms / 1e3);
}

/* The next call waits (SO_RCVTIMEO, SO_SNDTIMEO) for what is left. False, EAGAIN: nothing is. */
static bool wait_limit(const struct join *j, int direction)
{
	uint64_t now = clock_now_ns(), left_us;
	struct timeval t;

	errno = EAGAIN;
	if (now >= j->deadline_ns)
		return false;
	left_us = (j->deadline_ns - now + 999) / 1000; /* 0 would be: for ever */
	t = (struct timeval){ .tv_sec = (time_t)(left_us / 1000000),
			      .tv_usec = (suseconds_t)(left_us % 1000000) };
	return setsockopt(j->fd, SOL_SOCKET, direction, &t, sizeof(t)) == 0;
}

/* What a call on the connection that failed has to say. */
static int broken(const struct join *j)
{
	char from[ADDRESS_BYTES];

	if (errno == EAGAIN || errno == EINPROGRESS)
		return late(j);
	if (!j->local_said || j->agent.ss_family == AF_UNIX)
		return error_set(-errno, "the agent at %s: %s", j->agent_text, strerror(errno));
	address_print(&j->local, from, sizeof(from));
	return error_set(-errno, "the agent at %s, from %s (%s): %s", j->agent_text, from,
			 j->local_said, strerror(errno));
}

static socklen_t address_length(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_UNIX ? sizeof(struct sockaddr_un) : endpoint_length(a);
}

/* A socket cannot be bound to the address that somebody said. */
static int address_blame(const struct join *j, int r)
{
	struct why kept;

	snprintf(kept.text, sizeof(kept.text), "%s", tally_error());
	return error_set(r, "%s: %s", j->local_said, kept.text);
}

/* From the worker's address, if it named one: the agent wants to see it there. */
static int connection_bind(const struct join *j)
{
	struct sockaddr_storage from = j->local;

	if (!from.ss_family || j->agent.ss_family == AF_UNIX)
		return 0;
	endpoint_port_set(&from, 0);
	if (bind(j->fd, (const struct sockaddr *)&from, address_length(&from)) < 0)
		return address_blame(j, address_refuse(errno, &j->local));
	return 0;
}

static int connection_open(struct join *j)
{
	int r;

	j->fd = socket(j->agent.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (j->fd < 0)
		return error_set(-errno, "no socket to the agent: %s", strerror(errno));
	r = connection_bind(j);
	if (r < 0)
		return r;
	do {
		r = -1;
		if (wait_limit(j, SO_SNDTIMEO))
			r = connect(j->fd, (const struct sockaddr *)&j->agent,
				    address_length(&j->agent));
	} while (r < 0 && errno == EINTR);
	return r < 0 ? broken(j) : 0;
}

static int request_send(struct join *j)
{
	char text[JOINING_MESSAGE_BYTES];
	size_t length = 0, sent = 0;
	int r = joining_message_print(&j->request, text, sizeof(text), &length);

	assert(j->fd >= 0);
	if (r < 0)
		return error_set(r, "joining message too long");
	while (r == 0 && sent < length) {
		ssize_t n = -1;

		if (wait_limit(j, SO_SNDTIMEO))
			n = send(j->fd, text + sent, length - sent, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			r = broken(j);
		sent += n > 0 ? (size_t)n : 0;
	}
	explicit_bzero(text, sizeof(text));
	return r;
}

/* Something more; there is room for it, or the parser would not want more. */
static int answer_receive(struct join *j)
{
	ssize_t n;

	assert(j->fd >= 0);
	do {
		n = -1;
		if (wait_limit(j, SO_RCVTIMEO))
			n = recv(j->fd, j->buffer + j->length, sizeof(j->buffer) - j->length, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return broken(j);
	if (n == 0)
		return error_set(-ECONNRESET,
				 "the agent at %s ended the connection before all ranks had come: "
				 "was it restarted? Join again",
				 j->agent_text);
	j->length += (size_t)n;
	return 0;
}

/* Of what has come; -EAGAIN: not all of it. */
static int answer_take(struct join *j, struct joining_answer *ret, struct why *why)
{
	size_t taken = 0;
	int r = joining_answer_parse(j->buffer, j->length, ret, &taken, why->text,
				     sizeof(why->text));

	j->length -= taken;
	memmove(j->buffer, j->buffer + taken, j->length);
	return r;
}

static int answer_read(struct join *j, struct joining_answer *ret)
{
	struct why why;
	int r;

	while ((r = answer_take(j, ret, &why))) {
		if (r != -EAGAIN)
			return error_set(r == -EINVAL ? -EPROTO : r,
					 "the agent at %s sent an unknown answer: %.300s",
					 j->agent_text, why.text);
		r = answer_receive(j);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- joining */

/* The socket must be there first: its port is part of the request. */
static int receiver_open(struct join *j, struct channel **ret)
{
	struct sockaddr_storage own = j->local;
	socklen_t length = sizeof(own);
	int r;

	assert(j->fd >= 0);
	if (!own.ss_family) {
		if (getsockname(j->fd, (struct sockaddr *)&own, &length) < 0)
			return broken(j);
		endpoint_port_set(&own, 0);
	}
	r = transport_open(&own, ret);
	if (r < 0)
		return j->local_said ? address_blame(j, r) : r;
	(*ret)->transport->local(*ret, &own);
	if (j->local.ss_family)
		j->request.address = own;
	else
		j->request.port = endpoint_port(&own);
	j->local = own;
	return 0;
}

/* Is the place that of this worker's socket? Otherwise results would go elsewhere. */
static int place_check(const struct join *j, const struct joining_answer *a)
{
	char theirs[ADDRESS_BYTES], own[ADDRESS_BYTES];
	const struct sockaddr_storage *worker = &a->job.worker[a->rank];

	if (endpoint_is_equal(worker, &j->local))
		return 0;
	endpoint_print(worker, theirs, sizeof(theirs));
	endpoint_print(&j->local, own, sizeof(own));
	return error_set(-EPROTO,
			 "the agent at %s says that rank %u receives at %s, but it does at %s: "
			 "addresses must not be translated on the way",
			 j->agent_text, a->rank, theirs, own);
}

static int place_wait(struct join *j, struct joining_answer *ret)
{
	int r;

	while ((r = answer_read(j, ret)) == 0 && ret->kind == JOINING_WAITING)
		j->missing = ret->missing;
	if (r < 0)
		return r;
	if (ret->error == -EPROTONOSUPPORT) /* an agent of version 1 names only its own */
		return error_set(ret->error,
				 "the agent at %s does not speak version %d of joining, as this "
				 "library does: %s",
				 j->agent_text, JOINING_VERSION, ret->text);
	if (ret->kind == JOINING_ERROR)
		return error_set(ret->error, "the agent at %s: %s", j->agent_text,
				 *ret->text ? ret->text : strerror(-ret->error));
	if (ret->kind != JOINING_RUN)
		return error_set(-EPROTO, "the agent at %s sent an unexpected answer",
				 j->agent_text);
	return place_check(j, ret);
}

static void join_free(struct join *j)
{
	if (j->fd >= 0) {
		/* A process that was forked may have it too; it ends for all. */
		shutdown(j->fd, SHUT_RDWR);
		close(j->fd);
	}
	explicit_bzero(j->request.token, sizeof(j->request.token));
	free(j);
}

int join_open(const struct tally_join_options *o, struct join **ret, struct channel **ret_channel,
	      struct joining_answer *ret_place)
{
	struct join *j = calloc(1, sizeof(*j));
	struct channel *channel = NULL;
	int r;

	if (!j)
		return error_set(-ENOMEM, "out of memory");
	j->fd = -1;
	deadline_set(j, o->join_timeout_ms ? o->join_timeout_ms : JOIN_TIMEOUT_MS);
	r = join_options_read(j, o);
	if (r == 0)
		r = connection_open(j);
	if (r == 0)
		r = receiver_open(j, &channel);
	if (r == 0)
		r = request_send(j);
	if (r == 0)
		r = place_wait(j, ret_place);
	if (r < 0) {
		transport_close(channel);
		join_free(j);
		return r;
	}
	j->request.rank = ret_place->rank;
	j->request.epoch = ret_place->job.epoch;
	*ret_channel = channel;
	*ret = j;
	return 0;
}

/* --- during the run */

/* More, if there is any. */
static void more_receive(struct join *j)
{
	ssize_t n;

	do {
		n = recv(j->fd, j->buffer + j->length, sizeof(j->buffer) - j->length, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	j->silent = n == 0 || (n < 0 && errno != EAGAIN);
	j->length += n > 0 ? (size_t)n : 0;
}

int join_hear(struct join *j, struct why *ret)
{
	_cleanup_(freep) struct joining_answer *answer = NULL;
	struct why wrong;
	int said = 0, r = 0;

	if (j->silent || j->over)
		return 0;
	more_receive(j);
	if (j->length)
		answer = malloc(sizeof(*answer));
	while (answer && !j->over && (r = answer_take(j, answer, &wrong)) == 0) {
		j->over = answer->kind == JOINING_ERROR;
		if (!j->over && (said || answer->kind != JOINING_ENDING))
			continue;
		said = j->over ? answer->error : 1;
		snprintf(ret->text, sizeof(ret->text), "the agent at %s: %.300s", j->agent_text,
			 *answer->text ? answer->text : strerror(-answer->error));
	}
	j->silent |= r < 0 && r != -EAGAIN;
	return said;
}

bool join_watches(const struct join *j) { return !j->silent && !j->over; }

/* --- leaving */

/* The agent may have said something since, such as why it ended the connection. */
static bool connection_is_there(const struct join *j)
{
	char said[1024];
	ssize_t n;

	do {
		n = recv(j->fd, said, sizeof(said), MSG_DONTWAIT);
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 && errno == EAGAIN;
}

/* One that was restarted knows the run but not this worker. It will not hurt it to not hear. */
static void leave_anew(struct join *j)
{
	_cleanup_(freep) struct joining_answer *answer = calloc(1, sizeof(*answer));

	close(j->fd);
	deadline_set(j, LEAVE_TIMEOUT_MS);
	j->request.leave = true;
	j->length = 0;
	if (answer && connection_open(j) == 0 && request_send(j) == 0)
		answer_read(j, answer);
}

void join_forget(struct join *j)
{
	if (!j)
		return;
	close(j->fd);
	j->fd = -1;
	join_free(j);
}

void join_leave(struct join *j)
{
	struct why kept;

	if (!j || j->over || !connection_is_there(j))
		return;
	snprintf(kept.text, sizeof(kept.text), "%s", tally_error());
	deadline_set(j, LEAVE_TIMEOUT_MS);
	j->request.leave = j->over = true;
	request_send(j);
	error_set(0, "%s", kept.text);
}

void join_close(struct join *j)
{
	struct why kept;

	if (!j)
		return;
	join_leave(j);
	snprintf(kept.text, sizeof(kept.text), "%s", tally_error());
	if (!j->over)
		leave_anew(j);
	join_free(j);
	error_set(0, "%s", kept.text);
}
