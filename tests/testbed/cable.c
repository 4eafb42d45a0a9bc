// SPDX-License-Identifier: GPL-2.0-only
/*
 * Read this file first: then cable.bpf.c. Who uses them: scripts/testbed.
 *
 * testbed-cable: joins two interfaces of the current namespace by BPF, or makes an interface fit
 * to face a peer that sends by XDP. What it attaches outlives it and dies with the namespace.
 */
#include <errno.h>
#include <getopt.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/if_link.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "cable.h"
#include "tests/testbed/cable.skel.h"

#define _cleanup_(f) __attribute__((cleanup(f)))

static const char usage[] =
	"usage: testbed-cable wire A B [--loss-up P] [--loss-down P] [--dup P] [--reorder P]\n"
	"                     [--flip-up P] [--flip-down P] [--flip-in REGION] [--flip-hidden]\n"
	"                     [--mark-up P] [--mark-down P]\n"
	"                     [--seed N]\n"
	"       testbed-cable pass INTERFACE...\n"
	"\n"
	"wire  joins interfaces A and B; P is a percentage, up is from A to B. For --reorder\n"
	"      the veth pair slow-up, slow-down must be there: what is late goes through it.\n"
	"      REGION is any, header or payload; cable.h says what they are.\n"
	"pass  attaches a native XDP program that lets everything pass.\n";

static void cable_bpf_destroyp(struct cable_bpf **cable) { cable_bpf__destroy(*cable); }

/* Hands the error on, so that a caller reads `return complain(r, ...)`. */
__attribute__((format(printf, 2, 3))) static int complain(int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("testbed-cable: ", stderr);
	vfprintf(stderr, format, args);
	fprintf(stderr, ": %s\n", strerror(-r));
	va_end(args);
	return r;
}

/* libbpf's warnings carry the kernel's own reason, which an errno does not. */
static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static int find_interface(const char *ifname, __u32 *ret)
{
	__u32 ifindex = if_nametoindex(ifname);

	if (!ifindex)
		return complain(-errno, "%s", ifname);
	*ret = ifindex;
	return 0;
}

static int attach_pass(struct bpf_program *prog, const char *ifname)
{
	__u32 ifindex = 0;
	int r;

	r = find_interface(ifname, &ifindex);
	if (r < 0)
		return r;
	r = bpf_xdp_attach(ifindex, bpf_program__fd(prog), XDP_FLAGS_DRV_MODE, NULL);
	return r < 0 ? complain(r, "%s: cannot attach the pass program", ifname) : 0;
}

static int attach_ingress(struct bpf_program *prog, const char *ifname)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = 1, .priority = 1,
		    .prog_fd = bpf_program__fd(prog));
	__u32 ifindex = 0;
	int r;

	r = find_interface(ifname, &ifindex);
	if (r < 0)
		return r;
	hook.ifindex = ifindex;
	r = bpf_tc_hook_create(&hook);
	if (r < 0)
		return complain(r, "%s: cannot add the clsact qdisc", ifname);
	r = bpf_tc_attach(&hook, &opts);
	return r < 0 ? complain(r, "%s: cannot attach %s", ifname, bpf_program__name(prog)) : 0;
}

static int parse_percent(const char *text, __u32 *ret)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || *end || !(percent >= 0 && percent <= 100))
		return complain(-EINVAL, "%s is not a percentage", text);
	*ret = (percent * PPM_ONE + 50) / 100; /* the nearest */
	return 0;
}

static int parse_region(const char *text, __u32 *ret)
{
	static const char *const names[REGIONS] = { "any", "header", "payload" };

	for (__u32 i = 0; i < REGIONS; i++) {
		if (!strcmp(text, names[i])) {
			*ret = i;
			return 0;
		}
	}
	return complain(-EINVAL, "%s is neither any, header nor payload", text);
}

static int parse_seed(const char *text, __u64 *ret)
{
	char *end;
	__u64 seed = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end)
		return complain(-EINVAL, "%s is not a seed", text);
	*ret = seed;
	return 0;
}

static int parse_faults(int argc, char **argv, struct cable_bpf__rodata *cable)
{
	__u32 *const chances[] = { &cable->loss_ppm[UP], &cable->loss_ppm[DOWN],
				   &cable->dup_ppm,	 &cable->reorder_ppm,
				   &cable->flip_ppm[UP], &cable->flip_ppm[DOWN],
				   &cable->mark_ppm[UP], &cable->mark_ppm[DOWN] };
	static const struct option options[] = {
		{ "loss-up", required_argument, NULL, 0 },
		{ "loss-down", required_argument, NULL, 1 },
		{ "dup", required_argument, NULL, 2 },
		{ "reorder", required_argument, NULL, 3 },
		{ "flip-up", required_argument, NULL, 4 },
		{ "flip-down", required_argument, NULL, 5 },
		{ "mark-up", required_argument, NULL, 6 },
		{ "mark-down", required_argument, NULL, 7 },
		{ "flip-in", required_argument, NULL, 'i' },
		{ "flip-hidden", no_argument, NULL, 'h' },
		{ "seed", required_argument, NULL, 's' },
		{ 0 },
	};
	int c, r = 0;

	while (r >= 0 && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == '?')
			return -EINVAL;
		if (c == 'i')
			r = parse_region(optarg, &cable->flip_region);
		else if (c == 's')
			r = parse_seed(optarg, &cable->seed);
		else if (c == 'h')
			cable->flip_hidden = 1;
		else
			r = parse_percent(optarg, chances[c]);
	}
	return r;
}

/* A frame that comes in by one end leaves by the other; by the slow pair likewise. */
static int find_ends(struct cable_bpf__rodata *cable, const char *a, const char *b)
{
	int r;

	r = find_interface(b, &cable->far_ifindex[UP]);
	if (r < 0)
		return r;
	r = find_interface(a, &cable->far_ifindex[DOWN]);
	if (r < 0 || !cable->reorder_ppm)
		return r;
	r = find_interface("slow-up", &cable->slow_ifindex[UP]);
	if (r < 0)
		return r;
	return find_interface("slow-down", &cable->slow_ifindex[DOWN]);
}

static int attach_wire(struct cable_bpf *cable, const char *a, const char *b)
{
	const struct {
		struct bpf_program *prog;
		const char *ifname;
	} ingress[] = {
		{ cable->progs.carry_up, a },
		{ cable->progs.carry_down, b },
		{ cable->progs.rejoin_up, "slow-down" }, /* what went up leaves by the far end */
		{ cable->progs.rejoin_down, "slow-up" },
	};
	int n = cable->rodata->reorder_ppm ? 4 : 2;
	int r;

	r = attach_pass(cable->progs.pass, a);
	if (r < 0)
		return r;
	r = attach_pass(cable->progs.pass, b);
	for (int i = 0; r >= 0 && i < n; i++)
		r = attach_ingress(ingress[i].prog, ingress[i].ifname);
	return r;
}

static int wire(int argc, char **argv)
{
	_cleanup_(cable_bpf_destroyp) struct cable_bpf *cable = NULL;
	const char *a, *b;
	int r;

	cable = cable_bpf__open();
	if (!cable)
		return complain(-errno, "cannot open the programs");

	r = parse_faults(argc, argv, cable->rodata);
	if (r < 0)
		return r;
	if (argc - optind != 2)
		return complain(-EINVAL, "wire takes two interfaces");
	a = argv[optind];
	b = argv[optind + 1];

	r = find_ends(cable->rodata, a, b);
	if (r < 0)
		return r;
	r = cable_bpf__load(cable);
	if (r < 0)
		return complain(r, "cannot load the programs");
	return attach_wire(cable, a, b);
}

static int pass(int argc, char **argv)
{
	_cleanup_(cable_bpf_destroyp) struct cable_bpf *cable = NULL;
	int r;

	cable = cable_bpf__open_and_load();
	if (!cable)
		return complain(-errno, "cannot load the programs");
	for (int i = 1; i < argc; i++) {
		r = attach_pass(cable->progs.pass, argv[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int r;

	libbpf_set_print(print_libbpf);
	if (argc > 3 && !strcmp(argv[1], "wire")) {
		r = wire(argc - 1, argv + 1);
	} else if (argc > 2 && !strcmp(argv[1], "pass")) {
		r = pass(argc - 1, argv + 1);
	} else {
		fputs(usage, stderr);
		return 2;
	}
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
