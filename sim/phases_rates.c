// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Who shares what, and the rates that follow. A search begins at the job whose phase changes, and
 * goes on over links that are too small for those that communicate there. Jobs that it does not
 * come to have the same rates as before: nothing that holds them up has changed.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "phases_private.h"

/* Rounding makes no link too small for what fills it. */
static bool is_above(double used, double capacity) { return used > capacity * (1 + 1e-12); }

/* --- links and their jobs -------------------------------------------------------------------- */

static void find_tight_uses(struct phases *p, uint32_t i)
{
	struct turn *t = &p->turn[i];

	t->tights = 0;
	for (unsigned int u = 0; u < t->job.flow.uses; u++)
		if (p->shared[t->job.flow.use[u].link].tight)
			t->tight[t->tights++] = u;
}

/* After members have come or gone. */
static void weigh(struct phases *p, uint32_t link)
{
	struct shared *s = &p->shared[link];
	bool was_tight = s->tight;
	double most = 0;

	for (uint32_t m = 0; m < s->members; m++)
		most += s->member[m].most;
	s->tight = is_above(most, p->capacity[link]);
	for (uint32_t m = 0; m < s->members && s->tight != was_tight; m++)
		find_tight_uses(p, s->member[m].job);
}

static int add_member(struct shared *s, uint32_t i, double times, double alone)
{
	if (s->members == s->room) {
		uint32_t room = s->room ? 2 * s->room : 4;
		struct member *member = reallocarray(s->member, room, sizeof(*member));

		if (!member)
			return -ENOMEM;
		s->member = member;
		s->room = room;
	}
	s->member[s->members++] =
		(struct member){ .job = i, .times = times, .most = times * alone };
	return 0;
}

int phases_put_in(struct phases *p, uint32_t i)
{
	struct turn *t = &p->turn[i];
	const struct fair_flow *flow = &t->job.flow;
	int r = fair_rates(p->capacity, p->links, flow, 1, &t->alone);

	if (r < 0)
		return r;
	free(t->tight);
	t->tights = 0;
	t->tight = calloc(flow->uses + 1, sizeof(*t->tight));
	if (!t->tight)
		return -ENOMEM;
	for (unsigned int u = 0; u < flow->uses && r == 0; u++)
		r = add_member(&p->shared[flow->use[u].link], i, flow->use[u].times, t->alone);
	for (unsigned int u = 0; u < flow->uses && r == 0; u++)
		weigh(p, flow->use[u].link);
	find_tight_uses(p, i);
	return r;
}

void phases_take_out(struct phases *p, uint32_t i)
{
	struct turn *t = &p->turn[i];

	for (unsigned int u = 0; u < t->job.flow.uses; u++) {
		const struct fair_use *use = &t->job.flow.use[u];
		struct shared *s = &p->shared[use->link];
		uint32_t m = 0;

		p->carried[use->link] += t->sent * use->times;
		while (m < s->members && s->member[m].job != i)
			m++;
		if (m < s->members)
			s->member[m] = s->member[--s->members];
	}
	for (unsigned int u = 0; u < t->job.flow.uses; u++)
		weigh(p, t->job.flow.use[u].link);
	t->sent = 0;
	t->tights = 0;
}

/* --- a search -------------------------------------------------------------------------------- */

static bool has_room(void **array, size_t *room, size_t count, size_t bytes)
{
	size_t larger = 2 * count + 64;
	void *moved;

	if (count < *room)
		return true;
	moved = reallocarray(*array, larger, bytes);
	if (!moved)
		return false;
	*array = moved;
	*room = larger;
	return true;
}

static void affect(struct phases *p, uint32_t i)
{
	struct search *s = &p->search;

	if (p->turn[i].seen == s->number)
		return;
	p->turn[i].seen = s->number;
	s->job[s->jobs++] = i;
}

/* `centre` counts whether it has just begun or just ended. */
static double used_now(const struct phases *p, const struct shared *s, uint32_t centre)
{
	double used = 0;

	for (uint32_t m = 0; m < s->members; m++)
		if (s->member[m].job == centre || p->turn[s->member[m].job].phase == COMMUNICATES)
			used += s->member[m].most;
	return used;
}

static int look_at(struct phases *p, uint32_t link, uint32_t centre, bool all)
{
	struct shared *s = &p->shared[link];
	struct search *search = &p->search;

	if (s->seen == search->number)
		return 0;
	s->seen = search->number;
	s->local = PHASES_NONE;
	if (!is_above(used_now(p, s, centre), p->capacity[link]))
		return 0;
	if (!has_room((void **)&search->link, &search->link_room, search->links,
		      sizeof(*search->link)))
		return -ENOMEM;
	s->local = search->links;
	search->link[search->links++] = link;
	for (uint32_t m = 0; m < s->members; m++)
		if (p->turn[s->member[m].job].phase == COMMUNICATES &&
		    (all || search->jobs < p->near))
			affect(p, s->member[m].job);
	return 0;
}

static int look_from(struct phases *p, uint32_t i, uint32_t centre)
{
	const struct turn *t = &p->turn[i];
	int r = 0;

	for (unsigned int u = 0; u < t->tights && r == 0; u++)
		r = look_at(p, t->job.flow.use[t->tight[u]].link, centre, !p->near || i == centre);
	return r;
}

static int collect(struct phases *p, uint32_t centre)
{
	struct search *s = &p->search;
	int r;

	s->number++;
	s->jobs = s->links = 0;
	if (p->turn[centre].phase == COMMUNICATES)
		affect(p, centre);
	r = look_from(p, centre, centre);
	for (unsigned int n = 0; n < s->jobs && r == 0; n++)
		r = look_from(p, s->job[n], centre);
	return r;
}

/* The flow of a job, by the links of the search; all other links are no more than its limit. */
static int add_flow(struct phases *p, unsigned int n)
{
	struct search *s = &p->search;
	const struct turn *t = &p->turn[s->job[n]];
	unsigned int first = s->uses;

	for (unsigned int u = 0; u < t->tights; u++) {
		const struct fair_use *use = &t->job.flow.use[t->tight[u]];
		uint32_t local = p->shared[use->link].local;

		if (local == PHASES_NONE)
			continue;
		if (!has_room((void **)&s->use, &s->use_room, s->uses, sizeof(*s->use)))
			return -ENOMEM;
		s->use[s->uses++] = (struct fair_use){ .link = local, .times = use->times };
	}
	s->flow[n] = (struct fair_flow){ .uses = s->uses - first,
					 .weight = t->job.flow.weight,
					 .limit = t->alone };
	return 0;
}

/* What the jobs of the search can share; others have their rates, and keep them. */
static double capacity_left(const struct phases *p, uint32_t link)
{
	const struct shared *s = &p->shared[link];
	double left = p->capacity[link];

	for (uint32_t m = 0; m < s->members && p->near; m++) {
		const struct turn *t = &p->turn[s->member[m].job];

		if (t->phase == COMMUNICATES && t->seen != p->search.number)
			left -= s->member[m].times * t->rate;
	}
	return fmax(left, 0);
}

static int find_capacities(struct phases *p)
{
	struct search *s = &p->search;

	for (unsigned int l = 0; l < s->links; l++) {
		if (!has_room((void **)&s->capacity, &s->capacity_room, l, sizeof(*s->capacity)))
			return -ENOMEM;
		s->capacity[l] = capacity_left(p, s->link[l]);
	}
	return 0;
}

static int solve(struct phases *p)
{
	struct search *s = &p->search;
	unsigned int first = 0;
	int r = find_capacities(p);

	s->uses = 0;
	for (unsigned int n = 0; n < s->jobs && r == 0; n++)
		r = add_flow(p, n);
	if (r < 0)
		return r;
	for (unsigned int n = 0; n < s->jobs; n++) { /* `use` may have moved until now */
		s->flow[n].use = s->use + first;
		first += s->flow[n].uses;
	}
	return fair_rates(s->capacity, s->links, s->flow, s->jobs, s->rate);
}

void phases_settle(struct phases *p, struct turn *t)
{
	double bytes = 0;

	if (t->phase == COMMUNICATES && p->now_s > t->since_s)
		bytes = fmin(t->left, t->rate * (p->now_s - t->since_s));
	t->left -= bytes;
	t->sent += bytes;
	t->since_s = p->now_s;
}

static void set_rate(struct phases *p, uint32_t i, double rate)
{
	struct turn *t = &p->turn[i];

	phases_settle(p, t);
	t->rate = rate;
	t->ends_s = rate > 0 ? p->now_s + t->left / rate : INFINITY;
	phases_heap_fix(p, i);
}

int phases_find_rates(struct phases *p, uint32_t i)
{
	struct search *s = &p->search;
	int r;

	/* Most often it is alone. */
	if (!p->turn[i].tights) {
		if (p->turn[i].phase == COMMUNICATES)
			set_rate(p, i, p->turn[i].alone);
		return 0;
	}
	r = collect(p, i);
	if (r < 0 || s->jobs == 0)
		return r;
	if (s->links == 0)
		s->rate[0] = p->turn[s->job[0]].alone;
	else
		r = solve(p);
	for (unsigned int n = 0; n < s->jobs && r == 0; n++)
		set_rate(p, s->job[n], s->rate[n]);
	return r;
}
