// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs: how one begins, comes into the maps, and ends. */
#include <errno.h>
#include <string.h>

#include "core_private.h"
#include "payload.h"

enum {
	AGAIN_MS = 100, /* neighbours that did not answer are looked for again, if not heard of */
};

/* --- into the maps --------------------------------------------------------------------------- */

static void install_done(struct core *c, int r)
{
	free(TAKE_PTR(c->install.g));
	c->install.then(c, r);
}

static void hops_found(struct core *c, int r)
{
	struct installation *g = c->install.g;

	c->begin.unreached = r == -EHOSTUNREACH;
	if (r == 0)
		r = run_address(c, g);
	if (r < 0)
		install_done(c, r);
	else
		mirror_install(c, g, install_done);
}

/*
 * Next hops of all copies, and last of an inner node the one to the root. They were asked for when
 * the workers came. Where a run comes back into the maps, all together are waited for as long as
 * one neighbour is, since nobody else is served meanwhile; a run that begins comes again, and so
 * does an inner one.
 */
static void hop_find(struct core *c, int r)
{
	struct installation *g = c->install.g;
	uint64_t left_ns = c->now_ns < c->install.end_ns ? c->install.end_ns - c->now_ns : 0;
	const unsigned int hops = g->copies + !g->job.root, at = c->install.at++;

	if (r == 0 && at && at <= g->copies)
		g->copy[at - 1].hop = *c->result->result.hop;
	if (r < 0 || at == hops) {
		hops_found(c, r);
		return;
	}
	const bool is_copy = at < g->copies;
	const struct sockaddr_storage *root = &c->install.job->service;

	core_await(
		c,
		ACTION(CORE_RESOLVE, .resolve = { .address = is_copy ? &g->copy[at].address : root,
						  .wait_ms = left_ns / 1000000,
						  .from = is_copy ? root : &g->address }),
		NULL, hop_find);
}

int run_plan(struct core *c, const struct job *j, uint16_t window)
{
	_cleanup_(freep) struct run *run = malloc(sizeof(*run));
	_cleanup_(freep) struct installation_role *role = malloc(sizeof(*role));
	int r;

	c->install.g = calloc(1, sizeof(*c->install.g));
	c->install.at = 0;
	if (!run || !role || !c->install.g)
		return -ENOMEM;
	job_role(j, role);
	if (window)
		job_next_run(j, window, run);
	else
		job_this_run(j, run);
	job_run_keys(j, window ? &j->begin_draw : &j->draw, run);
	r = installation_plan(run, role, c->install.g, &c->why);
	/* Where nodes send sums of several ranks, these come from no rank's address. */
	c->install.g->job.bound = !j->document && !j->tree;
	c->install.g->job.node_key = c->install.g->node_key && !c->install.g->job.bound;
	c->install.g->job.tenant = j->tenant;
	if (j->document && j->borrows)
		installation_borrow(c->install.g);
	c->install.g->anew = j->document && j == c->refill.job; /* it is there, without slots */
	explicit_bzero(run->key, sizeof(run->key));
	explicit_bzero(&run->node_key, sizeof(run->node_key));
	return r;
}

/* As run_install(), also of the job's next run, with this window. */
static void install(struct core *c, const struct job *j, uint16_t window, core_step *then)
{
	const bool is_tried_again = j == c->begin.job || j == c->refill.job || j->document;
	int r;

	c->install.end_ns = is_tried_again ? 0 : c->now_ns + HOP_WAIT_MS * 1000000ull;
	c->install.job = j;
	c->install.then = then;
	r = run_plan(c, j, window);
	if (r < 0) {
		install_done(c, r);
		return;
	}
	hop_find(c, 0);
}

void run_install(struct core *c, const struct job *j, core_step *then) { install(c, j, 0, then); }

/* --- a run begins, or comes again ------------------------------------------------------------ */

void run_again_due(struct core *c, const struct job *j)
{
	const uint64_t left_ns = c->now_ns < j->begin_again_ns ? j->begin_again_ns - c->now_ns : 0;

	core_due(c, CORE_DUE_BEGIN, (left_ns + 999999) / 1000000);
}

static bool comes_again(const struct job *j) { return j->begin_by_ns && !job_is_suspended(j); }

static void begin_later(struct core *c)
{
	struct job *j = TAKE_PTR(c->begin.job);

	j->begin_again_ns = c->now_ns + AGAIN_MS * 1000000ull;
	run_again_due(c, j);
}

/* Who has waited longest. */
void runs_begin_again(struct core *c)
{
	struct job *first = NULL;

	for (unsigned int i = 0; i < c->books.jobs; i++) {
		struct job *j = c->books.job[i];

		if (comes_again(j) && (!first || j->begin_again_ns < first->begin_again_ns))
			first = j;
	}
	if (first && first->begin_again_ns <= c->now_ns) {
		if (first->document)
			inner_install(c, first, NULL);
		else
			run_begin(c, first);
	}
	for (unsigned int i = 0; i < c->books.jobs; i++)
		if (c->books.job[i] != first && comes_again(c->books.job[i]))
			run_again_due(c, c->books.job[i]);
}

void runs_neighbour_heard(struct core *c)
{
	for (unsigned int i = 0; i < c->books.jobs; i++)
		if (comes_again(c->books.job[i])) {
			c->books.job[i]->begin_again_ns = c->now_ns;
			run_again_due(c, c->books.job[i]);
		}
}

static void begin_failed(struct core *c, int r, enum core_run_refusal refusal)
{
	struct job *j = TAKE_PTR(c->begin.job);
	const char *reason = core_reason(&c->begin.why, r);

	c->counts.runs_refused[refusal]++;
	if (refusal == CORE_RUN_MTU)
		payload_unfit(j, &c->begin.why, c->now_ns);
	core_log(c, LOG_LEVEL_WARNING, "run does not begin", "job=%s reason=\"%s\"", j->name,
		 c->begin.why.text);
	/* to a worker EACCES is a wrong token, and that it was not */
	members_send_away(c, j, MEMBERS_WAITING, r == -EACCES ? -EIO : r, reason);
}

enum { /* where a run is */
	IN_MAPS = 1,
	IN_SOFTWARE = 2,
};

static unsigned int places_of(bool spilled, bool borrows)
{
	return (spilled ? IN_SOFTWARE : 0) | (!spilled || borrows ? IN_MAPS : 0);
}

static void remove_from_maps(struct core *c, int r)
{
	if (c->remove.places & IN_MAPS)
		mirror_remove(c, c->remove.id, c->remove.then);
	else
		c->remove.then(c, r);
}

/* Out of these places. */
static void run_remove(struct core *c, const struct job *j, unsigned int places, core_step *then)
{
	c->remove.id = j->id;
	c->remove.places = places;
	c->remove.then = then;
	if (places & IN_SOFTWARE)
		core_await(c, ACTION(CORE_UNSPILL, .id = j->id), NULL, remove_from_maps);
	else
		remove_from_maps(c, 0);
}

/* The software sends results: no copies leave by the maps, and no neighbours need to be known. */
void run_borrow(struct core *c, const struct job *j, uint16_t window, core_step *then)
{
	struct installation *g;
	int r;

	c->install.then = then;
	r = run_plan(c, j, window);
	if (r < 0) {
		install_done(c, r);
		return;
	}
	g = c->install.g;
	installation_borrow(g);
	g->job.root = g->job.bound = 0;
	g->job.copies = g->copies = 0;
	mirror_install(c, g, install_done);
}

void run_spill(struct core *c, const struct job *j, uint16_t window, core_step *then)
{
	struct installation *g;
	int r = run_plan(c, j, window);

	if (r < 0) {
		free(TAKE_PTR(c->install.g));
		then(c, r);
		return;
	}
	g = TAKE_PTR(c->install.g);
	refill_due(c);
	core_await(c, ACTION(CORE_SPILL, .id = j->id, .write.installation = g), g, then);
}

static void begin_installed(struct core *c, int r);

/* What fails here costs time only: the run is in software. */
static void begin_borrowed(struct core *c, int r)
{
	if (r < 0) {
		core_log(c, LOG_LEVEL_WARNING, "no borrowed slots", "job=%s reason=\"%s\"",
			 c->begin.job->name, core_reason(&c->why, r));
		core_doubt_maps(c);
	}
	c->begin.borrows = r == 0;
	c->begin.window = c->begin.due;
	begin_installed(c, 0);
}

static void begin_spilled(struct core *c, int r)
{
	struct job *j = c->begin.job;

	if (r == 0 && books_may_borrow(&c->books, j))
		run_borrow(c, j, j->window, begin_borrowed);
	else
		begin_installed(c, r);
}

/* Without slots of its own, and so with the whole window. */
static void spill(struct core *c)
{
	c->begin.spilled = true;
	c->begin.window = c->begin.due = c->begin.job->window;
	run_spill(c, c->begin.job, c->begin.window, begin_spilled);
}

/* Without the disk, too: an agent after us finds in the maps which epoch it was (agree_read()). */
static void begin_saved(struct core *c, int r)
{
	const struct job *j = TAKE_PTR(c->begin.job);

	core_saved(c, r);
	c->counts.runs_begun++;
	c->counts.loans += job_is_lent(j);
	core_log(c, LOG_LEVEL_INFO,
		 j->borrows	  ? "run begins, in borrowed slots and in software"
		 : j->spilled	  ? "run begins, summed in software"
		 : job_is_lent(j) ? "run begins, with slots on loan"
				  : "run begins",
		 "job=%s id=%u epoch=%u workers=%u window=%u", j->name, j->id, j->epoch, j->workers,
		 j->run_window);
	members_tell_run(c, j);
}

static enum core_run_refusal refusal_of(int error)
{
	switch (error) {
	case -EHOSTUNREACH:
		return CORE_RUN_NO_WAY;
	case -ENOSPC:
		return CORE_RUN_SLOTS;
	case -EMSGSIZE:
		return CORE_RUN_MTU;
	case -ENOMEM:
		return CORE_RUN_OTHER;
	default:
		return CORE_RUN_KERNEL;
	}
}

/* Nothing is left of the run before. */
static void begin_alone(struct core *c, int r)
{
	struct job *j = c->begin.job;

	if (r < 0 && r != -ENOENT)
		core_doubt_maps(c); /* it goes when they are read */
	job_begin(j, c->begin.window, c->begin.spilled);
	j->borrows = c->begin.borrows;
	core_await(c, ACTION(CORE_SAVE), NULL, begin_saved);
}

static void begin_installed(struct core *c, int r)
{
	struct job *j = c->begin.job;
	unsigned int left;

	if (c->begin.unreached && c->now_ns < j->begin_by_ns) {
		begin_later(c);
		return;
	}
	if (r == -ENOSPC && !c->begin.spilled && books_may_spill(&c->books, j)) {
		core_log(c, LOG_LEVEL_WARNING, "no slots", "job=%s reason=\"%s\"", j->name,
			 core_reason(&c->why, r));
		spill(c);
		return;
	}
	if (r < 0) {
		if (j->run_window)
			core_doubt_maps(c); /* is the run before there still? */
		c->begin.why = c->why;
		begin_failed(c, r, refusal_of(r));
		return;
	}
	if (c->begin.window < c->begin.due)
		core_log(c, LOG_LEVEL_WARNING, "smaller window: not enough free slots side by side",
			 "job=%s window=%u instead_of=%u", j->name, c->begin.window, c->begin.due);
	left = j->run_window ? places_of(j->spilled, j->borrows) : 0;
	run_remove(c, j, left & ~places_of(c->begin.spilled, c->begin.borrows), begin_alone);
}

/* Loans that are enough were given back; or none are, and the window may come out smaller. */
static void begin_own(struct core *c, int r)
{
	install(c, c->begin.job, c->begin.window, begin_installed);
}

static void begin_on_loan(struct core *c, int r)
{
	if (r == 0)
		install(c, c->begin.job, c->begin.window, begin_installed);
	else
		begin_installed(c, -ENOSPC);
}

/* On loan, or else in software. */
static void begin_beyond_quota(struct core *c)
{
	struct job *j = c->begin.job;

	c->begin.window = c->begin.due = j->window;
	if (c->books.lends && j->over)
		lend_recall(c, j, 2u * j->window, false, begin_on_loan);
	else
		begin_installed(c, -ENOSPC);
}

/*
 * With the window that the quota allows: where free slots are not in a row, other runs are moved.
 * Where these were moved a moment ago, with the largest window that fits.
 */
void run_begin(struct core *c, struct job *j)
{
	int r;

	if (!members_may_begin(c, j))
		return;
	if (!j->begin_by_ns) {
		j->begin_by_ns = c->now_ns + HOP_WAIT_MS * 1000000ull;
		j->begin_draw = TAKE(c->member.draw, (struct job_draw){ 0 });
		if (!j->tags)
			explicit_bzero(j->begin_draw.secret, sizeof(j->begin_draw.secret));
	}
	c->begin.job = j;
	j->astray = (struct why){ "" };
	c->begin.unreached = c->begin.spilled = c->begin.borrows = false;
	r = core_cordon_check(c, &c->why);
	if (r == 0)
		r = payload_find(j, &j->begin_payload, &c->why);
	if (r == 0)
		r = run_window_find(c, j, &c->begin.due);
	if (r == -ENOSPC && books_may_spill(&c->books, j)) {
		begin_beyond_quota(c);
		return;
	}
	if (r < 0) {
		c->begin.why = c->why;
		begin_failed(c, r,
			     r == -ENOSPC     ? CORE_RUN_QUOTA
			     : r == -EBUSY    ? CORE_RUN_CORDONED
			     : r == -EMSGSIZE ? CORE_RUN_MTU
					      : CORE_RUN_OTHER);
		return;
	}
	c->begin.window = c->begin.due;
	lend_recall(c, j, 2u * c->begin.due, true, begin_own);
}

/* --- a run ends ------------------------------------------------------------------------------ */

static void end_removed(struct core *c, int r)
{
	if (r == -ENOENT) {
		core_log(c, LOG_LEVEL_DEBUG, "job was not in the maps", "job=%s", c->end.job->name);
	} else if (r < 0) {
		core_log(c, LOG_LEVEL_ERROR, "cannot remove the run; its slots stay in use",
			 "job=%s reason=\"%s\"", c->end.job->name, c->why.text);
		core_doubt_maps(c);
	}
	c->end.then(c, 0);
}

static void end_sampled(struct core *c, int r)
{
	const struct job *j = c->end.job;

	run_remove(c, j, places_of(j->spilled, j->borrows), end_removed);
}

void run_end(struct core *c, struct job *j, core_step *then)
{
	c->end.job = j;
	c->end.then = then;
	job_end(j);
	/* its last packets are counted as its own */
	core_await(c, ACTION(CORE_SAMPLE), NULL, end_sampled);
}
