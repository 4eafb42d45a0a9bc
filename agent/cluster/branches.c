// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "branches.h"

#include <errno.h>
#include <stdlib.h>
#include <tally/wire.h>

#include "common/address.h"
#include "common/owned.h"
#include "ways.h"

/* Of each machine: the next one towards the root. */
struct next {
	unsigned int far; /* cables of the shortest way; UINT_MAX: there is none */
	unsigned int cable, end;
	unsigned int workers;
	bool is_way; /* routing says so */
	bool is_in; /* the tree */
};

struct work {
	const struct drawing *drawing;
	struct next *next;
	unsigned int root;
	struct branch *branch;
	unsigned int count;
};

static unsigned int next_of(const struct work *w, unsigned int machine)
{
	const struct next *n = &w->next[machine];

	return w->drawing->cable[n->cable].end[!n->end];
}

/* In breadth: each turn goes over all cables, as there are few turns. Hosts pass nothing on. */
static void search(struct work *w)
{
	const struct drawing *d = w->drawing;
	bool found = true;

	for (unsigned int i = 0; i < d->machines; i++)
		w->next[i].far = UINT32_MAX;
	w->next[w->root].far = 0;
	for (unsigned int far = 0; found; far++) {
		found = false;
		for (unsigned int i = 0; i < 2 * d->cables; i++) {
			const struct picture_cable *c = &d->cable[i / 2];
			const unsigned int from = c->end[i % 2], to = c->end[!(i % 2)];
			struct next *n = &w->next[from];

			if (w->next[to].far != far || n->far != UINT32_MAX ||
			    (to != w->root && d->machine[to].kind == PICTURE_HOST))
				continue;
			*n = (struct next){ .far = far + 1, .cable = i / 2, .end = i % 2 };
			found = true;
		}
	}
}

/* Those of routing; the first of several that share the packets. */
static int follow_ways(struct work *w, const struct picture *p)
{
	_cleanup_(freep) struct way *way = NULL;
	unsigned int ways = 0;
	int r = ways_make(p, w->drawing, &way, &ways);

	for (unsigned int i = 0; r == 0 && i < ways; i++) {
		struct next *n = &w->next[way[i].at];

		if (way[i].to != w->root || n->is_way || n->far == UINT32_MAX)
			continue;
		n->cable = way[i].cable;
		n->end = way[i].end;
		n->is_way = true;
	}
	return r;
}

/* False: its way leads round in circles, or nowhere. */
static bool reaches(const struct work *w, unsigned int machine)
{
	for (unsigned int i = 0; i <= w->drawing->machines; i++) {
		if (machine == w->root)
			return true;
		if (w->next[machine].far == UINT32_MAX)
			return false;
		machine = next_of(w, machine);
	}
	return false;
}

static void add(struct work *w, unsigned int machine, unsigned int depth)
{
	const struct next *n = &w->next[machine];

	w->branch[w->count++] = (struct branch){ machine, depth, n->cable, n->end, n->workers };
	for (unsigned int i = 0; i < w->drawing->machines; i++)
		if (i != w->root && w->next[i].is_in && next_of(w, i) == machine)
			add(w, i, depth + 1);
}

static int grow(struct work *w, const struct picture *p, const struct sockaddr_storage *worker,
		unsigned int workers)
{
	int r;

	search(w);
	r = follow_ways(w, p);
	w->next[w->root].is_in = true;
	for (unsigned int i = 0; r == 0 && i < workers; i++) {
		struct sockaddr_storage address = worker[i];
		int at;

		endpoint_port_set(&address, TALLY_UDP_PORT);
		at = drawing_find(p, w->drawing, &address);
		if (at < 0 || !reaches(w, (unsigned int)at))
			continue;
		w->next[at].workers++;
		for (unsigned int m = (unsigned int)at; !w->next[m].is_in; m = next_of(w, m))
			w->next[m].is_in = true;
	}
	return r;
}

int branches_make(const struct picture *p, const struct drawing *d,
		  const struct sockaddr_storage *worker, unsigned int workers, unsigned int root,
		  struct branch **ret, unsigned int *ret_count)
{
	_cleanup_(freep) struct next *next = calloc(d->machines + 1, sizeof(*next));
	struct work w = { .drawing = d, .next = next, .root = root };
	int r = -ENOMEM;

	w.branch = calloc(d->machines + 1, sizeof(*w.branch));
	if (next && w.branch)
		r = grow(&w, p, worker, workers);
	if (r < 0) {
		free(w.branch);
		return r;
	}
	add(&w, root, 0);
	*ret = w.branch;
	*ret_count = w.count;
	return 0;
}
