// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which way vectors go; TALLY_SEED=n runs one random network. Other instances than those that the
 * search was made with: TALLY_SEED=1001 TALLY_SEEDS=1000.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/policy/route.h"
#include "agent/policy/route_private.h"
#include "agent/policy/split.h"
#include "common/owned.h"
#include "random.h"
#include "scarce.h"

enum {
	MACHINES_MAX = 128,
	LINKS_MAX = 512,
	WORKERS_MAX = 64,
	ROOTS_MAX = 4,
	NODES_MAX = 64,
	NETWORKS = 200, /* each with all routes counted through */
	ROUTES_MAX = 20000, /* of such a network */
	INSTANCES = 200, /* compared with the best by branch and bound */
	STEPS_MAX = 20000, /* for each of these */
	TRIES = 500, /* of each of 200 draws */
	INSTANCES_MAX = 10000, /* by TALLY_SEEDS */
};

/* A network under construction, and a problem on it. */
struct world {
	struct graph_machine machine[MACHINES_MAX];
	struct graph_link link[LINKS_MAX];
	unsigned int machines, links;
	uint32_t worker[WORKERS_MAX], root[ROOTS_MAX], node[NODES_MAX];
	double share[ROOTS_MAX], root_room[ROOTS_MAX], node_room[NODES_MAX];
	struct graph *g;
	struct route_problem p;
};

static void world_close(struct world *w) { graph_free(w->g); }

static uint32_t add_machine(struct world *w, enum graph_kind kind)
{
	assert_true(w->machines < MACHINES_MAX);
	w->machine[w->machines] = (struct graph_machine){ .kind = kind };
	return w->machines++;
}

static void join(struct world *w, uint32_t a, uint32_t b, double capacity)
{
	assert_true(w->links + 2 <= LINKS_MAX);
	w->link[w->links++] = (struct graph_link){ a, b, capacity, 0 };
	w->link[w->links++] = (struct graph_link){ b, a, capacity, 0 };
}

static void add_worker(struct world *w, uint32_t machine)
{
	assert_true(w->p.workers < WORKERS_MAX);
	w->worker[w->p.workers++] = machine;
}

static void add_root(struct world *w, uint32_t machine, double room)
{
	assert_true(w->p.roots < ROOTS_MAX);
	w->root_room[w->p.roots] = room;
	w->root[w->p.roots++] = machine;
}

static uint32_t add_node(struct world *w, double room)
{
	assert_true(w->p.nodes < NODES_MAX);
	w->node_room[w->p.nodes] = room;
	w->node[w->p.nodes] = add_machine(w, GRAPH_NODE);
	return w->node[w->p.nodes++];
}

/* What has been added is a problem now, with equal shares. */
static void make(struct world *w)
{
	assert_int_equal(graph_make(w->machine, w->machines, w->link, w->links, &w->g), 0);
	for (unsigned int s = 0; s < w->p.roots; s++)
		w->share[s] = 1.0 / w->p.roots;
	w->p.graph = w->g;
	w->p.worker = w->worker;
	w->p.root = w->root;
	w->p.node = w->node;
	w->p.share = w->share;
	w->p.root_room = w->root_room;
	w->p.node_room = w->node_room;
}

static const struct route_options FEW = { .paths_max = 2, .nodes_max = 2, .draws = 50, .seed = 1 };

static struct route *decided(const char *name, const struct world *w, const struct route_options *o)
{
	struct route *r;

	assert_int_equal(route_decide(route_policy_find(name), &w->p, o, &r), 0);
	return r;
}

static bool is_close(double a, double b) { return a == b || fabs(a - b) < 1e-6 * fmax(a, b); }

static void is_near(double a, double b) { assert_true(fabs(a - b) < 5e-6); }

static void policy_gives(const struct world *w, const char *name, double rate)
{
	_cleanup_(route_freep) struct route *r = decided(name, w, &FEW);
	double anew;

	is_near(r->rate, rate);
	assert_int_equal(route_rate(&w->p, r, &anew), 0);
	assert_true(is_close(anew, r->rate));
}

/* --- InArt's example ------------------------------------------------------------------------- */

/*
 * Figure 1: six workers, two roots, two nodes of 6, links of 6. Half of all workers are behind
 * each node, and so is a root.
 */
static void example(struct world *w, double first, double second)
{
	uint32_t node[2], root;

	*w = (struct world){ 0 };
	for (int n = 0; n < 2; n++)
		node[n] = add_node(w, 6);
	join(w, node[0], node[1], 6);
	for (int i = 0; i < 8; i++) {
		uint32_t host = add_machine(w, GRAPH_HOST);

		join(w, host, node[i / 4], 6);
		if (i % 4 < 3)
			add_worker(w, host);
	}
	for (int n = 0; n < 2; n++) {
		root = node[1] + 4 * (uint32_t)(n + 1);
		add_root(w, root, n ? second : first);
	}
	make(w);
}

static void set_shares(struct world *w, double first)
{
	w->share[0] = first;
	w->share[1] = 1 - first;
}

static double bound_of(const struct world *w)
{
	_cleanup_(route_freep) struct route *r = decided("inart", w, &FEW);

	return r->bound;
}

static void inarts_example_has_its_rates(void **state)
{
	_cleanup_(world_close) struct world w;

	example(&w, 4, 4);
	policy_gives(&w, "direct", 4.0 / 3);
	policy_gives(&w, "lbmm", 4.0 / 3);
	policy_gives(&w, "atp", 2);
	policy_gives(&w, "inart", 8.0 / 3);
	policy_gives(&w, "search", 8.0 / 3);
	is_near(bound_of(&w), 3);
	set_shares(&w, 0.6);
	policy_gives(&w, "inart", 2.5);
	policy_gives(&w, "search", 2.5);
	is_near(bound_of(&w), 3);
}

/* Between the nodes there is next to no room; GRID does not see that, and sends by it. */
static void grid_knows_no_links(void **state)
{
	_cleanup_(world_close) struct world w;
	_cleanup_(route_freep) struct route *grid = NULL;

	example(&w, 4, 4);
	w.g->link[0].capacity = w.g->link[1].capacity = 0.5;
	grid = decided("grid", &w, &FEW);
	is_near(grid->bound, 3);
	assert_true(bound_of(&w) < 2);
	assert_true(grid->rate <= bound_of(&w));
}

static void a_split_pays_where_roots_differ(void **state)
{
	_cleanup_(world_close) struct world w;

	example(&w, 6, 2);
	policy_gives(&w, "inart", 2);
	policy_gives(&w, "search", 2);
	set_shares(&w, 0.8);
	policy_gives(&w, "inart", 2.5);
	policy_gives(&w, "search", 2.5);
	set_shares(&w, 0.75);
	is_near(bound_of(&w), 3);
}

static int rate_of_split(void *context, const double *share, double *ret)
{
	const struct world *w = context;
	_cleanup_(route_freep) struct route *r = NULL;
	struct route_problem p = w->p;
	int error;

	p.share = share;
	error = route_inart(&p, &FEW, &r);
	if (error == 0)
		*ret = r->rate;
	return error;
}

/* Both phases together: the split that the second one makes most of. */
static void a_search_finds_the_split_that_pays(void **state)
{
	_cleanup_(world_close) struct world w;
	struct split_problem p;
	double share[2], rate;

	example(&w, 6, 2);
	p = (struct split_problem){ w.p.workers, w.p.roots, w.p.nodes, w.root_room, w.node_room };
	assert_int_equal(split_search(&p, 10, rate_of_split, &w, share, &rate), 0);
	print_message("6 and 2: %.2f to %.2f, rate %.4f\n", share[0], share[1], rate);
	assert_true(rate > 2.5 - 1e-6 && rate < 3 + 1e-6);
}

/* --- GRID's example -------------------------------------------------------------------------- */

/*
 * Figure 1 of GRID: three switches of 9 with four, two and two workers, each with a link of 3 to
 * the root, which takes in 9, and to one another.
 */
static void grids_example(struct world *w)
{
	static const unsigned int behind[] = { 4, 2, 2 };
	uint32_t root;

	*w = (struct world){ 0 };
	for (int n = 0; n < 3; n++)
		add_node(w, 9);
	root = add_machine(w, GRAPH_HOST);
	for (int n = 0; n < 3; n++) {
		join(w, w->node[n], root, 3);
		join(w, w->node[n], w->node[(n + 1) % 3], 3);
		for (unsigned int i = 0; i < behind[n]; i++) {
			uint32_t host = add_machine(w, GRAPH_HOST);

			join(w, host, w->node[n], 3);
			add_worker(w, host);
		}
	}
	add_root(w, root, 9);
	make(w);
}

/*
 * Geryon sums nothing, and sends by the links with least load: 1. ATP's 2.43 is 39/16: the first
 * switch adds 9/4 of each worker, and the rest goes past it. Of our ways the mixture is the one
 * that divides a worker's vector so; where all of it goes through the node, the rate is 9/4.
 */
static void grids_example_has_its_rates(void **state)
{
	static const struct route_options nearest = { .paths_max = 1, .nodes_max = 1, .draws = 1 };
	static const struct route_options all = { 2, 3, 20, 1, 0, 500 };
	_cleanup_(world_close) struct world w;
	_cleanup_(route_freep) struct route *atp = NULL, *inart = NULL;
	double best = 0;

	grids_example(&w);
	policy_gives(&w, "direct", 3.0 / 4);
	policy_gives(&w, "lbmm", 1);
	policy_gives(&w, "atp", 9.0 / 4);
	atp = decided("inart", &w, &nearest);
	is_near(atp->bound, 39.0 / 16);
	inart = decided("inart", &w, &all);
	is_near(inart->rate, 3);
	is_near(inart->bound, 3);
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct route_options o = { .paths_max = 1, .nodes_max = 3, .draws = 1 };
		_cleanup_(route_freep) struct route *grid = NULL;

		o.seed = seed;
		grid = decided("grid", &w, &o);
		best = fmax(best, grid->rate);
	}
	is_near(best, 3); /* which a draw finds or does not: GRID's mixture knows no links */
}

/* --- an obvious version ---------------------------------------------------------------------- */

/* All routes of a small network, one after another. Paths are found by trying all links. */
struct all {
	const struct world *w;
	unsigned int count[MACHINES_MAX][MACHINES_MAX]; /* of paths */
	struct graph_path path[8][8][16];
	struct route_way way[8];
	bool sums[NODES_MAX][ROOTS_MAX];
	struct graph_path on[NODES_MAX][ROOTS_MAX];
	unsigned int routes;
	double best;
};

static void paths_from(struct all *a, uint32_t from, uint32_t at, bool *been,
		       struct graph_path *now)
{
	const struct graph *g = a->w->g;

	assert_true(a->count[from][at] < 16);
	a->path[from][at][a->count[from][at]++] = *now;
	if (now->links > 0 && g->machine[at].kind == GRAPH_HOST)
		return;
	been[at] = true;
	for (uint32_t i = 0; i < g->links; i++) {
		if (g->link[i].from != at || been[g->link[i].to])
			continue;
		now->link[now->links++] = i;
		paths_from(a, from, g->link[i].to, been, now);
		now->links--;
	}
	been[at] = false;
}

static void use(double *load, const struct graph_path *path, double amount)
{
	for (unsigned int i = 0; i < path->links; i++)
		load[path->link[i]] += amount;
}

/* What the network bears, of the route that stands in `a`. */
static double rate_of(const struct all *a)
{
	double link[LINKS_MAX] = { 0 }, node[NODES_MAX] = { 0 }, root[ROOTS_MAX] = { 0 };
	const struct route_problem *p = &a->w->p;
	double rate = INFINITY;

	for (unsigned int i = 0; i < p->workers * p->roots; i++) {
		double amount = p->share[i % p->roots];

		use(link, &a->way[i].path, amount);
		*(a->way[i].node == ROUTE_NONE ? &root[i % p->roots]
					       : &node[a->way[i].node]) += amount;
	}
	for (unsigned int v = 0; v < p->nodes; v++)
		for (unsigned int s = 0; s < p->roots; s++)
			if (a->sums[v][s]) {
				use(link, &a->on[v][s], p->share[s]);
				root[s] += p->share[s];
			}
	for (unsigned int i = 0; i < p->graph->links; i++)
		if (link[i] > 0)
			rate = fmin(rate, graph_room(&p->graph->link[i]) / link[i]);
	for (unsigned int v = 0; v < p->nodes; v++)
		if (node[v] > 0)
			rate = fmin(rate, p->node_room[v] / node[v]);
	for (unsigned int s = 0; s < p->roots; s++)
		if (root[s] > 0)
			rate = fmin(rate, p->root_room[s] / root[s]);
	return rate;
}

/* The paths on of all nodes that sum. */
static void try_on(struct all *a, unsigned int pair)
{
	const struct route_problem *p = &a->w->p;
	unsigned int v, s;

	if (a->routes > ROUTES_MAX)
		return;
	if (pair == p->nodes * p->roots) {
		a->routes++;
		a->best = fmax(a->best, rate_of(a));
		return;
	}
	v = pair / p->roots;
	s = pair % p->roots;
	for (unsigned int i = 0; a->sums[v][s] && i < a->count[p->node[v]][p->root[s]]; i++) {
		a->on[v][s] = a->path[p->node[v]][p->root[s]][i];
		try_on(a, pair + 1);
	}
	if (!a->sums[v][s])
		try_on(a, pair + 1);
}

static void try_ways(struct all *a, unsigned int pair)
{
	const struct route_problem *p = &a->w->p;
	uint32_t worker, root, s = pair % p->roots;

	if (pair == p->workers * p->roots) {
		try_on(a, 0);
		return;
	}
	worker = p->worker[pair / p->roots];
	root = p->root[s];
	for (unsigned int i = 0; i < a->count[worker][root]; i++) {
		a->way[pair] = (struct route_way){ ROUTE_NONE, a->path[worker][root][i] };
		try_ways(a, pair + 1);
	}
	for (uint32_t v = 0; v < p->nodes; v++) {
		bool before = a->sums[v][s];

		a->sums[v][s] = true;
		for (unsigned int i = 0; i < a->count[worker][p->node[v]]; i++) {
			a->way[pair] = (struct route_way){ v, a->path[worker][p->node[v]][i] };
			try_ways(a, pair + 1);
		}
		a->sums[v][s] = before;
	}
}

/* Below 0: there are too many routes to count through. */
static double best_of_all(const struct world *w)
{
	static struct all a;
	bool been[MACHINES_MAX] = { 0 };
	struct graph_path now = { 0 };

	memset(&a, 0, sizeof(a));
	a.w = w;
	for (uint32_t from = 0; from < w->machines; from++)
		paths_from(&a, from, from, been, &now);
	try_ways(&a, 0);
	return a.routes > ROUTES_MAX ? -1 : a.best;
}

/* --- small random networks ------------------------------------------------------------------- */

static double amount(uint64_t *random) { return 1 + random_below(random, 9); }

/* Two nodes and a router, some cables between them, and hosts behind them. */
static void random_world(uint64_t *random, struct world *w)
{
	uint32_t inner[3];

	*w = (struct world){ 0 };
	inner[0] = add_node(w, chance(random, 100) ? 0 : amount(random));
	inner[1] = add_node(w, amount(random));
	inner[2] = add_machine(w, GRAPH_ROUTER);
	join(w, inner[0], inner[2], amount(random));
	join(w, inner[1], inner[2], amount(random));
	if (chance(random, 500))
		join(w, inner[0], inner[1], amount(random));
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t host = add_machine(w, GRAPH_HOST);

		join(w, host, inner[random_below(random, 3)], amount(random));
		if (i > 0 && chance(random, 100))
			join(w, host, inner[random_below(random, 3)], amount(random));
		if (i < 2)
			add_worker(w, host);
		else if (i == 2 || chance(random, 400))
			add_root(w, host, amount(random));
	}
	if (w->p.roots == 1 && chance(random, 700))
		add_worker(w, w->machines - 1);
	make(w);
	for (uint32_t i = 0; i < w->links; i++)
		w->g->link[i].load = chance(random, 100) ? 1 : 0;
}

static unsigned int counted, inart_is_best;

static const char *policies_are_honest(const struct world *w, const struct route_options *o,
				       double best)
{
	for (unsigned int i = 0; i < ROUTE_POLICIES_COUNT; i++) {
		_cleanup_(route_freep) struct route *r = NULL;
		double anew;

		assert_int_equal(route_decide(&ROUTE_POLICIES[i], &w->p, o, &r), 0);
		assert_int_equal(route_rate(&w->p, r, &anew), 0);
		if (!is_close(anew, r->rate))
			return "a route has another rate than it says";
		if (r->rate > r->bound && !is_close(r->rate, r->bound))
			return "a route is better than its bound";
		if (r->rate > best && !is_close(r->rate, best))
			return "a route is better than the best one";
		if (best > r->bound && !is_close(r->bound, best))
			return "a bound is below the best route";
	}
	return NULL;
}

static const char *the_best_route_is_that_of_the_obvious_version(uint64_t seed)
{
	struct route_options all = { .paths_max = 16, .nodes_max = 2, .draws = 10, .seed = seed };
	_cleanup_(route_freep) struct route *exact = NULL, *inart = NULL;
	_cleanup_(world_close) struct world w;
	double best;

	random_world(&seed, &w);
	best = best_of_all(&w);
	if (best < 0)
		return NULL;
	exact = decided("exact", &w, &all);
	inart = decided("inart", &w, &all);
	if (!is_close(exact->rate, best))
		return "the exact route is not the best one";
	counted++;
	inart_is_best += is_close(inart->rate, best);
	return policies_are_honest(&w, &all, best);
}

static void no_route_is_better_than_the_best_or_its_bound(void **state)
{
	run_seeds(NETWORKS, the_best_route_is_that_of_the_obvious_version);
	print_message("%u networks counted through, InArt's route is the best one in %u\n", counted,
		      inart_is_best);
	assert_true(counted > 0);
}

/* --- the gap to the best --------------------------------------------------------------------- */

/* Two racks with a node each, a third node above; workers and roots in both racks. */
static void racks(uint64_t *random, struct world *w)
{
	uint32_t rack[2], top;

	*w = (struct world){ 0 };
	for (int i = 0; i < 2; i++)
		rack[i] = add_node(w, 2 + random_below(random, 9));
	top = add_node(w, 2 + random_below(random, 9));
	for (int i = 0; i < 2; i++)
		join(w, rack[i], top, 2 + random_below(random, 9));
	for (uint32_t i = 0; i < 7; i++) {
		uint32_t host = add_machine(w, GRAPH_HOST);

		join(w, host, rack[i % 2], 4 + random_below(random, 9));
		if (i < 5)
			add_worker(w, host);
		else
			add_root(w, host, 2 + random_below(random, 9));
	}
	make(w);
}

static double by_best[INSTANCES_MAX], search_by_best[INSTANCES_MAX], best_by_bound[INSTANCES_MAX];
static unsigned int measured, unfinished;

static bool is_below_a_start(const struct world *w, const struct route_options *o,
			     const struct route *search)
{
	static int (*const start[])(const struct route_problem *p, const struct route_options *o,
				    struct route **ret) = { route_direct, route_nearest,
							    route_balanced };

	for (unsigned int i = 0; i < sizeof(start) / sizeof(*start); i++) {
		_cleanup_(route_freep) struct route *r = NULL;

		assert_int_equal(start[i](&w->p, o, &r), 0);
		if (search->rate < r->rate)
			return true;
	}
	return false;
}

static const char *the_gap_is_small(uint64_t seed)
{
	static const struct route_options many = { 2, 3, 200, 1, STEPS_MAX, TRIES };
	static const struct route_options fewer = { 2, 3, 20, 1, STEPS_MAX, 2000 };
	_cleanup_(route_freep) struct route *inart = NULL, *exact = NULL, *search = NULL;
	_cleanup_(world_close) struct world w;
	int r;

	racks(&seed, &w);
	inart = decided("inart", &w, &many);
	search = decided("search", &w, &fewer);
	r = route_exact(&w.p, &many, &exact);
	if (r == -EAGAIN) {
		unfinished++;
		return NULL;
	}
	assert_int_equal(r, 0);
	if (inart->rate > exact->rate && !is_close(inart->rate, exact->rate))
		return "rounding is better than the best";
	if (exact->rate > inart->bound && !is_close(exact->rate, inart->bound))
		return "the best is better than the bound";
	if (is_below_a_start(&w, &fewer, search))
		return "the search is below what it starts from";
	if (search->rate > exact->rate && !is_close(search->rate, exact->rate))
		return "the search is better than the best";
	if (measured < INSTANCES_MAX) {
		search_by_best[measured] = 1 - search->rate / exact->rate;
		by_best[measured] = 1 - inart->rate / exact->rate;
		best_by_bound[measured++] = 1 - exact->rate / inart->bound;
	}
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Returns how many are within 5 %. */
static unsigned int print_gaps(const char *of, double *gap)
{
	unsigned int small = 0;
	double sum = 0;

	qsort(gap, measured, sizeof(*gap), by_value);
	for (unsigned int i = 0; i < measured; i++)
		sum += gap[i];
	for (unsigned int i = 0; i < measured; i++)
		small += gap[i] <= 0.05;
	print_message("%s: mean %.2f %%, median %.2f %%, 90 of 100 %.2f %%, worst %.2f %%; "
		      "%u of %u within 5 %%\n",
		      of, 100 * sum / measured, 100 * gap[measured / 2],
		      100 * gap[measured * 9 / 10], 100 * gap[measured - 1], small, measured);
	return small;
}

static void rounding_comes_near_the_best(void **state)
{
	run_seeds(INSTANCES, the_gap_is_small);
	assert_true(measured > 0);
	print_message("%u instances, and %u with too many steps\n", measured, unfinished);
	assert_int_equal(print_gaps("InArt's route below the best", by_best), measured);
	assert_true(print_gaps("the search below the best", search_by_best) >= measured * 0.98);
	print_gaps("the best below the bound", best_by_bound);
}

/* --- mixtures by origin ---------------------------------------------------------------------- */

static const char *mixtures_by_origin_are_mixtures(uint64_t seed)
{
	struct route_options o = { .paths_max = 3, .nodes_max = 2, .draws = 1 };
	_cleanup_(route_offer_close) struct route_offer offer = { 0 };
	_cleanup_(world_close) struct world w;
	double share[1024], by_worker, by_origin;
	const struct choices *c = &offer.menu.choices;

	random_world(&seed, &w);
	assert_int_equal(route_offer_open(&w.p, &o, &offer), 0);
	assert_true(choices_options(c) <= 1024);
	assert_int_equal(choices_check(c), 0);
	assert_int_equal(choices_mix(c, false, 0, share, &by_worker), 0);
	assert_int_equal(route_mix(&offer.menu, true, 0, share, &by_origin), 0);
	if (!is_close(by_worker * offer.menu.unit, by_origin))
		return "workers of one origin are not alike";
	for (uint32_t i = 0, at = 0; i < c->count; at += c->choice[i++].options) {
		double all = 0;

		for (unsigned int k = 0; k < c->choice[i].options; k++)
			all += share[at + k];
		if (c->choice[i].always && by_origin > 0 && fabs(all - 1) > 1e-6)
			return "shares of a choice are not 1 together";
	}
	return NULL;
}

static void workers_behind_one_switch_are_mixed_together(void **state)
{
	run_seeds(NETWORKS, mixtures_by_origin_are_mixtures);
}

/* --- what is asked --------------------------------------------------------------------------- */

static void units_do_not_matter(void **state)
{
	_cleanup_(world_close) struct world w;
	_cleanup_(route_freep) struct route *r = NULL;

	example(&w, 4, 4);
	for (uint32_t i = 0; i < w.links; i++)
		w.g->link[i].capacity *= 1.25e9;
	for (int i = 0; i < 2; i++) {
		w.root_room[i] *= 1.25e9;
		w.node_room[i] *= 1.25e9;
	}
	r = decided("inart", &w, &FEW);
	assert_true(is_close(r->rate, 1.25e9 * 8 / 3) && is_close(r->bound, 1.25e9 * 3));
}

static void a_seed_gives_the_same_again(void **state)
{
	_cleanup_(world_close) struct world w;
	struct route_options o = { .paths_max = 2, .nodes_max = 2, .draws = 1 };
	bool differs = false;

	example(&w, 4, 4);
	for (o.seed = 1; o.seed < 10; o.seed++) {
		struct route_options next = o;
		_cleanup_(route_freep) struct route *a = decided("inart", &w, &o);
		_cleanup_(route_freep) struct route *b = decided("inart", &w, &o);
		_cleanup_(route_freep) struct route *c = NULL;

		next.seed++;
		c = decided("inart", &w, &next);
		assert_int_equal(route_moves(a, b), 0);
		differs = differs || route_moves(a, c) > 0;
	}
	assert_true(differs);
}

/* Where nobody may sum, and there is one path, there is nothing to choose. */
static void without_nodes_all_policies_are_alike(void **state)
{
	_cleanup_(world_close) struct world w;
	struct route_options o = FEW;

	example(&w, 4, 4);
	w.p.nodes = 0;
	o.paths_max = 1;
	for (unsigned int i = 0; i < ROUTE_POLICIES_COUNT; i++) {
		_cleanup_(route_freep) struct route *r = decided(ROUTE_POLICIES[i].name, &w, &o);

		is_near(r->rate, 4.0 / 3);
	}
}

static void a_root_without_a_share_gets_nothing(void **state)
{
	_cleanup_(world_close) struct world w;
	static const char *const names[] = { "inart", "exact" };
	double rate;

	example(&w, 4, 4);
	w.root[1] = w.root[0];
	set_shares(&w, 1);
	for (int i = 0; i < 2; i++) {
		_cleanup_(route_freep) struct route *r = decided(names[i], &w, &FEW);

		for (unsigned int k = 0; k < w.p.workers; k++) {
			assert_true(r->way[2 * k + 1].node == ROUTE_NONE);
			assert_true(r->way[2 * k + 1].path.links == 0);
			assert_true(r->way[2 * k].path.links > 0);
		}
		assert_int_equal(route_rate(&w.p, r, &rate), 0);
		assert_true(is_close(rate, r->rate));
	}
}

/* A worker on the node itself, another one on the root, and a root on a node. */
static void machines_may_be_several_things(void **state)
{
	_cleanup_(world_close) struct world w = { 0 };
	_cleanup_(route_freep) struct route *r = NULL;
	struct route_options o = FEW;
	uint32_t a = add_node(&w, 10), b = add_node(&w, 10);

	join(&w, a, b, 4);
	add_worker(&w, a);
	add_worker(&w, a);
	add_worker(&w, b);
	add_root(&w, b, 3);
	make(&w);
	policy_gives(&w, "direct", 1);
	policy_gives(&w, "atp", 1.5); /* the two on the node are one stream */
	policy_gives(&w, "inart", 3); /* who is at the root sends to the node, too */
	policy_gives(&w, "exact", 3);
	o.nodes_max = 0;
	r = decided("inart", &w, &o);
	is_near(r->rate, 1);
}

/* One worker is at the root, one is joined to the root only: neither goes through a host. */
static void no_way_leads_through_a_host(void **state)
{
	_cleanup_(world_close) struct world w = { 0 };
	_cleanup_(route_freep) struct route *exact = NULL, *straight = NULL, *other = NULL;
	uint32_t node = add_node(&w, 10), host[3];
	struct route_options o = FEW;

	for (int i = 0; i < 3; i++) {
		host[i] = add_machine(&w, GRAPH_HOST);
		add_worker(&w, host[i]);
	}
	join(&w, host[0], node, 10);
	join(&w, host[2], node, 10);
	join(&w, host[1], host[0], 10);
	add_root(&w, host[0], 2);
	make(&w);
	exact = decided("exact", &w, &o);
	is_near(exact->rate, 1);
	assert_true(exact->way[1].node == ROUTE_NONE && exact->way[1].path.links == 1);
	o.nodes_max = 0;
	straight = decided("inart", &w, &o);
	is_near(straight->rate, 2.0 / 3);
	assert_int_equal(straight->way[0].path.links, 0);
	w.root[0] = host[2];
	assert_int_equal(route_inart(&w.p, &o, &other), -ENETUNREACH);
	w.worker[1] = host[0];
	other = decided("inart", &w, &o);
	assert_int_equal(other->way[2].path.links, 0);
}

/* --- anew ------------------------------------------------------------------------------------ */

/* Four workers by one of two routers to a root; each path bears 8 in all. */
static void two_ways(struct world *w)
{
	uint32_t left, right, switch_, host;

	*w = (struct world){ 0 };
	switch_ = add_machine(w, GRAPH_ROUTER);
	left = add_machine(w, GRAPH_ROUTER);
	right = add_machine(w, GRAPH_ROUTER);
	join(w, switch_, left, 8);
	join(w, switch_, right, 8);
	for (int i = 0; i < 4; i++) {
		host = add_machine(w, GRAPH_HOST);
		join(w, host, switch_, 100);
		add_worker(w, host);
	}
	host = add_machine(w, GRAPH_HOST);
	join(w, left, host, 8);
	join(w, right, host, 8);
	add_root(w, host, 100);
	make(w);
}

static struct route *again(const struct world *w, const struct route *before, double factor)
{
	struct route *r;

	assert_int_equal(route_again(&w->p, &FEW, before, factor, &r), 0);
	return r;
}

static void ways_change_where_that_pays(void **state)
{
	_cleanup_(world_close) struct world w;
	_cleanup_(route_freep) struct route *before = NULL, *same = NULL, *stays = NULL;
	_cleanup_(route_freep) struct route *moved = NULL;

	two_ways(&w);
	before = decided("inart", &w, &FEW);
	is_near(before->rate, 4);
	same = again(&w, before, 1);
	assert_int_equal(route_moves(before, same), 0);
	w.g->link[0].load = 4; /* what is left: 4 on the left, 8 on the right */
	stays = again(&w, before, 1.5);
	assert_int_equal(route_moves(before, stays), 0);
	is_near(stays->rate, 2);
	is_near(stays->bound, 3);
	moved = again(&w, before, 1.3);
	assert_int_equal(route_moves(before, moved), 1);
	is_near(moved->rate, 8.0 / 3);
}

/* Whatever is found anew: one way that changes is enough. */
static void few_ways_change(void **state)
{
	struct route_options o = { .paths_max = 2, .draws = 20 };
	_cleanup_(world_close) struct world w;
	_cleanup_(route_freep) struct route *before = NULL;

	two_ways(&w);
	before = decided("inart", &w, &FEW);
	w.g->link[0].load = 4;
	for (o.seed = 1; o.seed < 20; o.seed++) {
		_cleanup_(route_freep) struct route *after = NULL;

		assert_int_equal(route_again(&w.p, &o, before, 1, &after), 0);
		is_near(after->rate, 8.0 / 3);
		assert_int_equal(route_moves(before, after), 1);
	}
}

/* Where there is one path only to be chosen from, and two workers go by the other one. */
static void a_route_that_cannot_be_chosen_is_left(void **state)
{
	static const struct route_options one = { .paths_max = 1, .draws = 1 };
	_cleanup_(world_close) struct world w;
	_cleanup_(route_freep) struct route *before = NULL, *after = NULL;

	two_ways(&w);
	before = decided("inart", &w, &FEW);
	w.g->link[2].load = 7; /* on the right; the first path is on the left */
	assert_int_equal(route_again(&w.p, &one, before, 1, &after), 0);
	assert_int_equal(route_moves(before, after), 2);
	is_near(after->rate, 2);
}

static void a_route_of_another_problem_is_refused(void **state)
{
	_cleanup_(world_close) struct world w, other;
	_cleanup_(route_freep) struct route *r = NULL;
	struct route *ret = NULL;
	double rate = 7;

	example(&w, 4, 4);
	two_ways(&other);
	r = decided("atp", &w, &FEW);
	assert_int_equal(route_rate(&other.p, r, &rate), -EINVAL);
	assert_int_equal(route_again(&w.p, &FEW, r, 0.9, &ret), -EINVAL);
	assert_int_equal(route_again(&w.p, &FEW, r, NAN, &ret), -EINVAL);
#define REFUSED(field, value)                                                   \
	do {                                                                    \
		__typeof__(field) was = field;                                  \
		field = (value);                                                \
		assert_int_equal(route_rate(&w.p, r, &rate), -EINVAL);          \
		assert_int_equal(route_again(&w.p, &FEW, r, 1, &ret), -EINVAL); \
		field = was;                                                    \
	} while (0)
	REFUSED(r->workers, 5);
	REFUSED(r->roots, 1);
	REFUSED(r->nodes, 1);
	REFUSED(r->way[0].node, 2);
	REFUSED(r->way[0].node, 1);
	REFUSED(r->way[0].node, ROUTE_NONE);
	REFUSED(r->way[0].path.links, 0);
	REFUSED(r->way[0].path.links, GRAPH_PATH_MAX + 1);
	REFUSED(r->way[0].path.link[0], w.links);
	REFUSED(r->way[0].path.link[0], r->way[0].path.link[0] ^ 1);
	REFUSED(r->on[0].links, 0);
	assert_true(ret == NULL && rate == 7);
	assert_int_equal(route_rate(&w.p, r, &rate), 0);
}

/* --- what goes wrong ------------------------------------------------------------------------- */

static void problem_is_refused(const struct world *w, const struct route_options *o, int error)
{
	struct route *r = NULL;

	for (unsigned int i = 0; i < ROUTE_POLICIES_COUNT; i++)
		assert_int_equal(ROUTE_POLICIES[i].decide(&w->p, o, &r), error);
	assert_null(r);
}

#undef REFUSED
#define REFUSED(field, value, error)               \
	do {                                       \
		__typeof__(field) was = field;     \
		field = (value);                   \
		problem_is_refused(&w, &o, error); \
		field = was;                       \
	} while (0)

static void problems_that_cannot_be_are_refused(void **state)
{
	_cleanup_(world_close) struct world w;
	struct route_options o = FEW;

	example(&w, 4, 4);
	REFUSED(w.p.workers, 0, -EINVAL);
	REFUSED(w.p.roots, 0, -EINVAL);
	REFUSED(w.worker[5], w.machines, -EINVAL);
	REFUSED(w.root[1], w.machines, -EINVAL);
	REFUSED(w.node[1], w.machines, -EINVAL);
	REFUSED(w.node[1], w.node[0], -EINVAL);
	REFUSED(w.node[1], w.worker[0], -EINVAL);
	REFUSED(w.share[0], 0.4, -EINVAL);
	REFUSED(w.share[0], NAN, -EINVAL);
	REFUSED(w.share[0], -0.5, -EINVAL);
	REFUSED(w.root_room[0], -1, -EINVAL);
	REFUSED(w.root_room[0], INFINITY, -EINVAL);
	REFUSED(w.node_room[1], NAN, -EINVAL);
	REFUSED(o.paths_max, 0, -EINVAL);
	REFUSED(o.draws, 0, -EINVAL);
	REFUSED(o.paths_max, ROUTE_OPTIONS_MAX, -E2BIG);
	REFUSED(w.p.workers, ROUTE_MACHINES_MAX + 1, -E2BIG);
	REFUSED(w.p.nodes, ROUTE_MACHINES_MAX + 1, -E2BIG);
	REFUSED(w.p.roots, ROUTE_ROOTS_MAX + 1, -E2BIG);
}

static void a_worker_without_a_way_is_an_error(void **state)
{
	_cleanup_(world_close) struct world w = { 0 };
	uint32_t node = add_node(&w, 5), host = add_machine(&w, GRAPH_HOST);

	join(&w, host, node, 1);
	add_worker(&w, host);
	add_root(&w, add_machine(&w, GRAPH_HOST), 1);
	make(&w);
	problem_is_refused(&w, &FEW, -ENETUNREACH);
}

/* Where nothing has room, the rate is 0, and a full network is no error. */
static void a_full_network_has_the_rate_0(void **state)
{
	_cleanup_(world_close) struct world w;

	example(&w, 0, 0);
	for (unsigned int i = 0; i < ROUTE_POLICIES_COUNT; i++)
		policy_gives(&w, ROUTE_POLICIES[i].name, 0);
	for (uint32_t i = 0; i < w.links; i++)
		w.g->link[i].load = 7;
	w.node_room[0] = w.node_room[1] = 0;
	for (unsigned int i = 0; i < ROUTE_POLICIES_COUNT; i++)
		policy_gives(&w, ROUTE_POLICIES[i].name, 0);
}

static void steps_have_an_end(void **state)
{
	_cleanup_(world_close) struct world w;
	struct route_options o = FEW;
	struct route *r = NULL;

	example(&w, 4, 4);
	o.steps_max = 1;
	assert_int_equal(route_inart(&w.p, &o, &r), -EAGAIN);
	assert_int_equal(route_grid(&w.p, &o, &r), -EAGAIN);
	assert_true(r == NULL);
}

struct attempt {
	struct world *w;
	const struct route_policy *policy;
	const struct route *before;
};

static int attempt(void *context)
{
	static const struct route_options once = { 2, 2, 1, 0, 0, 10 };
	struct attempt *a = context;
	struct route *route = NULL;
	int r = a->before ? route_again(&a->w->p, &once, a->before, 1, &route)
			  : route_decide(a->policy, &a->w->p, &once, &route);

	assert_true((r == 0) == (route != NULL));
	route_free(route);
	return r;
}

static void too_little_memory_is_an_error(void **state)
{
	_cleanup_(world_close) struct world w;
	_cleanup_(route_freep) struct route *before = NULL;
	struct attempt a = { .w = &w };

	two_ways(&w);
	for (unsigned int i = 0; i < ROUTE_POLICIES_COUNT; i++) {
		a.policy = &ROUTE_POLICIES[i];
		run_out_of_memory(attempt, &a);
	}
	before = decided("direct", &w, &FEW);
	a.before = before;
	run_out_of_memory(attempt, &a);
}

static void policies_have_names(void **state)
{
	for (unsigned int i = 0; i < ROUTE_POLICIES_COUNT; i++)
		assert_ptr_equal(route_policy_find(ROUTE_POLICIES[i].name), &ROUTE_POLICIES[i]);
	assert_null(route_policy_find("none"));
}

/* --- a large network ------------------------------------------------------------------------- */

/*
 * A fat-tree of k = 6, as InArt's: 54 hosts, 18 + 18 + 9 switches that can all sum. Links and
 * roots of 20 (here: megabit a second), nodes of 9; fifty workers and four roots.
 */
static void fat_tree(struct world *w)
{
	enum {
		K = 6,
		HALF = K / 2
	};
	uint32_t core[HALF * HALF], edge[HALF], above[HALF];

	*w = (struct world){ 0 };
	for (int i = 0; i < HALF * HALF; i++)
		core[i] = add_node(w, 9);
	for (int pod = 0; pod < K; pod++) {
		for (int i = 0; i < HALF; i++) {
			edge[i] = add_node(w, 9);
			above[i] = add_node(w, 9);
			for (int c = 0; c < HALF; c++)
				join(w, above[i], core[i * HALF + c], 20);
		}
		for (int i = 0; i < HALF * HALF; i++) {
			uint32_t host = add_machine(w, GRAPH_HOST);

			join(w, edge[i / HALF], above[i % HALF], 20);
			join(w, host, edge[i / HALF], 20);
			if (i == 0 && pod < 4)
				add_root(w, host, 20);
			else
				add_worker(w, host);
		}
	}
	make(w);
}

static void a_fat_tree_is_routed_soon(void **state)
{
	static const struct route_options o = { 2, 20, 2, 1, 0, 200000 };
	_cleanup_(world_close) struct world w;

	fat_tree(&w);
	assert_int_equal(w.p.workers, 50);
	for (unsigned int i = 0; i + 1 < ROUTE_POLICIES_COUNT; i++) {
		clock_t began = clock();
		_cleanup_(route_freep) struct route *r = decided(ROUTE_POLICIES[i].name, &w, &o);
		double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;

		print_message("%-8s rate %.4f, bound %.4f, %.3f s\n", ROUTE_POLICIES[i].name,
			      r->rate, r->bound, seconds);
		assert_true(r->rate > 0 && r->rate <= r->bound * (1 + 1e-6));
		assert_true(seconds < 20); /* with sanitizers, beside other tests */
		if (ROUTE_POLICIES[i].decide == route_inart ||
		    ROUTE_POLICIES[i].decide == route_search)
			assert_true(r->rate > 7); /* 6.0 without tries */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inarts_example_has_its_rates),
		cmocka_unit_test(grid_knows_no_links),
		cmocka_unit_test(grids_example_has_its_rates),
		cmocka_unit_test(a_split_pays_where_roots_differ),
		cmocka_unit_test(a_search_finds_the_split_that_pays),
		cmocka_unit_test(no_route_is_better_than_the_best_or_its_bound),
		cmocka_unit_test(rounding_comes_near_the_best),
		cmocka_unit_test(workers_behind_one_switch_are_mixed_together),
		cmocka_unit_test(units_do_not_matter),
		cmocka_unit_test(a_seed_gives_the_same_again),
		cmocka_unit_test(without_nodes_all_policies_are_alike),
		cmocka_unit_test(a_root_without_a_share_gets_nothing),
		cmocka_unit_test(machines_may_be_several_things),
		cmocka_unit_test(no_way_leads_through_a_host),
		cmocka_unit_test(ways_change_where_that_pays),
		cmocka_unit_test(few_ways_change),
		cmocka_unit_test(a_route_that_cannot_be_chosen_is_left),
		cmocka_unit_test(a_route_of_another_problem_is_refused),
		cmocka_unit_test(problems_that_cannot_be_are_refused),
		cmocka_unit_test(a_worker_without_a_way_is_an_error),
		cmocka_unit_test(a_full_network_has_the_rate_0),
		cmocka_unit_test(steps_have_an_end),
		cmocka_unit_test(too_little_memory_is_an_error),
		cmocka_unit_test(policies_have_names),
		cmocka_unit_test(a_fat_tree_is_routed_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
