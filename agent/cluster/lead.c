// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lead.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "lead_private.h"

enum {
	LOOK_MS = 5000, /* so often it is looked for better places */
	LOOK_SOON_MS = 1000, /* the same, where a place was given a moment ago */
	SOON_MS = 10000, /* which is so long */
	UNHEARD_MS = 2000, /* so long we wait until we hear of what we have decided */
};

/* One look. */
struct look {
	struct lead *lead;
	const struct lead_view *view;
	const struct store_seen *leads;
	struct lead_decision *decision;
	struct lead_lists *lists; /* NULL: nothing was weighed yet; see has_lists() */
};

void lead_close(struct lead *l)
{
	for (unsigned int i = 0; i < LEAD_GONES; i++)
		free(l->gone[i]);
	free(l->rest);
	*l = (struct lead){ 0 };
}

void lead_decision_free(struct lead_decision *d)
{
	if (!d)
		return;
	for (unsigned int i = 0; i < 2 * JOINING_ROOTS_MAX; i++)
		free(d->text[i]);
	free(d->ways);
	free(d->without);
	free(d);
}

/* --- the decision ---------------------------------------------------------------------------- */

/* The i-th job is that job, and where we know. */
static void seen_fill(struct lead_decision *d, unsigned int i, const struct shared_job *j)
{
	snprintf(d->job_key[i], sizeof(d->job_key[i]), WANTED_JOBS "%s", j->name);
	snprintf(d->place_key[i], sizeof(d->place_key[i]), WANTED_PLACES "%s", j->name);
	snprintf(d->ways_key[i], sizeof(d->ways_key[i]), WANTED_WAYS "%s", j->name);
	d->seen[1 + 2 * i] = (struct store_seen){ d->job_key[i], j->revision };
	d->seen[2 + 2 * i] = (struct store_seen){ d->place_key[i], j->place_revision };
}

static bool moves(const struct lead_decision *d, unsigned int i)
{
	return strcmp(d->job[i]->place.root, d->place[i].root) != 0;
}

/* Ways to a root that the job had go with it, and those to its other roots if they were found
 * together. */
static bool loses_ways(const struct lead_decision *d, unsigned int jobs, unsigned int i)
{
	bool some_move = false;

	for (unsigned int k = 0; k < jobs; k++)
		some_move |= moves(d, k);
	return d->job[i]->ways && (strcmp(d->job[i]->ways->root, d->place[i].root) != 0 ||
				   (some_move && d->job[i]->ways->found));
}

/* Only as long as we lead, the jobs are those jobs, and their places are the ones that we know. */
static int write_fill(struct lead_decision *d, unsigned int jobs, const struct lead_view *v,
		      const struct store_seen *leads)
{
	unsigned int changes = 0;

	d->seen[0] = *leads;
	for (unsigned int i = 0; i < jobs; i++) {
		d->text[i] = wanted_print(&wanted_place_keys, &d->place[i]);
		if (!d->text[i])
			return -ENOMEM;
		seen_fill(d, i, d->job[i]);
		d->change[changes++] = (struct store_change){ d->place_key[i], d->text[i], false };
		if (v->finds_ways && loses_ways(d, jobs, i))
			d->change[changes++] = (struct store_change){ d->ways_key[i], NULL, false };
	}
	d->write = (struct store_write){ d->seen, 1 + 2 * jobs, d->change, changes };
	return 0;
}

/* The i-th of d->led: its ways, and of several roots its share. */
static int ways_change_fill(struct lead_decision *d, unsigned int i, unsigned int *changes)
{
	_cleanup_(freep) struct wanted_place *place = NULL;
	char **text = &d->text[2 * i];

	if (d->ways) {
		text[0] = wanted_print(&wanted_ways_keys, &d->ways[i]);
		if (!text[0])
			return -ENOMEM;
	}
	d->change[(*changes)++] = (struct store_change){ d->ways_key[i], text[0], false };
	if (!d->ways || d->leds == 1 || d->share[i] == d->led[i]->place.share)
		return 0;
	place = malloc(sizeof(*place));
	if (!place)
		return -ENOMEM;
	*place = d->led[i]->place;
	place->share = d->share[i];
	text[1] = wanted_print(&wanted_place_keys, place);
	if (!text[1])
		return -ENOMEM;
	d->change[(*changes)++] = (struct store_change){ d->place_key[i], text[1], false };
	return 0;
}

/* The same of d->led, whose ways are the ones that we know, too. */
static int ways_write_fill(struct lead_decision *d, const struct store_seen *leads)
{
	unsigned int seens = 1 + 2 * d->leds, changes = 0;
	int r = 0;

	d->seen[0] = *leads;
	for (unsigned int i = 0; r == 0 && i < d->leds; i++) {
		seen_fill(d, i, d->led[i]);
		d->seen[seens++] = (struct store_seen){ d->ways_key[i], d->led[i]->ways_revision };
		r = ways_change_fill(d, i, &changes);
	}
	if (r == 0)
		d->write = (struct store_write){ d->seen, seens, d->change, changes };
	return r;
}

static void decided(struct look *k, enum lead_kind kind, const struct shared_job *j)
{
	struct lead *l = k->lead;

	l->decides = true;
	l->kind = kind;
	l->decided_ns = k->view->now_ns;
	memcpy(l->decided, j->name, sizeof(l->decided));
}

/* What was found for decision->job. No memory: nothing is decided. */
static void decide(struct look *k, unsigned int jobs)
{
	struct lead_decision *d = k->decision;

	if (write_fill(d, jobs, k->view, k->leads) < 0)
		return;
	d->jobs = jobs;
	decided(k, LEAD_PLACES, d->job[0]);
}

void lead_decided(struct lead *l, int error, uint64_t revision)
{
	l->decides = false;
	l->decided_revision = error < 0 ? 0 : revision;
}

void lead_store_lost(struct lead *l) { l->decided_revision = 0; }

static bool is_heard(const struct lead *l, const struct shared_job *j)
{
	if (l->kind == LEAD_NO_WAYS && !j->ways_revision)
		return true;
	return (l->kind == LEAD_PLACES ? j->place_revision : j->ways_revision) >=
	       l->decided_revision;
}

/* The store has taken our last decision, and has not told us yet. */
static bool is_unheard(struct lead *l, const struct lead_view *v)
{
	const struct shared_job *j = shared_find(v->shared, l->decided);

	if (!j || is_heard(l, j) || v->now_ns - l->decided_ns > UNHEARD_MS * 1000000ull)
		l->decided_revision = 0;
	return l->decided_revision;
}

/* They are large, and most looks find nothing to weigh. False: no memory. */
static bool has_lists(struct look *k)
{
	if (!k->lists)
		k->lists = calloc(1, sizeof(*k->lists));
	return k->lists;
}

/* --- jobs that are due ----------------------------------------------------------------------- */

/* No memory: nothing is said of it this time. */
static void without_add(struct lead_decision *d, const struct shared_job *j, const char *why)
{
	struct lead_without *more = reallocarray(d->without, d->withouts + 1, sizeof(*more));

	if (!more)
		return;
	d->without = more;
	more[d->withouts].job = j;
	why_say(&more[d->withouts++].why, 0, "%s", why);
}

/* One that finds no place holds up nobody else. */
static void place_due(struct look *k)
{
	struct lead_decision *d = k->decision;

	for (unsigned int i = 0; i < k->view->shared->jobs && !d->jobs; i++) {
		const struct shared_job *j = k->view->shared->job[i];
		struct why why = { "" };
		unsigned int count;
		int r;

		if (!standing_is_due(j, k->view->picture))
			continue;
		r = has_lists(k) ? lead_place(k->lead, k->view, j, k->lists, d->job, d->place,
					      &count, &why)
				 : -ENOMEM;
		if (r == 0)
			decide(k, count);
		else
			without_add(d, j, *why.text ? why.text : strerror(-r));
	}
}

/* --- jobs that have better places ------------------------------------------------------------ */

/* All roots of a job at once, by its first; one of them moves at most, first of all one that must.
 * Where ways were found, shares are those that fit these: only who must moves. */
static void look_for_better_roots(struct look *k, const struct shared_job *first, bool settled)
{
	bool musts[JOINING_ROOTS_MAX] = { false }, mays[JOINING_ROOTS_MAX] = { false };
	bool must = false, has_ways = false;
	struct why ignored;

	for (unsigned int i = 0; i < first->job.roots; i++) {
		const struct shared_job *root = shared_root(k->view->shared, first, i + 1);

		musts[i] = root && lead_must_move(k->view, root);
		mays[i] = root && lead_may_move(k->lead, k->view, root);
		must |= musts[i];
		has_ways |= root && lead_has_found_ways(root);
		/* All are asked: each has its clock. */
		settled = root && lead_is_settled(k->lead, k->view, root) && settled;
	}
	if (first->job.which != 1 || (!must && (!settled || has_ways)) || !has_lists(k))
		return;
	if (lead_better_roots(k->lead, k->view, first, must ? LEAD_MARGIN_CORDONED : LEAD_MARGIN,
			      must ? musts : mays, k->lists, k->decision->job, k->decision->place,
			      &ignored) == 0)
		decide(k, first->job.roots);
}

static void look_for_a_better_root(struct look *k, const struct shared_job *j)
{
	unsigned int which;
	struct why ignored;

	if (!has_lists(k))
		return;
	which = lead_list(k->lead, k->view, j, false, k->lists);
	k->decision->job[0] = j;
	if (placer_better(k->view->picture, k->lists->job, k->lists->jobs, which,
			  lead_margin(k->view, j), k->decision->place, &ignored) == 0)
		decide(k, 1);
}

/* One job at a time: what it does to loads is seen before the next one is looked at. */
static void look_for_better(struct look *k)
{
	struct lead *l = k->lead;
	const uint64_t now_ns = k->view->now_ns;
	const bool is_soon = l->decided_ns && l->kind == LEAD_PLACES &&
			     now_ns - l->decided_ns < SOON_MS * 1000000ull;
	bool settled;

	if (now_ns - l->looked_ns < (is_soon ? LOOK_SOON_MS : LOOK_MS) * 1000000ull)
		return;
	l->looked_ns = now_ns;
	settled = lead_loads_are_settled(l, k->view);
	for (unsigned int i = 0; i < k->view->shared->jobs && !k->decision->jobs; i++) {
		const struct shared_job *j = k->view->shared->job[i];

		if (j->job.roots)
			look_for_better_roots(k, j, settled);
		else if (lead_may_move(l, k->view, j) &&
			 (settled || lead_is_new(l, k->view, j) || lead_must_move(k->view, j)))
			look_for_a_better_root(k, j);
	}
}

/* Ways are for jobs that stay where they are. */
static void look_for_ways(struct look *k)
{
	struct lead_decision *d = k->decision;

	if (!k->view->finds_ways)
		return;
	lead_ways(k->lead, k->view, d);
	if (d->leds && ways_write_fill(d, k->leads) == 0)
		decided(k, d->ways ? LEAD_WAYS : LEAD_NO_WAYS, d->led[0]);
	else
		d->leds = 0;
}

int lead_look(struct lead *l, const struct lead_view *v, const struct store_seen *leads,
	      struct lead_decision **ret)
{
	_cleanup_(lead_decision_freep) struct lead_decision *d = NULL;
	struct look k = { l, v, leads, NULL, NULL };

	*ret = NULL;
	if (l->decides || is_unheard(l, v) || !v->shared->jobs || !leads)
		return 0;
	d = k.decision = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	place_due(&k);
	if (!d->jobs)
		look_for_better(&k);
	if (!d->jobs)
		look_for_ways(&k);
	free(k.lists);
	if (d->write.changes || d->withouts)
		*ret = TAKE_PTR(d);
	return 0;
}
