// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where jobs may come in, and what was counted there: gates and their rows of counters. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "private.h"

enum {
	ROWS_AT_ONCE = 64, /* read in one call; a row is large where there are many CPUs */
};

/* --- which there are ------------------------------------------------------------------------- */

static const struct gate *gate_find(const struct gates *gates, struct tally_gate_key key)
{
	for (unsigned int i = 0; gates && i < gates->count; i++)
		if (gates->gate[i].key.job == key.job && gates->gate[i].key.ifindex == key.ifindex)
			return &gates->gate[i];
	return NULL;
}

int gates_read(struct dataplane *d, struct gates **ret, struct why *why)
{
	_cleanup_(freep) struct tally_gate_key *keys = calloc(TALLY_GATES_MAX, sizeof(*keys));
	_cleanup_(freep) struct tally_gate *values = calloc(TALLY_GATES_MAX, sizeof(*values));
	_cleanup_(freep) struct gates *gates = calloc(1, sizeof(*gates));
	uint32_t count = TALLY_GATES_MAX, behind;
	int r;

	if (!keys || !values || !gates)
		return -ENOMEM;
	r = bpf_map_lookup_batch(d->fd[PIN_GATES], NULL, &behind, keys, values, &count, NULL);
	if (r < 0 && r != -ENOENT) /* which says that these were all */
		return map_error(why, r, "gates");
	for (uint32_t i = 0; i < count; i++)
		gates->gate[i] = (struct gate){ keys[i], values[i] };
	gates->count = count;
	*ret = TAKE_PTR(gates);
	return 0;
}

struct gates *gates_of(const struct gates *all, uint32_t id)
{
	struct gates *gates = calloc(1, sizeof(*gates));

	for (unsigned int i = 0; gates && i < all->count; i++)
		if (all->gate[i].key.job == id)
			gates->gate[gates->count++] = all->gate[i];
	return gates;
}

uint32_t gates_row(const struct gates *gates, uint32_t ifindex)
{
	const uint32_t job = gates->gate[0].key.job;
	const struct gate *gate = gate_find(gates, (struct tally_gate_key){ job, ifindex });

	if (!gate)
		gate = gate_find(gates, (struct tally_gate_key){ job, 0 });
	return gate ? gate->value.row : TALLY_ROW_NO_JOB;
}

/* --- which there are to be ------------------------------------------------------------------- */

/* Rows that are nobody's, handed out from the lowest. */
struct rows {
	bool used[TALLY_GATES_MAX];
};

static struct rows *rows_of(const struct gates *all)
{
	struct rows *rows = calloc(1, sizeof(*rows));

	for (unsigned int i = 0; rows && i < all->count; i++)
		rows->used[all->gate[i].value.row % TALLY_GATES_MAX] = true;
	return rows;
}

/* Adds a gate, with the row that it had or a free one. -ENOSPC. */
static int gate_add(struct gates *to, const struct gates *all, struct rows *rows, struct gate gate)
{
	const struct gate *before = gate_find(all, gate.key);
	uint32_t row = TALLY_ROW_FIRST;

	while (!before && row < TALLY_GATES_MAX && rows->used[row])
		row++;
	if (!before && row == TALLY_GATES_MAX)
		return -ENOSPC;
	gate.value.row = before ? before->value.row : row;
	rows->used[gate.value.row % TALLY_GATES_MAX] = true;
	to->gate[to->count++] = gate;
	return 0;
}

/* A gate for each port, as far as there are rows: what has none comes in by gate 0. */
static int gates_add_ports(struct dataplane *d, struct gates *to, const struct gates *all,
			   struct rows *rows, struct why *why)
{
	_cleanup_(freep) struct dataplane_port *ports = NULL;
	struct gate gate = to->gate[0];
	unsigned int count = 0;
	int r;

	r = dataplane_ports(d, &ports, &count, why);
	gate.value.anywhere = 0;
	for (unsigned int i = 0; r == 0 && i < count; i++) {
		gate.key.ifindex = ports[i].ifindex;
		if (ports[i].ifindex && gate_add(to, all, rows, gate) < 0)
			break;
	}
	return r;
}

static int gates_add(struct gates *to, const struct gates *all, struct rows *rows,
		     const struct dataplane_gate *wanted, unsigned int count, struct why *why)
{
	struct gate gate = to->gate[0];

	for (unsigned int i = 0; i < count; i++) {
		gate.key.ifindex = wanted[i].ifindex;
		gate.value.restricted = wanted[i].restricted;
		if (gate_find(to, gate.key))
			return why_say(why, -EINVAL, "job %u: port number %u is given twice",
				       gate.key.job, wanted[i].ifindex);
		if (gate_add(to, all, rows, gate) < 0)
			return why_say(why, -ENOSPC,
				       "job %u: the jobs of this node may come in by %u ports "
				       "together, and no more are free",
				       gate.key.job, TALLY_GATES_MAX - TALLY_ROW_FIRST);
	}
	return 0;
}

int gates_plan(struct dataplane *d, const struct gates *all, uint32_t id, uint32_t job,
	       const struct dataplane_gate *wanted, unsigned int count, struct gates **ret,
	       struct why *why)
{
	_cleanup_(freep) struct gates *gates = calloc(1, sizeof(*gates));
	_cleanup_(freep) struct rows *rows = rows_of(all);
	const struct gate first = { .key.job = id, .value = { .job = job, .anywhere = !wanted } };
	int r;

	if (!gates || !rows)
		return -ENOMEM;
	rows->used[TALLY_ROW_NO_JOB] = rows->used[TALLY_ROW_GONE] = true;
	r = gate_add(gates, all, rows, first);
	if (r < 0)
		return why_say(why, r, "job %u: the jobs of this node have all %u gates", id,
			       TALLY_GATES_MAX - TALLY_ROW_FIRST);
	r = wanted ? gates_add(gates, all, rows, wanted, count, why)
		   : gates_add_ports(d, gates, all, rows, why);
	if (r == 0)
		*ret = TAKE_PTR(gates);
	return r;
}

/* --- in and out ------------------------------------------------------------------------------ */

/* Gate 0 is the last: where the others are there, it changes nothing for them. */
int gates_put(struct dataplane *d, const struct gates *gates, struct why *why)
{
	for (unsigned int i = gates->count; i-- > 0;) {
		int r = bpf_map_update_elem(d->fd[PIN_GATES], &gates->gate[i].key,
					    &gates->gate[i].value, BPF_ANY);

		if (r < 0)
			return map_error(why, r, "gates");
	}
	return 0;
}

void gates_remove(struct dataplane *d, const struct gates *gates, const struct gates *kept)
{
	for (unsigned int i = 0; i < gates->count; i++)
		if (!gate_find(kept, gates->gate[i].key))
			bpf_map_delete_elem(d->fd[PIN_GATES], &gates->gate[i].key);
}

/* --- rows ------------------------------------------------------------------------------------ */

static void counters_add(struct tally_counters *to, const struct tally_counters *c)
{
	for (int i = 0; i < TALLY_OUTCOME_COUNT; i++) {
		to->outcome[i].packet += c->outcome[i].packet;
		to->outcome[i].byte += c->outcome[i].byte;
	}
}

_Static_assert(sizeof(struct tally_counters) % 8 == 0, "the kernel pads per-CPU values");

int rows_retire(struct dataplane *d, const struct gates *gates, const struct gates *kept,
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
	for (unsigned int i = 0; r == 0 && i < gates->count; i++) {
		const uint32_t number = gates->gate[i].value.row;

		if (gate_find(kept, gates->gate[i].key))
			continue;
		r = bpf_map_lookup_elem(fd, &number, row);
		for (unsigned int cpu = 0; r == 0 && cpu < cpus; cpu++)
			counters_add(&gone[cpu], &row[cpu]);
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
			counters_add(&ret[from + i / cpus], &of_cpu[i]);
		from += count;
	}
	return 0;
}

static int by_row(const void *a, const void *b)
{
	const struct gate *x = a, *y = b;

	return (x->value.row > y->value.row) - (x->value.row < y->value.row);
}

static int row_fill(struct dataplane *d, const struct gate *gate,
		    const struct tally_counters *counters, struct traffic_row *ret)
{
	const uint32_t index = gate->value.job;
	struct tally_job job = { .tenant = 0 };
	int r = 0;

	if (gate->value.row >= TALLY_ROW_FIRST)
		r = bpf_map_lookup_elem(d->fd[PIN_JOBS], &index, &job);
	ret->job = gate->key.job;
	ret->ifindex = gate->key.ifindex;
	ret->tenant = job.tenant;
	memcpy(ret->outcome, counters[gate->value.row].outcome, sizeof(ret->outcome));
	return r;
}

int dataplane_rows(struct dataplane *d, struct traffic_row **ret, unsigned int *ret_count,
		   struct why *why)
{
	_cleanup_(freep) struct tally_counters *counters = NULL;
	_cleanup_(freep) struct traffic_row *rows = NULL;
	_cleanup_(freep) struct gates *gates = NULL;
	const struct gate no_job = { .value.row = TALLY_ROW_NO_JOB },
			  gone = { .value.row = TALLY_ROW_GONE };
	uint32_t end = TALLY_ROW_FIRST;
	int r;

	r = gates_read(d, &gates, why);
	if (r < 0)
		return r;
	qsort(gates->gate, gates->count, sizeof(*gates->gate), by_row);
	if (gates->count)
		end = gates->gate[gates->count - 1].value.row + 1;
	counters = calloc(end, sizeof(*counters));
	rows = calloc(gates->count + TALLY_ROW_FIRST, sizeof(*rows));
	if (!counters || !rows)
		return -ENOMEM;
	r = rows_read(d, 0, end, counters);
	if (r == 0)
		r = row_fill(d, &no_job, counters, &rows[0]);
	if (r == 0)
		r = row_fill(d, &gone, counters, &rows[1]);
	for (unsigned int i = 0; r == 0 && i < gates->count; i++)
		r = row_fill(d, &gates->gate[i], counters, &rows[TALLY_ROW_FIRST + i]);
	if (r < 0)
		return map_error(why, r, "counters");
	*ret = TAKE_PTR(rows);
	*ret_count = gates->count + TALLY_ROW_FIRST;
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
		for (int out = 0; out < TALLY_OUTCOME_COUNT; out++) {
			ret[out].packet += rows[i].outcome[out].packet;
			ret[out].byte += rows[i].outcome[out].byte;
		}
	return 0;
}
