// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the leader weighs a job with. */
#include <stdlib.h>
#include <string.h>

#include "lead_private.h"

/*
 * A job that begins or speeds up makes forecasts of links that are higher than its rate now, and by
 * just as much its own forecast; its root's report may be some moments older than the links'. What
 * is too much here cannot make others' loads less than nothing; what is too little would be taken
 * for others' traffic, from which the job then moves away.
 */
static uint64_t chunks_of(const struct report_job *there)
{
	return there->chunks_per_second > there->chunks_forecast ? there->chunks_per_second
								 : there->chunks_forecast;
}

/* --- what has gone --------------------------------------------------------------------------- */

enum {
	GONE_MS = 5000, /* until loads are without it: reports, and what rates are smoothed by */
};

void lead_job_goes(struct lead *l, const struct lead_view *v, const struct shared_job *j)
{
	const struct report_job *there = standing_there(j, v->picture);
	struct lead_gone **slot = &l->gone[l->gones % LEAD_GONES];

	if (!there || !chunks_of(there) || !j->place.workers)
		return;
	if (!*slot)
		*slot = malloc(sizeof(**slot));
	if (!*slot)
		return;
	(*slot)->job = j->job;
	explicit_bzero((*slot)->job.token, sizeof((*slot)->job.token)); /* nobody needs it here */
	(*slot)->place = j->place;
	(*slot)->chunks_per_second = chunks_of(there);
	(*slot)->payload_bytes = there->payload_bytes;
	(*slot)->at_ns = v->now_ns;
	(*slot)->steered = shared_ways(j);
	if ((*slot)->steered)
		(*slot)->ways = *j->ways;
	l->gones++;
}

/* --- what is weighed ------------------------------------------------------------------------- */

/* Where its workers were; one that the picture lacks is taken to be at the root. */
static void place_workers_fill(const struct wanted_place *place, struct placer_job *to,
			       struct wanted_worker *worker)
{
	for (; to->workers < place->workers; to->workers++) {
		struct wanted_worker *w = &worker[to->workers];

		*w = (struct wanted_worker){ .address = place->worker[to->workers] };
		memcpy(w->node, place->root, sizeof(w->node));
	}
}

static void gones_fill(const struct lead *l, const struct lead_view *v, struct lead_lists *ret)
{
	for (unsigned int i = 0; i < LEAD_GONES && ret->jobs < PLACER_JOBS_MAX; i++) {
		const struct lead_gone *g = l->gone[i];
		struct placer_job *to = &ret->job[ret->jobs];

		if (!g || v->now_ns - g->at_ns > GONE_MS * 1000000ull)
			continue;
		*to = (struct placer_job){ .job = &g->job,
					   .worker = ret->worker[ret->jobs],
					   .root = g->place.root,
					   .chunks_per_second = g->chunks_per_second,
					   .payload_bytes = g->payload_bytes,
					   .is_gone = true,
					   .ways = g->steered ? &g->ways : NULL };
		place_workers_fill(&g->place, to, ret->worker[ret->jobs++]);
	}
}

/* `due`: it is to be placed. Who waits for `waits`, which is the job itself, or the one at its
 * first root, is whom it is for, if nothing is known of its own workers. */
static void list_fill(const struct lead_view *v, const struct shared_job *j,
		      const struct shared_job *waits, bool due, struct lead_lists *ret)
{
	struct wanted_worker *worker = ret->worker[ret->jobs];
	struct placer_job *to = &ret->job[ret->jobs++];
	const struct shared_tenant *tenant = shared_tenant_find(v->shared, j->job.tenant);
	const struct report *elsewhere = due ? NULL : standing_elsewhere(j, v->picture);
	const struct report_job *there = standing_at(j, elsewhere ? elsewhere
								  : standing_root(j, v->picture));

	*to = (struct placer_job){ .job = &j->job,
				   .worker = worker,
				   .is_gated = tenant && tenant->wanted.places > 0 };
	if (!due) {
		to->root = elsewhere ? elsewhere->node : j->place.root;
		to->chunks_per_second = there ? chunks_of(there) : 0;
		to->payload_bytes = there ? there->payload_bytes : 0;
		to->ways = elsewhere ? NULL : shared_ways(j);
	}
	if (waits->workers >= j->job.workers && (due || !j->place.workers))
		for (; to->workers < j->job.workers; to->workers++)
			worker[to->workers] = waits->worker[to->workers].is;
	else
		place_workers_fill(&j->place, to, worker);
	to->refused = (const char *const *)ret->refused[ret->jobs - 1];
	for (; to->refusals < j->refusals && to->refusals < LEAD_REFUSALS_MAX; to->refusals++)
		ret->refused[ret->jobs - 1][to->refusals] = j->refusal[to->refusals].node;
}

/* Whose place is one that it keeps. */
static bool lies(const struct lead_view *v, const struct shared_job *j)
{
	return shared_is_placed(j) && !standing_is_due(j, v->picture);
}

unsigned int lead_list(const struct lead *l, const struct lead_view *v,
		       const struct shared_job *which, bool due, struct lead_lists *ret)
{
	unsigned int number = 0;

	ret->jobs = 0;
	for (unsigned int i = 0; i < v->shared->jobs && ret->jobs < PLACER_JOBS_MAX; i++) {
		const struct shared_job *j = v->shared->job[i];

		if (j == which)
			number = ret->jobs;
		if (j == which || lies(v, j))
			list_fill(v, j, j, j == which && due, ret);
	}
	gones_fill(l, v, ret);
	return number;
}

void lead_list_roots(const struct lead *l, const struct lead_view *v,
		     const struct shared_job *first, struct lead_lists *ret,
		     unsigned int *ret_which)
{
	ret->jobs = 0;
	for (unsigned int i = 0; i < v->shared->jobs && ret->jobs < PLACER_JOBS_MAX; i++) {
		const struct shared_job *j = v->shared->job[i];
		const bool is_root = j->revision && j->job.roots && j->job.which &&
				     shared_root(v->shared, j, 1) == first;

		if (is_root)
			ret_which[j->job.which - 1] = ret->jobs;
		if (is_root || lies(v, j))
			list_fill(v, j, first, is_root && !shared_is_placed(j), ret);
	}
	gones_fill(l, v, ret);
}
