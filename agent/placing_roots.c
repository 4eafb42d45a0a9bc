// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Jobs with several roots: where these are, and how much of each call is whose. As the first phase
 * of InArt splits a model: by what each root can take in (agent/policy/split.h).
 */
#include <errno.h>
#include <string.h>

#include "common/owned.h"
#include "placing_private.h"

/* Roots of one job are apart: that is what several are for. But a job goes before that. */
static int place_apart(const struct placing *p, struct lists *l, unsigned int which,
		       const char *const *other, unsigned int others, struct wanted_place *ret,
		       struct why *why)
{
	struct placer_job *j = &l->job[which];
	const unsigned int refusals = j->refusals;
	int r;

	for (unsigned int i = 0; i < others && j->refusals < REFUSALS_MAX; i++)
		l->refused[which][j->refusals++] = other[i];
	r = placer_place(sharing_picture(p->sharing), l->job, l->jobs, which, ret, why);
	j->refusals = refusals;
	if (r == -EHOSTUNREACH && others)
		r = placer_place(sharing_picture(p->sharing), l->job, l->jobs, which, ret, why);
	return r;
}

int placing_place_one(const struct placing *p, const struct shared_job *j, struct lists *l,
		      struct wanted_place *ret, struct why *why)
{
	const unsigned int which = placing_list(p, j, true, l);
	const char *other[JOINING_ROOTS_MAX];
	unsigned int others = 0;
	int r;

	for (unsigned int i = 1; i <= j->job.roots; i++) {
		const struct shared_job *root = shared_root(&p->shared, j, i);

		if (root && root != j && shared_is_placed(root))
			other[others++] = root->place.root;
	}
	r = place_apart(p, l, which, other, others, ret, why);
	if (r == 0)
		ret->share = j->job.roots && shared_is_placed(j) ? j->place.share
								 : j->job.roots > 0;
	return r;
}

static int roots_find(const struct placing *p, const struct shared_job *first,
		      const struct shared_job **ret, struct why *why)
{
	for (unsigned int i = 0; i < first->job.roots; i++) {
		ret[i] = shared_root(&p->shared, first, i + 1);
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

int placing_place_roots(const struct placing *p, const struct shared_job *first, struct lists *l,
			const struct shared_job **ret_job, struct wanted_place *ret,
			struct why *why)
{
	unsigned int which[JOINING_ROOTS_MAX] = { 0 };
	int r = roots_find(p, first, ret_job, why);

	if (r < 0)
		return r;
	placing_list_roots(p, first, l, which);
	r = placer_roots(sharing_picture(p->sharing), l->job, l->jobs, which, first->job.roots, ret,
			 why);
	for (unsigned int i = 0; r == 0 && i < first->job.roots; i++)
		if (shared_is_placed(ret_job[i])) /* an operator said so */
			keep(&ret_job[i]->place, &ret[i]);
	return r;
}

int placing_better_roots(const struct placing *p, const struct shared_job *first, double margin,
			 const bool *may_move, struct lists *l, const struct shared_job **ret_job,
			 struct wanted_place *ret, struct why *why)
{
	unsigned int which[JOINING_ROOTS_MAX] = { 0 };
	uint16_t share[JOINING_ROOTS_MAX];
	int r = roots_find(p, first, ret_job, why);

	for (unsigned int i = 0; r == 0 && i < first->job.roots; i++) {
		if (standing_of(ret_job[i], sharing_picture(p->sharing)) != STANDING_RUNNING ||
		    standing_elsewhere(ret_job[i], sharing_picture(p->sharing)))
			return why_say(why, -EBUSY, "at root %u no run is on", i + 1);
		share[i] = ret_job[i]->place.share ? ret_job[i]->place.share : 1;
	}
	if (r < 0)
		return r;
	placing_list_roots(p, first, l, which);
	r = placer_roots_better(sharing_picture(p->sharing), l->job, l->jobs, which,
				first->job.roots, share, may_move, margin, ret, why);
	for (unsigned int i = 0; r == 0 && i < first->job.roots; i++) {
		ret[i].stays = ret_job[i]->place.stays;
		memcpy(ret[i].weighed, ret_job[i]->place.weighed, sizeof(ret[i].weighed));
		ret[i].weighs = ret_job[i]->place.weighs;
	}
	return r;
}

/* --- what workers hear ----------------------------------------------------------------------- */

/* What all its roots have; the revision of the newest of these. 0: not all are known. */
static uint64_t shares_find(const struct placing *p, const struct shared_job *s, uint16_t *ret)
{
	uint64_t newest = 0;

	for (unsigned int i = 0; i < s->job.roots; i++) {
		const struct shared_job *root = shared_root(&p->shared, s, i + 1);

		if (!root || !shared_is_placed(root) || !root->place.share)
			return 0;
		ret[i] = root->place.share;
		newest = root->place_revision > newest ? root->place_revision : newest;
	}
	return newest;
}

void placing_shares_say(struct placing *p)
{
	const struct books *b = core_books(placing_core(p));
	uint16_t share[JOINING_ROOTS_MAX];

	for (unsigned int i = 0; i < b->jobs; i++) {
		const struct job *j = b->job[i];
		const struct shared_job *s = j->clustered ? shared_find(&p->shared, j->name) : NULL;
		uint64_t revision;

		if (!s || s->job.birth != j->birth || s->job.which != 1 || !placing_is_ours(p, s) ||
		    !j->run_window)
			continue;
		revision = shares_find(p, s, share);
		if (!revision || placing_is_told(p, s, revision))
			continue;
		for (unsigned int rank = 0; rank < j->workers; rank++)
			if (j->rank[rank].connection && j->rank[rank].presence == JOB_RUNNING)
				driver_say_shares(j->rank[rank].connection, share, s->job.roots);
	}
}
