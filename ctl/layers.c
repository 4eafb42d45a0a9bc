// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "layers.h"

#include <errno.h>
#include <stdlib.h>

#include "common/owned.h"
#include "common/util.h"

struct walk {
	struct layers_machine *machine;
	struct layers_link *link;
	int machines, links;
	int *begins; /* [machines + 1]: where the neighbours of each begin in `next` */
	int *next; /* [2 * links] */
	int *order; /* machines, as they were reached */
	int *place; /* of each machine in `order`; LAYERS_NONE: not reached */
	int *from; /* by way of whom; LAYERS_NONE: it is the first of its part */
	int *distance; /* of one search */
	int *queue; /* the same */
	double *rows; /* that a machine has, with all that were reached by way of it */
};

static void walk_close(struct walk *w)
{
	free(w->begins);
	free(w->next);
	free(w->order);
	free(w->place);
	free(w->from);
	free(w->distance);
	free(w->queue);
	free(w->rows);
}

static int walk_open(struct walk *w)
{
	const size_t n = (size_t)w->machines + 1;

	w->begins = calloc(n + 1, sizeof(*w->begins));
	w->next = calloc(2 * (size_t)w->links + 1, sizeof(*w->next));
	w->order = calloc(n, sizeof(*w->order));
	w->place = calloc(n, sizeof(*w->place));
	w->from = calloc(n, sizeof(*w->from));
	w->distance = calloc(n, sizeof(*w->distance));
	w->queue = calloc(n, sizeof(*w->queue));
	w->rows = calloc(n, sizeof(*w->rows));
	return w->begins && w->next && w->order && w->place && w->from && w->distance && w->queue &&
			       w->rows
		       ? 0
		       : -ENOMEM;
}

/* Neighbours in the order of the links. */
static void neighbours_fill(struct walk *w)
{
	for (int i = 0; i < w->links; i++)
		for (int e = 0; e < 2; e++)
			w->begins[w->link[i].end[e] + 2]++;
	for (int m = 0; m < w->machines; m++)
		w->begins[m + 2] += w->begins[m + 1];
	for (int i = 0; i < w->links; i++)
		for (int e = 0; e < 2; e++)
			w->next[w->begins[w->link[i].end[e] + 1]++] = w->link[i].end[!e];
}

/* --- distances ------------------------------------------------------------------------------- */

/* Fills w->queue with the part of the network that has `first`, nearest first; how many. */
static int search(struct walk *w, int first)
{
	int count = 0;

	for (int m = 0; m < w->machines; m++)
		w->distance[m] = LAYERS_NONE;
	w->distance[first] = 0;
	w->queue[count++] = first;
	for (int i = 0; i < count; i++) {
		const int at = w->queue[i];

		for (int k = w->begins[at]; k < w->begins[at + 1]; k++) {
			const int to = w->next[k];

			if (w->distance[to] != LAYERS_NONE)
				continue;
			w->distance[to] = w->distance[at] + 1;
			w->queue[count++] = to;
		}
	}
	return count;
}

/* Of those that are not reached yet: who reaches most, and of these who is nearest to all. */
static int central(struct walk *w)
{
	int best = LAYERS_NONE, best_count = 0;
	long best_sum = 0;

	for (int m = 0; m < w->machines; m++) {
		long sum = 0;
		int count;

		if (w->place[m] != LAYERS_NONE)
			continue;
		count = search(w, m);
		for (int i = 0; i < count; i++)
			sum += w->distance[w->queue[i]];
		if (count < best_count || (count == best_count && sum >= best_sum))
			continue;
		best = m;
		best_count = count;
		best_sum = sum;
	}
	return best;
}

/* --- columns and rows ------------------------------------------------------------------------ */

static int reach(struct walk *w, int first, int reached)
{
	int begun = reached;

	w->place[first] = reached;
	w->from[first] = LAYERS_NONE;
	w->machine[first].column = 0;
	w->order[reached++] = first;
	for (; begun < reached; begun++) {
		const int at = w->order[begun];

		for (int k = w->begins[at]; k < w->begins[at + 1]; k++) {
			const int to = w->next[k];

			if (w->place[to] != LAYERS_NONE)
				continue;
			w->place[to] = reached;
			w->from[to] = at;
			w->machine[to].column = w->machine[at].column + 1;
			w->order[reached++] = to;
		}
	}
	return reached;
}

static void links_arrive(struct walk *w)
{
	for (int m = 0; m < w->machines; m++)
		w->machine[m].rows = 0;
	for (int i = 0; i < w->links; i++) {
		struct layers_link *l = &w->link[i];

		l->near = w->place[l->end[0]] > w->place[l->end[1]];
		l->arrives = w->machine[l->end[!l->near]].rows++;
	}
	for (int m = 0; m < w->machines; m++)
		if (!w->machine[m].rows)
			w->machine[m].rows = 1;
}

/* From the last that was reached to the first, so that all who came by way of one are before it. */
static void rows_sum(struct walk *w)
{
	for (int m = 0; m < w->machines; m++)
		w->rows[m] = 0;
	for (int i = w->machines - 1; i >= 0; i--) {
		const int m = w->order[i];

		if (w->rows[m] < w->machine[m].rows)
			w->rows[m] = w->machine[m].rows;
		if (w->from[m] != LAYERS_NONE)
			w->rows[w->from[m]] += w->rows[m];
	}
}

/* Each in the middle of those that were reached by way of it; the rows of all. */
static double rows_give(struct walk *w)
{
	_cleanup_(freep) double *free_row = calloc((size_t)w->machines + 1, sizeof(*free_row));
	double all = 0;

	for (int i = 0; free_row && i < w->machines; i++) {
		const int m = w->order[i];
		double *from = w->from[m] == LAYERS_NONE ? &all : &free_row[w->from[m]];

		free_row[m] = *from;
		w->machine[m].row = *from + (w->rows[m] - w->machine[m].rows) / 2;
		*from += w->rows[m];
	}
	return free_row ? all : -ENOMEM;
}

int layers_make(struct layers_machine *machine, int machines, struct layers_link *link, int links,
		int first, int *ret_columns, int *ret_rows)
{
	_cleanup_(walk_close) struct walk w = {
		.machine = machine, .link = link, .machines = machines, .links = links
	};
	int reached = 0, columns = 0, r = 0;

	if (machines > LAYERS_MACHINES_MAX || links > LAYERS_LINKS_MAX)
		return -E2BIG;
	r = walk_open(&w);
	if (r < 0)
		return r;
	neighbours_fill(&w);
	for (int m = 0; m < machines; m++)
		w.place[m] = LAYERS_NONE;
	for (; reached < machines; first = LAYERS_NONE)
		reached = reach(&w, first == LAYERS_NONE ? central(&w) : first, reached);
	links_arrive(&w);
	rows_sum(&w);
	r = (int)rows_give(&w);
	if (r < 0)
		return r;
	for (int m = 0; m < machines; m++)
		if (machine[m].column >= columns)
			columns = machine[m].column + 1;
	*ret_columns = columns;
	*ret_rows = r;
	return 0;
}
