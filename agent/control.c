// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The control socket: a line of JSON in, a line of JSON out (docs/control.md). */
#include <errno.h>
#include <string.h>

#include "agent.h"
#include "agent/core/request.h"
#include "agent/edge/log.h"
#include "results.h"
#include "verbs.h"

enum {
	CONNECTIONS_MAX = 1024,
	REQUEST_TIMEOUT_S = 10,
	IDLE_TIMEOUT_S = 600,
};

static void say(struct stream *s, char *line)
{
	_cleanup_(freep) char *mine = line;

	if (mine)
		stream_send(s, mine, strlen(mine));
	else
		stream_finish(s); /* no memory, and no words */
}

/* --- requests -------------------------------------------------------------------------------- */

static int request_do(struct agent *a, struct stream *s, const struct request *q, json_t **ret,
		      struct why *why)
{
	switch (q->verb) {
	case REQUEST_STATUS:
		*ret = results_status(a);
		return 0;
	case REQUEST_TENANT_LIST:
		*ret = results_tenants(a, &q->filter);
		return 0;
	case REQUEST_TENANT_ADD:
		return verb_tenant_add(a, q, ret, why);
	case REQUEST_TENANT_SET:
		return verb_tenant_set(a, q, ret, why);
	case REQUEST_TENANT_DEL:
		return verb_tenant_del(a, q, ret, why);
	case REQUEST_JOB_LIST:
		*ret = results_jobs(a, &q->filter);
		return 0;
	case REQUEST_JOB_CREATE:
		return verb_job_create(a, q, ret, why);
	case REQUEST_JOB_TOKEN:
		return verb_job_token(a, q, ret, why);
	case REQUEST_JOB_DEL:
		return verb_job_del(a, q, ret, why);
	case REQUEST_STATS:
		return results_stats(a, &q->filter, ret, why);
	case REQUEST_LINKS:
		*ret = results_links(a);
		return 0;
	case REQUEST_TOP:
		*ret = results_top(a);
		return 0;
	case REQUEST_TRACE:
		*ret = json_object();
		return tracing_begin(a, s, &q->filter, why);
	case REQUEST_VERB_COUNT:
		break;
	}
	return -EINVAL;
}

/* Counters of this moment, not of the last sample. */
static bool wants_traffic(enum request_verb verb) { return verb == REQUEST_STATS; }

static int may(const struct agent *a, const struct stream *s, const struct request *q,
	       struct why *why)
{
	const char *group = a->config->control_group;

	if (!request_changes(q->verb) || stream_peer_may(s, a->control_group))
		return 0;
	return why_say(why, -EPERM, "%s: only root%s%s may do that", request_verb_name(q->verb),
		       *group ? " and members of the group " : "", group);
}

static void request_answer(struct agent *a, struct stream *s, const char *line, size_t length)
{
	struct request q = { 0 };
	struct why why = { "" };
	json_t *result = NULL;
	int r;

	r = request_parse(line, length, &q, &why);
	if (r == 0)
		r = may(a, s, &q, &why);
	if (r == 0 && wants_traffic(q.verb))
		r = agent_watch_anew(a, &why);
	if (r == 0)
		r = request_do(a, s, &q, &result, &why);
	if (r == 0) {
		say(s, request_answer_ok(result));
		return;
	}
	json_decref(result);
	say(s, request_answer_error(r, *why.text ? why.text : strerror(-r)));
}

static ssize_t on_text(struct stream *s, const char *text, size_t length)
{
	const char *end = memchr(text, '\n', length);

	if (stream_context(s))
		return length; /* a tracer says nothing more */
	if (!end)
		return 0;
	request_answer(stream_owner(s), s, text, end - text);
	return end - text + 1;
}

static void on_end(struct stream *s)
{
	if (stream_context(s))
		tracing_end(stream_owner(s), s);
}

static char *refuse(int error)
{
	switch (error) {
	case -EMSGSIZE:
		return request_answer_error(error, "a request has at most 65536 bytes");
	case -ETIMEDOUT:
		return request_answer_error(error, "no whole request came in time");
	default:
		return request_answer_error(error, "too many connections");
	}
}

/* --- open and close -------------------------------------------------------------------------- */

static const struct stream_service service = {
	.name = "control",
	.request_bytes_max = REQUEST_BYTES_MAX + 1,
	.connections_max = CONNECTIONS_MAX,
	.request_timeout_ns = REQUEST_TIMEOUT_S * 1000000000ull,
	.idle_timeout_ns = IDLE_TIMEOUT_S * 1000000000ull,
	.read = on_text,
	.end = on_end,
	.refuse = refuse,
};

int control_open(struct agent *a, struct why *why)
{
	const struct config *c = a->config;
	int r;

	a->control_group = -1;
	r = *c->control_group ? stream_group_find(c->control_group, &a->control_group, why) : 0;
	if (r == 0)
		r = stream_server_open(a->loop, &service, a, &a->control);
	if (r < 0)
		return r;
	return stream_listen_unix(a->control, c->control_socket, 0666, a->control_group, why);
}

void control_close(struct agent *a)
{
	stream_server_close(a->control); /* and with each connection its tracer */
	a->control = NULL;
}
