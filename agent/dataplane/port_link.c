// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ports with a BPF link (docs/decisions/0003), pinned as port-IFINDEX: the link can be taken away
 * from any namespace, goes with its interface, and is given a new program with not one frame in
 * between.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <string.h>

#include "ports.h"

static int link_read(const char *pin, struct port_link *link)
{
	struct bpf_link_info info = { 0 };
	uint32_t length = sizeof(info);

	int r = bpf_obj_get_info_by_fd(link->fd, &info, &length);

	if (r == 0)
		link->ifindex = info.xdp.ifindex;
	return query_failed(r) ? r : 0;
}

static void link_remove(const char *pin, const struct port_link *link)
{
	bpf_link_detach(link->fd); /* fails if the interface has gone, and that is as good */
	unlink(pin_path(pin, link->name, ""));
}

static int link_update(const char *pin, const struct port_link *link, int program)
{
	return bpf_link_update(link->fd, program, NULL);
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

static int link_attach(const char *pin, int program, struct dataplane_port *p, struct why *why)
{
	_cleanup_(closep) int fd = -EINVAL;
	const char *path;
	int r;

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

	path = port_pin(pin, &port_link_kind, p->ifindex, false);
	unlink(path); /* of an interface that has gone */
	r = bpf_obj_pin(fd, path);
	return r < 0 ? why_say(why, r, "cannot pin %s: %s", path, strerror(-r)) : 0;
}

/* The link knows its program, of whatever generation. */
static int link_is_attached(const char *pin, uint32_t ifindex)
{
	_cleanup_(closep) int fd = bpf_obj_get(port_pin(pin, &port_link_kind, ifindex, false));
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_link_info info = { 0 };
	uint32_t length = sizeof(info);
	int r = fd < 0 ? fd : bpf_obj_get_info_by_fd(fd, &info, &length);

	if (r == 0)
		r = bpf_xdp_query(ifindex, 0, &query);
	if (r < 0)
		return query_failed(r) ? r : 0;
	return info.xdp.ifindex == ifindex && query.prog_id == info.prog_id;
}

static bool link_suits(const struct dataplane_port *p, int program, int error)
{
	return p->mode != DATAPLANE_TC && !error;
}

const struct port_kind port_link_kind = {
	.prefix = "port-",
	.numbers = 1,
	.suits = link_suits,
	.program = program_of_xdp,
	.attach = link_attach,
	.read = link_read,
	.update = link_update,
	.remove = link_remove,
	.is_attached = link_is_attached,
};
