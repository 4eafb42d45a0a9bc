// SPDX-License-Identifier: GPL-2.0-only
/*
 * What TAPINA and TAPINA-MG claim, measured beside other policies (docs/reproduction/tapina.md):
 *
 *   tapina [NETWORK [SIZES [JOBS]]]   CSV: all cells, or those of a network, of sizes, of so many
 * jobs
 *
 * All jobs communicate at once, for one iteration. A node that has summed all of a job makes its
 * result, as the authors' nodes do; where none has, the job's server does.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/place.h"
#include "common/file.h"
#include "common/owned.h"
#include "sim/phases.h"
#include "sim/workload.h"
#include "tests/bench/spread.h"

enum {
	SEEDS = 50,
	POLICIES = 9,
	TAPINA = 5, /* their lines in `policies` */
	TAPINA_MG = 6,
	TOPOLOGY_BYTES_MAX = 1 << 16,
	EXACT_JOBS_MAX = 10, /* it is for small cases */
};

#define SIZE_BYTES 1e6 /* of a gradient of size 1: the authors do not say */

static const char *const policies[POLICIES] = {
	"none", "random", "tor", "k-median", "soar", "tapina", "tapina-mg", "traffic", "exact",
};

/* Of each network: who makes results where no node does. */
static const struct network {
	const char *name, *words, *root;
} networks[] = {
	{ "tapina", NULL, "server" },
	{ "fat-tree-4", "fat-tree:k=4,rate=1gbit", "any" },
	{ "fat-tree-6", "fat-tree:k=6,rate=1gbit", "any" },
	{ "fat-tree-8", "fat-tree:k=8,rate=1gbit", "any" },
};

static const struct sizes {
	const char *name, *bytes;
} sizes[] = {
	{ "uniform", "1..19" },
	{ "zipf", "zipf:1..19:1" },
};

/* At most so many nodes sum, for at most so many jobs each. */
static const struct load {
	unsigned int jobs, nodes, node_jobs;
} loads[] = {
	{ 5, 3, 2 },
	{ 10, 4, 2 },
	{ 20, 5, 4 },
	{ 40, 8, 5 },
};

struct figures {
	double bytes; /* on all links, with results */
	double fullest; /* bytes on the fullest link */
	double completion; /* mean of jobs, in seconds */
};

static const struct measure {
	const char *name;
	size_t offset;
} measures[] = {
	{ "bytes", offsetof(struct figures, bytes) },
	{ "fullest", offsetof(struct figures, fullest) },
	{ "completion", offsetof(struct figures, completion) },
};

enum {
	MEASURES_COUNT = sizeof(measures) / sizeof(*measures),
};

struct instance {
	struct topology *t;
	struct reach *reach;
	struct workload *w;
	struct place_job *job;
	double *capacity;
	struct place_problem p;
};

__attribute__((noreturn)) static void fail(const char *what, const char *why)
{
	fprintf(stderr, "tapina: %s: %s\n", what, why);
	exit(1);
}

static void must(int r, const char *what)
{
	if (r < 0)
		fail(what, strerror(-r));
}

/* --- an instance ----------------------------------------------------------------------------- */

static void instance_close(struct instance *i)
{
	free(i->capacity);
	free(i->job);
	workload_free(i->w);
	reach_free(i->reach);
	topology_free(i->t);
}

static void read_network(const struct network *n, struct topology **ret)
{
	static const char path[] = "tests/bench/tapina.topology";
	_cleanup_(freep) char *text = NULL;
	struct why why = { "" };
	size_t length;
	int r;

	if (n->words) {
		r = topology_shape(n->words, ret, &why);
	} else {
		must(file_read(path, TOPOLOGY_BYTES_MAX, &text, &length), path);
		r = topology_testbed(text, length, &TOPOLOGY_DEFAULTS, ret, &why);
	}
	if (r < 0)
		fail(n->name, why.text);
}

static void instance_open(const struct network *n, const struct sizes *s, const struct load *l,
			  uint64_t seed, struct instance *ret)
{
	struct why why = { "" };
	char text[256];
	int length = snprintf(text, sizeof(text),
			      "jobs j count=%u bytes=%s workers=3..6 root=%s slots=1\n", l->jobs,
			      s->bytes, n->root);

	*ret = (struct instance){ 0 };
	read_network(n, &ret->t);
	must(reach_make(ret->t->graph, &ret->reach), "distances");
	if (workload_parse("jobs", text, length, ret->t, seed, &ret->w, &why) < 0)
		fail("workload", why.text);
	ret->job = calloc(l->jobs, sizeof(*ret->job));
	ret->capacity = calloc(ret->t->graph->links, sizeof(*ret->capacity));
	if (!ret->job || !ret->capacity)
		fail("instance", "out of memory");
	for (unsigned int j = 0; j < l->jobs; j++)
		ret->job[j] = (struct place_job){ .worker = ret->w->job[j].worker,
						  .workers = ret->w->job[j].workers,
						  .root = ret->w->job[j].root,
						  .bytes = SIZE_BYTES * ret->w->job[j].bytes,
						  .weight = 1,
						  .slots = 1,
						  .iterations = 1 };
	for (uint32_t i = 0; i < ret->t->graph->links; i++)
		ret->capacity[i] = ret->t->graph->link[i].capacity;
	ret->p = (struct place_problem){ ret->reach, ret->job, l->jobs, PLACE_OPTIONS };
	ret->p.options.nodes_max = l->nodes;
	ret->p.options.jobs_max = l->node_jobs;
	ret->p.options.seed = seed;
}

/* --- what a decision comes to ---------------------------------------------------------------- */

static bool has_a_top(const struct place_tree *tree)
{
	unsigned int tops = 0;

	for (unsigned int n = 0; n < tree->nodes; n++)
		tops += tree->node[n].parent == GRAPH_NONE;
	return tops == 1;
}

static void flow_of(struct instance *i, uint32_t j, const struct place_tree *tree,
		    struct fair_use **ret_use, struct phases_job *ret)
{
	uint32_t root = i->job[j].root;

	*ret = (struct phases_job){ .bytes = i->job[j].bytes,
				    .iterations = 1,
				    .flow = { .weight = 1, .limit = INFINITY } };
	if (has_a_top(tree))
		i->job[j].root = GRAPH_NONE;
	must(place_uses(&i->p, j, tree, ret_use, &ret->flow.uses), "flows");
	ret->flow.use = *ret_use;
	i->job[j].root = root;
}

static struct figures figures_of(struct instance *i, const struct place_tree *tree)
{
	unsigned int jobs = i->p.jobs, links = i->t->graph->links;
	_cleanup_(freep) struct phases_job *job = calloc(jobs, sizeof(*job));
	_cleanup_(freep) struct phases_result *result = calloc(jobs, sizeof(*result));
	_cleanup_(freep) struct fair_use **use = calloc(jobs, sizeof(struct fair_use *));
	_cleanup_(freep) double *carried = calloc(links, sizeof(*carried));
	struct figures f = { 0 };

	if (!job || !result || !use || !carried)
		fail("figures", "out of memory");
	for (uint32_t j = 0; j < jobs; j++)
		flow_of(i, j, &tree[j], &use[j], &job[j]);
	must(phases_run(i->capacity, links, job, jobs, result, carried), "simulation");
	for (uint32_t l = 0; l < links; l++) {
		f.bytes += carried[l];
		f.fullest = fmax(f.fullest, carried[l]);
	}
	for (uint32_t j = 0; j < jobs; j++) {
		f.completion += result[j].ended_s / jobs;
		free(use[j]);
	}
	return f;
}

static struct figures decided(struct instance *i, const char *name)
{
	_cleanup_(freep) struct place_tree *tree = calloc(i->p.jobs, sizeof(*tree));
	unsigned int without;

	must(place_decide(place_policy_find(name), &i->p, tree, &without), name);
	return figures_of(i, tree);
}

/* The authors do not say what TAPINA's distance is: here the one with the least traffic. */
static struct figures decided_by_tapina(struct instance *i)
{
	struct figures best = { .bytes = INFINITY };

	for (int halves = 4; halves <= 8; halves++) {
		struct figures f;

		i->p.options.distance_max = halves / 2.0;
		f = decided(i, "tapina");
		if (f.bytes < best.bytes)
			best = f;
	}
	return best;
}

/* --- cells ----------------------------------------------------------------------------------- */

static bool is_asked(const struct network *n, const struct load *l, unsigned int policy)
{
	return strcmp(policies[policy], "exact") != 0 || (!n->words && l->jobs <= EXACT_JOBS_MAX);
}

static double member(const struct figures *f, size_t offset)
{
	return *(const double *)((const char *)f + offset);
}

/* The measure itself, and how much less TAPINA and TAPINA-MG have. */
static void print_measure(struct figures (*f)[SEEDS], unsigned int policy, size_t offset)
{
	static const unsigned int less[] = { TAPINA, TAPINA_MG };
	double figure[SEEDS];

	for (unsigned int s = 0; s < SEEDS; s++)
		figure[s] = member(&f[policy][s], offset);
	spread_print(figure, SEEDS, VALUE);
	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int s = 0; s < SEEDS; s++)
			figure[s] = percent_less(member(&f[less[i]][s], offset),
						 member(&f[policy][s], offset));
		spread_print(figure, SEEDS, PERCENT);
	}
	printf("\n");
}

static void run_cell(const struct network *n, const struct sizes *z, const struct load *l)
{
	struct figures f[POLICIES][SEEDS];

	for (unsigned int s = 0; s < SEEDS; s++) {
		_cleanup_(instance_close) struct instance i;

		instance_open(n, z, l, s + 1, &i);
		for (unsigned int p = 0; p < POLICIES; p++)
			if (is_asked(n, l, p))
				f[p][s] = p == TAPINA ? decided_by_tapina(&i)
						      : decided(&i, policies[p]);
	}
	for (unsigned int p = 0; p < POLICIES; p++)
		for (size_t m = 0; is_asked(n, l, p) && m < MEASURES_COUNT; m++) {
			printf("%s,%s,%u,%u,%u,%s,%s", n->name, z->name, l->jobs, l->nodes,
			       l->node_jobs, policies[p], measures[m].name);
			print_measure(f, p, measures[m].offset);
		}
	fflush(stdout);
}

static bool is_wanted(int words, char **word, int at, const char *name)
{
	return words <= at || !strcmp(word[at], name);
}

static void print_header(void)
{
	static const char *const blocks[] = { "", "tapina_less_", "tapina_mg_less_" };

	printf("network,sizes,jobs,nodes,node_jobs,policy,measure");
	for (unsigned int b = 0; b < 3; b++)
		printf(",%smedian,%smean,%slow,%shigh", blocks[b], blocks[b], blocks[b], blocks[b]);
	printf("\n");
}

int main(int argc, char **argv)
{
	char jobs[16];

	print_header();
	for (size_t n = 0; n < sizeof(networks) / sizeof(*networks); n++)
		for (size_t z = 0; z < sizeof(sizes) / sizeof(*sizes); z++)
			for (size_t l = 0; l < sizeof(loads) / sizeof(*loads); l++) {
				snprintf(jobs, sizeof(jobs), "%u", loads[l].jobs);
				if (is_wanted(argc, argv, 1, networks[n].name) &&
				    is_wanted(argc, argv, 2, sizes[z].name) &&
				    is_wanted(argc, argv, 3, jobs))
					run_cell(&networks[n], &sizes[z], &loads[l]);
			}
	return 0;
}
