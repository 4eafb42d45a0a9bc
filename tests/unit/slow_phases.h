/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The slow and obvious way of sim/phases.h: each end of a phase finds the rates of all jobs anew.
 */
#ifndef TALLY_TESTS_UNIT_SLOW_PHASES_H
#define TALLY_TESTS_UNIT_SLOW_PHASES_H

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "sim/phases.h"

enum slow_phase {
	SLOW_COMPUTES, /* or has not arrived */
	SLOW_COMMUNICATES,
	SLOW_OVER,
};

struct slow_turn {
	enum slow_phase phase;
	double ends_s; /* SLOW_COMPUTES */
	double left; /* SLOW_COMMUNICATES: bytes */
	double rate;
	uint32_t iterations; /* still to be ended */
};

struct slow_phases {
	const double *capacity;
	unsigned int links, jobs;
	const struct phases_job *job;
	struct slow_turn *turn; /* [jobs] */
	struct phases_result *result;
	struct fair_flow *flow; /* [jobs]: those that communicate, */
	uint32_t *whose; /* of which jobs, */
	double *rate; /* and their rates */
	double now_s;
};

static bool is_amount(double value) { return isfinite(value) && value >= 0; }

static bool is_sound(const struct phases_job *j)
{
	return is_amount(j->arrives_s) && is_amount(j->compute_s) && is_amount(j->bytes) &&
	       j->compute_s + j->bytes > 0 && j->iterations > 0;
}

static int find_rates(struct slow_phases *p)
{
	unsigned int n = 0;
	int r;

	for (unsigned int i = 0; i < p->jobs; i++) {
		if (p->turn[i].phase != SLOW_COMMUNICATES)
			continue;
		p->flow[n] = p->job[i].flow;
		p->whose[n++] = i;
	}
	r = fair_rates(p->capacity, p->links, p->flow, n, p->rate);
	for (unsigned int i = 0; i < n && r == 0; i++)
		p->turn[p->whose[i]].rate = p->rate[i];
	return r;
}

/* When the job's phase ends, as things stand; INFINITY: never. */
static double end_of(const struct slow_phases *p, const struct slow_turn *t)
{
	switch (t->phase) {
	case SLOW_COMPUTES:
		return t->ends_s;
	case SLOW_COMMUNICATES:
		return t->rate > 0 ? p->now_s + t->left / t->rate : INFINITY;
	default:
		return INFINITY;
	}
}

static void compute(struct slow_phases *p, unsigned int i)
{
	p->turn[i].phase = SLOW_COMPUTES;
	p->turn[i].ends_s = p->now_s + p->job[i].compute_s;
}

static void communicate(struct slow_phases *p, unsigned int i)
{
	p->turn[i].phase = SLOW_COMMUNICATES;
	p->turn[i].left = p->job[i].bytes;
	p->turn[i].rate = 0;
}

static void iterate(struct slow_phases *p, unsigned int i)
{
	struct slow_turn *t = &p->turn[i];

	if (--t->iterations > 0) {
		compute(p, i);
		return;
	}
	t->phase = SLOW_OVER;
	p->result[i].ended_s = p->now_s;
}

/* Time goes on to the next event; what is carried until then is carried. */
static void carry(struct slow_phases *p, double until_s, double *link_bytes)
{
	double passed_s = until_s - p->now_s;

	for (unsigned int i = 0; i < p->jobs; i++) {
		struct slow_turn *t = &p->turn[i];
		double bytes;

		if (t->phase != SLOW_COMMUNICATES)
			continue;
		/* What ends now has nothing left, whatever rounding would say. */
		bytes = end_of(p, t) <= until_s ? t->left : fmin(t->left, t->rate * passed_s);
		t->left -= bytes;
		p->result[i].communicated_s += passed_s;
		for (unsigned int u = 0; u < p->job[i].flow.uses; u++)
			link_bytes[p->job[i].flow.use[u].link] += bytes *
								  p->job[i].flow.use[u].times;
	}
	p->now_s = until_s;
}

/* Ends the phases that are over. Returns whether rates are others now. */
static bool turn_all(struct slow_phases *p)
{
	bool changed = false;

	for (unsigned int i = 0; i < p->jobs; i++) {
		struct slow_turn *t = &p->turn[i];

		if (t->phase == SLOW_COMPUTES && t->ends_s <= p->now_s) {
			if (p->job[i].bytes > 0)
				communicate(p, i);
			else
				iterate(p, i);
			changed = true;
		} else if (t->phase == SLOW_COMMUNICATES && t->left == 0) {
			iterate(p, i);
			changed = true;
		}
	}
	return changed;
}

static int slow_run(struct slow_phases *p, double *link_bytes)
{
	for (;;) {
		double next_s = INFINITY;
		bool all_over = true;
		int r = turn_all(p) ? find_rates(p) : 0;

		if (r < 0)
			return r;
		for (unsigned int i = 0; i < p->jobs; i++) {
			next_s = fmin(next_s, end_of(p, &p->turn[i]));
			all_over = all_over && p->turn[i].phase == SLOW_OVER;
		}
		if (all_over)
			return 0;
		if (isinf(next_s))
			return -EDEADLK;
		carry(p, next_s, link_bytes);
	}
}

static int slow_phases_run(const double *capacity, unsigned int links, const struct phases_job *job,
			   unsigned int jobs, struct phases_result *ret, double *link_bytes)
{
	_cleanup_(freep) struct slow_turn *turn = calloc(jobs + 1, sizeof(*turn));
	_cleanup_(freep) struct phases_result *result = calloc(jobs + 1, sizeof(*result));
	_cleanup_(freep) struct fair_flow *flow = calloc(jobs + 1, sizeof(*flow));
	_cleanup_(freep) uint32_t *whose = calloc(jobs + 1, sizeof(*whose));
	_cleanup_(freep) double *rate = calloc(jobs + 1, sizeof(*rate));
	_cleanup_(freep) double *carried = calloc(links + 1, sizeof(*carried));
	struct slow_phases p = { .capacity = capacity,
				 .links = links,
				 .jobs = jobs,
				 .job = job,
				 .turn = turn,
				 .result = result,
				 .flow = flow,
				 .whose = whose,
				 .rate = rate };
	int r;

	if (!turn || !result || !flow || !whose || !rate || !carried)
		return -ENOMEM;
	for (unsigned int i = 0; i < jobs; i++) {
		if (!is_sound(&job[i]))
			return -EINVAL;
		turn[i] = (struct slow_turn){ .phase = SLOW_COMPUTES,
					      .ends_s = job[i].arrives_s + job[i].compute_s,
					      .iterations = job[i].iterations };
	}
	r = slow_run(&p, carried);
	if (r < 0)
		return r;
	if (jobs)
		memcpy(ret, result, jobs * sizeof(*ret));
	if (link_bytes && links)
		memcpy(link_bytes, carried, links * sizeof(*link_bytes));
	return 0;
}

#endif
