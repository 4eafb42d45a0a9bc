// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "route_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"

void route_menu_close(struct route_menu *m)
{
	free(m->room);
	free(m->choice);
	free(m->pair);
	free(m->option);
	free(m->meaning);
	free(m->use);
}

/* --- options --------------------------------------------------------------------------------- */

/* All is added twice: first it is counted only, as there are no arrays yet. */
static void begin_choice(struct route_menu *m, struct choice *choice, bool always)
{
	*choice = (struct choice){ .always = always };
	if (m->option)
		choice->option = &m->option[m->options];
	m->now = choice;
}

static void begin_option(struct route_menu *m, struct route_meaning meaning, uint32_t then)
{
	if (m->option) {
		m->option[m->options] = (struct choices_option){ &m->use[m->uses], 0, then };
		m->meaning[m->options] = meaning;
	}
	m->options++;
	m->now->options++;
}

static void add_use(struct route_menu *m, uint32_t resource, double amount)
{
	if (m->option) {
		m->use[m->uses] = (struct choices_use){ resource, amount };
		m->option[m->options - 1].uses++;
	}
	m->uses++;
}

/* What happens at the ends of paths: node `node` sums, or nobody does. */
struct end {
	uint32_t node, resource, then;
};

static void add_paths(struct route_menu *m, struct route_span span, struct end end, double amount)
{
	for (uint32_t i = span.first; i < span.first + span.count; i++) {
		const struct graph_path *path = &m->ways->path[i];

		begin_option(m, (struct route_meaning){ end.node, i }, end.then);
		add_use(m, end.resource, amount);
		for (unsigned int k = 0; k < path->links && m->with_links; k++)
			add_use(m, path->link[k], amount);
	}
}

static void add_nothing(struct route_menu *m)
{
	begin_option(m, (struct route_meaning){ ROUTE_NONE, ROUTE_NONE }, CHOICES_NONE);
}

static uint32_t resource_of_node(const struct route_menu *m, uint32_t node)
{
	return m->ways->p->graph->links + node;
}

static uint32_t resource_of_root(const struct route_menu *m, uint32_t root)
{
	return m->ways->p->graph->links + m->ways->p->nodes + root;
}

/* What workers of an origin send to a root. */
static void add_pair(struct route_menu *m, uint32_t origin, uint32_t root)
{
	const struct route_ways *w = m->ways;
	const struct route_problem *p = w->p;
	const uint32_t *near = &w->near[((size_t)origin * p->roots + root) * w->nodes_max];
	double amount = p->share[root] * (m->by_origin ? w->origin[origin].workers : 1);

	begin_choice(m, &m->pair[(size_t)origin * p->roots + root], p->share[root] > 0);
	if (!m->now->always) {
		add_nothing(m);
		return;
	}
	add_paths(m, route_span_of(w, origin, p->nodes + root),
		  (struct end){ ROUTE_NONE, resource_of_root(m, root), CHOICES_NONE }, amount);
	for (unsigned int i = 0; i < w->nodes_max && near[i] != ROUTE_NONE; i++) {
		struct end end = { near[i], resource_of_node(m, near[i]),
				   m->first_on + near[i] * p->roots + root };

		if (route_span_of(w, w->origins + near[i], p->nodes + root).count > 0)
			add_paths(m, route_span_of(w, origin, near[i]), end, amount);
	}
}

/* What a node sends on. */
static void add_on(struct route_menu *m, uint32_t node, uint32_t root)
{
	const struct route_ways *w = m->ways;
	const struct route_problem *p = w->p;
	struct route_span span = route_span_of(w, w->origins + node, p->nodes + root);

	begin_choice(m, &m->choice[m->first_on + node * p->roots + root], false);
	if (span.count == 0)
		add_nothing(m);
	add_paths(m, span, (struct end){ node, resource_of_root(m, root), CHOICES_NONE },
		  p->share[root]);
}

/* Links from workers to origins: there is nothing to choose. */
static void add_leaving(struct route_menu *m)
{
	const struct route_problem *p = m->ways->p;
	double all = 0;

	for (uint32_t s = 0; s < p->roots; s++)
		all += p->share[s];
	begin_choice(m, &m->choice[m->choices.count - 1], true);
	add_nothing(m);
	for (uint32_t i = 0; i < p->workers && m->with_links; i++)
		if (m->ways->leaves_by[i] != GRAPH_NONE)
			add_use(m, m->ways->leaves_by[i], all);
}

static void add_all(struct route_menu *m)
{
	const struct route_problem *p = m->ways->p;

	m->options = m->uses = 0;
	for (uint32_t i = 0; i < m->ways->origins; i++)
		for (uint32_t s = 0; s < p->roots; s++)
			add_pair(m, i, s);
	for (uint32_t n = 0; n < p->nodes; n++)
		for (uint32_t s = 0; s < p->roots; s++)
			add_on(m, n, s);
	add_leaving(m);
}

/* --- the whole ------------------------------------------------------------------------------- */

/* In units of the largest room: a solver's tolerances want numbers around 1. */
static void set_rooms(struct route_menu *m)
{
	const struct route_problem *p = m->ways->p;
	double largest = 0;

	for (uint32_t i = 0; i < p->graph->links; i++)
		m->room[i] = graph_room(&p->graph->link[i]);
	for (uint32_t n = 0; n < p->nodes; n++)
		m->room[resource_of_node(m, n)] = p->node_room[n];
	for (uint32_t s = 0; s < p->roots; s++)
		m->room[resource_of_root(m, s)] = p->root_room[s];
	for (uint32_t i = 0; i < m->choices.resources; i++)
		largest = fmax(largest, m->room[i]);
	m->unit = largest > 0 ? largest : 1;
	for (uint32_t i = 0; i < m->choices.resources; i++)
		m->room[i] /= m->unit;
}

static int make_arrays(struct route_menu *m)
{
	const struct route_problem *p = m->ways->p;
	uint32_t senders = m->by_origin ? m->ways->origins : p->workers;

	m->first_on = senders * p->roots;
	m->choices.count = m->first_on + p->nodes * p->roots + 1;
	m->choices.resources = p->graph->links + p->nodes + p->roots;
	m->choice = calloc(m->choices.count, sizeof(*m->choice));
	m->pair = calloc((size_t)m->ways->origins * p->roots, sizeof(*m->pair));
	m->room = calloc(m->choices.resources, sizeof(*m->room));
	if (!m->choice || !m->pair || !m->room)
		return -ENOMEM;
	add_all(m);
	m->meaning = calloc(m->options, sizeof(*m->meaning));
	m->use = calloc(m->uses + 1, sizeof(*m->use));
	m->option = calloc(m->options, sizeof(*m->option));
	if (!m->meaning || !m->use || !m->option)
		return -ENOMEM;
	add_all(m);
	for (uint32_t i = 0; i < m->first_on; i++) {
		uint32_t sender = i / p->roots;
		uint32_t origin = m->by_origin ? sender : m->ways->origin_of[sender];

		m->choice[i] = m->pair[(size_t)origin * p->roots + i % p->roots];
	}
	return 0;
}

int route_menu_open(const struct route_ways *w, bool by_origin, bool with_links,
		    struct route_menu *ret)
{
	struct route_menu m = { .ways = w, .by_origin = by_origin, .with_links = with_links };
	int r = make_arrays(&m);

	if (r < 0) {
		route_menu_close(&m);
		return r;
	}
	set_rooms(&m);
	m.choices.choice = m.choice;
	m.choices.room = m.room;
	*ret = m;
	return 0;
}

const struct route_meaning *route_meaning_of(const struct route_menu *m, uint32_t choice,
					     uint32_t option)
{
	return &m->meaning[m->choice[choice].option - m->option + option];
}

/* --- a route --------------------------------------------------------------------------------- */

/* A worker's path begins with its own link. */
static void set_way(const struct route_menu *m, uint32_t pair, uint32_t taken,
		    struct route_way *way)
{
	const struct route_meaning *meaning = route_meaning_of(m, pair, taken);
	uint32_t link = m->ways->leaves_by[pair / m->ways->p->roots];
	const struct graph_path *path;

	if (meaning->path == ROUTE_NONE)
		return;
	path = &m->ways->path[meaning->path];
	way->node = meaning->node;
	if (link != GRAPH_NONE)
		way->path.link[way->path.links++] = link;
	for (unsigned int i = 0; i < path->links; i++)
		way->path.link[way->path.links++] = path->link[i];
}

int route_of(const struct route_menu *m, const uint32_t *taken, double bound, struct route **ret)
{
	const struct choices *c = &m->choices;
	_cleanup_(freep) double *load = calloc(c->resources, sizeof(*load));
	_cleanup_(freep) bool *made = calloc(c->count, sizeof(*made));
	_cleanup_(route_freep) struct route *route = NULL;
	int r = load && made ? route_new(m->ways->p, &route) : -ENOMEM;

	if (r < 0)
		return r;
	route->rate = choices_rate(c, taken, load, made) * m->unit;
	route->bound = bound;
	for (uint32_t i = 0; i < m->first_on; i++)
		set_way(m, i, taken[i], &route->way[i]);
	for (uint32_t i = m->first_on; i < c->count - 1; i++)
		if (made[i])
			route->on[i - m->first_on] =
				m->ways->path[route_meaning_of(m, i, taken[i])->path];
	*ret = TAKE_PTR(route);
	return 0;
}

/* --- what a route has taken ------------------------------------------------------------------ */

/* The choice's option with this node, and the path behind the first `own` links of this one. */
static bool find_option(const struct route_menu *m, uint32_t choice, uint32_t node,
			const struct graph_path *path, unsigned int own, uint32_t *ret_taken)
{
	for (uint32_t k = 0; k < m->choice[choice].options; k++) {
		const struct route_meaning *meaning = route_meaning_of(m, choice, k);
		const struct graph_path *option;

		if (meaning->path == ROUTE_NONE || meaning->node != node)
			continue;
		option = &m->ways->path[meaning->path];
		if (option->links + own != path->links ||
		    memcmp(option->link, path->link + own, option->links * sizeof(uint32_t)) != 0)
			continue;
		*ret_taken = k;
		return true;
	}
	return false;
}

bool route_taken(const struct route_menu *m, const struct route *before, uint32_t *ret_taken)
{
	const struct route_problem *p = m->ways->p;

	for (uint32_t i = 0; i < m->first_on; i++) {
		const struct route_way *way = &before->way[i];
		bool own = m->ways->leaves_by[i / p->roots] != GRAPH_NONE;
		uint32_t on;

		if (!m->choice[i].always)
			continue;
		if (!find_option(m, i, way->node, &way->path, own, &ret_taken[i]))
			return false;
		if (way->node == ROUTE_NONE)
			continue;
		on = way->node * p->roots + i % p->roots;
		if (!find_option(m, m->first_on + on, way->node, &before->on[on], 0,
				 &ret_taken[m->first_on + on]))
			return false;
	}
	return true;
}
