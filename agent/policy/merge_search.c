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
	WORK_MAX = 1 << 20, /* legs: a start goes through all of them; beyond, no other begins */
	MENDS_MAX = 8, /* searches go on so often without what has led into circles */
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

static bool is_sound(const struct merge_problem *p, const struct merge_problem *first)
{
	if (p->workers == 0 || p->root >= p->graph->machines || p->graph != first->graph ||
	    !(p->share > 0) || !isfinite(p->share))
		return false;
	for (unsigned int i = 0; i < p->workers; i++)
		if (p->worker[i] >= p->graph->machines || p->streams[i] == 0 || !leads(p, i))
			return false;
	for (uint32_t i = 0; p->back && i < p->graph->links; i++)
		if (p->back[i] >= p->graph->links)
			return false;
	return true;
}

static int check(const struct merge_problem *p, unsigned int roots, const struct merge_options *o)
{
	if (roots == 0 || o->paths_max == 0 || o->starts == 0)
		return -EINVAL;
	if (roots > MERGE_ROOTS_MAX || p->graph->machines > MERGE_MACHINES_MAX ||
	    o->paths_max > MERGE_PATHS_MAX || o->starts > MERGE_STARTS_MAX)
		return -E2BIG;
	for (unsigned int s = 0; s < roots; s++) {
		if (p[s].workers > MERGE_WORKERS_MAX)
			return -E2BIG;
		if (!is_sound(&p[s], p))
			return -EINVAL;
	}
	return 0;
}

/* --- from one start to the next -------------------------------------------------------------- */

void merge_finder_close(struct merge_finder *f)
{
	for (unsigned int s = 0; s < f->roots; s++)
		merge_legs_close(&f->legs[s]);
	free(f->room);
	free(f->load);
	free(f->spot);
	free(f->way);
	free(f->best);
}

int merge_finder_open(const struct merge_problem *p, unsigned int roots,
		      const struct merge_options *o, struct merge_finder *ret)
{
	struct merge_finder *f = ret;
	int r = check(p, roots, o);

	*f = (struct merge_finder){ .o = o };
	if (r < 0)
		return r;
	memcpy(f->p, p, roots * sizeof(*p));
	f->roots = roots;
	f->starts = o->starts;
	for (unsigned int s = 0; s < roots; s++)
		f->ways += p[s].workers;
	f->room = calloc((size_t)p->graph->links + 1, sizeof(*f->room));
	f->load = calloc((size_t)p->graph->links + 1, sizeof(*f->load));
	f->spot = calloc((size_t)p->graph->machines * roots + 1, sizeof(*f->spot));
	f->way = calloc(f->ways, sizeof(*f->way));
	f->best = calloc(f->ways, sizeof(*f->best));
	if (!f->room || !f->load || !f->spot || !f->way || !f->best)
		return -ENOMEM;
	for (unsigned int s = 0; r == 0 && s < roots; s++)
		r = merge_legs_open(&f->p[s], o->paths_max, &f->legs[s]);
	return r;
}

/* What the ways to gateways use at a rate of 1, whatever is chosen. */
static void leads_add(struct merge_finder *f, const struct merge_problem *p)
{
	for (unsigned int i = 0; i < p->workers; i++)
		for (unsigned int k = 0; k < p->lead[i].links; k++)
			f->load[p->lead[i].link[k]] += p->streams[i] * p->share;
}

/* No ways have a higher rate than this: what leads and the widest ways bear, each by itself. */
static int bound_find(struct merge_finder *f)
{
	const struct graph *g = f->p->graph;
	int r = 0;

	memset(f->load, 0, g->links * sizeof(*f->load));
	for (uint32_t i = 0; i < g->links; i++)
		f->room[i] = graph_room(&g->link[i]);
	f->bound = f->bound_of_leads = INFINITY;
	for (unsigned int s = 0; r == 0 && s < f->roots; s++) {
		const struct merge_problem *p = &f->p[s];

		leads_add(f, p);
		r = merge_tree(p, f->room, f->spot);
		for (unsigned int i = 0; r == 0 && i < p->workers; i++) {
			const double width = f->spot[merge_gateway(p, i)].width;

			if (width < 0)
				return -ENETUNREACH;
			f->bound = fmin(f->bound, width / p->share);
		}
	}
	for (uint32_t i = 0; i < g->links; i++)
		if (f->load[i] > 0)
			f->bound_of_leads = fmin(f->bound_of_leads, f->room[i] / f->load[i]);
	f->bound = fmin(f->bound, f->bound_of_leads);
	return r;
}

/*
 * Room beyond what the root's share of the bound takes is of no use, so that of ways that are wide
 * enough the shortest is taken. The second start takes all for wide enough; the others what chance
 * says.
 */
static void rooms_fill(struct merge_finder *f, unsigned int start, double share)
{
	const double bound = f->bound * share;
	const double enough = start == 0 ? bound : start == 1 ? 0 : bound * random_part(&f->seed);

	for (uint32_t i = 0; i < f->p->graph->links; i++) {
		const double room = graph_room(&f->p->graph->link[i]);
		const double part = start < 2 ? 1 : 0.25 + 0.75 * random_part(&f->seed);

		f->room[i] = fmin(room * part, enough);
	}
}

static int trees_find(struct merge_finder *f, unsigned int start)
{
	int r = 0;

	for (unsigned int s = 0; r == 0 && s < f->roots; s++) {
		rooms_fill(f, start, f->p[s].share);
		r = merge_tree(&f->p[s], f->room, f->spot + (size_t)s * f->p->graph->machines);
	}
	return r;
}

static int keep_better(struct merge_finder *f, const struct merge_menu *m, const uint32_t *taken)
{
	double rate;
	int r;

	if (!merge_ways_of(m, taken, f->o->nodes_max, f->way))
		return 0;
	r = merge_rate(f->p, f->roots, f->way, &rate);
	if (r == 0 && rate > f->rate * (1 + CLOSE)) {
		f->rate = rate;
		memcpy(f->best, f->way, f->ways * sizeof(*f->best));
	}
	return r;
}

static int find_from(struct merge_finder *f, unsigned int start)
{
	_cleanup_(merge_menu_close) struct merge_menu m = { 0 };
	_cleanup_(freep) uint32_t *taken = NULL;
	double rate;
	int r = trees_find(f, start);

	if (r == 0)
		r = merge_menu_open(f->p, f->roots, f->legs, f->spot, &m);
	if (r < 0)
		return r;
	taken = calloc(m.choices.count + 1, sizeof(*taken));
	if (!taken)
		return -ENOMEM;
	r = keep_better(f, &m, taken);
	for (unsigned int i = 0; r == 0 && i <= MENDS_MAX; i++) {
		r = search_takings(&m.choices, f->o->tries, &f->seed, taken, &rate);
		if (r == 0 && !merge_menu_mend(&m, f->o->nodes_max, taken))
			break;
	}
	if (r == 0 && m.options * m.choices.resources <= REPAIR_MAX)
		r = rounding_repair(&m.choices, taken, &rate);
	return r < 0 ? r : keep_better(f, &m, taken);
}

bool merge_has_time(const struct merge_finder *f) { return f->work < WORK_MAX; }

int merge_find(struct merge_finder *f)
{
	int r = bound_find(f);

	f->seed = f->o->seed;
	f->rate = -1;
	for (unsigned int i = 0; r == 0 && i < f->starts && f->rate < f->bound * (1 - CLOSE) &&
				 (i == 0 || merge_has_time(f));
	     i++) {
		r = find_from(f, i);
		for (unsigned int s = 0; s < f->roots; s++)
			f->work += f->legs[s].legs;
	}
	return r == 0 && f->rate < 0 ? -ENETUNREACH : r;
}

int merge_search(const struct merge_problem *p, unsigned int roots, const struct merge_options *o,
		 struct graph_path *ret_way, double *ret_rate)
{
	_cleanup_(merge_finder_close) struct merge_finder f = { 0 };
	int r = merge_finder_open(p, roots, o, &f);

	if (r == 0)
		r = merge_find(&f);
	if (r < 0)
		return r;
	memcpy(ret_way, f.best, f.ways * sizeof(*ret_way));
	*ret_rate = f.rate;
	return 0;
}
