// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A node from its beginning to its end: programs and pins, then ports. */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "dataplane.h"
#include "maps.h"
#include "ports.h"

/* Ports first, then all pins of ours, then the directory. Leaves alone what is not ours. */
static int node_remove(const char *pin, struct why *why)
{
	struct port_link *links = NULL;
	unsigned int count = 0;
	int r;

	r = links_open(pin, &links, &count);
	if (r < 0)
		return no_node(why, r, pin);
	for (unsigned int i = 0; r == 0 && i < count; i++)
		if (links[i].elsewhere)
			r = links[i].kind->elsewhere_say(pin, &links[i], why);
	for (unsigned int i = 0; r == 0 && i < count; i++)
		links[i].kind->remove(pin, &links[i]);
	links_close(links, count);
	if (r < 0)
		return r;
	pins_remove(pin);
	return directory_remove(pin, why);
}

/* There is none; or one that cannot work, whose agent this process is: that goes. */
static int node_check(const char *pin, struct why *why)
{
	struct why ignored = { "" };

	if (!pins_are_here(pin))
		return 0;
	if (claim_is_ours(pin) &&
	    (!pins_are_whole(pin) || dataplane_layout_check(pin, &ignored) == -ESTALE))
		return node_remove(pin, why);
	return why_say(why, -EEXIST,
		       "a node is here already (%s): attach --replace puts new programs in, detach "
		       "ends it",
		       pin);
}

int dataplane_attach(const char *pin, uint32_t slots, const struct tally_pool *pool,
		     struct dataplane_port *ports, unsigned int count, struct why *why)
{
	_cleanup_(programs_close) struct programs p = { 0 };
	_cleanup_(closep) int directory = -1;
	struct why ignored = { "" };
	bool shared = false;
	int r;

	r = directory_make(pin, why);
	if (r < 0)
		return r;
	directory = directory_lock(pin, why);
	if (directory < 0)
		return directory;
	r = node_check(pin, why);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < count; i++)
		shared |= ports[i].ifindex && share_is_wanted(&ports[i]);
	r = programs_load(NULL, slots, pool ? *pool : (struct tally_pool){ 0 }, shared, &p, why);
	if (r == 0)
		r = pins_make(&p, pin, (1u << PIN_COUNT) - 1, "", why);
	for (unsigned int i = 0; r == 0 && i < count; i++)
		if (ports[i].ifindex)
			r = port_attach(pin, &p, &ports[i], why);
	if (r < 0)
		node_remove(pin, &ignored);
	return r;
}

int dataplane_detach(const char *pin, struct why *why)
{
	_cleanup_(closep) int directory = directory_lock(pin, why);

	if (directory < 0)
		return directory;
	if (!directory_is_bpffs(pin))
		return why_say(why, -EINVAL, "%s: is not in a BPF file system", pin);
	return node_remove(pin, why);
}

void dataplane_close(struct dataplane *d)
{
	struct why ignored;

	if (!d)
		return;
	dataplane_settle(d, &ignored);
	maps_gates_close(d);
	for (int i = 0; i < PIN_COUNT; i++)
		closep(&d->fd[i]);
	for (uint32_t group = 0; group < TALLY_JOBS_MAX; group++)
		closep(&d->group[group]);
	links_close(d->links, d->links_count);
	closep(&d->directory);
	free(d);
}

static void groups_open(struct dataplane *d)
{
	DIR *directory = opendir(d->path);
	static const char prefix[] = "group-";
	const struct dirent *e;

	while (directory && (e = readdir(directory))) {
		unsigned long group = TALLY_JOBS_MAX;

		if (!strncmp(e->d_name, prefix, strlen(prefix)))
			group = strtoul(e->d_name + strlen(prefix), NULL, 10);
		if (group < TALLY_JOBS_MAX)
			d->group[group] = bpf_obj_get(pin_path_of_group(d->path, group));
	}
	if (directory)
		closedir(directory);
}

int dataplane_open(const char *pin, struct dataplane **ret, struct why *why)
{
	_cleanup_(dataplane_closep) struct dataplane *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->directory = -1;
	memset(d->fd, -1, sizeof(d->fd));
	memset(d->group, -1, sizeof(d->group));
	d->owing = PIN_NO_GROUP;
	d->unswept = true; /* whoever had the node before may have been killed */
	libbpf_listen();
	snprintf(d->path, sizeof(d->path), "%s", pin);
	d->directory = directory_lock(pin, why);
	if (d->directory < 0)
		return d->directory;
	if (!pins_are_here(pin))
		return no_node(why, -ENOENT, pin);
	r = dataplane_layout_check(pin, why);
	if (r < 0)
		return r;
	r = pins_settle(pin);
	if (r < 0)
		return no_node(why, r, pin);
	for (int i = 0; i < PIN_COUNT; i++) {
		d->fd[i] = bpf_obj_get(pin_path(pin, pin_name[i], ""));
		if (d->fd[i] < 0)
			return why_say(why, d->fd[i],
				       d->fd[i] == -ENOENT
					       ? "%s: the pinned node is incomplete, %s: %s. Run "
						 "tally-node detach, and attach anew"
					       : "%s: cannot open %s: %s",
				       pin, pin_name[i], strerror(-d->fd[i]));
	}
	r = maps_gates_open(d, why);
	if (r < 0)
		return r;
	groups_open(d);
	r = links_open(pin, &d->links, &d->links_count);
	if (r < 0)
		return no_node(why, r, pin);
	*ret = TAKE_PTR(d);
	return 0;
}
