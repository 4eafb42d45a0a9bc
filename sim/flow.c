// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flow.h"

#include <errno.h>
#include <stdlib.h>

#include "common/owned.h"

/* Draws paths, and counts how often each link is taken. */
struct walker {
	const struct graph *g;
	uint64_t random;
	uint32_t *far; /* [machines]: links to where the walk goes */
	uint32_t *taken; /* [links] */
};

/* SplitMix64: G. Steele, D. Lea, C. Flood, OOPSLA 2014. */
static uint64_t draw(uint64_t *random)
{
	uint64_t z = *random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static bool leads_nearer(const struct walker *w, uint32_t link, uint32_t machine)
{
	return w->far[w->g->link[link].to] == w->far[machine] - 1;
}

/*
 * One of the links that lead nearer, each as likely as the others: the n-th one takes the place of
 * those before with a chance of 1 / n. There is one, as `machine` is not where the walk goes.
 */
static uint32_t next_link(struct walker *w, uint32_t machine)
{
	const struct graph *g = w->g;
	uint32_t link = GRAPH_NONE, n = 0;

	for (uint32_t i = g->leaving_at[machine]; i < g->leaving_at[machine + 1]; i++)
		if (leads_nearer(w, g->leaving[i], machine) && draw(&w->random) % ++n == 0)
			link = g->leaving[i];
	return link;
}

/* `far` leads to `to`. */
static int walk(struct walker *w, uint32_t from, uint32_t to)
{
	if (w->far[from] == GRAPH_NONE)
		return -EHOSTUNREACH;
	for (uint32_t at = from; at != to;) {
		uint32_t link = next_link(w, at);

		w->taken[link]++;
		at = w->g->link[link].to;
	}
	return 0;
}

static int walk_one(struct walker *w, uint32_t from, uint32_t to)
{
	int r = graph_distances(w->g, to, w->far);

	return r < 0 ? r : walk(w, from, to);
}

/* From all workers to a machine, and back. */
static int walk_workers(struct walker *w, const struct flow_job *job, uint32_t to)
{
	int r = graph_distances(w->g, to, w->far);

	for (unsigned int i = 0; i < job->workers && r == 0; i++)
		r = walk(w, job->worker[i], to);
	for (unsigned int i = 0; i < job->workers && r == 0; i++)
		r = walk_one(w, to, job->worker[i]);
	return r;
}

static int walk_all(struct walker *w, const struct flow_job *job)
{
	int r = walk_workers(w, job, job->node == GRAPH_NONE ? job->root : job->node);

	if (r < 0 || job->node == GRAPH_NONE)
		return r;
	r = walk_one(w, job->node, job->root);
	return r < 0 ? r : walk_one(w, job->root, job->node);
}

static bool is_sound(const struct graph *g, const struct flow_job *job)
{
	for (unsigned int i = 0; i < job->workers; i++)
		if (job->worker[i] >= g->machines)
			return false;
	return job->root < g->machines && (job->node < g->machines || job->node == GRAPH_NONE);
}

int flow_make(const struct graph *g, const struct flow_job *job, struct fair_use **ret,
	      unsigned int *ret_uses)
{
	_cleanup_(freep) uint32_t *far = calloc(g->machines + 1, sizeof(*far));
	_cleanup_(freep) uint32_t *taken = calloc(g->links + 1, sizeof(*taken));
	struct walker w = { .g = g, .random = job->seed, .far = far, .taken = taken };
	struct fair_use *use;
	unsigned int uses = 0;
	int r;

	if (!is_sound(g, job))
		return -EINVAL;
	if (!far || !taken)
		return -ENOMEM;
	r = walk_all(&w, job);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < g->links; i++)
		uses += taken[i] > 0;
	use = calloc(uses + 1, sizeof(*use));
	if (!use)
		return -ENOMEM;
	*ret_uses = uses;
	uses = 0;
	for (uint32_t i = 0; i < g->links; i++)
		if (taken[i])
			use[uses++] = (struct fair_use){ .link = i, .times = taken[i] };
	*ret = use;
	return 0;
}
