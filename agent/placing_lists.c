// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the leader weighs a job with. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "placing_private.h"

unsigned int placing_others(const struct placing *p, struct sockaddr_storage *ret, unsigned int max)
{
	const struct picture *picture = p ? sharing_picture(p->sharing) : NULL;
	const int own = picture ? picture_place(picture, p->node) : -1;
	unsigned int others = 0;

	for (unsigned int i = 1; own >= 0 && i < picture->nodes && others < max; i++) {
		const struct report *r = picture->report[((unsigned int)own + i) % picture->nodes];

		if (r->services)
			ret[others++] = r->service[0];
	}
	return others;
}

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

/* As fast as its root told last. No memory: its traffic is taken for that of others. */
void placing_goes(struct placing *p, const struct store_item *item)
{
	const bool is_job = !strncmp(item->key, WANTED_JOBS, strlen(WANTED_JOBS));
	const struct shared_job *s = is_job && !item->value
					     ? shared_find(&p->shared,
							   item->key + strlen(WANTED_JOBS))
					     : NULL;
	const struct report_job *there = s ? standing_there(s, sharing_picture(p->sharing)) : NULL;
	struct gone **slot = &p->gone[p->gones % PLACING_GONES];

	if (!there || !chunks_of(there) || !s->place.workers)
		return;
	if (!*slot)
		*slot = malloc(sizeof(**slot));
	if (!*slot)
		return;
	**slot = (struct gone){ s->job, s->place, chunks_of(there), clock_now_ns() };
	p->gones++;
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

static void gones_fill(const struct placing *p, struct lists *l)
{
	const uint64_t now_ns = clock_now_ns();

	for (unsigned int i = 0; i < PLACING_GONES && l->jobs < PLACER_JOBS_MAX; i++) {
		const struct gone *g = p->gone[i];
		struct placer_job *to = &l->job[l->jobs];

		if (!g || now_ns - g->at_ns > GONE_MS * 1000000ull)
			continue;
		*to = (struct placer_job){ .job = &g->job,
					   .worker = l->worker[l->jobs],
					   .root = g->place.root,
					   .chunks_per_second = g->chunks_per_second,
					   .is_gone = true };
		place_workers_fill(&g->place, to, l->worker[l->jobs++]);
	}
}

/* `due`: it is to be placed. Who waits for `waits`, which is the job itself, or the one at its
 * first root, is whom it is for, if nothing is known of its own workers. */
static void list_fill(const struct placing *p, const struct shared_job *j,
		      const struct shared_job *waits, bool due, struct lists *l)
{
	struct wanted_worker *worker = l->worker[l->jobs];
	struct placer_job *to = &l->job[l->jobs++];
	const struct picture *picture = sharing_picture(p->sharing);
	const struct report *elsewhere = due ? NULL : standing_elsewhere(j, picture);
	const struct report_job *there = standing_at(j, elsewhere ? elsewhere
								  : standing_root(j, picture));

	*to = (struct placer_job){ .job = &j->job, .worker = worker };
	if (!due) {
		to->root = elsewhere ? elsewhere->node : j->place.root;
		to->chunks_per_second = there ? chunks_of(there) : 0;
	}
	if (waits->workers >= j->job.workers && (due || !j->place.workers))
		for (; to->workers < j->job.workers; to->workers++)
			worker[to->workers] = waits->worker[to->workers].is;
	else
		place_workers_fill(&j->place, to, worker);
	to->refused = (const char *const *)l->refused[l->jobs - 1];
	for (; to->refusals < j->refusals && to->refusals < REFUSALS_MAX; to->refusals++)
		l->refused[l->jobs - 1][to->refusals] = j->refused[to->refusals];
}

unsigned int placing_list(const struct placing *p, const struct shared_job *which, bool due,
			  struct lists *l)
{
	unsigned int number = 0;

	l->jobs = 0;
	for (unsigned int i = 0; i < p->shared.jobs && l->jobs < PLACER_JOBS_MAX; i++) {
		const struct shared_job *j = p->shared.job[i];

		if (j == which)
			number = l->jobs;
		if (j == which ||
		    (shared_is_placed(j) && !standing_is_due(j, sharing_picture(p->sharing))))
			list_fill(p, j, j, j == which && due, l);
	}
	gones_fill(p, l);
	return number;
}

void placing_list_roots(const struct placing *p, const struct shared_job *first, struct lists *l,
			unsigned int *ret_which)
{
	l->jobs = 0;
	for (unsigned int i = 0; i < p->shared.jobs && l->jobs < PLACER_JOBS_MAX; i++) {
		const struct shared_job *j = p->shared.job[i];
		const bool is_root = j->revision && j->job.roots && j->job.which &&
				     shared_root(&p->shared, j, 1) == first;

		if (is_root)
			ret_which[j->job.which - 1] = l->jobs;
		if (is_root ||
		    (shared_is_placed(j) && !standing_is_due(j, sharing_picture(p->sharing))))
			list_fill(p, j, first, is_root && !shared_is_placed(j), l);
	}
	gones_fill(p, l);
}
