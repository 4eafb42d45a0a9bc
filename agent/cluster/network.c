// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "network.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tally/wire.h>

#include "common/address.h"
#include "common/owned.h"
#include "ways.h"

enum {
	UNKNOWN_MBPS = 10000, /* of lines that say nothing */
};

void network_close(struct network *n)
{
	drawing_close(&n->drawing);
	graph_free(n->graph);
	reach_free(n->reach);
}

static int graph_fill(struct network *n)
{
	const struct drawing *d = &n->drawing;
	_cleanup_(freep) struct graph_machine *machine = calloc(d->machines + 1, sizeof(*machine));
	_cleanup_(freep) struct graph_link *link = calloc(2 * d->cables + 1, sizeof(*link));

	if (!machine || !link)
		return -ENOMEM;
	for (unsigned int i = 0; i < d->machines; i++) {
		const struct picture_machine *m = &d->machine[i];

		machine[i].kind = m->kind == PICTURE_NODE   ? GRAPH_NODE
				  : m->kind == PICTURE_HOST ? GRAPH_HOST
							    : GRAPH_ROUTER;
		if (m->kind == PICTURE_NODE)
			machine[i].slots = n->picture->report[m->node]->slots;
	}
	for (unsigned int i = 0; i < d->cables; i++) {
		const struct picture_cable *c = &d->cable[i];
		const double line = (c->rate_mbps ? c->rate_mbps : UNKNOWN_MBPS) * 125000.0;

		for (unsigned int end = 0; end < 2; end++)
			link[2 * i + end] = (struct graph_link){ c->end[end], c->end[!end], line,
								 fmin(line,
								      (double)c->forecast[end]) };
	}
	return graph_make(machine, d->machines, link, 2 * d->cables, &n->graph);
}

static int ways_fill(struct network *n)
{
	_cleanup_(freep) struct reach_way *to = NULL;
	_cleanup_(freep) struct way *from = NULL;
	unsigned int ways = 0;
	int r = ways_make(n->picture, &n->drawing, &from, &ways);

	if (r < 0)
		return r;
	to = calloc(ways + 1, sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (unsigned int i = 0; i < ways; i++)
		to[i] = (struct reach_way){ from[i].at, from[i].to,
					    2 * from[i].cable + from[i].end };
	return reach_ways_set(n->reach, to, ways);
}

int network_make(const struct picture *p, struct network *ret)
{
	struct network n = { .picture = p };
	int r = drawing_make(p, &n.drawing);

	if (r == 0)
		r = graph_fill(&n);
	if (r == 0)
		r = reach_make(n.graph, &n.reach);
	if (r == 0)
		r = ways_fill(&n);
	if (r < 0)
		network_close(&n);
	else
		*ret = n;
	return r;
}

uint32_t network_node(const struct network *n, const char *node)
{
	const int at = picture_place(n->picture, node);

	for (unsigned int i = 0; at >= 0 && i < n->drawing.machines; i++)
		if (n->drawing.machine[i].kind == PICTURE_NODE &&
		    n->drawing.machine[i].node == (unsigned int)at)
			return i;
	return GRAPH_NONE;
}

uint32_t network_worker(const struct network *n, const struct sockaddr_storage *address)
{
	struct sockaddr_storage there = *address;
	int at;

	endpoint_port_set(&there, TALLY_UDP_PORT);
	at = drawing_find(n->picture, &n->drawing, &there);
	return at < 0 ? GRAPH_NONE : (uint32_t)at;
}
