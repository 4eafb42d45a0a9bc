// SPDX-License-Identifier: GPL-2.0-only
/* Ways on which streams meet: agent/policy/merge.h. TALLY_SEED=n runs one random network. */
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

#include "agent/policy/merge.h"
#include "common/owned.h"
#include "random.h"
#include "scarce.h"

enum {
	MACHINES_MAX = 256,
	LINKS_MAX = 1024,
	WORKERS_MAX = 64,
	NETWORKS = 400,
	WAYS_MAX = 256, /* of a worker, in a small network */
	TAKINGS_MAX = 300000, /* of all their ways */
};

struct world {
	struct graph_machine machine[MACHINES_MAX];
	struct graph_link link[LINKS_MAX];
	unsigned int machines, links;
	uint32_t worker[WORKERS_MAX], back[LINKS_MAX];
	unsigned int streams[WORKERS_MAX];
	struct graph_path lead[WORKERS_MAX], way[WORKERS_MAX];
	bool sums[MACHINES_MAX];
	struct graph *g;
	struct merge_problem p;
};

static const struct merge_options USUAL = {
	.paths_max = 4, .starts = 16, .nodes_max = 64, .tries = 1000, .seed = 1
};

static void world_close(struct world *w) { graph_free(w->g); }

static uint32_t add(struct world *w, enum graph_kind kind, bool sums)
{
	assert_true(w->machines < MACHINES_MAX);
	w->machine[w->machines] = (struct graph_machine){ .kind = kind };
	w->sums[w->machines] = sums;
	return w->machines++;
}

static void join(struct world *w, uint32_t a, uint32_t b, double capacity)
{
	assert_true(w->links + 2 <= LINKS_MAX);
	for (unsigned int i = 0; i < 2; i++) {
		w->back[w->links] = w->links ^ 1;
		w->link[w->links++] = (struct graph_link){ i ? b : a, i ? a : b, capacity, 0 };
	}
}

/* A host behind this machine, which its way begins with. */
static void add_worker(struct world *w, uint32_t at, double capacity)
{
	const uint32_t host = add(w, GRAPH_HOST, false);
	const unsigned int i = w->p.workers++;

	join(w, host, at, capacity);
	w->worker[i] = host;
	w->streams[i] = 1;
	w->lead[i] = (struct graph_path){ 1, { w->links - 2 } };
}

static void make(struct world *w, uint32_t root)
{
	assert_int_equal(graph_make(w->machine, w->machines, w->link, w->links, &w->g), 0);
	w->p.graph = w->g;
	w->p.lead = w->lead;
	w->p.worker = w->worker;
	w->p.streams = w->streams;
	w->p.sums = w->sums;
	w->p.root = root;
	w->p.back = w->back;
}

static double found(struct world *w, const struct merge_options *o)
{
	double rate, again;

	assert_int_equal(merge_search(&w->p, o, w->way, &rate), 0);
	assert_int_equal(merge_rate(&w->p, w->way, &again), 0);
	assert_true(rate == again);
	return rate;
}

/* --- by hand --------------------------------------------------------------------------------- */

/*
 *	w0, w1 ── n0 ──8── n3 (root)
 *	           │        │
 *	          24       24
 *	           └── n1 ──┘
 */
static void two_ways(struct world *w, bool sums)
{
	*w = (struct world){ 0 };
	add(w, GRAPH_NODE, sums);
	add(w, GRAPH_NODE, sums);
	add(w, GRAPH_NODE, sums);
	join(w, 0, 2, 8);
	join(w, 0, 1, 24);
	join(w, 1, 2, 24);
	add_worker(w, 0, 100);
	add_worker(w, 0, 100);
	make(w, 2);
}

static void the_wider_way_is_taken(void **state)
{
	_cleanup_(world_close) struct world w;

	two_ways(&w, true);
	assert_true(found(&w, &USUAL) == 24);
	assert_int_equal(w.way[0].links, 3);
	assert_int_equal(w.g->link[w.way[0].link[1]].to, 1);
}

/* Two streams: 8 and 24 by two ways are 8 each; both by the wider one 12 each. */
static void streams_that_nobody_sums_share_links(void **state)
{
	_cleanup_(world_close) struct world w;

	two_ways(&w, false);
	assert_true(found(&w, &USUAL) == 12);
	world_close(&w);
	two_ways(&w, false);
	w.g->link[0].capacity = w.g->link[1].capacity = 16;
	assert_true(found(&w, &USUAL) == 16);
	assert_int_not_equal(w.way[0].links, w.way[1].links);
}

/* Loads of others count, and so does what has to come back. */
static void loads_and_results_count(void **state)
{
	_cleanup_(world_close) struct world w;

	two_ways(&w, true);
	w.g->link[2].load = 20;
	assert_true(found(&w, &USUAL) == 8);
	w.g->link[2].load = 0;
	w.g->link[3].load = 20;
	assert_true(found(&w, &USUAL) == 8);
	w.p.back = NULL;
	assert_true(found(&w, &USUAL) == 24);
}

/* Several streams of one host go one way, and are one behind a machine that sums. */
static void streams_of_one_host_stay_together(void **state)
{
	_cleanup_(world_close) struct world w;

	two_ways(&w, false);
	w.streams[0] = 3;
	w.g->link[0].capacity = w.g->link[1].capacity = 12;
	for (unsigned int seed = 0; seed < 8; seed++) {
		const struct merge_options o = { 4, 1, 64, 1000, seed };

		assert_true(found(&w, &o) == 8); /* 24 by 3, and 12 by 1 */
	}
	w.sums[1] = true;
	assert_true(found(&w, &USUAL) == 8); /* to there they are 3 */
	w.sums[0] = true;
	assert_true(found(&w, &USUAL) == 24);
}

/* By the wider way past a host, or what shall not forward: it is not taken. */
static void who_forwards_nothing_is_passed_by(void **state)
{
	_cleanup_(world_close) struct world w;

	two_ways(&w, true);
	w.g->machine[1].kind = GRAPH_HOST;
	assert_true(found(&w, &USUAL) == 8);
}

static void long_ways_are_not_taken(void **state)
{
	_cleanup_(world_close) struct world w;
	struct merge_options o = USUAL;

	two_ways(&w, true);
	o.nodes_max = 2;
	assert_true(found(&w, &o) == 8);
	o.nodes_max = 1;
	assert_int_equal(merge_search(&w.p, &o, w.way, &(double){ 0 }), -ENETUNREACH);
}

/* Where they are wide enough, the shortest ones; here the worker has no more. */
static void no_way_is_longer_than_it_need_be(void **state)
{
	_cleanup_(world_close) struct world w;

	two_ways(&w, true);
	w.g->link[w.lead[0].link[0]].capacity = 8;
	assert_true(found(&w, &USUAL) == 8);
	assert_int_equal(w.way[0].links, 2);
	w.streams[0] = 3; /* that share its cable */
	w.g->link[w.lead[0].link[0]].capacity = 24;
	assert_true(found(&w, &USUAL) == 8);
	assert_int_equal(w.way[0].links, 2);
}

/*
 * InArt's figure 1 with one root, behind the second node: three workers each, links of 6. Both
 * nodes sum: 6, where nobody does 6 / 3.
 */
static void inarts_example_has_its_rate(void **state)
{
	for (int sums = 0; sums < 2; sums++) {
		_cleanup_(world_close) struct world w = { 0 };

		add(&w, GRAPH_NODE, sums);
		add(&w, GRAPH_NODE, sums);
		add(&w, GRAPH_HOST, false);
		join(&w, 0, 1, 6);
		join(&w, 1, 2, 6);
		for (uint32_t i = 0; i < 6; i++)
			add_worker(&w, i / 3, 6);
		make(&w, 2);
		assert_true(found(&w, &USUAL) == (sums ? 6 : 1));
	}
}

/* --- errors ---------------------------------------------------------------------------------- */

static void ways_that_are_none_have_no_rate(void **state)
{
	_cleanup_(world_close) struct world w;
	double rate;

	two_ways(&w, true);
	found(&w, &USUAL);
	w.way[0].links--; /* it ends before the root */
	assert_int_equal(merge_rate(&w.p, w.way, &rate), -EINVAL);
	w.way[0] = (struct graph_path){ 2, { w.lead[0].link[0], 0 } }; /* parts where they sum */
	assert_int_equal(merge_rate(&w.p, w.way, &rate), -EINVAL);
	w.sums[0] = false;
	assert_int_equal(merge_rate(&w.p, w.way, &rate), 0);
	w.way[0].link[0] = w.lead[1].link[0]; /* somebody else's */
	assert_int_equal(merge_rate(&w.p, w.way, &rate), -EINVAL);
}

static void problems_that_cannot_be_are_refused(void **state)
{
	_cleanup_(world_close) struct world w;
	struct merge_options o = USUAL;
	double rate;

	two_ways(&w, true);
	o.starts = 0;
	assert_int_equal(merge_search(&w.p, &o, w.way, &rate), -EINVAL);
	o.starts = MERGE_STARTS_MAX + 1;
	assert_int_equal(merge_search(&w.p, &o, w.way, &rate), -E2BIG);
	w.p.root = w.machines;
	assert_int_equal(merge_search(&w.p, &USUAL, w.way, &rate), -EINVAL);
	w.p.root = 2;
	w.lead[0].link[0] = 0;
	assert_int_equal(merge_search(&w.p, &USUAL, w.way, &rate), -EINVAL);
	w.lead[0].link[0] = w.links - 4;
	w.streams[1] = 0;
	assert_int_equal(merge_search(&w.p, &USUAL, w.way, &rate), -EINVAL);
	w.streams[1] = 1;
	w.g->machine[0].kind = GRAPH_HOST; /* a gateway itself may forward nothing to others */
	assert_int_equal(merge_search(&w.p, &USUAL, w.way, &rate), 0);
	w.g->machine[1].kind = GRAPH_HOST;
	w.p.root = 3;
	w.lead[0].links = 0;
	w.worker[0] = 1;
	assert_int_equal(merge_search(&w.p, &USUAL, w.way, &rate), -ENETUNREACH);
}

static int attempt(void *context)
{
	static const struct merge_options once = { 2, 1, 64, 10, 1 };
	struct world *w = context;
	double rate;

	return merge_search(&w->p, &once, w->way, &rate);
}

static void too_little_memory_is_an_error(void **state)
{
	_cleanup_(world_close) struct world w;

	two_ways(&w, true);
	run_out_of_memory(attempt, &w);
}

/* --- against all ways there are --------------------------------------------------------------- */

struct all {
	const struct world *w;
	struct graph_path way[WORKERS_MAX][WAYS_MAX], now[WORKERS_MAX];
	unsigned int ways[WORKERS_MAX];
	double best;
};

static void ways_from(struct all *a, unsigned int worker, uint32_t at, unsigned int *been,
		      struct graph_path *now)
{
	const struct graph *g = a->w->g;

	if (at == a->w->p.root) {
		if (a->ways[worker] < WAYS_MAX)
			a->way[worker][a->ways[worker]] = *now;
		a->ways[worker]++;
		return;
	}
	if (now->links > a->w->lead[worker].links && g->machine[at].kind == GRAPH_HOST)
		return;
	been[at]++;
	for (uint32_t i = 0; i < g->links; i++) {
		const uint32_t to = g->link[i].to;

		/* Past a switch they may come again: to a machine that sums, and back. */
		if (g->link[i].from != at ||
		    been[to] > (g->machine[to].kind == GRAPH_ROUTER ? 1 : 0))
			continue;
		now->link[now->links++] = i;
		ways_from(a, worker, to, been, now);
		now->links--;
	}
	been[at]--;
}

static void take(struct all *a, unsigned int worker)
{
	double rate;

	if (worker == a->w->p.workers) {
		if (merge_rate(&a->w->p, a->now, &rate) == 0)
			a->best = fmax(a->best, rate);
		return;
	}
	for (unsigned int i = 0; i < a->ways[worker]; i++) {
		a->now[worker] = a->way[worker][i];
		take(a, worker + 1);
	}
}

/* Below 0: there are too many. */
static double best_of_all(const struct world *w)
{
	static struct all a;
	double takings = 1;

	memset(&a, 0, sizeof(a));
	a.w = w;
	a.best = -1;
	for (unsigned int i = 0; i < w->p.workers; i++) {
		unsigned int been[MACHINES_MAX] = { 0 };
		struct graph_path now = w->lead[i];

		been[w->worker[i]] = 1;
		ways_from(&a, i, w->g->link[now.link[0]].to, been, &now);
		takings *= a.ways[i];
		if (a.ways[i] > WAYS_MAX)
			return -1;
	}
	if (takings > TAKINGS_MAX)
		return -1;
	take(&a, 0);
	return a.best;
}

static double some(uint64_t *random) { return 1 + random_below(random, 9); }

/* Four or five machines, a ring and some cables across; the root is one of them. */
static void random_world(uint64_t *random, unsigned int sum_thousandths, struct world *w)
{
	const uint32_t inner = 4 + random_below(random, 2);

	*w = (struct world){ 0 };
	for (uint32_t i = 0; i < inner; i++) {
		const bool sums = i > 0 && chance(random, sum_thousandths);

		add(w, !sums && i > 0 && chance(random, 300) ? GRAPH_ROUTER : GRAPH_NODE, sums);
	}
	for (uint32_t i = 0; i < inner; i++)
		join(w, i, (i + 1) % inner, some(random));
	for (uint32_t i = random_below(random, 3); i > 0; i--) {
		const uint32_t a = random_below(random, inner);

		join(w, a, (a + 2) % inner, some(random));
	}
	for (uint32_t i = 2 + random_below(random, 2); i > 0; i--)
		add_worker(w, random_below(random, inner), some(random) + 2);
	make(w, 0);
	for (uint32_t i = 0; i < w->links; i++)
		w->g->link[i].load = chance(random, 200) ? 1 : 0;
}

static unsigned int counted, best_found;
static double worst;

static const char *found_is_close(uint64_t seed, unsigned int sum_thousandths)
{
	_cleanup_(world_close) struct world w;
	double best, rate;

	random_world(&seed, sum_thousandths, &w);
	best = best_of_all(&w);
	if (best < 0)
		return NULL;
	rate = found(&w, &USUAL);
	counted++;
	best_found += rate >= best * (1 - 1e-9);
	worst = fmax(worst, best > 0 ? 1 - rate / best : 0);
	return rate > best * (1 + 1e-9) ? "ways are better than the best ones" : NULL;
}

static const char *close_where_some_sum(uint64_t seed) { return found_is_close(seed, 500); }

static const char *best_where_all_sum(uint64_t seed)
{
	const char *fault = found_is_close(seed, 1000);

	return fault ? fault : worst > 1e-9 ? "ways are not the best ones" : NULL;
}

static void where_all_sum_the_best_is_found(void **state)
{
	counted = best_found = 0;
	worst = 0;
	run_seeds(NETWORKS, best_where_all_sum);
	assert_int_equal(counted, best_found);
	assert_true(counted > 0);
}

static void where_some_sum_it_is_mostly(void **state)
{
	counted = best_found = 0;
	worst = 0;
	run_seeds(NETWORKS, close_where_some_sum);
	print_message("the best of %u in %u, and at worst %.1f %% below\n", counted, best_found,
		      100 * worst);
	assert_true(counted > 0);
	assert_true(best_found >= counted * 0.97);
	assert_true(worst <= 0.6);
}

/* --- how long it takes ----------------------------------------------------------------------- */

/* As test_route.c has it: k = 6, 54 hosts, 45 switches; here some of them sum. */
static void fat_tree(struct world *w, unsigned int sum_thousandths)
{
	enum {
		HALF = 3
	};
	uint32_t core[HALF * HALF], edge[HALF], above[HALF];
	uint64_t random = 7;

	*w = (struct world){ 0 };
	for (int i = 0; i < HALF * HALF; i++)
		core[i] = add(w, GRAPH_NODE, chance(&random, sum_thousandths));
	for (int pod = 0; pod < 2 * HALF; pod++) {
		for (int i = 0; i < HALF; i++) {
			edge[i] = add(w, GRAPH_NODE, chance(&random, sum_thousandths));
			above[i] = add(w, GRAPH_NODE, chance(&random, sum_thousandths));
			for (int c = 0; c < HALF; c++)
				join(w, above[i], core[i * HALF + c], 20);
		}
		for (int i = 0; i < HALF * HALF; i++)
			join(w, edge[i / HALF], above[i % HALF], 20);
		for (int i = 0; i < HALF * HALF && w->p.workers < 50; i++)
			add_worker(w, edge[i / HALF], 20);
	}
	make(w, core[0]);
}

/* A square of 10 times 10 nodes, and 16 workers. */
static void grid(struct world *w, unsigned int sum_thousandths)
{
	uint64_t random = 7;

	*w = (struct world){ 0 };
	for (uint32_t i = 0; i < 100; i++)
		add(w, GRAPH_NODE, chance(&random, sum_thousandths));
	for (uint32_t i = 0; i < 100; i++) {
		if (i % 10 < 9)
			join(w, i, i + 1, some(&random));
		if (i < 90)
			join(w, i, i + 10, some(&random));
	}
	for (uint32_t i = 0; i < 16; i++)
		add_worker(w, 6 * i + 3, 20);
	make(w, 55);
}

static void large_networks_take_no_long_time(void **state)
{
	static const unsigned int part[] = { 1000, 500, 0 };

	for (unsigned int i = 0; i < 6; i++) {
		_cleanup_(world_close) struct world w;
		clock_t began;
		double rate, seconds;

		(i < 3 ? fat_tree : grid)(&w, part[i % 3]);
		began = clock();
		rate = found(&w, &USUAL);
		seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
		print_message("%s, %u of 1000 sum: rate %.3f, %.3f s\n",
			      i < 3 ? "fat-tree" : "grid", part[i % 3], rate, seconds);
		assert_true(i < 2 ? rate == 20 : rate > 0); /* 3.3 without repair */
		assert_true(seconds < 3); /* with sanitizers, beside other tests */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_wider_way_is_taken),
		cmocka_unit_test(streams_that_nobody_sums_share_links),
		cmocka_unit_test(loads_and_results_count),
		cmocka_unit_test(streams_of_one_host_stay_together),
		cmocka_unit_test(who_forwards_nothing_is_passed_by),
		cmocka_unit_test(long_ways_are_not_taken),
		cmocka_unit_test(no_way_is_longer_than_it_need_be),
		cmocka_unit_test(inarts_example_has_its_rate),
		cmocka_unit_test(ways_that_are_none_have_no_rate),
		cmocka_unit_test(problems_that_cannot_be_are_refused),
		cmocka_unit_test(too_little_memory_is_an_error),
		cmocka_unit_test(where_all_sum_the_best_is_found),
		cmocka_unit_test(where_some_sum_it_is_mostly),
		cmocka_unit_test(large_networks_take_no_long_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
