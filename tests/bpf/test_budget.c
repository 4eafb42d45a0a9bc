// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the verifier may spend on each program: instructions that it walks, of the million that the
 * kernel allows; a number here may rise, in a commit that says why. And bytes of stack, as older
 * kernels count them.
 */
#include "harness.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CLANG_MAJOR = 19, /* the compiler that the numbers are for */
	INGRESS_INSNS_MAX = 74000, /* of a node without a pool */
	INGRESS_POOL_INSNS_MAX = 130000, /* with one, and every policy at once; 6.1 walks most */
	INGRESS_TC_INSNS_MAX = 90000,
	FANOUT_INSNS_MAX = 3300,
	STACK_MAX = 512,
	STACK_UNIT = 32, /* of 6.6 and older: each function has a multiple of that */
	LOG_STATS = 4, /* of the verifier: what it has found, and not how */
};

static const char compiler[] = "clang version ";

/* The compiler left its name in the object's debug information; 0: it did not. */
static int clang_major(void)
{
	size_t bytes;
	const char *elf = ingress_bpf__elf_bytes(&bytes);
	const char *at = memmem(elf, bytes, compiler, strlen(compiler));

	return at ? (int)strtol(at + strlen(compiler), NULL, 10) : 0;
}

static void assert_within(const struct bpf_program *prog, __u32 insns_max)
{
	struct bpf_prog_info info = { 0 };
	__u32 bytes = sizeof(info);

	assert_return_code(bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &bytes), errno);
	if (!info.verified_insns) {
		print_message("# the kernel does not tell (5.16 and later do)\n");
		skip();
	}
	printf("# %s: %u of %u instructions verified, %u translated\n", bpf_program__name(prog),
	       info.verified_insns, insns_max, info.xlated_prog_len / 8);
	assert_in_range(info.verified_insns, 1, insns_max);
}

static void the_numbers_are_for_this_compiler(void **state)
{
	int major = clang_major();

	printf("# built by clang %d, numbers are for clang %d\n", major, CLANG_MAJOR);
	if (major != CLANG_MAJOR)
		skip();
}

static void ingress_stays_within_its_budget(void **state)
{
	struct node *node = *state;

	assert_within(node->ingress->progs.tally_ingress, INGRESS_INSNS_MAX);
}

static void ingress_with_a_pool_stays_within_its_budget(void **state)
{
	struct node *node = *state;

	assert_within(node->ingress->progs.tally_ingress, INGRESS_POOL_INSNS_MAX);
}

static void ingress_by_tc_stays_within_its_budget(void **state)
{
	struct node *node = *state;

	assert_within(node->ingress_tc->progs.tally_ingress_tc, INGRESS_TC_INSNS_MAX);
}

static void fanout_stays_within_its_budget(void **state)
{
	struct node *node = *state;

	assert_within(node->fanout->progs.tally_fanout, FANOUT_INSNS_MAX);
}

static const struct tally_pool pool = { 64, { true, true, true, 1, 50 } };

static int setup_with_a_pool(void **state) { return node_setup_pool(state, pool); }

static unsigned long round_up(unsigned long bytes)
{
	bytes = bytes ? bytes : 1;
	return (bytes + STACK_UNIT - 1) / STACK_UNIT * STACK_UNIT;
}

/* "stack depth 376+112+0...": the program, and the functions that it calls. Those that call others
 * have little. */
static unsigned long stack_of(const char *said)
{
	char *at = strstr(said, "stack depth ");
	unsigned long program, most = 0;

	assert_non_null(at);
	program = round_up(strtoul(at + strlen("stack depth "), &at, 10));
	while (*at == '+') {
		unsigned long bytes = round_up(strtoul(at + 1, &at, 10));

		most = bytes > most ? bytes : most;
	}
	printf("# %lu and %lu of %d bytes of stack\n", program, most, STACK_MAX);
	return program + most;
}

static void ingress_with_a_pool_fits_the_stack_of_older_kernels(void **state)
{
	struct ingress_bpf *ingress = ingress_bpf__open();
	static char said[1 << 16];

	assert_non_null(ingress);
	ingress->rodata_node->constants.gate_factor = TALLY_MIX;
	ingress->rodata_node->constants.pool = pool;
	ingress->rodata_node->constants.shared = 1;
	bpf_program__set_log_level(ingress->progs.tally_ingress, LOG_STATS);
	assert_return_code(
		bpf_program__set_log_buf(ingress->progs.tally_ingress, said, sizeof(said)), errno);
	assert_return_code(ingress_bpf__load(ingress), errno);
	assert_in_range(stack_of(said), 1, STACK_MAX);
	ingress_bpf__destroy(ingress);
}

int main(void)
{
	const struct CMUnitTest with_a_pool[] = {
		cmocka_unit_test(ingress_with_a_pool_stays_within_its_budget),
		cmocka_unit_test(ingress_with_a_pool_fits_the_stack_of_older_kernels),
		cmocka_unit_test(ingress_by_tc_stays_within_its_budget),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_numbers_are_for_this_compiler),
		cmocka_unit_test(ingress_stays_within_its_budget),
		cmocka_unit_test(ingress_by_tc_stays_within_its_budget),
		cmocka_unit_test(fanout_stays_within_its_budget),
	};

	skip_unless_permitted();
	return cmocka_run_group_tests_name("budget", tests, node_setup, node_teardown) +
	       cmocka_run_group_tests_name("budget with a pool", with_a_pool, setup_with_a_pool,
					   node_teardown);
}
