// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How much of each call is whose, together with the ways. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "merge_private.h"
#include "split.h"

enum {
	STARTS_PART = 4, /* the first search has all starts, those after it one of so many */
	PASSES_MAX = 8, /* over all pairs of roots, until no share changes */
};

static const double CLOSE = 1e-9; /* rates, in parts of themselves, that count as one */

static bool is_sound(const struct merge_split *split, unsigned int roots)
{
	return roots > 0 && roots <= MERGE_ROOTS_MAX && split->parts <= MERGE_PARTS_MAX &&
	       split->least > 0 && split->least <= split->parts / roots && split->searches > 0;
}

/* --- shares for ways that stay --------------------------------------------------------------- */

struct table {
	unsigned int roots, links; /* that are used */
	double *streams; /* [links][roots] */
	double *room; /* [links] */
};

static void table_close(struct table *t)
{
	free(t->streams);
	free(t->room);
}

static int table_open(struct table *t, const struct merge_problem *p, unsigned int roots,
		      const struct graph_path *way)
{
	const struct graph *g = p->graph;
	_cleanup_(freep) double *streams = calloc((size_t)roots * g->links + 1, sizeof(*streams));
	int r = 0;

	t->roots = roots;
	t->streams = calloc((size_t)roots * g->links + 1, sizeof(*t->streams));
	t->room = calloc((size_t)g->links + 1, sizeof(*t->room));
	if (!streams || !t->streams || !t->room)
		return -ENOMEM;
	for (unsigned int s = 0; r == 0 && s < roots; s++) {
		r = p[s].graph == g ? merge_streams(&p[s], way, streams + (size_t)s * g->links)
				    : -EINVAL;
		way += p[s].workers;
	}
	for (uint32_t i = 0; r == 0 && i < g->links; i++) {
		double *row = t->streams + (size_t)t->links * roots, all = 0;

		for (unsigned int s = 0; s < roots; s++)
			all += row[s] = streams[(size_t)s * g->links + i];
		if (all > 0)
			t->room[t->links++] = graph_room(&g->link[i]);
	}
	return r;
}

/* What the fullest link takes of its room at a rate of 1 for each part: INFINITY, it has none. */
static double fullness(const struct table *t, const unsigned int *part)
{
	double most = 0;

	for (unsigned int i = 0; i < t->links; i++) {
		double load = 0;

		for (unsigned int s = 0; s < t->roots; s++)
			load += t->streams[(size_t)i * t->roots + s] * part[s];
		if (load > 0)
			most = fmax(most, t->room[i] > 0 ? load / t->room[i] : INFINITY);
	}
	return most;
}

static void give(unsigned int *part, unsigned int from, unsigned int to, unsigned int parts)
{
	part[from] -= parts;
	part[to] += parts;
}

/* So many parts of one root's go to the other. The fullness is convex in them, so it falls up to
 * the best number of parts, and never again. */
static bool trade(const struct table *t, const struct merge_split *split, unsigned int from,
		  unsigned int to, unsigned int *part)
{
	unsigned int low = 0, high = part[from] - split->least;

	while (low < high) {
		const unsigned int middle = (low + high) / 2;
		double now, next;

		give(part, from, to, middle);
		now = fullness(t, part);
		give(part, from, to, 1);
		next = fullness(t, part);
		give(part, to, from, middle + 1);
		if (next < now * (1 - CLOSE))
			low = middle + 1;
		else
			high = middle;
	}
	give(part, from, to, low);
	return low > 0;
}

int merge_split(const struct merge_problem *p, unsigned int roots, const struct graph_path *way,
		const struct merge_split *split, unsigned int *part, double *ret_rate)
{
	_cleanup_(table_close) struct table t = { 0 };
	bool changed = true;
	int r = is_sound(split, roots) ? 0 : -EINVAL;

	if (r == 0)
		r = table_open(&t, p, roots, way);
	if (r < 0)
		return r;
	for (unsigned int pass = 0; changed && pass < PASSES_MAX; pass++) {
		changed = false;
		for (unsigned int i = 0; i < roots * roots; i++)
			if (i / roots != i % roots)
				changed |= trade(&t, split, i / roots, i % roots, part);
	}
	*ret_rate = split->parts / fullness(&t, part);
	return 0;
}

/* --- shares and ways ------------------------------------------------------------------------- */

struct splitting {
	struct merge_finder finder;
	const struct merge_split *split;
	unsigned int searches; /* that are left */
	unsigned int part[MERGE_ROOTS_MAX], best_part[MERGE_ROOTS_MAX];
	struct graph_path *best;
	double rate; /* of the best; below 0: there is none */
};

static void splitting_close(struct splitting *s)
{
	merge_finder_close(&s->finder);
	free(s->best);
}

/* What is rounded off goes to the largest share, or comes from it. */
static void parts_fill(const struct merge_split *split, unsigned int roots, const double *share,
		       unsigned int *ret)
{
	unsigned int most = 0, all = 0;

	for (unsigned int s = 0; s < roots; s++) {
		ret[s] = (unsigned int)fmax(split->least, floor(share[s] * split->parts));
		all += ret[s];
		most = ret[s] > ret[most] ? s : most;
	}
	if (all <= split->parts)
		ret[most] += split->parts - all;
	for (; all > split->parts; all--) {
		most = 0;
		for (unsigned int s = 0; s < roots; s++)
			most = ret[s] > ret[most] ? s : most;
		ret[most]--;
	}
}

/* Ways for these shares, and shares for those ways, as long as that makes the rate higher. */
static int settle(struct splitting *s)
{
	struct merge_finder *f = &s->finder;
	double before = -1, rate = 0;
	int r = 0;

	while (r == 0 && s->searches > 0 && rate > before * (1 + CLOSE)) {
		before = rate;
		s->searches--;
		for (unsigned int i = 0; i < f->roots; i++)
			f->p[i].share = (double)s->part[i] / s->split->parts;
		r = merge_find(f);
		f->starts = (f->o->starts + STARTS_PART - 1) / STARTS_PART;
		if (!merge_has_time(f))
			s->searches = 0;
		if (r == 0)
			r = merge_split(f->p, f->roots, f->best, s->split, s->part, &rate);
		if (r < 0 || rate <= s->rate * (1 + CLOSE))
			continue;
		s->rate = rate;
		memcpy(s->best, f->best, f->ways * sizeof(*s->best));
		memcpy(s->best_part, s->part, sizeof(s->part));
		if (rate >= f->bound_of_leads * (1 - CLOSE))
			s->searches = 0; /* none are better */
	}
	return r;
}

static int settle_from(struct splitting *s, const double *share)
{
	parts_fill(s->split, s->finder.roots, share, s->part);
	return settle(s);
}

/* Half of the one's share to the other, and then a quarter, and so on: who is better stays. */
static int try_others(struct splitting *s)
{
	const unsigned int roots = s->finder.roots;
	int r = 0;

	for (unsigned int part = 2; r == 0 && s->searches > 0 && part <= 16; part *= 2)
		for (unsigned int i = 0; r == 0 && i < roots * roots; i++) {
			const unsigned int from = i / roots, to = i % roots;
			const unsigned int moves = s->best_part[from] / part;

			memcpy(s->part, s->best_part, sizeof(s->part));
			if (from == to || s->part[from] < moves + s->split->least || !moves)
				continue;
			give(s->part, from, to, moves);
			r = settle(s);
		}
	return r;
}

/* As the first phase of InArt: by what each root can take in. */
static void rooms_of_roots(const struct merge_finder *f, double *ret)
{
	const struct graph *g = f->p->graph;

	for (unsigned int s = 0; s < f->roots; s++) {
		const uint32_t root = f->p[s].root;

		ret[s] = 0;
		for (uint32_t i = g->arriving_at[root]; i < g->arriving_at[root + 1]; i++)
			ret[s] += graph_room(&g->link[g->arriving[i]]);
	}
}

static int search(struct splitting *s)
{
	const unsigned int roots = s->finder.roots;
	double share[MERGE_ROOTS_MAX], room[MERGE_ROOTS_MAX];
	const struct split_problem by = { .workers = s->finder.p->workers,
					  .roots = roots,
					  .root_room = room };
	int r = settle(s);

	if (r < 0 || roots == 1)
		return r;
	rooms_of_roots(&s->finder, room);
	if (split_by_room(&by, share) == 0)
		r = settle_from(s, share);
	for (unsigned int i = 0; i < roots; i++)
		share[i] = 1.0 / roots;
	if (r == 0)
		r = settle_from(s, share);
	return r < 0 ? r : try_others(s);
}

int merge_search_split(const struct merge_problem *p, unsigned int roots,
		       const struct merge_options *o, const struct merge_split *split,
		       unsigned int *ret_part, struct graph_path *ret_way, double *ret_rate)
{
	_cleanup_(splitting_close) struct splitting s = { .split = split,
							  .searches = split->searches,
							  .rate = -1 };
	double share[MERGE_ROOTS_MAX], all = 0;
	int r = is_sound(split, roots) ? merge_finder_open(p, roots, o, &s.finder) : -EINVAL;

	if (r < 0)
		return r;
	for (unsigned int i = 0; i < roots; i++)
		all += p[i].share;
	for (unsigned int i = 0; i < roots; i++)
		share[i] = p[i].share / all;
	parts_fill(split, roots, share, s.part);
	s.best = calloc(s.finder.ways, sizeof(*s.best));
	r = s.best ? search(&s) : -ENOMEM;
	if (r < 0)
		return r;
	memcpy(ret_part, s.best_part, roots * sizeof(*ret_part));
	memcpy(ret_way, s.best, s.finder.ways * sizeof(*ret_way));
	*ret_rate = s.rate;
	return 0;
}
