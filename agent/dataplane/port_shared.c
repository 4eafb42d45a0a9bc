// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ports that have another XDP program beside ours (docs/decisions/0004). Ours stands in its place,
 * and calls it for what it passes. Such a port has no BPF link: the kernel swaps a program that was
 * attached by netlink only for another one by netlink. Its pin is the other program,
 * beside-IFINDEX-NETNS: an interface's number means nothing in another network namespace.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <string.h>

#include "ports.h"

/* Flags that leave the port in the mode it is in; 0: no program there, or two. */
static int mode_flags(uint32_t ifindex, uint32_t *ret_program)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	int r = bpf_xdp_query(ifindex, 0, &query);

	*ret_program = 0;
	if (r < 0)
		return r;
	*ret_program = query.prog_id;
	switch (query.attach_mode) {
	case XDP_ATTACHED_DRV:
		return XDP_FLAGS_DRV_MODE;
	case XDP_ATTACHED_SKB:
		return XDP_FLAGS_SKB_MODE;
	default:
		return 0;
	}
}

/* Where the kernel does not say, attaching will say why: never is another mode taken for that. */
bool share_is_wanted(const struct dataplane_port *p)
{
	uint32_t other;

	return p->share && mode_flags(p->ifindex, &other);
}

/* To swap a program for itself fails either way, as it is not there; but for different reasons. */
bool share_is_barred(uint32_t ifindex, int program)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, options, .old_prog_fd = program);
	uint32_t other;
	int mode = mode_flags(ifindex, &other);

	return mode > 0 &&
	       bpf_xdp_attach(ifindex, program, mode | XDP_FLAGS_REPLACE, &options) == -EBUSY;
}

/* Puts `program` where `before` is, with no frame in between; -EEXIST: that is not there. */
static int swap_in(uint32_t ifindex, int program, int before)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, options, .old_prog_fd = before);
	uint32_t other;
	int mode = mode_flags(ifindex, &other);

	if (mode <= 0)
		return mode < 0 ? mode : -ENODEV;
	return bpf_xdp_attach(ifindex, program, mode | XDP_FLAGS_REPLACE, &options);
}

static int shared_update(const char *pin, const struct port_link *link, int program)
{
	_cleanup_(closep) int before = port_program(pin, link->ifindex);

	return before < 0 ? before : swap_in(link->ifindex, program, before);
}

static int shared_is_attached(const char *pin, uint32_t ifindex)
{
	_cleanup_(closep) int other = bpf_obj_get(port_pin(pin, &port_shared_kind, ifindex, false));
	_cleanup_(closep) int ours = other < 0 ? other : port_program(pin, ifindex);

	return ours >= 0 ? 1 : query_failed(ours) ? ours : 0;
}

/* --- which program, and where it is kept ----------------------------------------------------- */

/* The BPF link that holds a program to a port; 0: none does. */
static uint32_t link_of(uint32_t ifindex, uint32_t program)
{
	uint32_t id = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		_cleanup_(closep) int fd = bpf_link_get_fd_by_id(id);
		struct bpf_link_info info = { 0 };
		uint32_t length = sizeof(info);

		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &length) &&
		    info.type == BPF_LINK_TYPE_XDP && info.prog_id == program &&
		    info.xdp.ifindex == ifindex)
			return id;
	}
	return 0;
}

/* An index into `next` that no port has, or -ENOSPC. */
static int index_find(int ports)
{
	bool used[TALLY_SHARED_MAX] = { false };
	uint32_t port, index, *at = NULL;

	for (; !bpf_map_get_next_key(ports, at, &port); at = &port)
		if (!bpf_map_lookup_elem(ports, &port, &index))
			used[index % TALLY_SHARED_MAX] = true;
	for (int i = 0; i < TALLY_SHARED_MAX; i++)
		if (!used[i])
			return i;
	return -ENOSPC;
}

/* From now on our program calls the other one at this port. */
static int next_put(const char *pin, const struct dataplane_port *p, int other, struct why *why)
{
	_cleanup_(closep) int ports = bpf_obj_get(pin_path(pin, pin_name[PIN_PORTS], ""));
	_cleanup_(closep) int next = bpf_obj_get(pin_path(pin, pin_name[PIN_NEXT], ""));
	int index = index_find(ports), r;

	if (index < 0)
		return why_say(why, index, "%s: %d ports share already, the most that can", p->name,
			       TALLY_SHARED_MAX);
	r = bpf_map_update_elem(next, &index, &other, BPF_ANY);
	if (r == -EINVAL)
		return why_say(why, r,
			       "%s: cannot share the port with XDP program %u: the program uses "
			       "xdp.frags or offload to the device",
			       p->name, p->beside);
	if (r == 0)
		r = bpf_map_update_elem(ports, &p->ifindex, &index, BPF_ANY);
	return r < 0 ? why_say(why, r, "%s: cannot share it: %s", p->name, strerror(-r)) : 0;
}

static void next_remove(const char *pin, uint32_t ifindex)
{
	_cleanup_(closep) int ports = bpf_obj_get(pin_path(pin, pin_name[PIN_PORTS], ""));
	_cleanup_(closep) int next = bpf_obj_get(pin_path(pin, pin_name[PIN_NEXT], ""));
	uint32_t index;

	if (bpf_map_lookup_elem(ports, &ifindex, &index) < 0)
		return;
	bpf_map_delete_elem(ports, &ifindex);
	bpf_map_delete_elem(next, &index);
}

/* --- in and out ------------------------------------------------------------------------------ */

static int shared_read(const char *pin, struct port_link *link)
{
	_cleanup_(closep) int ours = port_program(pin, link->pinned);

	link->beside = program_number(link->fd);
	/* one that lost its program is as good as gone: there is nothing of ours on it */
	if (link->elsewhere || ours >= 0)
		link->ifindex = link->pinned;
	return !link->elsewhere && query_failed(ours) ? ours : 0;
}

static void shared_remove(const char *pin, const struct port_link *link)
{
	if (link->ifindex && !link->elsewhere)
		shared_update(pin, link, link->fd);
	next_remove(pin, link->pinned);
	unlink(pin_path(pin, link->name, ""));
}

/* Can this port's program be shared with, and how is it attached? Its flags, or an error. */
static int share_check(struct dataplane_port *p, struct why *why)
{
	int flags = mode_flags(p->ifindex, &p->beside);
	uint32_t link;
	enum dataplane_mode mode = flags == XDP_FLAGS_SKB_MODE ? DATAPLANE_GENERIC
							       : DATAPLANE_NATIVE;

	if (flags < 0)
		return why_say(why, flags, "%s: cannot ask which XDP program it has: %s", p->name,
			       strerror(-flags));
	if (!flags)
		return why_say(why, -EBUSY, "%s: has XDP programs in two modes at once", p->name);
	link = link_of(p->ifindex, p->beside);
	if (link)
		return why_say(
			why, -EBUSY,
			"%s: XDP program %u is held there by BPF link %u (bpftool link show "
			"id %u), and only whoever made the link can change it; what is "
			"attached without one (ip link set dev %s xdp ...) can share the port, "
			"and --mode tc needs no XDP",
			p->name, p->beside, link, link, p->name);
	if (p->mode != DATAPLANE_AUTO && p->mode != mode)
		return why_say(why, -EINVAL,
			       "%s: XDP program %u runs there in the other mode, and both must be "
			       "in one: leave --mode away",
			       p->name, p->beside);
	p->mode = mode;
	return 0;
}

static int shared_attach(const char *pin, int program, struct dataplane_port *p, struct why *why)
{
	_cleanup_(closep) int other = -1;
	int r;

	r = share_check(p, why);
	if (r < 0)
		return r;
	other = bpf_prog_get_fd_by_id(p->beside);
	if (other == -EPERM)
		return why_say(
			why, other,
			"%s: XDP program %u is there, and to share the port takes "
			"CAP_SYS_ADMIN, to open the program by its number: run this as root, "
			"or give tallyd.service a drop-in (systemctl cat tallyd says which; "
			"for libxdp's dispatcher with User=root)",
			p->name, p->beside);
	if (other < 0)
		return why_say(why, other, "%s: XDP program %u: %s", p->name, p->beside,
			       strerror(-other));
	unlink(port_pin(pin, &port_shared_kind, p->ifindex, false));
	r = next_put(pin, p, other, why);
	if (r < 0)
		return r;
	r = bpf_obj_pin(other, port_pin(pin, &port_shared_kind, p->ifindex, false));
	if (r == 0)
		r = swap_in(p->ifindex, program, other);
	if (r == 0)
		return 0;
	next_remove(pin, p->ifindex);
	unlink(port_pin(pin, &port_shared_kind, p->ifindex, false));
	return why_say(why, r, "%s: cannot take the place of XDP program %u: %s", p->name,
		       p->beside, strerror(-r));
}

static bool shared_suits(const struct dataplane_port *p, int program, int error)
{
	return p->mode != DATAPLANE_TC && !error && share_is_wanted(p);
}

static int shared_elsewhere_say(const char *pin, const struct port_link *link, struct why *why)
{
	return why_say(why, -EXDEV,
		       "interface number %u, with XDP program %u beside Tally's, is in another "
		       "network namespace: run this there (or, if that has ended, rm -r %s)",
		       link->ifindex, link->beside, pin);
}

const struct port_kind port_shared_kind = {
	.prefix = "beside-",
	.numbers = 2,
	.suits = shared_suits,
	.program = program_of_xdp,
	.attach = shared_attach,
	.read = shared_read,
	.update = shared_update,
	.remove = shared_remove,
	.is_attached = shared_is_attached,
	.elsewhere_say = shared_elsewhere_say,
};
