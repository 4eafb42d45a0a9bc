// SPDX-License-Identifier: GPL-2.0-only
/* Fair rates of flows that share links; TALLY_SEED=n runs one random network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/policy/fair.h"
#include "common/owned.h"
#include "random.h"

enum {
	LINKS_MAX = 12,
	FLOWS_MAX = 16,
	NETWORKS = 3000,
};

static const double CLOSE = 1e-9; /* of the larger of two numbers */

struct network {
	unsigned int links, flows;
	double capacity[LINKS_MAX];
	struct fair_flow flow[FLOWS_MAX];
	struct fair_use use[FLOWS_MAX][LINKS_MAX];
};

static bool is_close(double a, double b)
{
	return a == b || fabs(a - b) <= CLOSE * fmax(fabs(a), fabs(b));
}

/* --- an obvious version: everything is added up anew in each round ---------------------------- */

static double times_of(const struct fair_flow *flow, unsigned int link)
{
	for (unsigned int i = 0; i < flow->uses; i++)
		if (flow->use[i].link == link)
			return flow->use[i].times;
	return 0;
}

/* How far flows at this link can rise that have not stopped. */
static double link_level(const struct network *n, unsigned int link, const bool *stopped,
			 const double *rate)
{
	double left = n->capacity[link], weight = 0;

	for (unsigned int f = 0; f < n->flows; f++)
		if (stopped[f])
			left -= times_of(&n->flow[f], link) * rate[f];
		else
			weight += times_of(&n->flow[f], link) * n->flow[f].weight;
	return weight > 0 ? fmax(left, 0) / weight : INFINITY;
}

static double flow_level(const struct network *n, unsigned int f, const bool *stopped,
			 const double *rate)
{
	double level = n->flow[f].limit / n->flow[f].weight;

	for (unsigned int i = 0; i < n->flow[f].uses; i++)
		level = fmin(level, link_level(n, n->flow[f].use[i].link, stopped, rate));
	return level;
}

static void obvious_rates(const struct network *n, double *rate)
{
	bool stopped[FLOWS_MAX] = { false };

	for (unsigned int round = 0; round < n->flows; round++) {
		unsigned int first = FLOWS_MAX;
		double lowest = INFINITY, level;

		for (unsigned int f = 0; f < n->flows; f++) {
			level = stopped[f] ? INFINITY : flow_level(n, f, stopped, rate);
			if (!stopped[f] && (first == FLOWS_MAX || level < lowest)) {
				lowest = level;
				first = f;
			}
		}
		stopped[first] = true;
		rate[first] = lowest * n->flow[first].weight;
	}
}

/* --- what fair means ------------------------------------------------------------------------- */

static double load_of(const struct network *n, unsigned int link, const double *rate)
{
	double load = 0;

	for (unsigned int f = 0; f < n->flows; f++)
		if (times_of(&n->flow[f], link) > 0)
			load += times_of(&n->flow[f], link) * rate[f];
	return load;
}

/* The link is full, and nobody there is further than this flow. */
static bool is_bottleneck(const struct network *n, unsigned int link, unsigned int flow,
			  const double *rate)
{
	double level = rate[flow] / n->flow[flow].weight;

	if (!is_close(load_of(n, link, rate), n->capacity[link]))
		return false;
	for (unsigned int f = 0; f < n->flows; f++) {
		double other = rate[f] / n->flow[f].weight;

		if (times_of(&n->flow[f], link) > 0 && other > level && !is_close(other, level))
			return false;
	}
	return true;
}

static bool is_content(const struct network *n, unsigned int flow, const double *rate)
{
	if (is_close(rate[flow], n->flow[flow].limit))
		return true;
	for (unsigned int i = 0; i < n->flow[flow].uses; i++)
		if (is_bottleneck(n, n->flow[flow].use[i].link, flow, rate))
			return true;
	return false;
}

/* --- random networks ------------------------------------------------------------------------- */

/* Few numbers, so that links fill up at once; or any. */
static double random_amount(uint64_t *random, bool few)
{
	return few ? 1 + random_below(random, 4) : 0.01 + random_below(random, 1000000) / 1e3;
}

static void random_network(uint64_t *random, struct network *n)
{
	bool few = chance(random, 500);

	*n = (struct network){ .links = random_below(random, LINKS_MAX + 1),
			       .flows = random_below(random, FLOWS_MAX + 1) };
	for (unsigned int i = 0; i < n->links; i++)
		n->capacity[i] = chance(random, 50) ? 0 : random_amount(random, few);
	for (unsigned int f = 0; f < n->flows; f++) {
		struct fair_flow *flow = &n->flow[f];

		flow->use = n->use[f];
		flow->weight = chance(random, 500) ? 1 : random_amount(random, few);
		flow->limit = chance(random, 700) ? INFINITY : random_below(random, 3);
		for (unsigned int i = n->links; i-- > 0;)
			if (chance(random, 300))
				n->use[f][flow->uses++] = (struct fair_use){
					i, chance(random, 500) ? 1 : random_amount(random, few)
				};
	}
}

static const char *rates_are_fair(uint64_t seed)
{
	double rate[FLOWS_MAX], obvious[FLOWS_MAX];
	struct network n;

	random_network(&seed, &n);
	assert_int_equal(fair_rates(n.capacity, n.links, n.flow, n.flows, rate), 0);
	obvious_rates(&n, obvious);
	for (unsigned int i = 0; i < n.links; i++)
		if (load_of(&n, i, rate) > n.capacity[i] * (1 + CLOSE))
			return "a link has more than its capacity";
	for (unsigned int f = 0; f < n.flows; f++) {
		if (!(rate[f] >= 0))
			return "a rate below 0";
		if (!is_close(rate[f], obvious[f]))
			return "another rate than that of the obvious version";
		if (!is_content(&n, f, rate))
			return "a flow has neither its limit nor a bottleneck";
	}
	return NULL;
}

static void every_flow_has_its_limit_or_a_bottleneck(void **state)
{
	run_seeds(NETWORKS, rates_are_fair);
}

/* --- known cases ----------------------------------------------------------------------------- */

/* Flows a: links 0 and 1; b: link 0; c: link 1. */
static void rates(const double *capacity, const double *weight, const double *limit, double a,
		  double b, double c)
{
	static const struct fair_use both[] = { { 0, 1 }, { 1, 1 } };
	struct fair_flow flow[] = { { both, 2, 1, INFINITY },
				    { &both[0], 1, 1, INFINITY },
				    { &both[1], 1, 1, INFINITY } };
	const double want[] = { a, b, c };
	double rate[3];

	for (int f = 0; f < 3; f++) {
		flow[f].weight = weight ? weight[f] : 1;
		flow[f].limit = limit ? limit[f] : INFINITY;
	}
	assert_int_equal(fair_rates(capacity, 2, flow, 3, rate), 0);
	for (int f = 0; f < 3; f++)
		assert_true(is_close(rate[f], want[f]));
}

static void what_one_cannot_use_others_get(void **state)
{
	rates((double[]){ 10, 10 }, NULL, NULL, 5, 5, 5);
	rates((double[]){ 10, 4 }, NULL, NULL, 2, 8, 2);
	rates((double[]){ 0, 4 }, NULL, NULL, 0, 0, 4);
	rates((double[]){ 12, 12 }, (double[]){ 1, 2, 5 }, NULL, 2, 10, 10);
	rates((double[]){ 10, 10 }, NULL, (double[]){ 1, INFINITY, 3 }, 1, 9, 3);
}

/* Ten workers without a node that sums: the link before the parameter server has all of it. */
static void a_tree_that_sums_nowhere_uses_a_link_often(void **state)
{
	const double capacity[] = { 100 };
	const struct fair_use star = { 0, 10 }, tree = { 0, 1 };
	const struct fair_flow flow[] = { { &star, 1, 1, INFINITY }, { &tree, 1, 1, INFINITY } };
	double rate[2];

	assert_int_equal(fair_rates(capacity, 1, flow, 1, rate), 0);
	assert_true(is_close(rate[0], 10));
	assert_int_equal(fair_rates(capacity, 1, flow, 2, rate), 0);
	assert_true(is_close(rate[0], 100.0 / 11) && is_close(rate[1], 100.0 / 11));
}

static void nothing_holds_up_who_uses_nothing(void **state)
{
	const struct fair_flow flow[] = { { NULL, 0, 1, INFINITY }, { NULL, 0, 2, 7 } };
	double rate[2];

	assert_int_equal(fair_rates(NULL, 0, flow, 2, rate), 0);
	assert_true(isinf(rate[0]) && rate[1] == 7);
	assert_int_equal(fair_rates(NULL, 0, NULL, 0, rate), 0);
}

static void numbers_out_of_range_are_refused(void **state)
{
	double capacity = 1, rate = -1;
	struct fair_use use = { 0, 1 };
	struct fair_flow flow = { &use, 1, 1, INFINITY };

#define REFUSED(field, value)                                                         \
	do {                                                                          \
		__typeof__(field) was = field;                                        \
		field = (value);                                                      \
		assert_int_equal(fair_rates(&capacity, 1, &flow, 1, &rate), -EINVAL); \
		field = was;                                                          \
	} while (0)
	REFUSED(capacity, -1);
	REFUSED(capacity, INFINITY);
	REFUSED(capacity, NAN);
	REFUSED(use.link, 1);
	REFUSED(use.times, 0);
	REFUSED(use.times, INFINITY);
	REFUSED(flow.weight, 0);
	REFUSED(flow.weight, NAN);
	REFUSED(flow.limit, -1);
	REFUSED(flow.limit, NAN);
	assert_true(rate == -1);
	assert_int_equal(fair_rates(&capacity, 1, &flow, 1, &rate), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_flow_has_its_limit_or_a_bottleneck),
		cmocka_unit_test(what_one_cannot_use_others_get),
		cmocka_unit_test(a_tree_that_sums_nowhere_uses_a_link_often),
		cmocka_unit_test(nothing_holds_up_who_uses_nothing),
		cmocka_unit_test(numbers_out_of_range_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
