// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Jobs with several roots: where these are, and how much of each call is whose. As the first phase
 * of InArt splits a model: by what each root can take in (agent/policy/split.h).
 */
#include <errno.h>
#include <string.h>

#include "lead_private.h"

/* Roots of one job are apart: that is what several are for. But a job goes before that. */
static int place_apart(const struct lead_view *v, struct lead_lists *lists, unsigned int which,
		       const char *const *other, unsigned int others, struct wanted_place *ret,
		       struct why *why)
{
	struct placer_job *j = &lists->job[which];
	const unsigned int refusals = j->refusals;
	int r;

	for (unsigned int i = 0; i < others && j->refusals < LEAD_REFUSALS_MAX; i++)
		lists->refused[which][j->refusals++] = other[i];
	r = placer_place(v->picture, lists->job, lists->jobs, which, ret, why);
	j->refusals = refusals;
	if (r == -EHOSTUNREACH && others)
		r = placer_place(v->picture, lists->job, lists->jobs, which, ret, why);
	return r;
}

static int place_one(const struct lead *l, const struct lead_view *v, const struct shared_job *j,
		     struct lead_lists *lists, struct wanted_place *ret, struct why *why)
{
	const unsigned int which = lead_list(l, v, j, true, lists);
	const char *other[JOINING_ROOTS_MAX];
	unsigned int others = 0;
	int r;

	for (unsigned int i = 1; i <= j->job.roots; i++) {
		const struct shared_job *root = shared_root(v->shared, j, i);

		if (root && root != j && shared_is_placed(root))
			other[others++] = root->place.root;
	}
	r = place_apart(v, lists, which, other, others, ret, why);
	if (r == 0)
		ret->share = j->job.roots && shared_is_placed(j) ? j->place.share
								 : j->job.roots > 0;
	return r;
}

static int roots_find(const struct lead_view *v, const struct shared_job *first,
		      const struct shared_job **ret, struct why *why)
{
	for (unsigned int i = 0; i < first->job.roots; i++) {
		ret[i] = shared_root(v->shared, first, i + 1);
		if (!ret[i])
			return why_say(why, -EAGAIN, "the job at its root %u is not known yet",
				       i + 1);
	}
	return 0;
}

/* All but its share. */
static void keep(const struct wanted_place *place, struct wanted_place *ret)
{
	const uint16_t share = ret->share;

	*ret = *place;
	ret->share = share;
}

static int place_roots(const struct lead *l, const struct lead_view *v,
		       const struct shared_job *first, struct lead_lists *lists,
		       const struct shared_job **ret_job, struct wanted_place *ret, struct why *why)
{
	unsigned int which[JOINING_ROOTS_MAX] = { 0 };
	int r = roots_find(v, first, ret_job, why);

	if (r < 0)
		return r;
	lead_list_roots(l, v, first, lists, which);
	r = placer_roots(v->picture, lists->job, lists->jobs, which, first->job.roots, ret, why);
	for (unsigned int i = 0; r == 0 && i < first->job.roots; i++)
		if (shared_is_placed(ret_job[i])) /* an operator said so */
			keep(&ret_job[i]->place, &ret[i]);
	return r;
}

int lead_place(const struct lead *l, const struct lead_view *v, const struct shared_job *j,
	       struct lead_lists *lists, const struct shared_job **ret_job,
	       struct wanted_place *ret, unsigned int *ret_count, struct why *why)
{
	*ret_count = 1;
	ret_job[0] = j;
	if (j->job.which != 1 || shared_is_placed(j))
		return place_one(l, v, j, lists, ret, why);
	*ret_count = j->job.roots;
	return place_roots(l, v, j, lists, ret_job, ret, why);
}

int lead_better_roots(const struct lead *l, const struct lead_view *v,
		      const struct shared_job *first, double margin, const bool *may_move,
		      struct lead_lists *lists, const struct shared_job **ret_job,
		      struct wanted_place *ret, struct why *why)
{
	unsigned int which[JOINING_ROOTS_MAX] = { 0 };
	uint16_t share[JOINING_ROOTS_MAX];
	int r = roots_find(v, first, ret_job, why);

	for (unsigned int i = 0; r == 0 && i < first->job.roots; i++) {
		if (standing_of(ret_job[i], v->picture) != STANDING_RUNNING ||
		    standing_elsewhere(ret_job[i], v->picture))
			return why_say(why, -EBUSY, "at root %u no run is on", i + 1);
		share[i] = ret_job[i]->place.share ? ret_job[i]->place.share : 1;
	}
	if (r < 0)
		return r;
	lead_list_roots(l, v, first, lists, which);
	r = placer_roots_better(v->picture, lists->job, lists->jobs, which, first->job.roots, share,
				may_move, margin, ret, why);
	for (unsigned int i = 0; r == 0 && i < first->job.roots; i++) {
		ret[i].stays = ret_job[i]->place.stays;
		memcpy(ret[i].weighed, ret_job[i]->place.weighed, sizeof(ret[i].weighed));
		ret[i].weighs = ret_job[i]->place.weighs;
	}
	return r;
}
