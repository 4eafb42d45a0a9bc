// SPDX-License-Identifier: GPL-2.0-only
/*
 * What InArt claims, measured beside other ways to route (docs/reproduction/inart.md):
 *
 *   inart [LINKS [WORKERS [ROOTS]]]   CSV: all cells, or those with these links, workers, roots
 *
 * The fat-tree of the paper's emulation (k = 6: 45 switches and 54 hosts), in Mbit/s: links of 20,
 * or of 10 to 30 by chance, roots of 20, switches that can each add 9.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/route.h"
#include "agent/policy/split.h"
#include "common/owned.h"
#include "sim/draw.h"
#include "sim/topology.h"
#include "tests/bench/past.h"
#include "tests/bench/spread.h"

enum {
	SEEDS = 10,
	POLICIES = 7,
	ATP = 3, /* their lines in `policies` */
	ATP_PAST = 4,
	WORKERS_MAX = 50,
	ROOTS_MAX = 6,
	NODES_MAX = 45,
};

#define LINK_RATE 20.0
#define ROOT_RATE 20.0
#define NODE_RATE 9.0

static const char *const policies[POLICIES] = {
	"inart", "r-inart", "grid", "atp", "atp-past", "lbmm", "direct",
};

static const struct cell {
	unsigned int workers, roots;
} cells[] = {
	{ 10, 4 }, { 20, 4 }, { 30, 4 }, { 40, 4 }, { 50, 4 },
	{ 40, 2 }, { 40, 3 }, { 40, 5 }, { 40, 6 },
};

struct instance {
	struct topology *t;
	uint32_t host[WORKERS_MAX + ROOTS_MAX], node[NODES_MAX];
	double share[ROOTS_MAX], root_room[ROOTS_MAX], node_room[NODES_MAX];
	struct route_problem p;
};

__attribute__((noreturn)) static void fail(const char *what, const char *why)
{
	fprintf(stderr, "inart: %s: %s\n", what, why);
	exit(1);
}

static void must(int r, const char *what)
{
	if (r < 0)
		fail(what, strerror(-r));
}

/* --- an instance ----------------------------------------------------------------------------- */

static void instance_close(struct instance *i) { topology_free(i->t); }

/* Both directions of a cable have one rate. */
static void draw_links(struct graph *g, bool mixed, uint64_t *random)
{
	for (uint32_t l = 0; l < g->links; l += 2)
		g->link[l].capacity = g->link[l + 1].capacity =
			mixed ? LINK_RATE * (0.5 + draw_unit(random)) : LINK_RATE;
}

/* Hosts in an order by chance: the first ones are workers, those behind them roots. */
static void draw_hosts(struct instance *i, unsigned int hosts, uint64_t *random)
{
	for (unsigned int n = 0; n < hosts; n++) {
		uint64_t other = n + draw_below(random, i->t->hosts - n);
		uint32_t host = i->t->host[other];

		i->t->host[other] = i->t->host[n];
		i->t->host[n] = i->host[n] = host;
	}
}

/*
 * InArt's first phase: shares as the roots' rooms are, which is one of its best splits (split.h). A
 * root takes in no more than its own link carries.
 */
static void split(struct instance *i)
{
	const struct graph *g = i->p.graph;
	double room[ROOTS_MAX];
	struct split_problem s = { i->p.workers, i->p.roots, i->p.nodes, room, i->node_room };

	for (unsigned int r = 0; r < i->p.roots; r++) {
		uint32_t link = g->arriving[g->arriving_at[i->p.root[r]]];

		room[r] = fmin(i->root_room[r], g->link[link].capacity);
	}
	must(split_by_room(&s, i->share), "split");
}

static void instance_open(bool mixed, const struct cell *c, uint64_t seed, struct instance *ret)
{
	struct why why = { "" };
	uint64_t random = seed;
	struct graph *g;

	*ret = (struct instance){ 0 };
	if (topology_shape("fat-tree:k=6", &ret->t, &why) < 0)
		fail("network", why.text);
	g = ret->t->graph;
	draw_links(g, mixed, &random);
	draw_hosts(ret, c->workers + c->roots, &random);
	ret->p = (struct route_problem){
		.graph = g,
		.worker = ret->host,
		.root = ret->host + c->workers,
		.node = ret->node,
		.workers = c->workers,
		.roots = c->roots,
		.share = ret->share,
		.root_room = ret->root_room,
		.node_room = ret->node_room,
	};
	for (uint32_t m = 0; m < g->machines; m++)
		if (g->machine[m].kind == GRAPH_NODE) {
			ret->node_room[ret->p.nodes] = NODE_RATE;
			ret->node[ret->p.nodes++] = m;
		}
	for (unsigned int r = 0; r < c->roots; r++)
		ret->root_room[r] = ROOT_RATE;
	split(ret);
}

/* --- cells ----------------------------------------------------------------------------------- */

/* With equal shares, as the route has them. */
static double rate_past(const struct instance *i, const struct route *r)
{
	struct route_problem equal = i->p;
	double share[ROOTS_MAX], rate;

	for (unsigned int s = 0; s < i->p.roots; s++)
		share[s] = 1.0 / i->p.roots;
	equal.share = share;
	rate = past_rate(&equal, r);
	if (rate < 0)
		fail("atp-past", "out of memory");
	return rate;
}

/* atp-past is atp, where what is too much for a node goes past it. */
static void decide(const struct instance *i, unsigned int policy, uint64_t seed, double *ret_rate,
		   double *ret_bound)
{
	const char *name = policies[policy == ATP_PAST ? ATP : policy];
	const struct route_options o = {
		.paths_max = 2, .nodes_max = 20, .draws = 2, .seed = seed, .tries = 200000
	};
	_cleanup_(route_freep) struct route *r = NULL;

	must(route_decide(route_policy_find(name), &i->p, &o, &r), name);
	*ret_rate = policy == ATP_PAST ? rate_past(i, r) : r->rate;
	*ret_bound = r->bound;
}

/* Rate and bound in Mbit/s, and how much less time InArt communicates; time is bytes by rate. */
static void print_policy(const char *cell, unsigned int policy, double (*rate)[SEEDS],
			 double bound[SEEDS])
{
	double figure[SEEDS];

	printf("%s,%s", cell, policies[policy]);
	memcpy(figure, rate[policy], sizeof(figure));
	spread_print(figure, SEEDS, VALUE);
	spread_print(bound, SEEDS, VALUE);
	for (unsigned int s = 0; s < SEEDS; s++)
		figure[s] = percent_less(rate[policy][s], rate[0][s]);
	spread_print(figure, SEEDS, PERCENT);
	printf("\n");
}

static void run_cell(bool mixed, const struct cell *c)
{
	double rate[POLICIES][SEEDS], bound[POLICIES][SEEDS];
	char name[64];

	for (unsigned int s = 0; s < SEEDS; s++) {
		_cleanup_(instance_close) struct instance i;

		instance_open(mixed, c, s + 1, &i);
		for (unsigned int p = 0; p < POLICIES; p++)
			decide(&i, p, s + 1, &rate[p][s], &bound[p][s]);
	}
	snprintf(name, sizeof(name), "%s,%u,%u", mixed ? "mixed" : "equal", c->workers, c->roots);
	for (unsigned int p = 0; p < POLICIES; p++)
		print_policy(name, p, rate, bound[p]);
	fflush(stdout);
}

static void print_header(void)
{
	static const char *const blocks[] = { "", "bound_", "inart_less_" };

	printf("links,workers,roots,policy");
	for (unsigned int b = 0; b < 3; b++)
		printf(",%smedian,%smean,%slow,%shigh", blocks[b], blocks[b], blocks[b], blocks[b]);
	printf("\n");
}

static bool is_wanted(int words, char **word, bool mixed, const struct cell *c)
{
	return (words < 2 || !strcmp(word[1], mixed ? "mixed" : "equal")) &&
	       (words < 3 || strtoul(word[2], NULL, 10) == c->workers) &&
	       (words < 4 || strtoul(word[3], NULL, 10) == c->roots);
}

int main(int argc, char **argv)
{
	print_header();
	for (int mixed = 0; mixed < 2; mixed++)
		for (size_t c = 0; c < sizeof(cells) / sizeof(*cells); c++)
			if (is_wanted(argc, argv, mixed, &cells[c]))
				run_cell(mixed, &cells[c]);
	return 0;
}
