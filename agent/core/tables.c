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

int tables_job_copy(const struct tables_job *j, struct tables_job *ret)
{
	struct tables_job copy = *j;

	copy.copy = calloc(j->copies + 1, sizeof(*copy.copy));
	copy.gate = calloc(j->gates + 1, sizeof(*copy.gate));
	if (!copy.copy || !copy.gate) {
		tables_job_close(&copy);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < j->copies; i++)
		copy.copy[i] = j->copy[i];
	for (unsigned int i = 0; i < j->gates; i++)
		copy.gate[i] = j->gate[i];
	*ret = copy;
	return 0;
}

int tables_copy(const struct tables *t, struct tables *ret)
{
	struct tables copy = { .slots = t->slots, .pool = t->pool, .ports = t->ports };
	int r = 0;

	copy.port = calloc(t->ports + 1, sizeof(*copy.port));
	copy.job = calloc(t->jobs + 1, sizeof(*copy.job));
	if (!copy.port || !copy.job)
		r = -ENOMEM;
	for (unsigned int i = 0; r == 0 && i < t->ports; i++)
		copy.port[i] = t->port[i];
	for (unsigned int i = 0; r == 0 && i < t->jobs; i++) {
		r = tables_job_copy(&t->job[i], &copy.job[i]);
		copy.jobs += r == 0;
	}
	if (r < 0)
		tables_close(&copy);
	else
		*ret = copy;
	return r;
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

/* --- group ------------------------------------------------------------------------------------ */

/* The one that the job has, so that its row counts on, or the first that is free. */
static int group_find(const struct tables *now, uint32_t id, struct tally_job *job, struct why *why)
{
	bool used[TALLY_JOBS_MAX + 1] = { false }; /* the last one never is */
	const struct tables_job *before = tables_find(now, id);
	uint32_t group = 0;

	for (unsigned int i = 0; i < now->jobs; i++)
		if (now->job[i].id != id && now->job[i].job.group < TALLY_JOBS_MAX)
			used[now->job[i].job.group] = true;
	if (before && before->job.group < TALLY_JOBS_MAX && !used[before->job.group])
		group = before->job.group;
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
	const bool *freed; /* rows that are taken last */
	struct tables_job *job;
	unsigned int gates; /* that other jobs have */
	bool used[TALLY_ROWS_MAX]; /* rows of ports: */
	unsigned int held; /* by the job's tenant */
	unsigned int common; /* by other tenants, beyond what is theirs alone */
};

static bool is_row_of_port(uint32_t row) { return row >= TALLY_ROW_PORTS && row < TALLY_ROWS_MAX; }

/* What others have; the job's own rows are not free either, since they still count. */
static void others_mark(struct choice *c, const struct tables *now)
{
	unsigned int held[TALLY_TENANTS_MAX] = { 0 };
	const uint16_t tenant = c->job->job.tenant;

	for (unsigned int i = 0; i < now->jobs; i++) {
		const struct tables_job *j = &now->job[i];
		const bool other = j->id != c->job->id;

		c->gates += other ? j->gates : 0;
		for (unsigned int k = 0; k < j->gates; k++) {
			if (!is_row_of_port(j->gate[k].row))
				continue;
			c->used[j->gate[k].row] = true;
			held[j->job.tenant % TALLY_TENANTS_MAX] += other;
		}
	}
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		if (i != tenant && held[i] > TALLY_PORT_ROWS_OF_TENANT)
			c->common += held[i] - TALLY_PORT_ROWS_OF_TENANT;
	c->held = tenant < TALLY_TENANTS_MAX ? held[tenant] : 0;
}

/* Some rows of ports are each tenant's own; of the others, who comes first has them. */
static bool has_row_left(const struct choice *c)
{
	return c->held < TALLY_PORT_ROWS_OF_TENANT ||
	       c->common + c->held - TALLY_PORT_ROWS_OF_TENANT <
		       TALLY_PORT_ROWS - TALLY_TENANTS_MAX * TALLY_PORT_ROWS_OF_TENANT;
}

/* TALLY_ROWS_MAX: there is none. */
static uint32_t row_find(const struct choice *c, bool freed)
{
	uint32_t row = TALLY_ROW_PORTS;

	while (row < TALLY_ROWS_MAX && (c->used[row] || c->freed[row] != freed))
		row++;
	return row;
}

/* The row that the job had for the port, or a free one; that of the whole job if there is none. */
static uint32_t row_choose(struct choice *c, uint32_t ifindex)
{
	const struct dataplane_gate *before = tables_gate_find(c->before, ifindex);
	uint32_t row;

	if (!has_row_left(c))
		return c->job->gate[0].row;
	if (before && is_row_of_port(before->row)) {
		c->held++;
		return before->row;
	}
	row = row_find(c, false);
	if (row == TALLY_ROWS_MAX)
		row = row_find(c, true);
	if (row == TALLY_ROWS_MAX)
		return c->job->gate[0].row;
	c->used[row] = true;
	c->held++;
	return row;
}

/* Gates where they are wanted; their rows are still that of the whole job. */
static int gates_add(struct choice *c, const struct dataplane_gate *wanted, unsigned int count,
		     struct why *why)
{
	if (c->gates + 1 + count > TALLY_GATES_MAX)
		return why_say(why, -ENOSPC, "job %u: all %u gates of the node are in use",
			       c->job->id, TALLY_GATES_MAX);
	for (unsigned int i = 0; i < count; i++) {
		struct dataplane_gate gate = wanted[i];

		if (tables_gate_find(c->job, gate.ifindex))
			return why_say(why, -EINVAL, "job %u: port number %u is given twice",
				       c->job->id, gate.ifindex);
		gate.row = c->job->gate[0].row;
		c->job->gate[c->job->gates++] = gate;
	}
	return 0;
}

/*
 * Ports that workers are behind have rows first, and where a gate is not wanted for its own sake,
 * only these have gates.
 */
static void rows_choose(struct choice *c, bool everywhere)
{
	struct tables_job *j = c->job;
	const uint32_t common = j->gate[0].row;

	for (unsigned int i = 0; i < j->copies; i++) {
		struct dataplane_gate gate = { .ifindex = j->copy[i].port }, *there;

		there = (struct dataplane_gate *)tables_gate_find(j, gate.ifindex);
		if ((there && there->row != common) || (!there && !everywhere))
			continue;
		gate.row = row_choose(c, gate.ifindex);
		if (there)
			there->row = gate.row;
		else if (gate.row != common)
			j->gate[j->gates++] = gate;
	}
	for (unsigned int i = 1; i < j->gates; i++)
		if (j->gate[i].row == common)
			j->gate[i].row = row_choose(c, j->gate[i].ifindex);
}

static int gates_choose(const struct tables *now, const struct dataplane_gate *wanted,
			unsigned int count, struct tables_job *job, struct why *why)
{
	struct choice c = { .before = tables_find(now, job->id), .freed = now->freed, .job = job };
	int r;

	count = wanted ? count : 0;
	job->gate = calloc(1 + count + job->copies, sizeof(*job->gate));
	if (!job->gate)
		return -ENOMEM;
	others_mark(&c, now);
	job->gate[job->gates++] = (struct dataplane_gate){ .row = TALLY_ROW_JOBS + job->job.group,
							   .anywhere = !wanted };
	r = gates_add(&c, wanted, count, why);
	if (r == 0)
		rows_choose(&c, !wanted);
	return r;
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

/* Do copies of a run leave by other ports than they did? */
static bool has_moved(const struct tables_job *before, const struct installation *wanted)
{
	for (unsigned int i = 0; i < before->copies && i < wanted->copies; i++)
		if (before->copy[i].port != wanted->copy[i].hop.port)
			return true;
	return false;
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
	if (before && !before->broken && before->job.epoch == j.job.epoch && !wanted->anew &&
	    !has_moved(before, wanted))
		return why_say(why, -EEXIST,
			       "job %u is there already with epoch %u: give a new run another "
			       "epoch, or tally-node job del %u",
			       j.id, j.job.epoch, j.id);
	j.job.id = j.id;
	j.copies = wanted->copies;
	j.copy = calloc(j.copies + 1, sizeof(*j.copy));
	if (!j.copy)
		return -ENOMEM;
	for (unsigned int i = 0; i < j.copies; i++)
		j.copy[i].port = wanted->copy[i].hop.port;
	r = children_check(now, wanted, why);
	if (r == 0)
		r = tables_place(now, j.id, &j.job, why);
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

/* No gate of ours leads to row 0, and what else stands in the maps may be anything. */
static bool *freed(struct tables *t, uint32_t row)
{
	return &t->freed[row < TALLY_ROWS_MAX ? row : 0];
}

void tables_forget(struct tables *t, uint32_t id)
{
	struct tables_job *j = (struct tables_job *)tables_find(t, id);

	if (!j)
		return;
	for (unsigned int i = 0; i < j->gates; i++)
		*freed(t, j->gate[i].row) = true;
	tables_job_close(j);
	memmove(j, j + 1, (t->job + t->jobs - (j + 1)) * sizeof(*j));
	t->jobs--;
}

/* Whoever took one that was freed has waited, and so for all of them. */
static void rows_take(struct tables *t, const struct tables_job *j)
{
	for (unsigned int i = 0; i < j->gates; i++)
		if (*freed(t, j->gate[i].row))
			memset(t->freed, 0, sizeof(t->freed));
}

int tables_put(struct tables *t, struct tables_job *job)
{
	struct tables_job *jobs = reallocarray(t->job, t->jobs + 1, sizeof(*jobs));
	unsigned int at = 0;

	if (!jobs)
		return -ENOMEM;
	t->job = jobs;
	rows_take(t, job);
	tables_forget(t, job->id);
	for (unsigned int i = 0; i < job->gates; i++)
		*freed(t, job->gate[i].row) = false;
	while (at < t->jobs && jobs[at].id < job->id)
		at++;
	memmove(&jobs[at + 1], &jobs[at], (t->jobs - at) * sizeof(*jobs));
	jobs[at] = TAKE(*job, (struct tables_job){ 0 });
	t->jobs++;
	return 0;
}
