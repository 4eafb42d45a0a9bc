// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Progressive filling: all flows rise together, each by its weight, until something is full; the
 * flows there stop, and the others rise on. The limit of a flow is a link that is its alone. When
 * flows stop, the links that they use let others rise further than before, so what stands in the
 * heap is too low at times, and never too high: a link is looked at again when it comes to the top.
 */
#include "fair.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/owned.h"

/* A link, or what a flow's limit is made of. */
struct filling {
	double left; /* of the capacity, beside the flows that have stopped */
	double weight; /* of the flows that rise: what they use when all rise by 1 */
	size_t first; /* of its flows, in the pool's users */
	uint32_t users;
};

struct heap_entry {
	double level;
	uint32_t link;
};

struct pool {
	unsigned int links, flows;
	const struct fair_flow *flow;
	struct filling *link; /* those of the caller, then one for each flow's limit */
	uint32_t *users; /* flows, by link */
	bool *stopped;
	struct heap_entry *heap;
	unsigned int waiting;
};

static void pool_close(struct pool *p)
{
	free(p->link);
	free(p->users);
	free(p->stopped);
	free(p->heap);
}

/* --- what is given --------------------------------------------------------------------------- */

static bool is_positive(double value) { return isfinite(value) && value > 0; }

static bool is_sound(const double *capacity, unsigned int links, const struct fair_flow *flow,
		     unsigned int flows)
{
	for (unsigned int i = 0; i < links; i++)
		if (!isfinite(capacity[i]) || capacity[i] < 0)
			return false;
	for (unsigned int f = 0; f < flows; f++) {
		if (!is_positive(flow[f].weight) || !(flow[f].limit >= 0))
			return false;
		for (unsigned int i = 0; i < flow[f].uses; i++)
			if (flow[f].use[i].link >= links || !is_positive(flow[f].use[i].times))
				return false;
	}
	return true;
}

static void pool_add(struct pool *p, uint32_t link, uint32_t flow, double times)
{
	struct filling *l = &p->link[link];

	p->users[l->first + l->users++] = flow;
	l->weight += times * p->flow[flow].weight;
}

/* Each flow stands at each link that it uses. */
static void pool_fill(struct pool *p, const double *capacity)
{
	size_t next = 0;

	for (unsigned int f = 0; f < p->flows; f++)
		for (unsigned int i = 0; i < p->flow[f].uses; i++)
			p->link[p->flow[f].use[i].link].users++;
	for (unsigned int i = 0; i < p->links + p->flows; i++) {
		p->link[i].first = next;
		next += i < p->links ? p->link[i].users : 1;
		p->link[i].users = 0;
		p->link[i].left = i < p->links ? capacity[i] : p->flow[i - p->links].limit;
	}
	for (unsigned int f = 0; f < p->flows; f++) {
		for (unsigned int i = 0; i < p->flow[f].uses; i++)
			pool_add(p, p->flow[f].use[i].link, f, p->flow[f].use[i].times);
		pool_add(p, p->links + f, f, 1);
	}
}

static int pool_open(const double *capacity, unsigned int links, const struct fair_flow *flow,
		     unsigned int flows, struct pool *ret)
{
	struct pool p = { .links = links, .flows = flows, .flow = flow };
	size_t uses = flows, all = (size_t)links + flows;

	for (unsigned int f = 0; f < flows; f++)
		uses += flow[f].uses;
	p.link = calloc(all + 1, sizeof(*p.link));
	p.users = calloc(uses + 1, sizeof(*p.users));
	p.stopped = calloc(flows + 1, sizeof(*p.stopped));
	p.heap = calloc(all + 1, sizeof(*p.heap));
	if (!p.link || !p.users || !p.stopped || !p.heap) {
		pool_close(&p);
		return -ENOMEM;
	}
	pool_fill(&p, capacity);
	*ret = p;
	return 0;
}

/* --- the heap: the lowest level first --------------------------------------------------------- */

static void heap_sink(struct pool *p, unsigned int at)
{
	for (;;) {
		struct heap_entry moved = p->heap[at];
		unsigned int next = at;

		for (unsigned int child = 2 * at + 1; child <= 2 * at + 2; child++)
			if (child < p->waiting && p->heap[child].level < p->heap[next].level)
				next = child;
		if (next == at)
			return;
		p->heap[at] = p->heap[next];
		p->heap[next] = moved;
		at = next;
	}
}

/* How far the flows of a link can rise; where all have stopped, any way. */
static double level_of(const struct filling *l)
{
	return l->weight > 0 ? fmax(l->left, 0) / l->weight : INFINITY;
}

static void heap_build(struct pool *p)
{
	for (unsigned int i = 0; i < p->links + p->flows; i++)
		if (p->link[i].users)
			p->heap[p->waiting++] = (struct heap_entry){ level_of(&p->link[i]), i };
	for (unsigned int i = p->waiting / 2; i-- > 0;)
		heap_sink(p, i);
}

/* --- filling --------------------------------------------------------------------------------- */

static void leave(struct filling *l, double weight, double level)
{
	l->left -= weight * level;
	l->weight -= weight;
}

static void stop_flow(struct pool *p, uint32_t f, double level, double *ret_rate)
{
	const struct fair_flow *flow = &p->flow[f];

	for (unsigned int i = 0; i < flow->uses; i++)
		leave(&p->link[flow->use[i].link], flow->use[i].times * flow->weight, level);
	p->stopped[f] = true;
	ret_rate[f] = level * flow->weight;
}

static void pool_run(struct pool *p, double *ret_rate)
{
	heap_build(p);
	while (p->waiting) {
		const struct filling *l = &p->link[p->heap[0].link];
		double level = p->heap[0].level;

		if (level_of(l) > level) {
			p->heap[0].level = level_of(l);
			heap_sink(p, 0);
			continue;
		}
		p->heap[0] = p->heap[--p->waiting];
		heap_sink(p, 0);
		for (size_t i = l->first; i < l->first + l->users; i++)
			if (!p->stopped[p->users[i]])
				stop_flow(p, p->users[i], level, ret_rate);
	}
}

int fair_rates(const double *capacity, unsigned int links, const struct fair_flow *flow,
	       unsigned int flows, double *ret_rate)
{
	_cleanup_(pool_close) struct pool p = { 0 };
	int r;

	if (!is_sound(capacity, links, flow, flows))
		return -EINVAL;
	r = pool_open(capacity, links, flow, flows, &p);
	if (r < 0)
		return r;
	pool_run(&p, ret_rate);
	return 0;
}
