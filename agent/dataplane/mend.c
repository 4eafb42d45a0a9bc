// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What others have taken away from a running node is put back: its directory, pins, and programs
 * on ports. All that was pinned is still held by the open node, so no sum under way is lost.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "dataplane.h"
#include "ports.h"

enum {
	LOOK_FILES = 16, /* more than a look has open at a time */
};

/* --- pins ------------------------------------------------------------------------------------ */

/* 1: it is missing, and is there now if it was to be put back. */
static int pin_mend(int fd, const char *path, bool put, struct why *why)
{
	int r;

	if (fd < 0 || access(path, F_OK) == 0)
		return 0;
	r = put ? bpf_obj_pin(fd, path) : 0;
	return r < 0 ? why_say(why, r, "cannot pin %s: %s", path, strerror(-r)) : 1;
}

/* How many are missing; all that can be put back are, if `put`. */
static int pins_mend(struct dataplane *d, bool put, struct why *why)
{
	unsigned int missing = 0;
	int r = 0;

	for (int i = 0; r >= 0 && i < PIN_COUNT; i++, missing += r > 0)
		r = pin_mend(d->fd[i], pin_path(d->path, pin_name[i], ""), put, why);
	for (uint32_t i = 0; r >= 0 && i < TALLY_JOBS_MAX; i++, missing += r > 0)
		r = pin_mend(d->group[i], pin_path_of_group(d->path, i), put, why);
	for (unsigned int i = 0; r >= 0 && i < d->links_count; i++, missing += r > 0)
		if (d->links[i].ifindex || d->links[i].kind->numbers > 1) /* says the pin */
			r = pin_mend(d->links[i].fd, pin_path(d->path, d->links[i].name, ""), put,
				     why);
	return r < 0 ? r : (int)missing;
}

int dataplane_check(struct dataplane *d, struct why *why)
{
	int missing, r = pins_afford(LOOK_FILES, why);

	if (r == 0)
		r = ports_refresh(d, why);
	if (r < 0)
		return r;
	missing = pins_mend(d, false, why) + !claim_is_ours(d->path);
	if (!missing)
		return 0;
	return why_say(why, -ENOENT, "%d pins of the node are missing in %s", missing, d->path);
}

/* Another node's pins in the place of ours stay. */
static int directory_mend(struct dataplane *d, struct why *why)
{
	int r;

	if (claim_is_ours(d->path))
		return 0;
	if (!directory_is(d->directory, d->path) && pins_are_here(d->path))
		return why_say(why, -EEXIST, "%s: another node is pinned there now", d->path);
	r = dataplane_claim(d->path, why);
	if (r == 0)
		r = directory_lock(d->path, why);
	if (r < 0)
		return r;
	closep(&d->directory);
	d->directory = r;
	return 0;
}

/* --- ports ----------------------------------------------------------------------------------- */

static bool is_wanted(const struct port_link *link, const struct dataplane_port *ports,
		      unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (link->ifindex && ports[i].ifindex == link->ifindex)
			return true;
	return false;
}

/* What holds us to interfaces that have gone or are not wanted, or does not hold us any more. */
static void links_tidy(struct dataplane *d, const struct dataplane_port *ports, unsigned int count)
{
	for (unsigned int i = 0; i < d->links_count; i++) {
		const struct port_link *link = &d->links[i];

		if (!link->elsewhere && (!is_wanted(link, ports, count) ||
					 dataplane_is_attached(d, link->ifindex) == 0))
			link->kind->remove(d->path, link);
	}
}

static void port_mend(struct dataplane *d, struct programs *programs, struct dataplane_port *p)
{
	struct why why = { "" };
	int r = p->ifindex ? dataplane_is_attached(d, p->ifindex) : 1;

	if (r > 0)
		return;
	if (r == 0 && share_is_wanted(p) && !programs->constants.shared)
		r = why_say(&why, -EBUSY,
			    "another XDP program is there, and no port was shared so far: reload "
			    "tallyd (systemctl reload tallyd)");
	else if (r == 0)
		r = port_attach(d->path, programs, p, &why);
	if (r < 0)
		why_say(&p->refused, r, "%s", *why.text ? why.text : strerror(-r));
}

static int ports_mend(struct dataplane *d, struct dataplane_port *ports, unsigned int count,
		      struct why *why)
{
	_cleanup_(programs_close) struct programs programs = { 0 };
	struct port_link *links = NULL;
	unsigned int links_count = 0;
	int r;

	r = programs_of(d, &programs);
	if (r < 0)
		return why_say(why, r, "cannot read the node's constants: %s", strerror(-r));
	r = ports_refresh(d, why);
	if (r < 0)
		return r;
	links_tidy(d, ports, count);
	for (unsigned int i = 0; i < count; i++)
		port_mend(d, &programs, &ports[i]);
	r = links_open(d->path, &links, &links_count);
	if (r < 0)
		return no_node(why, r, d->path);
	links_close(d->links, d->links_count);
	d->links = links;
	d->links_count = links_count;
	return 0;
}

int dataplane_mend(struct dataplane *d, struct dataplane_port *ports, unsigned int count,
		   struct why *why)
{
	int r = pins_afford(pins_files(d->path), why);

	if (r == 0)
		r = directory_mend(d, why);
	if (r == 0)
		r = pins_mend(d, true, why);
	return r < 0 ? r : ports_mend(d, ports, count, why);
}
