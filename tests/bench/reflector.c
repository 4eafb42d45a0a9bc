// SPDX-License-Identifier: GPL-2.0-only
/* Attaches the bare reflector to interfaces of this namespace, and leaves it there. */
#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <linux/if_link.h>

#include <bpf/libbpf.h>

#include "tests/bench/bare.skel.h"

static const char usage[] = "usage: reflector [--detach] DEV...\n";

/* On success *ret is the caller's to destroy. */
static int reflector_load(struct bare_bpf **ret)
{
	struct bare_bpf *bare = bare_bpf__open();
	struct bpf_program *prog;
	int r;

	if (!bare)
		return -errno;
	bpf_object__for_each_program(prog, bare->obj)
		bpf_program__set_autoload(prog, prog == bare->progs.bare_reflector);
	r = bare_bpf__load(bare);
	if (r < 0) {
		bare_bpf__destroy(bare);
		return r;
	}
	*ret = bare;
	return 0;
}

/* `bare` NULL: takes off what is attached. */
static int reflector_set(const struct bare_bpf *bare, const char *dev)
{
	int ifindex = (int)if_nametoindex(dev);

	if (!ifindex)
		return -errno;
	if (!bare)
		return bpf_xdp_detach(ifindex, XDP_FLAGS_DRV_MODE, NULL);
	return bpf_xdp_attach(ifindex, bpf_program__fd(bare->progs.bare_reflector),
			      XDP_FLAGS_DRV_MODE, NULL);
}

int main(int argc, char **argv)
{
	bool detach = argc > 1 && !strcmp(argv[1], "--detach");
	struct bare_bpf *bare = NULL;
	int r = 0;

	if (argc < 2 + detach) {
		fputs(usage, stderr);
		return 2;
	}
	if (!detach)
		r = reflector_load(&bare);
	if (r < 0)
		fprintf(stderr, "reflector: cannot load: %s\n", strerror(-r));
	for (int i = 1 + detach; i < argc && r == 0; i++) {
		r = reflector_set(bare, argv[i]);
		if (r < 0)
			fprintf(stderr, "reflector: %s: %s\n", argv[i], strerror(-r));
	}
	bare_bpf__destroy(bare);
	return r < 0;
}
