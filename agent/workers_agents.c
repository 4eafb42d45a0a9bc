// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Agents of other nodes, at the port where workers join: docs/peering.md. */
#include <errno.h>
#include <string.h>

#include "agent/edge/log.h"
#include "common/address.h"
#include "hops.h"
#include "workers_private.h"

int workers_agent_greets(struct stream *s, const char *text, size_t length, size_t *ret_used,
			 struct why *why)
{
	_cleanup_(freep) struct worker *w = calloc(1, sizeof(*w));
	const struct workers *workers = stream_owner(s);
	int r;

	if (!w)
		return -ENOMEM;
	w->is_agent = true;
	r = peers_greet(s, driver_core(workers->driver), driver_sharing(workers->driver),
			workers->share, text, length, &w->peer, ret_used, why);
	if (r == 0)
		stream_context_set(s, TAKE_PTR(w));
	return r;
}

/* What is none of the core's business. NULL: nothing was to be done. */
static int peer_answer(struct stream *s, const struct paths_question *hops)
{
	static const char done[] = "{\"ok\": true, \"result\": {}}\n";
	_cleanup_(freep) struct paths_view *v = calloc(1, sizeof(*v));
	_cleanup_(freep) char *line = NULL;
	const struct workers *workers = stream_owner(s);

	if (hops && v) {
		hops_look(driver_netlink(workers->driver), hops, v);
		line = peers_hops_line(v);
	}
	if (hops && !line)
		return -ENOMEM;
	workers_say(s, hops ? line : done, strlen(hops ? line : done));
	stream_finish(s);
	return 0;
}

/* One on each connection. */
int workers_agent_asks(struct stream *s, const char *text, size_t length, size_t *ret_used,
		       struct why *why)
{
	_cleanup_(freep) struct paths_question *hops = calloc(1, sizeof(*hops));
	_cleanup_(freep) struct request *q = calloc(1, sizeof(*q));
	struct workers *workers = stream_owner(s);
	struct worker *w = stream_context(s);
	uint8_t random[CORE_RANDOM_BYTES];
	const struct core_event e = { .kind = CORE_REQUEST,
				      .connection = s,
				      .asked = { q, random } };
	int r;

	if (!q || !hops)
		return -ENOMEM;
	r = peers_request_take(&w->peer, driver_core(workers->driver), workers->secret, text,
			       length, q, hops, ret_used, why);
	if (r < 0)
		return r;
	if (r > 0)
		return peer_answer(s, r == PEERS_HOPS ? hops : NULL);
	w->asked = request_verb_name(q->verb);
	snprintf(w->job, sizeof(w->job), "%s",
		 q->verb == REQUEST_APPLY ? q->apply.document.job : q->name);
	r = workers_draw(random, sizeof(random));
	if (r == 0)
		driver_handle(workers->driver, &e);
	explicit_bzero(q, sizeof(*q)); /* a document has keys in it */
	return r;
}

/* As requests of the control socket are (agent/control.c), but for what a document has in it. */
static void audit(const struct worker *w, int result)
{
	char root[ADDRESS_BYTES];

	address_print(&w->peer.root, root, sizeof(root));
	log_say(LOG_LEVEL_INFO, "request", "agent=%s result=%s request=%s job=%s", root,
		result < 0 ? strerrorname_np(-result) : "done", w->asked, w->job);
}

bool workers_asked(const struct workers *w, const void *connection)
{
	return stream_owner(connection) == w;
}

void workers_answer(const struct core_action *a, const char *line)
{
	audit(stream_context(a->connection), a->answer.kind == CORE_ANSWER_ERROR ? a->error : 0);
	if (line)
		workers_say(a->connection, line, strlen(line));
	stream_finish(a->connection);
}
