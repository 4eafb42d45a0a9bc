// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Another configuration, in the place of the one that is there: all or nothing. */
#include <errno.h>
#include <string.h>

#include "core_private.h"

static bool listens_differ(const struct config *a, const struct config *b)
{
	return a->listens != b->listens || memcmp(a->listen, b->listen, sizeof(a->listen)) != 0;
}

/* As it is where join.listen is not said: then it is not what somebody has changed. */
static bool listens_at_services(const struct config *c)
{
	return c->listens == c->services && !memcmp(c->listen, c->service, sizeof(c->listen));
}

/* Member by member: what lies between them may be anything. */
static bool cluster_differs(const struct config_cluster *a, const struct config_cluster *b)
{
	bool differs = a->etcds != b->etcds || a->steering != b->steering ||
		       strcmp(a->node, b->node) != 0 || strcmp(a->name, b->name) != 0 ||
		       strcmp(a->file, b->file) != 0 || strcmp(a->ca, b->ca) != 0 ||
		       strcmp(a->certificate, b->certificate) != 0 || strcmp(a->key, b->key) != 0 ||
		       strcmp(a->user, b->user) != 0 || strcmp(a->password, b->password) != 0;

	for (unsigned int i = 0; !differs && i < a->etcds; i++)
		differs = strcmp(a->etcd[i], b->etcd[i]) != 0;
	return differs;
}

/* What a running agent cannot change. */
static int config_check(const struct config *now, const struct config *then, struct why *why)
{
	const struct {
		const char *key;
		bool differs;
	} fixed[] = {
		{ "pin", strcmp(now->pin, then->pin) != 0 },
		{ "state", strcmp(now->state, then->state) != 0 },
		{ "control.socket", strcmp(now->control_socket, then->control_socket) != 0 },
		{ "control.group", strcmp(now->control_group, then->control_group) != 0 },
		{ "join.socket", strcmp(now->join_socket, then->join_socket) != 0 },
		{ "service", listens_at_services(now) && listens_at_services(then) &&
				     listens_differ(now, then) },
		{ "join.listen", listens_differ(now, then) },
		{ "spill.memory_mib", now->spill_mib != then->spill_mib },
		{ "cluster", cluster_differs(&now->cluster, &then->cluster) },
		{ "spill.threads", now->spill_threads != then->spill_threads },
		{ "metrics", memcmp(&now->metrics, &then->metrics, sizeof(now->metrics)) != 0 },
	};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
		if (fixed[i].differs)
			return why_say(
				why, -EINVAL,
				"%s: only a restart changes this key; a restart loses no job",
				fixed[i].key);
	return 0;
}

/* A default tenant that the file does not name is tallyctl's. */
int core_books_configure(struct books *b, const struct config *config, struct why *why)
{
	unsigned int unnamed = config->default_named ? 0 : 1;

	b->slots = config->slots;
	b->spills = config->spill_mib;
	b->lends = config->quotas != CONFIG_QUOTAS_FIXED;
	b->pool = config->pool_slots;
	return books_configure(b, config->tenant + unnamed, config->tenants - unnamed, config->rest,
			       why);
}

const struct tenant *core_tenant_of_file(const struct config *config, const char *name)
{
	for (unsigned int i = 1; i < config->tenants; i++)
		if (!strcmp(config->tenant[i].name, name))
			return &config->tenant[i];
	return NULL;
}

bool core_tenant_is_hidden(const struct books *b, const struct config *config, const char *path,
			   uint64_t seen, struct why *why)
{
	for (unsigned int i = BOOKS_DEFAULT + 1; i < TALLY_TENANTS_MAX; i++) {
		const char *name = b->tenant[i].is.name;

		if (!(seen >> i & 1) || b->tenant[i].configured ||
		    !core_tenant_of_file(config, name))
			continue;
		why_say(why, 0,
			"tenant %s of %s does not count: tallyctl made one of this name before, "
			"whose quota and ingress points hold. tallyctl tenant del %s puts that of "
			"the file in its place, with all jobs; or take it out of the file",
			name, path, name);
		return true;
	}
	return false;
}

int core_ingress_check(const struct core *c, const struct config *config, const struct tenant *t,
		       struct why *why)
{
	if (config->ingress != CONFIG_INGRESS_REQUIRED || !tenant_is_anywhere(t))
		return 0;
	return why_say(
		why, -EINVAL,
		"ingress: required in %s: tenant %s has no ingress points, and so can have no "
		"jobs (tallyctl tenant set %s --ingress PORT, or in the file)",
		c->path, t->name, t->name);
}

int core_entry_check(const struct core *c, const struct tenant *t, struct why *why)
{
	if (tenant_is_nowhere(t))
		return why_say(why, -EINVAL,
			       "tenant %s may come in nowhere at this node, as the cluster says: "
			       "see tallyctl quota %s --cluster",
			       t->name, t->name);
	return core_ingress_check(c, c->config, t, why);
}

/* Jobs that there are already. */
static int ingress_check(const struct core *c, const struct config *config, struct why *why)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < c->books.jobs; i++)
		if (!job_is_suspended(c->books.job[i]))
			r = core_ingress_check(c, config,
					       &c->books.tenant[c->books.job[i]->tenant].is, why);
	return r;
}

static int runs_check(const struct core *c, struct why *why)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < TALLY_TENANTS_MAX; i++)
		r = books_runs_check(&c->books, i, &c->change.books->tenant[i].is, why);
	return r;
}

/* --- the maps follow ------------------------------------------------------------------------- */

static void adopt(struct core *c, core_step *next)
{
	c->mirror.doubted = true; /* ports and slots will be others */
	core_await(c, ACTION(CORE_ADOPT, .config = c->change.config), NULL, next);
}

/* Why a port is not native is known only right after it was attached: what is known is kept. */
void ports_keep(struct core *c)
{
	struct dataplane_port *ports = c->result->result.adopted.ports;
	const unsigned int count = c->result->result.adopted.count;

	for (unsigned int i = 0; i < count; i++)
		for (unsigned int k = 0; k < c->ports_count; k++)
			if (!*ports[i].refused.text && ports[i].ifindex == c->ports[k].ifindex &&
			    ports[i].mode == c->ports[k].mode)
				ports[i].refused = c->ports[k].refused;
	free(c->ports);
	c->ports = ports;
	c->ports_count = count;
}

static void find_ports(struct core *c, const struct config *config, core_step *next)
{
	c->change.config = config;
	core_await(c, ACTION(CORE_FIND_PORTS, .config = config), NULL, next);
}

/* --- and back, if a step fails --------------------------------------------------------------- */

static void configured(struct core *c, int r)
{
	free(TAKE_PTR(c->change.books));
	core_act(c, ACTION(CORE_CONFIGURED, .error = r, .text = core_reason(&c->change.why, r)));
}

/* Most likely it has failed just now, and the old books are there. */
static void back_saved(struct core *c, int r)
{
	if (r < 0)
		core_save_soon(c);
	configured(c, c->change.error);
}

/* Is the node as c->config says? */
static void restored_note(struct core *c, int r)
{
	struct why text = { "" };
	unsigned int ms;

	c->unrestored = r < 0;
	if (r < 0) {
		ms = core_retry(c, CORE_RETRY_RESTORE);
		c->due_ns[CORE_DUE_LOOK] = UINT64_MAX;
		core_due(c, CORE_DUE_LOOK, ms);
		why_say(&text, 0,
			"what was before the last reload, which failed, is not restored: %.300s; "
			"tallyd tries again %u s after the last time, or when a link changes",
			core_reason(&c->why, r), ms / 1000);
	} else {
		c->retry_ms[CORE_RETRY_RESTORE] = 0;
	}
	trouble_note(c, CORE_TROUBLE_RESTORE, text.text);
}

/* Where that fails, too, it is tried again: restore(). */
static void back_agreed(struct core *c, int r)
{
	restored_note(c, r);
	if (c->change.books)
		core_await(c, ACTION(CORE_SAVE), NULL, back_saved);
}

static void back_adopted(struct core *c, int r)
{
	if (r < 0) {
		back_agreed(c, r);
		return;
	}
	ports_keep(c);
	runs_agree(c, back_agreed);
}

static void back_found(struct core *c, int r)
{
	if (r < 0)
		back_agreed(c, r);
	else
		adopt(c, back_adopted);
}

void restore(struct core *c) { find_ports(c, c->config, back_found); }

static void go_back(struct core *c, int error)
{
	c->change.error = error;
	c->change.why = c->why;
	c->books = *c->change.books; /* the copy has the same jobs */
	books_settle(&c->books);
	c->config = c->change.old;
	find_ports(c, c->config, back_found);
}

/* --- forward --------------------------------------------------------------------------------- */

/* Tenants that the configuration does not name any more; their numbers may be others' already. */
static void tenants_forget(struct core *c, int r)
{
	const struct books_tenant *was = c->change.books->tenant;

	if (r < 0)
		core_log(c, LOG_LEVEL_ERROR, "tenant not removed", "tenant=%s reason=\"%s\"",
			 was[c->change.index].is.name, c->why.text);
	while (++c->change.index < TALLY_TENANTS_MAX) {
		const unsigned int i = c->change.index;
		const char *is = c->books.tenant[i].is.name;

		if (!*was[i].is.name || !strcmp(was[i].is.name, is))
			continue;
		core_act(c, ACTION(CORE_FORGET_TENANT, .id = i));
		if (*is)
			continue;
		core_await(c, ACTION(CORE_DROP_TENANT, .id = i), NULL, tenants_forget);
		return;
	}
	configured(c, 0);
}

static void saved(struct core *c, int r)
{
	c->change.index = 0; /* no tenant has this index */
	if (r < 0)
		go_back(c, r);
	else
		tenants_forget(c, 0);
}

static void agreed(struct core *c, int r)
{
	if (r < 0) {
		go_back(c, r);
		return;
	}
	restored_note(c, 0);
	core_await(c, ACTION(CORE_SAVE), NULL, saved);
}

static void adopted(struct core *c, int r)
{
	if (r < 0) {
		go_back(c, r);
		return;
	}
	c->config = c->change.config;
	ports_keep(c);
	runs_agree(c, agreed);
}

static void refuse(struct core *c, int error)
{
	c->change.why = c->why;
	configured(c, error);
}

static void found(struct core *c, int r)
{
	if (r == 0) {
		r = core_books_configure(&c->books, c->change.config, &c->why);
		if (r == 0)
			r = ingress_check(c, c->change.config, &c->why);
		if (r == 0)
			r = runs_check(c, &c->why);
		if (r < 0) {
			c->books = *c->change.books;
			books_settle(&c->books);
		}
	}
	if (r < 0)
		refuse(c, r);
	else
		adopt(c, adopted);
}

void reconfigure(struct core *c, const struct core_event *e)
{
	const struct config *config = e->config;
	struct books *before = malloc(sizeof(*before));
	int r;

	core_retry_soon(c);
	c->change.old = c->config;
	c->change.books = before;
	r = before ? config_check(c->config, config, &c->why) : -ENOMEM;
	if (r < 0 || !before) {
		refuse(c, r);
		return;
	}
	*before = c->books;
	find_ports(c, config, found);
}
