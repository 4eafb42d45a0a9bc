// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Workers at their places: a connection is a worker that waits for the next run of a job, or is
 * in the one that goes on. The protocol: docs/joining.md; its words: common/joining.h.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "agent.h"
#include "agent/edge/log.h"
#include "common/address.h"
#include "common/joining.h"
#include "common/name.h"
#include "common/ranks.h"

enum {
	CONNECTIONS_MAX = 8192,
	REQUEST_TIMEOUT_S = 10,
};

/* A worker's connection, once it has a rank. */
struct member {
	struct member *next, **before; /* in the agent's list */
	struct stream *stream;
	struct job *job;
	uint16_t rank;
	uint16_t epoch; /* of the run that it is in */
	bool waiting;
};

/* --- words ----------------------------------------------------------------------------------- */

static void say_error(struct stream *s, int error, const char *words)
{
	char text[JOINING_TEXT_BYTES + 64];
	size_t length = 0;

	if (joining_error_print(error, words, text, sizeof(text), &length) == 0)
		stream_send(s, text, length);
	stream_finish(s);
}

static char *refuse(int error)
{
	const char *words = error == -EMSGSIZE	  ? "the request is too long"
			    : error == -ETIMEDOUT ? "the request did not come in time"
						  : "the agent serves as many workers as it can";
	char text[JOINING_TEXT_BYTES + 64];
	size_t length = 0;

	if (joining_error_print(error, words, text, sizeof(text), &length) < 0)
		return NULL;
	return strdup(text);
}

/* --- places ---------------------------------------------------------------------------------- */

static struct member *member_new(struct agent *a, struct stream *s, struct job *j, uint16_t rank)
{
	struct member *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct member){
		.next = a->places,
		.before = &a->places,
		.stream = s,
		.job = j,
		.rank = rank,
		.waiting = true,
	};
	if (p->next)
		p->next->before = &p->next;
	a->places = p;
	j->rank[rank].connection = p;
	stream_context_set(s, p);
	stream_keep(s);
	return p;
}

static void member_free(struct member *p)
{
	if (p->next)
		p->next->before = p->before;
	*p->before = p->next;
	stream_context_set(p->stream, NULL);
	if (p->job->rank[p->rank].connection == p)
		p->job->rank[p->rank].connection = NULL;
	free(p);
}

static void tell_missing(struct job *j)
{
	struct tally_set missing = job_missing(j);
	char text[RANKS_BYTES + 64];
	size_t length = 0;

	if (tally_set_is_empty(&missing) ||
	    joining_waiting_print(&missing, text, sizeof(text), &length) < 0)
		return;
	for (uint16_t rank = 0; rank < j->workers; rank++)
		if (j->rank[rank].waiting)
			stream_send(((struct member *)j->rank[rank].connection)->stream, text,
				    length);
}

/* Whoever waits goes away with an error. */
static void send_away(struct job *j, int error, const char *words)
{
	for (uint16_t rank = 0; rank < j->workers; rank++) {
		struct member *p = j->rank[rank].connection;

		if (!j->rank[rank].waiting)
			continue;
		job_unjoin(j, rank);
		say_error(p->stream, error, words);
		member_free(p);
	}
}

/* --- a run begins ---------------------------------------------------------------------------- */

static void tell_run(const struct job *j)
{
	_cleanup_(freep) struct run *file = malloc(sizeof(*file));
	char text[JOINING_ANSWER_BYTES + 1];
	size_t length = 0;

	if (!file)
		return; /* workers run into their timeout, and come again */
	job_this_run(j, file);
	for (uint16_t rank = 0; rank < j->workers; rank++) {
		struct member *p = j->rank[rank].connection;

		if (joining_run_print(rank, file, text, sizeof(text), &length) == 0)
			stream_send(p->stream, text, length);
	}
}

static void run_begin(struct agent *a, struct job *j)
{
	struct why why = { "" };
	int r;

	r = agent_run_begin(a, j, &why);
	if (r < 0) {
		log_say(LOG_LEVEL_WARNING, "run does not begin", "job=%s reason=\"%s\"", j->name,
			why.text);
		/* to a worker EACCES is a wrong token, and that it was not */
		send_away(j, r == -EACCES ? -EIO : r, *why.text ? why.text : strerror(-r));
		return;
	}
	for (uint16_t rank = 0; rank < j->workers; rank++) {
		struct member *p = j->rank[rank].connection;

		p->waiting = false;
		p->epoch = j->epoch;
	}
	log_say(LOG_LEVEL_INFO, "run begins", "job=%s id=%u epoch=%u workers=%u window=%u", j->name,
		j->id, j->epoch, j->workers, j->run_window);
	tell_run(j);
}

/* --- coming and going ------------------------------------------------------------------------ */

/* Where the worker receives. Over TCP nobody can have results sent to another machine. */
static int address_of(struct stream *s, const struct joining_message *q,
		      struct sockaddr_storage *ret, struct why *why)
{
	const struct sockaddr_storage *peer = stream_peer(s);
	struct sockaddr_storage there = *peer;

	if (peer->ss_family == AF_UNIX) {
		if (!q->address.ss_family)
			return why_say(why, -EINVAL,
				       "address: needed on this socket, such as 10.77.1.1:40000");
		*ret = q->address;
		return 0;
	}
	endpoint_port_set(&there, q->address.ss_family ? endpoint_port(&q->address) : q->port);
	if (q->address.ss_family && !endpoint_is_equal(&there, &q->address))
		return why_say(why, -EINVAL,
			       "address: not the one that this connection comes "
			       "from");
	*ret = there;
	return 0;
}

static struct job *job_of(struct agent *a, const struct joining_message *q, struct why *why)
{
	struct job *j = books_job_find(&a->books, q->job);

	/* A stranger does not learn which jobs there are. */
	if (token_is_equal(q->token, j ? j->token : ""))
		return j;
	why_say(why, -EACCES, "no such job, or a wrong token");
	return NULL;
}

static int join(struct agent *a, struct stream *s, const struct joining_message *q, struct why *why)
{
	struct job *j = job_of(a, q, why);
	struct sockaddr_storage address = { 0 };
	uint16_t rank = 0;
	int r;

	if (!j)
		return -EACCES;
	r = address_of(s, q, &address, why);
	if (r == 0)
		r = job_join(j, q->rank, &address, &rank, why);
	if (r < 0)
		return r == -EAFNOSUPPORT ? -EINVAL : r; /* the wire has no name for it */
	r = agent_meet(a, &address, why);
	if (r == 0 && !member_new(a, s, j, rank))
		r = -ENOMEM;
	if (r < 0) {
		job_unjoin(j, rank);
		return r == -ENOMEM ? r : -EHOSTUNREACH;
	}
	if (job_is_ready(j))
		run_begin(a, j);
	else
		tell_missing(j);
	return 0;
}

void members_left(struct agent *a, struct job *j, uint16_t rank, uint16_t epoch)
{
	if (!job_is_at(j, rank, epoch))
		return;
	if (job_leave(j, rank, epoch)) {
		log_say(LOG_LEVEL_INFO, "run is over", "job=%s epoch=%u", j->name, epoch);
		agent_run_end(a, j);
	}
	agent_save_soon(a);
}

static int leave(struct agent *a, struct stream *s, const struct joining_message *q,
		 struct why *why)
{
	struct job *j = job_of(a, q, why);
	size_t length = 0;
	char text[16];

	if (!j)
		return -EACCES;
	/* Who is connected leaves by ending that connection, and nobody else does it in his name.
	 */
	if (q->rank < j->workers && j->rank[q->rank].presence == JOB_DETACHED)
		members_left(a, j, q->rank, q->epoch);
	if (joining_left_print(text, sizeof(text), &length) == 0)
		stream_send(s, text, length);
	stream_finish(s);
	return 0;
}

static void on_end(struct stream *s)
{
	struct member *p = stream_context(s);
	struct agent *a = stream_owner(s);
	struct member gone;

	if (!p)
		return;
	gone = *p;
	member_free(p);
	if (gone.waiting) {
		job_unjoin(gone.job, gone.rank);
		tell_missing(gone.job);
	} else {
		members_left(a, gone.job, gone.rank, gone.epoch);
	}
}

static ssize_t on_text(struct stream *s, const char *text, size_t length)
{
	struct joining_message q = { 0 };
	struct agent *a = stream_owner(s);
	struct why why = { "" };
	size_t used = 0;
	int r;

	if (stream_context(s))
		return length; /* a place says nothing more */
	r = joining_message_parse(text, length, &q, &used, why.text, sizeof(why.text));
	if (r == -EAGAIN)
		return 0;
	if (r == 0)
		r = q.leave ? leave(a, s, &q, &why) : join(a, s, &q, &why);
	explicit_bzero(q.token, sizeof(q.token));
	if (r < 0) {
		log_say(LOG_LEVEL_DEBUG, "worker refused", "job=%s reason=\"%s\"", q.job, why.text);
		say_error(s, r, *why.text ? why.text : strerror(-r));
	}
	return r < 0 ? (ssize_t)length : (ssize_t)used;
}

/* --- open and close -------------------------------------------------------------------------- */

static const struct stream_service service = {
	.name = "joining",
	.request_bytes_max = JOINING_MESSAGE_BYTES,
	.connections_max = CONNECTIONS_MAX,
	.request_timeout_ns = REQUEST_TIMEOUT_S * 1000000000ull,
	.idle_timeout_ns = REQUEST_TIMEOUT_S * 1000000000ull,
	.read = on_text,
	.end = on_end,
	.refuse = refuse,
};

int members_open(struct agent *a, struct why *why)
{
	const struct config *c = a->config;
	int r;

	r = stream_server_open(a->loop, &service, a, &a->joining);
	if (r == 0 && *c->join_socket)
		r = stream_listen_unix(a->joining, c->join_socket, 0666, -1, why);
	for (unsigned int i = 0; r == 0 && i < c->listens; i++)
		r = stream_listen_tcp(a->joining, &c->listen[i], why);
	return r;
}

void members_cancel(struct agent *a, const struct job *j, const char *words)
{
	struct member *p = a->places;

	while (p) {
		struct stream *s = p->stream;

		if (p->job != j) {
			p = p->next;
			continue;
		}
		member_free(p);
		say_error(s, -ECANCELED, words);
		p = a->places; /* the list has changed */
	}
}

/* The agent ends, the runs do not: no worker has left. */
void members_close(struct agent *a)
{
	while (a->places)
		member_free(a->places);
	stream_server_close(a->joining);
	a->joining = NULL;
}
