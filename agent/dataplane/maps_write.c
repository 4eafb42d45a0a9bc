// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* To whom copies of results go: each child by its port, for XDP, and by its job, for TC. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "private.h"

enum {
	CHILDREN_OF_JOB_MAX = 2 * TALLY_WORKERS_MAX, /* each by its port, and by its job */
};

int children_add(struct dataplane *d, struct installation *g, const struct gates *gates)
{
	int r;

	for (unsigned int i = 0; i < g->copies; i++) {
		struct installation_copy *c = &g->copy[i];

		const struct tally_child_key of_job = { .job = c->key.job, .index = i };

		c->child.row = gates_row(gates, c->key.ifindex);
		c->child.port = c->key.ifindex;
		r = bpf_map_update_elem(d->fd[PIN_CHILDREN], &c->key, &c->child, BPF_ANY);
		if (r == 0)
			r = bpf_map_update_elem(d->fd[PIN_CHILDREN], &of_job, &c->child, BPF_ANY);
		if (r < 0)
			return r;
	}
	return 0;
}

void children_remove(struct dataplane *d, uint32_t job)
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

int children_recount(struct dataplane *d, const struct gates *gates)
{
	const uint32_t job = gates->gate[0].key.job;
	int fd = d->fd[PIN_CHILDREN], r = 0;
	struct tally_child_key key, *at = NULL;
	struct tally_child child;

	/* an update of the key that a walk stands at would send it back to the beginning */
	_cleanup_(freep) struct tally_child_key *keys = calloc(CHILDREN_OF_JOB_MAX, sizeof(*keys));
	unsigned int count = 0;

	if (!keys)
		return -ENOMEM;
	for (; count < CHILDREN_OF_JOB_MAX && !bpf_map_get_next_key(fd, at, &key); at = &key)
		if (key.job == job)
			keys[count++] = key;
	for (unsigned int i = 0; r == 0 && i < count; i++) {
		r = bpf_map_lookup_elem(fd, &keys[i], &child);
		child.row = gates_row(gates, child.port);
		if (r == 0)
			r = bpf_map_update_elem(fd, &keys[i], &child, BPF_EXIST);
	}
	return r;
}

/* One copy, under both of its keys. */
static int child_follow(struct dataplane *d, const struct tally_child_key *of_job,
			const struct tally_child_key *of_port, struct tally_child *child,
			const struct hop *hop)
{
	int r;

	memcpy(child->mac, hop->mac, sizeof(child->mac));
	memcpy(child->port_mac, hop->port_mac, sizeof(child->port_mac));
	r = bpf_map_update_elem(d->fd[PIN_CHILDREN], of_port, child, BPF_EXIST);
	return r < 0 ? r : bpf_map_update_elem(d->fd[PIN_CHILDREN], of_job, child, BPF_EXIST);
}

static bool is_addressed_to(const struct tally_child *c, const struct hop *h)
{
	return !memcmp(c->mac, h->mac, sizeof(c->mac)) &&
	       !memcmp(c->port_mac, h->port_mac, sizeof(c->port_mac));
}

int dataplane_job_follow(struct dataplane *d, uint32_t id, const struct hop *hops,
			 unsigned int count, unsigned int *ret_changed, unsigned int *ret_elsewhere,
			 struct why *why)
{
	uint32_t ports[TALLY_WORKERS_MAX];
	unsigned int changed = 0, elsewhere = 0;

	for (unsigned int i = 0; i < count && i < TALLY_WORKERS_MAX; i++) {
		const struct tally_child_key of_job = { .job = id, .index = i };
		struct tally_child_key of_port = { .job = id };
		struct tally_child child;
		int r;

		r = bpf_map_lookup_elem(d->fd[PIN_CHILDREN], &of_job, &child);
		if (r == -ENOENT)
			return no_job(id, why);
		if (r < 0)
			return map_error(why, r, "children");
		of_port.ifindex = ports[i] = child.port;
		for (unsigned int k = 0; k < i; k++)
			of_port.index += ports[k] == child.port;
		if (hops[i].port && hops[i].port != child.port) {
			elsewhere++;
		} else if (hops[i].port && !is_addressed_to(&child, &hops[i])) {
			r = child_follow(d, &of_job, &of_port, &child, &hops[i]);
			if (r < 0)
				return map_error(why, r, "children");
			changed++;
		}
	}
	*ret_changed = changed;
	*ret_elsewhere = elsewhere;
	return 0;
}
