// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Turns and time. phases_rates.c has who shares what. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "phases_private.h"

static bool is_amount(double value) { return isfinite(value) && value >= 0; }

static bool is_sound(const struct phases_job *j)
{
	return is_amount(j->arrives_s) && is_amount(j->compute_s) && is_amount(j->bytes) &&
	       j->compute_s + j->bytes > 0 && j->iterations > 0;
}

/* --- the heap: the next end of a phase first, and of equal ones the job with the lower number - */

static bool is_before(const struct phases *p, uint32_t a, uint32_t b)
{
	double at = p->turn[a].ends_s, other = p->turn[b].ends_s;

	return at < other || (at == other && a < b);
}

static void heap_put(struct phases *p, unsigned int at, uint32_t i)
{
	p->heap[at] = i;
	p->turn[i].heap_at = at;
}

static void heap_rise(struct phases *p, uint32_t i)
{
	unsigned int at = p->turn[i].heap_at;

	for (; at > 0 && is_before(p, i, p->heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap_put(p, at, p->heap[(at - 1) / 2]);
	heap_put(p, at, i);
}

static void heap_sink(struct phases *p, uint32_t i)
{
	unsigned int at = p->turn[i].heap_at;

	for (;;) {
		unsigned int child = 2 * at + 1;

		if (child + 1 < p->running && is_before(p, p->heap[child + 1], p->heap[child]))
			child++;
		if (child >= p->running || !is_before(p, p->heap[child], i))
			break;
		heap_put(p, at, p->heap[child]);
		at = child;
	}
	heap_put(p, at, i);
}

void phases_heap_fix(struct phases *p, uint32_t i)
{
	heap_rise(p, i);
	heap_sink(p, i);
}

static void heap_remove(struct phases *p, uint32_t i)
{
	unsigned int at = p->turn[i].heap_at;
	uint32_t last = p->heap[--p->running];

	if (last == i)
		return;
	heap_put(p, at, last);
	phases_heap_fix(p, last);
}

/* --- turns ----------------------------------------------------------------------------------- */

static void compute(struct phases *p, uint32_t i, double for_s)
{
	p->turn[i].phase = COMPUTES;
	p->turn[i].ends_s = p->now_s + for_s;
	phases_heap_fix(p, i);
}

static int communicate(struct phases *p, uint32_t i)
{
	struct turn *t = &p->turn[i];

	t->phase = COMMUNICATES;
	if (t->left == 0)
		t->left = t->job.bytes;
	t->since_s = t->began_s = p->now_s;
	t->rate = 0;
	return phases_find_rates(p, i);
}

/* Its links are others' now, but it stays among their jobs. */
static int fall_silent(struct phases *p, uint32_t i)
{
	struct turn *t = &p->turn[i];

	t->result.communicated_s += p->now_s - t->began_s;
	t->phase = COMPUTES;
	return phases_find_rates(p, i);
}

static void iterate(struct phases *p, uint32_t i)
{
	struct turn *t = &p->turn[i];

	if (--t->iterations > 0) {
		compute(p, i, t->job.compute_s);
		return;
	}
	t->phase = OVER;
	t->result.ended_s = p->now_s;
	heap_remove(p, i);
	phases_take_out(p, i);
}

/* The phase of job i is over now. */
static int turn(struct phases *p, uint32_t i)
{
	struct turn *t = &p->turn[i];
	int r = 0;

	p->events++;
	if (t->phase == COMPUTES && t->job.bytes > 0)
		return communicate(p, i);
	if (t->phase == COMMUNICATES) {
		t->sent += t->left; /* whatever rounding would say */
		t->left = 0;
		r = fall_silent(p, i);
	}
	if (r == 0)
		iterate(p, i);
	return r;
}

/* --- step by step ---------------------------------------------------------------------------- */

int phases_open(const double *capacity, unsigned int links, unsigned int jobs, struct phases **ret)
{
	_cleanup_(phases_freep) struct phases *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	for (unsigned int l = 0; l < links; l++)
		if (!is_amount(capacity[l]))
			return -EINVAL;
	p->capacity = calloc(links + 1, sizeof(*p->capacity));
	p->shared = calloc(links + 1, sizeof(*p->shared));
	p->carried = calloc(links + 1, sizeof(*p->carried));
	p->turn = calloc(jobs + 1, sizeof(*p->turn));
	p->heap = calloc(jobs + 1, sizeof(*p->heap));
	p->search.job = calloc(jobs + 1, sizeof(*p->search.job));
	p->search.flow = calloc(jobs + 1, sizeof(*p->search.flow));
	p->search.rate = calloc(jobs + 1, sizeof(*p->search.rate));
	if (!p->capacity || !p->shared || !p->carried || !p->turn || !p->heap || !p->search.job ||
	    !p->search.flow || !p->search.rate)
		return -ENOMEM;
	p->links = links;
	p->jobs = jobs;
	if (links)
		memcpy(p->capacity, capacity, links * sizeof(*capacity));
	*ret = TAKE_PTR(p);
	return 0;
}

void phases_free(struct phases *p)
{
	if (!p)
		return;
	for (unsigned int l = 0; l < p->links; l++)
		free(p->shared[l].member);
	for (unsigned int i = 0; i < p->jobs; i++)
		free(p->turn[i].tight);
	free(p->capacity);
	free(p->shared);
	free(p->carried);
	free(p->turn);
	free(p->heap);
	free(p->search.job);
	free(p->search.flow);
	free(p->search.rate);
	free(p->search.link);
	free(p->search.capacity);
	free(p->search.use);
	free(p);
}

int phases_begin(struct phases *p, uint32_t i, const struct phases_job *job)
{
	struct turn *t = &p->turn[i];
	int r;

	if (i >= p->jobs || t->phase != OVER || !is_sound(job))
		return -EINVAL;
	free(t->tight);
	*t = (struct turn){ .job = *job, .iterations = job->iterations };
	r = phases_put_in(p, i);
	if (r < 0)
		return r;
	t->phase = COMPUTES;
	t->ends_s = p->now_s + job->compute_s;
	t->heap_at = p->running++;
	heap_rise(p, i);
	return 0;
}

int phases_move(struct phases *p, uint32_t i, const struct fair_flow *flow, double stop_s)
{
	struct turn *t = &p->turn[i];
	bool communicates;
	int r = 0;

	if (i >= p->jobs || t->phase == OVER || !is_amount(stop_s))
		return -EINVAL;
	communicates = t->phase == COMMUNICATES;
	phases_settle(p, t);
	if (communicates)
		r = fall_silent(p, i);
	if (r < 0)
		return r;
	phases_take_out(p, i);
	t->job.flow = *flow;
	r = phases_put_in(p, i);
	if (r < 0)
		return r;
	if (communicates && stop_s == 0)
		return communicate(p, i);
	compute(p, i, (communicates ? 0 : t->ends_s - p->now_s) + stop_s);
	return 0;
}

int phases_go(struct phases *p, double until_s, uint32_t *ret_ended)
{
	while (p->running && p->turn[p->heap[0]].ends_s <= until_s) {
		uint32_t i = p->heap[0];
		int r;

		if (isinf(p->turn[i].ends_s))
			return -EDEADLK;
		p->now_s = p->turn[i].ends_s;
		r = turn(p, i);
		if (r < 0)
			return r;
		if (p->turn[i].phase == OVER) {
			*ret_ended = i;
			return 0;
		}
	}
	if (isfinite(until_s))
		p->now_s = until_s;
	*ret_ended = PHASES_NONE;
	return 0;
}

void phases_near(struct phases *p, unsigned int jobs) { p->near = jobs; }

double phases_now(const struct phases *p) { return p->now_s; }

uint32_t phases_left(const struct phases *p, uint32_t i) { return p->turn[i].iterations; }

struct phases_result phases_result(const struct phases *p, uint32_t i) { return p->turn[i].result; }

uint64_t phases_events(const struct phases *p) { return p->events; }

void phases_carried(struct phases *p, double *ret)
{
	for (unsigned int n = 0; n < p->running; n++) {
		struct turn *t = &p->turn[p->heap[n]];

		phases_settle(p, t);
		for (unsigned int u = 0; u < t->job.flow.uses; u++)
			p->carried[t->job.flow.use[u].link] += t->sent * t->job.flow.use[u].times;
		t->sent = 0;
	}
	if (p->links)
		memcpy(ret, p->carried, p->links * sizeof(*ret));
}

/* --- all at once ----------------------------------------------------------------------------- */

static int by_arrival(const void *a, const void *b, void *jobs)
{
	const struct phases_job *job = jobs;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	double at = job[x].arrives_s, other = job[y].arrives_s;

	return at < other ? -1 : at > other ? 1 : (x > y) - (x < y);
}

static int go_until(struct phases *p, double until_s)
{
	uint32_t ended;
	int r;

	do
		r = phases_go(p, until_s, &ended);
	while (r == 0 && ended != PHASES_NONE);
	return r;
}

int phases_run(const double *capacity, unsigned int links, const struct phases_job *job,
	       unsigned int jobs, struct phases_result *ret, double *link_bytes)
{
	_cleanup_(freep) uint32_t *order = calloc(jobs + 1, sizeof(*order));
	_cleanup_(phases_freep) struct phases *p = NULL;
	int r = order ? phases_open(capacity, links, jobs, &p) : -ENOMEM;

	for (unsigned int i = 0; i < jobs && r == 0; i++) {
		order[i] = i;
		r = is_sound(&job[i]) ? 0 : -EINVAL;
	}
	if (r < 0)
		return r;
	qsort_r(order, jobs, sizeof(*order), by_arrival, (void *)job);
	for (unsigned int n = 0; n < jobs && r == 0; n++) {
		r = go_until(p, job[order[n]].arrives_s);
		if (r == 0)
			r = phases_begin(p, order[n], &job[order[n]]);
	}
	if (r == 0)
		r = go_until(p, INFINITY);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < jobs; i++)
		ret[i] = phases_result(p, i);
	if (link_bytes)
		phases_carried(p, link_bytes);
	return 0;
}
