// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "wanted_ways.h"

#include <errno.h>
#include <string.h>
#include <tally/wire.h>

#include "common/address.h"

#define WAY(member) KEY_MEMBER(struct wanted_way, member)
#define WAYS(member) KEY_MEMBER(struct wanted_ways, member)

static const struct key way_rows[] = {
	{ "worker", &key_address, WAY(worker), .needed = true,
	  .meaning = "Where packets come from." },
	{ "nodes", &key_name, KEY_LIST(struct wanted_way, node, nodes), .needed = true,
	  .meaning = "First the node next to the worker, last the root." },
};

static const struct key ways_rows[] = {
	{ "birth", &key_hex, WAYS(birth), .needed = true, .meaning = "Of the job." },
	{ "root", &key_name, WAYS(root), .needed = true, .meaning = "The node that is its root." },
	{ "address", &key_address, WAYS(address), .needed = true,
	  .meaning = "The root's, which workers send to." },
	{ "why", &wanted_words, WAYS(why), .meaning = "Why these, in words." },
	{ "found", &key_bool, WAYS(found), .initial = "false",
	  .meaning = "Has the leader found them? It changes and deletes no others, as long as the "
		     "job is at that root." },
	{ "sums", &key_name, KEY_LIST(struct wanted_ways, sum, sums),
	  .meaning = "Nodes that sum on the way." },
	{ "ways", NULL, KEY_LIST(struct wanted_ways, way, ways), .keys = KEYS_OF(way_rows),
	  .allowed = "a mapping", .meaning = "One for each address that workers are at." },
};

const struct keys wanted_ways_keys = KEYS(ways_rows);

int wanted_way_place(const struct wanted_way *w, const char *node)
{
	for (unsigned int i = 0; i < w->nodes; i++)
		if (!strcmp(w->node[i], node))
			return (int)i;
	return -1;
}

bool wanted_ways_sum_at(const struct wanted_ways *w, const char *node)
{
	for (unsigned int i = 0; i < w->sums; i++)
		if (!strcmp(w->sum[i], node))
			return true;
	return false;
}

static unsigned int sums_on(const struct wanted_ways *w, const struct wanted_way *way)
{
	unsigned int sums = 0;

	for (unsigned int i = 0; i < way->nodes; i++)
		sums += wanted_ways_sum_at(w, way->node[i]);
	return sums;
}

static int way_check(const struct wanted_ways *w, unsigned int index, struct why *why)
{
	const struct wanted_way *way = &w->way[index];
	char worker[ADDRESS_BYTES];

	address_print(&way->worker, worker, sizeof(worker));
	if (!way->nodes || strcmp(way->node[way->nodes - 1], w->root) != 0)
		return why_say(why, -EINVAL, "the way of %s does not end at the root %s", worker,
			       w->root);
	for (unsigned int i = 0; i < way->nodes; i++)
		if (wanted_way_place(way, way->node[i]) != (int)i)
			return why_say(why, -EINVAL, "the way of %s is at %s twice", worker,
				       way->node[i]);
	if (sums_on(w, way) > TALLY_LEVELS_MAX)
		return why_say(why, -EINVAL, "the way of %s is at %u nodes that sum, and %d may",
			       worker, sums_on(w, way), TALLY_LEVELS_MAX);
	if (way->worker.ss_family != w->address.ss_family)
		return why_say(why, -EINVAL, "%s and the root have addresses of two families",
			       worker);
	for (unsigned int i = 0; i < index; i++)
		if (endpoint_is_equal(&w->way[i].worker, &way->worker))
			return why_say(why, -EINVAL, "there are two ways of %s", worker);
	return 0;
}

/* From there to the root, place by place. */
static bool goes_on_alike(const struct wanted_way *a, unsigned int at_a, const struct wanted_way *b,
			  unsigned int at_b)
{
	if (a->nodes - at_a != b->nodes - at_b)
		return false;
	for (unsigned int i = 0; at_a + i < a->nodes; i++)
		if (strcmp(a->node[at_a + i], b->node[at_b + i]) != 0)
			return false;
	return true;
}

/* What a node has summed goes one way. */
static int sum_check(const struct wanted_ways *w, const char *node, struct why *why)
{
	const struct wanted_way *first = NULL;
	int first_at = -1;

	if (!strcmp(node, w->root))
		return why_say(why, -EINVAL, "%s sums on the way, and is the root", node);
	for (unsigned int i = 0; i < w->ways; i++) {
		const int at = wanted_way_place(&w->way[i], node);

		if (at >= 0 && !first) {
			first = &w->way[i];
			first_at = at;
		} else if (at >= 0 && !goes_on_alike(first, (unsigned int)first_at, &w->way[i],
						     (unsigned int)at)) {
			return why_say(why, -EINVAL, "%s sums, and ways part behind it", node);
		}
	}
	return first ? 0 : why_say(why, -EINVAL, "%s sums, and is on no way", node);
}

int wanted_ways_check(const struct wanted_ways *w, struct why *why)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < w->ways; i++)
		r = way_check(w, i, why);
	for (unsigned int i = 0; r == 0 && i < w->sums; i++)
		r = sum_check(w, w->sum[i], why);
	return r;
}
