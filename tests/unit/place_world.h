/* SPDX-License-Identifier: GPL-2.0-only */
/* Random jobs on random networks for tests of placements, and on the network of TAPINA's authors.
 */
#ifndef TALLY_TESTS_UNIT_PLACE_WORLD_H
#define TALLY_TESTS_UNIT_PLACE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/policy/place.h"
#include "random.h"
#include "sim/topology.h"

enum {
	PLACE_WORLD_JOBS = 8,
	PLACE_WORLD_WORKERS = 8,
};

struct place_world {
	struct topology *t;
	struct reach *reach;
	uint32_t worker[PLACE_WORLD_JOBS][PLACE_WORLD_WORKERS];
	struct place_job job[PLACE_WORLD_JOBS];
	struct place_tree now[PLACE_WORLD_JOBS];
	struct place_problem p;
};

static inline void place_world_close(struct place_world *w)
{
	reach_free(w->reach);
	topology_free(w->t);
}

static inline void place_world_open(const char *words, struct place_world *ret)
{
	struct why why;

	*ret = (struct place_world){ 0 };
	if (topology_shape(words, &ret->t, &why) < 0)
		fail_msg("%s: %s", words, why.text);
	assert_int_equal(reach_make(ret->t->graph, &ret->reach), 0);
	ret->p = (struct place_problem){ .reach = ret->reach,
					 .job = ret->job,
					 .options = PLACE_OPTIONS };
}

/* One more job; its workers and root are the caller's to fill in. */
static inline struct place_job *place_world_job(struct place_world *w, unsigned int workers,
						double bytes)
{
	unsigned int j = w->p.jobs++;

	w->job[j] = (struct place_job){ .worker = w->worker[j],
					.workers = workers,
					.root = GRAPH_NONE,
					.bytes = bytes,
					.compute_s = 0.01,
					.weight = 1,
					.iterations = 1000 };
	return &w->job[j];
}

static inline uint32_t random_host(uint64_t *random, const struct topology *t)
{
	return t->host[random_below(random, t->hosts)];
}

/* Jobs of 2 to 6 workers, most with a root, of up to three tenants; links with loads of others. */
static inline void place_world_random(uint64_t *random, unsigned int jobs, struct place_world *w)
{
	const struct graph *g = w->t->graph;

	for (unsigned int j = 0; j < jobs; j++) {
		unsigned int workers = 2 + random_below(random, 5);
		struct place_job *job = place_world_job(w, workers,
							1e6 * (1 + random_below(random, 100)));

		for (unsigned int i = 0; i < workers; i++)
			w->worker[j][i] = random_host(random, w->t);
		job->root = chance(random, 800) ? random_host(random, w->t) : GRAPH_NONE;
		job->compute_s = 0.001 * random_below(random, 50);
		job->weight = 1 + random_below(random, 3);
		job->tenant = random_below(random, 3);
		job->slots = random_below(random, 512);
	}
	for (uint32_t l = 0; l < g->links; l++)
		if (chance(random, 300))
			g->link[l].load = g->link[l].capacity * random_below(random, 100) / 100;
	w->p.options.seed = random_next(random);
}

static const char *const place_world_words[] = {
	"tapina:slots=1024", "leaf-spine:leaves=3,spines=2,hosts=3,slots=1024",
	"fat-tree:k=4,slots=1024", "dragonfly:routers=2,hosts=2,global=1,slots=1024"
};

/* Up to `jobs_max` jobs on one of the networks above, with limits. */
static inline void place_world_any(uint64_t *random, unsigned int jobs_max, struct place_world *ret)
{
	unsigned int networks = sizeof(place_world_words) / sizeof(*place_world_words);

	place_world_open(place_world_words[random_below(random, networks)], ret);
	place_world_random(random, 1 + random_below(random, jobs_max), ret);
	ret->p.options.nodes_max = 1 + random_below(random, 6);
	ret->p.options.jobs_max = 1 + random_below(random, 4);
	ret->p.options.tree_max = 1 + random_below(random, 4);
}

#endif
