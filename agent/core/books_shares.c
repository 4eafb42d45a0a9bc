// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What no tenant can take all of: places for jobs, and for the inner nodes of trees. */
#include <errno.h>
#include <string.h>

#include "books.h"

enum {
	JOBS_OF_TENANT = 8, /* that nobody else gets */
	INNER_NODES_MAX = TALLY_TENANTS_MAX * TREE_NODES_MAX, /* of all trees together */
};

bool books_may_have(const struct books *b, const unsigned int held[TALLY_TENANTS_MAX],
		    unsigned int tenant, unsigned int own, unsigned int max)
{
	unsigned int others = 0, total = 0;

	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++) {
		total += held[i];
		if (i != tenant)
			others += *b->tenant[i].is.name && held[i] < own ? own : held[i];
	}
	return total < max && (held[tenant] < own || others + held[tenant] < max);
}

static int job_share_check(const struct books *b, const struct job *j, struct why *why)
{
	unsigned int held[TALLY_TENANTS_MAX] = { 0 };

	for (unsigned int i = 0; i < b->jobs; i++)
		held[b->job[i]->tenant]++;
	if (b->jobs == TALLY_JOBS_MAX ||
	    books_may_have(b, held, j->tenant, JOBS_OF_TENANT, TALLY_JOBS_MAX))
		return 0;
	return why_say(why, -ENOSPC,
		       "tenant %s has %u jobs, and the rest of the %u that the node can have is "
		       "for other tenants: delete one (tallyctl job list --tenant %s)",
		       b->tenant[j->tenant].is.name, held[j->tenant], TALLY_JOBS_MAX,
		       b->tenant[j->tenant].is.name);
}

/* The state file has all of them, and each change writes it anew. */
static int trees_share_check(const struct books *b, const struct job *j, struct why *why)
{
	unsigned int held[TALLY_TENANTS_MAX] = { 0 };

	if (!j->tree || !j->tree->nodes)
		return 0;
	for (unsigned int i = 0; i < b->jobs; i++)
		held[b->job[i]->tenant] += b->job[i]->tree ? b->job[i]->tree->nodes : 0;
	held[j->tenant] += j->tree->nodes - 1;
	if (books_may_have(b, held, j->tenant, TREE_NODES_MAX, INNER_NODES_MAX))
		return 0;
	return why_say(why, -ENOSPC,
		       "the trees of tenant %s would have %u inner nodes; all jobs of this node "
		       "together can have %u, of which each tenant has %u of its own: delete a job "
		       "(tallyctl job list --tenant %s)",
		       b->tenant[j->tenant].is.name, held[j->tenant] + 1, INNER_NODES_MAX,
		       TREE_NODES_MAX, b->tenant[j->tenant].is.name);
}

int books_share_check(const struct books *b, const struct job *j, struct why *why)
{
	int r = job_share_check(b, j, why);

	return r < 0 ? r : trees_share_check(b, j, why);
}
