/* SPDX-License-Identifier: GPL-2.0-only */
/* Random jobs on networks, for figures of placements; a number is a seed. */
#ifndef TALLY_TESTS_BENCH_PLACE_CASES_H
#define TALLY_TESTS_BENCH_PLACE_CASES_H

#include <stdio.h>
#include <stdlib.h>

#include "agent/policy/place.h"
#include "agent/policy/random.h"
#include "sim/topology.h"

struct place_case {
	struct topology *t;
	struct reach *reach;
	struct place_job *job;
	uint32_t *worker; /* [jobs][PLACE_WORKERS_MAX] */
	struct place_problem p;
	uint64_t random;
};

static inline uint32_t case_below(struct place_case *c, uint32_t limit)
{
	return random_bits(&c->random) % limit;
}

static inline void place_case_close(struct place_case *c)
{
	reach_free(c->reach);
	topology_free(c->t);
	free(c->job);
	free(c->worker);
}

static inline void place_case_open(const char *words, unsigned int jobs, uint64_t seed,
				   struct place_case *ret)
{
	struct why why = { .text = "out of memory" };

	*ret = (struct place_case){ .random = seed };
	ret->job = calloc(jobs + 1, sizeof(*ret->job));
	ret->worker = calloc((size_t)jobs * PLACE_WORKERS_MAX + 1, sizeof(*ret->worker));
	if (!ret->job || !ret->worker || topology_shape(words, &ret->t, &why) < 0 ||
	    reach_make(ret->t->graph, &ret->reach) < 0) {
		fprintf(stderr, "%s: %s\n", words, why.text);
		exit(1);
	}
	ret->p = (struct place_problem){
		.reach = ret->reach, .job = ret->job, .jobs = jobs, .options = PLACE_OPTIONS
	};
	ret->p.options.seed = seed;
}

/* A job of `workers` workers: neighbours from some host on, or, one time of four, anywhere. */
static inline void place_case_job(struct place_case *c, uint32_t j, unsigned int workers)
{
	unsigned int hosts = c->t->hosts, first = case_below(c, hosts);
	bool anywhere = case_below(c, 4) == 0;
	uint32_t *worker = c->worker + (size_t)j * PLACE_WORKERS_MAX;

	for (unsigned int w = 0; w < workers; w++)
		worker[w] = c->t->host[anywhere ? case_below(c, hosts) : (first + w) % hosts];
	c->job[j] = (struct place_job){ .worker = worker,
					.workers = workers,
					.root = c->t->host[case_below(c, hosts)],
					.bytes = 1e6 * (20 + case_below(c, 500)),
					.compute_s = 0.01 * (1 + case_below(c, 20)),
					.weight = 1 + case_below(c, 2),
					.tenant = case_below(c, 4),
					.slots = 256,
					.iterations = 1000 };
	if (case_below(c, 5) == 0)
		c->job[j].root = GRAPH_NONE;
}

/* Others use up to 60 % of every third link. */
static inline void place_case_loads(struct place_case *c)
{
	const struct graph *g = c->t->graph;

	for (uint32_t l = 0; l < g->links; l++)
		if (case_below(c, 3) == 0)
			g->link[l].load = g->link[l].capacity * case_below(c, 60) / 100;
}

/* Three jobs on a network of 5 or 6 nodes; at most 2 nodes a tree. */
static inline void place_case_small(uint64_t seed, struct place_case *ret)
{
	static const char *const words[] = { "leaf-spine:leaves=3,spines=2,hosts=3",
					     "leaf-spine:leaves=4,spines=2,hosts=2",
					     "dragonfly:routers=2,hosts=2,global=1" };

	place_case_open(words[seed % 3], 3, seed, ret);
	for (uint32_t j = 0; j < 3; j++)
		place_case_job(ret, j, 2 + case_below(ret, 5));
	place_case_loads(ret);
	ret->p.options.tree_max = 2;
	ret->p.options.nodes_max = 2 + case_below(ret, 4);
	ret->p.options.jobs_max = 1 + case_below(ret, 3);
}

static inline void place_case_middle(uint64_t seed, struct place_case *ret)
{
	place_case_open("fat-tree:k=8", 40, seed, ret);
	for (uint32_t j = 0; j < 40; j++)
		place_case_job(ret, j, 4 + case_below(ret, 9));
	place_case_loads(ret);
	ret->p.options.nodes_max = 12;
	ret->p.options.jobs_max = 8;
}

static inline void place_case_large(uint64_t seed, unsigned int jobs, struct place_case *ret)
{
	place_case_open("fat-tree:k=28", jobs, seed, ret);
	for (uint32_t j = 0; j < jobs; j++)
		place_case_job(ret, j, 4 + case_below(ret, 13));
	place_case_loads(ret);
}

#endif
