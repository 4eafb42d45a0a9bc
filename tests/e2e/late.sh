#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Ranks that the others of a job wait for (agent/core/late.h).
#
#   w0 ──┐
#   w1 ──┤
#   w2 ──┼── n0 (tallyd)      w3's cable is slow, or as the others'
#   w3 ──┘
# shellcheck source=tests/e2e/tree_lib.sh
source "$(dirname "$0")/tree_lib.sh"

star() { # RATE of w3's cable
	rm -f "$work/cluster"
	agent_network <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0 rate 200mbit
		link w1 n0 rate 200mbit
		link w2 n0 rate 200mbit
		link w3 n0 rate $1
	END
	echo "cluster: {node: n0, file: $work/cluster}" >>"$work/tallyd.yaml"
	start_agent
}

endless=(-b 1M -e 1M -n 10 -w 0 -s 300 --no-check)

load() { # [tallyctl options of the job...]
	local rank
	create_job train 4 "$@"
	worker=()
	for rank in 0 1 2 3; do # nobody knows a job of the cluster before they have come
		join_from "w$rank" train --rank "$rank" "${endless[@]}"
	done
	until_true job_is running
}

job_is() { [[ $(ctl --json job show train | jq -r '.[0].state') == "$1" ]]; }
late_is() { [[ $(ctl --json job show train | jq -c '[.[0].late[].rank]') == "$1" ]]; }
series() { on n0 curl -s http://127.0.0.1:9464/metrics | grep "^tally_$1"; }
cpu() { series late_cpu_seconds_total | awk '{ print $2 }'; }
unload() {
	kill "${worker[@]}"
	wait "${worker[@]}" || true
}

a_rank_behind_a_slow_cable_is_late_and_nobody_else() {
	local began
	star 20mbit
	load
	began=$SECONDS
	until_true late_is '[3]'
	echo "# late after $((SECONDS - began)) s: $(ctl job show train | grep '^late')" >&3
	((SECONDS - began <= 10 * slow))
	ctl job show train | has -E '^late: rank 3 in [0-9]+ % of samples$'
	(($(series 'job_late_part{' | wc -l) == 1))
	series job_late_part | has 'job="train".*rank="3"} 0\.'
	unload
	until_true late_is '[]'
	! series 'job_late_part{' || return 1
	(($(grep -c 'others wait for ranks of a job.*job=train ranks=3$' "$work/tallyd.log") == 1))
}

# As the root's report has it.
the_cluster_hears_of_it() {
	star 20mbit
	load --cluster
	until_true cluster_says '^late: rank 3 in [0-9]+ % of samples \(as n0 sees it\)$'
	unload
}

# The inner node tells which one it is; at the root all ranks of that node are late.
#   w0 ──┐
#   w1 ──┴── a0 ──┐
#   w2 ──┬── a1 ──┴── n0      w3's cable is slow
#   w3 ──┘
a_rank_below_an_inner_node_is_late_there() {
	agent_network <<-END
		host w0 w1 w2 w3
		node n0 a0 a1
		link w0 a0 rate 200mbit
		link w1 a0 rate 200mbit
		link w2 a1 rate 200mbit
		link w3 a1 rate 20mbit
		link a0 n0 rate 200mbit
		link a1 n0 rate 200mbit
	END
	configure_inner a0 1024
	configure_inner a1 1024
	tree "$(bed addr a0)" 0-1 "$(bed addr a1)" 2-3
	start_levels
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${endless[@]}"
	bring_all train
	until_true late_at_inner '[3]'
	until_true late_is '[2,3]'
	[[ $(at a0 --json job show train | jq -c '.[0].late') == '[]' ]]
	at a1 job show train | has -E '^late: rank 3 in [0-9]+ % of samples$'
	unload
}

late_at_inner() { [[ $(at a1 --json job show train | jq -c '[.[0].late[].rank]') == "$1" ]]; }
cluster_says() { ctl cluster train | has -E "$1"; }

equal_workers_name_nobody_and_looks_cost_little() {
	local began before chunks
	star 200mbit
	load
	before=$(cpu) began=$SECONDS
	while ((SECONDS - began < 12)); do
		late_is '[]' || { ctl job show train; return 1; }
	done
	chunks=$(completed_of train)
	((chunks > 1000))
	awk -v before="$before" -v now="$(cpu)" 'BEGIN {
		part = (now - before) / 12
		printf "# looks took %.3f %% of a core\n", 100 * part
		exit !(now > before && part < 0.01)
	}' >&3
	unload
}

exec 3>&1
facts a_rank_behind_a_slow_cable_is_late_and_nobody_else the_cluster_hears_of_it \
	a_rank_below_an_inner_node_is_late_there equal_workers_name_nobody_and_looks_cost_little
