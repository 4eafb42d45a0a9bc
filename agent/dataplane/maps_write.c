// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Jobs into the maps of a running node, and out, as agent/core/tables.h has placed them. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "common/address.h"
#include "maps.h"

/* --- children: each copy by its port, for XDP, and by its job, for TC ------------------ */

static int child_put(struct dataplane *d, uint32_t id, unsigned int i,
		     const struct tables_copy *copy, const struct tally_child *child,
		     uint64_t flags)
{
	const struct tally_child_key of_job = { .job = id, .index = i };
	const struct tally_child_key of_port = { .job = id,
						 .ifindex = copy->port,
						 .index = copy->index };
	int r = bpf_map_update_elem(d->fd[PIN_CHILDREN], &of_port, child, flags);

	return r < 0 ? r : bpf_map_update_elem(d->fd[PIN_CHILDREN], &of_job, child, flags);
}

static struct tally_child child_of(const struct tables_job *j, const struct installation *g,
				   unsigned int i)
{
	struct tally_child child = g->copy[i].child;

	child.row = j->copy[i].row;
	child.port = j->copy[i].port;
	child.keyed = j->job.keyed;
	child.key = tally_rank_index(j->job.group, g->copy[i].key);
	return child;
}

static int children_add(struct dataplane *d, const struct tables_job *j,
			const struct installation *g)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < j->copies; i++) {
		const struct tally_child child = child_of(j, g, i);

		r = child_put(d, j->id, i, &j->copy[i], &child, BPF_ANY);
	}
	return r;
}

/* Also what a process that died has left behind of them. */
static void children_remove(struct dataplane *d, uint32_t id)
{
	struct tally_child_key key, next;
	int fd = d->fd[PIN_CHILDREN];
	bool more = !bpf_map_get_next_key(fd, NULL, &next);

	while (more) {
		key = next;
		more = !bpf_map_get_next_key(fd, &key, &next);
		if (key.job == id)
			bpf_map_delete_elem(fd, &key);
	}
}

/* Copies are counted where the job's gates are now. */
static int children_recount(struct dataplane *d, const struct tables_job *j)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < j->copies; i++) {
		const struct tally_child_key of_job = { .job = j->id, .index = i };
		struct tally_child child;

		r = bpf_map_lookup_elem(d->fd[PIN_CHILDREN], &of_job, &child);
		child.row = j->copy[i].row;
		if (r == 0)
			r = child_put(d, j->id, i, &j->copy[i], &child, BPF_EXIST);
	}
	return r;
}

int maps_hop_put(struct dataplane *d, uint32_t id, unsigned int i, const struct tables_copy *copy,
		 const struct hop *hop, bool *ret_changed)
{
	const struct tally_child_key of_job = { .job = id, .index = i };
	struct tally_child child;
	int r = bpf_map_lookup_elem(d->fd[PIN_CHILDREN], &of_job, &child);

	if (r < 0)
		return r;
	*ret_changed = memcmp(child.mac, hop->mac, sizeof(child.mac)) != 0 ||
		       memcmp(child.port_mac, hop->port_mac, sizeof(child.port_mac)) != 0;
	r = maps_rank_bind(d, child.key, hop);
	if (r < 0 || !*ret_changed)
		return r;
	memcpy(child.mac, hop->mac, sizeof(child.mac));
	memcpy(child.port_mac, hop->port_mac, sizeof(child.port_mac));
	return child_put(d, id, i, copy, &child, BPF_EXIST);
}

/* --- groups ---------------------------------------------------------------------------------- */

/*
 * Copies have the keys 0, 1, ... (walking the map would go in circles: an update moves keys). The
 * kernel takes out those whose interface has gone.
 */
static int group_use(struct dataplane *d, const struct tables_job *j, int fanout)
{
	const int fd = d->group[j->job.group];
	int r = fd < 0 ? -ENOENT : 0;

	for (uint32_t key = 0; r == 0 && key < j->copies; key++) {
		struct bpf_devmap_val value;

		r = bpf_map_lookup_elem(fd, &key, &value);
		value.bpf_prog.fd = fanout;
		if (r == 0)
			r = bpf_map_update_elem(fd, &key, &value, BPF_EXIST);
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

int maps_groups_use(struct dataplane *d, int fanout, struct why *why)
{
	_cleanup_(tables_close) struct tables t = { 0 };
	int r;

	r = maps_read_jobs(d, &t, why);
	for (unsigned int i = 0; r == 0 && i < t.jobs; i++) {
		if (!t.job[i].broken)
			r = group_use(d, &t.job[i], fanout);
		if (r < 0)
			return map_error(why, r, "groups");
	}
	return r;
}

/* The map of the job's copies, or -errno. */
static int group_make(struct dataplane *d, const struct tables_job *j)
{
	_cleanup_(closep) int fd = bpf_map_create(BPF_MAP_TYPE_DEVMAP_HASH, "group",
						  sizeof(uint32_t), sizeof(struct bpf_devmap_val),
						  TALLY_WORKERS_MAX, NULL);
	int r;

	if (fd < 0)
		return fd;
	for (uint32_t i = 0; i < j->copies; i++) {
		struct bpf_devmap_val value = { .ifindex = j->copy[i].port,
						.bpf_prog.fd = d->fd[PIN_FANOUT] };

		r = bpf_map_update_elem(fd, &i, &value, BPF_ANY);
		if (r < 0)
			return r;
	}
	return TAKE_FD(fd);
}

static int group_put(struct dataplane *d, uint32_t group, int *copies)
{
	const char *path = pin_path_of_group(d->path, group);
	int r;

	unlink(path);
	r = bpf_obj_pin(*copies, path);
	if (r == 0)
		r = bpf_map_update_elem(d->fd[PIN_GROUPS], &group, copies, BPF_ANY);
	if (r < 0) {
		unlink(path);
		return r;
	}
	closep(&d->group[group]);
	d->group[group] = TAKE_FD(*copies);
	return 0;
}

/*
 * Without copies, it holds no port and no program. It stays in the map of groups until another one
 * takes its place, since each write there takes a grace period.
 */
static void group_remove(struct dataplane *d, const struct tables_job *j)
{
	const uint32_t group = j->job.group;

	for (uint32_t i = 0; d->group[group] >= 0 && i < j->copies; i++)
		bpf_map_delete_elem(d->group[group], &i);
	unlink(pin_path_of_group(d->path, group));
	closep(&d->group[group]);
	d->group[group] = -1;
	d->owing = group;
}

/* --- jobs ------------------------------------------------------------------------------------ */

int dataplane_settle(struct dataplane *d, struct why *why)
{
	const uint32_t group = d->owing;
	int r;

	if (!rows_any(d->owed) && !d->unswept)
		return 0;
	if (group != PIN_NO_GROUP && d->group[group] >= 0)
		bpf_map_update_elem(d->fd[PIN_GROUPS], &group, &d->group[group], BPF_ANY);
	else if (group != PIN_NO_GROUP)
		bpf_map_delete_elem(d->fd[PIN_GROUPS], &group);
	r = rows_retire(d, d->owed, why);
	if (r == 0 && d->unswept)
		r = maps_sweep(d, why);
	if (r == 0)
		d->unswept = false;
	return r;
}

/*
 * No message finds the job any more. Programs that have found it may still run: a grace period is
 * owed before its slots and rows are another's.
 */
static void job_stop(struct dataplane *d, const struct tables_job *j, const struct tables_job *kept)
{
	maps_gates_remove(d, j, NULL);
	children_remove(d, j->id);
	d->unswept |= j->job.borrows;
	group_remove(d, j);
	maps_ranks_put(d, &j->job, NULL);
	rows_mark(j, kept, d->owed);
}

static int slots_clear(struct dataplane *d, const struct tally_job *job)
{
	_cleanup_(freep) struct tally_slot *fresh = calloc(1, sizeof(*fresh));
	int r;

	if (!fresh)
		return -ENOMEM;
	for (uint32_t i = 0; !job->borrows && i <= job->slot_mask; i++) {
		uint32_t slot = job->slot_base + i;

		r = bpf_map_update_elem(d->fd[PIN_SLOTS], &slot, fresh, BPF_F_LOCK);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Do its slots hold sums of that very run? A sum names its ranks, so it is right whatever is below
 * the root; an inner node waits for all that are below it, whichever way they come.
 */
static bool keeps_slots(const struct tables_job *before, const struct tables_job *j)
{
	return before && !before->broken && before->job.epoch == j->job.epoch &&
	       before->job.slot_base == j->job.slot_base &&
	       before->job.slot_mask == j->job.slot_mask && before->job.borrows == j->job.borrows &&
	       before->job.root == j->job.root &&
	       (j->job.root || tally_set_is_equal(&before->job.below, &j->job.below)) &&
	       tally_set_is_equal(&before->job.everyone, &j->job.everyone);
}

/* An agent that starts writes runs whose trees may have changed. Mostly they have not. */
static bool is_there(struct dataplane *d, const struct tables_job *before,
		     const struct tables_job *j, const struct installation *g)
{
	bool same = before && !j->job.keyed && d->group[j->job.group] >= 0 &&
		    tables_job_is_equal(before, j);

	for (unsigned int i = 0; same && i < j->copies; i++)
		same = maps_child_is(d, j->id, i, child_of(j, g, i));
	return same;
}

/* The grace period is over. What a process that died has left in its rows is not the job's. */
static int job_write(struct dataplane *d, const struct tables_job *before,
		     const struct tables_job *j, const struct installation *g, struct why *why)
{
	int r;

	rows_mark(j, before, d->owed);
	r = rows_retire(d, d->owed, why);
	if (r < 0)
		return r;
	r = keeps_slots(before, j) ? 0 : slots_clear(d, &j->job);
	if (r < 0)
		return map_error(why, r, "slots");
	r = maps_ranks_put(d, &j->job, g);
	if (r < 0)
		return map_error(why, r, "ranks");
	r = children_add(d, j, g);
	if (r < 0)
		return map_error(why, r, "children");
	r = bpf_map_update_elem(d->fd[PIN_JOBS], &j->job.group, &j->job, BPF_ANY);
	if (r < 0)
		return map_error(why, r, "jobs");
	return maps_gates_put(d, j, why);
}

int dataplane_job_put(struct dataplane *d, const struct tables_job *before,
		      const struct tables_job *j, const struct installation *g, struct why *why)
{
	_cleanup_(closep) int copies = -1;
	int r;

	if (j->job.borrows && (j->job.root || j->job.keyed != j->job.node_key))
		return why_say(why, -EINVAL,
			       "job %u: a job that borrows slots has its root elsewhere, and with "
			       "rank keys a node key: a sum of several ranks has nobody else's",
			       j->id);
	if (is_there(d, before, j, g))
		return 0;
	copies = group_make(d, j);
	if (copies < 0)
		return map_error(why, copies, "groups");
	if (before)
		job_stop(d, before, j);
	r = group_put(d, j->job.group, &copies);
	if (r < 0)
		return map_error(why, r, "groups");
	r = job_write(d, before, j, g, why);
	if (r < 0)
		job_stop(d, j, NULL);
	return r;
}

/* Rows that a running job gets: whatever is in them was another's. */
static int rows_take(struct dataplane *d, bool *rows, struct why *why)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < TALLY_ROWS_MAX; i++)
		if (rows[i] && d->owed[i])
			r = dataplane_settle(d, why);
	return r < 0 ? r : rows_retire(d, rows, why);
}

int dataplane_job_regate(struct dataplane *d, const struct tables_job *before,
			 const struct tables_job *now, struct why *why)
{
	bool taken[TALLY_ROWS_MAX] = { false };
	int r;

	r = rows_mark(now, before, taken) ? rows_take(d, taken, why) : 0;
	if (r == 0)
		r = maps_gates_put(d, now, why);
	if (r < 0)
		return r;
	maps_gates_remove(d, before, now);
	r = children_recount(d, now);
	if (r < 0)
		return map_error(why, r, "children");
	if (rows_mark(before, now, d->owed))
		d->owing = now->job.group;
	return 0;
}

/* Programs that found these jobs have ended: each write into the map of groups waits for them. */
static int gates_out(struct dataplane *d, const struct tables *now, const struct tables_move *move,
		     unsigned int count)
{
	uint32_t group = 0;

	for (unsigned int i = 0; i < count; i++) {
		const struct tables_job *j = tables_find(now, move[i].id);

		group = j->job.group;
		maps_gates_remove(d, j, NULL);
	}
	return bpf_map_update_elem(d->fd[PIN_GROUPS], &group, &d->group[group], BPF_ANY);
}

static int job_move(struct dataplane *d, const struct tables_job *j, uint32_t slot_base,
		    struct why *why)
{
	struct tally_job job = j->job;
	int r;

	job.slot_base = slot_base;
	r = slots_clear(d, &job);
	if (r < 0)
		return map_error(why, r, "slots");
	r = bpf_map_update_elem(d->fd[PIN_JOBS], &job.group, &job, BPF_ANY);
	if (r < 0)
		return map_error(why, r, "jobs");
	return maps_gates_put(d, j, why);
}

int dataplane_jobs_move(struct dataplane *d, const struct tables *now,
			const struct tables_move *move, unsigned int count, struct why *why)
{
	int r = gates_out(d, now, move, count);

	if (r < 0)
		return map_error(why, r, "groups");
	for (unsigned int i = 0; r == 0 && i < count; i++)
		r = job_move(d, tables_find(now, move[i].id), move[i].slot_base, why);
	return r;
}

int dataplane_job_remove(struct dataplane *d, const struct tables_job *j, struct why *why)
{
	job_stop(d, j, NULL);
	return 0;
}
