// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "astray.h"

#include <string.h>

#include "common/address.h"
#include "common/ranks.h"

static bool is_same_way(const struct hop *a, const struct hop *b)
{
	return a->port == b->port && !memcmp(a->mac, b->mac, sizeof(a->mac));
}

/* Of one that waits, below the node that this copy goes to. */
static bool is_astray(const struct job_rank *r, const struct installation_copy *copy)
{
	return r->waiting && r->way.port && !endpoint_is_equal(&r->next, &copy->address) &&
	       !is_same_way(&r->way, &copy->hop);
}

struct tally_set astray_at_root(const struct job *j, const struct installation *g)
{
	struct tally_set astray = { { 0 } };

	for (unsigned int i = 0; i < g->copies; i++)
		for (unsigned int rank = 0; rank < j->workers; rank++)
			if (tally_set_has(&g->copy[i].below, rank) &&
			    is_astray(&j->rank[rank], &g->copy[i]))
				tally_set_add(&astray, rank);
	return astray;
}

struct tally_set astray_at_inner(const struct installation *g, const struct hop *root)
{
	struct tally_set astray = { { 0 } };
	unsigned int up = 0;

	for (unsigned int i = 0; i < g->copies; i++)
		if (is_same_way(&g->copy[i].hop, root)) {
			tally_set_join(&astray, &g->copy[i].below);
			up++;
		}
	return up < g->copies ? astray : (struct tally_set){ { 0 } };
}

void astray_say(const struct tally_set *ranks, struct why *ret)
{
	const bool one = tally_set_is_single(ranks);
	char text[RANKS_BYTES];

	*ret = (struct why){ "" };
	if (tally_set_is_empty(ranks))
		return;
	ranks_print(ranks, text, sizeof(text));
	why_say(ret, 0,
		"rank%s %.200s %s not behind the node%s where the tree has %s, as far as routes "
		"say, and sums are slow: let each worker join with the rank that it has in the "
		"tree (--rank, $TALLY_RANK), or write the tree as packets go",
		one ? "" : "s", text, one ? "is" : "are", one ? "" : "s", one ? "it" : "them");
}
