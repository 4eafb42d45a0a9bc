// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Placement anew, where jobs have come or gone or loads have changed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "place_search.h"

enum {
	PASSES_MAX = 8,
};

static bool lies(const struct search *s, uint32_t job)
{
	const struct place_tree *now = s->p->job[job].now;

	return now && s->placed[job] && place_same(now, &s->tree[job]);
}

/* All jobs where they lie; those that are new, or can lie there no longer, settle. */
static int stay(struct search *s)
{
	int r = 0;

	for (uint32_t j = 0; j < s->p->jobs && r == 0; j++) {
		const struct place_tree *now = s->p->job[j].now;

		if (now && place_room_fits(&s->room, j, now) &&
		    isfinite(estimate_try(&s->estimate, j, now)))
			r = search_place(s, j, now);
	}
	for (unsigned int free_root = 0; free_root < 2; free_root++)
		for (uint32_t j = 0; j < s->p->jobs && r == 0; j++)
			if (!s->placed[j] && (s->p->job[j].root != GRAPH_NONE) == free_root)
				r = search_settle(s, j, NULL, 0);
	return r;
}

/* Jobs leave their places for `gain` only. Returns how many have changed trees. */
static int pass(struct search *s, double gain)
{
	int changed = 0;

	for (uint32_t j = 0; j < s->p->jobs && !search_is_over(s); j++) {
		struct place_tree before = s->tree[j];
		bool placed = s->placed[j];
		double its = lies(s, j) ? gain : 0;
		int r;

		if (s->p->job[j].stays)
			continue;
		search_lift(s, j);
		r = search_settle(s, j, placed ? &before : NULL, its);
		if (r < 0)
			return r;
		changed += placed != s->placed[j] || !place_same(&before, &s->tree[j]);
	}
	return changed;
}

static unsigned int moved(const struct search *s)
{
	unsigned int count = 0;

	for (uint32_t j = 0; j < s->p->jobs; j++)
		count += s->p->job[j].now && !place_same(s->p->job[j].now, &s->tree[j]);
	return count;
}

static int move(struct search *s, struct place_tree *stayed)
{
	double before = INFINITY, after, gain;
	unsigned int first;
	int r = stay(s), changed = 1;

	if (r == 0)
		r = search_cost(s, &before);
	if (r < 0)
		return r;
	memcpy(stayed, s->tree, s->p->jobs * sizeof(*stayed));
	first = moved(s);
	gain = isfinite(before) ? s->p->options.margin * before : 0;
	after = before;
	/* As the cost falls, so does the margin: otherwise the next decision would go on. */
	for (unsigned int i = 0; i < PASSES_MAX && changed > 0 && r == 0; i++) {
		double least = fmin(before, after);

		changed = pass(s, isfinite(least) ? s->p->options.margin * least : 0);
		r = changed < 0 ? changed : search_cost(s, &after);
	}
	if (r == 0 && !(after <= before - (moved(s) > first ? gain : 0)))
		memcpy(s->tree, stayed, s->p->jobs * sizeof(*stayed));
	return r;
}

int place_again(const struct place_problem *p, struct place_tree *ret, unsigned int *ret_moved)
{
	_cleanup_(freep) struct search *s = calloc(1, sizeof(*s));
	_cleanup_(freep) struct place_tree *tree = calloc(p->jobs + 1, sizeof(*tree));
	_cleanup_(freep) struct place_tree *stayed = calloc(p->jobs + 1, sizeof(*stayed));
	int r = place_check(p);

	if (!s || !tree || !stayed)
		return -ENOMEM;
	if (r < 0)
		return r;
	r = search_open(p, tree, s);
	if (r == 0 && p->jobs > 0)
		r = move(s, stayed);
	if (r == 0) {
		*ret_moved = moved(s);
		memcpy(ret, tree, p->jobs * sizeof(*ret));
	}
	search_close(s);
	return r;
}

int place_online(const struct place_problem *p, struct place_tree *ret)
{
	unsigned int ignored;

	return place_again(p, ret, &ignored);
}
