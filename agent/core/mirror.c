// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The maps as the core knows them: decisions in there, and what became of these. */
#include <errno.h>

#include "core_private.h"

static void is_read(struct core *c, int r)
{
	if (r == 0) {
		tables_close(&c->mirror.is);
		c->mirror.is = TAKE(*c->result->result.tables, (struct tables){ 0 });
		c->mirror.doubted = false;
		torn_note(c);
	}
	c->mirror.decide(c, r);
}

void mirror_read(struct core *c, core_step *then)
{
	c->mirror.decide = then;
	c->mirror.doubted = true;
	core_await(c, (struct core_action){ .kind = CORE_READ }, NULL, is_read);
}

static void begin(struct core *c, core_step *decide, core_step *then)
{
	c->mirror.then = then;
	if (c->mirror.doubted)
		mirror_read(c, decide);
	else
		decide(c, 0);
}

/* --- what is written ------------------------------------------------------------------------- */

/* A run that was torn is moved, or over. */
static void run_changed(struct core *c)
{
	if (*c->trouble[CORE_TROUBLE_RUNS].text)
		torn_note(c);
}

/* A job that cannot be remembered, or was perhaps written: the maps know. */
static void is_written(struct core *c, int r)
{
	if (r < 0 || tables_put(&c->mirror.is, &c->mirror.job) < 0)
		c->mirror.doubted = true;
	tables_job_close(&c->mirror.job);
	if (c->mirror.installation)
		run_changed(c);
	c->mirror.then(c, r);
}

static void is_removed(struct core *c, int r)
{
	c->mirror.doubted = r < 0;
	tables_forget(&c->mirror.is, c->mirror.id);
	run_changed(c);
	c->mirror.then(c, r);
}

static void write_decided(struct core *c, enum core_action_kind kind)
{
	core_await(c,
		   (struct core_action){ .kind = kind,
					 .id = c->mirror.id,
					 .write = { tables_find(&c->mirror.is, c->mirror.id),
						    &c->mirror.job, c->mirror.installation } },
		   NULL, is_written);
}

/* --- what is decided ------------------------------------------------------------------------- */

/* *ret to be freed; NULL: its messages may come in anywhere. */
static int gates_of(const struct core *c, uint16_t tenant, struct dataplane_gate **ret,
		    unsigned int *ret_count)
{
	const struct tenant *t = &c->books.tenant[tenant].is;

	if (!t->points)
		return 0;
	*ret = calloc(c->ports_count + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	*ret_count = plan_gates(t, c->ports, c->ports_count, *ret);
	return 0;
}

/* With half the window, as long as there are no slots in a row for it. */
static int place(struct core *c, const struct dataplane_gate *gates, unsigned int count)
{
	struct installation *g = c->mirror.installation;
	int r;

	while ((r = tables_install(&c->mirror.is, g, gates, count, &c->mirror.job, &c->why)) ==
		       -ENOSPC &&
	       c->begin.job && g->job.slot_mask > 1) {
		g->job.slot_mask /= 2;
		c->begin.window = (g->job.slot_mask + 1) / 2;
	}
	return r;
}

static void decide_put(struct core *c, int r)
{
	_cleanup_(freep) struct dataplane_gate *gates = NULL;
	const bool is_new = c->mirror.installation;
	const struct tables_job *before = NULL;
	unsigned int count = 0;

	if (r == 0)
		r = gates_of(c, c->mirror.tenant, &gates, &count);
	if (r == 0)
		r = is_new ? place(c, gates, count)
			   : tables_regate(&c->mirror.is, c->mirror.id, gates, count,
					   &c->mirror.job, &c->why);
	if (r == 0 && !is_new)
		before = tables_find(&c->mirror.is, c->mirror.id);
	if (before && tables_job_is_equal(before, &c->mirror.job)) {
		tables_job_close(&c->mirror.job);
		c->mirror.then(c, 0);
	} else if (r < 0) {
		c->mirror.then(c, r);
	} else {
		write_decided(c, is_new ? CORE_INSTALL : CORE_GATES);
	}
}

static void decide_remove(struct core *c, int r)
{
	struct core_action action = { .kind = CORE_REMOVE, .id = c->mirror.id };

	if (r == 0)
		r = tables_remove(&c->mirror.is, c->mirror.id, &action.write.before, &c->why);
	if (r < 0)
		c->mirror.then(c, r);
	else
		core_await(c, action, NULL, is_removed);
}

void mirror_install(struct core *c, struct installation *g, core_step *then)
{
	c->mirror.id = g->id;
	c->mirror.tenant = g->job.tenant;
	c->mirror.installation = g;
	begin(c, decide_put, then);
}

void mirror_regate(struct core *c, uint32_t id, uint16_t tenant, core_step *then)
{
	c->mirror.id = id;
	c->mirror.tenant = tenant;
	c->mirror.installation = NULL;
	begin(c, decide_put, then);
}

void mirror_remove(struct core *c, uint32_t id, core_step *then)
{
	c->mirror.id = id;
	begin(c, decide_remove, then);
}
