// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "common/address.h"
#include "common/clock.h"
#include "common/util.h"
#include "join_private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "error.h"

enum {
	JOIN_TIMEOUT_MS = 60000,
	TURNS_MAX = 8, /* so often an agent may name another one */
};

#define NAMED_NS UINT64_C(3000000000)

/* --- joining */

/* From where this machine would send to the agent's service address. */
static int address_find(const struct join *j, struct sockaddr_storage *ret)
{
	_cleanup_(closep) int fd = socket(j->service.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(*ret);
	char text[ADDRESS_BYTES];

	if (fd >= 0 && connect(fd, (const void *)&j->service, endpoint_length(&j->service)) == 0 &&
	    getsockname(fd, (struct sockaddr *)ret, &length) == 0)
		return 0;
	address_print(&j->service, text, sizeof(text));
	return error_set(-errno,
			 "no address: there is no way from here to %s, the service address of the "
			 "agent at %s: %s. Say where this worker receives in the option address or "
			 "in $TALLY_ADDRESS",
			 text, j->agent_text, strerror(errno));
}

/* The socket must be there first: its port is part of the request. */
static int receiver_open(struct join *j, struct channel **ret)
{
	struct sockaddr_storage own = j->local;
	socklen_t length = sizeof(own);
	int r = 0;

	assert(j->fd >= 0);
	if (j->service.ss_family)
		r = address_find(j, &own);
	else if (!own.ss_family && getsockname(j->fd, (struct sockaddr *)&own, &length) < 0)
		r = join_broken(j);
	if (r < 0)
		return r;
	if (!j->local.ss_family)
		endpoint_port_set(&own, 0);
	r = transport_open(&own, ret);
	if (r < 0)
		return j->local_said ? join_address_blame(j, r) : r;
	(*ret)->transport->local(*ret, &own);
	j->request.address = j->local = own;
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

	while ((r = join_answer_read(j, ret)) == 0 && ret->kind == JOINING_WAITING)
		j->missing = ret->missing;
	if (r < 0)
		return r;
	if (ret->kind == JOINING_ERROR)
		return join_refused(j, ret);
	if (ret->kind == JOINING_ELSEWHERE)
		return 0;
	if (ret->kind != JOINING_RUN)
		return error_set(-EPROTO, "the agent at %s sent an unexpected answer",
				 j->agent_text);
	return place_check(j, ret);
}

/* What only this worker and the agent learn. */
static int share_make(struct join *j)
{
	if (getrandom(j->secret, sizeof(j->secret), 0) != sizeof(j->secret))
		return error_set(-EIO, "no random numbers: %s", strerror(errno));
	x25519_share(j->secret, j->request.share);
	return 0;
}

static void key_take(struct join *j, struct joining_answer *a)
{
	static const struct joining_key none;

	if (!memcmp(&a->key, &none, sizeof(none)))
		return;
	session_seal(&j->session, j->secret, a->key.share, a->key.sealed);
	secret_place_key(j->token_key, a->key.sealed, j->place_key);
	j->has_place = true;
	a->job.keys = a->job.workers;
	memcpy(&a->job.key[a->rank], a->key.sealed, sizeof(a->key.sealed));
}

/* What all workers know, and nobody who does not know the token. */
static void secret_take(const struct join *j, struct joining_answer *a)
{
	struct run *run = &a->job;

	run->secrets = a->sealed;
	if (a->sealed)
		secret_rank_key(j->token_key, run->job, run->epoch, run->nonce, SECRET_ALL_RANKS,
				(uint8_t *)run->secret);
}

void join_fd_set(struct join *j, int fd)
{
	pthread_mutex_lock(&j->fd_held);
	if (j->fd >= 0)
		close(j->fd);
	j->fd = fd;
	pthread_mutex_unlock(&j->fd_held);
}

/* No other thread has it: one that was forked away may have left it held. */
static void join_free(struct join *j)
{
	if (j->fd >= 0) {
		/* A process that was forked may have it too; it ends for all. */
		shutdown(j->fd, SHUT_RDWR);
		close(j->fd);
	}
	explicit_bzero(j, sizeof(*j));
	free(j);
}

/* As if the options had named this agent. */
void join_turn_to(struct join *j, const struct sockaddr_storage *agent, const char *text)
{
	join_fd_set(j, -1);
	j->agent = *agent;
	snprintf(j->agent_text, sizeof(j->agent_text), "%s", text);
	j->local = j->said;
	j->service.ss_family = 0;
	j->missing = (struct tally_set){ 0 };
	j->has_asked = j->is_refused = j->is_cut = j->is_older = false;
}

/* One that another agent has named may have gone a moment ago, and where others may be asked there
 * is no need to wait: it gets less time to answer. */
static int connect_in_time(struct join *j, bool is_limited)
{
	const uint64_t deadline_ns = j->deadline_ns, soon_ns = clock_now_ns() + NAMED_NS;
	const uint32_t timeout_ms = j->timeout_ms;
	uint64_t until_ns = deadline_ns;
	int r;

	if (is_limited && soon_ns < deadline_ns) {
		j->deadline_ns = until_ns = soon_ns;
		j->timeout_ms = NAMED_NS / 1000000;
	}
	r = join_connect(j);
	if (j->deadline_ns == until_ns) /* join_stop() has not come */
		j->deadline_ns = deadline_ns;
	j->timeout_ms = timeout_ms;
	return r;
}

/* At one agent: a place there, or the word that the job's root is elsewhere. */
static int place_ask(struct join *j, struct channel **ret_channel, struct joining_answer *ret)
{
	int r = join_greet(j);

	if (r == 0)
		r = receiver_open(j, ret_channel);
	if (r == 0)
		r = share_make(j);
	if (r == 0)
		join_way_say(j);
	if (r == 0)
		r = join_request_send(j);
	return r == 0 ? place_wait(j, ret) : r;
}

/* Agents of a cluster know where a job's root is, and may learn that it is another one meanwhile.
 */
static int place_find(struct join *j, struct channel **ret_channel, struct joining_answer *ret)
{
	struct asking asking = asking_begin(j);
	char other[AGENT_BYTES];
	unsigned int turns = 0;
	int r;

	while (turns <= TURNS_MAX) {
		const bool has_connected = (r = connect_in_time(j, turns || j->rescues ||
									   j->listed)) == 0;

		if (has_connected)
			r = place_ask(j, ret_channel, ret);
		if (r < 0 && join_is_older(j, r)) {
			transport_close(TAKE_PTR(*ret_channel));
			continue;
		}
		if (r < 0 && asking_goes_on(j, &asking, r, turns, has_connected)) {
			transport_close(TAKE_PTR(*ret_channel));
			turns = 0;
			continue;
		}
		if (r < 0)
			return asking_end(j, &asking, r);
		if (ret->kind == JOINING_RUN)
			return r;
		transport_close(TAKE_PTR(*ret_channel));
		endpoint_print(&ret->elsewhere, other, sizeof(other));
		join_turn_to(j, &ret->elsewhere, other);
		turns++;
	}
	return error_set(-ELOOP,
			 "agents send this worker from one to the other: the last one named %s. "
			 "Is it the same cluster at all of them (tallyctl topology)?",
			 j->agent_text);
}

/* A place, wherever the job's root is. */
static int place_get(struct join *j, struct channel **ret_channel, struct joining_answer *ret)
{
	struct channel *channel = NULL;
	int r = place_find(j, &channel, ret);

	if (r < 0) {
		transport_close(channel);
		return r;
	}
	key_take(j, ret);
	secret_take(j, ret);
	j->request.rank = ret->rank;
	j->request.epoch = ret->job.epoch;
	j->nonce = ret->job.nonce;
	j->payload_bytes = ret->job.payload_bytes;
	j->others = ret->others;
	memcpy(j->other, ret->other, sizeof(j->other));
	*ret_channel = channel;
	return 0;
}

int join_open(const struct tally_join_options *o, unsigned int root, unsigned int roots,
	      struct join **ret, struct channel **ret_channel, struct joining_answer *ret_place)
{
	struct join *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return error_set(-ENOMEM, "out of memory");
	j->fd = -1;
	pthread_mutex_init(&j->fd_held, NULL);
	j->root = root;
	j->roots = roots;
	j->insists = true;
	join_deadline_set(j, o->join_timeout_ms ? o->join_timeout_ms : JOIN_TIMEOUT_MS);
	r = join_options_read(j, o);
	j->said = j->local;
	if (r == 0)
		r = place_get(j, ret_channel, ret_place);
	if (r < 0) {
		join_free(j);
		return r;
	}
	*ret = j;
	return 0;
}

/* --- the same worker elsewhere */

struct join *join_copy(const struct join *from, const struct sockaddr_storage *agent)
{
	struct join *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	*j = (struct join){ .fd = -1,
			    .root = from->root,
			    .roots = from->roots,
			    .agent = *agent,
			    .local = from->said,
			    .said = from->said,
			    .local_said = from->local_said,
			    .payload_bytes = from->payload_bytes,
			    .request.rank = from->request.rank };
	pthread_mutex_init(&j->fd_held, NULL);
	endpoint_print(agent, j->agent_text, sizeof(j->agent_text));
	memcpy(j->job, from->job, sizeof(j->job));
	memcpy(j->token_key, from->token_key, sizeof(j->token_key));
	if (j->said.ss_family) /* the port is that of the socket that is there */
		endpoint_port_set(&j->said, 0);
	j->local = j->said;
	return j;
}

struct join *join_rescue(const struct join *from)
{
	struct join *j = from->others ? join_copy(from, &from->other[0]) : NULL;

	if (!j)
		return NULL;
	j->rescues = true;
	j->others = from->others;
	memcpy(j->other, from->other, sizeof(j->other));
	j->request.from = from->nonce;
	return j;
}

unsigned int join_others(const struct join *j) { return j->others; }

struct join *join_beside(const struct join *from, const char *job)
{
	struct join *j = join_copy(from, &from->agent);

	if (!j)
		return NULL;
	memcpy(j->agent_text, from->agent_text, sizeof(j->agent_text));
	snprintf(j->job, sizeof(j->job), "%s", job);
	j->payload_bytes = 0; /* a run of its own */
	j->insists = from->insists;
	j->listed = from->listed;
	memcpy(j->list, from->list, sizeof(j->list));
	return j;
}

int join_again(struct join *j, uint32_t timeout_ms, struct channel **ret_channel,
	       struct joining_answer *ret_place)
{
	join_deadline_set(j, timeout_ms ? timeout_ms : JOIN_TIMEOUT_MS);
	return place_get(j, ret_channel, ret_place);
}

void join_stop(struct join *j)
{
	j->deadline_ns = 0;
	pthread_mutex_lock(&j->fd_held);
	if (j->fd >= 0)
		shutdown(j->fd, SHUT_RDWR);
	pthread_mutex_unlock(&j->fd_held);
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

int join_hear(struct join *j, struct why *ret, struct sockaddr_storage *ret_elsewhere)
{
	_cleanup_(freep) struct joining_answer *answer = NULL;
	struct why wrong;
	int said = 0, r = 0;

	if (j->silent || j->over)
		return 0;
	more_receive(j);
	if (j->length)
		answer = malloc(sizeof(*answer));
	while (answer && !j->over && (r = join_answer_take(j, answer, &wrong)) == 0) {
		j->over = answer->kind == JOINING_ERROR;
		j->renews |= answer->kind == JOINING_STAYS && j->has_place;
		j->knows_places |= j->renews;
		if (answer->kind == JOINING_ELSEWHERE && !said) {
			*ret_elsewhere = answer->elsewhere;
			said = JOIN_MOVES;
		}
		if (answer->kind == JOINING_SHARES) {
			memcpy(j->share, answer->shares, sizeof(j->share));
			j->shares = answer->roots;
		}
		if (!j->over && (said == JOIN_ENDS || answer->kind != JOINING_ENDING))
			continue;
		said = j->over ? answer->error : JOIN_ENDS;
		snprintf(ret->text, sizeof(ret->text), "the agent at %s: %.300s", j->agent_text,
			 *answer->text ? answer->text : strerror(-answer->error));
	}
	j->silent |= r < 0 && r != -EAGAIN;
	return said;
}

unsigned int join_shares_heard(const struct join *j, uint16_t ret[JOINING_ROOTS_MAX])
{
	memcpy(ret, j->share, sizeof(j->share));
	return j->shares;
}

const char *join_job(const struct join *j) { return j->job; }
bool join_watches(const struct join *j) { return !j->silent && !j->over; }
bool join_is_to_stay(const struct join *j) { return (j->silent || j->renews) && !j->over; }

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

void join_forget(struct join *j)
{
	if (!j)
		return;
	closep(&j->fd);
	j->fd = -1;
	join_free(j);
}

void join_leave(struct join *j)
{
	struct why kept;

	if (!j || j->over || !connection_is_there(j))
		return;
	snprintf(kept.text, sizeof(kept.text), "%s", tally_error());
	join_deadline_set(j, JOIN_LEAVE_TIMEOUT_MS);
	j->request.what = JOINING_LEAVE;
	j->over = true;
	join_request_send(j);
	error_set(0, "%s", kept.text);
}

void join_drop(struct join *j)
{
	if (!j)
		return;
	join_leave(j);
	join_free(j);
}

void join_close(struct join *j)
{
	struct why kept;

	if (!j)
		return;
	join_leave(j);
	snprintf(kept.text, sizeof(kept.text), "%s", tally_error());
	if (!j->over)
		join_leave_anew(j);
	join_free(j);
	error_set(0, "%s", kept.text);
}
