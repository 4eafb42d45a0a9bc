#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest, where time is short: one node, two workers, and their sums are exact.
#
#   w0 ──┐
#   w1 ──┴── n0      in native XDP, on bare veth pairs
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/../e2e/lib.sh"

pair() { # tally-node attach options
	network "$@" <<-END
		host w0 w1
		node n0
		link w0 n0 plain
		link w1 n0 plain
	END
}

both_types() {
	run_all -d int32 --int-wild -b 1M -e 1M -n 2 -w 0
	run_all -d float32 --float-wild -b 1M -e 1M -n 2 -w 0
	(($(count COMPLETED) > 1000))
}

two_workers_get_exact_sums_over_ipv4() {
	pair --mode native
	describe_job 4 -- w0 w1
	both_types
}

two_workers_get_exact_sums_over_ipv6() {
	pair --mode native
	describe_job 6 -- w0 w1
	both_types
}

new_programs_take_over_while_a_sum_runs() {
	pair --mode native
	describe_job 4 -- w0 w1
	start_all -d int32 -b 1M -e 1M -n 4 -w 0
	node n0 attach --replace
	finish_all
}

facts two_workers_get_exact_sums_over_ipv4 \
	two_workers_get_exact_sums_over_ipv6 \
	new_programs_take_over_while_a_sum_runs
