// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "merge_private.h"

void merge_menu_close(struct merge_menu *m)
{
	free(m->room);
	free(m->choice);
	free(m->choice_of);
	free(m->option);
	free(m->path);
	free(m->use_at);
	free(m->use);
}

/* --- what is added --------------------------------------------------------------------------- */

static int options_grow(struct merge_menu *m)
{
	const size_t room = 2 * m->options_room + 64;
	struct choices_option *option;
	struct graph_path *path;
	size_t *use_at;

	if (m->options < m->options_room)
		return 0;
	option = reallocarray(m->option, room, sizeof(*option));
	m->option = option ? option : m->option;
	path = reallocarray(m->path, room, sizeof(*path));
	m->path = path ? path : m->path;
	use_at = reallocarray(m->use_at, room, sizeof(*use_at));
	m->use_at = use_at ? use_at : m->use_at;
	if (!option || !path || !use_at)
		return -ENOMEM;
	m->options_room = room;
	return 0;
}

static int uses_grow(struct merge_menu *m, size_t more)
{
	const size_t room = 2 * m->uses_room + more;
	struct choices_use *use;

	if (m->uses + more <= m->uses_room)
		return 0;
	use = reallocarray(m->use, room, sizeof(*use));
	if (!use)
		return -ENOMEM;
	m->use = use;
	m->uses_room = room;
	return 0;
}

static int add_links(struct merge_menu *m, const struct graph_path *path, double amount)
{
	const uint32_t *back = m->p->back;
	int r = uses_grow(m, 2 * (size_t)path->links);

	amount *= m->p->share;

	for (unsigned int i = 0; r == 0 && i < path->links; i++) {
		m->use[m->uses++] = (struct choices_use){ path->link[i], amount };
		if (back)
			m->use[m->uses++] = (struct choices_use){ back[path->link[i]], amount };
	}
	return r;
}

/* An option of the last choice that has been begun: by this path to `to`. */
static int add_option(struct merge_menu *m, const struct graph_path *path, uint32_t to,
		      double amount)
{
	const size_t first = m->uses;
	int r = options_grow(m);

	if (r == 0)
		r = add_links(m, path, amount);
	if (r < 0)
		return r;
	m->option[m->options] = (struct choices_option){ NULL, (unsigned int)(m->uses - first),
							 m->choice_of[to] };
	m->use_at[m->options] = first;
	m->path[m->options++] = *path;
	m->choice[m->choices.count - 1].options++;
	return 0;
}

static void begin_choice(struct merge_menu *m, bool always)
{
	m->choice[m->choices.count++] = (struct choice){ .always = always };
}

static uint32_t end_of(const struct merge_menu *m, uint32_t from, const struct graph_path *path)
{
	return path->links ? m->p->graph->link[path->link[path->links - 1]].to : from;
}

/* Where the order is lower, so that no way is a circle; what does not sum begins ways only. */
static bool may_lead(const struct merge_menu *m, const struct merge_spot *spot,
		     const struct merge_leg *leg)
{
	const uint32_t to = spot[leg->to].order;

	return to != GRAPH_NONE &&
	       (m->choice_of[leg->from] == CHOICES_NONE || to < spot[leg->from].order);
}

/* The tree's leg, and all others that may be. */
static int add_legs(struct merge_menu *m, const struct merge_legs *legs,
		    const struct merge_spot *spot, uint32_t from, double amount)
{
	struct graph_path tree;
	int r;

	merge_tree_leg(m->p, spot, from, &tree);
	r = add_option(m, &tree, end_of(m, from, &tree), amount);
	for (uint32_t i = legs->at[from]; r == 0 && i < legs->at[from + 1]; i++) {
		const struct merge_leg *leg = &legs->leg[i];

		if (may_lead(m, spot, leg) && graph_path_compare(&leg->path, &tree) != 0)
			r = add_option(m, &leg->path, leg->to, amount);
	}
	return r;
}

/* --- choices --------------------------------------------------------------------------------- */

static int add_worker(struct merge_menu *m, const struct merge_legs *legs,
		      const struct merge_spot *spot, unsigned int worker)
{
	const uint32_t gateway = merge_gateway(m->p, worker);
	const struct graph_path none = { 0 };

	begin_choice(m, true);
	if (gateway == m->p->root || m->choice_of[gateway] != CHOICES_NONE)
		return add_option(m, &none, gateway, 0);
	return add_legs(m, legs, spot, gateway, m->p->streams[worker]);
}

/* Nothing is to be chosen there. */
static int add_leads(struct merge_menu *m)
{
	const struct merge_problem *p = m->p;
	const struct graph_path none = { 0 };
	const size_t first = m->uses;
	int r;

	begin_choice(m, true);
	r = add_option(m, &none, p->root, 0);
	for (unsigned int i = 0; r == 0 && i < p->workers; i++)
		r = add_links(m, &p->lead[i], p->streams[i]);
	if (r == 0)
		m->option[m->options - 1].uses = (unsigned int)(m->uses - first);
	return r;
}

/* The farthest first: options lead to later choices only. ret[machines]; returns how many. */
static uint32_t sums_sort(const struct merge_problem *p, const struct merge_spot *spot,
			  uint32_t *ret)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->graph->machines; i++)
		ret[i] = GRAPH_NONE;
	for (uint32_t i = 0; i < p->graph->machines; i++)
		if (spot[i].order != GRAPH_NONE)
			ret[p->graph->machines - 1 - spot[i].order] = i;
	for (uint32_t i = 0; i < p->graph->machines; i++)
		if (ret[i] != GRAPH_NONE && merge_sums_at(p, ret[i]))
			ret[count++] = ret[i];
	return count;
}

static int fill(struct merge_menu *m, const struct merge_legs *legs, const struct merge_spot *spot,
		const uint32_t *sum, uint32_t sums)
{
	const struct merge_problem *p = m->p;
	int r = 0;

	for (uint32_t i = 0; i < p->graph->machines; i++)
		m->choice_of[i] = CHOICES_NONE;
	for (uint32_t i = 0; i < sums; i++)
		m->choice_of[sum[i]] = m->choices.count + p->workers + i;
	for (unsigned int i = 0; r == 0 && i < p->workers; i++)
		r = add_worker(m, legs, spot, i);
	for (uint32_t i = 0; r == 0 && i < sums; i++) {
		begin_choice(m, false);
		r = add_legs(m, legs, spot, sum[i], 1);
	}
	return r < 0 ? r : add_leads(m);
}

/* Arrays have their places now. Rooms are in units of the largest one, as the search wants them. */
static void settle(struct merge_menu *m)
{
	const struct graph *g = m->all->graph;
	double largest = 0;
	size_t option = 0;

	for (size_t i = 0; i < m->options; i++)
		m->option[i].use = m->use + m->use_at[i];
	for (uint32_t i = 0; i < m->choices.count; i++) {
		m->choice[i].option = m->option + option;
		option += m->choice[i].options;
	}
	for (uint32_t i = 0; i < g->links; i++)
		largest = fmax(largest, graph_room(&g->link[i]));
	for (uint32_t i = 0; i < g->links; i++)
		m->room[i] = largest > 0 ? graph_room(&g->link[i]) / largest : 0;
	m->choices.choice = m->choice;
	m->choices.room = m->room;
	m->choices.resources = g->links;
}

int merge_menu_open(const struct merge_problem *p, unsigned int roots,
		    const struct merge_legs *legs, const struct merge_spot *spot,
		    struct merge_menu *ret)
{
	const size_t machines = p->graph->machines;
	_cleanup_(freep) uint32_t *sum = calloc(machines + 1, sizeof(*sum));
	struct merge_menu *m = ret;
	size_t choices = 1;
	int r = 0;

	*m = (struct merge_menu){ .all = p, .roots = roots };
	for (unsigned int s = 0; s < roots; s++)
		choices += machines + p[s].workers + 1;
	m->room = calloc((size_t)p->graph->links + 1, sizeof(*m->room));
	m->choice = calloc(choices, sizeof(*m->choice));
	m->choice_of = calloc(machines + 1, sizeof(*m->choice_of));
	if (!sum || !m->room || !m->choice || !m->choice_of)
		return -ENOMEM;
	for (unsigned int s = 0; r == 0 && s < roots; s++, spot += machines) {
		m->p = &p[s];
		m->first[s] = m->choices.count;
		r = fill(m, &legs[s], spot, sum, sums_sort(m->p, spot, sum));
	}
	if (r == 0)
		settle(m);
	return r;
}

/* --- ways ------------------------------------------------------------------------------------ */

static bool append(const struct graph_path *path, struct graph_path *ret)
{
	if (ret->links + path->links > GRAPH_PATH_MAX)
		return false;
	memcpy(ret->link + ret->links, path->link, path->links * sizeof(*path->link));
	ret->links += path->links;
	return true;
}

static bool is_allowed(const struct graph *g, const struct graph_path *way, unsigned int nodes_max)
{
	unsigned int nodes = 0;

	for (unsigned int i = 0; i < way->links; i++) {
		const uint32_t to = g->link[way->link[i]].to;

		if (g->machine[to].kind == GRAPH_ROUTER)
			continue;
		nodes++;
		for (unsigned int k = 0; k <= i; k++)
			if (g->link[way->link[k]].from == to)
				return false;
	}
	return nodes <= nodes_max;
}

static bool ways_to(const struct merge_menu *m, unsigned int root, const uint32_t *taken,
		    unsigned int nodes_max, struct graph_path *ret)
{
	const struct merge_problem *p = &m->all[root];

	for (unsigned int i = 0; i < p->workers; i++) {
		uint32_t choice = m->first[root] + i;

		ret[i] = p->lead[i];
		while (choice != CHOICES_NONE) {
			const struct choices_option *o = &m->choice[choice].option[taken[choice]];

			if (!append(&m->path[o - m->option], &ret[i]))
				return false;
			choice = o->then;
		}
		if (!is_allowed(p->graph, &ret[i], nodes_max))
			return false;
	}
	return true;
}

bool merge_ways_of(const struct merge_menu *m, const uint32_t *taken, unsigned int nodes_max,
		   struct graph_path *ret)
{
	for (unsigned int s = 0; s < m->roots; s++) {
		if (!ways_to(m, s, taken, nodes_max, ret))
			return false;
		ret += m->all[s].workers;
	}
	return true;
}

/* --- options that lead into circles ---------------------------------------------------------- */

/* The last takes its place; the first one, which is the tree's, stays. */
static void remove_option(struct merge_menu *m, uint32_t choice, uint32_t *taken)
{
	const size_t at = (size_t)(m->choice[choice].option - m->option) + taken[choice];
	const size_t last = (size_t)(m->choice[choice].option - m->option) +
			    --m->choice[choice].options;

	m->option[at] = m->option[last];
	m->path[at] = m->path[last];
	taken[choice] = 0;
}

/* The option by which the way comes to where it has been, or the one before that is not the tree's.
 */
static bool mend(struct merge_menu *m, const struct merge_problem *p, uint32_t choice,
		 const struct graph_path *lead, unsigned int nodes_max, uint32_t *taken)
{
	uint32_t culprit = CHOICES_NONE;
	struct graph_path way = *lead;

	while (choice != CHOICES_NONE) {
		const struct choices_option *o = &m->choice[choice].option[taken[choice]];

		if (taken[choice])
			culprit = choice;
		if (!append(&m->path[o - m->option], &way) ||
		    !is_allowed(p->graph, &way, nodes_max))
			break;
		choice = o->then;
	}
	if (choice == CHOICES_NONE || culprit == CHOICES_NONE)
		return false;
	remove_option(m, culprit, taken);
	return true;
}

bool merge_menu_mend(struct merge_menu *m, unsigned int nodes_max, uint32_t *taken)
{
	bool mended = false;

	for (unsigned int s = 0; s < m->roots; s++)
		for (unsigned int i = 0; i < m->all[s].workers; i++)
			mended |= mend(m, &m->all[s], m->first[s] + i, &m->all[s].lead[i],
				       nodes_max, taken);
	return mended;
}
