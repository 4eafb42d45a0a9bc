// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * SOAR (R. Segal, C. Avin, G. Scalosub, "SOAR: minimizing network utilization with bounded
 * in-network computing", arXiv 2110.14224): at most k nodes of a job's tree of paths, so that
 * messages times links are least, by dynamic programming. On networks that are no trees, the tree
 * is that of shortest paths to the root. Jobs come one after another, and each takes what room is
 * left.
 *
 * In the words of the paper: X_v(l, i) is the least cost of what is below v, and of v's own
 * messages on the l links up to the next node that sums (or the root), with at most i nodes that
 * sum:
 *
 *   X_v(l, i) = min( L(v) l + R_v(l + 1, i),  l + R_v(1, i - 1) )
 *
 * where L(v) is how many workers are at v, and R_v(l, i) the least sum of X_c(l, i_c) over the
 * children c of v with i_c together i. The second way is open to nodes with room.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "place_private.h"

enum {
	VERTICES_MAX = PLACE_WORKERS_MAX * GRAPH_PATH_MAX + 1,
	BUDGETS = PLACE_NODES_MAX + 1,
};

/* A machine on the way; parents come before their children, and the root is the first. */
struct vertex {
	uint32_t machine, parent;
	unsigned int depth, workers;
	bool open; /* may sum */
	bool sums;
	/* On the way back: nodes for its children; links to the node above them; that node. */
	unsigned int left, up;
	uint32_t above;
};

struct soar {
	const struct place_problem *p;
	const struct place_room *room;
	uint32_t job;
	struct vertex *vertex;
	unsigned int vertices;
	uint32_t *at; /* of each machine: its vertex; GRAPH_NONE: none */
	size_t depths; /* of tables, with 0 */
	double *below; /* R [vertex][l][i] */
	uint8_t *split; /* [vertex][l][i]: of i nodes, so many are in this vertex's part */
	bool *sums; /* [vertex][l][i] */
};

static void soar_close(struct soar *s)
{
	free(s->vertex);
	free(s->at);
	free(s->below);
	free(s->split);
	free(s->sums);
}

static size_t entry(const struct soar *s, uint32_t vertex, unsigned int l, unsigned int i)
{
	return ((size_t)vertex * s->depths + l) * BUDGETS + i;
}

/* --- the tree of paths ----------------------------------------------------------------------- */

static void add_vertex(struct soar *s, uint32_t machine, uint32_t parent)
{
	struct vertex v = { .machine = machine, .parent = parent };

	v.depth = parent == GRAPH_NONE ? 0 : s->vertex[parent].depth + 1;
	s->depths = v.depth + 2 > s->depths ? v.depth + 2 : s->depths;
	s->at[machine] = s->vertices;
	s->vertex[s->vertices++] = v;
}

/* The machines from a worker on, up to the first that has been added; those are added, too. */
static bool add_path(struct soar *s, uint32_t worker, uint32_t root)
{
	const struct place_problem *p = s->p;
	uint32_t way[GRAPH_PATH_MAX + 1], link[GRAPH_PATH_MAX], machines = 0;

	for (uint32_t m = worker; s->at[m] == GRAPH_NONE; m = p->reach->graph->link[link[0]].to) {
		if (reach_path(p->reach, m, root, p->options.seed, link) == GRAPH_NONE)
			return false;
		way[machines++] = m;
	}
	while (machines > 0) {
		uint32_t m = way[--machines];

		reach_path(p->reach, m, root, p->options.seed, link);
		add_vertex(s, m, s->at[p->reach->graph->link[link[0]].to]);
	}
	s->vertex[s->at[worker]].workers++;
	return true;
}

static bool add_paths(struct soar *s, uint32_t root)
{
	const struct place_job *j = &s->p->job[s->job];

	for (unsigned int i = 0; i < s->vertices; i++)
		s->at[s->vertex[i].machine] = GRAPH_NONE;
	s->vertices = 0;
	s->depths = 0;
	add_vertex(s, root, GRAPH_NONE);
	for (unsigned int w = 0; w < j->workers; w++)
		if (!add_path(s, j->worker[w], root))
			return false;
	return true;
}

/* `used`: of nodes that have a job only. */
static void open_vertices(struct soar *s, bool used)
{
	for (uint32_t v = 1; v < s->vertices; v++) {
		uint32_t m = s->vertex[v].machine;
		bool node = s->p->reach->graph->machine[m].kind == GRAPH_NODE;

		s->vertex[v].open = node && place_room_has(s->room, s->job, m) &&
				    (!used || s->room->jobs[m] > 0);
	}
}

/* --- the tables ------------------------------------------------------------------------------ */

static int make_tables(struct soar *s)
{
	size_t entries = (size_t)s->vertices * s->depths * BUDGETS;

	free(s->below);
	free(s->split);
	free(s->sums);
	s->below = calloc(entries, sizeof(*s->below));
	s->split = calloc(entries, sizeof(*s->split));
	s->sums = calloc(entries, sizeof(*s->sums));
	return s->below && s->split && s->sums ? 0 : -ENOMEM;
}

/* X_v(l, i), and whether v sums then. */
static double cost_of(const struct soar *s, uint32_t v, unsigned int l, unsigned int i, bool *sums)
{
	double without = s->vertex[v].workers * (double)l + s->below[entry(s, v, l + 1, i)], with;

	*sums = false;
	if (!s->vertex[v].open || i == 0)
		return without;
	with = l + s->below[entry(s, v, 1, i - 1)];
	*sums = with < without;
	return fmin(with, without);
}

/* Merges X_v(l, ..) into R of its parent: the least sums, and how they are split. */
static void merge(struct soar *s, uint32_t v, unsigned int l, unsigned int budget)
{
	double *all = &s->below[entry(s, s->vertex[v].parent, l, 0)];
	double mine[BUDGETS], merged[BUDGETS];

	for (unsigned int i = 0; i <= budget; i++)
		mine[i] = cost_of(s, v, l, i, &s->sums[entry(s, v, l, i)]);
	for (unsigned int i = 0; i <= budget; i++) {
		merged[i] = INFINITY;
		for (unsigned int k = 0; k <= i; k++) {
			if (all[i - k] + mine[k] >= merged[i])
				continue;
			merged[i] = all[i - k] + mine[k];
			s->split[entry(s, v, l, i)] = k;
		}
	}
	memcpy(all, merged, (budget + 1) * sizeof(*all));
}

/* The least messages times links, with at most `budget` nodes; vertices say who sums. */
static double solve(struct soar *s, unsigned int budget)
{
	for (uint32_t v = s->vertices - 1; v > 0; v--)
		for (unsigned int l = 1; l <= s->vertex[v].depth; l++)
			merge(s, v, l, budget);
	s->vertex[0].left = budget;
	s->vertex[0].up = 1;
	for (uint32_t v = 1; v < s->vertices; v++) {
		struct vertex *x = &s->vertex[v], *parent = &s->vertex[x->parent];
		unsigned int mine = s->split[entry(s, v, parent->up, parent->left)];

		parent->left -= mine;
		x->sums = s->sums[entry(s, v, parent->up, mine)];
		x->left = mine - x->sums;
		x->up = x->sums ? 1 : parent->up + 1;
	}
	return s->below[entry(s, 0, 1, budget)];
}

/* --- a job ----------------------------------------------------------------------------------- */

/* Adds the vertices that sum to a tree, which has the top already, if there is one. */
static void make_tree(struct soar *s, struct place_tree *tree)
{
	s->vertex[0].above = tree->nodes ? 0 : GRAPH_NONE;
	for (uint32_t v = 1; v < s->vertices; v++) {
		struct vertex *x = &s->vertex[v];

		x->above = s->vertex[x->parent].above;
		if (!x->sums)
			continue;
		tree->node[tree->nodes] = (struct place_node){ x->machine, x->above };
		x->above = tree->nodes++;
	}
}

/* The nearest node with room, as the top of a job without a root. */
static uint32_t find_top(const struct soar *s)
{
	const struct graph *g = s->p->reach->graph;
	double least = INFINITY;
	uint32_t top = GRAPH_NONE;

	for (uint32_t m = 0; m < g->machines; m++) {
		struct place_tree tree = place_single(m);
		double far;

		if (g->machine[m].kind != GRAPH_NODE || !place_room_fits(s->room, s->job, &tree))
			continue;
		far = place_far(s->p, s->job, m);
		if (far < least) {
			least = far;
			top = m;
		}
	}
	return top;
}

static unsigned int least_of(unsigned int a, unsigned int b) { return a < b ? a : b; }

/* With nodes that are in use already, or with any: who has less. */
static int solve_best(struct soar *s, bool has_top, struct place_tree *tree)
{
	const struct place_options *o = &s->p->options;
	unsigned int used = s->room->used + (has_top && s->room->jobs[tree->node[0].machine] == 0);
	unsigned int most = o->tree_max - has_top;
	unsigned int further = least_of(most, o->nodes_max - used);
	double known, any;
	int r = make_tables(s);

	if (r < 0)
		return r;
	open_vertices(s, false);
	any = solve(s, further);
	if (further < most) {
		struct place_tree first = *tree;

		make_tree(s, &first);
		r = make_tables(s);
		if (r < 0)
			return r;
		open_vertices(s, true);
		known = solve(s, most);
		if (any < known) {
			*tree = first;
			return 0;
		}
	}
	make_tree(s, tree);
	return 0;
}

static int place(struct soar *s, struct place_tree *ret)
{
	uint32_t root = s->p->job[s->job].root;
	bool has_top = root == GRAPH_NONE;
	struct place_tree tree = { 0 };
	int r;

	ret->nodes = 0;
	if (s->p->options.tree_max == 0)
		return 0;
	if (has_top) {
		root = find_top(s);
		if (root == GRAPH_NONE)
			return 0;
		tree = place_single(root);
	}
	if (!add_paths(s, root))
		return 0;
	r = solve_best(s, has_top, &tree);
	if (r == 0)
		*ret = tree;
	return r;
}

int place_soar(const struct place_problem *p, struct place_tree *ret)
{
	_cleanup_(place_room_close) struct place_room room = { 0 };
	_cleanup_(soar_close) struct soar s = { .p = p, .room = &room };
	unsigned int machines = p->reach->graph->machines;
	int r = place_room_open(p, &room);

	if (r < 0)
		return r;
	s.vertex = calloc(VERTICES_MAX, sizeof(*s.vertex));
	s.at = calloc(machines + 1, sizeof(*s.at));
	if (!s.vertex || !s.at)
		return -ENOMEM;
	for (uint32_t m = 0; m < machines; m++)
		s.at[m] = GRAPH_NONE;
	place_room_take_those_who_stay(&room);
	for (s.job = 0; s.job < p->jobs && r == 0; s.job++) {
		if (p->job[s.job].stays)
			continue;
		r = place(&s, &ret[s.job]);
		if (r == 0)
			place_room_take(&room, s.job, &ret[s.job]);
	}
	return r;
}
