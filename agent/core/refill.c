// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Runs in software get slots when there are some (docs/decisions/0019-rings-that-move.md), and so
 * do runs of inner jobs that borrow, or whose packets are passed on: each way there and back costs
 * a run what it has in flight, so who had to give slots back waits ever longer, and so does who
 * cannot use them.
 */
#include <errno.h>
#include <string.h>

#include "core_private.h"

enum {
	AGAIN_MS = 10000, /* from one look for slots to the next */
	APART_MOST_MS = 640000,
};

static bool is_wanting(const struct job *j)
{
	if (!j->run_window || job_is_suspended(j))
		return false;
	return j->document ? j->borrows && job_is_running(j) : j->spilled;
}

void refill_due(struct core *c) { core_due(c, CORE_DUE_REFILL, AGAIN_MS); }

void refill_later(struct core *c, struct job *j)
{
	j->refill_apart_ms = j->refill_apart_ms ? 2 * j->refill_apart_ms : AGAIN_MS;
	if (j->refill_apart_ms > APART_MOST_MS)
		j->refill_apart_ms = APART_MOST_MS;
	j->refill_ns = c->now_ns + j->refill_apart_ms * 1000000ull;
	refill_due(c);
}

/* Who waits for longest. NULL: nobody wants slots. */
static struct job *next(struct core *c)
{
	struct job *first = NULL;

	for (unsigned int i = 0; i < c->books.jobs; i++) {
		struct job *j = c->books.job[i];

		if (is_wanting(j) && (!first || j->refill_ns < first->refill_ns))
			first = j;
	}
	return first;
}

static void due_at(struct core *c, const struct job *j)
{
	const uint64_t left_ns = j->refill_ns > c->now_ns ? j->refill_ns - c->now_ns : 0;

	core_due(c, CORE_DUE_REFILL, (left_ns + 999999) / 1000000);
}

/* Others may be due, too. */
static void done(struct core *c, int r)
{
	struct job *j = TAKE_PTR(c->refill.job);

	if (j->refill_ns <= c->now_ns)
		j->refill_ns = c->now_ns + AGAIN_MS * 1000000ull;
	j = next(c);
	if (j)
		due_at(c, j);
}

/* Messages come to the maps from now on, and the software forgets what it has. */
static void installed(struct core *c, int r)
{
	struct job *j = c->refill.job;

	c->inner.job = NULL;
	if (r < 0) {
		j->borrows |= !!j->document;
		if (j->borrows)
			core_doubt_maps(c); /* are they as they were? */
		core_log(c, LOG_LEVEL_DEBUG, "no slots yet", "job=%s reason=\"%s\"", j->name,
			 core_reason(&c->why, r));
		refill_later(c, j); /* others may have given slots back for it */
		done(c, r);
		return;
	}
	j->spilled = j->borrows = false;
	c->counts.runs_refilled++;
	core_log(c, LOG_LEVEL_INFO,
		 job_is_lent(j) ? "the run has slots from now on, on loan"
				: "the run has slots from now on",
		 "job=%s epoch=%u slots=%u", j->name, j->epoch, job_slots(j));
	core_save_soon(c);
	if (j->document)
		done(c, 0);
	else
		core_await(c, ACTION(CORE_UNSPILL, .id = j->id), NULL, done);
}

static void room_made(struct core *c, int r)
{
	struct job *j = c->refill.job;

	if (r < 0) {
		done(c, r);
		return;
	}
	if (j->document) {
		c->inner.job = j;
		j->borrows = false;
	}
	run_install(c, j, installed);
}

int run_window_find(struct core *c, struct job *j, uint16_t *ret)
{
	const bool was_over = j->over;
	int r = books_run_window(&c->books, j, ret, &c->why);

	if (was_over != j->over)
		core_save_soon(c);
	return r;
}

/*
 * A worker knows its window, so the run gets slots for all of that, or none. What is on loan may be
 * recalled, and then a run goes on in software: not one of an inner job.
 */
void refill_begin(struct core *c)
{
	struct job *j = next(c);
	uint16_t window = 0;
	bool own;

	if (!j)
		return;
	if (j->refill_ns > c->now_ns) {
		due_at(c, j);
		return;
	}
	c->refill.job = j;
	own = run_window_find(c, j, &window) == 0;
	if (own ? window < j->run_window : !c->books.lends || j->document)
		done(c, -ENOSPC);
	else
		lend_recall(c, j, 2u * j->run_window, own, room_made);
}
