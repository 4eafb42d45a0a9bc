#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What tally-sim says is what real workers take, within 10 %: the same text is the network of both.
# All cases are bound by links. What differs: the simulator knows gradients only, and a frame of
# 1514 bytes (Ethernet 14, IPv4 20, UDP 8, Tally's header 64) carries 1408 bytes of them; so the
# simulator is told of 1514/1408 of the bytes.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

bytes=$((2 << 20))

simulated() { # HOST...: seconds of one allreduce
	local workers
	workers=$(IFS=,; echo "$*")
	echo "job j workers=$workers root=none bytes=$((bytes * 1514 / 1408)) compute=0 iterations=1" \
		>"$work/workload"
	"$build/tally-sim" run --network "$work/topology" --workload "$work/workload" \
		--placement tapina-mg --json | jq '.policies[0].jobs[0].completion_s'
}

# The median of five calls. A machine that others keep busy makes workers slower, never faster: it
# gets three chances.
agree() { # HOST...
	local real model chance
	describe_job 4 -- "$@"
	model=$(simulated "$@")
	for chance in 1 2 3; do
		run_all -d int32 -b "$bytes" -e "$bytes" -n 5 -w 1
		real=$(jq '.time_us / 1e6' "$work/rank0")
		echo "simulated $model s, measured $real s (run $chance)"
		! jq -en "($real / $model - 1) | fabs < 0.1" || return 0
		node n0 job del 1
	done
	return 1
}

#   w0 ─┐
#   w1 ─┼─ n0      all links are alike
#   w2 ─┘
a_star_of_equal_links_is_simulated_as_it_is() {
	network <<-END
		host w0 w1 w2
		node n0
		link w0 n0 rate 40mbit
		link w1 n0 rate 40mbit
		link w2 n0 rate 40mbit
	END
	agree w0 w1 w2
}

# Everybody waits for the worker behind the slowest link.
the_slowest_link_counts() {
	network <<-END
		host w0 w1 w2
		node n0
		link w0 n0 rate 80mbit
		link w1 n0 rate 25mbit
		link w2 n0 rate 80mbit
	END
	agree w0 w1 w2
}

#   w0 ─┐                 a0 only forwards: both contributions take the link to n0, and both results
#   w1 ─┴─ a0 ─┬─ n0
#   w2 w3 w4 ──┘
two_contributions_share_a_link() {
	network <<-END
		host w0 w1 w2 w3 w4
		node n0 a0
		link w0 a0 rate 80mbit
		link w1 a0 rate 80mbit
		link a0 n0 rate 60mbit
		link w2 n0 rate 80mbit
		link w3 n0 rate 80mbit
		link w4 n0 rate 80mbit
	END
	agree w0 w1 w2 w3 w4
}

facts a_star_of_equal_links_is_simulated_as_it_is the_slowest_link_counts \
	two_contributions_share_a_link
