#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: tallyd, and what it asks of a kernel that is older than ours, by some of the facts
# that are tested on the host.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

code=0
some() { # SCRIPT FACT...
	echo "# $1"
	TALLY_FACTS="${*:2}" TALLY_SLOW=4 "tests/e2e/$1.sh" || code=1
}

some agent \
	workers_join_and_get_sums_over_ipv4 \
	workers_join_and_get_sums_over_ipv6 \
	workers_join_through_a_unix_socket \
	no_call_fails_while_tallyd_is_restarted_killed_and_upgraded \
	workers_that_end_while_there_is_no_tallyd_are_missed \
	three_capabilities_are_all_that_it_needs \
	a_configuration_is_reloaded_whole_or_not_at_all
some sharing \
	another_program_goes_on_while_sums_are_made \
	another_program_is_alone_again_after_a_detach \
	a_program_that_cannot_be_called_is_refused_by_its_number
some tc \
	one_job_goes_over_ports_of_both_kinds \
	programs_are_replaced_in_mid_job_and_nothing_is_lost \
	tallyd_serves_by_tc_and_says_why
exit "$code"
