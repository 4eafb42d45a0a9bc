// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many instructions this kernel's verifier walks for each program, from its own log: kernels
 * before 5.16 tell it nowhere else. Prints "# verified tally_ingress 73069", and the verifier's
 * last words if it refuses.
 */
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally/maps.h>

#include "bpf/fanout.skel.h"
#include "bpf/ingress.skel.h"
#include "bpf/ingress_tc.skel.h"

enum {
	LOG_STATISTICS = 4
}; /* of the verifier's log levels; since 5.2 */

static char said[1 << 16];

static int show(struct bpf_program *prog, int (*load)(void *), void *skeleton)
{
	const char *count;

	said[0] = '\0';
	bpf_program__set_log_level(prog, LOG_STATISTICS);
	bpf_program__set_log_buf(prog, said, sizeof(said));
	if (load(skeleton) < 0) {
		printf("# %s is refused: %s\n", bpf_program__name(prog), said);
		return 1;
	}
	count = strstr(said, "processed ");
	if (!count)
		return 1;
	printf("# verified %s %ld\n", bpf_program__name(prog),
	       strtol(count + strlen("processed "), NULL, 10));
	return 0;
}

static int load_ingress(void *skeleton) { return ingress_bpf__load(skeleton); }
static int load_ingress_tc(void *skeleton) { return ingress_tc_bpf__load(skeleton); }
static int load_fanout(void *skeleton) { return fanout_bpf__load(skeleton); }

int main(void)
{
	struct ingress_bpf *ingress = ingress_bpf__open();
	struct ingress_tc_bpf *ingress_tc = ingress_tc_bpf__open();
	struct fanout_bpf *fanout = fanout_bpf__open();
	int failed = 1;

	if (ingress && ingress_tc && fanout) {
		ingress->rodata_node->constants.gate_factor = TALLY_MIX;
		ingress_tc->rodata_node->constants.gate_factor = TALLY_MIX;
		fanout->rodata_node->constants.gate_factor = TALLY_MIX;
		failed = show(ingress->progs.tally_ingress, load_ingress, ingress) |
			 show(ingress_tc->progs.tally_ingress_tc, load_ingress_tc, ingress_tc) |
			 show(fanout->progs.tally_fanout, load_fanout, fanout);
	}
	fanout_bpf__destroy(fanout);
	ingress_tc_bpf__destroy(ingress_tc);
	ingress_bpf__destroy(ingress);
	return failed;
}
