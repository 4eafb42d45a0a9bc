// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What would be decided, in words. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "lead_private.h"

/* What is looked at, and room for what is found. */
struct outlook {
	const struct lead *lead;
	const struct lead_view *view;
	const struct shared_job *job;
	struct lead_lists *lists;
	struct wanted_place *place; /* [JOINING_ROOTS_MAX] */
};

static void outlook_of_roots_say(const struct outlook *o, struct why *ret)
{
	const struct shared_job *j = o->job, *root[JOINING_ROOTS_MAX];
	const struct shared_job *first = shared_root(o->view->shared, j, 1);
	const struct wanted_place *its = &o->place[j->job.which - 1];
	bool mays[JOINING_ROOTS_MAX] = { false };
	struct why why = { "" };
	int r = -EAGAIN;

	for (unsigned int i = 0; i < j->job.roots; i++) {
		const struct shared_job *one = shared_root(o->view->shared, j, i + 1);

		mays[i] = one && !one->place.stays;
	}
	if (first)
		r = lead_better_roots(o->lead, o->view, first, LEAD_MARGIN, mays, o->lists, root,
				      o->place, &why);
	if (r == -EALREADY)
		why_say(ret, 0,
			"with no other roots and shares workers could send more by a tenth");
	else if (r < 0)
		why_say(ret, 0, "nothing was weighed: %.300s", *why.text ? why.text : strerror(-r));
	else
		why_say(ret, 0, "its root would be %s, with a share of %.1f %%: %.300s", its->root,
			its->share * 100.0 / JOINING_SHARE_MAX, its->why);
}

static void outlook_say(const struct outlook *o, bool due, struct why *ret)
{
	const struct shared_job *j = o->job, *which[JOINING_ROOTS_MAX];
	struct why why = { "" };
	unsigned int count;
	int r;

	if (due) {
		r = lead_place(o->lead, o->view, j, o->lists, which, o->place, &count, &why);
	} else if (j->job.roots) {
		outlook_of_roots_say(o, ret);
		return;
	} else {
		const unsigned int number = lead_list(o->lead, o->view, j, false, o->lists);

		r = placer_better(o->view->picture, o->lists->job, o->lists->jobs, number,
				  lead_margin(o->view, j), o->place, &why);
	}
	if (r == -EALREADY)
		why_say(ret, 0, "no other node would cost less by a tenth");
	else if (r < 0)
		why_say(ret, 0, "%s: %.300s", due ? "it gets no root" : "nothing was weighed",
			*why.text ? why.text : strerror(-r));
	else if (due)
		why_say(ret, 0, "its root is to be %s: %.300s", o->place->root, o->place->why);
	else /* the reason begins with "it moves" */
		why_say(ret, 0, "it would move to %s%.300s%s", o->place->root,
			o->place->why + strlen("it moves"),
			j->place.stays ? "; but it is to stay where it is" : "");
}

/* Its run is not on at its root. */
static void outlook_of_move_say(const struct outlook *o, const struct report *at, struct why *ret)
{
	const struct report_job *there = standing_at(o->job, at);

	if (there->connected == there->workers)
		why_say(ret, 0, "its run is on at %s, and moves to %s", at->node,
			o->job->place.root);
	else
		why_say(ret, 0,
			"its run goes on at %s, where its workers are until it is over; %u of %u "
			"are not connected there, and cannot be told to move. The next run begins "
			"at %s",
			at->node, there->workers - there->connected, there->workers,
			o->job->place.root);
}

static void outlook_of_ways_add(const struct outlook *o, struct why *ret)
{
	struct why ways = { "" }, places = *ret;

	lead_ways_outlook(o->lead, o->view, o->job, o->lists, &ways);
	if (*ways.text)
		why_say(ret, 0, "%.300s; %.200s", places.text, ways.text);
}

int lead_outlook(const struct lead *l, const struct lead_view *v, const struct shared_job *j,
		 struct why *ret)
{
	_cleanup_(freep) struct lead_lists *lists = calloc(1, sizeof(*lists));
	_cleanup_(freep) struct wanted_place *place = calloc(JOINING_ROOTS_MAX, sizeof(*place));
	const enum standing standing = standing_of(j, v->picture);
	const struct report *elsewhere = standing_elsewhere(j, v->picture);
	const bool due = standing_is_due(j, v->picture);

	const struct outlook o = { l, v, j, lists, place };

	if (!lists || !place)
		return -ENOMEM;
	if (elsewhere && !due)
		outlook_of_move_say(&o, elsewhere, ret);
	else if (due || standing == STANDING_RUNNING)
		outlook_say(&o, due, ret);
	else if (standing == STANDING_PLACED)
		why_say(ret, 0, "no run is on; workers that come are sent to its root");
	else if (standing == STANDING_SILENT)
		why_say(ret, 0,
			"its root does not report: it gets another one when all its workers "
			"have come again");
	else
		why_say(ret, 0, "%u of %u workers have come", j->workers, j->job.workers);
	if (standing == STANDING_RUNNING && !elsewhere && !due)
		outlook_of_ways_add(&o, ret);
	return 0;
}
