// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "claim.h"

#include <string.h>

#include "common/address.h"

bool claim_told(struct claim *c, const struct report *r, uint64_t revision, bool anew)
{
	const bool was = c->is_others;

	c->told = revision;
	if (revision && revision < c->revision && !anew)
		return false; /* what is told is older than what we have written since */
	c->revision = revision;
	c->is_others = r && *r->agent && strcmp(r->agent, c->agent) != 0;
	if (c->is_others)
		c->is_ours = false;
	else if (r && *r->agent)
		c->is_ours = true;
	return c->is_others != was;
}

void claim_written(struct claim *c, uint64_t revision)
{
	if (revision < c->revision)
		return; /* the store has told what came after it */
	c->revision = revision;
	c->is_ours = true;
}

void claim_refused(struct claim *c) { c->revision = c->told; }

void claim_say(const struct report *others, struct why *ret)
{
	char address[ADDRESS_BYTES] = "an unknown address";

	if (others->services)
		address_print(&others->service[0], address, sizeof(address));
	why_say(ret, 0,
		"another agent reports as node %s (at %s): give this one another cluster.node",
		others->node, address);
}
