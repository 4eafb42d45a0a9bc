// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ways for a job's packets that bear more than those of now. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/joining.h"
#include "common/owned.h"
#include "placer_streams.h"

static const struct merge_options OPTIONS = {
	.paths_max = 4, .starts = 16, .nodes_max = WANTED_WAY_NODES_MAX, .tries = 1000, .seed = 1
};

/* A root without work in a call would look as if its run stood still. */
static const struct merge_split SPLIT = { .parts = JOINING_SHARE_MAX,
					  .least = JOINING_SHARE_MAX / 100,
					  .searches = 12 };

struct work {
	struct network network; /* loads of others */
	unsigned int roots, places; /* of all roots */
	struct placer_streams streams[JOINING_ROOTS_MAX]; /* of the job, to each root */
};

static void work_close(struct work *w)
{
	for (unsigned int i = 0; i < w->roots; i++)
		placer_streams_close(&w->streams[i]);
	network_close(&w->network);
}

static bool is_one_of(unsigned int i, const unsigned int *which, unsigned int roots)
{
	for (unsigned int k = 0; k < roots; k++)
		if (which[k] == i)
			return true;
	return false;
}

/* Loads of jobs that have just gone are in the forecasts, too. Ways are routing's. */
static int work_open(struct work *w, const struct picture *p, const struct placer_job *job,
		     unsigned int jobs, const unsigned int *which, unsigned int roots,
		     struct why *why)
{
	int r = roots > JOINING_ROOTS_MAX ? -E2BIG : network_make(p, &w->network);

	for (unsigned int i = 0; r == 0 && i < jobs; i++)
		if (is_one_of(i, which, roots) || job[i].is_gone)
			r = placer_loads_take(&w->network, &job[i]);
	for (; r == 0 && w->roots < roots; w->roots++) {
		struct placer_streams *s = &w->streams[w->roots];

		r = placer_streams_open(&w->network, &job[which[w->roots]], s, why);
		w->places += s->places;
	}
	return r;
}

/* One after the other, as merge.h has them. NULL: no memory. */
static struct graph_path *ways_now(const struct work *w)
{
	struct graph_path *way = calloc((size_t)w->places + 1, sizeof(*way)), *to = way;

	for (unsigned int s = 0; way && s < w->roots; s++) {
		memcpy(to, w->streams[s].way, w->streams[s].places * sizeof(*to));
		to += w->streams[s].places;
	}
	return way;
}

/* With these shares; NULL: those that are best for the ways. */
static int rate_of(const struct work *w, const uint16_t *share, double *ret)
{
	_cleanup_(freep) struct graph_path *way = ways_now(w);
	struct merge_problem p[JOINING_ROOTS_MAX];
	unsigned int part[JOINING_ROOTS_MAX], all = 0;

	if (!way)
		return -ENOMEM;
	for (unsigned int s = 0; s < w->roots; s++) {
		p[s] = placer_streams_problem(&w->streams[s], w->network.graph);
		part[s] = SPLIT.parts / w->roots + (s < SPLIT.parts % w->roots);
		all += share ? share[s] : 0;
	}
	if (!share)
		return merge_split(p, w->roots, way, &SPLIT, part, ret);
	for (unsigned int s = 0; s < w->roots; s++)
		p[s].share = (double)share[s] / all;
	return merge_rate(p, w->roots, way, ret);
}

int placer_ways_rate(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		     const unsigned int *which, unsigned int roots, const uint16_t *share,
		     const struct wanted_ways *const *ways, double *ret, struct why *why)
{
	_cleanup_(work_close) struct work w = { 0 };
	int r = work_open(&w, p, job, jobs, which, roots, why);

	for (unsigned int s = 0; r == 0 && ways && s < roots; s++)
		r = placer_streams_by(&w.streams[s], ways[s], why);
	return r < 0 ? r : rate_of(&w, ways ? share : NULL, ret);
}

/* --- better ones ----------------------------------------------------------------------------- */

/* Shares follow where packets take routing's ways: then what others bear is worth it only if these
 * bear less with the best of shares. */
static int rate_now(struct work *w, const uint16_t *share, double *ret)
{
	bool routed = true;
	int r = 0;

	for (unsigned int s = 0; r == 0 && s < w->roots; s++) {
		routed = routed && !w->streams[s].job->ways;
		r = placer_streams_now(&w->streams[s]);
	}
	return r < 0 ? r : rate_of(w, routed ? NULL : share, ret);
}

static bool has_part(const struct report *r, const struct wanted_job *job)
{
	for (unsigned int i = 0; i < r->jobs; i++)
		if (r->job[i].inner && !strcmp(r->job[i].name, job->name))
			return true;
	return false;
}

/* For all roots for which it sums nothing yet. */
static bool has_slots(const struct work *w, const struct report *r)
{
	uint64_t needed = 0;

	for (unsigned int s = 0; s < w->roots; s++)
		if (!has_part(r, w->streams[s].job->job))
			needed += placer_slots(w->streams[s].job->job);
	return r->slots_free >= needed;
}

/* The node that the packets of a place come to first. */
static uint32_t first_of(const struct placer_streams *s, const struct graph *g, unsigned int place)
{
	const struct graph_path *lead = &s->lead[place];

	return lead->links ? g->link[lead->link[lead->links - 1]].to : s->worker[place];
}

/* A cordoned one may end soon. A root need not be passed, but by those of another root. */
static bool is_passed(const struct work *w, const struct graph *g, uint32_t machine)
{
	const struct report *r = placer_streams_node(w->streams, machine);
	bool is_needed = false;

	for (unsigned int s = 0; s < w->roots; s++)
		for (unsigned int i = 0; i < w->streams[s].places; i++)
			is_needed |= first_of(&w->streams[s], g, i) == machine;
	return r->steers && (is_needed || !r->cordoned);
}

static int check(const struct placer_streams *s, const struct graph *g, struct why *why)
{
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
	return s->places > WANTED_WAYS_MAX ? -E2BIG : 0;
}

/* Packets go past nodes that steer, and are summed by those of these that take parts. sums: of one
 * root after the other. */
static int steered_fill(const struct work *w, struct graph *g, bool *sums, struct why *why)
{
	int r = 0;

	for (unsigned int s = 0; r == 0 && s < w->roots; s++)
		r = check(&w->streams[s], g, why);
	for (uint32_t i = 0; r == 0 && i < g->machines; i++) {
		const struct report *n = placer_streams_node(w->streams, i);

		if (n && !is_passed(w, g, i))
			g->machine[i] = (struct graph_machine){ .kind = GRAPH_HOST };
		for (unsigned int s = 0; n && s < w->roots; s++) {
			const uint32_t root = w->streams[s].root;

			sums[(size_t)s * g->machines + i] =
				i != root && n->steers && n->inner && !n->cordoned &&
				placer_streams_node(w->streams, root)->inner && has_slots(w, n);
		}
	}
	return r;
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

static int all_ways_fill(const struct work *w, const struct merge_problem *p,
			 const struct graph_path *way, struct wanted_ways *ret)
{
	int r = 0;

	for (unsigned int s = 0; r == 0 && s < w->roots; s++) {
		r = ways_fill(&p[s], &w->streams[s], way, &ret[s]);
		way += p[s].workers;
	}
	return r;
}

static int search(struct work *w, const uint16_t *share, double margin, struct wanted_ways *ret,
		  uint16_t *ret_share, struct why *why)
{
	const struct graph *now = w->network.graph;
	_cleanup_(freep) bool *sums = calloc((size_t)now->machines * w->roots + 1, sizeof(*sums));
	_cleanup_(freep) struct graph_path *way = calloc((size_t)w->places + 1, sizeof(*way));
	_cleanup_(graph_freep) struct graph *g = NULL;
	struct merge_problem p[JOINING_ROOTS_MAX];
	unsigned int part[JOINING_ROOTS_MAX];
	double before = 0, rate = 0;
	int r = sums && way ? 0 : -ENOMEM;

	if (r == 0)
		r = graph_make(now->machine, now->machines, now->link, now->links, &g);
	if (r == 0)
		r = steered_fill(w, g, sums, why);
	if (r == 0)
		r = rate_now(w, share, &before);
	if (r < 0)
		return r;
	for (unsigned int s = 0; s < w->roots; s++) {
		p[s] = placer_streams_problem(&w->streams[s], g);
		p[s].sums = sums + (size_t)s * g->machines;
		p[s].share = share[s];
	}
	r = merge_search_split(p, w->roots, &OPTIONS, &SPLIT, part, way, &rate);
	if (r == -ENETUNREACH || (r == 0 && rate <= before * (1 + margin)))
		return -EALREADY;
	if (r == 0)
		r = all_ways_fill(w, p, way, ret);
	for (unsigned int s = 0; r == 0 && s < w->roots; s++) {
		ret_share[s] = (uint16_t)part[s];
		snprintf(ret[s].why, sizeof(ret[s].why),
			 "with ways %sof its own workers can send %.4g Mbit/s in place of %.4g",
			 w->roots > 1 ? "and shares " : "", rate / 125000, before / 125000);
	}
	return r;
}

int placer_ways(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		const unsigned int *which, unsigned int roots, const uint16_t *share, double margin,
		struct wanted_ways *ret, uint16_t *ret_share, struct why *why)
{
	_cleanup_(freep) struct wanted_ways *made = calloc(roots, sizeof(*made));
	_cleanup_(work_close) struct work w = { 0 };
	int r = made ? work_open(&w, p, job, jobs, which, roots, why) : -ENOMEM;

	if (r == 0)
		r = search(&w, share, margin, made, ret_share, why);
	if (r == 0)
		memcpy(ret, made, roots * sizeof(*made));
	return r;
}
