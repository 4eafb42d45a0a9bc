// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ports with libxdp's dispatcher (docs/decisions/0012), where other XDP programs come and go by
 * xdp-loader and its like. A small program (bpf/port.bpf.c) has a place there for ours, and calls
 * the program that `place-IFINDEX-NETNS` names, a map: whoever has this pin changes the program
 * with no gap, and needs neither libxdp nor its privileges. The pin of such a port is the program
 * that is called, dispatcher-IFINDEX-NETNS.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <string.h>
#include <sys/stat.h>
#include <xdp/libxdp.h>

#include "dataplane.h"
#include "ports.h"
#include "bpf/port.skel.h"

#define STATE "/sys/fs/bpf/xdp" /* libxdp's own pins, as its protocol names them */

enum {
	MEMBERS_MAX = 10, /* in libxdp's dispatcher */
	PRIORITY = 1, /* before all others, as by tail call (decision 0004); they begin at 10 */
};

static const uint32_t node_index; /* the only one of the map */

static inline void port_destroyp(struct port_bpf **p) { port_bpf__destroy(*p); }
static inline void xdp_closep(struct xdp_program **p)
{
	if (*p && !libxdp_get_error(*p))
		xdp_program__close(*p);
}

/* Why libxdp failed: its own words, or the verifier's. */
__attribute__((format(printf, 2, 0))) static int
listen_to_libxdp(enum libxdp_print_level level, const char *format, va_list values)
{
	if (level == LIBXDP_WARN)
		vsnprintf(dataplane_kernel_words, sizeof(dataplane_kernel_words), format, values);
	dataplane_kernel_words[strcspn(dataplane_kernel_words, "\n")] = '\0';
	return 0;
}

static void libxdp_listen(void)
{
	libbpf_listen();
	libxdp_set_print(listen_to_libxdp);
	*dataplane_kernel_words = '\0';
}

/* --- who is in the dispatcher ---------------------------------------------------------------- */

/* A program of the dispatcher on a port, the caller's, and the first map of it. */
static int member_open(uint32_t ifindex, int i, struct bpf_prog_info *ret, uint32_t *ret_map)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	_cleanup_(closep) int fd = -1;
	uint32_t length = sizeof(*ret);
	char path[96];

	int r = bpf_xdp_query((int)ifindex, 0, &query);

	if (r < 0 || !query.prog_id)
		return query_failed(r) ? r : -ENOENT;
	snprintf(path, sizeof(path), STATE "/dispatch-%u-%u/prog%d-prog", ifindex, query.prog_id,
		 i);
	fd = bpf_obj_get(path);
	*ret_map = 0;
	*ret = (struct bpf_prog_info){ .nr_map_ids = 1, .map_ids = (uintptr_t)ret_map };
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, ret, &length) < 0)
		return query_failed(fd) ? fd : -ENOENT;
	return TAKE_FD(fd);
}

/* How the dispatcher of a port runs; AUTO: there is none. */
static enum dataplane_mode mode_now(uint32_t ifindex)
{
	struct bpf_prog_info info;
	uint32_t map;
	_cleanup_(closep) int fd = member_open(ifindex, 0, &info, &map);

	if (fd < 0)
		return DATAPLANE_AUTO;
	return dataplane_is_native(ifindex) ? DATAPLANE_NATIVE : DATAPLANE_GENERIC;
}

static const char *place_pin(const char *pin, uint32_t ifindex)
{
	char name[PIN_BYTES];

	snprintf(name, sizeof(name), "place-%u-%llu", ifindex, (unsigned long long)netns_here());
	return pin_path(pin, name, "");
}

/* The program at our place, the caller's, or -ENOENT; *ret_beside: of another program, or 0. */
static int place_find(const char *pin, uint32_t ifindex, uint32_t *ret_beside)
{
	_cleanup_(closep) int map = bpf_obj_get(place_pin(pin, ifindex));
	struct bpf_map_info ours = { 0 };
	uint32_t length = sizeof(ours), its_map;
	struct bpf_prog_info info;
	int found = -ENOENT;

	*ret_beside = 0;
	if (map < 0 || bpf_obj_get_info_by_fd(map, &ours, &length) < 0)
		return query_failed(map) ? map : -ENOENT;
	for (int i = 0; i < MEMBERS_MAX; i++) {
		_cleanup_(closep) int fd = member_open(ifindex, i, &info, &its_map);

		if (query_failed(fd) && found < 0)
			found = fd;
		if (fd >= 0 && its_map == ours.id)
			found = TAKE_FD(fd);
		else if (fd >= 0)
			*ret_beside = info.id;
	}
	return found;
}

/*
 * The map of a place that was ours and calls nothing, the caller's, or -ENOENT: a tallyd that has
 * dropped its privileges cannot leave the dispatcher.
 */
static int place_idle(uint32_t ifindex)
{
	struct bpf_prog_info info;
	uint32_t its_map, value;

	for (int i = 0; i < MEMBERS_MAX; i++) {
		_cleanup_(closep) int fd = member_open(ifindex, i, &info, &its_map);
		_cleanup_(closep) int map = -1;

		if (fd < 0 || strcmp(info.name, "tally_port") != 0)
			continue;
		map = bpf_map_get_fd_by_id(its_map);
		if (map >= 0 && bpf_map_lookup_elem(map, &node_index, &value) == -ENOENT)
			return TAKE_FD(map);
	}
	return -ENOENT;
}

static int dispatcher_read(const char *pin, struct port_link *link)
{
	_cleanup_(closep) int place = place_find(pin, link->pinned, &link->beside);

	if (link->elsewhere || place >= 0)
		link->ifindex = link->pinned;
	return !link->elsewhere && query_failed(place) ? place : 0;
}

static int dispatcher_is_attached(const char *pin, uint32_t ifindex)
{
	uint32_t beside;
	_cleanup_(closep) int place = place_find(pin, ifindex, &beside);

	return place >= 0 ? 1 : query_failed(place) ? place : 0;
}

/* --- a place --------------------------------------------------------------------------------- */

static struct port_bpf *port_open(int map)
{
	struct port_bpf *port = port_bpf__open();

	if (port && bpf_map__reuse_fd(port->maps.node, map) == 0) {
		bpf_program__set_expected_attach_type(port->progs.tally_port, 0);
		return port;
	}
	port_bpf__destroy(port);
	return NULL;
}

/* Does the kernel let a program stand in for a function of another one? */
static int extending_check(int map, struct why *why)
{
	_cleanup_(port_destroyp) struct port_bpf *base = port_open(map), *other = port_open(map);
	int r = base && other ? port_bpf__load(base) : -ENOMEM;

	if (r == 0) {
		bpf_program__set_type(other->progs.tally_port, BPF_PROG_TYPE_EXT);
		r = bpf_program__set_attach_target(other->progs.tally_port,
						   bpf_program__fd(base->progs.tally_port),
						   "tally_port");
	}
	if (r == 0)
		r = port_bpf__load(other);
	return r < 0 ? why_say(why, r, "the kernel does not load BPF_PROG_TYPE_EXT: %s",
			       strerror(-r))
		     : 0;
}

/* What libxdp fails at; where no dispatcher can be had, libxdp attaches without, unasked. */
static int libxdp_check(int map, int program, struct why *why)
{
	_cleanup_(closep) int fd = bpf_prog_get_fd_by_id(program_number(program));

	if (fd < 0)
		return why_say(why, fd,
			       "libxdp takes CAP_SYS_ADMIN, to open programs by their numbers; "
			       "tallyd has it only while it starts, as root");
	if ((mkdir(STATE, 0700) < 0 && errno != EEXIST) || access(STATE, W_OK | X_OK) < 0)
		return why_say(why, -errno, "libxdp keeps its state in " STATE ": %m");
	return extending_check(map, why);
}

static enum xdp_attach_mode mode_of_libxdp(enum dataplane_mode mode)
{
	return mode == DATAPLANE_GENERIC ? XDP_MODE_SKB : XDP_MODE_NATIVE;
}

/* A program that calls through `map` gets a place; a port without dispatcher gets one, too. */
static int place_enter(int map, struct dataplane_port *p)
{
	enum dataplane_mode there = mode_now(p->ifindex), mode = there ? there : p->mode;
	_cleanup_(port_destroyp) struct port_bpf *object = port_open(map);
	_cleanup_(xdp_closep) struct xdp_program *port = NULL;
	int r;

	port = object ? xdp_program__from_bpf_obj(object->obj, NULL) : NULL;
	if (!port || libxdp_get_error(port))
		return -ENOMEM;
	xdp_program__set_run_prio(port, PRIORITY);
	r = xdp_program__attach(port, (int)p->ifindex, mode_of_libxdp(mode), 0);
	if (r < 0 && !mode) {
		mode = DATAPLANE_GENERIC;
		r = xdp_program__attach(port, (int)p->ifindex, mode_of_libxdp(mode), 0);
	}
	return r;
}

/* Out of the dispatcher; without the right to that, the place is left there, and passes all. */
static void place_leave(const char *pin, uint32_t ifindex)
{
	uint32_t beside;
	_cleanup_(closep) int place = place_find(pin, ifindex, &beside);
	_cleanup_(closep) int map = bpf_obj_get(place_pin(pin, ifindex));
	_cleanup_(xdp_closep) struct xdp_program *port = NULL;

	libxdp_listen();
	port = place < 0 ? NULL : xdp_program__from_fd(place);
	if (port && !libxdp_get_error(port))
		xdp_program__detach(port, (int)ifindex, mode_of_libxdp(mode_now(ifindex)), 0);
	bpf_map_delete_elem(map, &node_index);
	unlink(place_pin(pin, ifindex));
}

/* --- in and out ------------------------------------------------------------------------------ */

/* A place that calls `program`, pinned: one of ours that is idle, or a new one. */
static int place_take(const char *pin, int program, struct dataplane_port *p, struct why *why)
{
	_cleanup_(closep) int map = place_idle(p->ifindex);
	const bool is_idle = map >= 0;
	int r;

	if (!is_idle)
		map = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "tally_port", sizeof(node_index),
				     sizeof(uint32_t), 1, NULL);
	r = map < 0 ? map : bpf_map_update_elem(map, &node_index, &program, BPF_ANY);
	if (r == 0)
		r = libxdp_check(map, program, why);
	if (r < 0)
		return r;
	unlink(place_pin(pin, p->ifindex));
	r = bpf_obj_pin(map, place_pin(pin, p->ifindex));
	if (r == 0 && !is_idle)
		r = place_enter(map, p);
	return r;
}

static int dispatcher_attach(const char *pin, int program, struct dataplane_port *p,
			     struct why *why)
{
	_cleanup_(closep) int place = -ENOENT;
	struct why said = { "" };
	int r;

	libxdp_listen();
	unlink(port_pin(pin, &port_dispatcher_kind, p->ifindex, false));
	r = bpf_obj_pin(program, port_pin(pin, &port_dispatcher_kind, p->ifindex, false));
	if (r == 0)
		r = place_take(pin, program, p, &said);
	if (r == 0)
		place = place_find(pin, p->ifindex, &p->beside);
	if (place >= 0) {
		p->mode = mode_now(p->ifindex);
		return 0;
	}
	r = r < 0 ? r : place;
	if (!*said.text)
		why_say(&said, r, "%s%s%s", strerror(-r), *dataplane_kernel_words ? ": " : "",
			dataplane_kernel_words);
	place_leave(pin, p->ifindex);
	unlink(port_pin(pin, &port_dispatcher_kind, p->ifindex, false));
	return why_say(why, r, "%s: no place in libxdp's dispatcher: %.300s", p->name, said.text);
}

static int dispatcher_update(const char *pin, const struct port_link *link, int program)
{
	_cleanup_(closep) int map = bpf_obj_get(place_pin(pin, link->ifindex));

	return map < 0 ? map : bpf_map_update_elem(map, &node_index, &program, BPF_ANY);
}

static void dispatcher_remove(const char *pin, const struct port_link *link)
{
	if (!link->elsewhere)
		place_leave(pin, link->pinned);
	unlink(pin_path(pin, link->name, PIN_STAGED));
	unlink(pin_path(pin, link->name, ""));
}

/* Where another program has the port by itself, only a tail call shares the port. */
static bool dispatcher_suits(const struct dataplane_port *p, int program, int error)
{
	enum dataplane_mode there = mode_now(p->ifindex);
	uint32_t other = 0;

	return p->share && !error && p->mode != DATAPLANE_TC &&
	       bpf_xdp_query_id((int)p->ifindex, 0, &other) == 0 && !other == !there &&
	       (!there || !p->mode || p->mode == there);
}

static int dispatcher_elsewhere_say(const char *pin, const struct port_link *link, struct why *why)
{
	return why_say(why, -EXDEV,
		       "interface number %u, with libxdp's dispatcher, is in another network "
		       "namespace: run this there (or, if that has ended, rm -r %s)",
		       link->ifindex, pin);
}

const struct port_kind port_dispatcher_kind = {
	.prefix = "dispatcher-",
	.numbers = 2,
	.pins_program = true,
	.suits = dispatcher_suits,
	.program = programs_called,
	.attach = dispatcher_attach,
	.read = dispatcher_read,
	.update = dispatcher_update,
	.remove = dispatcher_remove,
	.is_attached = dispatcher_is_attached,
	.elsewhere_say = dispatcher_elsewhere_say,
};
