#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Trees where all is not as usual. Found ones with IPv6, a root in software, an inner node that
# borrows slots, one that loses its maps, two routes to one worker: each run is disturbed by a worker
# that moves behind the other inner node, and stays exact. And runs that begin while the agent of an
# inner node is away, whose data plane knows the run before.
#
#   w0 ── a0 ──┐
#   w1 ── a0   ├── n0      w1 has a second cable, to a1
#   w2 ── a1 ──┤
#   w3 ── a1 ──┘
# shellcheck source=tests/e2e/tree_lib.sh
source "$(dirname "$0")/tree_lib.sh"

long=(-d int32 -b 1M -e 1M -n 20 -w 0 -s $((40 * slow))) # outlasts what is done to it

short=(-d int32 -b 64K -e 64K -n 3 -w 0)

ranks_now() { ctl --json job list train | jq -r '[.[0].nodes[] | .name + "=" + .ranks] | sort | join(" ")'; }
ranks_are() { [[ $(ranks_now) == "$1" ]]; }
in_software() { [[ $(ctl --json job list train | jq '.[0].in_software') == true ]]; }
borrows_at() { [[ $(at "$1" --json job list train | jq '.[0].borrows') == "$2" ]]; } # NODE YES?

begins() { # [tallyctl options...]
	start_levels && create_job train 4 --tree auto "$@" && join_ranks train "${long[@]}" || return 1
	until_true ranks_are "a0=0-1 a1=2-3" && another train 500
}
moves_and_ends() {
	moves w1 a1 n0
	until_true ranks_are "a1=1-3"
	another train 500
	joined_end
}

over_ipv6() {
	local node family=6
	two_ways
	for node in a0 a1; do
		sed -i "s/roots: .*]/roots: [\"$(bed addr n0 6)\"]/" "$work/$node.yaml"
		sed -i "s/{name: $node, address: [^}]*}/{name: $node, address: \"$(bed addr "$node" 6)\"}/" \
			"$work/tallyd.yaml"
	done
	begins --service "$(bed addr n0 6)"
	goes_on_at a0
	goes_on_at a1
	joined_end
}

a_root_in_software() {
	two_ways
	echo "tenants: [{name: blue, slots: 0}]" >>"$work/tallyd.yaml"
	begins --tenant blue
	in_software
	goes_on_at a0
	loses_slots=yes moves_and_ends
	cat "$work"/w?.train | jq -se 'map(.spilled == .chunks) | all' >/dev/null
}

an_inner_node_that_borrows() {
	two_ways
	configure_inner a0 64
	echo "peers: {secret: $work/a0.secret, roots: [$(bed addr n0)]}" >>"$work/a0.yaml"
	echo "pool: {slots: 128}" >>"$work/a0.yaml"
	begins --window 64
	until_true borrows_at a0 true
	goes_on_at a0
	moves_and_ends
}

# All that the node had, as after a reboot; the document is on its disk.
an_inner_node_that_loses_its_maps() {
	two_ways
	begins
	goes_on_at a0
	end_inner a0 KILL
	rm -rf "$pin-a0"
	another train 100
	start_inner a0
	goes_on_at a0
	ranks_are "a0=0-1 a1=2-3"
	moves_and_ends
}

# The kernel takes one of the two, and so does the tree.
two_routes_to_one_worker() {
	local via=() node
	two_ways
	for node in a0 a1; do
		via+=(nexthop via "$(on n0 ip -j route get "$(bed addr "$node")" | jq -r '.[0].gateway')")
	done
	moves w1 a1 # a1 knows the second cable
	on n0 ip route replace "$(bed addr w1)/32" "${via[@]}"
	start_levels
	create_job train 4 --tree auto
	join_ranks train "${long[@]}"
	until_true is_on_at a1 train
	another train 500
	[[ $(ranks_now) == "a1=1-3" || $(ranks_now) == "a0=0-1 a1=2-3" ]]
	goes_on_at a1
	joined_end
}

other_run() { node a0 stats --json | jq .OTHER_RUN.packets; } # packets

# Of two runs the second one begins and ends without a0's agent; of the third it is told.
without_the_agent() { # tallyctl-option
	two_ways
	tree "$(bed addr a0)" 0-1 "$(bed addr a1)" 2-3
	start_levels
	create_job train 4 --tree "$1"
	join_ranks train "${long[@]}"
	goes_on_at a0
	goes_on_at a1
	kill -KILL "${worker[@]}"
	wait "${worker[@]}" 2>/dev/null || true
	until_true state_is train waiting
	end_inner a0 KILL
	join_ranks train "${short[@]}"
	loses_slots=yes joined_end
	(($(other_run) > 0))
	start_inner a0
	join_ranks train "${long[@]}"
	goes_on_at a0
	joined_end
}
an_agent_that_is_away_stops_no_run_of_a_found_tree() { without_the_agent auto; }
an_agent_that_is_away_stops_no_run_of_a_written_tree() { without_the_agent "$work/tree.json"; }

facts over_ipv6 \
	a_root_in_software \
	an_inner_node_that_borrows \
	an_inner_node_that_loses_its_maps \
	two_routes_to_one_worker \
	an_agent_that_is_away_stops_no_run_of_a_found_tree \
	an_agent_that_is_away_stops_no_run_of_a_written_tree
