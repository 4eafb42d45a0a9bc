// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "merge_private.h"
#include "random.h"
#include "rounding.h"
#include "search.h"

enum {
	REPAIR_MAX = 1 << 22, /* options times links: a step of repair looks at all of these */
};

static const double CLOSE = 1e-9; /* rates, in parts of themselves, that count as one */

/* --- what is asked --------------------------------------------------------------------------- */

static bool leads(const struct merge_problem *p, unsigned int worker)
{
	const struct graph_path *lead = &p->lead[worker];
	uint32_t at = p->worker[worker];

	if (lead->links > GRAPH_PATH_MAX)
		return false;
	for (unsigned int i = 0; i < lead->links; i++) {
		if (lead->link[i] >= p->graph->links || p->graph->link[lead->link[i]].from != at)
			return false;
		at = p->graph->link[lead->link[i]].to;
	}
	return true;
}

static int check(const struct merge_problem *p, const struct merge_options *o)
{
	if (p->workers == 0 || p->root >= p->graph->machines || o->paths_max == 0 || o->starts == 0)
		return -EINVAL;
	if (p->workers > MERGE_WORKERS_MAX || p->graph->machines > MERGE_MACHINES_MAX ||
	    o->paths_max > MERGE_PATHS_MAX || o->starts > MERGE_STARTS_MAX)
		return -E2BIG;
	for (unsigned int i = 0; i < p->workers; i++)
		if (p->worker[i] >= p->graph->machines || p->streams[i] == 0 || !leads(p, i))
			return -EINVAL;
	for (uint32_t i = 0; p->back && i < p->graph->links; i++)
		if (p->back[i] >= p->graph->links)
			return -EINVAL;
	return 0;
}

/* --- from one start to the next -------------------------------------------------------------- */

struct search {
	const struct merge_problem *p;
	const struct merge_options *o;
	struct merge_legs legs;
	double *room; /* [links]: what the tree of this start takes for it */
	struct merge_spot *spot;
	struct graph_path *way, *best;
	double rate; /* of the best; below 0: there is none */
	double bound;
	uint64_t seed;
};

static void search_close(struct search *s)
{
	merge_legs_close(&s->legs);
	free(s->room);
	free(s->spot);
	free(s->way);
	free(s->best);
}

static int search_open(struct search *s)
{
	s->room = calloc((size_t)s->p->graph->links + 1, sizeof(*s->room));
	s->spot = calloc((size_t)s->p->graph->machines + 1, sizeof(*s->spot));
	s->way = calloc(s->p->workers, sizeof(*s->way));
	s->best = calloc(s->p->workers, sizeof(*s->best));
	if (!s->room || !s->spot || !s->way || !s->best)
		return -ENOMEM;
	return merge_legs_open(s->p, s->o->paths_max, &s->legs);
}

/* No ways have a higher rate than this: what leads and the widest ways bear, each by itself. */
static int bound_find(struct search *s)
{
	const struct graph *g = s->p->graph;
	int r;

	for (uint32_t i = 0; i < g->links; i++)
		s->room[i] = graph_room(&g->link[i]);
	r = merge_tree(s->p, s->room, s->spot);
	s->bound = INFINITY;
	for (unsigned int i = 0; r == 0 && i < s->p->workers; i++) {
		const struct graph_path *lead = &s->p->lead[i];
		const struct merge_spot *gateway = &s->spot[merge_gateway(s->p, i)];

		if (gateway->width < 0)
			return -ENETUNREACH;
		s->bound = fmin(s->bound, gateway->width);
		for (unsigned int k = 0; k < lead->links; k++)
			s->bound = fmin(s->bound, s->room[lead->link[k]] / s->p->streams[i]);
	}
	return r;
}

/* Room beyond the bound is of no use, so that of ways that are wide enough the shortest is taken.
 * The second start takes all for wide enough; the others what chance says. */
static void rooms_fill(struct search *s, unsigned int start)
{
	const double enough = start == 0   ? s->bound
			      : start == 1 ? 0
					   : s->bound * random_part(&s->seed);

	for (uint32_t i = 0; i < s->p->graph->links; i++) {
		const double room = graph_room(&s->p->graph->link[i]);
		const double part = start < 2 ? 1 : 0.25 + 0.75 * random_part(&s->seed);

		s->room[i] = fmin(room * part, enough);
	}
}

static int keep_better(struct search *s, const struct merge_menu *m, const uint32_t *taken)
{
	double rate;
	int r;

	if (!merge_ways_of(m, taken, s->o->nodes_max, s->way))
		return 0;
	r = merge_rate(s->p, s->way, &rate);
	if (r == 0 && rate > s->rate * (1 + CLOSE)) {
		s->rate = rate;
		memcpy(s->best, s->way, s->p->workers * sizeof(*s->best));
	}
	return r;
}

static int search_from(struct search *s, unsigned int start)
{
	_cleanup_(merge_menu_close) struct merge_menu m = { 0 };
	_cleanup_(freep) uint32_t *taken = NULL;
	double rate;
	int r;

	rooms_fill(s, start);
	r = merge_tree(s->p, s->room, s->spot);
	if (r == 0)
		r = merge_menu_open(s->p, &s->legs, s->spot, &m);
	if (r < 0)
		return r;
	taken = calloc(m.choices.count + 1, sizeof(*taken));
	if (!taken)
		return -ENOMEM;
	r = keep_better(s, &m, taken);
	if (r == 0)
		r = search_takings(&m.choices, s->o->tries, &s->seed, taken, &rate);
	if (r == 0 && m.options * m.choices.resources <= REPAIR_MAX)
		r = rounding_repair(&m.choices, taken, &rate);
	return r < 0 ? r : keep_better(s, &m, taken);
}

int merge_search(const struct merge_problem *p, const struct merge_options *o,
		 struct graph_path *ret_way, double *ret_rate)
{
	_cleanup_(search_close) struct search s = { .p = p, .o = o, .rate = -1, .seed = o->seed };
	int r = check(p, o);

	if (r == 0)
		r = search_open(&s);
	if (r == 0)
		r = bound_find(&s);
	for (unsigned int i = 0; r == 0 && i < o->starts && s.rate < s.bound * (1 - CLOSE); i++)
		r = search_from(&s, i);
	if (r < 0)
		return r;
	if (s.rate < 0 || !s.best)
		return -ENETUNREACH;
	memcpy(ret_way, s.best, p->workers * sizeof(*ret_way));
	*ret_rate = s.rate;
	return 0;
}
