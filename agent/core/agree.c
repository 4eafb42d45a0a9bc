// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The maps as the books say: what they have lost comes back, what nobody wants goes. */
#include <errno.h>
#include <string.h>

#include "core_private.h"

static void agree_next(struct core *c, int r);

static void put_tenant(struct core *c, unsigned int index)
{
	struct dataplane_source *sources = calloc(2 * TENANT_POINTS_MAX, sizeof(*sources));
	const struct tenant *t = &c->books.tenant[index].is;
	struct core_action action = {
		.kind = CORE_PUT_TENANT,
		.id = index,
		.tenant = { .sources = sources,
			    .anywhere = tenant_is_anywhere(t),
			    .limits = { t->packets_per_second, t->bytes_per_second, t->priority } }
	};

	if (!sources) {
		agree_next(c, -ENOMEM);
		return;
	}
	action.tenant.count = plan_sources(t, c->ports, c->ports_count, sources);
	action.tenant.points = sources + TENANT_POINTS_MAX;
	action.tenant.points_count = plan_points(t, c->ports, c->ports_count,
						 sources + TENANT_POINTS_MAX);
	core_await(c, action, sources, agree_next);
}

/* A port, its address and its routes may come later; a neighbour that does not answer is gone. */
static bool may_come(const struct core *c, int error)
{
	return error == -ENETUNREACH || error == -ENODEV ||
	       (error == -EHOSTUNREACH && !c->begin.unreached);
}

/*
 * A run that the data plane has lost, as after a reboot, is back. If its workers have gone too, the
 * run ends.
 */
static void restored(struct core *c, int r)
{
	struct job *j = c->books.job[c->agree.plan->step[c->agree.at - 1].index];

	if (may_come(c, r)) {
		core_log(c, LOG_LEVEL_DEBUG, "run not restored yet", "job=%s reason=\"%s\"",
			 j->name, c->why.text);
		c->agree.waits = true;
	} else if (r == 0) {
		core_log(c, LOG_LEVEL_INFO, "run restored", "job=%s epoch=%u", j->name, j->epoch);
	} else {
		core_log(c, LOG_LEVEL_WARNING, "run is over", "job=%s epoch=%u reason=\"%s\"",
			 j->name, j->epoch, c->why.text);
		job_end(j);
		core_save_soon(c);
	}
	agree_next(c, 0);
}

static void agree_done(struct core *c, int r)
{
	free(TAKE_PTR(c->agree.plan));
	if (c->agree.waits)
		core_due(c, CORE_DUE_AGREE, core_retry(c, CORE_RETRY_WAY));
	else
		c->retry_ms[CORE_RETRY_WAY] = 0;
	c->agree.then(c, r);
}

/* A run of the plan has given its slots back since, for an inner one. */
static bool is_overtaken(const struct core *c, const struct plan_step *step)
{
	return (step->act == PLAN_JOB_GATES || step->act == PLAN_JOB_ADD) &&
	       !job_is_in_maps(c->books.job[step->index]);
}

/* What its slots held is lost; the software asks for it. */
static void borrowed(struct core *c, int r)
{
	struct job *j = c->books.job[c->agree.plan->step[c->agree.at - 1].index];

	if (r < 0)
		core_log(c, LOG_LEVEL_WARNING, "no borrowed slots", "job=%s reason=\"%s\"", j->name,
			 core_reason(&c->why, r));
	j->borrows = r == 0;
	if (!j->borrows) {
		core_doubt_maps(c);
		core_save_soon(c);
	}
	agree_next(c, 0);
}

static void job_add(struct core *c, struct job *j)
{
	if (j->document)
		inner_install(c, j, agree_next);
	else if (j->borrows)
		run_borrow(c, j, 0, borrowed);
	else
		run_install(c, j, restored);
}

static void agree_next(struct core *c, int r)
{
	const struct plan_step *step;

	if (r < 0 || c->agree.at == c->agree.plan->steps) {
		agree_done(c, r);
		return;
	}
	step = &c->agree.plan->step[c->agree.at++];
	if (is_overtaken(c, step)) {
		agree_next(c, 0);
		return;
	}
	switch (step->act) {
	case PLAN_JOB_DEL:
		mirror_remove(c, step->id, agree_next);
		return;
	case PLAN_TENANT_PUT:
		put_tenant(c, step->index);
		return;
	case PLAN_JOB_GATES:
		if (c->books.job[step->index]->document)
			inner_note(c, c->books.job[step->index], 0);
		mirror_regate(c, step->id, c->books.job[step->index]->tenant, agree_next);
		return;
	case PLAN_JOB_ADD:
		job_add(c, c->books.job[step->index]);
		return;
	case PLAN_JOB_SPILL:
		/* one that has just started knows no job; one that runs keeps its sums */
		run_spill(c, c->books.job[step->index], 0, agree_next);
		return;
	}
}

/*
 * A run that the disk does not know, as one that began when the disk was full: who is in it, nobody
 * could say, so it goes. But its epoch is used, and the run before it is over.
 */
static void epochs_learn(struct core *c)
{
	const char *first = NULL;
	unsigned int learnt = 0;

	for (unsigned int i = 0; i < c->books.jobs; i++) {
		struct job *j = c->books.job[i];
		const struct tables_job *there = tables_find(&c->mirror.is, j->id);

		if (!there || there->broken || j->document ||
		    (int16_t)(there->job.epoch - j->epoch) <= 0)
			continue;
		first = first ? first : j->name;
		learnt++;
		job_end(j);
		j->epoch = there->job.epoch;
		core_save_soon(c);
	}
	if (learnt) /* in one line, since they may be more than one event may cause */
		core_log(c, LOG_LEVEL_WARNING, "runs are over: the state file does not know them",
			 "runs=%u job=%s", learnt, first);
}

/* The node has no pool any more, or the tenant has ingress points now: software alone goes on. */
static void borrowers_look(struct core *c)
{
	for (unsigned int i = 0; i < c->books.jobs; i++) {
		struct job *j = c->books.job[i];

		if (j->document || !j->run_window || !j->borrows || books_may_borrow(&c->books, j))
			continue;
		core_log(c, LOG_LEVEL_INFO, "the run borrows no slots any more", "job=%s epoch=%u",
			 j->name, j->epoch);
		j->borrows = false;
		core_save_soon(c);
	}
}

static void agree_read(struct core *c, int r)
{
	if (r < 0) {
		agree_done(c, r);
		return;
	}
	epochs_learn(c);
	borrowers_look(c);
	plan_make(&c->books, &c->mirror.is, c->agree.plan);
	agree_next(c, 0);
}

void runs_agree(struct core *c, core_step *then)
{
	c->agree.then = then;
	c->agree.at = 0;
	c->agree.waits = false;
	c->agree.plan = malloc(sizeof(*c->agree.plan));
	c->due_ns[CORE_DUE_AGREE] = UINT64_MAX;
	if (c->agree.plan)
		mirror_read(c, agree_read);
	else
		agree_done(c, -ENOMEM);
}
