// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is pinned of a node: names, and which version's it is. */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "dataplane.h"
#include "pins.h"

enum {
	PROGRAMS_FILES = 160, /* each of four programs has all maps */
};

const char *const pin_name[PIN_COUNT] = {
	[PIN_GATES] = "gates",	     [PIN_JOBS] = "jobs",	    [PIN_TENANTS] = "tenants",
	[PIN_SOURCES] = "sources",   [PIN_SLOTS] = "slots",	    [PIN_POOL] = "pool",
	[PIN_RANKS] = "ranks",	     [PIN_GROUPS] = "groups",	    [PIN_CHILDREN] = "children",
	[PIN_AT_PORTS] = "at_ports", [PIN_COUNTERS] = "counters",   [PIN_SETTINGS] = "settings",
	[PIN_TRACE] = "trace",	     [PIN_TRACERS] = "tracers",	    [PIN_PORTS] = "ports",
	[PIN_NEXT] = "next",	     [PIN_CONSTANTS] = "constants", [PIN_INGRESS] = "ingress",
	[PIN_FANOUT] = "fanout",
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

static bool is_pinned(const char *pin, enum pin which, const char *suffix)
{
	return access(pin_path(pin, pin_name[which], suffix), F_OK) == 0 || errno != ENOENT;
}

bool pins_are_here(const char *pin)
{
	bool here = false;

	for (int i = 0; i < PIN_COUNT; i++)
		here |= is_pinned(pin, i, "");
	return here;
}

bool pins_are_whole(const char *pin)
{
	bool whole = true;

	for (int i = 0; i < PIN_COUNT; i++)
		whole &= is_pinned(pin, i, "");
	return whole;
}

void pins_remove(const char *pin)
{
	pins_unstage(pin);
	for (int i = 0; i < PIN_COUNT; i++)
		unlink(pin_path(pin, pin_name[i], ""));
	for (uint32_t group = 0; group < TALLY_JOBS_MAX; group++)
		unlink(pin_path_of_group(pin, group));
}

int pins_afford(unsigned int files, struct why *why)
{
	DIR *directory = opendir("/proc/self/fd");
	const int error = directory ? 0 : errno;
	struct rlimit limit = { 0 };
	struct dirent *e;
	rlim_t used = 0; /* and some more: the directory itself is among them */

	getrlimit(RLIMIT_NOFILE, &limit);
	while (directory && (e = readdir(directory)))
		used += strtoul(e->d_name, NULL, 10) < limit.rlim_cur;
	if (directory)
		closedir(directory);
	if (error != EMFILE && (error || used + files <= limit.rlim_cur))
		return 0;
	return why_say(why, -EMFILE,
		       "%s: this needs %u for a moment, besides those that are open; %llu may be "
		       "(ulimit -n, or LimitNOFILE= of the unit)",
		       strerror(EMFILE), files, (unsigned long long)limit.rlim_cur);
}

unsigned int pins_files(const char *pin)
{
	DIR *directory = opendir(pin);
	unsigned int pins = 0;

	while (directory && readdir(directory))
		pins++;
	if (directory)
		closedir(directory);
	return PROGRAMS_FILES + 2 * pins; /* an open node, and its ports once more */
}

/* --- two generations ------------------------------------------------------------------------- */

bool pins_are_staged(const char *pin) { return is_pinned(pin, PIN_FANOUT, PIN_STAGED); }

/* Any staged pin but that of slots and fan-out; its length without the suffix. 0: none; or -errno.
 */
static int staged_find(const char *pin, char *ret)
{
	DIR *directory = opendir(pin);
	int length = directory ? 0 : -errno;
	struct dirent *e;

	while (directory && !length && (e = readdir(directory))) {
		size_t n = strlen(e->d_name), suffix = strlen(PIN_STAGED);

		if (n <= suffix || n >= PIN_BYTES ||
		    strcmp(e->d_name + n - suffix, PIN_STAGED) != 0 ||
		    !strcmp(e->d_name, "slots" PIN_STAGED) ||
		    !strcmp(e->d_name, "fanout" PIN_STAGED))
			continue;
		memcpy(ret, e->d_name, n + 1);
		length = (int)(n - suffix);
	}
	if (directory)
		closedir(directory);
	return length;
}

static int staged_rename(const char *pin, const char *name)
{
	char from[PATH_MAX + 64];

	snprintf(from, sizeof(from), "%s", pin_path(pin, name, PIN_STAGED));
	return rename(from, pin_path(pin, name, "")) < 0 ? -errno : 0;
}

int pins_settle(const char *pin)
{
	char name[PIN_BYTES];
	int length, r = 0;

	if (!pins_are_staged(pin) || is_pinned(pin, PIN_SLOTS, PIN_STAGED))
		return 0;
	while (r == 0 && (length = staged_find(pin, name))) {
		if (length < 0)
			return length; /* the next one who opens the node goes on */
		name[length] = '\0';
		r = staged_rename(pin, name);
	}
	return r < 0 ? r : staged_rename(pin, pin_name[PIN_FANOUT]);
}

int pins_commit(const char *pin)
{
	int r = staged_rename(pin, pin_name[PIN_SLOTS]);

	return r < 0 ? r : pins_settle(pin);
}

void pins_unstage(const char *pin)
{
	char name[PIN_BYTES];

	unlink(pin_path(pin, pin_name[PIN_FANOUT], PIN_STAGED));
	while (staged_find(pin, name) > 0 && unlink(pin_path(pin, name, "")) == 0)
		;
	unlink(pin_path(pin, pin_name[PIN_SLOTS], PIN_STAGED));
}

uint32_t dataplane_slots(const struct dataplane *d)
{
	struct bpf_map_info info = { 0 };
	uint32_t length = sizeof(info);

	if (bpf_obj_get_info_by_fd(d->fd[PIN_SLOTS], &info, &length) < 0)
		return 0;
	return info.max_entries;
}

struct tally_pool dataplane_pool(const struct dataplane *d)
{
	struct tally_constants c = { .magic = 0 };

	constants_read(d->fd[PIN_CONSTANTS], &c);
	return c.pool;
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
	if (r == 0 && (info.value_size < offsetof(struct tally_constants, pool) ||
		       c->magic != TALLY_NODE_MAGIC))
		r = -ESTALE;
	if (r == 0)
		*ret = *c;
	return r;
}

int dataplane_layout_check(const char *pin, struct why *why)
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
		"%s: the node that runs has maps of layout %u, and this version of Tally has "
		"layout %u. When tallyd starts, it makes the node anew: runs go on, counters begin "
		"at 0. Without tallyd: end all runs, tally-node --pin %s detach, and attach",
		pin, c.layout, TALLY_MAPS_LAYOUT, pin);
}
