// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "finder_ways.h"

#include <string.h>

#include "common/address.h"

/* The way of packets from this worker; NULL: there is none. */
static const struct wanted_way *way_of(const struct wanted_ways *w,
				       const struct sockaddr_storage *worker)
{
	struct sockaddr_storage machine = *worker;

	endpoint_port_set(&machine, TALLY_UDP_PORT);
	for (unsigned int i = 0; i < w->ways; i++)
		if (endpoint_is_equal(&w->way[i].worker, &machine))
			return &w->way[i];
	return NULL;
}

static bool address_of(const struct picture *p, const char *node, int family,
		       struct sockaddr_storage *ret)
{
	const int at = picture_place(p, node);
	const struct sockaddr_storage *own = at < 0 ? NULL
						    : report_service_find(p->report[at], family);

	if (own)
		*ret = *own;
	return own;
}

/* Does a packet pass `first` before it comes to `then`? */
static bool is_before(const struct wanted_ways *w, const char *first, const char *then)
{
	for (unsigned int i = 0; i < w->ways; i++) {
		const int a = wanted_way_place(&w->way[i], first);
		const int b = wanted_way_place(&w->way[i], then);

		if (a >= 0 && b >= 0)
			return a < b;
	}
	return false;
}

/* A node before it has all its ranks already. */
static bool is_idle(const struct wanted_ways *w, const struct tree *t, unsigned int index)
{
	for (unsigned int i = 0; i < t->nodes; i++)
		if (i != index && tally_set_is_equal(&t->node[i].ranks, &t->node[index].ranks) &&
		    is_before(w, t->node[i].name, t->node[index].name))
			return true;
	return false;
}

void finder_ways_tree(const struct wanted_ways *w, const struct picture *p, const struct job *j,
		      struct tree *ret)
{
	struct tree all = { .found = true };

	for (unsigned int i = 0; i < w->sums; i++) {
		struct tree_node *n = &all.node[all.nodes];

		*n = (struct tree_node){ 0 };
		memcpy(n->name, w->sum[i], sizeof(n->name));
		for (unsigned int rank = 0; rank < j->workers; rank++) {
			const struct wanted_way *way = way_of(w, &j->rank[rank].address);

			if (way && wanted_way_place(way, n->name) >= 0)
				tally_set_add(&n->ranks, rank);
		}
		if (tally_set_count(&n->ranks) > 1 &&
		    address_of(p, n->name, j->service.ss_family, &n->address))
			all.nodes++;
	}
	*ret = (struct tree){ .found = true };
	for (unsigned int i = 0; i < all.nodes; i++)
		if (!is_idle(w, &all, i))
			ret->node[ret->nodes++] = all.node[i];
}
