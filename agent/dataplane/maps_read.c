// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The maps of a running node, read into the words of agent/core/tables.h. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "maps.h"

int map_error(struct why *why, int error, const char *map)
{
	return why_say(why, error, "map %s: %s", map, strerror(-error));
}

/* --- gates ----------------------------------------------------------------------------------- */

struct gate {
	struct tally_gate_key key;
	struct tally_gate value;
};

/* Jobs by their ids, and of each gate 0 first. */
static int by_key(const void *a, const void *b)
{
	const struct tally_gate_key *x = a, *y = b;

	if (x->job != y->job)
		return x->job < y->job ? -1 : 1;
	return (x->ifindex > y->ifindex) - (x->ifindex < y->ifindex);
}

/* Which job has which index, as far as somebody asked. */
struct ids {
	uint32_t id[TALLY_JOBS_MAX];
	bool known[TALLY_JOBS_MAX];
};

static int id_read(struct dataplane *d, struct ids *ids, uint32_t index)
{
	struct tally_job job;
	int r;

	if (ids->known[index])
		return 0;
	r = bpf_map_lookup_elem(d->fd[PIN_JOBS], &index, &job);
	if (r == 0) {
		ids->id[index] = job.id;
		ids->known[index] = true;
	}
	return r;
}

/* A gate has the index of its job, and nobody else has the index: the job says which one it is. */
static int gate_read(struct dataplane *d, struct ids *ids, __u64 word, struct gate *ret)
{
	const struct tally_gate value = tally_gate_read(word);
	int r = id_read(d, ids, value.job);

	if (r == 0)
		*ret = (struct gate){ { ids->id[value.job], tally_gate_port(word) }, value };
	return r;
}

enum {
	WORDS = TALLY_GATE_BUCKETS * TALLY_GATE_WORDS,
};

/*
 * All of them, sorted; *ret to be freed. There may be more than TALLY_GATES_MAX: who changed gates
 * on a full node, and was killed, has left those of before and those that were to be.
 */
static int gates_read(struct dataplane *d, struct gate **ret, uint32_t *ret_count, struct why *why)
{
	_cleanup_(freep) struct gate *gates = NULL;
	const __u64 *word = (const __u64 *)d->gates.bucket;
	struct ids ids = { .known = { false } };
	uint32_t count = 0;
	int r;

	if (!word) /* the node could not be opened */
		return map_error(why, -EBADF, "gates");
	for (uint32_t i = 0; i < WORDS; i++)
		count += !!word[i];
	gates = calloc(count + 1, sizeof(*gates));
	if (!gates)
		return -ENOMEM;
	count = 0;
	for (uint32_t i = 0; i < WORDS; i++) {
		if (!word[i])
			continue;
		r = gate_read(d, &ids, word[i], &gates[count++]);
		if (r < 0)
			return map_error(why, r, "jobs");
	}
	qsort(gates, count, sizeof(*gates), by_key);
	*ret = TAKE_PTR(gates);
	*ret_count = count;
	return 0;
}

/* --- jobs ------------------------------------------------------------------------------------ */

/* The job whose gates these are. */
static int job_read(struct dataplane *d, const struct gate *gates, uint32_t count,
		    struct tables_job *ret, struct why *why)
{
	const uint32_t index = gates[0].value.job;
	struct tables_job j = { .id = gates[0].key.job, .broken = gates[0].key.ifindex };
	int r;

	r = bpf_map_lookup_elem(d->fd[PIN_JOBS], &index, &j.job);
	if (r < 0)
		return map_error(why, r, "jobs");
	j.gate = calloc(count, sizeof(*j.gate));
	if (!j.gate)
		return -ENOMEM;
	for (; j.gates < count; j.gates++)
		j.gate[j.gates] = (struct dataplane_gate){
			.ifindex = gates[j.gates].key.ifindex,
			.row = gates[j.gates].value.row,
			.restricted = gates[j.gates].value.restricted,
			.anywhere = gates[j.gates].value.anywhere,
		};
	*ret = j;
	return 0;
}

int maps_read_gates(struct dataplane *d, struct tables *ret, struct why *why)
{
	_cleanup_(tables_close) struct tables t = { .slots = dataplane_slots(d),
						    .pool = dataplane_pool(d).slots };
	_cleanup_(freep) struct gate *gates = NULL;
	uint32_t count = 0, end;
	int r;

	r = gates_read(d, &gates, &count, why);
	if (r < 0)
		return r;
	t.job = calloc(count + 1, sizeof(*t.job)); /* a job has one gate at least */
	if (!t.job)
		return -ENOMEM;
	for (uint32_t first = 0; first < count; first = end) {
		for (end = first + 1; end < count; end++)
			if (gates[end].key.job != gates[first].key.job)
				break;
		r = job_read(d, &gates[first], end - first, &t.job[t.jobs], why);
		if (r < 0)
			return r;
		t.jobs++;
	}
	*ret = TAKE(t, (struct tables){ 0 });
	return 0;
}

/* --- copies ---------------------------------------------------------------------------------- */

int maps_read_copies(struct dataplane *d, uint32_t id, struct tables_copy *ret)
{
	unsigned int n;

	for (n = 0; n < TALLY_WORKERS_MAX; n++) {
		const struct tally_child_key of_job = { .job = id, .index = n };
		struct tally_child child;
		int r = bpf_map_lookup_elem(d->fd[PIN_CHILDREN], &of_job, &child);

		if (r == -ENOENT)
			break;
		if (r < 0)
			return r;
		ret[n] = (struct tables_copy){ .port = child.port, .row = child.row };
		for (unsigned int i = 0; i < n; i++)
			ret[n].index += ret[i].port == child.port;
	}
	return (int)n;
}

static bool child_is_equal(const struct tally_child *a, const struct tally_child *b)
{
	return tally_set_is_equal(&a->below, &b->below) &&
	       !memcmp(a->mac, b->mac, sizeof(a->mac)) &&
	       !memcmp(a->port_mac, b->port_mac, sizeof(a->port_mac)) &&
	       !memcmp(a->ip6, b->ip6, sizeof(a->ip6)) && a->udp_port == b->udp_port &&
	       a->ipv6 == b->ipv6 && a->keyed == b->keyed && a->row == b->row &&
	       a->port == b->port && a->key == b->key;
}

bool maps_child_is(struct dataplane *d, uint32_t id, unsigned int i, struct tally_child child)
{
	const struct tally_child_key of_job = { .job = id, .index = i };
	struct tally_child is;

	return bpf_map_lookup_elem(d->fd[PIN_CHILDREN], &of_job, &is) == 0 &&
	       child_is_equal(&is, &child);
}

int maps_read_jobs(struct dataplane *d, struct tables *ret, struct why *why)
{
	_cleanup_(tables_close) struct tables t = { 0 };
	struct tables_copy copy[TALLY_WORKERS_MAX];
	int r;

	r = maps_read_gates(d, &t, why);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < t.jobs; i++) {
		struct tables_job *j = &t.job[i];

		r = maps_read_copies(d, j->id, copy);
		if (r < 0)
			return map_error(why, r, "children");
		j->copy = calloc(r + 1, sizeof(*copy));
		if (!j->copy)
			return -ENOMEM;
		memcpy(j->copy, copy, r * sizeof(*copy));
		j->copies = r;
	}
	*ret = TAKE(t, (struct tables){ 0 });
	return 0;
}

int dataplane_slot_read(struct dataplane *d, uint32_t index, struct tally_slot *ret)
{
	return bpf_map_lookup_elem_flags(d->fd[PIN_SLOTS], &index, ret, BPF_F_LOCK);
}
