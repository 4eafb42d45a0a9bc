// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A node's programs and maps, loaded and pinned. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>

#include "programs.h" /* whose types the skeletons need */
#include "bpf/build.h"
#include "bpf/fanout.skel.h"
#include "bpf/ingress.skel.h"
#include "bpf/ingress_tc.skel.h"
#include "common/tick.h"
#include "dataplane.h"
#include "probe.h"

static bool verbose;
char dataplane_kernel_words[160];

/*
 * What the kernel itself says: netlink's own words, or the last line of the verifier's log; or
 * what libbpf looked for in it in vain.
 */
static void kernel_words_keep(const char *text)
{
	static const char libbpf[] = "libbpf: ", netlink[] = "libbpf: Kernel error message: ";
	const char *counts = strstr(text, "\nprocessed "), *line, *words;

	if (!strncmp(text, netlink, strlen(netlink)))
		words = text + strlen(netlink);
	else if (strstr(text, "BEGIN PROG LOAD LOG") && counts)
		words = (line = memrchr(text, '\n', counts - text)) ? line + 1 : counts + 1;
	else if (!strncmp(text, libbpf, strlen(libbpf)) && strstr(text, "not found in kernel"))
		words = text + strlen(libbpf);
	else
		return;
	snprintf(dataplane_kernel_words, sizeof(dataplane_kernel_words), "%.*s",
		 (int)strcspn(words, "\n"), words);
}

__attribute__((format(printf, 2, 0))) static int
listen_to_libbpf(enum libbpf_print_level level, const char *format, va_list values)
{
	_cleanup_(freep) char *text = NULL;
	va_list copy;

	va_copy(copy, values);
	if (vasprintf(&text, format, copy) < 0)
		text = NULL;
	va_end(copy);
	if (text)
		kernel_words_keep(text);
	return verbose ? vfprintf(stderr, format, values) : 0;
}

void libbpf_listen(void) { libbpf_set_print(listen_to_libbpf); }

void dataplane_be_verbose(void) { verbose = true; }

static inline void ingress_destroyp(struct ingress_bpf **p) { ingress_bpf__destroy(*p); }
static inline void ingress_tc_destroyp(struct ingress_tc_bpf **tc) { ingress_tc_bpf__destroy(*tc); }

void programs_close(struct programs *p)
{
	ingress_tc_bpf__destroy(p->ingress_tc);
	ingress_bpf__destroy(p->called);
	ingress_bpf__destroy(p->ingress);
	fanout_bpf__destroy(p->fanout);
}

/* A map of a running node for a program that would make its own. */
static int map_keep(struct bpf_map *map, int fd, struct why *why)
{
	struct bpf_map_info info = { 0 };
	uint32_t length = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &length) < 0)
		return -errno;
	if (info.type != bpf_map__type(map) || info.key_size != bpf_map__key_size(map) ||
	    info.value_size != bpf_map__value_size(map) ||
	    info.max_entries != bpf_map__max_entries(map))
		return why_say(why, -ESTALE,
			       "the running node's map '%s' is of another version of Tally: "
			       "detach, attach, and add the jobs again",
			       bpf_map__name(map));
	return bpf_map__reuse_fd(map, fd);
}

static const char *kernel_release(void)
{
	static struct utsname name;

	return uname(&name) < 0 ? "unknown" : name.release;
}

/* What loading the programs would not show, or not in words. */
static int kernel_check(struct why *why)
{
	if (dataplane_probe_broadcast() != -EOPNOTSUPP)
		return 0; /* it is there, or we may not even ask: loading says why */
	return why_say(why, -EOPNOTSUPP,
		       "this kernel (%s) lacks XDP's broadcast to several ports (BPF_F_BROADCAST), "
		       "which Linux has since 5.13; Tally needs 5.15 or later",
		       kernel_release());
}

static int load_error(struct why *why, int error, const char *what, uint32_t slots, uint32_t pool)
{
	if (error == -ENOMEM && !slots)
		return why_say(why, error, "%s: no memory", what);
	if (error == -ENOMEM)
		return why_say(why, error,
			       "%s: no memory; %u slots, and %u in a pool, need %zu MB of the "
			       "kernel's",
			       what, slots, pool,
			       (slots * sizeof(struct tally_slot) +
				pool * sizeof(struct tally_pool_slot)) >>
				       20);
	return why_say(
		why, error,
		"the kernel does not take %s: %s%s%s (Tally needs Linux 5.15 or later, this is "
		"%s; --verbose shows more)",
		what, strerror(-error), *dataplane_kernel_words ? ": " : "", dataplane_kernel_words,
		kernel_release());
}

/* A shared map of a program, by its number among the pins. */
static struct bpf_map *map_of(const struct bpf_object *object, int pin)
{
	return bpf_object__find_map_by_name(object, pin_name[pin]);
}

/* Sums that are under way stay, unless there is to be another number of slots. */
static bool keeps_slots(const struct dataplane *old, uint32_t slots)
{
	return old && dataplane_slots(old) == slots;
}

static bool keeps(const struct dataplane *old, int pin, uint32_t slots, struct tally_pool pool)
{
	if (pin == PIN_POOL)
		return dataplane_pool(old).slots == pool.slots;
	return pin != PIN_SLOTS || keeps_slots(old, slots);
}

/* --- constants ------------------------------------------------------------------------------- */

uint64_t dataplane_build(void) { return TALLY_DATAPLANE_BUILD; }

bool dataplane_is_current(struct dataplane *d)
{
	struct tally_constants c;

	return constants_read(d->fd[PIN_CONSTANTS], &c) == 0 && c.build == dataplane_build() &&
	       !pins_are_staged(d->path);
}

/* The boot number stays with the slots. */
static int boot_choose(const struct dataplane *old, uint32_t slots, uint16_t old_boot,
		       uint16_t *ret)
{
	uint16_t boot = 0;

	if (keeps_slots(old, slots) && old_boot) {
		*ret = old_boot;
		return 0;
	}
	while (!boot || boot == old_boot)
		if (getrandom(&boot, sizeof(boot), 0) != sizeof(boot))
			return -EIO;
	*ret = boot;
	return 0;
}

/* Gates stay where they are as long as the node does, and so does what they are found by. */
static int gate_factor_choose(uint64_t old, __u64 *ret)
{
	*ret = old;
	if (old)
		return 0;
	if (getrandom(ret, sizeof(*ret), 0) != sizeof(*ret))
		return -EIO;
	*ret |= 1;
	return 0;
}

static int constants_choose(const struct dataplane *old, uint32_t slots, struct tally_pool pool,
			    bool shared, struct tally_constants *ret)
{
	struct tally_constants before = { 0 };
	int r = old ? constants_read(old->fd[PIN_CONSTANTS], &before) : 0;

	if (r < 0)
		return r;
	*ret = (struct tally_constants){ .magic = TALLY_NODE_MAGIC,
					 .layout = TALLY_MAPS_LAYOUT,
					 .shared = shared,
					 .tick_ms = tick_ms(),
					 .build = dataplane_build(),
					 .pool = pool };
	r = boot_choose(old, slots, before.boot, &ret->boot);
	return r < 0 ? r : gate_factor_choose(before.gate_factor, &ret->gate_factor);
}

/* --- loading --------------------------------------------------------------------------------- */

/* With maps from `old`, or with new ones. */
static int fanout_load(struct programs *p, const struct dataplane *old, uint32_t slots,
		       struct why *why)
{
	const struct tally_pool pool = p->constants.pool;
	int r;

	p->fanout = fanout_bpf__open();
	if (!p->fanout)
		return -errno;
	p->fanout->rodata_node->constants = p->constants;
	r = bpf_map__set_max_entries(p->fanout->maps.slots, slots);
	if (r == 0 && pool.slots)
		r = bpf_map__set_max_entries(p->fanout->maps.pool, pool.slots);
	for (int i = 0; r == 0 && old && i < PIN_MAPS; i++)
		if (keeps(old, i, slots, pool))
			r = map_keep(map_of(p->fanout->obj, i), old->fd[i], why);
	if (r < 0)
		return r;
	r = fanout_bpf__load(p->fanout);
	if (r < 0)
		return load_error(why, r, "the fan-out program", slots, pool.slots);
	for (int i = 0; i < PIN_MAPS; i++)
		p->fd[i] = bpf_map__fd(map_of(p->fanout->obj, i));
	p->fd[PIN_FANOUT] = bpf_program__fd(p->fanout->progs.tally_fanout);
	return 0;
}

/* Over the node's maps that come before `end`. */
static int over_maps_load(const struct programs *p, int end, struct bpf_object *object,
			  struct bpf_object_skeleton *skeleton)
{
	int r = 0;

	for (int i = 0; r == 0 && i < end; i++)
		r = bpf_map__reuse_fd(map_of(object, i), p->fd[i]);
	return r < 0 ? r : bpf_object__load_skeleton(skeleton);
}

static int ingress_load(struct programs *p, struct why *why)
{
	int r;

	p->ingress = ingress_bpf__open();
	if (!p->ingress)
		return -errno;
	p->ingress->rodata_node->constants = p->constants;
	r = over_maps_load(p, PIN_MAPS, p->ingress->obj, p->ingress->skeleton);
	if (r < 0)
		return load_error(why, r,
				  p->constants.shared ? "the ingress program with a call to another"
						      : "the ingress program",
				  0, 0);
	p->fd[PIN_CONSTANTS] = bpf_map__fd(p->ingress->maps.rodata_node);
	p->fd[PIN_INGRESS] = bpf_program__fd(p->ingress->progs.tally_ingress);
	return 0;
}

int programs_tc(struct programs *p, struct why *why)
{
	_cleanup_(ingress_tc_destroyp) struct ingress_tc_bpf *tc = NULL;
	int r;

	if (p->ingress_tc)
		return bpf_program__fd(p->ingress_tc->progs.tally_ingress_tc);
	*dataplane_kernel_words = '\0';
	tc = ingress_tc_bpf__open();
	if (!tc)
		return -errno;
	tc->rodata_node->constants = p->constants;
	r = over_maps_load(p, PIN_MAPS, tc->obj, tc->skeleton);
	if (r < 0)
		return load_error(why, r, "the ingress program for TC", 0, 0);
	p->ingress_tc = TAKE_PTR(tc);
	return bpf_program__fd(p->ingress_tc->progs.tally_ingress_tc);
}

int programs_called(struct programs *p, struct why *why)
{
	_cleanup_(ingress_destroyp) struct ingress_bpf *called = NULL;
	int r;

	if (p->called)
		return bpf_program__fd(p->called->progs.tally_ingress);
	called = ingress_bpf__open();
	if (!called)
		return -errno;
	called->rodata_node->constants = p->constants;
	called->rodata_node->constants.shared = false;
	bpf_program__set_expected_attach_type(called->progs.tally_ingress, 0);
	/* all but `next`, whose programs are for links' attach type */
	_Static_assert(PIN_NEXT == PIN_MAPS - 1, "the last one");
	r = over_maps_load(p, PIN_NEXT, called->obj, called->skeleton);
	if (r < 0)
		return load_error(why, r, "the ingress program for libxdp's dispatcher", 0, 0);
	p->called = TAKE_PTR(called);
	return bpf_program__fd(p->called->progs.tally_ingress);
}

/* Jobs that nobody pays for may do all; answers that nobody pays for are few. */
static int node_tenants_put(const struct programs *p)
{
	const struct tally_tenant node = { .priority = 255 };
	const struct tally_tenant answers = {
		.limited = 1,
		.packets = { .rate = TALLY_ANSWERS_PER_SECOND, .burst = TALLY_ANSWERS_AT_ONCE },
	};
	const uint32_t index[] = { 0, TALLY_TENANT_ANSWERS };
	int r = bpf_map_update_elem(p->fd[PIN_TENANTS], &index[0], &node, BPF_ANY);

	return r < 0 ? r : bpf_map_update_elem(p->fd[PIN_TENANTS], &index[1], &answers, BPF_ANY);
}

int programs_load(const struct dataplane *old, uint32_t slots, struct tally_pool pool, bool shared,
		  struct programs *ret, struct why *why)
{
	_cleanup_(programs_close) struct programs p = { 0 };
	int r;

	libbpf_listen();
	*dataplane_kernel_words = '\0';
	r = kernel_check(why);
	if (r == 0)
		r = constants_choose(old, slots, pool, shared, &p.constants);
	if (r == 0)
		r = fanout_load(&p, old, slots, why);
	if (r == 0)
		r = ingress_load(&p, why);
	if (r == 0)
		r = node_tenants_put(&p);
	if (r < 0)
		return r;
	*ret = TAKE(p, (struct programs){ 0 });
	return 0;
}

int programs_of(const struct dataplane *d, struct programs *ret)
{
	*ret = (struct programs){ 0 };
	memcpy(ret->fd, d->fd, sizeof(ret->fd));
	return constants_read(d->fd[PIN_CONSTANTS], &ret->constants);
}

/* Pins what `which` has a bit for. */
int pins_make(const struct programs *p, const char *pin, unsigned int which, const char *suffix,
	      struct why *why)
{
	for (int i = 0; i < PIN_COUNT; i++) {
		int r;

		if (!(which & 1u << i))
			continue;
		r = bpf_obj_pin(p->fd[i], pin_path(pin, pin_name[i], suffix));
		if (r < 0)
			return why_say(why, r, "cannot pin %s: %s",
				       pin_path(pin, pin_name[i], suffix), strerror(-r));
	}
	return 0;
}
