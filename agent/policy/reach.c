// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "reach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"

void reach_free(struct reach *r)
{
	if (!r)
		return;
	free(r->index);
	free(r->leaving);
	free(r->arriving);
	free(r->machine);
	free(r->far);
	free(r->next_at);
	free(r->next_link);
	free(r->next_row);
	free(r->way);
	free(r);
}

static bool is_inner(const struct reach *r, uint32_t machine)
{
	return r->leaving[machine] == GRAPH_NONE;
}

/* --- the table ------------------------------------------------------------------------------- */

/* A host with one link to a switch, and one from there. */
static bool is_leaf(const struct graph *g, uint32_t m)
{
	uint32_t out = g->leaving_at[m], in = g->arriving_at[m];

	return g->machine[m].kind == GRAPH_HOST && g->leaving_at[m + 1] == out + 1 &&
	       g->arriving_at[m + 1] == in + 1 &&
	       g->link[g->leaving[out]].to == g->link[g->arriving[in]].from &&
	       g->machine[g->link[g->leaving[out]].to].kind != GRAPH_HOST;
}

static void number_machines(struct reach *r)
{
	const struct graph *g = r->graph;

	for (uint32_t m = 0; m < g->machines; m++) {
		bool leaf = is_leaf(g, m);

		r->leaving[m] = leaf ? g->leaving[g->leaving_at[m]] : GRAPH_NONE;
		r->arriving[m] = leaf ? g->arriving[g->arriving_at[m]] : GRAPH_NONE;
		if (leaf)
			continue;
		r->index[m] = r->inner;
		r->machine[r->inner++] = m;
	}
	for (uint32_t m = 0; m < g->machines; m++)
		if (!is_inner(r, m))
			r->index[m] = r->index[g->link[r->leaving[m]].to];
}

/* Links between inner machines, by where they lead. */
struct backwards {
	uint32_t *at, *from; /* rows */
	uint32_t *queue; /* rows */
};

static void backwards_close(struct backwards *b)
{
	free(b->at);
	free(b->from);
	free(b->queue);
}

static int backwards_open(const struct reach *r, struct backwards *ret)
{
	const struct graph *g = r->graph;
	uint32_t count = 0;

	ret->at = calloc(r->inner + 1, sizeof(*ret->at));
	ret->from = calloc(g->links + 1, sizeof(*ret->from));
	ret->queue = calloc(r->inner + 1, sizeof(*ret->queue));
	if (!ret->at || !ret->from || !ret->queue)
		return -ENOMEM;
	for (uint32_t row = 0; row < r->inner; row++) {
		uint32_t m = r->machine[row];

		for (uint32_t i = g->arriving_at[m]; i < g->arriving_at[m + 1]; i++) {
			uint32_t before = g->link[g->arriving[i]].from;

			if (is_inner(r, before))
				ret->from[count++] = r->index[before];
		}
		ret->at[row + 1] = count;
	}
	return 0;
}

/* How far each inner machine is from one of them: in breadth, against the direction of links. */
static void search(struct reach *r, struct backwards *b, uint32_t to)
{
	uint8_t *far = r->far + (size_t)to * r->inner;
	unsigned int done = 0, found = 0;

	far[to] = 0;
	b->queue[found++] = to;
	while (done < found) {
		uint32_t row = b->queue[done++];
		unsigned int links = far[row] + 1;

		if (links > REACH_LINKS_MAX)
			break;
		if (row != to && r->graph->machine[r->machine[row]].kind == GRAPH_HOST)
			continue;
		for (uint32_t i = b->at[row]; i < b->at[row + 1]; i++) {
			if (far[b->from[i]] != REACH_NONE)
				continue;
			far[b->from[i]] = (uint8_t)links;
			b->queue[found++] = b->from[i];
		}
	}
}

/* Hosts forward nothing, so a path may end at a host of its own row, and not go on. */
static int list_next(struct reach *r)
{
	const struct graph *g = r->graph;
	uint32_t count = 0;

	r->next_at = calloc(r->inner + 1, sizeof(*r->next_at));
	r->next_link = calloc(g->links + 1, sizeof(*r->next_link));
	r->next_row = calloc(g->links + 1, sizeof(*r->next_row));
	if (!r->next_at || !r->next_link || !r->next_row)
		return -ENOMEM;
	for (uint32_t row = 0; row < r->inner; row++) {
		uint32_t m = r->machine[row];

		for (uint32_t i = g->leaving_at[m]; i < g->leaving_at[m + 1]; i++) {
			uint32_t next = g->link[g->leaving[i]].to;

			if (!is_inner(r, next))
				continue;
			r->next_link[count] = g->leaving[i];
			r->next_row[count++] = r->index[next];
		}
		r->next_at[row + 1] = count;
	}
	return 0;
}

static int make_table(struct reach *r)
{
	_cleanup_(backwards_close) struct backwards b = { 0 };
	int error;

	if (r->inner > REACH_INNER_MAX)
		return -E2BIG;
	r->far = calloc((size_t)r->inner * r->inner + 1, sizeof(*r->far));
	if (!r->far)
		return -ENOMEM;
	error = backwards_open(r, &b);
	if (error < 0)
		return error;
	memset(r->far, REACH_NONE, (size_t)r->inner * r->inner);
	for (uint32_t to = 0; to < r->inner; to++)
		search(r, &b, to);
	return 0;
}

int reach_make(const struct graph *g, struct reach **ret)
{
	_cleanup_(reach_freep) struct reach *r = calloc(1, sizeof(*r));
	int error;

	if (!r)
		return -ENOMEM;
	r->graph = g;
	r->index = calloc(g->machines + 1, sizeof(*r->index));
	r->leaving = calloc(g->machines + 1, sizeof(*r->leaving));
	r->arriving = calloc(g->machines + 1, sizeof(*r->arriving));
	r->machine = calloc(g->machines + 1, sizeof(*r->machine));
	if (!r->index || !r->leaving || !r->arriving || !r->machine)
		return -ENOMEM;
	number_machines(r);
	error = make_table(r);
	if (error == 0)
		error = list_next(r);
	if (error < 0)
		return error;
	*ret = TAKE_PTR(r);
	return 0;
}

/* --- what is asked --------------------------------------------------------------------------- */

/* SplitMix64's last steps: G. Steele, D. Lea, C. Flood, OOPSLA 2014. */
static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static bool leads_nearer(const struct reach *r, const uint8_t *far, uint32_t row, uint32_t next,
			 uint32_t to)
{
	return far[next] + 1 == far[row] &&
	       (next == to || r->graph->machine[r->machine[next]].kind != GRAPH_HOST);
}

/* Which of the links of a row to take; there is one that leads nearer to the row `to`. */
static uint32_t next_of(const struct reach *r, uint32_t row, uint32_t to, uint64_t hash)
{
	const uint8_t *far = r->far + (size_t)to * r->inner;
	uint32_t end = r->next_at[row + 1], equal = 0, i, taken;

	for (i = r->next_at[row]; i < end; i++)
		equal += leads_nearer(r, far, row, r->next_row[i], to);
	taken = equal > 1 ? mix(hash) % equal : 0;
	for (i = r->next_at[row];; i++)
		if (leads_nearer(r, far, row, r->next_row[i], to) && taken-- == 0)
			return i;
}

/* --- ways ------------------------------------------------------------------------------------ */

static int by_end(const void *a, const void *b)
{
	const struct reach_way *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->link > y->link) - (x->link < y->link);
}

int reach_ways_set(struct reach *r, const struct reach_way *way, unsigned int ways)
{
	struct reach_way *copy = calloc(ways + 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	for (unsigned int i = 0; i < ways; i++) {
		if (way[i].at >= r->graph->machines || way[i].to >= r->graph->machines ||
		    way[i].link >= r->graph->links ||
		    r->graph->link[way[i].link].from != way[i].at) {
			free(copy);
			return -EINVAL;
		}
		copy[i] = way[i];
	}
	if (ways)
		qsort(copy, ways, sizeof(*copy), by_end);
	free(r->way);
	r->way = copy;
	r->ways = ways;
	return 0;
}

/* The link that ways give; GRAPH_NONE: there is none, or it leads to a host that is not `to`. */
static uint32_t way_link(const struct reach *r, uint32_t at, uint32_t to, uint64_t hash)
{
	const struct reach_way key = { at, to, 0 };
	unsigned int low = 0, high = r->ways, equal = 0;
	uint32_t link, next;

	while (low < high) {
		const unsigned int middle = (low + high) / 2;

		if (by_end(&r->way[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + equal < r->ways && r->way[low + equal].at == at &&
	       r->way[low + equal].to == to)
		equal++;
	if (!equal)
		return GRAPH_NONE;
	link = r->way[low + (equal > 1 ? mix(hash) % equal : 0)].link;
	next = r->graph->link[link].to;
	return next == to || r->graph->machine[next].kind != GRAPH_HOST ? link : GRAPH_NONE;
}

/* From row to row until that of `to`. Returns the links there are then, or GRAPH_NONE. */
static uint32_t walk(const struct reach *r, uint32_t from, uint32_t to, uint64_t hash, bool by_ways,
		     uint32_t ret_link[GRAPH_PATH_MAX])
{
	uint32_t row = r->index[from], end = r->index[to], links = 0;

	if (!is_inner(r, from))
		ret_link[links++] = r->leaving[from];
	while (row != end) {
		uint32_t link = by_ways ? way_link(r, r->machine[row], to, hash + row) : GRAPH_NONE;

		if (links > REACH_LINKS_MAX || r->far[(size_t)end * r->inner + row] == REACH_NONE)
			return GRAPH_NONE;
		if (link == GRAPH_NONE)
			link = r->next_link[next_of(r, row, end, hash + row)];
		ret_link[links++] = link;
		row = r->index[r->graph->link[link].to];
	}
	if (!is_inner(r, to))
		ret_link[links++] = r->arriving[to];
	return links;
}

uint32_t reach_path(const struct reach *r, uint32_t from, uint32_t to, uint64_t seed,
		    uint32_t ret_link[GRAPH_PATH_MAX])
{
	uint64_t hash = mix(mix(seed + from) + to);
	uint32_t links;

	if (from == to || reach_distance(r, from, to) == GRAPH_NONE)
		return from == to ? 0 : GRAPH_NONE;
	links = r->ways ? walk(r, from, to, hash, true, ret_link) : GRAPH_NONE;
	return links == GRAPH_NONE ? walk(r, from, to, hash, false, ret_link) : links;
}
