#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Trees that agents find: nobody writes one, and ranks say no number. The root's agent asks routing,
# its own and that of the others, and does so again while the run is on.
#
#   w0 w1 ── b0 ──┐
#   w2 w3 ── b1 ──┴── a0 ──┐
#   w4 w5 ── b2 ──┬── a1 ──┴── n0
#   w6 w7 ── b3 ──┘
# shellcheck source=tests/e2e/tree_lib.sh
source "$(dirname "$0")/tree_lib.sh"

large=(-d float32 -b 1M -e 4M -n 3 -w 0)
long=(-d int32 -b 1M -e 1M -n 400 -w 0) # outlasts what is done to it
longer=(-d int32 -b 1M -e 1M -n 20 -w 0 -s $((45 * slow))) # also where somebody has to be missed

found_begin() { # LINK-OPTIONS: all agents run, and a job of eight
	three_levels "$@" && asks a0 a1 b0 b1 b2 b3 || return 1
	start_agent && start_all_inner || return 1
	create_job train 8 --tree auto
}

# In whichever order they join.
join_unranked() { # [tally-perf arguments...]
	join_all train w3 w0 w7 w1 w5 w2 w6 w4 -- "$@"
}

# As the tree that is there says: the hosts below each node, in order.
tree_now() {
	ctl --json job list train | jq -r '.[0] |
		(.members | map({ key: (.rank | tostring), value: .address }) | from_entries) as $at |
		.nodes[] | .name + " " + ([.ranks | split(",")[] | split("-") | map(tonumber) |
		range(.[0]; .[-1] + 1) | $at[tostring] | split(":")[0] | split(".")[2] | tonumber] |
		sort | map(tostring) | join(" "))' | sort
}
segments() { # HOST...: of their addresses, in order
	local host
	for host; do
		bed addr "$host" | cut -d. -f3
	done | sort -n | paste -sd' '
}
tree_is() { [[ $(tree_now) == "$1" ]]; }

whole_tree() {
	echo "a0 $(segments w0 w1 w2 w3)
a1 $(segments w4 w5 w6 w7)
b0 $(segments w0 w1)
b1 $(segments w2 w3)
b2 $(segments w4 w5)
b3 $(segments w6 w7)"
}

the_tree_is_the_paths_of_routing() {
	local name run
	found_begin rate 1gbit loss 0.5
	for run in 1 2; do
		join_unranked "${large[@]}"
		until_true state_is train running
		until_true tree_is "$(whole_tree)"
		ctl job show train
		joined_end
		until_true state_is train waiting
		for name in a0 a1 b0 b1 b2 b3; do
			echo "$name sent up $(sent_up "$name")"
			(($(sent_up "$name") > 1000 * run))
		done
	done
	ctl job del train
	for name in a0 a1 b0 b1 b2 b3; do
		until_true is_clean_at "$name"
	done
}

half_a_tree() { # without b0, and without a1 and all that only it leads to
	echo "a0 $(segments w0 w1 w2 w3)
b1 $(segments w2 w3)"
}

generation() { jq .jobs[0].generation "$work/state.json"; }
refused_at() { on "$1" awk "/^Tcp:/ { n = \$15 } END { print n }" /proc/net/snmp; } # NODE
refused_beyond() { (($(refused_at "$1") > $2)); }

# Its maps go on meanwhile, and the tree stays: nobody else has to do anything.
an_agent_is_restarted() {
	local before name
	found_begin rate 1gbit
	join_unranked "${longer[@]}"
	until_true tree_is "$(whole_tree)"
	for name in a0 b2; do
		goes_on_at "$name"
		before=$(generation)
		end_inner "$name" KILL
		until_true refused_beyond "$name" "$(refused_at "$name")" # somebody has asked
		start_inner "$name"
		goes_on_at "$name"
		[[ $(generation) == "$before" ]]
		tree_is "$(whole_tree)"
	done
	joined_end
}

# The run is on all the same; who comes back comes into the tree.
who_does_not_answer_is_left_out() {
	local name
	three_levels rate 1gbit
	asks a0 a1 b0 b1 b2 b3
	start_agent
	for name in a0 a1 b1 b2 b3; do
		start_inner "$name"
	done
	create_job train 8 --tree auto
	join_unranked "${longer[@]}"
	until_true state_is train running
	until_true tree_is "$(whole_tree | grep -v b0)"
	ctl job show train | has 'left out of the tree: b0: .*refused'
	end_inner a1 KILL
	until_true tree_is "$(half_a_tree)"
	ctl job show train | has 'left out of the tree: a1: .*refused; b0: '
	another train 1000
	start_inner b0
	start_inner a1
	until_true tree_is "$(whole_tree)"
	for name in a1 b0; do
		goes_on_at "$name"
	done
	[[ $(ctl --json job list train | jq -r '.[0].left_out') == '' ]]
	joined_end
}

six_trees_are_found() { (($(grep -c 'tree found: .* nodes=1$' "$work/tallyd.log") == 6)); }

# The trees of all jobs are asked for one after the other.
who_is_silent_holds_up_no_other_job() {
	local i began took all=()
	three_levels rate 1gbit
	asks a0 a1 b0 b1 b2 b3
	start_agent && start_all_inner
	kill -STOP "${inner[b3]}"
	for i in {1..6}; do
		create_job "j$i" 2 --window 16 --tree auto
	done
	began=$(date +%s%3N)
	for i in {1..6}; do
		join_all "j$i" w0 w1 -- "${longer[@]}"
		all+=("${worker[@]}")
	done
	until_true six_trees_are_found
	took=$(($(date +%s%3N) - began))
	echo "all trees were there after $took ms"
	kill -CONT "${inner[b3]}"
	kill "${all[@]}"
	wait "${all[@]}" 2>/dev/null || true
	((took < 6000 * slow))
}

# The next agent finds in the state file which tree it was, and asks anew.
the_roots_agent_is_killed() {
	found_begin rate 1gbit
	join_unranked "${longer[@]}"
	until_true tree_is "$(whole_tree)"
	end_agent KILL
	end_inner b2 KILL
	[[ $(jq '.jobs[0].tree | length' "$work/state.json") == 6 ]]
	start_agent
	until_true tree_is "$(whole_tree | grep -v b2)"
	goes_on_at a0
	joined_end
}

workers_move_in_mid_run() {
	two_ways
	start_levels
	create_job train 4 --tree auto
	join_all train w0 w1 w2 w3 -- "${long[@]}"
	until_true tree_is "a0 $(segments w0 w1)
a1 $(segments w2 w3)"
	goes_on_at a1
	moves w1 a1 n0
	until_true tree_is "a1 $(segments w1 w2 w3)" # w0 alone is nothing to add up
	goes_on_at a1
	until_true is_clean_at a0
	joined_end
}

slots_of() { bpftool map dump pinned "$pin-$1/slots" | md5sum; } # NODE
slots_are_still() { [[ $(slots_of "$1") == "$(slots_of "$1")" ]]; }
follows() { grep -c 'results follow the tree' "$work/$1.log" || true; } # NODE: so often
follows_beyond() { (($(follows "$1") > $2)); } # NODE TIMES

# The maps have what it would write: it looks, and they keep sums that are half done.
a_restart_leaves_slots_alone() {
	local before times
	two_ways
	start_levels
	create_job train 4 --tree auto
	join_all train w0 w1 w2 w3 -- "${long[@]}" --timeout 120000
	until_true tree_is "a0 $(segments w0 w1)
a1 $(segments w2 w3)"
	goes_on_at a0
	kill -STOP "${worker[@]}"
	until_true slots_are_still a0
	before=$(slots_of a0)
	times=$(follows a0)
	end_inner a0 KILL
	start_inner a0
	until_true follows_beyond a0 "$times"
	[[ $(slots_of a0) == "$before" ]]
	kill -CONT "${worker[@]}"
	goes_on_at a0
	joined_end
}

what_cannot_be_found_is_refused() {
	levels 1024
	start_agent
	refuses "this node knows no agents that it could ask" create_job train 4 --tree auto
}

facts the_tree_is_the_paths_of_routing \
	an_agent_is_restarted \
	who_does_not_answer_is_left_out \
	who_is_silent_holds_up_no_other_job \
	the_roots_agent_is_killed \
	workers_move_in_mid_run \
	a_restart_leaves_slots_alone \
	what_cannot_be_found_is_refused
