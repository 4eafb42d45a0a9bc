// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where the slots of jobs lie. */
#include <errno.h>
#include <stdlib.h>

#include "rings.h"
#include "tables.h"

static int by_base(const void *a, const void *b)
{
	const struct ring *x = a, *y = b;

	return (x->base > y->base) - (x->base < y->base);
}

static bool has_slots(const struct tables_job *j) { return j->job.group != TABLES_NO_GROUP; }

/* Those of all other jobs, as these are in the tables; `ret` has room for them. */
static unsigned int rings_of(const struct tables *now, uint32_t id, struct ring *ret)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < now->jobs; i++) {
		const struct tally_job *job = &now->job[i].job;

		if (now->job[i].id != id && has_slots(&now->job[i]))
			ret[count++] = (struct ring){ .base = job->slot_base,
						      .slots = job->slot_mask + 1 };
	}
	return count;
}

int tables_place(const struct tables *now, uint32_t id, struct tally_job *job, struct why *why)
{
	_cleanup_(freep) struct ring *ring = calloc(now->jobs + 1, sizeof(*ring));
	const uint32_t wanted = job->slot_mask + 1;
	unsigned int count;
	uint32_t base;

	if (!ring)
		return -ENOMEM;
	count = rings_of(now, id, ring);
	qsort(ring, count, sizeof(*ring), by_base);
	base = rings_place(ring, count, now->slots, wanted);
	if (base == RINGS_NONE)
		return why_say(
			why, -ENOSPC,
			"no %u slots in a row are free (two a chunk of the window): this "
			"node has %u. The job wants a smaller window, or the node more slots",
			wanted, now->slots);
	job->slot_base = base;
	return 0;
}
