// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "placer_streams.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tally/wire.h>

#include "common/address.h"
#include "common/owned.h"

void placer_streams_close(struct placer_streams *s)
{
	free(s->address);
	free(s->worker);
	free(s->streams);
	free(s->lead);
	free(s->way);
	free(s->sums);
	free(s->back);
}

const struct report *placer_streams_node(const struct placer_streams *s, uint32_t machine)
{
	const struct picture_machine *m = &s->network->drawing.machine[machine];

	return m->kind == PICTURE_NODE ? s->network->picture->report[m->node] : NULL;
}

static int unreachable(struct why *why, const char *what, const struct sockaddr_storage *worker)
{
	char text[ADDRESS_BYTES];

	address_print(worker, text, sizeof(text));
	return why_say(why, -EHOSTUNREACH, "%s %s", text, what);
}

/* --- places ---------------------------------------------------------------------------------- */

static int place_add(struct placer_streams *s, const struct sockaddr_storage *worker,
		     struct why *why)
{
	struct sockaddr_storage there = *worker;
	unsigned int at = 0;

	endpoint_port_set(&there, TALLY_UDP_PORT);
	while (at < s->places && !endpoint_is_equal(&s->address[at], &there))
		at++;
	if (at == s->places) {
		s->worker[at] = network_worker(s->network, &there);
		if (s->worker[at] == GRAPH_NONE)
			return unreachable(why, "is not in the picture of the network", worker);
		s->address[s->places++] = there;
	}
	s->streams[at]++;
	return 0;
}

static int arrays_make(struct placer_streams *s)
{
	const size_t workers = (size_t)s->job->workers + 1;
	const struct graph *g = s->network->graph;

	s->address = calloc(workers, sizeof(*s->address));
	s->worker = calloc(workers, sizeof(*s->worker));
	s->streams = calloc(workers, sizeof(*s->streams));
	s->lead = calloc(workers, sizeof(*s->lead));
	s->way = calloc(workers, sizeof(*s->way));
	s->sums = calloc((size_t)g->machines + 1, sizeof(*s->sums));
	s->back = calloc((size_t)g->links + 1, sizeof(*s->back));
	if (!s->address || !s->worker || !s->streams || !s->lead || !s->way || !s->sums || !s->back)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->links; i++) /* network.h: a cable's two links */
		s->back[i] = i ^ 1;
	return 0;
}

/* --- routing's ways -------------------------------------------------------------------------- */

/* Agents find nodes that take parts on the way, as the root's agent does, too. */
static void sums_find(struct placer_streams *s)
{
	const struct report *root = placer_streams_node(s, s->root);

	for (uint32_t i = 0; i < s->network->graph->machines; i++) {
		const struct report *r = placer_streams_node(s, i);

		s->sums[i] = r && r->inner && root->inner && i != s->root;
	}
}

/* Up to the next machine that sums, which sends on to the root by a path of its own. */
static bool path_add(const struct placer_streams *s, uint32_t *at, struct graph_path *way)
{
	const struct graph *g = s->network->graph;
	uint32_t link[GRAPH_PATH_MAX];
	uint32_t links = reach_path(s->network->reach, *at, s->root, PLACE_OPTIONS.seed, link);

	if (links == GRAPH_NONE)
		return false;
	for (uint32_t i = 0; i < links; i++) {
		if (way->links == GRAPH_PATH_MAX)
			return false;
		way->link[way->links++] = link[i];
		*at = g->link[link[i]].to;
		if (s->sums[*at])
			return true;
	}
	return true;
}

static bool routed(struct placer_streams *s, unsigned int place)
{
	const struct graph *g = s->network->graph;
	struct graph_path *lead = &s->lead[place], *way = &s->way[place];
	uint32_t at = s->worker[place];

	while (at != s->root)
		if (!path_add(s, &at, way))
			return false;
	at = s->worker[place];
	while (at != s->root && !placer_streams_node(s, at)) {
		lead->link[lead->links] = way->link[lead->links];
		at = g->link[lead->link[lead->links++]].to;
	}
	return true;
}

int placer_streams_open(const struct network *n, const struct placer_job *j,
			struct placer_streams *ret, struct why *why)
{
	struct placer_streams *s = ret;
	int r;

	*s = (struct placer_streams){ .network = n, .job = j, .root = GRAPH_NONE };
	if (j->root)
		s->root = network_node(n, j->root);
	if (s->root == GRAPH_NONE || !j->workers)
		return why_say(why, -EHOSTUNREACH, "it has no root, or no workers");
	if (j->workers > TALLY_WORKERS_MAX)
		return -E2BIG;
	r = arrays_make(s);
	for (unsigned int i = 0; r == 0 && i < j->workers; i++)
		r = place_add(s, &j->worker[i].address, why);
	if (r < 0)
		return r;
	sums_find(s);
	for (unsigned int i = 0; i < s->places; i++)
		if (!routed(s, i))
			return unreachable(why, "has no way to the root", &s->address[i]);
	return 0;
}

/* --- ways that are wanted -------------------------------------------------------------------- */

static uint32_t link_to(const struct graph *g, uint32_t from, uint32_t to)
{
	for (uint32_t i = g->leaving_at[from]; i < g->leaving_at[from + 1]; i++)
		if (g->link[g->leaving[i]].to == to)
			return g->leaving[i];
	return GRAPH_NONE;
}

/* By a cable, or past one switch. */
static bool step_add(const struct graph *g, uint32_t from, uint32_t to, struct graph_path *way)
{
	const uint32_t direct = from == to ? GRAPH_NONE : link_to(g, from, to);

	if (from == to)
		return true;
	if (way->links + 2 > GRAPH_PATH_MAX)
		return false;
	if (direct != GRAPH_NONE) {
		way->link[way->links++] = direct;
		return true;
	}
	for (uint32_t i = g->leaving_at[from]; i < g->leaving_at[from + 1]; i++) {
		const uint32_t past = g->link[g->leaving[i]].to;
		const uint32_t last = link_to(g, past, to);

		if (g->machine[past].kind != GRAPH_ROUTER || last == GRAPH_NONE)
			continue;
		way->link[way->links++] = g->leaving[i];
		way->link[way->links++] = last;
		return true;
	}
	return false;
}

static int way_walk(const struct placer_streams *s, const struct wanted_way *w, uint32_t at,
		    struct graph_path *ret, struct why *why)
{
	for (unsigned int i = 0; i < w->nodes; i++) {
		const uint32_t next = network_node(s->network, w->node[i]);

		if (next == GRAPH_NONE)
			return why_say(why, -EHOSTUNREACH, "%s does not report", w->node[i]);
		if (i + 1 < w->nodes && !placer_streams_node(s, next)->steers)
			return why_say(why, -EHOSTUNREACH, "%s does not steer", w->node[i]);
		if (!step_add(s->network->graph, at, next, ret))
			return why_say(why, -EHOSTUNREACH, "%s is not next to %s", w->node[i],
				       i ? w->node[i - 1] : "a worker");
		at = next;
	}
	return 0;
}

static const struct wanted_way *way_of(const struct wanted_ways *ways,
				       const struct sockaddr_storage *worker)
{
	for (unsigned int i = 0; i < ways->ways; i++)
		if (endpoint_is_equal(&ways->way[i].worker, worker))
			return &ways->way[i];
	return NULL;
}

int placer_streams_by(struct placer_streams *s, const struct wanted_ways *ways, struct why *why)
{
	_cleanup_(freep) struct graph_path *way = NULL;
	int r;

	if (!s->places) /* it was not opened */
		return -EHOSTUNREACH;
	way = calloc(s->places, sizeof(*way));
	r = way ? 0 : -ENOMEM;
	if (ways->birth != s->job->job->birth || strcmp(ways->root, s->job->root) != 0)
		return why_say(why, -EHOSTUNREACH, "they lead to another root");
	if (wanted_ways_check(ways, why) < 0)
		return -EHOSTUNREACH;
	for (unsigned int i = 0; r == 0 && i < s->places; i++) {
		const struct wanted_way *w = way_of(ways, &s->address[i]);

		r = w ? way_walk(s, w, s->worker[i], &way[i], why)
		      : unreachable(why, "has no way", &s->address[i]);
	}
	if (r < 0)
		return r;
	free(s->way);
	s->way = TAKE_PTR(way);
	for (uint32_t i = 0; i < s->network->graph->machines; i++) {
		const struct report *node = placer_streams_node(s, i);

		s->sums[i] = node && wanted_ways_sum_at(ways, node->node);
	}
	return 0;
}

int placer_streams_now(struct placer_streams *s)
{
	struct why ignored;
	int r = s->job->ways ? placer_streams_by(s, s->job->ways, &ignored) : 0;

	return r == -EHOSTUNREACH ? 0 : r;
}

/* --- what policies want ---------------------------------------------------------------------- */

struct merge_problem placer_streams_problem(const struct placer_streams *s, const struct graph *g)
{
	return (struct merge_problem){ .graph = g,
				       .lead = s->lead,
				       .worker = s->worker,
				       .streams = s->streams,
				       .workers = s->places,
				       .root = s->root,
				       .share = 1,
				       .sums = s->sums,
				       .back = s->back };
}

static int loads_take(const struct placer_streams *s, struct graph *g)
{
	const struct merge_problem p = placer_streams_problem(s, g);
	const double each = placer_bytes_per_second(s->job);
	_cleanup_(freep) double *streams = calloc((size_t)g->links + 1, sizeof(*streams));
	int r = streams ? merge_streams(&p, s->way, streams) : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < g->links; i++)
		g->link[i].load = fmax(0, g->link[i].load - streams[i] * each);
	return r;
}

int placer_loads_take(const struct network *n, const struct placer_job *j)
{
	_cleanup_(placer_streams_close) struct placer_streams s = { 0 };
	struct why ignored;
	int r = placer_streams_open(n, j, &s, &ignored);

	if (r == 0)
		r = placer_streams_now(&s);
	if (r == 0)
		r = loads_take(&s, n->graph);
	return r == -EHOSTUNREACH || r == -E2BIG ? 0 : r;
}
