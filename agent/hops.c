// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "hops.h"

#include <string.h>

#include "agent/edge/look.h"
#include "common/address.h"

void hops_look(struct netlink *n, const struct paths_question *q, struct paths_view *ret)
{
	struct netlink_next next;
	struct why why;
	int own;

	memset(ret, 0, sizeof(*ret));
	own = look_own(ret->own, PATHS_OWN_MAX);
	ret->owns = own < 0 ? 0 : own;
	for (unsigned int i = 0; i < q->workers; i++)
		if (netlink_next(n, &q->worker[i], &next, &why) == 0 &&
		    !endpoint_is_equal(&next.address, &q->worker[i]))
			paths_hop_add(ret, i, &next.address);
}

/* Results pass the kernel's rules by: they take the ways that are wanted from here. */
int hops_resolve(struct netlink *n, const struct steering *s, const struct core_action *a,
		 struct hop *ret, struct why *why)
{
	const struct steer_route *r = steering_route(s, a->resolve.from, a->resolve.address);

	if (r)
		return netlink_resolve_at(n, &r->gateway, r->port, a->resolve.wait_ms, ret, why);
	return netlink_resolve(n, a->resolve.address, a->resolve.wait_ms, ret, why);
}
