// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Jobs in and out of the maps of a running node; its counters. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "dataplane_private.h"

static int map_error(struct why *why, int error, const char *map)
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

/* The inner map of a group, or -errno. */
static int group_open(struct dataplane *d, uint32_t group)
{
	uint32_t id;
	int r;

	r = bpf_map_lookup_elem(d->fd[PIN_GROUPS], &group, &id);
	return r < 0 ? r : bpf_map_get_fd_by_id(id);
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

int dataplane_jobs(struct dataplane *d, struct dataplane_job **ret, unsigned int *ret_count,
		   struct why *why)
{
	_cleanup_(freep) struct dataplane_job *jobs = calloc(TALLY_JOBS_MAX, sizeof(*jobs));
	uint32_t id, *at = NULL;
	unsigned int n = 0;
	int r;

	if (!jobs)
		return -ENOMEM;
	for (; n < TALLY_JOBS_MAX && !bpf_map_get_next_key(d->fd[PIN_JOBS], at, &id); at = &id) {
		r = bpf_map_lookup_elem(d->fd[PIN_JOBS], &id, &jobs[n].job);
		if (r < 0)
			return map_error(why, r, "jobs");
		jobs[n].id = id;
		jobs[n].copies = copies_count(d, jobs[n].job.group);
		n++;
	}
	qsort(jobs, n, sizeof(*jobs), by_number);
	*ret = TAKE_PTR(jobs);
	*ret_count = n;
	return 0;
}

int dataplane_counters(struct dataplane *d, struct tally_counter *ret, struct why *why)
{
	struct tally_counter sum[TALLY_OUTCOME_COUNT] = { 0 };
	unsigned int cpus = dataplane_cpus();
	_cleanup_(freep) struct tally_counter *each = calloc(cpus, sizeof(*each));
	int r;

	if (!each)
		return -ENOMEM;
	for (uint32_t key = 0; key < TALLY_OUTCOME_COUNT; key++) {
		r = bpf_map_lookup_elem(d->fd[PIN_COUNTERS], &key, each);
		if (r < 0)
			return map_error(why, r, "counters");
		for (unsigned int cpu = 0; cpu < cpus; cpu++) {
			sum[key].packet += each[cpu].packet;
			sum[key].byte += each[cpu].byte;
		}
	}
	memcpy(ret, sum, sizeof(sum));
	return 0;
}

/* --- jobs in and out ------------------------------------------------------------------------- */

static void children_remove(struct dataplane *d, uint32_t job)
{
	struct tally_child_key key, next;
	int fd = d->fd[PIN_CHILDREN];
	bool more = !bpf_map_get_next_key(fd, NULL, &next);

	while (more) {
		key = next;
		more = !bpf_map_get_next_key(fd, &key, &next);
		if (key.job == job)
			bpf_map_delete_elem(fd, &key);
	}
}

/*
 * Whatever there is of a job, and not more. The kernel returns from taking a map out of a map
 * of maps only when no program still runs that may have seen it: after that the job's slots
 * are nobody's.
 */
static void job_remove(struct dataplane *d, uint32_t id, uint32_t group)
{
	bpf_map_delete_elem(d->fd[PIN_JOBS], &id);
	bpf_map_delete_elem(d->fd[PIN_GROUPS], &group);
	children_remove(d, id);
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
static int cursors_make(struct dataplane *d, const struct group *g)
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

static int children_add(struct dataplane *d, const struct group *g)
{
	int r;

	for (unsigned int i = 0; i < g->copies; i++) {
		r = bpf_map_update_elem(d->fd[PIN_CHILDREN], &g->copy[i].key, &g->copy[i].child,
					BPF_ANY);
		if (r < 0)
			return r;
	}
	return 0;
}

static int group_make(struct dataplane *d, const struct group *g)
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
	return bpf_map_update_elem(d->fd[PIN_GROUPS], &g->job.group, &fd, BPF_ANY);
}

static int job_install(struct dataplane *d, const struct group *g, struct why *why)
{
	int r;

	r = slots_clear(d, &g->job);
	if (r < 0)
		return map_error(why, r, "slots");
	r = cursors_make(d, g);
	if (r < 0)
		return map_error(why, r, "cursors");
	r = children_add(d, g);
	if (r < 0)
		return map_error(why, r, "children");
	r = group_make(d, g);
	if (r < 0)
		return map_error(why, r, "groups");
	r = bpf_map_update_elem(d->fd[PIN_JOBS], &g->id, &g->job, BPF_ANY);
	if (r < 0)
		return map_error(why, r, "jobs");
	return 0;
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

static int ports_check(struct dataplane *d, const struct group *g, struct why *why)
{
	for (unsigned int i = 0; i < g->copies; i++) {
		const struct hop *h = &g->copy[i].hop;
		char text[JOBFILE_ADDRESS_BYTES];

		if (dataplane_is_attached(d, h->port))
			continue;
		jobfile_address_print(&g->copy[i].address, text, sizeof(text));
		return why_say(
			why, -EINVAL,
			"%s: is behind %s, where this node is not attached: tally-node attach "
			"--replace with all its interfaces",
			text, h->port_name);
	}
	return 0;
}

int dataplane_job_add(struct dataplane *d, struct group *g, struct why *why)
{
	_cleanup_(freep) struct dataplane_job *jobs = NULL;
	struct tally_job others[TALLY_JOBS_MAX];
	struct dataplane_job before;
	unsigned int count = 0;
	bool replaces;
	int r;

	r = ports_check(d, g, why);
	if (r == 0)
		r = dataplane_jobs(d, &jobs, &count, why);
	if (r < 0)
		return r;
	replaces = job_take(jobs, &count, g->id, &before);
	if (replaces && before.job.epoch == g->job.epoch)
		return why_say(why, -EEXIST,
			       "job %u is there already with epoch %u: give a new run another "
			       "epoch, or tally-node job del %u",
			       g->id, g->job.epoch, g->id);
	for (unsigned int i = 0; i < count; i++)
		others[i] = jobs[i].job;
	r = group_place(g, others, count, dataplane_slots(d), why);
	if (r < 0)
		return r;

	if (replaces)
		job_remove(d, g->id, before.job.group);
	r = job_install(d, g, why);
	if (r < 0)
		job_remove(d, g->id, g->job.group);
	return r;
}

int dataplane_job_del(struct dataplane *d, uint32_t id, struct why *why)
{
	struct tally_job job;

	if (bpf_map_lookup_elem(d->fd[PIN_JOBS], &id, &job) < 0)
		return why_say(why, -ENOENT,
			       "job %u: this node has no such job (tally-node job list)", id);
	job_remove(d, id, job.group);
	return 0;
}
