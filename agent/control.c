// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The control socket: a line of JSON in, a line of JSON out (docs/control.md). */
#include <errno.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "agent/core/request.h"
#include "agent/edge/log.h"
#include "agent/edge/stream.h"
#include "common/clock.h"
#include "control.h"
#include "placing.h"
#include "results.h"
#include "rights.h"
#include "tracing.h"

enum {
	CONNECTIONS_MAX = 1024,
	REQUEST_TIMEOUT_S = 10,
	IDLE_TIMEOUT_S = 600,
	AUDIT_BYTES = 1024, /* of a request, in the log */
};

/* A change that the store is asked for: the log has it when that answers. */
struct unanswered {
	STAILQ_ENTRY(unanswered) list;
	struct stream *stream;
	enum request_verb verb;
	size_t length;
	char line[];
};

struct control {
	struct stream_server *server;
	STAILQ_HEAD(all_unanswered, unanswered) unanswered; /* the first one was asked for first */
	struct rights rights;
	int answered; /* 0, or the error, of the last change */
	uint64_t refused_ns; /* when the log had the last refusal */
	unsigned int refused; /* since then */
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

/* A group that is not there would have no members, and nobody would wonder why. */
static int group_check(const struct request *q, struct why *why)
{
	gid_t ignored;

	if (!(q->given & REQUEST_GROUP) || !*q->tenant.group)
		return 0;
	return stream_group_find("group", q->tenant.group, &ignored, why);
}

/*
 * The job that agents share, of those that it may be about; or NULL. A job of this node alone that
 * has the same name is meant here.
 */
static const struct shared_job *shared_of(const struct control *c, const struct request *q)
{
	const struct placing *p = driver_placing(c->driver);
	const struct job *j;

	if (!p || (q->verb != REQUEST_JOB_DEL && q->verb != REQUEST_JOB_TOKEN &&
		   q->verb != REQUEST_JOB_ROTATE))
		return NULL;
	j = books_job_find(core_books(driver_core(c->driver)), q->name);
	return j && !j->clustered && !j->document ? NULL : shared_find(placing_shared(p), q->name);
}

/* Is it about a job or tenant that agents share? */
static bool is_shared(const struct control *c, const struct request *q)
{
	if (q->verb == REQUEST_JOB_CREATE)
		return q->job.clustered;
	if (q->verb == REQUEST_TENANT_ADD || q->verb == REQUEST_TENANT_SET ||
	    q->verb == REQUEST_TENANT_DEL)
		return q->tenant.clustered;
	return q->verb == REQUEST_JOB_PLACE || shared_of(c, q);
}

static int perform_shared(struct control *c, struct stream *s, const struct request *q,
			  json_t **ret, struct why *why)
{
	struct placing *p = driver_placing(c->driver);
	uint8_t random[CORE_RANDOM_BYTES];
	int r;

	c->answered = 0;
	if (!p)
		return results_no_cluster(driver_core(c->driver), why);
	switch (q->verb) {
	case REQUEST_JOB_CREATE:
		if (getrandom(random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		r = placing_create(p, s, &q->job, random, why);
		explicit_bzero(random, sizeof(random));
		return r < 0 ? r : 1;
	case REQUEST_TENANT_ADD:
	case REQUEST_TENANT_SET:
	case REQUEST_TENANT_DEL:
		r = group_check(q, why);
		if (r == 0)
			r = placing_tenant(p, s, q, why);
		return r < 0 ? r : 1;
	case REQUEST_JOB_PLACE:
		r = placing_place(p, s, q->documents.job, q->documents.node, q->documents.stay,
				  why);
		return r < 0 ? r : 1;
	case REQUEST_JOB_DEL:
		r = placing_delete(p, s, q->name, why);
		return r < 0 ? r : 1;
	case REQUEST_JOB_TOKEN:
		*ret = json_pack("{ss}", "token",
				 shared_find(placing_shared(p), q->name)->job.token);
		return 0;
	default: /* REQUEST_JOB_ROTATE */
		if (getrandom(random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		r = placing_rotate(p, s, q->name, random, why);
		explicit_bzero(random, sizeof(random));
		return r < 0 ? r : 1;
	}
}

/* What *ret is the answer to; or as change(). `seen`: tenants, a bit for each. */
static int perform(struct control *c, struct stream *s, const struct request *q, uint64_t seen,
		   json_t **ret, struct why *why)
{
	const struct core *core = driver_core(c->driver);
	int r;

	if (is_shared(c, q))
		return perform_shared(c, s, q, ret, why);
	switch (q->verb) {
	case REQUEST_STATUS:
		*ret = results_status(core, driver_carry(c->driver), c->sampler, seen);
		json_object_set_new(*ret, "cluster",
				    results_cluster(core, driver_sharing(c->driver)));
		results_cluster_troubles(driver_sharing(c->driver), driver_placing(c->driver),
					 driver_steering(c->driver), core, seen,
					 json_object_get(*ret, "troubles"));
		return 0;
	case REQUEST_RELOAD:
		*ret = json_object();
		return driver_reload(c->driver, why);
	case REQUEST_TENANT_LIST:
		if (q->filter.clustered)
			return results_shared_tenants(core, driver_sharing(c->driver),
						      driver_placing(c->driver), &q->filter, seen,
						      ret, why);
		return results_tenants(core_books(core), &q->filter, seen, ret, why);
	case REQUEST_JOB_LIST:
		return results_jobs(core_books(core), driver_carry(c->driver), c->sampler->lateness,
				    &q->filter, seen, ret, why);
	case REQUEST_JOB_TOKEN:
		return results_token(core_books(core), q->name, ret, why);
	case REQUEST_JOB_DOCUMENTS:
		return results_documents(core_books(core), &q->documents, ret, why);
	case REQUEST_STATS:
		/* counters of this moment, not of the last sample */
		r = sampler_refresh(c->sampler, why);
		return r < 0 ? r : results_stats(core, c->sampler, &q->filter, seen, ret, why);
	case REQUEST_LINKS:
		*ret = results_links(core, c->sampler);
		return 0;
	case REQUEST_TOP:
		*ret = results_top(core, c->sampler, seen);
		return 0;
	case REQUEST_CLUSTER:
		return results_shared(core, driver_sharing(c->driver), driver_placing(c->driver),
				      driver_steering(c->driver), &q->filter, seen, ret, why);
	case REQUEST_EVENTS:
		return results_events(core, driver_sharing(c->driver), seen, ret, why);
	case REQUEST_TOPOLOGY:
		return results_topology(core, driver_sharing(c->driver), ret, why);
	case REQUEST_TRACE:
		*ret = json_object();
		return tracing_begin(&c->tracing, s, &q->filter, why);
	default:
		r = group_check(q, why);
		return r < 0 ? r : change(c, s, q);
	}
}

/* --- who did what ---------------------------------------------------------------------------- */

/* Anybody can be refused as often as they like: of those, one a second. */
static bool is_audited(struct control *c, int result)
{
	const uint64_t now_ns = clock_now_ns();

	if (result != -EPERM)
		return true;
	c->refused++;
	if (c->refused_ns && now_ns - c->refused_ns < 1000000000)
		return false;
	c->refused_ns = now_ns;
	return true;
}

/* Without the keys of a document, which no log has. */
static void audit(struct control *c, const struct stream *s, const struct request *q,
		  const char *line, size_t length, int result)
{
	const struct ucred who = stream_peer_who(s);
	_cleanup_(freep) char *printed = NULL;
	const char *text;

	if (request_kinds[q->verb].right == REQUEST_ANYONE || !is_audited(c, result))
		return;
	printed = request_print(line, length);
	text = printed ? printed : request_verb_name(q->verb);
	if (result == -EPERM)
		log_say(LOG_LEVEL_WARNING, "request refused", "uid=%u pid=%d times=%u request=%.*s",
			who.uid, who.pid, c->refused, AUDIT_BYTES, text);
	else
		log_say(LOG_LEVEL_INFO, "request", "uid=%u pid=%d result=%s request=%.*s", who.uid,
			who.pid, result < 0 ? strerrorname_np(-result) : "done", AUDIT_BYTES, text);
	if (result == -EPERM)
		c->refused = 0;
}

static void unanswered_end(struct control *c, struct unanswered *u, int result)
{
	const struct request q = { .verb = u->verb };

	STAILQ_REMOVE(&c->unanswered, u, unanswered, list);
	audit(c, u->stream, &q, u->line, u->length, result);
	explicit_bzero(u->line, u->length);
	free(u);
}

static void audit_later(struct control *c, struct stream *s, const struct request *q,
			const char *line, size_t length)
{
	struct unanswered *u = malloc(sizeof(*u) + length);

	if (!u) {
		audit(c, s, q, line, length, 0); /* it is asked for, at least */
		return;
	}
	*u = (struct unanswered){ .stream = s, .verb = q->verb, .length = length };
	memcpy(u->line, line, length);
	STAILQ_INSERT_TAIL(&c->unanswered, u, list);
}

static struct unanswered *unanswered_find(const struct control *c, const struct stream *s)
{
	struct unanswered *u;

	STAILQ_FOREACH(u, &c->unanswered, list)
	if (u->stream == s)
		return u;
	return NULL;
}

static void answer_error(struct stream *s, int error, const char *text)
{
	say(s, request_answer_error(error, *text ? text : strerror(-error)));
}

char *control_line(const struct core *core, const struct core_action *a)
{
	switch (a->answer.kind) {
	case CORE_ANSWER_ERROR:
		return request_answer_error(a->error,
					    *a->answer.text ? a->answer.text : strerror(-a->error));
	case CORE_ANSWER_DONE:
		return request_answer_ok(json_object());
	case CORE_ANSWER_TENANT:
		return request_answer_ok(results_tenant(core_books(core), a->answer.tenant));
	case CORE_ANSWER_CREATED:
		return request_answer_ok(results_created(a->job));
	case CORE_ANSWER_APPLIED:
		return request_answer_ok(results_applied(a->job));
	}
	return NULL;
}

void control_answer(struct control *c, const struct core_action *a)
{
	c->answered = a->answer.kind == CORE_ANSWER_ERROR ? a->error : 0;
	say(a->connection, control_line(driver_core(c->driver), a));
}

void control_told(void *connection, int result, char *line)
{
	struct control *c = stream_owner(connection);
	struct unanswered *u = unanswered_find(c, connection);

	if (u)
		unanswered_end(c, u, result);
	say(connection, line);
}

static void request_answer(struct control *c, struct stream *s, const char *line, size_t length)
{
	struct request q = { 0 };
	struct why why = { "" };
	json_t *result = NULL;
	struct asker asker;
	bool shared;
	int r;

	r = request_parse(line, length, &q, &why);
	if (r < 0) {
		answer_error(s, r, why.text);
		return;
	}
	asker = rights_of(&c->rights, s, driver_core(c->driver));
	r = rights_check(&asker, driver_core(c->driver), shared_of(c, &q), &q, &why);
	if (r == 0 && request_kinds[q.verb].right != REQUEST_ANYONE && stream_is_deserted(s))
		r = -ECONNRESET; /* whoever asked has given up, and takes it for not done */
	shared = is_shared(c, &q); /* and not when it is done */
	if (r == 0)
		r = perform(c, s, &q, asker.seen, &result, &why);
	if (r == 0) {
		say(s, request_answer_ok(result));
	} else if (r < 0) {
		json_decref(result);
		answer_error(s, r, why.text);
	}
	if (r > 0 && shared)
		audit_later(c, s, &q, line, length);
	else
		audit(c, s, &q, line, length, r > 0 ? c->answered : r);
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

/*
 * Changes wait for the disk, and may be many; `status` goes before these. Anybody may ask for
 * lists, and for changes that they may not make: changes of those who may go before these.
 */
static unsigned int patience(struct stream *s, const char *text, size_t length)
{
	struct control *c = stream_owner(s);
	const struct core *core = driver_core(c->driver);
	const char *end = memchr(text, '\n', length);
	struct request q = { 0 };
	struct why ignored;
	struct asker asker;

	if (!end || request_parse(text, end - text, &q, &ignored) < 0 || q.verb == REQUEST_STATUS)
		return 0;
	asker = rights_of(&c->rights, s, core);
	return request_kinds[q.verb].right == REQUEST_ANYONE ||
			       rights_check(&asker, core, shared_of(c, &q), &q, &ignored) < 0
		       ? 2
		       : 1;
}

/* Whoever asked has gone before it was done: of what they asked, the first. */
static void audit_unread(struct control *c, const struct stream *s)
{
	const struct core *core = driver_core(c->driver);
	size_t length = 0;
	const char *text = stream_unread(s, &length);
	const char *end = length ? memchr(text, '\n', length) : NULL;
	struct request q = { 0 };
	struct why ignored;
	struct asker asker;

	if (!end || request_parse(text, end - text, &q, &ignored) < 0)
		return;
	asker = rights_of(&c->rights, s, core);
	audit(c, s, &q, text, end - text,
	      rights_check(&asker, core, shared_of(c, &q), &q, &ignored) < 0 ? -EPERM
									     : -ECONNRESET);
}

static void on_end(struct stream *s)
{
	struct control *c = stream_owner(s);
	struct unanswered *u;

	placing_forget(driver_placing(c->driver), s);
	/* Whether the store has done it, nobody is told any more. */
	while ((u = unanswered_find(c, s)))
		unanswered_end(c, u, -ECONNRESET);
	if (stream_context(s))
		tracing_end(&c->tracing, s);
	else
		audit_unread(c, s);
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
	.priority = SD_EVENT_PRIORITY_NORMAL - 1,
	.read = on_text,
	.patience = patience,
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
	*c = (struct control){ .driver = d, .sampler = sampler, .rights.operators = -1 };
	STAILQ_INIT(&c->unanswered);
	c->tracing = (struct tracing){ .loop = loop, .node = node, .core = driver_core(d) };
	r = rights_check_groups(config, why);
	if (r == 0)
		r = rights_find_operators(config, &c->rights.operators, why);
	if (r == 0)
		r = stream_server_open(loop, &service, c, &c->server);
	if (r < 0)
		return r;
	return stream_listen_unix(c->server, config->control_socket, 0666, c->rights.operators,
				  why);
}

void control_close(struct control *c)
{
	if (c)
		stream_server_close(c->server); /* and with each connection its tracer */
	free(c);
}
