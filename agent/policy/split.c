// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "split.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"

static const double CLOSE = 1e-6; /* shares together are 1 but for so much */

/* --- what is asked --------------------------------------------------------------------------- */

static bool is_amount(double value) { return isfinite(value) && value >= 0; }

static bool are_amounts(const double *value, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (!is_amount(value[i]))
			return false;
	return true;
}

static double sum_of(const double *value, unsigned int count)
{
	double sum = 0;

	for (unsigned int i = 0; i < count; i++)
		sum += value[i];
	return sum;
}

static bool is_sound(const struct split_problem *p)
{
	return p->workers > 0 && p->roots > 0 && p->roots <= SPLIT_ROOTS_MAX &&
	       are_amounts(p->root_room, p->roots) && are_amounts(p->node_room, p->nodes) &&
	       isfinite(sum_of(p->root_room, p->roots)) && sum_of(p->root_room, p->roots) > 0 &&
	       isfinite(sum_of(p->node_room, p->nodes));
}

/* --- by formula ------------------------------------------------------------------------------ */

int split_bound(const struct split_problem *p, double *ret_rate)
{
	double roots, summed, part;

	if (!is_sound(p))
		return -EINVAL;
	part = 1.0 / p->workers;
	roots = sum_of(p->root_room, p->roots);
	summed = fmin(part * sum_of(p->node_room, p->nodes), roots);
	*ret_rate = part * roots + (1 - part) * summed;
	return 0;
}

/*
 * Of each worker's rate F to a root, at least (W F - room) / (W - 1) must be summed, and all of it
 * at most: so F is at most the room, and these parts together are at most the nodes' room / W.
 * Where they are more, the rate is too high; the line through the parts that are above 0 leads to a
 * lower one, and never below the right one, as parts only fall away.
 */
int split_rate(const struct split_problem *p, const double *share, double *ret_rate)
{
	double rate = INFINITY, next = INFINITY, workers = p->workers, summed;

	if (!is_sound(p) || !are_amounts(share, p->roots) ||
	    fabs(sum_of(share, p->roots) - 1) > CLOSE)
		return -EINVAL;
	for (unsigned int s = 0; s < p->roots; s++)
		if (share[s] > 0)
			next = fmin(next, p->root_room[s] / share[s]);
	summed = sum_of(p->node_room, p->nodes) * (workers - 1) / workers;
	while (next < rate) {
		double room = summed, use = 0;

		rate = next;
		for (unsigned int s = 0; s < p->roots; s++)
			if (workers * rate * share[s] > p->root_room[s]) {
				room += p->root_room[s];
				use += workers * share[s];
			}
		if (use * rate > room)
			next = room / use;
	}
	*ret_rate = rate;
	return 0;
}

int split_by_room(const struct split_problem *p, double *ret_share)
{
	double all;

	if (!is_sound(p))
		return -EINVAL;
	all = sum_of(p->root_room, p->roots);
	for (unsigned int s = 0; s < p->roots; s++)
		ret_share[s] = p->root_room[s] / all;
	return 0;
}

/* --- by prices ------------------------------------------------------------------------------- */

/*
 * The program by worker, as all are alike, in units of all roots' room. Where prices are given it
 * falls apart: each rate is as high as it can be alone if it is worth more than it costs, and
 * otherwise 0. The sums over rounds, each by its step, come near to the program's optimum; sooner
 * without the first half of the rounds, in which prices are far from where they end.
 */
struct market {
	const struct split_problem *p;
	double unit;
	double *root_price, *node_price;
	double *root_use, *node_use; /* what is asked for in this round */
	double *asked; /* of each root, in the rounds that count */
};

static void market_close(struct market *m) { free(m->root_price); }

static int market_open(const struct split_problem *p, struct market *ret)
{
	struct market m = { .p = p, .unit = sum_of(p->root_room, p->roots) };

	m.root_price = calloc(3 * (size_t)p->roots + 2 * (size_t)p->nodes, sizeof(double));
	if (!m.root_price)
		return -ENOMEM;
	m.root_use = m.root_price + p->roots;
	m.asked = m.root_use + p->roots;
	m.node_price = m.asked + p->roots;
	m.node_use = m.node_price + p->nodes;
	*ret = m;
	return 0;
}

static double root_room(const struct market *m, unsigned int s)
{
	return m->p->root_room[s] / m->unit;
}

static double node_room(const struct market *m, unsigned int v)
{
	return m->p->node_room[v] / m->unit;
}

/* What workers ask for, for root s: straight, and by each node. Returns the rate of one worker. */
static double ask(struct market *m, unsigned int s)
{
	double workers = m->p->workers, rate = 0;

	if (workers * m->root_price[s] < 1) {
		rate += root_room(m, s) / workers;
		m->root_use[s] += root_room(m, s);
	}
	for (unsigned int v = 0; v < m->p->nodes; v++) {
		double most = fmin(root_room(m, s), node_room(m, v) / workers);

		if (m->root_price[s] + workers * m->node_price[v] >= 1)
			continue;
		rate += most;
		m->root_use[s] += most;
		m->node_use[v] += workers * most;
	}
	return rate;
}

static double changed(double price, double step, double use, double room)
{
	return fmax(0, price + step * (use - room));
}

static void trade(struct market *m, double step, bool counts)
{
	const struct split_problem *p = m->p;

	memset(m->root_use, 0, p->roots * sizeof(double));
	if (p->nodes)
		memset(m->node_use, 0, p->nodes * sizeof(double));
	for (unsigned int s = 0; s < p->roots; s++)
		m->asked[s] += ask(m, s) * (counts ? step : 0);
	for (unsigned int s = 0; s < p->roots; s++)
		m->root_price[s] = changed(m->root_price[s], step, m->root_use[s], root_room(m, s));
	for (unsigned int v = 0; v < p->nodes; v++)
		m->node_price[v] = changed(m->node_price[v], step, m->node_use[v], node_room(m, v));
}

int split_by_prices(const struct split_problem *p, unsigned int rounds, double *ret_share)
{
	_cleanup_(market_close) struct market m = { 0 };
	double all;
	int r;

	if (!is_sound(p) || rounds == 0)
		return -EINVAL;
	r = market_open(p, &m);
	if (r < 0)
		return r;
	for (unsigned int i = 1; i <= rounds; i++)
		trade(&m, 1 / sqrt(i), i > rounds / 2);
	all = sum_of(m.asked, p->roots);
	if (all == 0) /* few rounds, and all was too dear */
		return split_by_room(p, ret_share);
	for (unsigned int s = 0; s < p->roots; s++)
		ret_share[s] = m.asked[s] / all;
	return 0;
}

/* --- by trying ------------------------------------------------------------------------------- */

/* So many ways to give `parts` parts to roots: (parts + roots - 1) over (roots - 1). */
static bool are_few(unsigned int parts, unsigned int roots)
{
	double tries = 1;

	for (unsigned int s = 1; s < roots; s++)
		tries *= ((double)parts + s) / s;
	return tries <= SPLIT_TRIES_MAX;
}

/* From all at the last root to all at the first one. False: that was the last split. */
static bool next_split(unsigned int *part, unsigned int roots)
{
	unsigned int last = roots - 1, rest;

	while (last > 0 && part[last] == 0)
		last--;
	if (last == 0)
		return false;
	rest = part[last] - 1;
	part[last] = 0;
	part[last - 1]++;
	part[roots - 1] = rest;
	return true;
}

struct trial {
	double *share, *best; /* `best` is the share of the best one */
	unsigned int *part;
};

static void trial_close(struct trial *t)
{
	free(t->share);
	free(t->best);
	free(t->part);
}

int split_search(const struct split_problem *p, unsigned int parts,
		 int (*rate)(void *context, const double *share, double *ret), void *context,
		 double *ret_share, double *ret_rate)
{
	_cleanup_(trial_close) struct trial t = { 0 };
	double best, reached;
	int r;

	if (!is_sound(p) || parts == 0)
		return -EINVAL;
	if (!are_few(parts, p->roots))
		return -E2BIG;
	t.share = calloc(p->roots, sizeof(*t.share));
	t.best = calloc(p->roots, sizeof(*t.best));
	t.part = calloc(p->roots, sizeof(*t.part));
	if (!t.share || !t.best || !t.part)
		return -ENOMEM;
	split_by_room(p, t.best);
	r = rate(context, t.best, &best);
	t.part[p->roots - 1] = parts;
	for (bool more = true; more && r == 0; more = next_split(t.part, p->roots)) {
		for (unsigned int s = 0; s < p->roots; s++)
			t.share[s] = (double)t.part[s] / parts;
		r = rate(context, t.share, &reached);
		if (r == 0 && reached > best) {
			best = reached;
			memcpy(t.best, t.share, p->roots * sizeof(*t.best));
		}
	}
	if (r < 0)
		return r;
	memcpy(ret_share, t.best, p->roots * sizeof(*t.best));
	*ret_rate = best;
	return 0;
}
