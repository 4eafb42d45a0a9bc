// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which trees are worth weighing for a job. A set of nodes makes a tree: each node sends to the
 * nearest one of those that are nearer to the root, or to the root. Sets grow one node after
 * another, always by the node that saves most messages times links; and every set on the way is a
 * candidate, as what saves links may cost nodes, or lie on links that are full.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/owned.h"
#include "place_private.h"
#include "random.h"

enum {
	LISTED_MAX = 48, /* nodes that sets are made of */
	SINGLES_MAX = 12,
	VARIANTS = 3, /* of how equal nodes are told apart, and of paths whose nodes are listed */
};

static uint32_t far(const struct place_problem *p, uint32_t from, uint32_t to)
{
	uint32_t links = to == GRAPH_NONE ? GRAPH_NONE : reach_distance(p->reach, from, to);

	return links == GRAPH_NONE ? GRAPH_PATH_MAX : links;
}

/* --- a tree of a set ------------------------------------------------------------------------- */

/* The nearer to the root, the earlier; the first node of a job without a root stays the first. */
static void order(const struct place_problem *p, uint32_t root, uint32_t *machine, unsigned int n)
{
	for (unsigned int i = 1; i < n; i++)
		for (unsigned int k = i; k > 0; k--) {
			uint32_t a = machine[k - 1], b = machine[k];
			uint32_t far_a = far(p, a, root), far_b = far(p, b, root);

			if (a == root || far_a < far_b || (far_a == far_b && a < b))
				break;
			machine[k - 1] = b;
			machine[k] = a;
		}
}

void place_assemble(const struct place_problem *p, uint32_t job, const uint32_t *machine,
		    unsigned int machines, struct place_tree *ret)
{
	uint32_t sorted[PLACE_NODES_MAX], root = p->job[job].root;

	if (root == GRAPH_NONE && machines > 0)
		root = machine[0];
	for (unsigned int i = 0; i < machines; i++)
		sorted[i] = machine[i];
	order(p, root, sorted, machines);
	ret->nodes = machines;
	for (unsigned int i = 0; i < machines; i++) {
		uint32_t mine = far(p, sorted[i], root), least = mine, parent = GRAPH_NONE;

		if (p->job[job].root == GRAPH_NONE && i > 0)
			parent = 0;
		for (unsigned int k = 0; k < i; k++) {
			uint32_t links = far(p, sorted[i], sorted[k]);

			if (far(p, sorted[k], root) < mine && links < least) {
				least = links;
				parent = k;
			}
		}
		ret->node[i] = (struct place_node){ sorted[i], parent };
	}
}

/* --- which nodes ----------------------------------------------------------------------------- */

struct list {
	const struct place_problem *p;
	const struct place_room *room; /* or NULL */
	uint32_t job;
	uint32_t machine[LISTED_MAX];
	unsigned int count;
};

static void list_add(struct list *l, uint32_t m)
{
	const struct place_room *room = l->room;

	if (l->p->reach->graph->machine[m].kind != GRAPH_NODE || l->count == LISTED_MAX)
		return;
	if (room && (!place_room_has(room, l->job, m) ||
		     (room->jobs[m] == 0 && room->used >= room->p->options.nodes_max)))
		return;
	for (unsigned int i = 0; i < l->count; i++)
		if (l->machine[i] == m)
			return;
	l->machine[l->count++] = m;
}

/* The nodes of a path, from its beginning. */
static void list_path(struct list *l, uint32_t from, uint32_t to, uint64_t seed)
{
	uint32_t link[GRAPH_PATH_MAX];
	uint32_t links = reach_path(l->p->reach, from, to, seed, link);

	list_add(l, from);
	for (uint32_t i = 0; links != GRAPH_NONE && i < links; i++)
		list_add(l, l->p->reach->graph->link[link[i]].to);
}

/* The switch of a host that is behind one, or the machine itself. */
static uint32_t switch_of(const struct reach *r, uint32_t m)
{
	return r->leaving[m] == GRAPH_NONE ? m : r->graph->link[r->leaving[m]].to;
}

/*
 * All nodes of a small network, or all in use if no more may be; or those near the workers: on
 * shortest paths from their switches to the root, first of all the switches.
 */
static void list_nodes(struct list *l)
{
	const struct place_job *j = &l->p->job[l->job];
	const struct reach *r = l->p->reach;
	uint32_t to = j->root == GRAPH_NONE ? j->worker[0] : j->root;

	bool shared = l->room && l->room->used >= l->p->options.nodes_max;

	if (shared || r->graph->machines <= 2 * LISTED_MAX)
		for (uint32_t m = 0; m < r->graph->machines; m++)
			list_add(l, m);
	for (unsigned int w = 0; w < j->workers; w++)
		list_add(l, switch_of(r, j->worker[w]));
	for (unsigned int v = 0; v < VARIANTS; v++)
		for (unsigned int w = 0; w < j->workers; w++) {
			uint32_t from = switch_of(r, j->worker[w]);

			if (w == 0 || from != switch_of(r, j->worker[w - 1]))
				list_path(l, from, to, l->p->options.seed + v * (l->job + 1));
		}
}

/* --- sets that grow -------------------------------------------------------------------------- */

struct growing {
	const struct list *list;
	uint32_t root; /* the job's, or the first node of the set */
	uint32_t worker_far[PLACE_WORKERS_MAX]; /* from each worker to where it sends */
	uint32_t machine[PLACE_NODES_MAX], parent_far[PLACE_NODES_MAX], root_far[PLACE_NODES_MAX];
	unsigned int count;
};

/* Links that a further node of the set saves; below 0, if there are more with it. */
static int saves(const struct growing *g, uint32_t m, uint32_t *ret_parent_far)
{
	const struct place_problem *p = g->list->p;
	const struct place_job *j = &p->job[g->list->job];
	uint32_t mine = far(p, m, g->root), parent = mine;
	int links = 0;

	for (unsigned int w = 0; w < j->workers; w++) {
		uint32_t there = far(p, j->worker[w], m);

		if (there < g->worker_far[w])
			links += (int)(g->worker_far[w] - there);
	}
	for (unsigned int i = 0; i < g->count; i++) {
		if (g->root_far[i] < mine) {
			uint32_t there = far(p, m, g->machine[i]);

			parent = there < parent ? there : parent;
		} else if (g->root_far[i] > mine) {
			uint32_t there = far(p, g->machine[i], m);

			if (there < g->parent_far[i])
				links += (int)(g->parent_far[i] - there);
		}
	}
	*ret_parent_far = parent;
	return links - (int)parent;
}

static void grow(struct growing *g, uint32_t m, uint32_t parent_far)
{
	const struct place_problem *p = g->list->p;
	const struct place_job *j = &p->job[g->list->job];
	uint32_t mine = far(p, m, g->root);

	for (unsigned int w = 0; w < j->workers; w++) {
		uint32_t there = far(p, j->worker[w], m);

		g->worker_far[w] = there < g->worker_far[w] ? there : g->worker_far[w];
	}
	for (unsigned int i = 0; i < g->count; i++)
		if (g->root_far[i] > mine) {
			uint32_t there = far(p, g->machine[i], m);

			g->parent_far[i] = there < g->parent_far[i] ? there : g->parent_far[i];
		}
	g->machine[g->count] = m;
	g->parent_far[g->count] = parent_far;
	g->root_far[g->count++] = mine;
}

/* The node that saves most; of equals the first one from `begin` on, around the list. */
static uint32_t best_of(const struct growing *g, unsigned int begin, uint32_t *ret_parent_far)
{
	uint32_t best = GRAPH_NONE, parent_far;
	int most = 0;

	for (unsigned int i = 0; i < g->list->count; i++) {
		uint32_t m = g->list->machine[(begin + i) % g->list->count];
		int links = saves(g, m, &parent_far);

		if (links > most) {
			most = links;
			best = m;
			*ret_parent_far = parent_far;
		}
	}
	return best;
}

/* --- all of them ----------------------------------------------------------------------------- */

void place_menu_add(struct place_menu *m, const struct place_tree *tree)
{
	for (unsigned int i = 0; i < m->count; i++)
		if (place_same(&m->tree[i], tree))
			return;
	if (m->count < PLACE_MENU_MAX)
		m->tree[m->count++] = *tree;
}

static void add_set(const struct growing *g, struct place_menu *ret)
{
	struct place_tree tree;

	place_assemble(g->list->p, g->list->job, g->machine, g->count, &tree);
	if (!g->list->room || place_room_fits(g->list->room, g->list->job, &tree))
		place_menu_add(ret, &tree);
}

/* The set that grows, as long as links are saved and trees may be larger. */
static void add_sets(const struct list *l, uint32_t top, unsigned int begin, struct place_menu *ret)
{
	const struct place_job *j = &l->p->job[l->job];
	struct growing g = { .list = l, .root = j->root };
	uint32_t m, parent_far = 0;

	if (top != GRAPH_NONE)
		g.root = top;
	for (unsigned int w = 0; w < j->workers; w++)
		g.worker_far[w] = far(l->p, j->worker[w], g.root);
	if (top != GRAPH_NONE) {
		grow(&g, top, 0);
		add_set(&g, ret);
	}
	while (g.count < l->p->options.tree_max) {
		m = best_of(&g, begin, &parent_far);
		if (m == GRAPH_NONE)
			return;
		grow(&g, m, parent_far);
		add_set(&g, ret);
	}
}

static uint32_t links_to(const struct list *l, uint32_t machine)
{
	const struct place_job *j = &l->p->job[l->job];
	uint32_t links = 0;

	for (unsigned int w = 0; w < j->workers; w++)
		links += far(l->p, j->worker[w], machine);
	return links;
}

/* The listed node that is nearest to all workers, as the top of a job without a root. */
static uint32_t find_top(const struct list *l, unsigned int begin)
{
	uint32_t best = GRAPH_NONE, least = UINT32_MAX;

	for (unsigned int i = 0; i < l->count; i++) {
		uint32_t m = l->machine[(begin + i) % l->count], links = links_to(l, m);

		if (links < least) {
			least = links;
			best = m;
		}
	}
	return best;
}

/* Nodes alone, which may lie on emptier links: all of a few, or the nearest for who needs one. */
static void add_singles(const struct list *l, struct place_menu *ret)
{
	bool has_root = l->p->job[l->job].root != GRAPH_NONE, few = l->count <= SINGLES_MAX;
	uint32_t least = few || has_root || l->count == 0 ? 0 : links_to(l, find_top(l, 0));
	unsigned int added = 0;

	for (unsigned int i = 0; i < l->count && added < SINGLES_MAX; i++) {
		struct growing g = { .list = l, .machine = { l->machine[i] }, .count = 1 };

		if (!few && (has_root || links_to(l, l->machine[i]) > least))
			continue;
		add_set(&g, ret);
		added++;
	}
}

void place_candidates(const struct place_problem *p, uint32_t job, const struct place_room *room,
		      struct place_menu *ret)
{
	struct list l = { .p = p, .job = job, .room = room };
	bool has_root = p->job[job].root != GRAPH_NONE;

	ret->count = 0;
	if (has_root)
		place_menu_add(ret, &(struct place_tree){ 0 });
	if (p->options.tree_max == 0)
		return;
	list_nodes(&l);
	for (unsigned int v = 0; v < VARIANTS && l.count > 0; v++) {
		uint64_t random = p->options.seed + (uint64_t)job * VARIANTS + v;
		unsigned int begin = v == 0 ? 0 : random_bits(&random) % l.count;

		add_sets(&l, has_root ? GRAPH_NONE : find_top(&l, begin), begin, ret);
	}
	add_singles(&l, ret);
}
