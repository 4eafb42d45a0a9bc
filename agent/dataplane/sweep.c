// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What no job has any more, also of a process that was killed: slots of the pool, and ranks' keys.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "maps.h"

static int by_id(const void *a, const void *b)
{
	const uint32_t id = *(const uint32_t *)a, other = ((const struct tables_job *)b)->id;

	return (id > other) - (id < other);
}

static bool is_borrower(const struct tables *t, uint32_t id)
{
	const struct tables_job *j = bsearch(&id, t->job, t->jobs, sizeof(*t->job), by_id);

	return j && !j->broken && j->job.borrows;
}

/*
 * Nobody comes back for what such a slot holds, and whoever has shorter frames could not carry it
 * away. Who takes the slot between the look and the write loses a sum, as frames are lost.
 */
static int pool_sweep(struct dataplane *d, const struct tables *t)
{
	_cleanup_(freep) struct tally_pool_slot *slot = calloc(2, sizeof(*slot));
	int r = slot ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < t->pool; i++) {
		r = bpf_map_lookup_elem(d->fd[PIN_POOL], &i, slot);
		if (r == 0 && slot->books.job && !is_borrower(t, slot->books.job))
			r = bpf_map_update_elem(d->fd[PIN_POOL], &i, slot + 1, BPF_F_LOCK);
	}
	return r;
}

static bool is_zero(const void *bytes, size_t count)
{
	const uint8_t *byte = bytes;

	return !byte[0] && !memcmp(byte, byte + 1, count - 1);
}

static int ranks_of_group_sweep(struct dataplane *d, uint32_t group, struct tally_rank *ranks,
				uint32_t *indexes)
{
	uint32_t in = tally_rank_index(group, 0) - 1, behind, count = TALLY_KEYS_MAX;
	int r;

	r = bpf_map_lookup_batch(d->fd[PIN_RANKS], group ? &in : NULL, &behind, indexes, ranks,
				 &count, NULL);
	if (r == -ENOENT) /* the map ends here */
		r = 0;
	if (r < 0 || !count || is_zero(ranks, count * sizeof(*ranks)))
		return r;
	explicit_bzero(ranks, TALLY_KEYS_MAX * sizeof(*ranks));
	return bpf_map_update_batch(d->fd[PIN_RANKS], indexes, ranks, &count, NULL);
}

static int ranks_sweep(struct dataplane *d, const struct tables *t)
{
	_cleanup_(freep) struct tally_rank *ranks = calloc(TALLY_KEYS_MAX, sizeof(*ranks));
	_cleanup_(freep) uint32_t *indexes = calloc(TALLY_KEYS_MAX, sizeof(*indexes));
	bool used[TALLY_JOBS_MAX] = { false };
	int r = ranks && indexes ? 0 : -ENOMEM;

	for (unsigned int i = 0; i < t->jobs; i++)
		if (t->job[i].job.group < TALLY_JOBS_MAX)
			used[t->job[i].job.group] = true;
	for (uint32_t group = 0; r == 0 && group < TALLY_JOBS_MAX; group++)
		if (!used[group])
			r = ranks_of_group_sweep(d, group, ranks, indexes);
	return r;
}

int maps_sweep(struct dataplane *d, struct why *why)
{
	_cleanup_(tables_close) struct tables t = { 0 };
	int r;

	r = maps_read_gates(d, &t, why);
	if (r < 0)
		return r;
	r = pool_sweep(d, &t);
	if (r < 0)
		return map_error(why, r, "pool");
	r = ranks_sweep(d, &t);
	return r < 0 ? map_error(why, r, "ranks") : 0;
}
