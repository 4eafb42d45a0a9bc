// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The problem that live reports are, as policies want it: what placer*.c weigh. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "placer_private.h"

enum {
	SLOTS_ENOUGH = 1 << 30, /* where a job has to be summed in software anyway */
	STEPS_MAX = 200000,
};

/* What nobody has said of a job. It only matters beside other jobs. */
#define ITERATION_BYTES 64e6
#define ITERATIONS 1000

void placer_work_close(struct placer_work *w)
{
	network_close(&w->network);
	free(w->worker);
	free(w->place);
	free(w->of);
	free(w->now);
	placer_inner_close(w);
}

/* --- the jobs -------------------------------------------------------------------------------- */

/* One that the picture lacks is as near as the node whose agent it came to. */
static uint32_t machine_of_worker(const struct placer_work *w, const struct wanted_worker *worker)
{
	const uint32_t at = network_worker(&w->network, &worker->address);

	return at != GRAPH_NONE ? at : network_node(&w->network, worker->node);
}

uint32_t placer_slots(const struct wanted_job *job) { return 2u * job->window; }

static bool is_due(const struct placer_work *w, unsigned int i)
{
	for (unsigned int k = 0; k < w->dues; k++)
		if (w->due[k] == i)
			return true;
	return false;
}

/* Jobs whose workers or root are not in the picture any more use nothing of it. */
static bool job_fill(struct placer_work *w, unsigned int i, uint32_t *worker, struct place_job *ret)
{
	const struct placer_job *j = &w->job[i];
	struct place_tree *now = &w->now[i];
	const unsigned int roots = j->job->roots ? j->job->roots : 1;

	*ret = (struct place_job){ .worker = worker,
				   .workers = j->workers,
				   .root = GRAPH_NONE,
				   .bytes = ITERATION_BYTES / roots,
				   .weight = 1.0 / roots,
				   .iterations = ITERATIONS };
	for (unsigned int k = 0; k < j->workers; k++) {
		worker[k] = machine_of_worker(w, &j->worker[k]);
		if (worker[k] == GRAPH_NONE)
			return false;
	}
	if (is_due(w, i))
		ret->slots = placer_slots(j->job);
	if (!j->root)
		return is_due(w, i);
	*now = (struct place_tree){
		.nodes = 1, .node = { { network_node(&w->network, j->root), GRAPH_NONE } }
	};
	ret->now = now;
	return now->node[0].machine != GRAPH_NONE;
}

/* ret_due: the numbers of w->due; UINT32_MAX: it is none of these. */
static int jobs_fill(struct placer_work *w, unsigned int *ret_jobs, uint32_t *ret_due)
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
	for (unsigned int k = 0; k < w->dues; k++)
		ret_due[k] = UINT32_MAX;
	for (unsigned int i = 0; i < w->jobs; i++) {
		if (w->job[i].workers && job_fill(w, i, next, &w->place[count])) {
			for (unsigned int k = 0; k < w->dues; k++)
				if (w->due[k] == i)
					ret_due[k] = count;
			w->of[count++] = i;
		}
		next += w->job[i].workers;
	}
	*ret_jobs = count;
	return 0;
}

/* --- what is free ---------------------------------------------------------------------------- */

/* Slots of jobs that have a root, whether their runs are on or not. */
static void slots_take(struct placer_work *w)
{
	for (unsigned int i = 0; i < w->jobs; i++) {
		const bool counts = !is_due(w, i) && w->job[i].root && !w->job[i].is_gone;
		const uint32_t m = counts ? network_node(&w->network, w->job[i].root) : GRAPH_NONE;
		uint32_t *slots = m == GRAPH_NONE ? NULL : &w->network.graph->machine[m].slots;

		if (slots)
			*slots -= *slots < placer_slots(w->job[i].job)
					  ? *slots
					  : placer_slots(w->job[i].job);
	}
}

/* What this node tells of a job as its root; NULL: nothing. */
static const struct report_job *told_of(const struct placer_job *j, const struct report *r)
{
	for (unsigned int i = 0; i < r->jobs; i++)
		if (r->job[i].id == j->job->id && !r->job[i].inner)
			return &r->job[i];
	return NULL;
}

/* Of the slots that a node keeps from the tenant of those that are to be placed: what it tells,
 * without what these have, and with what jobs want of which it tells nothing yet, or that are in
 * software and would be the next to have any. */
static uint32_t slots_kept(const struct placer_work *w, const struct report *r)
{
	const char *tenant = w->job[w->due[0]].job->tenant;
	const uint32_t told = report_slots_kept(r, tenant);
	uint32_t kept = told;

	for (unsigned int i = 0; told && i < w->jobs; i++) {
		const struct placer_job *j = &w->job[i];
		const uint32_t slots = placer_slots(j->job);
		const struct report_job *there;

		if (!j->root || j->is_gone || strcmp(j->root, r->node) != 0 ||
		    strcmp(j->job->tenant, tenant) != 0)
			continue;
		there = told_of(j, r);
		if (is_due(w, i))
			kept -= !there || there->in_software ? 0 : kept < slots ? kept : slots;
		else if (!there || there->in_software)
			kept += slots;
	}
	return kept;
}

static void slots_limit(struct placer_work *w)
{
	for (unsigned int i = 0; i < w->network.drawing.machines; i++) {
		const struct picture_machine *m = &w->network.drawing.machine[i];
		uint32_t *slots = &w->network.graph->machine[i].slots;
		uint32_t kept, left;

		if (m->kind != PICTURE_NODE)
			continue;
		kept = slots_kept(w, w->picture->report[m->node]);
		left = w->picture->report[m->node]->slots;
		left = left > kept ? left - kept : 0;
		*slots = *slots < left ? *slots : left;
	}
}

static bool is_refused(const struct placer_job *j, const char *node)
{
	for (unsigned int i = 0; i < j->refusals; i++)
		if (!strcmp(j->refused[i], node))
			return true;
	return false;
}

static bool is_refused_by_any(const struct placer_work *w, const char *node)
{
	for (unsigned int k = 0; k < w->dues; k++)
		if (is_refused(&w->job[w->due[k]], node))
			return true;
	return false;
}

static bool is_allowed(const struct placer_work *w, const struct report *r)
{
	return !r->cordoned && r->services && !is_refused_by_any(w, r->node);
}

/* An older agent says of a tenant that it has the slots, and lets it come in anywhere. */
static bool is_held(const struct placer_job *j, const struct report *r)
{
	const struct report_tenant *t = report_tenant_find(r, j->job->tenant);

	return t && t->held && (!j->is_gated || t->gated || t->own);
}

/* Has a node that may have it the slots for it that the cluster wants for its tenant? */
static bool holds_somewhere(const struct placer_work *w)
{
	const struct placer_job *j = &w->job[w->due[0]];

	for (unsigned int i = 0; i < w->picture->nodes; i++)
		if (is_allowed(w, w->picture->report[i]) && is_held(j, w->picture->report[i]))
			return true;
	return false;
}

/* Slots that those which are to be placed have there already. */
static uint32_t own_slots(const struct placer_work *w, const char *node)
{
	uint32_t slots = 0;

	for (unsigned int k = 0; k < w->dues; k++)
		if (w->job[w->due[k]].root && !strcmp(w->job[w->due[k]].root, node))
			slots += placer_slots(w->job[w->due[k]].job);
	return slots;
}

static bool all_have_roots(const struct placer_work *w)
{
	for (unsigned int k = 0; k < w->dues; k++)
		if (!w->job[w->due[k]].root)
			return false;
	return true;
}

/* Has the job its slots where it is, as far as that node tells? */
static bool keeps_slots(const struct placer_job *j, const struct report *r, uint32_t slots)
{
	const struct report_job *there = told_of(j, r);

	return there && there->runs ? !there->in_software : slots >= placer_slots(j->job);
}

/* Which nodes may have it: where one holds what the cluster wants for the job's tenant, only those
 * that do. A node without room has no slots here; how many are left. */
static unsigned int nodes_choose(struct placer_work *w)
{
	const struct placer_job *j = &w->job[w->due[0]];
	const bool holds = holds_somewhere(w);
	unsigned int fit = 0, allowed = 0;

	for (unsigned int pass = 0; pass < 2 && !fit; pass++) {
		w->software = pass == 1;
		for (unsigned int i = 0; i < w->network.drawing.machines; i++) {
			const struct picture_machine *m = &w->network.drawing.machine[i];
			uint32_t *slots = &w->network.graph->machine[i].slots;
			const struct report *r;
			uint32_t own;

			if (m->kind != PICTURE_NODE)
				continue;
			r = w->picture->report[m->node];
			own = own_slots(w, r->node);
			if (own && w->dues == 1) { /* it stays rather than lose its slots */
				allowed += !r->cordoned;
				fit += !r->cordoned && keeps_slots(j, r, *slots);
				*slots = SLOTS_ENOUGH;
				continue;
			}
			if (own && !r->cordoned) { /* shares may change, whatever others have */
				allowed++;
				fit += all_have_roots(w);
			}
			if (!is_allowed(w, r) || (holds && !is_held(j, r))) {
				*slots = r->cordoned ? 0 : own;
				continue;
			}
			*slots = *slots > own ? *slots : own;
			allowed++;
			if (pass == 1)
				*slots = SLOTS_ENOUGH;
			fit += *slots - own >= placer_slots(j->job);
		}
	}
	return allowed ? fit : 0;
}

/* --- loads ----------------------------------------------------------------------------------- */

double placer_bytes_per_second(const struct placer_job *j)
{
	enum {
		PAYLOAD_BYTES = 1408, /* of a full packet, where nobody has said it */
		HEADER_BYTES = 92, /* of IPv4, UDP and the message, beside a full payload */
	};
	double payload = PAYLOAD_BYTES;

	if (j->payload_bytes)
		payload = j->payload_bytes;
	else if (j->job->payload_bytes)
		payload = j->job->payload_bytes;
	return (double)j->chunks_per_second * (payload + HEADER_BYTES);
}

static int own_loads_take(struct placer_work *w, const struct place_problem *p, unsigned int job,
			  double bytes_per_second)
{
	const struct place_problem *with = w->inner_job ? &w->inner : p;
	_cleanup_(freep) struct fair_use *use = NULL;
	unsigned int uses = 0;
	int r = place_uses(with, job, with->job[job].now, &use, &uses);

	for (unsigned int i = 0; r == 0 && i < uses; i++) {
		struct graph_link *l = &w->network.graph->link[use[i].link];

		l->load = fmax(0, l->load - use[i].times * bytes_per_second);
	}
	return r == -EHOSTUNREACH ? 0 : r;
}

/* What is left are loads of others. */
static int loads_take(struct placer_work *w, const struct place_problem *p)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < p->jobs; i++) {
		const struct placer_job *j = &w->job[w->of[i]];

		if (j->ways)
			r = placer_loads_take(&w->network, j);
		else if (p->job[i].now)
			r = own_loads_take(w, p, i, placer_bytes_per_second(j));
	}
	return r;
}

/* --- the problem, and what is said of a decision ---------------------------------------------- */

int placer_work_open(struct placer_work *w, struct why *why)
{
	int r;

	if (w->jobs > PLACER_JOBS_MAX)
		return -E2BIG;
	r = network_make(w->picture, &w->network);
	if (r < 0)
		return r;
	slots_take(w);
	slots_limit(w);
	if (!nodes_choose(w))
		return why_say(why, -EHOSTUNREACH,
			       "no node may have it: all are cordoned, or have refused it");
	return 0;
}

int placer_problem(struct placer_work *w, struct place_problem *ret, uint32_t *ret_due,
		   struct why *why)
{
	int r;

	*ret = (struct place_problem){ .reach = w->network.reach, .options = PLACE_OPTIONS };
	r = jobs_fill(w, &ret->jobs, ret_due);
	if (r < 0)
		return r;
	for (unsigned int k = 0; k < w->dues; k++)
		if (ret_due[k] == UINT32_MAX)
			return why_say(why, -EHOSTUNREACH,
				       "a worker is not in the picture of the network "
				       "(tallyctl topology)");
	ret->job = w->place;
	ret->options.tree_max = 1;
	ret->options.margin = 1e9; /* jobs that have a root stay */
	ret->options.steps_max = STEPS_MAX;
	r = placer_inner_open(w, ret);
	if (r == 0)
		r = loads_take(w, ret);
	while (ret->jobs && w->job[w->of[ret->jobs - 1]].is_gone)
		ret->jobs--;
	w->inner.jobs = ret->jobs;
	return r;
}

const struct report *placer_node(const struct placer_work *w, uint32_t machine)
{
	return w->picture->report[w->network.drawing.machine[machine].node];
}

static void term_print(double value, char *text, size_t size)
{
	snprintf(text, size, "%.4g", value);
}

void placer_weighed_fill(const struct placer_work *w, const struct place_candidate *c,
			 struct wanted_weighed *ret)
{
	memcpy(ret->node, placer_node(w, c->tree.node[0].machine)->node, sizeof(ret->node));
	term_print(c->cost.total, ret->total, sizeof(ret->total));
	term_print(c->cost.part.bytes, ret->bytes, sizeof(ret->bytes));
	term_print(c->cost.part.use, ret->use, sizeof(ret->use));
	term_print(c->cost.part.time, ret->time, sizeof(ret->time));
}

void placer_all_weighed_fill(const struct placer_work *w, const struct place_candidate *c,
			     int count, struct wanted_place *ret)
{
	for (int i = 0; i < count; i++)
		if (c[i].tree.nodes && !c[i].cost.failed)
			placer_weighed_fill(w, &c[i], &ret->weighed[ret->weighs++]);
}

int placer_weigh(const struct placer_work *w, const struct place_problem *p,
		 const struct place_tree *tree, unsigned int which, struct wanted_place *ret)
{
	_cleanup_(freep) struct place_candidate *c = calloc(WANTED_WEIGHED_MAX, sizeof(*c));
	int count = c ? place_explain(p, tree, which, WANTED_WEIGHED_MAX, c) : -ENOMEM;

	placer_all_weighed_fill(w, c, count, ret);
	return count < 0 ? count : 0;
}

void placer_place_fill(const struct placer_work *w, const struct place_tree *tree,
		       struct wanted_place *ret)
{
	const struct report *root = placer_node(w, tree->node[0].machine);

	memcpy(ret->root, root->node, sizeof(ret->root));
	if (root->services) /* one that has the job stays, whatever its agent tells */
		ret->address = root->service[0];
}

void placer_place_begin(const struct placer_job *j, struct wanted_place *ret)
{
	*ret = (struct wanted_place){ .birth = j->job->birth };
	for (unsigned int i = 0; i < j->workers && i < TALLY_WORKERS_MAX; i++)
		ret->worker[ret->workers++] = j->worker[i].address;
}
