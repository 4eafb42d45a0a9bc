// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where the slots of jobs lie. */
#include <errno.h>
#include <stdlib.h>

#include "pool.h"
#include "rings.h"
#include "tables.h"

static int by_base(const void *a, const void *b)
{
	const struct ring *x = a, *y = b;

	return (x->base > y->base) - (x->base < y->base);
}

/* Those of all other jobs, as these are in the tables; `ret` has room for them. */
static unsigned int rings_of(const struct tables *now, uint32_t id, struct ring *ret)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < now->jobs; i++) {
		const struct tally_job *job = &now->job[i].job;

		if (now->job[i].id != id && !job->borrows)
			ret[count++] = (struct ring){ .base = job->slot_base,
						      .slots = job->slot_mask + 1,
						      .fixed = now->job[i].broken };
	}
	return count;
}

static int range_place(const struct tables *now, uint32_t id, struct tally_job *job)
{
	_cleanup_(freep) uint32_t *base = calloc(now->jobs + 1, sizeof(*base));
	unsigned int count = 0;

	if (!base)
		return -ENOMEM;
	for (unsigned int i = 0; i < now->jobs; i++)
		if (now->job[i].id != id && now->job[i].job.borrows)
			base[count++] = now->job[i].job.slot_base;
	if (job->slot_base == (uint32_t)INSTALLATION_BASE_ANY)
		job->slot_base = pool_base(base, count, now->pool);
	return 0;
}

static int slots_place(const struct tables *now, uint32_t id, struct tally_job *job,
		       struct why *why)
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

int tables_place(const struct tables *now, uint32_t id, struct tally_job *job, struct why *why)
{
	return job->borrows ? range_place(now, id, job) : slots_place(now, id, job, why);
}

int tables_make_room(const struct tables *now, uint32_t id, uint32_t slots,
		     bool (*may_move)(const void *context, const struct tables_job *job),
		     const void *context, struct tables_move **ret)
{
	_cleanup_(freep) struct tables_move *move = calloc(now->jobs + 1, sizeof(*move));
	_cleanup_(freep) struct ring *ring = calloc(now->jobs + 1, sizeof(*ring));
	_cleanup_(freep) uint32_t *base = NULL;
	unsigned int count = 0, moves = 0;
	int r;

	if (!move || !ring)
		return -ENOMEM;
	for (unsigned int i = 0; i < now->jobs; i++)
		if (now->job[i].id != id && !now->job[i].job.borrows)
			move[count++].id = now->job[i].id;
	rings_of(now, id, ring);
	for (unsigned int i = 0; i < count; i++)
		ring[i].fixed |= !may_move(context, tables_find(now, move[i].id));
	r = rings_make_room(ring, count, now->slots, slots, &base);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < count; i++)
		if (base[i] != ring[i].base)
			move[moves++] = (struct tables_move){ move[i].id, base[i] };
	*ret = TAKE_PTR(move);
	return r;
}

void tables_move(struct tables *t, const struct tables_move *move, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		((struct tables_job *)tables_find(t, move[i].id))->job.slot_base =
			move[i].slot_base;
}
