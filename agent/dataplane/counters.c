// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What was counted, by the rows of jobs and by ports. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "dataplane.h"
#include "maps.h"
#include "ports.h"

enum {
	ROWS_AT_ONCE = 64, /* read in one call; a row is large where there are many CPUs */
};

_Static_assert(sizeof(struct tally_counters) % 8 == 0, "the kernel pads per-CPU values");

/* `j` may be NULL. */
static bool counts_in(const struct tables_job *j, uint32_t row)
{
	for (unsigned int i = 0; j && i < j->gates; i++)
		if (j->gate[i].row == row)
			return true;
	return false;
}

bool rows_mark(const struct tables_job *j, const struct tables_job *kept, bool *rows)
{
	bool any = false;

	for (unsigned int i = 0; i < j->gates; i++)
		if (!counts_in(kept, j->gate[i].row))
			rows[j->gate[i].row] = any = true;
	return any;
}

bool rows_any(const bool *rows)
{
	uint32_t row = 0;

	while (row < TALLY_ROWS_MAX && !rows[row])
		row++;
	return row < TALLY_ROWS_MAX;
}

int rows_retire(struct dataplane *d, bool *rows, struct why *why)
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
	for (uint32_t i = 0; r == 0 && i < TALLY_ROWS_MAX; i++) {
		if (!rows[i])
			continue;
		r = bpf_map_lookup_elem(fd, &i, row);
		for (unsigned int cpu = 0; r == 0 && cpu < cpus; cpu++)
			traffic_count(gone[cpu].outcome, row[cpu].outcome);
		if (r == 0)
			r = bpf_map_update_elem(fd, &gone_row, gone, BPF_ANY);
		if (r == 0)
			r = bpf_map_update_elem(fd, &i, zeros, BPF_ANY);
		rows[i] = r < 0;
	}
	return r < 0 ? map_error(why, r, "counters") : 0;
}

/* --- ports that have gone -------------------------------------------------------------------- */

/* Its programs have been taken away. What jobs' rows have, too, moves with these. */
static int port_retire(struct dataplane *d, uint32_t ifindex)
{
	const unsigned int cpus = dataplane_cpus();
	_cleanup_(freep) struct tally_counters *gone = calloc(cpus, sizeof(*gone));
	_cleanup_(freep) struct tally_at_port *at = calloc(cpus, sizeof(*at));
	const uint32_t gone_row = TALLY_ROW_GONE;
	int r;

	if (!gone || !at)
		return -ENOMEM;
	r = bpf_map_lookup_elem(d->fd[PIN_COUNTERS], &gone_row, gone);
	if (r == 0)
		r = bpf_map_lookup_elem(d->fd[PIN_AT_PORTS], &ifindex, at);
	for (unsigned int cpu = 0; r == 0 && cpu < cpus; cpu++)
		traffic_count(gone[cpu].outcome, at[cpu].apart.outcome);
	if (r == 0)
		r = bpf_map_update_elem(d->fd[PIN_COUNTERS], &gone_row, gone, BPF_ANY);
	return r < 0 ? r : bpf_map_delete_elem(d->fd[PIN_AT_PORTS], &ifindex);
}

static bool is_there(const struct port_link *links, unsigned int count, uint32_t ifindex)
{
	for (unsigned int i = 0; i < count; i++)
		if (links[i].ifindex == ifindex)
			return true;
	return false;
}

int ports_retire(struct dataplane *d, struct why *why)
{
	uint32_t key, gone[TALLY_PORTS_MAX], *at = NULL;
	struct port_link *links = NULL;
	unsigned int count = 0, n = 0;
	int r;

	r = links_open(d->path, &links, &count);
	if (r < 0)
		return why_say(why, r, "%s: %s", d->path, strerror(-r));
	for (; n < TALLY_PORTS_MAX && !bpf_map_get_next_key(d->fd[PIN_AT_PORTS], at, &key);
	     at = &key)
		if (!is_there(links, count, key))
			gone[n++] = key;
	links_close(links, count);
	while (r == 0 && n)
		r = port_retire(d, gone[--n]);
	return r < 0 ? map_error(why, r, "at_ports") : 0;
}

/* --- reading --------------------------------------------------------------------------------- */

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

/* Two rows of each port, added to `rows`, which has room for all. */
static int ports_read(struct dataplane *d, struct traffic_row *rows, unsigned int *n)
{
	const unsigned int cpus = dataplane_cpus();
	_cleanup_(freep) struct tally_at_port *of_cpu = calloc((size_t)ROWS_AT_ONCE * cpus,
							       sizeof(*of_cpu));
	uint32_t key[ROWS_AT_ONCE], behind, *from = NULL;
	int r = of_cpu ? 0 : -ENOMEM;

	while (r == 0) {
		uint32_t count = ROWS_AT_ONCE;

		r = bpf_map_lookup_batch(d->fd[PIN_AT_PORTS], from, &behind, key, of_cpu, &count,
					 NULL);
		if (r < 0 && r != -ENOENT) /* which says that these were all */
			return r;
		for (uint32_t i = 0; i < count; i++, *n += 2) {
			struct traffic_row *row = &rows[*n];

			row[0] = row[1] = (struct traffic_row){ .ifindex = key[i] };
			row[1].again = true;
			for (unsigned int cpu = 0; cpu < cpus; cpu++) {
				const struct tally_at_port *at = &of_cpu[i * cpus + cpu];

				traffic_count(row[0].outcome, at->apart.outcome);
				traffic_count(row[1].outcome, at->jobs.outcome);
			}
		}
		from = &behind;
	}
	return r == -ENOENT ? 0 : r;
}

/* What has gone counts as gone, even where programs may count still. */
static void owed_count(const struct dataplane *d, struct tally_counters *counters)
{
	for (uint32_t i = 0; i < TALLY_ROWS_MAX; i++)
		if (d->owed[i])
			traffic_count(counters[TALLY_ROW_GONE].outcome, counters[i].outcome);
}

static void row_fill(struct traffic_row *ret, const struct tables_job *j,
		     const struct dataplane_gate *gate, const struct tally_counters *counters)
{
	ret->job = j->id;
	ret->ifindex = gate->ifindex;
	ret->tenant = j->job.tenant;
	memcpy(ret->outcome, counters[gate->row].outcome, sizeof(ret->outcome));
}

/* One behind the highest row of a job and of a port that is in use; how many gates there are. */
static unsigned int rows_end(const struct dataplane *d, const struct tables *t, uint32_t *ret_jobs,
			     uint32_t *ret_ports)
{
	bool used[TALLY_ROWS_MAX];
	unsigned int count = 0;

	memcpy(used, d->owed, sizeof(used));
	for (unsigned int i = 0; i < t->jobs; i++) {
		rows_mark(&t->job[i], NULL, used);
		count += t->job[i].gates;
	}
	*ret_jobs = TALLY_ROW_JOBS;
	*ret_ports = TALLY_ROW_PORTS;
	for (uint32_t i = TALLY_ROW_JOBS; i < TALLY_ROWS_MAX; i++)
		if (used[i])
			*(i < TALLY_ROW_PORTS ? ret_jobs : ret_ports) = i + 1;
	return count;
}

int dataplane_rows(struct dataplane *d, struct traffic_row **ret, unsigned int *ret_count,
		   struct why *why)
{
	_cleanup_(freep) struct tally_counters *counters = calloc(TALLY_ROWS_MAX,
								  sizeof(*counters));
	_cleanup_(freep) struct traffic_row *rows = NULL;
	_cleanup_(tables_close) struct tables t = { 0 };
	const struct tables_job none = { 0 };
	uint32_t jobs, ports;
	unsigned int n = 0;
	int r;

	r = maps_read_gates(d, &t, why);
	if (r < 0)
		return r;
	rows = calloc(TALLY_ROW_JOBS + rows_end(d, &t, &jobs, &ports) + 2 * TALLY_PORTS_MAX,
		      sizeof(*rows));
	if (!counters || !rows)
		return -ENOMEM;
	r = rows_read(d, 0, jobs, counters);
	if (r == 0)
		r = rows_read(d, TALLY_ROW_PORTS, ports, counters);
	if (r < 0)
		return map_error(why, r, "counters");
	owed_count(d, counters);
	for (; n < TALLY_ROW_JOBS; n++)
		row_fill(&rows[n], &none, &(struct dataplane_gate){ .row = n }, counters);
	for (unsigned int i = 0; i < t.jobs; i++)
		for (unsigned int k = 0; k < t.job[i].gates; k++)
			if (!k || t.job[i].gate[k].row >= TALLY_ROW_PORTS)
				row_fill(&rows[n++], &t.job[i], &t.job[i].gate[k], counters);
	r = ports_read(d, rows, &n);
	if (r < 0)
		return map_error(why, r, "at_ports");
	*ret = TAKE_PTR(rows);
	*ret_count = n;
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
		if (!rows[i].again)
			traffic_count(ret, rows[i].outcome);
	return 0;
}
