// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "graph.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"

static bool is_amount(double value) { return isfinite(value) && value >= 0; }

static bool is_sound(const struct graph_machine *machine, unsigned int machines,
		     const struct graph_link *link, unsigned int links)
{
	for (unsigned int n = 0; n < machines; n++)
		if (machine[n].kind > GRAPH_ROUTER ||
		    (machine[n].kind != GRAPH_NODE && machine[n].slots > 0))
			return false;
	for (unsigned int i = 0; i < links; i++)
		if (link[i].from >= machines || link[i].to >= machines ||
		    link[i].from == link[i].to || !is_amount(link[i].capacity) ||
		    !is_amount(link[i].load))
			return false;
	return true;
}

static uint32_t end_of(const struct graph_link *link, bool arriving)
{
	return arriving ? link->to : link->from;
}

/* Links by machine: counted, then each put behind the last one of its machine. */
static void sort_links(const struct graph *g, bool arriving, uint32_t *at, uint32_t *sorted)
{
	for (unsigned int i = 0; i < g->links; i++)
		at[end_of(&g->link[i], arriving) + 1]++;
	for (unsigned int n = 0; n < g->machines; n++)
		at[n + 1] += at[n];
	for (unsigned int i = g->links; i-- > 0;)
		sorted[--at[end_of(&g->link[i], arriving) + 1]] = i;
	/* Each at[n + 1] is where the links of n begin now. */
	memmove(at, at + 1, g->machines * sizeof(*at));
	at[g->machines] = g->links;
}

int graph_make(const struct graph_machine *machine, unsigned int machines,
	       const struct graph_link *link, unsigned int links, struct graph **ret)
{
	_cleanup_(graph_freep) struct graph *g = NULL;

	if (machines > GRAPH_MACHINES_MAX || links > GRAPH_LINKS_MAX)
		return -E2BIG;
	if (!is_sound(machine, machines, link, links))
		return -EINVAL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->machines = machines;
	g->links = links;
	g->machine = calloc(machines + 1, sizeof(*g->machine));
	g->link = calloc(links + 1, sizeof(*g->link));
	g->leaving_at = calloc(machines + 1, sizeof(*g->leaving_at));
	g->leaving = calloc(links + 1, sizeof(*g->leaving));
	g->arriving_at = calloc(machines + 1, sizeof(*g->arriving_at));
	g->arriving = calloc(links + 1, sizeof(*g->arriving));
	if (!g->machine || !g->link || !g->leaving_at || !g->leaving || !g->arriving_at ||
	    !g->arriving)
		return -ENOMEM;
	if (machines)
		memcpy(g->machine, machine, machines * sizeof(*machine));
	if (links)
		memcpy(g->link, link, links * sizeof(*link));
	sort_links(g, false, g->leaving_at, g->leaving);
	sort_links(g, true, g->arriving_at, g->arriving);
	*ret = TAKE_PTR(g);
	return 0;
}

void graph_free(struct graph *g)
{
	if (!g)
		return;
	free(g->machine);
	free(g->link);
	free(g->leaving_at);
	free(g->leaving);
	free(g->arriving_at);
	free(g->arriving);
	free(g);
}

void graph_freep(struct graph **g) { graph_free(*g); }

double graph_room(const struct graph_link *link) { return fmax(link->capacity - link->load, 0); }

/* --- shortest paths -------------------------------------------------------------------------- */

/* A search for paths to one machine, around what is shut. */
struct search {
	const struct graph *g;
	uint32_t to;
	bool *machine_shut, *link_shut;
	uint32_t *distance; /* from each machine, GRAPH_NONE: no way */
	uint32_t *queue;
};

static void search_close(struct search *s)
{
	free(s->machine_shut);
	free(s->link_shut);
	free(s->queue);
}

/* `distance` stays the caller's. */
static int search_open(const struct graph *g, uint32_t to, uint32_t *distance, struct search *ret)
{
	struct search s = { .g = g, .to = to, .distance = distance };

	s.machine_shut = calloc(g->machines, sizeof(*s.machine_shut));
	s.link_shut = calloc(g->links + 1, sizeof(*s.link_shut));
	s.queue = calloc(g->machines, sizeof(*s.queue));
	if (!s.machine_shut || !s.link_shut || !s.queue) {
		search_close(&s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

/* Paths come to `machine`, and go on or end there. */
static bool leads_on(const struct search *s, uint32_t machine)
{
	return machine == s->to || s->g->machine[machine].kind != GRAPH_HOST;
}

/* How far each machine is: in breadth, against the direction of links. */
static void search_distances(struct search *s)
{
	const struct graph *g = s->g;
	unsigned int done = 0, found = 0;

	for (unsigned int n = 0; n < g->machines; n++)
		s->distance[n] = GRAPH_NONE;
	s->distance[s->to] = 0;
	s->queue[found++] = s->to;
	while (done < found) {
		uint32_t machine = s->queue[done++];

		if (!leads_on(s, machine))
			continue;
		for (uint32_t i = g->arriving_at[machine]; i < g->arriving_at[machine + 1]; i++) {
			uint32_t link = g->arriving[i], before = g->link[link].from;

			if (s->link_shut[link] || s->machine_shut[before] ||
			    s->distance[before] != GRAPH_NONE)
				continue;
			s->distance[before] = s->distance[machine] + 1;
			s->queue[found++] = before;
		}
	}
}

/* The lowest link that comes nearer; there is one. */
static uint32_t next_link(const struct search *s, uint32_t machine)
{
	const struct graph *g = s->g;
	uint32_t i = g->leaving_at[machine];

	for (;; i++) {
		uint32_t link = g->leaving[i], next = g->link[link].to;

		if (!s->link_shut[link] && leads_on(s, next) && s->distance[next] != GRAPH_NONE &&
		    s->distance[next] + 1 == s->distance[machine])
			return link;
	}
}

/* Goes on with `path`, which has come to `machine`, the first way there is. False: there is none.
 */
static bool search_go(struct search *s, uint32_t machine, struct graph_path *path)
{
	search_distances(s);
	if (s->distance[machine] > GRAPH_PATH_MAX - path->links)
		return false;
	while (machine != s->to) {
		uint32_t link = next_link(s, machine);

		path->link[path->links++] = link;
		machine = s->g->link[link].to;
	}
	return true;
}

int graph_distances(const struct graph *g, uint32_t to, uint32_t *ret)
{
	_cleanup_(search_close) struct search s = { 0 };
	int r;

	if (to >= g->machines)
		return -EINVAL;
	r = search_open(g, to, ret, &s);
	if (r < 0)
		return r;
	search_distances(&s);
	return 0;
}

/* --- several --------------------------------------------------------------------------------- */

int graph_path_compare(const struct graph_path *a, const struct graph_path *b)
{
	if (a->links != b->links)
		return a->links < b->links ? -1 : 1;
	for (unsigned int i = 0; i < a->links; i++)
		if (a->link[i] != b->link[i])
			return a->link[i] < b->link[i] ? -1 : 1;
	return 0;
}

/* The first path of those that begin as another one does and leave that one at its link `parts`. */
struct candidate {
	struct graph_path path;
	unsigned int parts;
};

struct candidates {
	struct candidate *item;
	unsigned int count, room;
};

static void candidates_close(struct candidates *c) { free(c->item); }

static int candidates_add(struct candidates *c, const struct candidate *one)
{
	if (c->count == c->room) {
		unsigned int room = c->room ? 2 * c->room : 16;
		struct candidate *item = reallocarray(c->item, room, sizeof(*item));

		if (!item)
			return -ENOMEM;
		c->item = item;
		c->room = room;
	}
	c->item[c->count++] = *one;
	return 0;
}

/* Takes out the first one; there is one. */
static struct candidate candidates_take(struct candidates *c)
{
	struct candidate taken;
	unsigned int first = 0;

	for (unsigned int i = 1; i < c->count; i++)
		if (graph_path_compare(&c->item[i].path, &c->item[first].path) < 0)
			first = i;
	taken = c->item[first];
	c->item[first] = c->item[--c->count];
	return taken;
}

/* The links that paths found so far take after the first `same` links of `path`. */
static void shut_taken(struct search *s, const struct graph_path *path, unsigned int same,
		       const struct graph_path *found, unsigned int count, bool shut)
{
	for (unsigned int i = 0; i < count; i++)
		if (found[i].links > same &&
		    memcmp(found[i].link, path->link, same * sizeof(*path->link)) == 0)
			s->link_shut[found[i].link[same]] = shut;
}

/*
 * `from` is the last path found: its own set of paths (those that part where it parts) falls to
 * pieces, one for each of its machines from there on, without the paths found. Of each piece the
 * first path is a candidate.
 */
static int part_from(struct search *s, const struct candidate *from, uint32_t machine,
		     const struct graph_path *found, unsigned int count, struct candidates *c)
{
	struct candidate next;
	int r = 0;

	for (unsigned int i = 0; i < from->path.links && r == 0; i++) {
		if (i >= from->parts) {
			next.path = from->path;
			next.path.links = next.parts = i;
			shut_taken(s, &from->path, i, found, count, true);
			if (search_go(s, machine, &next.path))
				r = candidates_add(c, &next);
			shut_taken(s, &from->path, i, found, count, false);
		}
		s->machine_shut[machine] = true;
		machine = s->g->link[from->path.link[i]].to;
	}
	memset(s->machine_shut, 0, s->g->machines * sizeof(*s->machine_shut));
	return r;
}

int graph_paths(const struct graph *g, uint32_t from, uint32_t to, unsigned int max,
		struct graph_path *ret)
{
	_cleanup_(candidates_close) struct candidates candidates = { 0 };
	_cleanup_(search_close) struct search s = { 0 };
	_cleanup_(freep) uint32_t *distance = NULL;
	struct candidate last = { 0 };
	unsigned int count = 0;
	int r;

	if (from >= g->machines || to >= g->machines || max > INT32_MAX)
		return -EINVAL;
	distance = calloc(g->machines, sizeof(*distance));
	if (!distance)
		return -ENOMEM;
	r = search_open(g, to, distance, &s);
	if (r < 0)
		return r;
	if (max == 0 || !search_go(&s, from, &last.path))
		return 0;
	for (;;) {
		ret[count++] = last.path;
		if (count == max)
			break;
		r = part_from(&s, &last, from, ret, count, &candidates);
		if (r < 0)
			return r;
		if (candidates.count == 0)
			break;
		last = candidates_take(&candidates);
	}
	return (int)count;
}
