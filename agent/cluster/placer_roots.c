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
			       "the nodes that may have its %u roots, and that all its workers "
			       "reach, have no room for all of them: fewer --roots, or a smaller "
			       "--window",
			       w->dues);
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

/* --- where they have their roots ------------------------------------------------------------- */

struct better {
	double rate; /* of all */
	double each[JOINING_ROOTS_MAX];
	unsigned int moves; /* which of them is elsewhere; `dues`: none */
	struct place_tree tree;
};

static double sum_of(const double *value, unsigned int count)
{
	double sum = 0;

	for (unsigned int i = 0; i < count; i++)
		sum += value[i];
	return sum;
}

/* What a worker can send if each root has its share of it. */
static double rate_by(const double *rate, const uint16_t *share, unsigned int roots)
{
	double least = INFINITY, all = 0;

	for (unsigned int i = 0; i < roots; i++)
		all += share[i];
	for (unsigned int i = 0; i < roots; i++)
		least = fmin(least, rate[i] * all / share[i]);
	return least;
}

/* The best place of each root, with the others where they are. */
static int better_find(const struct placer_work *w, const struct place_problem *p,
		       const uint32_t *part, struct place_tree *tree, const bool *may_move,
		       bool must, struct better *ret)
{
	double rate[JOINING_ROOTS_MAX];
	int r = roots_choose(p, part, w->dues, tree, ret->each); /* all of them stay */

	ret->rate = must ? -1 : sum_of(ret->each, w->dues);
	ret->moves = w->dues;
	for (unsigned int i = 0; r == 0 && i < w->dues; i++) {
		const struct place_tree was = tree[part[i]];

		if (!may_move[i])
			continue;
		tree[part[i]] = (struct place_tree){ 0 };
		r = roots_choose(p, part, w->dues, tree, rate);
		if (r == 0 && sum_of(rate, w->dues) > ret->rate) {
			ret->rate = sum_of(rate, w->dues);
			ret->moves = i;
			ret->tree = tree[part[i]];
			memcpy(ret->each, rate, sizeof(rate));
		}
		tree[part[i]] = was;
	}
	return r;
}

static double rate_of(const double *rate, const struct wanted_place *place, unsigned int roots)
{
	uint16_t share[JOINING_ROOTS_MAX];

	for (unsigned int i = 0; i < roots; i++)
		share[i] = place[i].share;
	return rate_by(rate, share, roots);
}

static void better_say(const struct placer_work *w, const struct better *b, double now,
		       double margin, struct wanted_place *ret)
{
	for (unsigned int i = 0; i < w->dues; i++)
		snprintf(ret[i].why, sizeof(ret[i].why),
			 "root %u of %u%s: all may have %.4g Mbit/s of each worker, and had %.4g",
			 i + 1, w->dues,
			 i != b->moves ? ""
			 : margin < 0  ? ", which moves off a cordoned node"
				       : ", which moves",
			 b->rate / 125000, now / 125000);
}

/* For a move more is asked than for shares, which cost nothing. */
static int improve(struct placer_work *w, const uint16_t *share, const bool *may_move,
		   double margin, struct wanted_place *ret, struct why *why)
{
	_cleanup_(freep) struct place_tree *tree = NULL;
	uint32_t part[JOINING_ROOTS_MAX];
	double stays[JOINING_ROOTS_MAX], now;
	const bool none[JOINING_ROOTS_MAX] = { false };
	struct place_problem p;
	struct better b;
	int r = placer_problem(w, &p, part, why);

	if (r < 0)
		return r;
	tree = calloc(p.jobs + 1, sizeof(*tree));
	if (!tree)
		return -ENOMEM;
	for (unsigned int i = 0; i < p.jobs; i++)
		tree[i] = *p.job[i].now;
	r = better_find(w, &p, part, tree, none, false, &b);
	if (r < 0)
		return r;
	memcpy(stays, b.each, sizeof(stays));
	now = rate_by(stays, share, w->dues);
	r = better_find(w, &p, part, tree, may_move, margin < 0, &b);
	if (r < 0)
		return r;
	if (margin >= 0 && b.rate <= sum_of(stays, w->dues) * (1 + margin)) {
		b.moves = w->dues;
		memcpy(b.each, stays, sizeof(stays));
		b.rate = sum_of(stays, w->dues);
	}
	for (unsigned int i = 0; i < w->dues; i++) {
		placer_place_begin(&w->job[w->due[i]], &ret[i]);
		placer_place_fill(w, i == b.moves ? &b.tree : &tree[part[i]], &ret[i]);
	}
	r = shares_fill(b.each, w->dues, p.job[part[0]].workers, ret);
	if (r < 0)
		return r;
	/* By what is to be written: a share has no more than three digits. */
	b.rate = rate_of(b.each, ret, w->dues);
	if (margin < 0 ? b.moves == w->dues : b.rate <= now * (1 + margin))
		return -EALREADY;
	better_say(w, &b, now, margin, ret);
	return 0;
}

int placer_roots_better(const struct picture *p, const struct placer_job *job, unsigned int jobs,
			const unsigned int *which, unsigned int roots, const uint16_t *share,
			const bool *may_move, double margin, struct wanted_place *ret,
			struct why *why)
{
	_cleanup_(placer_work_close) struct placer_work w = {
		.picture = p, .job = job, .jobs = jobs, .due = which, .dues = roots
	};
	int r = roots > JOINING_ROOTS_MAX ? -E2BIG : placer_work_open(&w, why);

	return r < 0 ? r : improve(&w, share, may_move, margin, ret, why);
}
