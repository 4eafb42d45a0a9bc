// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What was counted, by the rows of the jobs' gates. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "dataplane.h"
#include "maps.h"

enum {
	ROWS_AT_ONCE = 64, /* read in one call; a row is large where there are many CPUs */
};

_Static_assert(sizeof(struct tally_counters) % 8 == 0, "the kernel pads per-CPU values");

int rows_retire(struct dataplane *d, const struct tables_job *j, const struct tables_job *kept,
		struct why *why)
{
	const unsigned int cpus = dataplane_cpus();
	_cleanup_(freep) struct tally_counters *gone = calloc(cpus, sizeof(*gone));
	_cleanup_(freep) struct tally_counters *row = calloc(cpus, sizeof(*row));
	_cleanup_(freep) struct tally_counters *zeros = calloc(cpus, sizeof(*zeros));
	const uint32_t gone_row = TALLY_ROW_GONE;
	int fd = d->fd[PIN_COUNTERS], r;

	if (!gone || !row || !zeros)
		return -ENOMEM;
	r = bpf_map_lookup_elem(fd, &gone_row, gone);
	for (unsigned int i = 0; r == 0 && i < j->gates; i++) {
		const uint32_t number = j->gate[i].row;

		if (tables_gate_find(kept, j->gate[i].ifindex))
			continue;
		r = bpf_map_lookup_elem(fd, &number, row);
		for (unsigned int cpu = 0; r == 0 && cpu < cpus; cpu++)
			traffic_count(gone[cpu].outcome, row[cpu].outcome);
		if (r == 0)
			r = bpf_map_update_elem(fd, &gone_row, gone, BPF_ANY);
		if (r == 0)
			r = bpf_map_update_elem(fd, &number, zeros, BPF_ANY);
	}
	return r < 0 ? map_error(why, r, "counters") : 0;
}

/* Rows `from` up to `to`, which is not one of them, each the sum over all CPUs. */
static int rows_read(struct dataplane *d, uint32_t from, uint32_t to, struct tally_counters *ret)
{
	const unsigned int cpus = dataplane_cpus();
	_cleanup_(freep) struct tally_counters *of_cpu = calloc((size_t)ROWS_AT_ONCE * cpus,
								sizeof(*of_cpu));
	uint32_t key[ROWS_AT_ONCE], behind;

	if (!of_cpu)
		return -ENOMEM;
	while (from < to) {
		uint32_t count = to - from < ROWS_AT_ONCE ? to - from : ROWS_AT_ONCE;
		uint32_t before = from - 1; /* where the kernel goes on from */
		int r = bpf_map_lookup_batch(d->fd[PIN_COUNTERS], from ? &before : NULL, &behind,
					     key, of_cpu, &count, NULL);

		if ((r < 0 && r != -ENOENT) || !count)
			return r < 0 ? r : -EIO;
		for (uint32_t i = 0; i < count * cpus; i++)
			traffic_count(ret[from + i / cpus].outcome, of_cpu[i].outcome);
		from += count;
	}
	return 0;
}

static void row_fill(struct traffic_row *ret, const struct tables_job *j,
		     const struct dataplane_gate *gate, const struct tally_counters *counters)
{
	ret->job = j->id;
	ret->ifindex = gate->ifindex;
	ret->tenant = j->job.tenant;
	memcpy(ret->outcome, counters[gate->row].outcome, sizeof(ret->outcome));
}

/* One behind the highest row that is in use, and how many are. */
static uint32_t rows_end(const struct tables *t, unsigned int *ret_count)
{
	uint32_t end = TALLY_ROW_FIRST;

	*ret_count = TALLY_ROW_FIRST;
	for (unsigned int i = 0; i < t->jobs; i++)
		for (unsigned int k = 0; k < t->job[i].gates; k++, ++*ret_count)
			if (t->job[i].gate[k].row >= end)
				end = t->job[i].gate[k].row + 1;
	return end;
}

int dataplane_rows(struct dataplane *d, struct traffic_row **ret, unsigned int *ret_count,
		   struct why *why)
{
	_cleanup_(freep) struct tally_counters *counters = NULL;
	_cleanup_(freep) struct traffic_row *rows = NULL;
	_cleanup_(tables_close) struct tables t = { 0 };
	const struct tables_job none = { 0 };
	unsigned int count, n = 0;
	uint32_t end;
	int r;

	r = maps_read_gates(d, &t, why);
	if (r < 0)
		return r;
	end = rows_end(&t, &count);
	counters = calloc(end, sizeof(*counters));
	rows = calloc(count, sizeof(*rows));
	if (!counters || !rows)
		return -ENOMEM;
	r = rows_read(d, 0, end, counters);
	if (r < 0)
		return map_error(why, r, "counters");
	for (; n < TALLY_ROW_FIRST; n++)
		row_fill(&rows[n], &none, &(struct dataplane_gate){ .row = n }, counters);
	for (unsigned int i = 0; i < t.jobs; i++)
		for (unsigned int k = 0; k < t.job[i].gates; k++)
			row_fill(&rows[n++], &t.job[i], &t.job[i].gate[k], counters);
	*ret = TAKE_PTR(rows);
	*ret_count = count;
	return 0;
}

int dataplane_counters(struct dataplane *d, struct tally_counter *ret, struct why *why)
{
	_cleanup_(freep) struct traffic_row *rows = NULL;
	unsigned int count = 0;
	int r;

	r = dataplane_rows(d, &rows, &count, why);
	if (r < 0)
		return r;
	memset(ret, 0, TALLY_OUTCOME_COUNT * sizeof(*ret));
	for (unsigned int i = 0; i < count; i++)
		traffic_count(ret, rows[i].outcome);
	return 0;
}
