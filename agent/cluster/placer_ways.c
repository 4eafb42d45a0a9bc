// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ways for a job's packets that bear more than those of now. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/owned.h"
#include "placer_streams.h"

static const struct merge_options OPTIONS = {
	.paths_max = 4, .starts = 16, .nodes_max = WANTED_WAY_NODES_MAX, .tries = 1000, .seed = 1
};

struct work {
	struct network network; /* loads of others */
	struct placer_streams streams; /* of the job */
};

static void work_close(struct work *w)
{
	placer_streams_close(&w->streams);
	network_close(&w->network);
}

/* Loads of jobs that have just gone are in the forecasts, too. */
static int work_open(struct work *w, const struct picture *p, const struct placer_job *job,
		     unsigned int jobs, unsigned int which, struct why *why)
{
	int r = network_make(p, &w->network);

	for (unsigned int i = 0; r == 0 && i < jobs; i++)
		if (i == which || job[i].is_gone)
			r = placer_loads_take(&w->network, &job[i]);
	if (r == 0)
		r = placer_streams_open(&w->network, &job[which], &w->streams, why);
	return r < 0 ? r : placer_streams_now(&w->streams);
}

static int rate_now(const struct work *w, double *ret)
{
	const struct merge_problem p = placer_streams_problem(&w->streams, w->network.graph);

	return merge_rate(&p, 1, w->streams.way, ret);
}

int placer_ways_rate(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		     unsigned int which, const struct wanted_ways *ways, double *ret,
		     struct why *why)
{
	_cleanup_(placer_streams_close) struct placer_streams asked = { 0 };
	_cleanup_(work_close) struct work w = { 0 };
	struct merge_problem problem;
	int r = work_open(&w, p, job, jobs, which, why);

	if (r == 0)
		r = placer_streams_open(&w.network, &job[which], &asked, why);
	if (r == 0 && ways)
		r = placer_streams_by(&asked, ways, why);
	if (r < 0)
		return r;
	problem = placer_streams_problem(&asked, w.network.graph);
	return merge_rate(&problem, 1, asked.way, ret);
}

/* --- better ones ----------------------------------------------------------------------------- */

static bool has_slots(const struct report *r, const struct wanted_job *job)
{
	for (unsigned int i = 0; i < r->jobs; i++)
		if (r->job[i].inner && !strcmp(r->job[i].name, job->name))
			return true;
	return r->slots_free >= placer_slots(job);
}

/* The node that the packets of a place come to first. */
static uint32_t first_of(const struct placer_streams *s, const struct graph *g, unsigned int place)
{
	const struct graph_path *lead = &s->lead[place];

	return lead->links ? g->link[lead->link[lead->links - 1]].to : s->worker[place];
}

/* A cordoned one may end soon. */
static bool is_passed(const struct placer_streams *s, const struct graph *g, uint32_t machine)
{
	const struct report *r = placer_streams_node(s, machine);
	bool is_needed = machine == s->root;

	for (unsigned int i = 0; i < s->places; i++)
		is_needed |= first_of(s, g, i) == machine;
	return r->steers && (is_needed || !r->cordoned);
}

/* Packets go past nodes that steer, and are summed by those of these that take parts. */
static int steered_fill(const struct work *w, struct graph *g, bool *sums, struct why *why)
{
	const struct placer_streams *s = &w->streams;
	const struct report *root = placer_streams_node(s, s->root);

	if (!root->services)
		return why_say(why, -EHOSTUNREACH, "%s tells no address that workers send to",
			       root->node);
	for (unsigned int i = 0; i < s->places; i++) {
		const uint32_t at = first_of(s, g, i);

		if (at != s->root && !placer_streams_node(s, at)->steers)
			return why_say(why, -EHOSTUNREACH,
				       "%s is next to a worker, and does not steer",
				       placer_streams_node(s, at)->node);
		if (s->address[i].ss_family != root->service[0].ss_family)
			return why_say(why, -EHOSTUNREACH,
				       "a worker and the root have addresses of two families");
	}
	for (uint32_t i = 0; i < g->machines; i++) {
		const struct report *r = placer_streams_node(s, i);

		if (r && !is_passed(s, g, i))
			g->machine[i] = (struct graph_machine){ .kind = GRAPH_HOST };
		sums[i] = r && i != s->root && r->steers && r->inner && root->inner &&
			  !r->cordoned && has_slots(r, s->job->job);
	}
	return 0;
}

static int way_fill(const struct placer_streams *s, unsigned int place,
		    const struct graph_path *path, struct wanted_way *ret)
{
	uint32_t at = s->worker[place];

	ret->worker = s->address[place];
	for (unsigned int i = 0; i <= path->links; i++) {
		const struct report *r = placer_streams_node(s, at);

		if (r && ret->nodes == WANTED_WAY_NODES_MAX)
			return -E2BIG;
		if (r)
			memcpy(ret->node[ret->nodes++], r->node, sizeof(r->node));
		if (i < path->links)
			at = s->network->graph->link[path->link[i]].to;
	}
	return 0;
}

/* Where two streams come or more: others only pass. */
static int sums_fill(const struct merge_problem *problem, const struct placer_streams *s,
		     const struct graph_path *way, struct wanted_ways *ret)
{
	struct merge_problem up = *problem;
	_cleanup_(freep) double *streams = calloc((size_t)up.graph->links + 1, sizeof(*streams));
	int r;

	up.back = NULL;
	r = streams ? merge_streams(&up, way, streams) : -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < up.graph->machines; i++) {
		double come = 0;

		if (!up.sums[i])
			continue;
		for (uint32_t k = up.graph->arriving_at[i]; k < up.graph->arriving_at[i + 1]; k++)
			come += streams[up.graph->arriving[k]];
		for (unsigned int k = 0; k < s->places; k++)
			come += s->worker[k] == i ? s->streams[k] : 0;
		if (come >= 2 && ret->sums == WANTED_WAY_SUMS_MAX)
			return -E2BIG;
		if (come >= 2)
			memcpy(ret->sum[ret->sums++], placer_streams_node(s, i)->node,
			       sizeof(ret->sum[0]));
	}
	return r;
}

static int ways_fill(const struct merge_problem *p, const struct placer_streams *s,
		     const struct graph_path *way, struct wanted_ways *ret)
{
	int r = 0;

	ret->birth = s->job->job->birth;
	memcpy(ret->root, placer_streams_node(s, s->root)->node, sizeof(ret->root));
	ret->address = placer_streams_node(s, s->root)->service[0];
	for (unsigned int i = 0; r == 0 && i < s->places; i++)
		r = way_fill(s, i, &way[i], &ret->way[ret->ways++]);
	return r < 0 ? r : sums_fill(p, s, way, ret);
}

static int search(const struct work *w, double margin, struct wanted_ways *ret, struct why *why)
{
	const struct placer_streams *s = &w->streams;
	const struct graph *now = w->network.graph;
	_cleanup_(freep) bool *sums = calloc((size_t)now->machines + 1, sizeof(*sums));
	_cleanup_(freep) struct graph_path *way = calloc(s->places, sizeof(*way));
	_cleanup_(graph_freep) struct graph *g = NULL;
	struct merge_problem p;
	double before = 0, rate = 0;
	int r = sums && way ? 0 : -ENOMEM;

	if (r == 0)
		r = graph_make(now->machine, now->machines, now->link, now->links, &g);
	if (r == 0)
		r = steered_fill(w, g, sums, why);
	if (r == 0)
		r = rate_now(w, &before);
	if (r < 0)
		return r;
	p = placer_streams_problem(s, g);
	p.sums = sums;
	r = merge_search(&p, 1, &OPTIONS, way, &rate);
	if (r == -ENETUNREACH || (r == 0 && rate <= before * (1 + margin)))
		return -EALREADY;
	if (r == 0)
		r = ways_fill(&p, s, way, ret);
	if (r == 0)
		snprintf(ret->why, sizeof(ret->why),
			 "with ways of its own workers can send %.4g Mbit/s in place of %.4g",
			 rate / 125000, before / 125000);
	return r;
}

int placer_ways(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		unsigned int which, double margin, struct wanted_ways *ret, struct why *why)
{
	_cleanup_(freep) struct wanted_ways *made = calloc(1, sizeof(*made));
	_cleanup_(work_close) struct work w = { 0 };
	int r = made ? work_open(&w, p, job, jobs, which, why) : -ENOMEM;

	if (r == 0 && w.streams.places > WANTED_WAYS_MAX)
		r = -E2BIG;
	if (r == 0)
		r = search(&w, margin, made, why);
	if (r == 0)
		*ret = *made;
	return r;
}
