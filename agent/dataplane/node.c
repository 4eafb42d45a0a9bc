// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A node's ports: programs attached and detached, and found again. Each port has a BPF link,
 * pinned as port-IFINDEX: it can be taken away from any namespace, goes with its interface,
 * and is given a new program with not one frame in between (docs/decisions/0003). Ports that have
 * another XDP program as well: share.c; those that XDP cannot serve: tc.c.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/if_link.h>
#include <string.h>
#include <sys/stat.h>

#include "private.h"

/* --- ports ----------------------------------------------------------------------------------- */

void links_close(struct port_link *links, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		close(links[i].fd);
	free(links);
}

/* What a pin says of a port; -EINVAL: it is no port's. */
static int link_read(const char *pin, struct port_link *link)
{
	struct bpf_link_info info = { 0 };
	uint32_t length = sizeof(info);

	if (!strncmp(link->name, SHARE_PREFIX, strlen(SHARE_PREFIX)))
		return share_read(pin, link);
	if (!strncmp(link->name, TC_PREFIX, strlen(TC_PREFIX)))
		return tc_read(pin, link);
	if (strncmp(link->name, "port-", strlen("port-")) != 0)
		return -EINVAL;
	link->fd = bpf_obj_get(pin_path(pin, link->name, ""));
	if (link->fd >= 0 && !bpf_obj_get_info_by_fd(link->fd, &info, &length))
		link->ifindex = info.xdp.ifindex;
	return link->fd < 0 ? link->fd : 0;
}

int links_open(const char *pin, struct port_link **ret, unsigned int *ret_count)
{
	struct port_link *links = calloc(TALLY_PORTS_MAX, sizeof(*links));
	DIR *directory = opendir(pin);
	unsigned int n = 0;
	struct dirent *e;

	while (links && directory && n < TALLY_PORTS_MAX && (e = readdir(directory))) {
		struct port_link link = { .fd = -1 };

		if (strlen(e->d_name) >= sizeof(link.name))
			continue;
		snprintf(link.name, sizeof(link.name), "%.63s", e->d_name);
		if (link_read(pin, &link) == 0)
			links[n++] = link;
	}
	if (directory)
		closedir(directory);
	if (!links || !directory) {
		free(links);
		return -errno;
	}
	*ret = links;
	*ret_count = n;
	return 0;
}

void link_remove(const char *pin, int program, const struct port_link *link)
{
	if (link->beside) {
		share_remove(pin, program, link);
		return;
	}
	if (link->tc) {
		tc_remove(pin, link);
		return;
	}
	bpf_link_detach(link->fd); /* fails if the interface has gone, and that is as good */
	unlink(pin_path(pin, link->name, ""));
}

int link_update(const char *pin, const struct port_link *link, struct ingress to, int before)
{
	if (link->tc)
		return tc_update(pin, link, to.tc);
	return link->beside ? share_update(link, to.xdp, before)
			    : bpf_link_update(link->fd, to.xdp, NULL);
}

static int link_create(int program, const struct dataplane_port *p, uint32_t flags)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = flags);

	return bpf_link_create(program, p->ifindex, BPF_XDP, &options);
}

/* Why the driver refused: a link does not bring its words, so it is asked again by netlink. */
static void refusal_say(int program, struct dataplane_port *p, int error)
{
	uint32_t flags = XDP_FLAGS_DRV_MODE | XDP_FLAGS_UPDATE_IF_NOEXIST;

	*dataplane_kernel_words = '\0';
	if (error != -EBUSY && error != -EEXIST &&
	    bpf_xdp_attach(p->ifindex, program, flags, NULL) == 0)
		bpf_xdp_detach(p->ifindex, XDP_FLAGS_DRV_MODE, NULL);
	why_say(&p->refused, 0, "%s%s%s%s", strerror(-error), *dataplane_kernel_words ? " (" : "",
		dataplane_kernel_words, *dataplane_kernel_words ? ")" : "");
}

/* What stands in the way, or what can be done. */
static int port_error(struct why *why, int error, const struct dataplane_port *p)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	if (bpf_xdp_query(p->ifindex, 0, &query) == 0 && query.attach_mode != XDP_ATTACHED_NONE)
		return why_say(why, -EBUSY,
			       "%s: another XDP program (number %u: bpftool prog show id %u) is "
			       "attached there; take it away first, or share the port (tally-node: "
			       "--share, tallyd.yaml: share: true): then it stays, and sees what "
			       "Tally passes; or take mode tc: then Tally sees what it passes",
			       p->name, query.prog_id, query.prog_id);
	if (p->mode == DATAPLANE_NATIVE)
		return why_say(why, error,
			       "%s: the driver refuses native XDP: %s. --mode generic works "
			       "without the driver",
			       p->name, p->refused.text);
	return why_say(why, error, "%s: cannot attach in generic mode: %s", p->name,
		       strerror(-error));
}

static int xdp_attach(const char *pin, int program, struct dataplane_port *p, struct why *why)
{
	_cleanup_(closep) int fd = -EINVAL;
	char name[32];
	int r;

	if (share_is_wanted(p))
		return share_attach(pin, program, p, why);
	if (p->mode != DATAPLANE_GENERIC) {
		fd = link_create(program, p, XDP_FLAGS_DRV_MODE);
		if (fd < 0)
			refusal_say(program, p, fd);
	}
	if (fd < 0 && p->mode != DATAPLANE_NATIVE)
		fd = link_create(program, p, XDP_FLAGS_SKB_MODE);
	else
		p->mode = DATAPLANE_NATIVE;
	if (fd < 0)
		return port_error(why, fd, p);
	if (p->mode == DATAPLANE_AUTO)
		p->mode = DATAPLANE_GENERIC;

	snprintf(name, sizeof(name), "port-%u", p->ifindex);
	unlink(pin_path(pin, name, "")); /* of an interface that has gone */
	r = bpf_obj_pin(fd, pin_path(pin, name, ""));
	if (r < 0)
		return why_say(why, r, "cannot pin %s: %s", pin_path(pin, name, ""), strerror(-r));
	return 0;
}

/* Without the port's name, which goes with each reason: "eth1: cannot ..." */
static const char *reason_of(const struct why *why, const struct dataplane_port *p)
{
	const char *at = why->text;

	if (!strncmp(at, p->name, strlen(p->name)) && at[strlen(p->name)] == ':')
		at += strlen(p->name) + 1;
	return at + strspn(at, " ");
}

/* Is there nothing but TC for this port? `error`: of XDP, which must be no fault of ours. */
static bool tc_is_needed(const struct dataplane_port *p, int program, int error)
{
	uint32_t other = 0;

	if (p->mode != DATAPLANE_AUTO || error == -EPERM || error == -ENOMEM || error == -ENODEV)
		return false;
	if (p->share || bpf_xdp_query_id((int)p->ifindex, 0, &other) < 0 || !other)
		return true;
	return share_is_barred(p->ifindex, program); /* otherwise people can choose: port_error() */
}

/* `p->refused` says what XDP said, if it was tried. */
static int port_attach_tc(const char *pin, struct programs *programs, struct dataplane_port *p,
			  struct why *why)
{
	struct why tc = { "" };
	int program = programs_tc(programs, &tc), r;

	r = program < 0 ? program : tc_attach(pin, program, p, &tc);
	if (r == 0)
		return 0;
	return why_say(why, r, "%.200s%s%.280s%s", tc.text, *p->refused.text ? " (XDP: " : "",
		       p->refused.text, *p->refused.text ? ")" : "");
}

int port_attach(const char *pin, struct programs *programs, struct dataplane_port *p,
		struct why *why)
{
	struct dataplane_port tried = *p;
	struct why xdp = { "" };
	int r;

	if (p->mode == DATAPLANE_TC)
		return port_attach_tc(pin, programs, p, why);
	r = share_is_wanted(p) ? share_attach(pin, programs->fd[PIN_INGRESS], &tried, &xdp)
			       : xdp_attach(pin, programs->fd[PIN_INGRESS], &tried, &xdp);
	if (r == 0) {
		*p = tried;
		return 0;
	}
	if (!tc_is_needed(p, programs->fd[PIN_INGRESS], r)) {
		p->refused = tried.refused;
		*why = xdp;
		return r;
	}
	why_say(&p->refused, 0, "%s%.200s%s%.250s", *tried.refused.text ? "native: " : "",
		tried.refused.text, *tried.refused.text ? "; generic: " : "", reason_of(&xdp, p));
	return port_attach_tc(pin, programs, p, why);
}

int dataplane_ports(struct dataplane *d, struct dataplane_port **ret, unsigned int *ret_count,
		    struct why *why)
{
	_cleanup_(freep) struct dataplane_port *ports = calloc(TALLY_PORTS_MAX, sizeof(*ports));
	struct port_link *links = NULL;
	unsigned int count = 0;
	int r;

	if (!ports)
		return -ENOMEM;
	r = links_open(d->path, &links, &count);
	if (r < 0)
		return why_say(why, r, "%s: %s", d->path, strerror(-r));
	for (unsigned int i = 0; i < count; i++) {
		struct dataplane_port *p = &ports[i];

		p->ifindex = links[i].ifindex;
		p->beside = links[i].beside;
		p->share = p->beside;
		if (p->ifindex && !if_indextoname(p->ifindex, p->name))
			*p->name = '\0'; /* in another namespace */
		p->mode = links[i].tc			    ? DATAPLANE_TC
			  : dataplane_is_native(p->ifindex) ? DATAPLANE_NATIVE
							    : DATAPLANE_GENERIC;
	}
	links_close(links, count);
	*ret = TAKE_PTR(ports);
	*ret_count = count;
	return 0;
}

/* --- attach and detach ----------------------------------------------------------------------- */

/* Of the ports: is one where we cannot reach it? */
static int elsewhere_check(const char *pin, const struct port_link *links, unsigned int count,
			   struct why *why)
{
	for (unsigned int i = 0; i < count; i++)
		if (links[i].elsewhere && links[i].tc)
			return why_say(why, -EXDEV,
				       "interface number %u, which is served by TC, is in another "
				       "network namespace: run this there (or, if that has ended, "
				       "rm -r %s)",
				       links[i].ifindex, pin);
		else if (links[i].elsewhere)
			return why_say(
				why, -EXDEV,
				"interface number %u, with XDP program %u beside Tally's, is in "
				"another network namespace: run this there (or, if that has "
				"ended, rm -r %s)",
				links[i].ifindex, links[i].beside, pin);
	return 0;
}

/* Ports first, then all pins of ours, then the directory. Leaves alone what is not ours. */
static int node_remove(const char *pin, struct why *why)
{
	_cleanup_(closep) int program = bpf_obj_get(pin_path(pin, pin_name[PIN_INGRESS], ""));
	struct port_link *links = NULL;
	unsigned int count = 0;
	int r;

	r = links_open(pin, &links, &count);
	if (r < 0)
		return no_node(why, r, pin);
	r = elsewhere_check(pin, links, count, why);
	for (unsigned int i = 0; r == 0 && i < count; i++)
		link_remove(pin, program, &links[i]);
	links_close(links, count);
	if (r < 0)
		return r;
	for (int i = 0; i < PIN_COUNT; i++) {
		unlink(pin_path(pin, pin_name[i], ""));
		unlink(pin_path(pin, pin_name[i], "-new"));
	}
	for (uint32_t group = 0; group < TALLY_JOBS_MAX; group++)
		unlink(group_path(pin, group));
	return directory_remove(pin, why);
}

/* Is anything of a node pinned there? */
static bool node_is_here(const char *pin)
{
	for (int i = 0; i < PIN_COUNT; i++)
		if (access(pin_path(pin, pin_name[i], ""), F_OK) == 0)
			return true;
	return false;
}

int dataplane_attach(const char *pin, uint32_t slots, struct dataplane_port *ports,
		     unsigned int count, struct why *why)
{
	_cleanup_(programs_close) struct programs p = { 0 };
	_cleanup_(closep) int directory = -1;
	struct why ignored;
	bool shared = false;
	int r;

	r = directory_make(pin, why);
	if (r < 0)
		return r;
	directory = directory_lock(pin, why);
	if (directory < 0)
		return directory;
	if (node_is_here(pin))
		return why_say(why, -EEXIST,
			       "a node is here already (%s): attach --replace puts new programs "
			       "in, detach ends it",
			       pin);
	for (unsigned int i = 0; i < count; i++)
		shared |= share_is_wanted(&ports[i]);
	r = programs_load(NULL, slots, shared, &p, why);
	if (r == 0)
		r = pins_make(&p, pin, (1u << PIN_COUNT) - 1, "", why);
	for (unsigned int i = 0; r == 0 && i < count; i++)
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
	if (!d)
		return;
	for (int i = 0; i < PIN_COUNT; i++)
		closep(&d->fd[i]);
	closep(&d->directory);
	free(d);
}

int dataplane_open(const char *pin, struct dataplane **ret, struct why *why)
{
	_cleanup_(dataplane_closep) struct dataplane *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->directory = -1;
	memset(d->fd, -1, sizeof(d->fd));
	libbpf_listen();
	snprintf(d->path, sizeof(d->path), "%s", pin);
	d->directory = directory_lock(pin, why);
	if (d->directory < 0)
		return d->directory;
	if (!node_is_here(pin))
		return no_node(why, -ENOENT, pin);
	r = layout_check(pin, why);
	if (r < 0)
		return r;
	for (int i = 0; i < PIN_COUNT; i++) {
		d->fd[i] = bpf_obj_get(pin_path(pin, pin_name[i], ""));
		if (d->fd[i] < 0)
			return why_say(
				why, d->fd[i],
				"%s: is no whole node, %s is missing: tally-node detach, and "
				"attach anew",
				pin, pin_name[i]);
	}
	*ret = TAKE_PTR(d);
	return 0;
}

bool dataplane_is_native(uint32_t ifindex)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	return bpf_xdp_query(ifindex, 0, &query) == 0 && query.attach_mode == XDP_ATTACHED_DRV;
}

bool dataplane_is_attached(struct dataplane *d, uint32_t ifindex)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_prog_info info = { 0 };
	uint32_t length = sizeof(info);

	if (bpf_obj_get_info_by_fd(d->fd[PIN_INGRESS], &info, &length) == 0 &&
	    bpf_xdp_query(ifindex, 0, &query) == 0 && query.prog_id == info.id)
		return true;
	return tc_is_attached(d->path, ifindex);
}
