// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The control socket: a line of JSON in, a line of JSON out (docs/control.md). */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "agent/core/request.h"
#include "agent/edge/stream.h"
#include "control.h"
#include "results.h"
#include "tracing.h"

enum {
	CONNECTIONS_MAX = 1024,
	REQUEST_TIMEOUT_S = 10,
	IDLE_TIMEOUT_S = 600,
};

struct control {
	struct stream_server *server;
	gid_t group; /* that may change things; -1: none */
	struct driver *driver;
	struct sampler *sampler;
	struct tracing tracing;
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

/* 1: the core answers, by control_answer(). */
static int change(struct control *c, struct stream *s, const struct request *q)
{
	uint8_t random[CORE_RANDOM_BYTES];
	const struct core_event e = { .kind = CORE_REQUEST,
				      .connection = s,
				      .asked = { q, random } };

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	driver_handle(c->driver, &e);
	explicit_bzero(random, sizeof(random));
	return 1;
}

/* What *ret is the answer to; or as change(). */
static int perform(struct control *c, struct stream *s, const struct request *q, json_t **ret,
		   struct why *why)
{
	const struct core *core = driver_core(c->driver);

	switch (q->verb) {
	case REQUEST_STATUS:
		*ret = results_status(core, c->sampler);
		return 0;
	case REQUEST_RELOAD:
		*ret = json_object();
		return driver_reload(c->driver, why);
	case REQUEST_TENANT_LIST:
		return results_tenants(core_books(core), &q->filter, ret, why);
	case REQUEST_JOB_LIST:
		return results_jobs(core_books(core), &q->filter, ret, why);
	case REQUEST_JOB_TOKEN:
		return results_token(core_books(core), q->name, ret, why);
	case REQUEST_STATS: {
		/* counters of this moment, not of the last sample */
		int r = sampler_refresh(c->sampler, why);

		return r < 0 ? r : results_stats(core, c->sampler, &q->filter, ret, why);
	}
	case REQUEST_LINKS:
		*ret = results_links(core, c->sampler);
		return 0;
	case REQUEST_TOP:
		*ret = results_top(core, c->sampler);
		return 0;
	case REQUEST_TRACE:
		*ret = json_object();
		return tracing_begin(&c->tracing, s, &q->filter, why);
	default:
		return change(c, s, q);
	}
}

static int may(const struct control *c, const struct stream *s, const struct request *q,
	       struct why *why)
{
	const char *group = core_config(driver_core(c->driver))->control_group;

	if (!request_changes(q->verb) || stream_peer_may(s, c->group))
		return 0;
	return why_say(why, -EPERM, "%s: only root%s%s may do that", request_verb_name(q->verb),
		       *group ? " and members of the group " : "", group);
}

static void answer_error(struct stream *s, int error, const char *text)
{
	say(s, request_answer_error(error, *text ? text : strerror(-error)));
}

void control_answer(struct control *c, const struct core_action *a)
{
	const struct books *books = core_books(driver_core(c->driver));
	struct stream *s = a->connection;

	switch (a->answer.kind) {
	case CORE_ANSWER_ERROR:
		answer_error(s, a->error, a->answer.text);
		return;
	case CORE_ANSWER_DONE:
		say(s, request_answer_ok(json_object()));
		return;
	case CORE_ANSWER_TENANT:
		say(s, request_answer_ok(results_tenant(books, a->answer.tenant)));
		return;
	case CORE_ANSWER_CREATED:
		say(s, request_answer_ok(results_created(a->job)));
		return;
	}
}

static void request_answer(struct control *c, struct stream *s, const char *line, size_t length)
{
	struct request q = { 0 };
	struct why why = { "" };
	json_t *result = NULL;
	int r;

	r = request_parse(line, length, &q, &why);
	if (r == 0)
		r = may(c, s, &q, &why);
	if (r == 0)
		r = perform(c, s, &q, &result, &why);
	if (r == 0)
		say(s, request_answer_ok(result));
	if (r >= 0)
		return;
	json_decref(result);
	answer_error(s, r, why.text);
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
	struct control *c = stream_owner(s);

	if (stream_context(s))
		tracing_end(&c->tracing, s);
}

static char *refuse(int error)
{
	switch (error) {
	case -EMSGSIZE:
		return request_answer_error(error, "a request has at most 65536 bytes");
	case -ETIMEDOUT:
		return request_answer_error(error, "request not complete after 10 s");
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

int control_open(sd_event *loop, struct driver *d, const struct node *node, struct sampler *sampler,
		 struct control **ret, struct why *why)
{
	const struct config *config = core_config(driver_core(d));
	struct control *c = calloc(1, sizeof(*c));
	int r;

	*ret = c;
	if (!c)
		return -ENOMEM;
	*c = (struct control){ .driver = d, .sampler = sampler, .group = -1 };
	c->tracing = (struct tracing){ .loop = loop, .node = node, .core = driver_core(d) };
	r = *config->control_group ? stream_group_find(config->control_group, &c->group, why) : 0;
	if (r == 0)
		r = stream_server_open(loop, &service, c, &c->server);
	if (r < 0)
		return r;
	return stream_listen_unix(c->server, config->control_socket, 0666, c->group, why);
}

void control_close(struct control *c)
{
	if (c)
		stream_server_close(c->server); /* and with each connection its tracer */
	free(c);
}
