// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Jobs of a play as flows: the links that each uses, by its tree and its agents. */
#include <errno.h>
#include <math.h>

#include "common/owned.h"
#include "play_private.h"

struct place_job play_asked(const struct play *p, uint32_t i)
{
	const struct workload_job *j = &p->workload->job[i];

	return (struct place_job){
		.worker = j->worker,
		.workers = j->workers,
		.root = j->root,
		.bytes = j->bytes,
		.compute_s = j->compute_s,
		.weight = j->weight,
		.tenant = j->tenant,
		.slots = j->slots,
		.iterations = p->player[i].is_begun ? phases_left(p->phases, i) : j->iterations,
		.now = p->player[i].is_placed ? &p->result->job[i].tree : NULL,
		.stays = p->player[i].is_placed && !p->o->moves,
	};
}

static struct fair_flow flow_of(const struct play *p, uint32_t i)
{
	const struct player *player = &p->player[i];

	return (struct fair_flow){ .use = player->use,
				   .uses = player->uses,
				   .weight = p->workload->job[i].weight,
				   .limit = player->stands ? 0 : INFINITY };
}

/* As its agents have it, if there are any. */
static struct place_tree tree_of(const struct play *p, uint32_t i)
{
	struct place_tree tree = p->result->job[i].tree;

	if (p->o->agents)
		agents_tree(p->o->agents, i, &p->result->job[i].tree, &tree);
	return tree;
}

/* To the agents of its tree, after those of another one. */
int play_bring(struct play *p, uint32_t i)
{
	const struct workload_job *j = &p->workload->job[i];
	const struct place_tree *tree = &p->result->job[i].tree;
	uint32_t to[WORKLOAD_WORKERS_MAX];

	if (!p->o->agents || (j->root == GRAPH_NONE && !tree->nodes))
		return 0;
	for (unsigned int w = 0; w < j->workers; w++)
		to[w] = place_nearest(p->network.reach, j->worker[w], j->root, tree);
	agents_end(p->o->agents, i, phases_now(p->phases));
	return agents_begin(p->o->agents, i, tree, to, phases_now(p->phases));
}

static bool is_same_way(const struct player *p, const struct fair_use *use, unsigned int uses,
			bool stands)
{
	if (p->stands != stands || p->uses != uses)
		return false;
	for (unsigned int u = 0; u < uses; u++)
		if (p->use[u].link != use[u].link || p->use[u].times != use[u].times)
			return false;
	return true;
}

/* The links of a job as its tree and the network are now; moved: it stands still meanwhile. */
int play_lead(struct play *p, uint32_t i, bool moved)
{
	const struct place_job asked = play_asked(p, i);
	const struct place_tree tree = tree_of(p, i);
	struct player *player = &p->player[i];
	_cleanup_(freep) struct fair_use *use = NULL;
	struct fair_flow flow;
	unsigned int uses = 0;
	int r = play_network_uses(&p->network, &asked, &tree, &p->o->place, &use, &uses);

	if (r < 0 && r != -EHOSTUNREACH)
		return r;
	if (is_same_way(player, use, uses, r < 0) && !moved)
		return 0;
	/* `phases` lets go of the old links only when it has the new ones. */
	_cleanup_(freep) struct fair_use *old = player->use;
	player->use = TAKE_PTR(use);
	player->uses = uses;
	player->stands = r < 0;
	flow = flow_of(p, i);
	return phases_move(p->phases, i, &flow, moved ? p->o->place.move_s : 0);
}

/* The largest link that leaves a worker, by how many workers of the job are there. */
static double rate_of_worker(const struct play *p, const struct workload_job *j, uint32_t machine)
{
	const struct graph *g = p->topology->graph;
	unsigned int workers = 0;
	double rate = 0;

	for (uint32_t i = g->leaving_at[machine]; i < g->leaving_at[machine + 1]; i++)
		rate = fmax(rate, g->link[g->leaving[i]].capacity);
	for (unsigned int w = 0; w < j->workers; w++)
		workers += j->worker[w] == machine;
	return rate / workers;
}

static double ideal_s(const struct play *p, const struct workload_job *j)
{
	double rate = INFINITY;

	/* A worker on the root's host needs no link. */
	for (unsigned int w = 0; w < j->workers; w++)
		if (j->worker[w] != j->root)
			rate = fmin(rate, rate_of_worker(p, j, j->worker[w]));
	return j->iterations * (j->compute_s + j->bytes / rate);
}

/* Nothing has failed, and all the same nobody makes the job's results, or there is no way. */
static int refuse_begin(const struct play *p, uint32_t i)
{
	const char *words = "job %s: policy %s: the network has no way for it";

	if (p->workload->job[i].root == GRAPH_NONE)
		words = "job %s: policy %s gives it no node, and it has no root that "
			"could make the results: root=any";
	if (p->workload->job[i].root == GRAPH_NONE && p->result->job[i].without)
		words = "job %s: policy %s gives it no node that has room for it, and it has no "
			"root that could make the results: a policy that does not look at slots "
			"spreads jobs by --node-jobs; or root=any";
	return why_say(p->why, -EINVAL, words, p->workload->job[i].name, p->o->policy->name);
}

int play_begin(struct play *p, uint32_t i)
{
	const struct workload_job *j = &p->workload->job[i];
	const struct place_job asked = play_asked(p, i);
	const struct place_tree tree = tree_of(p, i);
	struct player *player = &p->player[i];
	struct phases_job job = { .compute_s = j->compute_s,
				  .bytes = j->bytes,
				  .iterations = j->iterations };
	int r = play_network_uses(&p->network, &asked, &tree, &p->o->place, &player->use,
				  &player->uses);

	if (r == -EHOSTUNREACH && !p->network.failed)
		return refuse_begin(p, i);
	if (r < 0 && r != -EHOSTUNREACH)
		return r;
	player->stands = r < 0;
	p->result->job[i].ideal_s = ideal_s(p, j);
	job.flow = flow_of(p, i);
	player->is_begun = true;
	return phases_begin(p->phases, i, &job);
}
