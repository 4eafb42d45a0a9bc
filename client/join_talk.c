// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a worker and an agent say to each other, with proofs: docs/joining.md. */
#include "common/address.h"
#include "common/clock.h"
#include "common/owned.h"
#include "common/ranks.h"
#include "join_private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "error.h"

void join_deadline_set(struct join *j, uint32_t timeout_ms)
{
	j->timeout_ms = timeout_ms;
	j->deadline_ns = clock_now_ns() + timeout_ms * UINT64_C(1000000);
}

/* --- the connection: every wait ends at the deadline */

static int late(const struct join *j)
{
	bool one = tally_set_is_single(&j->missing);
	char ranks[RANKS_BYTES];

	if (tally_set_is_empty(&j->missing) && j->has_asked)
		return error_set(-ETIMEDOUT,
				 "the agent at %s was asked for a place in job %s, and no run has "
				 "begun for %.1f s. Where a cluster has the job, tallyctl cluster "
				 "%s says what it waits for",
				 j->agent_text, j->job, j->timeout_ms / 1e3, j->job);
	if (tally_set_is_empty(&j->missing))
		return error_set(-ETIMEDOUT, "the agent at %s did not answer for %.1f s",
				 j->agent_text, j->timeout_ms / 1e3);
	ranks_print(&j->missing, ranks, sizeof(ranks));
	return error_set(-ETIMEDOUT, "rank%s %.200s of job %s %s not come within %.1f s",
			 one ? "" : "s", ranks, j->job, one ? "has" : "have", j->timeout_ms / 1e3);
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
int join_broken(struct join *j)
{
	char from[ADDRESS_BYTES];

	j->is_cut = true;

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

int join_address_blame(const struct join *j, int r)
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
		return join_address_blame(j, address_refuse(errno, &j->local));
	return 0;
}

int join_connect(struct join *j)
{
	int r;

	join_fd_set(j, socket(j->agent.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
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
	return r < 0 ? join_broken(j) : 0;
}

static int text_send(struct join *j, const char *text, size_t length)
{
	size_t sent = 0;

	assert(j->fd >= 0);
	while (sent < length) {
		ssize_t n = -1;

		if (wait_limit(j, SO_SNDTIMEO))
			n = send(j->fd, text + sent, length - sent, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return join_broken(j);
		sent += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int join_request_send(struct join *j)
{
	char text[JOINING_MESSAGE_BYTES], proven[sizeof(text) + SESSION_LINE_BYTES];
	size_t length = 0;
	int r = joining_message_print(&j->request, text, sizeof(text), &length);

	if (r == 0)
		r = session_print(&j->session, SESSION_WORKER, text, length, proven, sizeof(proven),
				  &length);
	if (r < 0)
		return error_set(r, "joining message too long");
	r = text_send(j, proven, length);
	j->has_asked = r == 0;
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
		return join_broken(j);
	j->is_cut = n == 0;
	if (n == 0)
		return error_set(-ECONNRESET,
				 "the agent at %s ended the connection before all ranks had come: "
				 "was it restarted? Join again",
				 j->agent_text);
	j->length += (size_t)n;
	return 0;
}

/* Only an agent that cannot have proven anything yet may do without, to say what is wrong. */
static int unproven_parse(const struct join *j, struct joining_answer *ret, size_t *ret_taken,
			  struct why *why)
{
	int r = joining_answer_parse(j->buffer, j->length, ret, ret_taken, why->text,
				     sizeof(why->text));

	if (r == 0 && (j->is_proven || ret->kind != JOINING_ERROR))
		return why_say(why, -EINVAL, "an answer without proof");
	return r;
}

/* Of what has come; -EAGAIN: not all of it. */
static int answer_parse(struct join *j, struct joining_answer *ret, size_t *ret_taken,
			struct why *why)
{
	const char *message = NULL;
	size_t length = 0, taken = 0;
	int r;

	why->text[0] = '\0';
	if (j->length && *j->buffer != 'p')
		return unproven_parse(j, ret, ret_taken, why);
	r = session_parse(&j->session, SESSION_AGENT, j->buffer, j->length, JOINING_ANSWER_BYTES,
			  &message, &length, ret_taken);
	if (r == -EBADMSG)
		return why_say(why, -EINVAL,
			       "its proof is wrong: something on the way changed a byte, or "
			       "whoever answers does not know the token of job %s",
			       j->job);
	if (r == -EINVAL)
		return why_say(why, r, "its proof is malformed");
	if (r < 0)
		return r;
	j->is_proven = true;
	r = joining_answer_parse(message, length, ret, &taken, why->text, sizeof(why->text));
	if (r == -EAGAIN || (r == 0 && taken < length))
		return why_say(why, -EINVAL, "one message, with its end, comes behind a proof");
	return r;
}

int join_answer_take(struct join *j, struct joining_answer *ret, struct why *why)
{
	size_t taken = 0;
	int r = answer_parse(j, ret, &taken, why);

	if (r < 0)
		return r;
	j->length -= taken;
	memmove(j->buffer, j->buffer + taken, j->length);
	return 0;
}

static int strange(const struct join *j, int error, const struct why *why)
{
	return error_set(error == -EINVAL ? -EPROTO : error,
			 "the agent at %s sent an unknown answer: %.300s", j->agent_text,
			 why->text);
}

int join_answer_read(struct join *j, struct joining_answer *ret)
{
	struct why why;
	int r;

	while ((r = join_answer_take(j, ret, &why))) {
		if (r != -EAGAIN)
			return strange(j, r, &why);
		r = answer_receive(j);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- greeting: both say a random number, and their proofs are for these */

int join_refused(struct join *j, const struct joining_answer *a)
{
	j->is_refused = true;
	if (a->error == -EPROTONOSUPPORT) /* an agent of version 1 names only its own */
		return error_set(a->error,
				 "the agent at %s does not speak version %d of joining, as this "
				 "library does: %s",
				 j->agent_text, JOINING_VERSION, a->text);
	return error_set(a->error, "the agent at %s: %s", j->agent_text,
			 *a->text ? a->text : strerror(-a->error));
}

/* Over a unix socket the connection does not say where this worker is. */
static bool wants_service(const struct join *j)
{
	return j->agent.ss_family == AF_UNIX && !j->local.ss_family;
}

static int greeting_print(const struct join *j, char *text, size_t size, size_t *ret_length)
{
	uint8_t random[JOINING_CHALLENGE_BYTES / 2];
	struct joining_greeting own = { .wants = wants_service(j) ? JOINING_WANTS_SERVICE
								  : JOINING_WANTS_NOTHING };

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return error_set(-EIO, "no random numbers: %s", strerror(errno));
	memcpy(own.job, j->job, sizeof(own.job));
	own.run = j->by_place ? j->nonce : 0;
	own.rank = j->by_place ? (uint16_t)j->request.rank : 0;
	joining_challenge_set(random, own.challenge);
	return joining_greeting_print(&own, text, size, ret_length);
}

static int greeting_wait(struct join *j, struct joining_answer *a, size_t *ret_taken)
{
	struct why why;
	int r;

	do {
		r = answer_receive(j);
		if (r < 0)
			return r;
		r = joining_answer_parse(j->buffer, j->length, a, ret_taken, why.text,
					 sizeof(why.text));
	} while (r == -EAGAIN);
	if (r < 0)
		return strange(j, r, &why);
	if (a->kind == JOINING_ERROR && a->error == -EINVAL && wants_service(j))
		return error_set(-EINVAL,
				 "no address: the agent at %s is too old to name its service "
				 "address. Say where this worker receives in the option address or "
				 "in $TALLY_ADDRESS",
				 j->agent_text);
	if (a->kind == JOINING_ERROR)
		return join_refused(j, a);
	if (a->kind != JOINING_GREETING || (wants_service(j) && !a->greeting.service.ss_family))
		return error_set(-EPROTO, "the agent at %s does not greet", j->agent_text);
	return 0;
}

int join_greet(struct join *j)
{
	_cleanup_(freep) struct joining_answer *answer = malloc(sizeof(*answer));
	char opening[2 * JOINING_MESSAGE_BYTES];
	size_t length = 0, taken = 0;
	int r;

	if (!answer)
		return error_set(-ENOMEM, "out of memory");
	j->length = 0;
	j->is_proven = j->has_asked = false;
	r = greeting_print(j, opening, JOINING_MESSAGE_BYTES, &length);
	if (r == 0)
		r = text_send(j, opening, length);
	if (r == 0)
		r = greeting_wait(j, answer, &taken);
	if (r < 0)
		return r;
	if (wants_service(j))
		j->service = answer->greeting.service;
	if (taken > sizeof(opening) - length || taken < j->length)
		return error_set(-EPROTO, "the agent at %s says more than its greeting",
				 j->agent_text);
	memcpy(opening + length, j->buffer, taken);
	session_begin(j->by_place ? j->place_key : j->token_key, opening, length + taken,
		      &j->session);
	j->length = 0;
	return 0;
}
