// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "points.h"

#include <stddef.h>
#include <string.h>

#include "common/address.h"

static bool source_has(const struct spill_point *p, const struct sockaddr_storage *from)
{
	size_t bytes, whole = p->bits / 8;
	const uint8_t *prefix = address_raw(&p->source, &bytes), *address;
	uint8_t rest = 0xff00 >> p->bits % 8;

	if (!p->source.ss_family)
		return true;
	if (p->source.ss_family != from->ss_family)
		return false;
	address = address_raw(from, &bytes);
	return !memcmp(prefix, address, whole) &&
	       (whole == bytes || !((prefix[whole] ^ address[whole]) & rest));
}

enum tally_outcome spill_points_ask(const struct spill_points *p, const struct spill_way *way)
{
	enum tally_outcome out = TALLY_OTHER_PORT;

	if (p->anywhere)
		return TALLY_GO_ON;
	for (unsigned int i = 0; i < p->count; i++) {
		const struct spill_point *at = &p->point[i];

		if (at->port != way->interface)
			continue;
		if (!at->tagged && source_has(at, &way->from))
			return TALLY_GO_ON;
		out = TALLY_OTHER_SOURCE;
	}
	return out;
}
