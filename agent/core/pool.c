// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pool.h"

/* From `from` up to the next one, around the pool; those at the same place count as one. */
static uint32_t gap_behind(const uint32_t *base, unsigned int count, uint32_t slots, uint32_t from)
{
	uint32_t gap = slots;

	for (unsigned int i = 0; i < count; i++) {
		uint32_t other = base[i] % slots;
		uint32_t distance = other < from ? other + slots - from : other - from;

		if (distance && distance < gap)
			gap = distance;
	}
	return gap;
}

uint32_t pool_base(const uint32_t *base, unsigned int count, uint32_t slots)
{
	uint32_t widest = 0, found = 0;

	for (unsigned int i = 0; slots && i < count; i++) {
		uint32_t from = base[i] % slots;
		uint32_t gap = gap_behind(base, count, slots, from);

		if (gap <= widest)
			continue;
		widest = gap;
		found = (uint32_t)((from + (uint64_t)gap / 2) % slots);
	}
	return found;
}
