// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A node's programs and maps, loaded and pinned. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>

#include "bpf/fanout.skel.h"
#include "bpf/ingress.skel.h"
#include "dataplane_private.h"
#include "dataplane_probe.h"

const char *const pin_name[PIN_COUNT] = {
	[PIN_JOBS] = "jobs",	       [PIN_SLOTS] = "slots",	  [PIN_GROUPS] = "groups",
	[PIN_CHILDREN] = "children",   [PIN_CURSORS] = "cursors", [PIN_COUNTERS] = "counters",
	[PIN_CONSTANTS] = "constants", [PIN_INGRESS] = "ingress", [PIN_FANOUT] = "fanout",
};

static bool verbose;
char dataplane_kernel_words[160];

/*
 * What the kernel itself says: netlink's own words, or the last line of the verifier's log; or
 * what libbpf looked for in it in vain.
 */
static void kernel_words_keep(const char *text)
{
	static const char libbpf[] = "libbpf: ", netlink[] = "libbpf: Kernel error message: ";
	const char *counts = strstr(text, "\nprocessed "), *words;

	if (!strncmp(text, netlink, strlen(netlink)))
		words = text + strlen(netlink);
	else if (strstr(text, "BEGIN PROG LOAD LOG") && counts)
		words = (const char *)memrchr(text, '\n', counts - text) + 1;
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

unsigned int dataplane_cpus(void)
{
	int n = libbpf_num_possible_cpus();

	return n > 0 ? n : 1;
}

const char *pin_path(const char *pin, const char *name, const char *suffix)
{
	static char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s%s", pin, name, suffix);
	return path;
}

void programs_close(struct programs *p)
{
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
			       "the running node's map '%s' is another version's: detach, attach, "
			       "and add the jobs again",
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

static int load_error(struct why *why, int error, const char *what, uint32_t slots)
{
	if (error == -ENOMEM)
		return why_say(why, error, "%s: no memory; %u slots need %zu MB of the kernel's",
			       what, slots, slots * sizeof(struct tally_slot) >> 20);
	return why_say(
		why, error,
		"the kernel does not take %s: %s%s%s (Tally needs Linux 5.15 or later, this is "
		"%s; --verbose shows more)",
		what, strerror(-error), *dataplane_kernel_words ? ": " : "", dataplane_kernel_words,
		kernel_release());
}

/* With all maps but the slots from `old`, or with new ones. */
static int fanout_load(struct programs *p, const struct dataplane *old, uint32_t slots,
		       struct why *why)
{
	int r;

	p->fanout = fanout_bpf__open();
	if (!p->fanout)
		return -errno;
	struct bpf_map *map[] = { p->fanout->maps.jobs,	   p->fanout->maps.slots,
				  p->fanout->maps.groups,  p->fanout->maps.children,
				  p->fanout->maps.cursors, p->fanout->maps.counters };

	r = bpf_map__set_max_entries(map[PIN_SLOTS], slots);
	for (int i = PIN_JOBS; r == 0 && old && i <= PIN_COUNTERS; i++)
		if (i != PIN_SLOTS)
			r = map_keep(map[i], old->fd[i], why);
	if (r < 0)
		return r;
	r = fanout_bpf__load(p->fanout);
	if (r < 0)
		return load_error(why, r, "the fan-out program", slots);
	for (int i = PIN_JOBS; i <= PIN_COUNTERS; i++)
		p->fd[i] = bpf_map__fd(map[i]);
	p->fd[PIN_FANOUT] = bpf_program__fd(p->fanout->progs.tally_fanout);
	return 0;
}

/* 0 if there was none, or none that we could read. */
static uint16_t boot_before(const struct dataplane *old)
{
	struct ingress_bpf__rodata constants;
	struct bpf_map_info info = { 0 };
	uint32_t length = sizeof(info), key = 0;

	if (!old || bpf_obj_get_info_by_fd(old->fd[PIN_CONSTANTS], &info, &length) < 0 ||
	    info.value_size != sizeof(constants) ||
	    bpf_map_lookup_elem(old->fd[PIN_CONSTANTS], &key, &constants) < 0)
		return 0;
	return constants.node_boot;
}

static int ingress_load(struct programs *p, const struct dataplane *old, struct why *why)
{
	uint16_t before = boot_before(old), boot = 0;
	int r = 0;

	while (!boot || boot == before)
		if (getrandom(&boot, sizeof(boot), 0) != sizeof(boot))
			return -EIO;
	p->ingress = ingress_bpf__open();
	if (!p->ingress)
		return -errno;
	struct bpf_map *map[] = { p->ingress->maps.jobs,    p->ingress->maps.slots,
				  p->ingress->maps.groups,  p->ingress->maps.children,
				  p->ingress->maps.cursors, p->ingress->maps.counters };

	p->ingress->rodata->node_boot = boot;
	for (int i = PIN_JOBS; r == 0 && i <= PIN_COUNTERS; i++)
		r = bpf_map__reuse_fd(map[i], p->fd[i]);
	if (r == 0)
		r = ingress_bpf__load(p->ingress);
	if (r < 0)
		return load_error(why, r, "the ingress program", 0);
	p->fd[PIN_CONSTANTS] = bpf_map__fd(p->ingress->maps.rodata);
	p->fd[PIN_INGRESS] = bpf_program__fd(p->ingress->progs.tally_ingress);
	return 0;
}

int programs_load(const struct dataplane *old, uint32_t slots, struct programs *ret,
		  struct why *why)
{
	_cleanup_(programs_close) struct programs p = { 0 };
	int r;

	libbpf_listen();
	*dataplane_kernel_words = '\0';
	r = kernel_check(why);
	if (r == 0)
		r = fanout_load(&p, old, slots, why);
	if (r == 0)
		r = ingress_load(&p, old, why);
	if (r < 0)
		return r;
	*ret = p;
	p = (struct programs){ 0 };
	return 0;
}

/* Pins what `which` has a bit for. */
int pins_make(const struct programs *p, const char *pin, unsigned int which, const char *suffix,
	      struct why *why)
{
	for (int i = 0; i < PIN_COUNT; i++) {
		int r;

		if (!(which & 1u << i))
			continue;
		unlink(pin_path(pin, pin_name[i], suffix));
		r = bpf_obj_pin(p->fd[i], pin_path(pin, pin_name[i], suffix));
		if (r < 0)
			return why_say(why, r, "cannot pin %s: %s",
				       pin_path(pin, pin_name[i], suffix), strerror(-r));
	}
	return 0;
}
