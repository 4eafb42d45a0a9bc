// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is pinned of a node: names, and which version's it is. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "dataplane.h"
#include "pins.h"

const char *const pin_name[PIN_COUNT] = {
	[PIN_GATES] = "gates",	     [PIN_JOBS] = "jobs",	[PIN_TENANTS] = "tenants",
	[PIN_SOURCES] = "sources",   [PIN_SLOTS] = "slots",	[PIN_GROUPS] = "groups",
	[PIN_CHILDREN] = "children", [PIN_CURSORS] = "cursors", [PIN_COUNTERS] = "counters",
	[PIN_SETTINGS] = "settings", [PIN_TRACE] = "trace",	[PIN_TRACERS] = "tracers",
	[PIN_PORTS] = "ports",	     [PIN_NEXT] = "next",	[PIN_CONSTANTS] = "constants",
	[PIN_INGRESS] = "ingress",   [PIN_FANOUT] = "fanout",
};

const char *pin_path(const char *pin, const char *name, const char *suffix)
{
	static char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s%s", pin, name, suffix);
	return path;
}

/*
 * A group's map has a pin of its own, beside its place in `groups`: that gives only its number,
 * and the kernel opens a map by its number for CAP_SYS_ADMIN alone.
 */
const char *pin_path_of_group(const char *pin, uint32_t group)
{
	char name[32];

	snprintf(name, sizeof(name), "group-%u", group);
	return pin_path(pin, name, "");
}

bool pins_are_here(const char *pin)
{
	for (int i = 0; i < PIN_COUNT; i++)
		if (access(pin_path(pin, pin_name[i], ""), F_OK) == 0)
			return true;
	return false;
}

void pins_remove(const char *pin)
{
	for (int i = 0; i < PIN_COUNT; i++) {
		unlink(pin_path(pin, pin_name[i], ""));
		unlink(pin_path(pin, pin_name[i], "-new"));
	}
	for (uint32_t group = 0; group < TALLY_JOBS_MAX; group++)
		unlink(pin_path_of_group(pin, group));
}

uint32_t dataplane_slots(const struct dataplane *d)
{
	struct bpf_map_info info = { 0 };
	uint32_t length = sizeof(info);

	if (bpf_obj_get_info_by_fd(d->fd[PIN_SLOTS], &info, &length) < 0)
		return 0;
	return info.max_entries;
}

/* --- constants --- */

int constants_read(int fd, struct tally_constants *ret)
{
	_cleanup_(freep) struct tally_constants *c = NULL;
	struct bpf_map_info info = { 0 };
	uint32_t length = sizeof(info), key = 0;
	int r;

	r = bpf_obj_get_info_by_fd(fd, &info, &length);
	if (r < 0)
		return r;
	c = calloc(1, info.value_size + sizeof(*c));
	if (!c)
		return -ENOMEM;
	r = bpf_map_lookup_elem(fd, &key, c);
	if (r == 0 && (info.value_size < sizeof(*c) || c->magic != TALLY_NODE_MAGIC))
		r = -ESTALE;
	if (r == 0)
		*ret = *c;
	return r;
}

int layout_check(const char *pin, struct why *why)
{
	_cleanup_(closep) int fd = bpf_obj_get(pin_path(pin, pin_name[PIN_CONSTANTS], ""));
	struct tally_constants c = { .layout = 1 }; /* which did not say so */
	int r;

	if (fd < 0)
		return 0; /* not a whole node: the caller says so */
	r = constants_read(fd, &c);
	if (r < 0 && r != -ESTALE)
		return why_say(why, r, "%s: cannot read its constants: %s", pin, strerror(-r));
	if (c.layout == TALLY_MAPS_LAYOUT)
		return 0;
	return why_say(
		why, -ESTALE,
		"%s: another version of Tally made the running node (its maps have layout %u and ours %u): "
		"start that version again, or end all runs here, remove the node (tally-node "
		"detach --pin DIR) and start; tallyd keeps its jobs",
		pin, c.layout, TALLY_MAPS_LAYOUT);
}
