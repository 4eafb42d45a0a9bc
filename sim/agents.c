// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "agents.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "deploy.h"

/* A machine that jobs have come to. */
struct site {
	struct sim_agent *agent;
	struct config *config; /* of it, and ours */
};

/* A job, while agents have it. */
struct guest {
	bool is_there;
	uint32_t root; /* the machine of its root; GRAPH_NONE: its agent refused */
	uint32_t number; /* in the network */
	unsigned int nodes; /* that have documents */
	uint32_t node[PLACE_NODES_MAX]; /* their machines */
	char *seat; /* [workers]: their connections, which are compared only */
};

struct agents {
	const struct topology *topology;
	const struct workload *workload;
	struct config *config; /* as in the file */
	uint64_t seed;
	struct site *site; /* [machines] */
	struct guest *guest; /* [jobs] */
	struct agents_counts counts;
};

/* --- agents of machines ---------------------------------------------------------------------- */

static bool is_node(const struct agents *a, uint32_t machine)
{
	return a->topology->graph->machine[machine].kind == GRAPH_NODE;
}

static uint32_t reserved(const struct config *c)
{
	uint32_t slots = 0;

	for (unsigned int i = c->rest; i < c->tenants; i++)
		slots += c->tenant[i].slots;
	return slots;
}

/* The file's, as it is at this machine. */
static void config_fit(const struct agents *a, uint32_t machine, struct config *c)
{
	c->services = 1;
	c->service[0] = deploy_node_address(machine);
	c->ports = 1;
	memset(&c->peers, 0, sizeof(c->peers));
	c->slots = a->topology->graph->machine[machine].slots;
	if (is_node(a, machine) && c->slots >= CONFIG_SLOTS_MIN)
		return;
	/* No slots for anybody: sums in software. */
	c->slots = CONFIG_SLOTS_MIN;
	c->pool_slots = 0;
	c->spill_mib = c->spill_mib ? c->spill_mib : CONFIG_SPILL_MIB;
	c->rest = false;
	c->default_named = true;
	for (unsigned int i = 0; i < c->tenants; i++)
		c->tenant[i].slots = 0;
}

/* The agent of a machine; it is started when somebody comes. */
static int agent_at(struct agents *a, uint32_t machine, struct sim_agent **ret)
{
	struct site *site = &a->site[machine];
	struct why why;
	int r = 0;

	if (!site->agent) {
		free(site->config);
		site->config = malloc(sizeof(*site->config));
		if (!site->config)
			return -ENOMEM;
		*site->config = *a->config;
		config_fit(a, machine, site->config);
		r = sim_agent_open(site->config, a->seed ^ machine, &site->agent, &why);
	}
	*ret = site->agent;
	return r;
}

static const struct books *books_at(const struct agents *a, uint32_t machine)
{
	return core_books(sim_agent_core(a->site[machine].agent));
}

/* What the agent there knows of the job; NULL: nothing. */
static const struct job *job_at(const struct agents *a, const struct guest *g, uint32_t machine)
{
	return a->site[machine].agent ? books_job_numbered(books_at(a, machine), g->number) : NULL;
}

/* The first one is kept: most often the others are of the same kind. */
static void note_refusal(struct agents *a, uint32_t i, uint32_t machine, const struct why *why)
{
	if (!*a->counts.refusal.text)
		why_say(&a->counts.refusal, 0, "job %s at %s: %.400s", a->workload->job[i].name,
			a->topology->name[machine], why->text);
}

/* --- a job comes ----------------------------------------------------------------------------- */

/* The largest window that has no more slots. */
static uint16_t window_of(uint32_t slots)
{
	uint16_t window = 1;

	while (window < TALLY_WINDOW_MAX && 4u * window <= slots)
		window *= 2;
	return window;
}

static int create(struct agents *a, uint32_t i, const struct tree *tree, double now_s,
		  struct why *why)
{
	const struct workload_job *j = &a->workload->job[i];
	struct request q = { .verb = REQUEST_JOB_CREATE,
			     .given = REQUEST_ID,
			     .job = { .workers = j->workers,
				      .window = window_of(j->slots),
				      .id = i + 1,
				      .tags = true,
				      .tree = *tree } };
	struct sim_agent *agent;
	int r = agent_at(a, a->guest[i].root, &agent);

	if (r < 0)
		return r;
	snprintf(q.job.name, sizeof(q.job.name), "j%u", i);
	memcpy(q.job.tenant, a->config->tenant[j->tenant].name, sizeof(q.job.tenant));
	return sim_agent_ask(agent, &q, now_s, why);
}

/* All of its workers, of which the last one to come begins the run. */
static int join(struct agents *a, uint32_t i, double now_s, struct why *why)
{
	const struct workload_job *w = &a->workload->job[i];
	struct guest *g = &a->guest[i];
	const struct job *j = job_at(a, g, g->root);
	int r = 0;

	g->seat = calloc(w->workers, sizeof(*g->seat));
	if (!g->seat)
		return -ENOMEM;
	for (unsigned int rank = 0; r == 0 && rank < w->workers; rank++) {
		const struct sockaddr_storage from = deploy_worker_address(w->worker[rank], rank);

		r = sim_agent_join(a->site[g->root].agent, j, rank, &from, &g->seat[rank], now_s,
				   why);
	}
	return r == 0 && !j->run_window ? -ENOSPC : r;
}

/* Each inner node's document, for its agent. One that refuses has no slots for the job. */
static int tell(struct agents *a, uint32_t i, const uint32_t *machine, double now_s)
{
	struct guest *g = &a->guest[i];
	const struct job *j = job_at(a, g, g->root);
	_cleanup_(freep) struct request *q = calloc(1, sizeof(*q));
	_cleanup_(freep) struct run *run = calloc(1, sizeof(*run));
	struct sim_agent *agent;
	struct why why;
	int r = q && run ? 0 : -ENOMEM;

	for (unsigned int n = 0; r == 0 && j->tree && n < j->tree->nodes; n++) {
		q->verb = REQUEST_APPLY;
		memcpy(q->apply.tenant, j->tenant_name, sizeof(q->apply.tenant));
		job_this_run(j, run);
		job_run_keys(j, &j->draw, run);
		document_make(j->tree, n, j->name, run, &q->apply.document);
		q->apply.document.birth = j->birth;
		r = agent_at(a, machine[n], &agent);
		if (r == 0 && sim_agent_ask(agent, q, now_s, &why) == 0)
			g->node[g->nodes++] = machine[n];
		else if (r == 0)
			note_refusal(a, i, machine[n], &why);
	}
	return r;
}

enum share {
	NONE,
	BORROWED,
	SMALLER,
	WHOLE,
};

/* Of what the job wants, what does it have of this machine's slots? */
static enum share share_of(const struct agents *a, uint32_t i, uint32_t machine)
{
	const struct job *j = job_at(a, &a->guest[i], machine);
	bool waits = j && j->document && j->begin_by_ns;

	if (!j || !j->run_window || waits)
		return NONE;
	if (j->borrows || j->spilled)
		return j->borrows && a->site[machine].config->pool_slots ? BORROWED : NONE;
	return j->run_window < window_of(a->workload->job[i].slots) ? SMALLER : WHOLE;
}

static void count(struct agents *a, uint32_t i, uint32_t machine)
{
	unsigned int *const at[] = { [NONE] = &a->counts.none,
				     [BORROWED] = &a->counts.borrowed,
				     [SMALLER] = &a->counts.smaller,
				     [WHOLE] = &a->counts.whole };

	if (is_node(a, machine))
		++*at[share_of(a, i, machine)];
}

int agents_begin(struct agents *a, uint32_t i, const struct place_tree *tree, const uint32_t *to,
		 double now_s)
{
	const struct workload_job *j = &a->workload->job[i];
	struct guest *g = &a->guest[i];
	_cleanup_(freep) struct tree *wanted = calloc(1, sizeof(*wanted));
	uint32_t machine[PLACE_NODES_MAX] = { 0 };
	struct why why = { "" };
	int r;

	if (!wanted)
		return -ENOMEM;
	*g = (struct guest){ .is_there = true, .root = j->root, .number = i + 1 };
	if (g->root == GRAPH_NONE)
		g->root = tree->node[0].machine;
	deploy_tree(tree, to, j->workers, g->root, wanted, machine);
	r = create(a, i, wanted, now_s, &why);
	if (r == 0)
		r = join(a, i, now_s, &why);
	if (r == 0)
		r = tell(a, i, machine, now_s);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		a->counts.refused++;
		note_refusal(a, i, g->root, &why);
		agents_end(a, i, now_s);
		g->is_there = true;
		g->root = GRAPH_NONE;
		return 0;
	}
	count(a, i, g->root);
	for (unsigned int n = 0; n < wanted->nodes; n++)
		count(a, i, machine[n]);
	return 0;
}

/* --- a job goes ------------------------------------------------------------------------------ */

static void take_away(struct agents *a, const struct guest *g, uint32_t machine, double now_s)
{
	const struct job *j = job_at(a, g, machine);
	struct request q = { .verb = REQUEST_JOB_DEL };
	struct why why;

	if (!j)
		return;
	memcpy(q.name, j->name, sizeof(q.name));
	sim_agent_ask(a->site[machine].agent, &q, now_s, &why);
}

void agents_end(struct agents *a, uint32_t i, double now_s)
{
	struct guest *g = &a->guest[i];

	if (!g->is_there)
		return;
	if (g->root != GRAPH_NONE)
		take_away(a, g, g->root, now_s);
	for (unsigned int n = 0; n < g->nodes; n++)
		take_away(a, g, g->node[n], now_s);
	free(g->seat);
	*g = (struct guest){ 0 };
}

/* --- what becomes of it ---------------------------------------------------------------------- */

/* Jobs there that may still get slots. */
static unsigned int wanting(const struct agents *a, uint32_t machine)
{
	const struct books *b;
	unsigned int jobs = 0;

	if (!a->site[machine].agent || !is_node(a, machine))
		return 0;
	b = books_at(a, machine);
	for (unsigned int i = 0; i < b->jobs; i++)
		jobs += b->job[i]->run_window &&
			(b->job[i]->spilled || b->job[i]->borrows || b->job[i]->begin_by_ns);
	return jobs;
}

bool agents_wait(struct agents *a, double now_s)
{
	bool changed = false;

	for (uint32_t m = 0; m < a->topology->graph->machines; m++) {
		unsigned int before = wanting(a, m);

		if (before)
			sim_agent_wait(a->site[m].agent, now_s);
		changed |= before != wanting(a, m);
	}
	return changed;
}

double agents_deadline_s(const struct agents *a)
{
	double s = INFINITY;

	for (uint32_t m = 0; m < a->topology->graph->machines; m++)
		if (wanting(a, m))
			s = fmin(s, sim_agent_deadline_s(a->site[m].agent));
	return s;
}

/* Where the sums of a node that is left out go. */
static uint32_t parent_of(const struct place_tree *tree, const uint32_t *place, uint32_t n)
{
	uint32_t parent = tree->node[n].parent;

	while (parent != GRAPH_NONE && place[parent] == GRAPH_NONE)
		parent = tree->node[parent].parent;
	return parent == GRAPH_NONE ? GRAPH_NONE : place[parent];
}

void agents_tree(const struct agents *a, uint32_t i, const struct place_tree *tree,
		 struct place_tree *ret)
{
	const struct guest *g = &a->guest[i];
	bool has_root = a->workload->job[i].root != GRAPH_NONE;
	uint32_t place[PLACE_NODES_MAX];

	*ret = (struct place_tree){ 0 };
	for (uint32_t n = 0; n < tree->nodes; n++) {
		uint32_t machine = tree->node[n].machine;
		bool is_top = !has_root && n == 0; /* also in software */

		place[n] = GRAPH_NONE;
		if (!is_top && (g->root == GRAPH_NONE || share_of(a, i, machine) == NONE))
			continue;
		place[n] = ret->nodes;
		ret->node[ret->nodes++] = (struct place_node){ machine, parent_of(tree, place, n) };
	}
}

struct agents_counts agents_counts(const struct agents *a)
{
	struct agents_counts counts = a->counts;

	for (uint32_t m = 0; m < a->topology->graph->machines; m++) {
		const struct core_counts *c;

		if (!a->site[m].agent)
			continue;
		c = core_counts(sim_agent_core(a->site[m].agent));
		counts.rings_moved += c->runs_moved;
		counts.loans += c->loans;
		counts.recalled += c->loans_recalled;
		counts.refilled += c->runs_refilled;
	}
	return counts;
}

/* --- from the beginning to the end ----------------------------------------------------------- */

static int refuse_tenant(const struct agents *a, const struct workload_job *j, const char *name,
			 struct why *why)
{
	const unsigned int last = a->config->tenants - 1;

	if (last == 0)
		return why_say(why, -EINVAL,
			       "job %s is of tenant %u, and %s has the default tenant alone, which "
			       "is 0",
			       j->name, j->tenant, name);
	return why_say(why, -EINVAL,
		       "job %s is of tenant %u, and %s has tenants 0 (default) to %u (%s)", j->name,
		       j->tenant, name, last, a->config->tenant[last].name);
}

/* What the file wants of all machines must be possible at each. */
static int check(const struct agents *a, const char *name, struct why *why)
{
	const struct graph *g = a->topology->graph;
	const struct workload *w = a->workload;

	for (uint32_t m = 0; m < g->machines; m++)
		if (is_node(a, m) && g->machine[m].slots >= CONFIG_SLOTS_MIN &&
		    reserved(a->config) > g->machine[m].slots)
			return why_say(why, -EINVAL,
				       "%s: its tenants reserve %u slots, and node %s of the "
				       "network has %u",
				       name, reserved(a->config), a->topology->name[m],
				       g->machine[m].slots);
	for (unsigned int i = 0; i < w->jobs; i++)
		if (w->job[i].tenant >= a->config->tenants)
			return refuse_tenant(a, &w->job[i], name, why);
	return 0;
}

int agents_open(const struct topology *t, const struct workload *w, const char *name,
		const char *text, size_t length, uint64_t seed, struct agents **ret,
		struct why *why)
{
	_cleanup_(agents_freep) struct agents *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->topology = t;
	a->workload = w;
	a->seed = seed;
	a->site = calloc(t->graph->machines + 1, sizeof(*a->site));
	a->guest = calloc(w->jobs + 1, sizeof(*a->guest));
	if (!a->site || !a->guest)
		return -ENOMEM;
	r = config_parse(text, length, name, &a->config, why);
	if (r == 0)
		r = check(a, name, why);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(a);
	return 0;
}

void agents_free(struct agents *a)
{
	if (!a)
		return;
	for (uint32_t m = 0; a->site && m < a->topology->graph->machines; m++) {
		sim_agent_free(a->site[m].agent);
		free(a->site[m].config);
	}
	for (unsigned int i = 0; a->guest && i < a->workload->jobs; i++)
		free(a->guest[i].seat);
	free(a->site);
	free(a->guest);
	config_free(a->config);
	free(a);
}
