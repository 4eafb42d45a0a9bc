// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The maps as the core knows them: decisions in there, and what became of these. */
#include <errno.h>

#include "core_private.h"

enum {
	SETTLED_MS = 10000, /* after a run was moved it stays at least for so long */
};

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

	if (tenant_is_anywhere(t))
		return 0;
	*ret = calloc(c->ports_count + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	*ret_count = plan_gates(t, c->ports, c->ports_count, *ret);
	return 0;
}

/* Each move costs the run what it has in flight, so its ring stays for a while. */
static bool may_move(const void *context, const struct tables_job *there)
{
	const struct core *c = context;
	const struct job *j = books_job_numbered(&c->books, there->id);

	return j && j->run_window && j->epoch == there->job.epoch && c->now_ns >= j->settled_ns;
}

static void decide_put(struct core *c, int r);

static void move_learn(struct core *c, const struct tables_move *move)
{
	struct job *j = (struct job *)books_job_numbered(&c->books, move->id);

	j->settled_ns = c->now_ns + SETTLED_MS * 1000000ull;
	c->counts.runs_moved++;
	core_log(c, LOG_LEVEL_DEBUG, "run moved to other slots", "job=%s epoch=%u slots=%u..%u",
		 j->name, j->epoch, move->slot_base, move->slot_base + job_slots(j) - 1);
}

/* Of a move that failed nobody knows how far it came: the maps say, and lost runs come back. */
static void moved(struct core *c, int r)
{
	_cleanup_(freep) struct tables_move *move = TAKE_PTR(c->mirror.move);

	if (r < 0) {
		core_log(c, LOG_LEVEL_ERROR, "cannot move runs to other slots", "reason=\"%s\"",
			 core_reason(&c->why, r));
		core_doubt_maps(c);
		mirror_read(c, decide_put);
		return;
	}
	tables_move(&c->mirror.is, move, c->mirror.moves);
	for (unsigned int i = 0; i < c->mirror.moves; i++)
		move_learn(c, &move[i]);
	core_log(c, LOG_LEVEL_INFO, "runs moved: another one needs slots in a row",
		 "runs=%u job=%s slots=%u", c->mirror.moves,
		 books_job_numbered(&c->books, c->mirror.id)->name,
		 c->mirror.installation->job.slot_mask + 1);
	decide_put(c, 0);
}

/* False: nothing is moved. */
static bool make_room(struct core *c)
{
	int r;

	if (c->mirror.has_moved || c->mirror.installation->job.borrows)
		return false;
	c->mirror.has_moved = true;
	r = tables_make_room(&c->mirror.is, c->mirror.id, c->mirror.installation->job.slot_mask + 1,
			     may_move, c, &c->mirror.move);
	if (r <= 0) {
		free(TAKE_PTR(c->mirror.move));
		return false;
	}
	c->mirror.moves = r;
	core_await(c, ACTION(CORE_MOVE, .move = { &c->mirror.is, c->mirror.move, c->mirror.moves }),
		   NULL, moved);
	return true;
}

/*
 * With half the window of a run that begins, as long as there are no slots in a row for it.
 * -EAGAIN: others move first.
 */
static int place(struct core *c, const struct dataplane_gate *gates, unsigned int count)
{
	struct installation *g = c->mirror.installation;
	int r;

	while ((r = tables_install(&c->mirror.is, g, gates, count, &c->mirror.job, &c->why)) ==
	       -ENOSPC) {
		if (make_room(c))
			return -EAGAIN;
		if (!c->begin.job || g->job.borrows || g->job.slot_mask <= 1)
			return r;
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
	if (r == -EAGAIN)
		return;
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
	c->mirror.has_moved = false;
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
