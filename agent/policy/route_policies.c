// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"

const struct route_policy ROUTE_POLICIES[] = {
	{ "inart", "R-InArt: mixture, rounding, repair", route_inart, false },
	{ "r-inart", "the same with equal shares", route_inart, true },
	{ "grid", "mixture of nodes without links, one draw", route_grid, true },
	{ "atp", "the nearest node sums", route_nearest, true },
	{ "lbmm", "nobody sums; paths by load", route_balanced, true },
	{ "direct", "nobody sums; shortest paths", route_direct, true },
	{ "search", "from atp, lbmm, direct and chance, by search", route_search, false },
	{ "exact", "the best there is, for small cases", route_exact, false },
};

const unsigned int ROUTE_POLICIES_COUNT = sizeof(ROUTE_POLICIES) / sizeof(*ROUTE_POLICIES);

const struct route_policy *route_policy_find(const char *name)
{
	for (unsigned int i = 0; i < ROUTE_POLICIES_COUNT; i++)
		if (strcmp(ROUTE_POLICIES[i].name, name) == 0)
			return &ROUTE_POLICIES[i];
	return NULL;
}

int route_decide(const struct route_policy *policy, const struct route_problem *p,
		 const struct route_options *o, struct route **ret)
{
	_cleanup_(freep) double *share = NULL;
	struct route_problem equal = *p;

	if (!policy->equal)
		return policy->decide(p, o, ret);
	share = calloc(p->roots + 1, sizeof(*share));
	if (!share)
		return -ENOMEM;
	for (unsigned int s = 0; s < p->roots; s++)
		share[s] = 1.0 / p->roots;
	equal.share = share;
	return policy->decide(&equal, o, ret);
}
