// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "carrier.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "agent/edge/log.h"
#include "agent/edge/peer_secret.h"
#include "agent/edge/teller.h"
#include "common/address.h"
#include "common/clock.h"
#include "results.h"

enum {
	SLACK_US = 10000,
};

struct carrier {
	const struct core *core;
	struct carry carry;
	struct teller *teller;
	sd_event_source *answers, *timer;
};

/* {"do": "apply", "document": ...}, or a farewell; NULL: no memory, or the run is over by now. */
static char *line_make(const struct carrier *c, const struct carry_way *w)
{
	_cleanup_(json_decrefp) json_t *line = NULL;
	const struct job *j = books_job_numbered(core_books(c->core), w->id);

	if (w->said_farewell)
		line = json_pack("{ss ss sI}", "do", "job-del", "name", w->job, "id",
				 (json_int_t)w->id);
	else if (j && j->tree && j->run_window)
		line = json_pack("{ss so}", "do", "apply", "document",
				 results_document(j, w->node));
	return line ? json_dumps(line, JSON_COMPACT) : NULL;
}

static void done(struct carrier *c, struct carry_way *w, int error, const char *why)
{
	char at[ADDRESS_BYTES];

	address_print(&w->address, at, sizeof(at));
	if (error == 0)
		log_say(LOG_LEVEL_INFO, w->said_farewell ? "farewell told" : "document told",
			"job=%s epoch=%u node=%s address=%s", w->job, w->said_epoch, w->name, at);
	if (carry_done(&c->carry, w, error, why, clock_now_ns()) && error < 0)
		log_say(LOG_LEVEL_WARNING, "cannot tell an inner node, trying again",
			"job=%s node=%s address=%s reason=\"%s\"", w->job, w->name, at, why);
}

static void tell(struct carrier *c, struct carry_way *w)
{
	const struct config *config = core_config(c->core);
	struct telling what = { .to = w->address, .root = w->root, .context = w };
	struct why why = { "" };
	int r = peer_secret_read(config->peers.secret, what.key, &why);

	_Static_assert((int)CARRY_UNDER_WAY_MAX <= (int)TELLER_UNDER_WAY_MAX, "");
	if (r == 0) {
		what.line = line_make(c, w);
		r = what.line ? teller_tell(c->teller, &what) : -ENOMEM;
	}
	explicit_bzero(what.key, sizeof(what.key));
	if (r < 0)
		done(c, w, r, *why.text ? why.text : strerror(-r));
}

static void timer_set(struct carrier *c)
{
	const uint64_t at_ns = carry_deadline_ns(&c->carry);

	if (at_ns != UINT64_MAX)
		sd_event_source_set_time(c->timer, at_ns / 1000 + 1);
	sd_event_source_set_enabled(c->timer,
				    at_ns == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

static void forgotten_log(struct carrier *c)
{
	struct carry_tenant *t = NULL;
	struct why why;

	while ((t = carry_forgotten(&c->carry, t, &why))) {
		if (t->forgotten_said != t->forgotten)
			log_say(LOG_LEVEL_WARNING, "farewells are forgotten",
				"tenant=%s reason=\"%s\"", t->name, why.text);
		t->forgotten_said = t->forgotten;
	}
}

void carrier_look(struct carrier *c)
{
	const uint64_t now_ns = clock_now_ns();
	struct carry_way *w;

	if (!c || !*core_config(c->core)->peers.secret)
		return;
	if (carry_look(&c->carry, core_books(c->core), now_ns) < 0)
		log_say(LOG_LEVEL_ERROR, "out of memory: some inner nodes are not told", "jobs=%u",
			core_books(c->core)->jobs);
	forgotten_log(c);
	while ((w = carry_next(&c->carry, now_ns)))
		tell(c, w);
	timer_set(c);
}

static int on_answer(sd_event_source *io, int fd, uint32_t events, void *data)
{
	struct carrier *c = data;
	struct told told;

	for (; teller_next(c->teller, &told); json_decref(told.result))
		done(c, told.context, told.error, told.why.text);
	carrier_look(c);
	return 0;
}

static int on_time(sd_event_source *timer, uint64_t us, void *data)
{
	carrier_look(data);
	return 0;
}

const struct carry *carrier_carry(const struct carrier *c)
{
	return c && *core_config(c->core)->peers.secret ? &c->carry : NULL;
}

int carrier_open(sd_event *loop, const struct core *core, struct carrier **ret)
{
	struct carrier *c = calloc(1, sizeof(*c));
	int r;

	*ret = c;
	if (!c)
		return -ENOMEM;
	c->core = core;
	r = teller_open(&c->teller);
	if (r >= 0)
		r = sd_event_add_io(loop, &c->answers, teller_fd(c->teller), EPOLLIN, on_answer, c);
	if (r >= 0)
		r = sd_event_add_time(loop, &c->timer, CLOCK_MONOTONIC, 0, SLACK_US, on_time, c);
	if (r >= 0)
		carrier_look(c);
	return r < 0 ? r : 0;
}

void carrier_close(struct carrier *c)
{
	if (!c)
		return;
	sd_event_source_disable_unref(c->timer);
	sd_event_source_disable_unref(c->answers);
	teller_close(c->teller);
	carry_clear(&c->carry);
	free(c);
}
