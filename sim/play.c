// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "play.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "play_private.h"

void play_free(struct play_result *r)
{
	if (!r)
		return;
	free(r->job);
	free(r->link_bytes);
	free(r->summed);
	free(r->explained);
	free(r);
}

static void play_close(struct play *p)
{
	for (unsigned int i = 0; p->player && i < p->workload->jobs; i++)
		free(p->player[i].use);
	play_network_close(&p->network);
	phases_free(p->phases);
	free(p->player);
	free(p->change);
	free(p->running);
	free(p->asked);
	free(p->tree);
	free(p->without);
	play_free(p->result);
}

static const char *name_of(const struct play *p, uint32_t i) { return p->workload->job[i].name; }

/* --- deciding -------------------------------------------------------------------------------- */

static struct place_problem problem_of(struct play *p)
{
	p->runs = 0;
	for (uint32_t i = 0; i < p->workload->jobs; i++) {
		if (!p->player[i].runs)
			continue;
		p->asked[p->runs] = play_asked(p, i);
		p->running[p->runs++] = i;
	}
	return (struct place_problem){
		.reach = p->network.reach, .job = p->asked, .jobs = p->runs, .options = p->o->place
	};
}

/* The order of nodes does not matter where it says the same. */
static bool is_same_tree(const struct place_tree *a, const struct place_tree *b)
{
	return a->nodes == b->nodes && !memcmp(a->node, b->node, a->nodes * sizeof(*a->node));
}

/* Why a job lies where it does: at the time when it is placed for the first time. */
static int explain(struct play *p, const struct place_problem *problem)
{
	struct play_explained *e;
	unsigned int n = 0;
	int r;

	while (n < p->runs && p->running[n] != p->o->explain)
		n++;
	if (n == p->runs || p->result->explained)
		return 0;
	e = p->result->explained = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->at_s = phases_now(p->phases);
	e->beside = p->runs - 1;
	r = place_explain(problem, p->tree, n, PLAY_CANDIDATES_MAX, e->candidate);
	if (r < 0)
		return r;
	e->candidates = r;
	return 0;
}

/* A mistake of the policy: in which job's tree, at which node, and what. */
static int refuse_tree(struct play *p, const struct place_fault *f)
{
	const struct topology *t = p->topology;
	char node[64] = "";

	if (f->job == GRAPH_NONE)
		return why_say(p->why, -EINVAL, "policy %s, when %u job%s ran: %s",
			       p->o->policy->name, p->runs, p->runs == 1 ? "" : "s", f->rule);
	if (f->node != GRAPH_NONE && f->machine < t->graph->machines)
		snprintf(node, sizeof(node), ", node %u (%s)", f->node, t->name[f->machine]);
	else if (f->node != GRAPH_NONE)
		snprintf(node, sizeof(node), ", node %u (machine %u)", f->node, f->machine);
	return why_say(p->why, -EINVAL, "policy %s: the tree of job %s%s: %s", p->o->policy->name,
		       name_of(p, p->running[f->job]), node, f->rule);
}

static int refuse_policy(struct play *p, int r, const struct place_fault *fault)
{
	const char *what = strerror(-r);

	if (r == -EINVAL && fault->rule)
		return refuse_tree(p, fault);

	if (r == -EAGAIN)
		what = "not decided within the steps that are allowed";
	if (r == -ENOSPC)
		what = "nodes have no room for all jobs that have no root: "
		       "raise --nodes or --node-jobs, or give jobs root=any";
	return why_say(p->why, r, "policy %s, when %u job%s ran: %s", p->o->policy->name, p->runs,
		       p->runs == 1 ? "" : "s", what);
}

/* What has been decided becomes what is: of job `n` of those that were asked about. */
static int follow(struct play *p, unsigned int n, bool begins)
{
	uint32_t i = p->running[n];
	struct play_job *job = &p->result->job[i];
	bool other = !is_same_tree(&job->tree, &p->tree[n]);
	int r = 0;

	job->tree = p->tree[n];
	p->player[i].is_placed = true;
	for (unsigned int t = 0; t < job->tree.nodes && (begins || other); t++)
		p->result->summed[job->tree.node[t].machine]++;
	job->moved += other && !begins;
	if (begins || other)
		r = play_bring(p, i);
	if (r < 0)
		return r;
	return begins ? play_begin(p, i) : play_lead(p, i, other);
}

/* All jobs from `first` on, below `end`, begin; others may move. */
static int decide(struct play *p, uint32_t first, uint32_t end)
{
	struct place_problem problem = problem_of(p);
	struct place_fault fault;
	int r = place_decide_each(p->o->policy, &problem, p->tree, p->without, &fault);

	if (r < 0)
		return refuse_policy(p, r, &fault);
	for (unsigned int n = 0; n < p->runs; n++)
		if (p->without[n] && p->running[n] >= first && p->running[n] < end)
			p->result->job[p->running[n]].without = true;
	r = explain(p, &problem);
	for (unsigned int n = 0; n < p->runs && r == 0; n++)
		if (p->running[n] >= first || p->o->moves || !p->player[p->running[n]].is_placed)
			r = follow(p, n, p->running[n] >= first && p->running[n] < end);
	return r;
}

/* --- what happens ---------------------------------------------------------------------------- */

static int arrive(struct play *p, uint32_t *next)
{
	const struct workload *w = p->workload;
	uint32_t first = *next, end = first;

	while (end < w->jobs && w->job[end].arrives_s <= phases_now(p->phases))
		p->player[end++].runs = true;
	*next = end;
	return decide(p, first, end);
}

/*
 * Jobs whose tree has no way any more are placed anew, and so are those that had none and have one
 * again: what they got meanwhile is no tree worth keeping. The others only find their ways.
 */
static int change(struct play *p, const struct change *c, uint32_t begun)
{
	const struct workload_failure *f = &p->workload->failure[c->failure];
	bool lost = false, stood;
	int r = play_network_fail(&p->network, f, c->begins);

	for (uint32_t i = 0; i < begun && r == 0; i++) {
		if (!p->player[i].runs)
			continue;
		stood = p->player[i].stands;
		r = play_lead(p, i, false);
		p->player[i].is_placed = !stood && !p->player[i].stands;
		lost |= !p->player[i].is_placed;
	}
	return r == 0 && (lost || p->o->moves) ? decide(p, begun, begun) : r;
}

static void end(struct play *p, uint32_t i)
{
	struct play_job *job = &p->result->job[i];
	struct phases_result r = phases_result(p->phases, i);

	job->ended_s = r.ended_s;
	job->communicated_s = r.communicated_s;
	for (unsigned int u = 0; u < p->player[i].uses; u++)
		job->links += p->player[i].use[u].times;
	if (p->o->agents)
		agents_end(p->o->agents, i, r.ended_s);
	p->player[i].runs = p->player[i].is_begun = false;
	p->ended++;
	if (p->o->progress)
		p->o->progress(p->o->context, p->ended, r.ended_s);
}

static int stuck(struct play *p)
{
	uint32_t i = 0;

	while (!p->player[i].runs || !p->player[i].stands)
		if (++i == p->workload->jobs)
			return why_say(p->why, -EDEADLK,
				       "jobs will never end: no link carries them");
	return why_say(p->why, -EDEADLK,
		       "job %s will never end: it has no way, and nothing will "
		       "be repaired any more",
		       name_of(p, i));
}

static int go_until(struct play *p, double until_s)
{
	uint32_t ended;
	int r;

	while ((r = phases_go(p->phases, until_s, &ended)) == 0 && ended != PHASES_NONE)
		end(p, ended);
	return r == -EDEADLK ? stuck(p) : r;
}

static bool all_stand(const struct play *p)
{
	for (uint32_t i = 0; i < p->workload->jobs; i++)
		if (p->player[i].is_begun && !p->player[i].stands)
			return false;
	return true;
}

/* Agents that had no slots may have some by now. `last`: nothing else will happen. */
static int look(struct play *p, bool last)
{
	int r = 0;

	if (!agents_wait(p->o->agents, phases_now(p->phases)))
		return last && all_stand(p) ? stuck(p) : 0;
	for (uint32_t i = 0; i < p->workload->jobs && r == 0; i++)
		if (p->player[i].is_begun)
			r = play_lead(p, i, false);
	return r;
}

static int run(struct play *p)
{
	const struct workload *w = p->workload;
	uint32_t job = 0;
	unsigned int next = 0;
	int r = 0;

	while (r == 0 && p->ended < w->jobs) {
		double arrives_s = job < w->jobs ? w->job[job].arrives_s : INFINITY;
		double changes_s = next < p->changes ? p->change[next].at_s : INFINITY;
		double looks_s = p->o->agents ? agents_deadline_s(p->o->agents) : INFINITY;

		r = go_until(p, fmin(looks_s, fmin(arrives_s, changes_s)));
		if (r < 0 || p->ended == w->jobs)
			break;
		if (looks_s < fmin(arrives_s, changes_s))
			r = look(p, isinf(fmin(arrives_s, changes_s)));
		else
			r = changes_s <= arrives_s ? change(p, &p->change[next++], job)
						   : arrive(p, &job);
	}
	return r;
}

/* --- from the beginning to the end ----------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->at_s != y->at_s)
		return x->at_s < y->at_s ? -1 : 1;
	return (x->failure > y->failure) - (x->failure < y->failure);
}

static int prepare(struct play *p)
{
	const struct workload *w = p->workload;
	const struct graph *g = p->topology->graph;
	_cleanup_(freep) double *capacity = calloc(g->links + 1, sizeof(*capacity));
	int r = play_network_open(p->topology, &p->network);

	p->player = calloc(w->jobs + 1, sizeof(*p->player));
	p->running = calloc(w->jobs + 1, sizeof(*p->running));
	p->asked = calloc(w->jobs + 1, sizeof(*p->asked));
	p->tree = calloc(w->jobs + 1, sizeof(*p->tree));
	p->without = calloc(w->jobs + 1, sizeof(*p->without));
	p->change = calloc(2 * w->failures + 1, sizeof(*p->change));
	p->result = calloc(1, sizeof(*p->result));
	if (r < 0 || !capacity || !p->player || !p->running || !p->asked || !p->tree ||
	    !p->without || !p->change || !p->result)
		return r < 0 ? r : -ENOMEM;
	p->result->job = calloc(w->jobs + 1, sizeof(*p->result->job));
	p->result->link_bytes = calloc(g->links + 1, sizeof(*p->result->link_bytes));
	p->result->summed = calloc(g->machines + 1, sizeof(*p->result->summed));
	if (!p->result->job || !p->result->link_bytes || !p->result->summed)
		return -ENOMEM;
	for (unsigned int f = 0; f < w->failures; f++) {
		const struct workload_failure *of = &w->failure[f];

		p->change[p->changes++] = (struct change){ of->at_s, f, true };
		p->change[p->changes++] = (struct change){ of->at_s + of->for_s, f, false };
	}
	qsort(p->change, p->changes, sizeof(*p->change), by_time);
	for (uint32_t l = 0; l < g->links; l++)
		capacity[l] = graph_room(&g->link[l]);
	r = phases_open(capacity, g->links, w->jobs, &p->phases);
	if (r == 0)
		phases_near(p->phases, p->o->near);
	return r;
}

static void finish(struct play *p)
{
	struct play_result *r = p->result;

	r->policy = p->o->policy;
	for (uint32_t i = 0; i < p->workload->jobs; i++) /* links may fail later than that */
		r->ended_s = fmax(r->ended_s, r->job[i].ended_s);
	r->events = phases_events(p->phases);
	if (p->o->agents)
		r->agents = agents_counts(p->o->agents);
	for (uint32_t m = 0; m < p->topology->graph->machines; m++)
		r->nodes += r->summed[m] > 0;
	phases_carried(p->phases, r->link_bytes);
}

int play(const struct topology *t, const struct workload *w, const struct play_options *o,
	 struct play_result **ret, struct why *why)
{
	_cleanup_(play_close) struct play p = { .topology = t, .workload = w, .o = o, .why = why };
	int r;

	why->text[0] = '\0';
	r = prepare(&p);
	if (r == -E2BIG)
		return why_say(why, r,
			       "the network has more than %d switches, or hosts with more "
			       "than one cable",
			       REACH_INNER_MAX);
	if (r == 0)
		r = run(&p);
	if (r < 0)
		return why->text[0] ? r : why_say(why, r, "%s", strerror(-r));
	finish(&p);
	*ret = TAKE_PTR(p.result);
	return 0;
}
