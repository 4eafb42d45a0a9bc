// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ports that XDP cannot serve (docs/decisions/0005): a TC filter of ours at the ingress of their
 * clsact qdisc. The pin of such a port is the program that runs there, tc-IFINDEX-NETNS-MADE: an
 * interface's number means nothing in another network namespace, and a qdisc that we made goes with
 * us. Filters are told apart by priority and handle; ours are the same on all ports.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "ports.h"

enum {
	TC_PRIORITY = 1, /* before all others, as XDP would be */
	TC_HANDLE = TALLY_UDP_PORT,
};

/* --- filter and qdisc ------------------------------------------------------------------------ */

/* The number of the program that is at our place on the port; 0: none. */
static int64_t filter_query(uint32_t ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = TC_HANDLE, .priority = TC_PRIORITY);

	int r = bpf_tc_query(&hook, &options);

	if (r < 0)
		return query_failed(r) ? r : 0;
	return options.prog_id;
}

/* `flags`: BPF_TC_F_REPLACE, or 0: -EEXIST where there is one. */
static int filter_put(uint32_t ifindex, int program, uint32_t flags)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = TC_HANDLE, .priority = TC_PRIORITY,
		    .prog_fd = program, .flags = flags);

	return bpf_tc_attach(&hook, &options);
}

static void filter_remove(uint32_t ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = TC_HANDLE, .priority = TC_PRIORITY);

	bpf_tc_detach(&hook, &options);
}

/* The qdisc that filters hang on; 1: it is there now, 0: it was there. */
static int qdisc_make(uint32_t ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	int r = bpf_tc_hook_create(&hook);

	return r == -EEXIST ? 0 : r < 0 ? r : 1;
}

/* Asks the kernel for all filters of a parent: a dump of RTM_GETTFILTER. */
static int filters_ask(int fd, uint32_t ifindex, uint32_t parent)
{
	const struct {
		struct nlmsghdr header;
		struct tcmsg of;
	} ask = { .header = { .nlmsg_len = sizeof(ask),
			      .nlmsg_type = RTM_GETTFILTER,
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		  .of = { .tcm_ifindex = (int)ifindex, .tcm_parent = parent } };

	return send(fd, &ask, sizeof(ask), 0) == sizeof(ask) ? 0 : -EIO;
}

/* Is any filter there, whosever? -EIO: the kernel does not say. */
static int filters_are_there(uint32_t ifindex, uint32_t parent)
{
	_cleanup_(closep) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	_Alignas(struct nlmsghdr) char answer[1 << 15];
	int found = 0;

	if (fd < 0 || filters_ask(fd, ifindex, parent) < 0)
		return -EIO;
	for (;;) {
		const struct nlmsghdr *m = (const void *)answer;
		ssize_t n = recv(fd, answer, sizeof(answer), 0);

		if (n <= 0)
			return -EIO;
		for (; NLMSG_OK(m, n); m = NLMSG_NEXT(m, n)) {
			if (m->nlmsg_type == NLMSG_DONE)
				return found;
			if (m->nlmsg_type == NLMSG_ERROR)
				return -EIO;
			found |= m->nlmsg_type == RTM_NEWTFILTER;
		}
	}
}

/* One that we made, unless others have come to use it. */
static void qdisc_remove(uint32_t ifindex)
{
	const int all = BPF_TC_INGRESS | BPF_TC_EGRESS; /* in libbpf's words: the qdisc itself */
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex);

	memcpy(&hook.attach_point, &all, sizeof(all)); /* which its enum has no name for */
	if (filters_are_there(ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)) == 0 &&
	    filters_are_there(ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)) == 0)
		bpf_tc_hook_destroy(&hook);
}

/* --- in and out ------------------------------------------------------------------------------ */

static int tc_error(struct why *why, int error, const struct dataplane_port *p)
{
	if (error == -EEXIST)
		return why_say(why, -EBUSY,
			       "%s: a TC filter of another Tally node is there (tc filter show dev "
			       "%s ingress); if that node has gone: tc filter del dev %s ingress "
			       "priority %d handle %d bpf",
			       p->name, p->name, p->name, TC_PRIORITY, TC_HANDLE);
	return why_say(why, error, "%s: cannot attach by TC: %s%s%s%s", p->name, strerror(-error),
		       *dataplane_kernel_words ? " (" : "", dataplane_kernel_words,
		       *dataplane_kernel_words ? ")" : "");
}

static int tc_attach(const char *pin, int program, struct dataplane_port *p, struct why *why)
{
	bool made;
	int r;

	*dataplane_kernel_words = '\0';
	r = qdisc_make(p->ifindex);
	if (r < 0)
		return tc_error(why, r, p);
	made = r;
	unlink(port_pin(pin, &port_tc_kind, p->ifindex,
			made)); /* of a filter that was taken away */
	r = bpf_obj_pin(program, port_pin(pin, &port_tc_kind, p->ifindex, made));
	if (r == 0)
		r = filter_put(p->ifindex, program, 0);
	if (r == 0) {
		p->mode = DATAPLANE_TC;
		return 0;
	}
	/* The kernel may have done what libbpf found no memory to read the answer of. */
	if (r != -EEXIST && filter_query(p->ifindex) == program_number(program))
		filter_remove(p->ifindex);
	unlink(port_pin(pin, &port_tc_kind, p->ifindex, made));
	if (made)
		qdisc_remove(p->ifindex);
	return tc_error(why, r, p);
}

/* Is the filter the program of this pin, or the one staged for it? */
static int filter_is(const char *pin, const char *name, uint32_t ifindex)
{
	_cleanup_(closep) int fd = bpf_obj_get(pin_path(pin, name, ""));
	_cleanup_(closep) int staged = bpf_obj_get(pin_path(pin, name, PIN_STAGED));
	int64_t filter = filter_query(ifindex);

	if (filter <= 0)
		return (int)filter;
	if (query_failed(fd) || query_failed(staged))
		return query_failed(fd) ? fd : staged;
	return filter == program_number(fd) || filter == program_number(staged);
}

static int tc_read(const char *pin, struct port_link *link)
{
	int r = link->elsewhere ? 1 : filter_is(pin, link->name, link->pinned);

	if (r > 0) /* one that lost its filter is as good as gone: there is nothing of ours on it */
		link->ifindex = link->pinned;
	return r;
}

static void tc_remove(const char *pin, const struct port_link *link)
{
	if (link->ifindex && !link->elsewhere)
		filter_remove(link->ifindex);
	if (link->made && !link->elsewhere)
		qdisc_remove(link->pinned);
	unlink(pin_path(pin, link->name, PIN_STAGED));
	unlink(pin_path(pin, link->name, ""));
}

static int tc_update(const char *pin, const struct port_link *link, int program)
{
	return filter_put(link->ifindex, program, BPF_TC_F_REPLACE);
}

static int tc_is_attached(const char *pin, uint32_t ifindex)
{
	int r = 0;

	for (int made = 0; made < 2 && r == 0; made++) {
		const char *path = port_pin(pin, &port_tc_kind, ifindex, made);
		char name[PIN_BYTES];

		snprintf(name, sizeof(name), "%.63s", strrchr(path, '/') + 1);
		r = filter_is(pin, name, ifindex);
	}
	return r;
}

/* Is there nothing but TC for this port? `error`: of XDP, which must be no fault of ours. */
static bool tc_suits(const struct dataplane_port *p, int program, int error)
{
	uint32_t other = 0;
	int r;

	if (p->mode == DATAPLANE_TC || !error)
		return p->mode == DATAPLANE_TC;
	if (p->mode != DATAPLANE_AUTO || error == -EPERM || error == -ENOMEM || error == -ENODEV)
		return false;
	if (p->share)
		return true;
	r = bpf_xdp_query_id((int)p->ifindex, 0, &other);
	if (r < 0 || !other)
		return !query_failed(r);
	return share_is_barred(p->ifindex, program); /* otherwise people can choose: port_link.c */
}

static int tc_elsewhere_say(const char *pin, const struct port_link *link, struct why *why)
{
	return why_say(why, -EXDEV,
		       "interface number %u, which is served by TC, is in another network "
		       "namespace: run this there (or, if that has ended, rm -r %s)",
		       link->ifindex, pin);
}

const struct port_kind port_tc_kind = {
	.prefix = "tc-",
	.numbers = 3,
	.mode = DATAPLANE_TC,
	.pins_program = true,
	.suits = tc_suits,
	.program = programs_tc,
	.attach = tc_attach,
	.read = tc_read,
	.update = tc_update,
	.remove = tc_remove,
	.is_attached = tc_is_attached,
	.elsewhere_say = tc_elsewhere_say,
};
