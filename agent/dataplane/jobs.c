// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Jobs in and out of the maps of a running node. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "common/address.h"
#include "private.h"

int map_error(struct why *why, int error, const char *map)
{
	return why_say(why, error, "map %s: %s", map, strerror(-error));
}

uint32_t dataplane_slots(const struct dataplane *d)
{
	struct bpf_map_info info = { 0 };
	uint32_t length = sizeof(info);

	if (bpf_obj_get_info_by_fd(d->fd[PIN_SLOTS], &info, &length) < 0)
		return 0;
	return info.max_entries;
}

/* --- groups ---------------------------------------------------------------------------------- */

/*
 * A group's map has a pin of its own, beside its place in `groups`: that gives only its number,
 * and the kernel opens a map by its number for CAP_SYS_ADMIN alone.
 */
const char *group_path(const char *pin, uint32_t group)
{
	char name[32];

	snprintf(name, sizeof(name), "group-%u", group);
	return pin_path(pin, name, "");
}

/* The inner map of a group, or -errno. */
static int group_open(struct dataplane *d, uint32_t group)
{
	return bpf_obj_get(group_path(d->path, group));
}

static unsigned int copies_count(struct dataplane *d, uint32_t group)
{
	_cleanup_(closep) int fd = group_open(d, group);
	uint32_t key, *at = NULL;
	unsigned int n = 0;

	for (; fd >= 0 && !bpf_map_get_next_key(fd, at, &key); at = &key)
		n++;
	return n;
}

/* Copies have the keys 0, 1, ... (walking the map would go in circles: an update moves keys). */
static int group_use(struct dataplane *d, const struct dataplane_job *job, int fanout)
{
	_cleanup_(closep) int fd = group_open(d, job->job.group);
	int r;

	if (fd < 0)
		return fd;
	for (uint32_t key = 0; key < job->copies; key++) {
		struct bpf_devmap_val value;

		r = bpf_map_lookup_elem(fd, &key, &value);
		if (r < 0)
			return r;
		value.bpf_prog.fd = fanout;
		r = bpf_map_update_elem(fd, &key, &value, BPF_EXIST);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Writes the group once more: see job_stop(). */
void programs_wait(struct dataplane *d, uint32_t group)
{
	_cleanup_(closep) int fd = group_open(d, group);

	if (fd >= 0)
		bpf_map_update_elem(d->fd[PIN_GROUPS], &group, &fd, BPF_ANY);
}

int dataplane_groups_use(struct dataplane *d, int fanout, struct why *why)
{
	_cleanup_(freep) struct dataplane_job *jobs = NULL;
	unsigned int count = 0;
	int r;

	r = dataplane_jobs(d, &jobs, &count, why);
	for (unsigned int i = 0; r == 0 && i < count; i++) {
		r = group_use(d, &jobs[i], fanout);
		if (r < 0)
			return map_error(why, r, "groups");
	}
	return r;
}

/* --- reading --------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	uint32_t x = ((const struct dataplane_job *)a)->id;
	uint32_t y = ((const struct dataplane_job *)b)->id;

	return (x > y) - (x < y);
}

/* Each job has a gate 0, which says where it stands. */
static int jobs_read(struct dataplane *d, const struct gates *gates, struct dataplane_job **ret,
		     unsigned int *ret_count, struct why *why)
{
	_cleanup_(freep) struct dataplane_job *jobs = calloc(TALLY_JOBS_MAX, sizeof(*jobs));
	unsigned int n = 0;
	int r;

	if (!jobs)
		return -ENOMEM;
	for (unsigned int i = 0; i < gates->count && n < TALLY_JOBS_MAX; i++) {
		const struct gate *gate = &gates->gate[i];
		const uint32_t index = gate->value.job;

		if (gate->key.ifindex)
			continue;
		r = bpf_map_lookup_elem(d->fd[PIN_JOBS], &index, &jobs[n].job);
		if (r < 0)
			return map_error(why, r, "jobs");
		jobs[n].id = gate->key.job;
		jobs[n].copies = copies_count(d, jobs[n].job.group);
		n++;
	}
	qsort(jobs, n, sizeof(*jobs), by_number);
	*ret = TAKE_PTR(jobs);
	*ret_count = n;
	return 0;
}

int dataplane_jobs(struct dataplane *d, struct dataplane_job **ret, unsigned int *ret_count,
		   struct why *why)
{
	_cleanup_(freep) struct gates *gates = NULL;
	int r;

	r = gates_read(d, &gates, why);
	return r < 0 ? r : jobs_read(d, gates, ret, ret_count, why);
}

/* --- jobs in and out ------------------------------------------------------------------------- */

/*
 * No message finds the job any more. The kernel returns from taking a map out of a map of maps
 * only when no program still runs that may have seen it: after that the job's slots and rows are
 * nobody's.
 */
static void job_stop(struct dataplane *d, const struct gates *gates, uint32_t group)
{
	gates_remove(d, gates, NULL);
	bpf_map_delete_elem(d->fd[PIN_GROUPS], &group);
	unlink(group_path(d->path, group));
	children_remove(d, gates->gate[0].key.job);
}

static int slots_clear(struct dataplane *d, const struct tally_job *job)
{
	_cleanup_(freep) struct tally_slot *fresh = calloc(1, sizeof(*fresh));
	int r;

	if (!fresh)
		return -ENOMEM;
	for (uint32_t i = 0; i <= job->slot_mask; i++) {
		uint32_t slot = job->slot_base + i;

		r = bpf_map_update_elem(d->fd[PIN_SLOTS], &slot, fresh, BPF_F_LOCK);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Each port that a copy leaves through has a cursor; those that are there stay as they are. */
static int cursors_make(struct dataplane *d, const struct installation *g)
{
	_cleanup_(freep) struct tally_cursor *fresh = calloc(dataplane_cpus(), sizeof(*fresh));
	int r;

	_Static_assert(sizeof(*fresh) % 8 == 0, "the kernel pads per-CPU values to 8 bytes");
	if (!fresh)
		return -ENOMEM;
	for (unsigned int i = 0; i < g->copies; i++) {
		const uint32_t *port = &g->copy[i].hop.port;

		r = bpf_map_update_elem(d->fd[PIN_CURSORS], port, fresh, BPF_NOEXIST);
		if (r < 0 && r != -EEXIST)
			return r;
	}
	return 0;
}

/* The map of the job's copies, or -errno. */
static int group_make(struct dataplane *d, const struct installation *g)
{
	_cleanup_(closep) int fd = bpf_map_create(BPF_MAP_TYPE_DEVMAP_HASH, "group",
						  sizeof(uint32_t), sizeof(struct bpf_devmap_val),
						  TALLY_WORKERS_MAX, NULL);
	int r;

	if (fd < 0)
		return fd;
	for (uint32_t i = 0; i < g->copies; i++) {
		struct bpf_devmap_val value = { .ifindex = g->copy[i].hop.port,
						.bpf_prog.fd = d->fd[PIN_FANOUT] };

		r = bpf_map_update_elem(fd, &i, &value, BPF_ANY);
		if (r < 0)
			return r;
	}
	return TAKE_FD(fd);
}

/* A job that is about to come, with all that it needs and that may be missing. */
struct arrival {
	struct installation *group;
	struct gates *all; /* of the node, before */
	struct gates *before; /* of the job's older epoch; or none */
	struct gates *gates; /* of the job */
	uint32_t group_before; /* of the older epoch, if there is one */
	int copies; /* map */
};

static void arrival_close(struct arrival *a)
{
	free(a->all);
	free(a->before);
	free(a->gates);
	closep(&a->copies);
}

static int job_install(struct dataplane *d, struct arrival *a, struct why *why)
{
	struct installation *g = a->group;
	int r;

	r = slots_clear(d, &g->job);
	if (r < 0)
		return map_error(why, r, "slots");
	r = children_add(d, g, a->gates);
	if (r < 0)
		return map_error(why, r, "children");
	unlink(group_path(d->path, g->job.group));
	r = bpf_obj_pin(a->copies, group_path(d->path, g->job.group));
	if (r == 0)
		r = bpf_map_update_elem(d->fd[PIN_GROUPS], &g->job.group, &a->copies, BPF_ANY);
	if (r < 0)
		return map_error(why, r, "groups");
	r = bpf_map_update_elem(d->fd[PIN_JOBS], &g->job.group, &g->job, BPF_ANY);
	if (r < 0)
		return map_error(why, r, "jobs");
	return gates_put(d, a->gates, why);
}

/* Takes the job with this number out of the list; false if there is none. */
static bool job_take(struct dataplane_job *jobs, unsigned int *count, uint32_t id,
		     struct dataplane_job *ret)
{
	for (unsigned int i = 0; i < *count; i++) {
		if (jobs[i].id != id)
			continue;
		*ret = jobs[i];
		jobs[i] = jobs[--*count];
		return true;
	}
	return false;
}

static int ports_check(struct dataplane *d, const struct installation *g, struct why *why)
{
	for (unsigned int i = 0; i < g->copies; i++) {
		const struct hop *h = &g->copy[i].hop;
		char text[ADDRESS_BYTES];

		if (dataplane_is_attached(d, h->port))
			continue;
		address_print(&g->copy[i].address, text, sizeof(text));
		return why_say(
			why, -EINVAL,
			"%s: is behind %s, where this node is not attached: tally-node attach "
			"--replace with all its interfaces",
			text, h->port_name);
	}
	return 0;
}

/* The job's place among the others; its older epoch, if there is one, is none of them. */
static int arrival_place(struct dataplane *d, struct arrival *a, struct why *why)
{
	_cleanup_(freep) struct dataplane_job *jobs = NULL;
	struct tally_job others[TALLY_JOBS_MAX];
	unsigned int count = 0, copies = 0;
	struct installation *g = a->group;
	struct dataplane_job before;
	int r;

	r = jobs_read(d, a->all, &jobs, &count, why);
	if (r < 0)
		return r;
	if (job_take(jobs, &count, g->id, &before)) {
		if (before.job.epoch == g->job.epoch)
			return why_say(why, -EEXIST,
				       "job %u is there already with epoch %u: give a new run "
				       "another epoch, or tally-node job del %u",
				       g->id, g->job.epoch, g->id);
		a->group_before = before.job.group;
	}
	for (unsigned int i = 0; i < count; i++) {
		others[i] = jobs[i].job;
		copies += jobs[i].copies;
	}
	if (copies + g->copies > TALLY_CHILDREN_MAX)
		return why_say(why, -ENOSPC, "this node's jobs have %u workers, of %u", copies,
			       TALLY_CHILDREN_MAX);
	return installation_find_slots(g, others, count, dataplane_slots(d), why);
}

/* All that can fail for want of room. Changes nothing that an older epoch would feel. */
static int arrival_prepare(struct dataplane *d, struct arrival *a,
			   const struct dataplane_gate *gates, unsigned int count, struct why *why)
{
	struct installation *g = a->group;
	int r;

	r = ports_check(d, g, why);
	if (r == 0)
		r = gates_read(d, &a->all, why);
	if (r == 0)
		r = arrival_place(d, a, why);
	if (r < 0)
		return r;
	a->before = gates_of(a->all, g->id);
	if (!a->before)
		return -ENOMEM;
	r = gates_plan(d, a->all, g->id, g->job.group, gates, count, &a->gates, why);
	if (r < 0)
		return r;
	a->copies = group_make(d, g);
	if (a->copies < 0)
		return map_error(why, a->copies, "groups");
	r = cursors_make(d, g);
	return r < 0 ? map_error(why, r, "cursors") : 0;
}

int dataplane_job_add(struct dataplane *d, struct installation *g,
		      const struct dataplane_gate *gates, unsigned int count, struct why *why)
{
	_cleanup_(arrival_close) struct arrival a = { .group = g, .copies = -1 };
	struct why ignored;
	int r;

	g->job.id = g->id;
	r = arrival_prepare(d, &a, gates, count, why);
	if (r < 0)
		return r;
	if (a.before->count)
		job_stop(d, a.before, a.group_before);
	r = job_install(d, &a, why);
	if (r < 0) {
		job_stop(d, a.gates, g->job.group);
		rows_retire(d, a.gates, NULL, &ignored);
		rows_retire(d, a.before, NULL, &ignored);
		return r;
	}
	return rows_retire(d, a.before, a.gates, why);
}

int no_job(uint32_t id, struct why *why)
{
	return why_say(why, -ENOENT, "job %u: this node has no such job (tally-node job list)", id);
}

int dataplane_job_gates(struct dataplane *d, uint32_t id, const struct dataplane_gate *gates,
			unsigned int count, struct why *why)
{
	_cleanup_(freep) struct gates *all = NULL, *before = NULL, *now = NULL;
	uint32_t index;
	int r;

	r = gates_read(d, &all, why);
	if (r < 0)
		return r;
	before = gates_of(all, id);
	if (!before)
		return -ENOMEM;
	if (!before->count)
		return no_job(id, why);
	index = before->gate[0].value.job;
	r = gates_plan(d, all, id, index, gates, count, &now, why);
	if (r == 0)
		r = gates_put(d, now, why);
	if (r < 0)
		return r;
	gates_remove(d, before, now);
	r = children_recount(d, now);
	if (r < 0)
		return map_error(why, r, "children");
	programs_wait(d, index);
	return rows_retire(d, before, now, why);
}

int dataplane_job_del(struct dataplane *d, uint32_t id, struct why *why)
{
	_cleanup_(freep) struct gates *all = NULL, *gates = NULL;
	int r;

	r = gates_read(d, &all, why);
	if (r < 0)
		return r;
	gates = gates_of(all, id);
	if (!gates)
		return -ENOMEM;
	if (!gates->count)
		return no_job(id, why);
	job_stop(d, gates, gates->gate[0].value.job);
	return rows_retire(d, gates, NULL, why);
}
