// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The roots of a job that has several, and their shares. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/roots.h"
#include "agent/policy/split.h"
#include "common/joining.h"
#include "common/owned.h"
#include "placer_private.h"

/* As the first phase of InArt: by what each root can take in. */
static int shares_fill(const double *rate, unsigned int roots, unsigned int workers,
		       struct wanted_place *ret)
{
	const struct split_problem p = { .workers = workers, .roots = roots, .root_room = rate };
	double share[JOINING_ROOTS_MAX];
	int r = split_by_room(&p, share);

	for (unsigned int i = 0; r == 0 && i < roots; i++)
		ret[i].share = (uint16_t)fmax(1, round(share[i] * JOINING_SHARE_MAX));
	return r;
}

static void words_make(const struct placer_work *w, const double *rate, unsigned int which,
		       struct wanted_place *ret)
{
	double all = 0;

	for (unsigned int i = 0; i < w->dues; i++)
		all += rate[i];
	snprintf(ret->why, sizeof(ret->why),
		 "root %u of %u: %.4g of %.4g Mbit/s that each worker may send to all%s", which + 1,
		 w->dues, rate[which] / 125000, all / 125000,
		 w->software ? "; no node has the slots, so it is summed in software" : "");
}

static int choose(struct placer_work *w, struct wanted_place *ret, struct why *why)
{
	_cleanup_(freep) struct place_tree *tree = NULL;
	double rate[JOINING_ROOTS_MAX];
	uint32_t part[JOINING_ROOTS_MAX];
	struct place_problem p;
	int r = placer_problem(w, &p, part, why);

	if (r < 0)
		return r;
	tree = calloc(p.jobs + 1, sizeof(*tree));
	if (!tree)
		return -ENOMEM;
	for (unsigned int i = 0; i < p.jobs; i++)
		if (p.job[i].now)
			tree[i] = *p.job[i].now;
	r = roots_choose(&p, part, w->dues, tree, rate);
	if (r == -ENOSPC)
		return why_say(why, -EHOSTUNREACH,
			       "no node that may have it is reached by all its workers");
	for (unsigned int i = 0; r == 0 && i < w->dues; i++) {
		placer_place_begin(&w->job[w->due[i]], &ret[i]);
		placer_place_fill(w, &tree[part[i]], &ret[i]);
		r = placer_weigh(w, &p, tree, part[i], &ret[i]);
		words_make(w, rate, i, &ret[i]);
	}
	return r == 0 ? shares_fill(rate, w->dues, p.job[part[0]].workers, ret) : r;
}

int placer_roots(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		 const unsigned int *which, unsigned int roots, struct wanted_place *ret,
		 struct why *why)
{
	_cleanup_(freep) struct wanted_place *made = calloc(JOINING_ROOTS_MAX, sizeof(*made));
	_cleanup_(placer_work_close) struct placer_work w = {
		.picture = p, .job = job, .jobs = jobs, .due = which, .dues = roots
	};
	int r = made ? 0 : -ENOMEM;

	if (r == 0 && roots > JOINING_ROOTS_MAX)
		r = -E2BIG;
	if (r == 0)
		r = placer_work_open(&w, why);
	if (r == 0)
		r = choose(&w, made, why);
	if (r == 0)
		memcpy(ret, made, roots * sizeof(*made));
	return r;
}
