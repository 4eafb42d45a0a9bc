// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "placer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/place.h"
#include "common/owned.h"
#include "network.h"

enum {
	SLOTS_ENOUGH = 1 << 30, /* where a job has to be summed in software anyway */
	PAYLOAD_BYTES = 1408, /* of a full packet, where nobody has said it */
	HEADER_BYTES = 92, /* of IPv4, UDP and the message, beside a full payload */
	STEPS_MAX = 200000,
};

/* What nobody has said of a job. It only matters beside other jobs. */
#define ITERATION_BYTES 64e6
#define ITERATIONS 1000

struct work {
	const struct picture *picture;
	const struct placer_job *job;
	unsigned int jobs, which;
	struct network network;
	uint32_t *worker; /* machines of all workers, of one job after another */
	struct place_job *place;
	unsigned int *of; /* of each of these: its number among all */
	struct place_tree *now;
	bool software; /* no node has the slots */
};

static void work_close(struct work *w)
{
	network_close(&w->network);
	free(w->worker);
	free(w->place);
	free(w->of);
	free(w->now);
}

/* --- the jobs -------------------------------------------------------------------------------- */

/* One that the picture lacks is as near as the node whose agent it came to. */
static uint32_t machine_of_worker(const struct work *w, const struct wanted_worker *worker)
{
	const uint32_t at = network_worker(&w->network, &worker->address);

	return at != GRAPH_NONE ? at : network_node(&w->network, worker->node);
}

static uint32_t slots_of(const struct wanted_job *job) { return 2u * job->window; }

/* Jobs whose workers or root are not in the picture any more use nothing of it. */
static bool job_fill(struct work *w, unsigned int i, uint32_t *worker, struct place_job *ret)
{
	const struct placer_job *j = &w->job[i];
	struct place_tree *now = &w->now[i];

	*ret = (struct place_job){ .worker = worker,
				   .workers = j->workers,
				   .root = GRAPH_NONE,
				   .bytes = ITERATION_BYTES,
				   .weight = 1,
				   .iterations = ITERATIONS };
	for (unsigned int k = 0; k < j->workers; k++) {
		worker[k] = machine_of_worker(w, &j->worker[k]);
		if (worker[k] == GRAPH_NONE)
			return false;
	}
	if (i == w->which)
		ret->slots = slots_of(j->job);
	if (!j->root)
		return i == w->which;
	*now = (struct place_tree){
		.nodes = 1, .node = { { network_node(&w->network, j->root), GRAPH_NONE } }
	};
	ret->now = now;
	return now->node[0].machine != GRAPH_NONE;
}

/* w->which is what it was, or behind fewer others. */
static int jobs_fill(struct work *w, unsigned int *ret_jobs, unsigned int *ret_which)
{
	unsigned int workers = 0, count = 0;
	uint32_t *next;

	for (unsigned int i = 0; i < w->jobs; i++)
		workers += w->job[i].workers;
	w->worker = calloc(workers + 1, sizeof(*w->worker));
	w->place = calloc(w->jobs + 1, sizeof(*w->place));
	w->of = calloc(w->jobs + 1, sizeof(*w->of));
	w->now = calloc(w->jobs + 1, sizeof(*w->now));
	if (!w->worker || !w->place || !w->of || !w->now)
		return -ENOMEM;
	next = w->worker;
	*ret_which = UINT32_MAX;
	for (unsigned int i = 0; i < w->jobs; i++) {
		if (w->job[i].workers && job_fill(w, i, next, &w->place[count])) {
			if (i == w->which)
				*ret_which = count;
			w->of[count++] = i;
		}
		next += w->job[i].workers;
	}
	*ret_jobs = count;
	return 0;
}

/* --- what is free ---------------------------------------------------------------------------- */

/* Slots of jobs that have a root, whether their runs are on or not. */
static void slots_take(struct work *w)
{
	for (unsigned int i = 0; i < w->jobs; i++) {
		const bool counts = i != w->which && w->job[i].root;
		const uint32_t m = counts ? network_node(&w->network, w->job[i].root) : GRAPH_NONE;
		uint32_t *slots = m == GRAPH_NONE ? NULL : &w->network.graph->machine[m].slots;

		if (slots)
			*slots -= *slots < slots_of(w->job[i].job) ? *slots
								   : slots_of(w->job[i].job);
	}
}

static bool is_refused(const struct placer_job *j, const char *node)
{
	for (unsigned int i = 0; i < j->refusals; i++)
		if (!strcmp(j->refused[i], node))
			return true;
	return false;
}

/* Which nodes may have it. A node without room has no slots here; how many are left. */
static unsigned int nodes_choose(struct work *w)
{
	const struct placer_job *j = &w->job[w->which];
	unsigned int fit = 0, allowed = 0;

	for (unsigned int pass = 0; pass < 2 && !fit; pass++) {
		w->software = pass == 1;
		for (unsigned int i = 0; i < w->network.drawing.machines; i++) {
			const struct picture_machine *m = &w->network.drawing.machine[i];
			uint32_t *slots = &w->network.graph->machine[i].slots;
			const struct report *r;

			if (m->kind != PICTURE_NODE)
				continue;
			r = w->picture->report[m->node];
			if (j->root && !strcmp(r->node, j->root)) {
				*slots = SLOTS_ENOUGH; /* it has its own there */
				continue;
			}
			if (r->cordoned || !r->services || is_refused(j, r->node)) {
				*slots = 0;
				continue;
			}
			allowed++;
			if (pass == 1)
				*slots = SLOTS_ENOUGH;
			fit += *slots >= slots_of(j->job);
		}
	}
	return allowed ? fit : 0;
}

/* --- loads ----------------------------------------------------------------------------------- */

static int own_loads_take(struct work *w, const struct place_problem *p, unsigned int job,
			  double bytes_per_second)
{
	_cleanup_(freep) struct fair_use *use = NULL;
	unsigned int uses = 0;
	int r = place_uses(p, job, p->job[job].now, &use, &uses);

	for (unsigned int i = 0; r == 0 && i < uses; i++) {
		struct graph_link *l = &w->network.graph->link[use[i].link];

		l->load = fmax(0, l->load - use[i].times * bytes_per_second);
	}
	return r == -EHOSTUNREACH ? 0 : r;
}

/* What is left are loads of others. */
static int loads_take(struct work *w, const struct place_problem *p)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < p->jobs; i++) {
		const struct placer_job *j = &w->job[w->of[i]];
		const double payload = j->job->payload_bytes ? j->job->payload_bytes
							     : PAYLOAD_BYTES;

		if (p->job[i].now)
			r = own_loads_take(w, p, i,
					   (double)j->chunks_per_second * (payload + HEADER_BYTES));
	}
	return r;
}

/* --- the decision ---------------------------------------------------------------------------- */

static const struct report *report_of(const struct work *w, uint32_t machine)
{
	return w->picture->report[w->network.drawing.machine[machine].node];
}

static void term_print(double value, char *text, size_t size)
{
	snprintf(text, size, "%.4g", value);
}

static void weighed_fill(const struct work *w, const struct place_candidate *c,
			 struct wanted_weighed *ret)
{
	memcpy(ret->node, report_of(w, c->tree.node[0].machine)->node, sizeof(ret->node));
	term_print(c->cost.total, ret->total, sizeof(ret->total));
	term_print(c->cost.part.bytes, ret->bytes, sizeof(ret->bytes));
	term_print(c->cost.part.use, ret->use, sizeof(ret->use));
	term_print(c->cost.part.time, ret->time, sizeof(ret->time));
}

static int weigh(const struct work *w, const struct place_problem *p, const struct place_tree *tree,
		 unsigned int which, struct wanted_place *ret)
{
	_cleanup_(freep) struct place_candidate *c = calloc(WANTED_WEIGHED_MAX, sizeof(*c));
	int count = c ? place_explain(p, tree, which, WANTED_WEIGHED_MAX, c) : -ENOMEM;

	for (int i = 0; i < count; i++)
		if (c[i].tree.nodes && !c[i].cost.failed)
			weighed_fill(w, &c[i], &ret->weighed[ret->weighs++]);
	return count < 0 ? count : 0;
}

static void words_make(const struct work *w, struct wanted_place *ret)
{
	const char *software = w->software ? "; no node has the slots, so it is summed in software"
					   : "";

	if (ret->weighs > 1)
		snprintf(ret->why, sizeof(ret->why),
			 "least cost: %.23s; next best is %.63s: %.23s%s", ret->weighed[0].total,
			 ret->weighed[1].node, ret->weighed[1].total, software);
	else
		snprintf(ret->why, sizeof(ret->why),
			 "the only node that may have it and all workers reach%s", software);
}

static void place_fill(const struct work *w, const struct place_tree *tree,
		       struct wanted_place *ret)
{
	const struct report *root = report_of(w, tree->node[0].machine);

	memcpy(ret->root, root->node, sizeof(ret->root));
	ret->address = root->service[0];
}

/* *ret_which: its number among those of the problem. */
static int problem_make(struct work *w, struct place_problem *ret, unsigned int *ret_which,
			struct why *why)
{
	int r;

	*ret = (struct place_problem){ .reach = w->network.reach, .options = PLACE_OPTIONS };
	r = jobs_fill(w, &ret->jobs, ret_which);
	if (r < 0)
		return r;
	if (*ret_which == UINT32_MAX)
		return why_say(why, -EHOSTUNREACH,
			       "a worker is not in the picture of the network "
			       "(tallyctl topology)");
	ret->job = w->place;
	ret->options.tree_max = 1;
	ret->options.margin = 1e9; /* jobs that have a root stay */
	ret->options.steps_max = STEPS_MAX;
	return loads_take(w, ret);
}

static int decide(struct work *w, double ignored, struct wanted_place *ret, struct why *why)
{
	_cleanup_(freep) struct place_tree *tree = NULL;
	struct place_problem p;
	unsigned int which, moved;
	int r = problem_make(w, &p, &which, why);

	if (r < 0)
		return r;
	tree = calloc(p.jobs + 1, sizeof(*tree));
	if (!tree)
		return -ENOMEM;
	r = place_again(&p, tree, &moved);
	if (r < 0)
		return r;
	if (!tree[which].nodes)
		return why_say(why, -EHOSTUNREACH,
			       "no node that may have it is reached by all its workers");
	place_fill(w, &tree[which], ret);
	r = weigh(w, &p, tree, which, ret);
	if (r == 0)
		words_make(w, ret);
	return r;
}

/* Nothing but this job may be elsewhere. */
static int improve(struct work *w, double margin, struct wanted_place *ret, struct why *why)
{
	_cleanup_(freep) struct place_candidate *c = calloc(WANTED_WEIGHED_MAX, sizeof(*c));
	_cleanup_(freep) struct place_tree *tree = NULL;
	struct place_problem p;
	unsigned int which;
	int count, r = problem_make(w, &p, &which, why);

	if (r < 0)
		return r;
	tree = calloc(p.jobs + 1, sizeof(*tree));
	if (!c || !tree)
		return -ENOMEM;
	for (unsigned int i = 0; i < p.jobs; i++)
		tree[i] = w->now[w->of[i]];
	count = place_explain(&p, tree, which, WANTED_WEIGHED_MAX, c);
	if (count < 0)
		return count;
	if (count < 2 || !c[1].tree.nodes || c[1].cost.failed ||
	    c[1].cost.total >= c[0].cost.total * (1 - margin))
		return -EALREADY;
	for (int i = 1; i < count; i++)
		if (c[i].tree.nodes && !c[i].cost.failed)
			weighed_fill(w, &c[i], &ret->weighed[ret->weighs++]);
	weighed_fill(w, &c[0], &ret->weighed[ret->weighs++]);
	place_fill(w, &c[1].tree, ret);
	snprintf(ret->why, sizeof(ret->why), "it moves: cost %.4g, and %.4g at %.63s",
		 c[1].cost.total, c[0].cost.total, report_of(w, tree[which].node[0].machine)->node);
	return 0;
}

static int place(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		 unsigned int which, double margin,
		 int (*how)(struct work *w, double margin, struct wanted_place *ret,
			    struct why *why),
		 struct wanted_place *ret, struct why *why)
{
	_cleanup_(freep) struct wanted_place *made = calloc(1, sizeof(*made));
	_cleanup_(work_close) struct work w = {
		.picture = p, .job = job, .jobs = jobs, .which = which
	};
	int r = made ? 0 : -ENOMEM;

	if (jobs > PLACER_JOBS_MAX)
		return -E2BIG;
	if (r == 0)
		r = network_make(p, &w.network);
	if (r < 0)
		return r;
	slots_take(&w);
	if (!nodes_choose(&w))
		return why_say(why, -EHOSTUNREACH,
			       "no node may have it: all are cordoned, or have refused it");
	made->birth = job[which].job->birth;
	for (unsigned int i = 0; i < job[which].workers && i < TALLY_WORKERS_MAX; i++)
		made->worker[made->workers++] = job[which].worker[i].address;
	if (r == 0)
		r = how(&w, margin, made, why);
	if (r == 0)
		*ret = *made;
	return r;
}

int placer_place(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		 unsigned int which, struct wanted_place *ret, struct why *why)
{
	return place(p, job, jobs, which, 0, decide, ret, why);
}

int placer_better(const struct picture *p, const struct placer_job *job, unsigned int jobs,
		  unsigned int which, double margin, struct wanted_place *ret, struct why *why)
{
	return place(p, job, jobs, which, margin, improve, ret, why);
}
