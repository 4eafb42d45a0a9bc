// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "placer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "placer_private.h"

static void words_make(const struct placer_work *w, struct wanted_place *ret)
{
	const char *software = w->software ? "; no node has the slots, so it is summed in software"
					   : "";

	if (ret->weighs > 1)
		snprintf(ret->why, sizeof(ret->why),
			 "least cost: %.23s; next best is %.63s: %.23s%s", ret->weighed[0].total,
			 ret->weighed[1].node, ret->weighed[1].total, software);
	else
		snprintf(ret->why, sizeof(ret->why),
			 "the only node that may have it and all workers reach%s", software);
}

static int decide(struct placer_work *w, double ignored, struct wanted_place *ret, struct why *why)
{
	_cleanup_(freep) struct place_candidate *c = calloc(WANTED_WEIGHED_MAX, sizeof(*c));
	_cleanup_(freep) struct place_tree *tree = NULL;
	struct place_problem p;
	unsigned int moved;
	uint32_t which;
	int count, r = placer_problem(w, &p, &which, why);

	if (r < 0)
		return r;
	tree = calloc(p.jobs + 1, sizeof(*tree));
	if (!c || !tree)
		return -ENOMEM;
	r = place_again(&p, tree, &moved);
	if (r < 0)
		return r;
	if (!tree[which].nodes)
		return why_say(why, -EHOSTUNREACH,
			       "no node that may have it is reached by all its workers");
	count = placer_explain(w, &p, tree, which, WANTED_WEIGHED_MAX, c);
	if (count < 0)
		return count;
	placer_place_fill(w, &c[0].tree, ret);
	placer_all_weighed_fill(w, c, count, ret);
	words_make(w, ret);
	return 0;
}

/* Nothing but this job may be elsewhere. */
static int improve(struct placer_work *w, double margin, struct wanted_place *ret, struct why *why)
{
	_cleanup_(freep) struct place_candidate *c = calloc(WANTED_WEIGHED_MAX, sizeof(*c));
	_cleanup_(freep) struct place_tree *tree = NULL;
	struct place_problem p;
	uint32_t which;
	int count, r = placer_problem(w, &p, &which, why);

	if (r < 0)
		return r;
	tree = calloc(p.jobs + 1, sizeof(*tree));
	if (!c || !tree)
		return -ENOMEM;
	for (unsigned int i = 0; i < p.jobs; i++)
		tree[i] = w->now[w->of[i]];
	count = placer_explain(w, &p, tree, which, WANTED_WEIGHED_MAX, c);
	if (count < 0)
		return count;
	if (count < 2 || !c[1].tree.nodes || c[1].cost.failed ||
	    c[1].cost.total >= c[0].cost.total * (1 - margin))
		return -EALREADY;
	for (int i = 1; i < count; i++)
		if (c[i].tree.nodes && !c[i].cost.failed)
			placer_weighed_fill(w, &c[i], &ret->weighed[ret->weighs++]);
	placer_weighed_fill(w, &c[0], &ret->weighed[ret->weighs++]);
	placer_place_fill(w, &c[1].tree, ret);
	snprintf(ret->why, sizeof(ret->why), "it moves%s: cost %.4g, and %.4g at %.63s",
		 margin < 0 ? " off a cordoned node" : "", c[1].cost.total, c[0].cost.total,
		 placer_node(w, tree[which].node[0].machine)->node);
	return 0;
}

static int place(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		 unsigned int which, double margin,
		 int (*how)(struct placer_work *w, double margin, struct wanted_place *ret,
			    struct why *why),
		 struct wanted_place *ret, struct why *why)
{
	_cleanup_(freep) struct wanted_place *made = calloc(1, sizeof(*made));
	_cleanup_(placer_work_close) struct placer_work w = {
		.picture = p, .job = job, .jobs = jobs, .due = &which, .dues = 1
	};
	int r = made ? placer_work_open(&w, why) : -ENOMEM;

	if (r < 0)
		return r;
	placer_place_begin(&job[which], made);
	r = how(&w, margin, made, why);
	if (r == 0)
		*ret = *made;
	return r;
}

int placer_place(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		 unsigned int which, struct wanted_place *ret, struct why *why)
{
	return place(p, job, jobs, which, 0, decide, ret, why);
}

int placer_better(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		  unsigned int which, double margin, struct wanted_place *ret, struct why *why)
{
	return place(p, job, jobs, which, margin, improve, ret, why);
}
