// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Gates are written into the memory that programs read: a system call would copy bytes, and nobody
 * says in which order.
 */
#include <errno.h>
#include <sys/mman.h>

#include "maps.h"

enum {
	GATES_BYTES = TALLY_GATE_BUCKETS * sizeof(struct tally_gate_bucket),
};

int maps_gates_open(struct dataplane *d, struct why *why)
{
	struct tally_constants constants;
	void *memory;
	int r = constants_read(d->fd[PIN_CONSTANTS], &constants);

	if (r < 0)
		return map_error(why, r, "constants");
	memory = mmap(NULL, GATES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd[PIN_GATES], 0);
	if (memory == MAP_FAILED)
		return map_error(why, -errno, "gates");
	d->gates = (struct tally_gates){ .bucket = memory, .factor = constants.gate_factor };
	return 0;
}

void maps_gates_close(struct dataplane *d)
{
	if (d->gates.bucket)
		munmap(d->gates.bucket, GATES_BYTES);
	d->gates.bucket = NULL;
}

int maps_gates_put(struct dataplane *d, const struct tables_job *j, struct why *why)
{
	for (unsigned int i = j->gates; i-- > 0;) {
		const struct dataplane_gate *gate = &j->gate[i];
		const struct tally_gate_key key = { .job = j->id, .ifindex = gate->ifindex };
		const struct tally_gate value = { .row = gate->row,
						  .job = j->job.group,
						  .restricted = gate->restricted,
						  .anywhere = gate->anywhere };

		if (!tally_gates_put(&d->gates, key, value))
			return map_error(why, -ENOSPC, "gates");
	}
	return 0;
}

void maps_gates_remove(struct dataplane *d, const struct tables_job *j,
		       const struct tables_job *kept)
{
	for (unsigned int i = 0; i < j->gates; i++) {
		const struct tally_gate_key key = { .job = j->id, .ifindex = j->gate[i].ifindex };

		if (!tables_gate_find(kept, key.ifindex))
			tally_gates_remove(&d->gates, key, j->job.group);
	}
}
