// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The agent's core: events come in, actions go out, and what is due when. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "core_private.h"
#include "mac_cache.h"

enum {
	SAVE_MS = 100, /* from a change that may be lost to the disk */
	RETRY_MS = 10000,
	RETRY_FIRST_MS = 3000, /* of what waits for a change that nobody may tell of */
	RETRY_MOST_MS = 60000,
};

/* --- actions --------------------------------------------------------------------------------- */

void core_act(struct core *c, struct core_action action)
{
	assert(c->actions < CORE_ACTIONS_MAX);
	action.number = ++c->number;
	c->action[c->actions++] = action;
}

void core_await(struct core *c, struct core_action action, void *payload, core_step *next)
{
	assert(!c->next);
	core_act(c, action);
	c->payload = payload;
	c->next = next;
}

void core_log(struct core *c, enum log_level level, const char *what, const char *facts, ...)
{
	char *text = NULL;
	va_list values;

	va_start(values, facts);
	if (vasprintf(&text, facts, values) < 0)
		text = NULL;
	va_end(values);
	if (text)
		core_act(c, ACTION(CORE_LOG, .log = { level, what, text }));
}

bool core_next_action(struct core *c, struct core_action *ret)
{
	if (c->taken == c->actions)
		return false;
	*ret = c->action[c->taken++];
	return true;
}

static void actions_forget(struct core *c)
{
	for (unsigned int i = 0; i < c->actions; i++)
		if (c->action[i].kind == CORE_LOG)
			free((char *)c->action[i].log.facts);
	c->taken = c->actions = 0;
	free(TAKE_PTR(c->texts));
}

const char *core_reason(const struct why *why, int error)
{
	return *why->text ? why->text : strerror(-error);
}

/* --- what is due ----------------------------------------------------------------------------- */

void core_due(struct core *c, enum core_due what, unsigned int ms)
{
	uint64_t at_ns = c->now_ns + ms * 1000000ull;

	if (at_ns < c->due_ns[what])
		c->due_ns[what] = at_ns;
}

unsigned int core_retry(struct core *c, enum core_retry what)
{
	unsigned int *ms = &c->retry_ms[what];

	*ms = *ms ? 2 * *ms : RETRY_FIRST_MS;
	if (*ms > RETRY_MOST_MS)
		*ms = RETRY_MOST_MS;
	return *ms;
}

void core_retry_soon(struct core *c)
{
	memset(c->retry_ms, 0, sizeof(c->retry_ms));
	c->look.torn_ns = 0;
	core_due(c, CORE_DUE_LOOK, RETRY_FIRST_MS);
	if (c->due_ns[CORE_DUE_AGREE] != UINT64_MAX)
		core_due(c, CORE_DUE_AGREE, RETRY_FIRST_MS);
}

void core_save_soon(struct core *c) { core_due(c, CORE_DUE_SAVE, SAVE_MS); }
void core_doubt_maps(struct core *c) { core_due(c, CORE_DUE_AGREE, RETRY_MS); }

uint64_t core_deadline_ns(const struct core *c)
{
	uint64_t first_ns = UINT64_MAX;

	for (unsigned int i = 0; !c->next && i < CORE_DUE_COUNT; i++)
		first_ns = c->due_ns[i] < first_ns ? c->due_ns[i] : first_ns;
	return first_ns;
}

void core_saved(struct core *c, int r)
{
	if (r == 0)
		return;
	core_log(c, LOG_LEVEL_ERROR, "state file not written, trying again in 10 s",
		 "reason=\"%s\"", c->why.text);
}

void core_agreed(struct core *c, int r)
{
	if (r == 0)
		return;
	core_log(c, LOG_LEVEL_ERROR,
		 "data plane differs from the wanted jobs, trying again in 10 s", "reason=\"%s\"",
		 core_reason(&c->why, r));
	core_doubt_maps(c);
}

static void save(struct core *c) { core_await(c, ACTION(CORE_SAVE), NULL, core_saved); }

static void agree(struct core *c) { runs_agree(c, core_agreed); }

static void (*const on_due[CORE_DUE_COUNT])(struct core *c) = {
	[CORE_DUE_SAVE] = save,
	[CORE_DUE_ROLLCALL] = rollcall_begin,
	[CORE_DUE_FOLLOW] = follow_begin,
	[CORE_DUE_AGREE] = agree,
	[CORE_DUE_BEGIN] = runs_begin_again,
	[CORE_DUE_REFILL] = refill_begin,
	[CORE_DUE_LOOK] = mend_begin,
};

static void due_begin(struct core *c, enum core_due what)
{
	c->due_ns[what] = UINT64_MAX;
	on_due[what](c);
}

/* One thing at a time: what is due besides is due still when this is done. */
static void on_deadline(struct core *c, const struct core_event *e)
{
	for (unsigned int i = 0; i < CORE_DUE_COUNT; i++)
		if (c->due_ns[i] <= c->now_ns) {
			due_begin(c, i);
			return;
		}
}

static void on_stop(struct core *c, const struct core_event *e)
{
	c->stopped = true;
	if (!core_is_saved(c))
		due_begin(c, CORE_DUE_SAVE);
}

int core_cordon_check(const struct core *c, struct why *why)
{
	if (!c->books.cordoned)
		return 0;
	return why_say(why, -EBUSY, "the node is cordoned: no run begins until tallyctl uncordon");
}

/* --- start ----------------------------------------------------------------------------------- */

static void start_done(struct core *c, int r)
{
	core_act(c, ACTION(CORE_CONFIGURED, .error = r, .text = core_reason(&c->why, r)));
	if (r < 0)
		return;
	follow_due(c); /* what changed while there was no agent */
	for (unsigned int i = 0; i < c->books.jobs; i++)
		if (job_tree_moves(c->books.job[i])) /* perhaps the maps have the one before */
			follow_rewrite(c, c->books.job[i]);
	rollcall_due(c);
	mend_due(c);
}

/* An agent after us would do the same with what is on disk. */
static void start_saved(struct core *c, int r)
{
	core_saved(c, r);
	start_done(c, 0);
}

static void start_agreed(struct core *c, int r)
{
	if (r < 0)
		start_done(c, r);
	else
		core_await(c, ACTION(CORE_SAVE), NULL, start_saved);
}

static void start(struct core *c, const struct core_event *e)
{
	c->config = e->start.config;
	c->path = e->start.path;
	c->books = *e->start.books;
	c->ports = e->start.ports;
	c->ports_count = e->start.ports_count;
	books_init(e->start.books, 0);
	runs_agree(c, start_agreed);
}

/* --- events ---------------------------------------------------------------------------------- */

static void save_result(struct core *c, int error)
{
	c->due_ns[CORE_DUE_SAVE] = UINT64_MAX;
	if (error < 0)
		core_due(c, CORE_DUE_SAVE, RETRY_MS);
	c->counts.save_fails = error < 0;
	c->counts.saves_failed += error < 0;
	c->not_saved = c->why;
}

static void on_result(struct core *c, const struct core_event *e)
{
	const enum core_action_kind kind = c->action[c->actions - 1].kind;
	_cleanup_(freep) void *payload = c->payload;
	core_step *next = c->next;
	const int error = e->result.error;

	snprintf(c->why.text, sizeof(c->why.text), "%s",
		 error == 0			   ? ""
		 : e->result.why && *e->result.why ? e->result.why
						   : strerror(-error));
	actions_forget(c);
	if (kind == CORE_SAVE)
		save_result(c, error);
	c->payload = NULL;
	c->next = NULL;
	c->result = e;
	next(c, error);
	c->result = NULL;
}

static void on_gone(struct core *c, const struct core_event *e)
{
	struct job *j = (struct job *)books_job_numbered(&c->books, e->gone.job);
	uint16_t rank = e->gone.rank;

	if (!j || !job_is_at(j, rank, e->gone.epoch) || j->rank[rank].presence != JOB_DETACHED)
		return;
	core_log(c, LOG_LEVEL_INFO, "worker has gone", "job=%s rank=%u", j->name, rank);
	members_leave(c, j, rank, e->gone.epoch, "is gone", NULL);
}

static void on_neighbour(struct core *c, const struct core_event *e)
{
	runs_neighbour_heard(c);
	follow_heard(c, e);
}

static void on_link(struct core *c, const struct core_event *e)
{
	c->mirror.doubted = true; /* a port may have gone, or come */
	follow_link(c, e);
	core_retry_soon(c);
	mend_due(c);
}

static void (*const on_event[])(struct core *c, const struct core_event *e) = {
	[CORE_START] = start,
	[CORE_CONFIG] = reconfigure,
	[CORE_REQUEST] = request_handle,
	[CORE_JOINING] = members_joining,
	[CORE_ENDED] = members_ended,
	[CORE_GONE] = on_gone,
	[CORE_NEIGHBOUR] = on_neighbour,
	[CORE_LINK] = on_link,
	[CORE_ROUTE] = follow_route,
	[CORE_TREE] = follow_tree,
	[CORE_DEADLINE] = on_deadline,
	[CORE_STOP] = on_stop,
	[CORE_RESULT] = on_result,
};

int core_handle(struct core *c, const struct core_event *e, uint64_t now_ns)
{
	assert(c->taken == c->actions);
	if (e->kind != CORE_RESULT && c->next)
		return -EAGAIN;
	if (e->kind == CORE_RESULT && (!c->next || e->result.number != c->number))
		return -EINVAL;
	c->now_ns = now_ns;
	if (e->kind != CORE_RESULT) {
		actions_forget(c);
		c->why = (struct why){ "" };
	}
	on_event[e->kind](c, e);
	return 0;
}

/* --- the core itself ------------------------------------------------------------------------- */

struct core *core_new(void)
{
	struct core *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	books_init(&c->books, 0);
	memset(c->due_ns, 0xff, sizeof(c->due_ns));
	c->mirror.doubted = true;
	return c;
}

void core_free(struct core *c)
{
	if (!c)
		return;
	actions_forget(c);
	books_clear(&c->books);
	tables_close(&c->mirror.is);
	tables_job_close(&c->mirror.job);
	free(c->change.tenant);
	free(c->change.ranks);
	free(c->change.books);
	job_free(c->change.deleted);
	free(c->install.g);
	free(c->mirror.move);
	free(c->recall.job);
	free(c->agree.plan);
	free(c->payload);
	free(c->macs);
	free(c->ports);
	free(c);
}

const struct books *core_books(const struct core *c) { return &c->books; }
const struct config *core_config(const struct core *c) { return c->config; }
const char *core_path(const struct core *c) { return c->path; }
const struct core_counts *core_counts(const struct core *c) { return &c->counts; }
const struct tables *core_tables(const struct core *c)
{
	return c->mirror.doubted ? NULL : &c->mirror.is;
}

const char *core_trouble(const struct core *c, enum core_trouble what)
{
	return c->trouble[what].text;
}

const char *core_not_saved(const struct core *c) { return c->not_saved.text; }
bool core_is_saved(const struct core *c) { return c->due_ns[CORE_DUE_SAVE] == UINT64_MAX; }
bool core_is_agreed(const struct core *c)
{
	return c->due_ns[CORE_DUE_AGREE] == UINT64_MAX && !c->unrestored;
}

const struct dataplane_port *core_ports(const struct core *c, unsigned int *ret_count)
{
	*ret_count = c->ports_count;
	return c->ports;
}

const char *core_port_name(const struct core *c, uint32_t ifindex)
{
	for (unsigned int i = 0; i < c->ports_count; i++)
		if (c->ports[i].ifindex == ifindex)
			return c->ports[i].name;
	return "";
}
