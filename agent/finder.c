// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "finder.h"

#include <errno.h>
#include <jansson.h>

#include "common/address.h"
#include "common/clock.h"
#include "common/owned.h"
#include "finder_private.h"
#include "finder_ways.h"
#include "placing.h"
#include "sharing.h"
#include "steering.h"

enum {
	APART_MS = 200, /* however often routes change here */
	SLACK_US = 10000,
};

const struct core *finder_core(const struct finder *f) { return driver_core(f->driver); }

/* --- what is due ----------------------------------------------------------------------------- */

static struct search *due_first(const struct finder *f)
{
	struct search *first = f->first;

	for (struct search *s = f->first; s; s = s->next)
		if (s->due_ns < first->due_ns)
			first = s;
	return first;
}

static void timer_set(struct finder *f)
{
	const struct round *r = f->round;
	const struct search *s = due_first(f);
	uint64_t at_ns = UINT64_MAX;

	if (r)
		at_ns = finder_round_until(r);
	else if (s)
		at_ns = s->due_ns;
	if (at_ns != UINT64_MAX)
		sd_event_source_set_time(f->timer, at_ns / 1000 + 1);
	sd_event_source_set_enabled(f->timer,
				    at_ns == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

/* That hold, and are to this node; NULL: the tree is to be found. */
static const struct wanted_ways *ways_of(const struct finder *f, const struct job *j)
{
	const struct placing *p = driver_placing(f->driver);
	const struct shared_job *s = p && j->clustered ? shared_find(placing_shared(p), j->name)
						       : NULL;
	const struct wanted_ways *w = s && s->job.birth == j->birth ? shared_ways(s) : NULL;
	const struct steer_job *steered = steering_job(driver_steering(f->driver), j->name);

	if (!w || !steered || *steered->why.text || !endpoint_is_equal(&w->address, &j->service))
		return NULL;
	return w;
}

/* Nobody is asked: the cluster says who sums. */
static bool take_ways(struct finder *f, struct search *s, const struct job *j)
{
	const struct wanted_ways *w = ways_of(f, j);
	_cleanup_(freep) struct tree *tree = w ? calloc(1, sizeof(*tree)) : NULL;
	struct core_event e = { .kind = CORE_TREE };

	if (!tree)
		return false;
	s->began_ns = clock_now_ns();
	s->due_ns = s->began_ns + FINDER_EVERY_MS * 1000000ull;
	s->walked = false; /* what routing had is of no use later */
	finder_ways_tree(w, sharing_picture(driver_sharing(f->driver)), j, tree);
	e.found.job = j->id;
	e.found.epoch = j->epoch;
	e.found.tree = tree;
	e.found.left_out = "";
	driver_handle(f->driver, &e);
	return true;
}

static int on_time(sd_event_source *timer, uint64_t us, void *data)
{
	struct finder *f = data;
	struct search *s;
	const struct job *j;

	if (f->round && clock_now_ns() >= finder_round_until(f->round)) {
		j = books_job_numbered(core_books(finder_core(f)), f->round->job);
		if (j && ways_of(f, j)) /* they have come meanwhile */
			finder_round_free(TAKE_PTR(f->round));
		else
			finder_round_end(f);
	}
	s = due_first(f);
	j = s ? books_job_numbered(core_books(finder_core(f)), s->job) : NULL;
	if (!f->round && j && s->due_ns <= clock_now_ns() && !take_ways(f, s, j))
		finder_round_begin(f, s, j);
	timer_set(f);
	return 0;
}

static int on_answer(sd_event_source *io, int fd, uint32_t events, void *data)
{
	struct finder *f = data;
	struct told told;

	for (; teller_next(f->teller, &told); json_decref(told.result))
		finder_round_answered(f, &told);
	timer_set(f);
	return 0;
}

/* --- which jobs ------------------------------------------------------------------------------ */

/* `before`: of the job before this one in the books, so mostly the next is the one. */
static struct search *search_want(struct finder *f, struct search *before, const struct job *j)
{
	struct search **next = before ? &before->next : &f->first, *s = *next;

	if (!s || s->job != j->id)
		for (s = f->first; s && s->job != j->id;)
			s = s->next;
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return before; /* comes again with the next event */
		s->job = j->id;
		s->epoch = j->epoch;
		s->run_ns = f->is_open ? clock_now_ns() : 0;
		s->next = *next;
		*next = s;
	}
	if (s->epoch != j->epoch) {
		s->due_ns = 0;
		s->run_ns = clock_now_ns();
	}
	s->epoch = j->epoch;
	s->is_wanted = true;
	return s;
}

void finder_look(struct finder *f)
{
	struct search *last = NULL;
	const struct books *b;

	if (!f)
		return;
	b = core_books(finder_core(f));
	for (struct search *s = f->first; s; s = s->next)
		s->is_wanted = false;
	for (unsigned int i = 0; i < b->jobs; i++)
		if (b->job[i]->tree && b->job[i]->tree->found && b->job[i]->run_window)
			last = search_want(f, last, b->job[i]);
	for (struct search **link = &f->first; *link;) {
		struct search *s = *link;

		if (s->is_wanted) {
			link = &s->next;
		} else {
			*link = s->next;
			free(s);
		}
	}
	timer_set(f);
}

void finder_hurry(struct finder *f)
{
	const uint64_t now_ns = clock_now_ns();

	for (struct search *s = f ? f->first : NULL; s; s = s->next) {
		const uint64_t at_ns = s->began_ns + APART_MS * 1000000ull;

		s->due_ns = at_ns > now_ns ? at_ns : now_ns;
	}
	if (f)
		timer_set(f);
}

/* --- open and close -------------------------------------------------------------------------- */

int finder_open(sd_event *loop, struct driver *d, struct finder **ret)
{
	struct finder *f = calloc(1, sizeof(*f));
	int r;

	*ret = f;
	if (!f)
		return -ENOMEM;
	f->driver = d;
	r = teller_open(&f->teller);
	if (r >= 0)
		r = sd_event_add_io(loop, &f->answers, teller_fd(f->teller), EPOLLIN, on_answer, f);
	if (r >= 0)
		r = sd_event_add_time(loop, &f->timer, CLOCK_MONOTONIC, 0, SLACK_US, on_time, f);
	if (r >= 0) {
		finder_peers_note(f, core_config(finder_core(f)));
		finder_look(f);
	}
	f->is_open = true;
	return r < 0 ? r : 0;
}

void finder_close(struct finder *f)
{
	if (!f)
		return;
	sd_event_source_disable_unref(f->timer);
	sd_event_source_disable_unref(f->answers);
	teller_close(f->teller);
	finder_round_free(f->round);
	while (f->first) {
		struct search *s = f->first;

		f->first = s->next;
		free(s);
	}
	free(f);
}
