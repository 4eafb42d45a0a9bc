// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "tables.h"

void tables_job_close(struct tables_job *j)
{
	free(j->copy);
	free(j->gate);
	*j = (struct tables_job){ 0 };
}

void tables_close(struct tables *t)
{
	for (unsigned int i = 0; i < t->jobs; i++)
		tables_job_close(&t->job[i]);
	free(t->job);
	free(t->port);
	*t = (struct tables){ 0 };
}

bool tables_job_is_equal(const struct tables_job *a, const struct tables_job *b)
{
	bool same = a->id == b->id && a->broken == b->broken && a->copies == b->copies &&
		    a->gates == b->gates && !memcmp(&a->job, &b->job, sizeof(a->job));

	for (unsigned int i = 0; same && i < a->copies; i++)
		same = a->copy[i].port == b->copy[i].port && a->copy[i].index == b->copy[i].index &&
		       a->copy[i].row == b->copy[i].row;
	for (unsigned int i = 0; same && i < a->gates; i++) {
		const struct dataplane_gate *x = &a->gate[i];
		const struct dataplane_gate *y = tables_gate_find(b, x->ifindex);

		same = y && x->row == y->row && x->restricted == y->restricted &&
		       x->anywhere == y->anywhere;
	}
	return same;
}

/* --- what there is --------------------------------------------------------------------------- */

const struct tables_job *tables_find(const struct tables *t, uint32_t id)
{
	for (unsigned int i = 0; i < t->jobs; i++)
		if (t->job[i].id == id)
			return &t->job[i];
	return NULL;
}

const struct dataplane_gate *tables_gate_find(const struct tables_job *j, uint32_t ifindex)
{
	for (unsigned int i = 0; j && i < j->gates; i++)
		if (j->gate[i].ifindex == ifindex)
			return &j->gate[i];
	return NULL;
}

uint32_t tables_row(const struct tables_job *j, uint32_t ifindex)
{
	const struct dataplane_gate *gate = tables_gate_find(j, ifindex);

	if (!gate)
		gate = tables_gate_find(j, 0);
	return gate ? gate->row : TALLY_ROW_NO_JOB;
}

static bool is_attached(const struct tables *t, uint32_t ifindex)
{
	for (unsigned int i = 0; i < t->ports; i++)
		if (t->port[i] == ifindex)
			return true;
	return false;
}

/* --- slots and group ------------------------------------------------------------------------- */

/* The first other job that has a slot in base .. base + count - 1. */
static const struct tally_job *in_the_way(const struct tables *now, uint32_t id, uint64_t base,
					  uint64_t slots)
{
	for (unsigned int i = 0; i < now->jobs; i++) {
		const struct tally_job *other = &now->job[i].job;

		if (now->job[i].id != id && other->group != TABLES_NO_GROUP &&
		    base <= (uint64_t)other->slot_base + other->slot_mask &&
		    other->slot_base < base + slots)
			return other;
	}
	return NULL;
}

static int slots_find(const struct tables *now, uint32_t id, struct tally_job *job, struct why *why)
{
	const uint64_t wanted = (uint64_t)job->slot_mask + 1;
	const struct tally_job *other;
	uint64_t base = 0;

	while ((other = in_the_way(now, id, base, wanted)))
		base = (uint64_t)other->slot_base + other->slot_mask + 1;
	if (base + wanted > now->slots)
		return why_say(why, -ENOSPC,
			       "no %llu slots in a row are free (two a chunk of the window): this "
			       "node has %u; take a smaller window, or attach with more --slots",
			       (unsigned long long)wanted, now->slots);
	job->slot_base = base;
	return 0;
}

static int group_find(const struct tables *now, uint32_t id, struct tally_job *job, struct why *why)
{
	bool used[TALLY_JOBS_MAX + 1] = { false }; /* the last one never is */
	uint32_t group = 0;

	for (unsigned int i = 0; i < now->jobs; i++)
		if (now->job[i].id != id && now->job[i].job.group < TALLY_JOBS_MAX)
			used[now->job[i].job.group] = true;
	while (used[group])
		group++;
	if (group == TALLY_JOBS_MAX)
		return why_say(why, -ENOSPC, "this node has %u jobs already, the most it can have",
			       TALLY_JOBS_MAX);
	job->group = group;
	return 0;
}

/* --- gates and their rows -------------------------------------------------------------------- */

/* The gates of one job, while they are chosen. */
struct choice {
	const struct tables_job *before; /* or NULL */
	struct tables_job *job;
	bool used[TALLY_GATES_MAX]; /* rows */
};

static void rows_mark(const struct tables *now, bool *used)
{
	used[TALLY_ROW_NO_JOB] = used[TALLY_ROW_GONE] = true;
	for (unsigned int i = 0; i < now->jobs; i++)
		for (unsigned int k = 0; k < now->job[i].gates; k++)
			used[now->job[i].gate[k].row % TALLY_GATES_MAX] = true;
}

/* Adds a gate, with the row that the job had for the port or a free one. -ENOSPC. */
static int gate_add(struct choice *c, struct dataplane_gate gate)
{
	const struct dataplane_gate *before = tables_gate_find(c->before, gate.ifindex);
	uint32_t row = TALLY_ROW_FIRST;

	while (!before && row < TALLY_GATES_MAX && c->used[row])
		row++;
	if (!before && row == TALLY_GATES_MAX)
		return -ENOSPC;
	gate.row = before ? before->row : row;
	c->used[gate.row % TALLY_GATES_MAX] = true;
	c->job->gate[c->job->gates++] = gate;
	return 0;
}

/* A gate for each port, as far as there are rows: what has none comes in by gate 0. */
static void gates_add_ports(struct choice *c, const struct tables *now)
{
	for (unsigned int i = 0; i < now->ports; i++)
		if (gate_add(c, (struct dataplane_gate){ .ifindex = now->port[i] }) < 0)
			break;
}

static int gates_add(struct choice *c, const struct dataplane_gate *wanted, unsigned int count,
		     struct why *why)
{
	for (unsigned int i = 0; i < count; i++) {
		if (tables_gate_find(c->job, wanted[i].ifindex))
			return why_say(why, -EINVAL, "job %u: port number %u is given twice",
				       c->job->id, wanted[i].ifindex);
		if (gate_add(c, wanted[i]) < 0)
			return why_say(why, -ENOSPC, "job %u: all %u gates of the node are in use",
				       c->job->id, TALLY_GATES_MAX - TALLY_ROW_FIRST);
	}
	return 0;
}

static int gates_choose(const struct tables *now, const struct dataplane_gate *wanted,
			unsigned int count, struct tables_job *job, struct why *why)
{
	struct choice c = { .before = tables_find(now, job->id), .job = job };

	job->gate = calloc(1 + (wanted ? count : now->ports), sizeof(*job->gate));
	if (!job->gate)
		return -ENOMEM;
	rows_mark(now, c.used);
	if (gate_add(&c, (struct dataplane_gate){ .anywhere = !wanted }) < 0)
		return why_say(why, -ENOSPC, "job %u: all %u gates of the node are in use", job->id,
			       TALLY_GATES_MAX - TALLY_ROW_FIRST);
	if (wanted)
		return gates_add(&c, wanted, count, why);
	gates_add_ports(&c, now);
	return 0;
}

/* --- copies ---------------------------------------------------------------------------------- */

static int ports_check(const struct tables *now, const struct installation *wanted, struct why *why)
{
	for (unsigned int i = 0; i < wanted->copies; i++) {
		const struct hop *h = &wanted->copy[i].hop;
		char text[ADDRESS_BYTES];

		if (is_attached(now, h->port))
			continue;
		address_print(&wanted->copy[i].address, text, sizeof(text));
		return why_say(
			why, -EINVAL,
			"%s: is behind %s, where this node is not attached: tally-node attach "
			"--replace with all its interfaces",
			text, h->port_name);
	}
	return 0;
}

static int children_check(const struct tables *now, const struct installation *wanted,
			  struct why *why)
{
	unsigned int copies = 0;

	for (unsigned int i = 0; i < now->jobs; i++)
		if (now->job[i].id != wanted->id)
			copies += now->job[i].copies;
	if (copies + wanted->copies > TALLY_CHILDREN_MAX)
		return why_say(why, -ENOSPC, "%u copies needed, the node has room for %u",
			       copies + wanted->copies, TALLY_CHILDREN_MAX);
	return 0;
}

/* Numbers the copies of each port. The ports are there. */
static void copies_number(struct tables_job *j)
{
	for (unsigned int i = 0; i < j->copies; i++) {
		j->copy[i].index = 0;
		for (unsigned int k = 0; k < i; k++)
			j->copy[i].index += j->copy[k].port == j->copy[i].port;
		j->copy[i].row = tables_row(j, j->copy[i].port);
	}
}

/* What is left of a job whose slots, group and ports are chosen. */
static int gates_finish(const struct tables *now, const struct dataplane_gate *gates,
			unsigned int count, struct tables_job *j, struct tables_job *ret,
			struct why *why)
{
	int r = gates_choose(now, gates, count, j, why);

	if (r < 0)
		return r;
	copies_number(j);
	*ret = TAKE(*j, (struct tables_job){ 0 });
	return 0;
}

/* --- what is to be --------------------------------------------------------------------------- */

int tables_install(const struct tables *now, const struct installation *wanted,
		   const struct dataplane_gate *gates, unsigned int count, struct tables_job *ret,
		   struct why *why)
{
	_cleanup_(tables_job_close) struct tables_job j = { .id = wanted->id, .job = wanted->job };
	const struct tables_job *before = tables_find(now, j.id);
	int r;

	r = ports_check(now, wanted, why);
	if (r < 0)
		return r;
	if (before && !before->broken && before->job.epoch == j.job.epoch)
		return why_say(why, -EEXIST,
			       "job %u is there already with epoch %u: give a new run another "
			       "epoch, or tally-node job del %u",
			       j.id, j.job.epoch, j.id);
	j.job.id = j.id;
	j.copies = wanted->copies;
	j.copy = calloc(j.copies, sizeof(*j.copy));
	if (!j.copy)
		return -ENOMEM;
	for (unsigned int i = 0; i < j.copies; i++)
		j.copy[i].port = wanted->copy[i].hop.port;
	r = children_check(now, wanted, why);
	if (r == 0)
		r = slots_find(now, j.id, &j.job, why);
	if (r == 0)
		r = group_find(now, j.id, &j.job, why);
	return r < 0 ? r : gates_finish(now, gates, count, &j, ret, why);
}

int tables_no_job(uint32_t id, struct why *why)
{
	return why_say(why, -ENOENT, "job %u: this node has no such job (tally-node job list)", id);
}

int tables_remove(const struct tables *now, uint32_t id, const struct tables_job **ret,
		  struct why *why)
{
	const struct tables_job *j = tables_find(now, id);

	if (!j)
		return tables_no_job(id, why);
	*ret = j;
	return 0;
}

int tables_regate(const struct tables *now, uint32_t id, const struct dataplane_gate *gates,
		  unsigned int count, struct tables_job *ret, struct why *why)
{
	_cleanup_(tables_job_close) struct tables_job j = { .id = id };
	const struct tables_job *before = tables_find(now, id);

	if (!before || before->broken)
		return tables_no_job(id, why);
	j.job = before->job;
	j.copies = before->copies;
	j.copy = calloc(j.copies + 1, sizeof(*j.copy));
	if (!j.copy)
		return -ENOMEM;
	for (unsigned int i = 0; i < j.copies; i++)
		j.copy[i].port = before->copy[i].port;
	return gates_finish(now, gates, count, &j, ret, why);
}

/* --- what has been done ---------------------------------------------------------------------- */

void tables_forget(struct tables *t, uint32_t id)
{
	struct tables_job *j = (struct tables_job *)tables_find(t, id);

	if (!j)
		return;
	tables_job_close(j);
	memmove(j, j + 1, (t->job + t->jobs - (j + 1)) * sizeof(*j));
	t->jobs--;
}

int tables_put(struct tables *t, struct tables_job *job)
{
	struct tables_job *jobs = reallocarray(t->job, t->jobs + 1, sizeof(*jobs));
	unsigned int at = 0;

	if (!jobs)
		return -ENOMEM;
	t->job = jobs;
	tables_forget(t, job->id);
	while (at < t->jobs && jobs[at].id < job->id)
		at++;
	memmove(&jobs[at + 1], &jobs[at], (t->jobs - at) * sizeof(*jobs));
	jobs[at] = TAKE(*job, (struct tables_job){ 0 });
	t->jobs++;
	return 0;
}
