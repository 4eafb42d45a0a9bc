#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The machine of a job's root dies in the midst of calls: these go on at another root, and no sum is
# wrong. Who only thinks so, since nothing reaches it, waits.
#
#   e0 (etcd) ── n0    w0 w1 ── n0 ── n1 ── n3 ── w2 w3
#                                └─── n2 ───┘
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "$0")/cluster_lib.sh"

exec 3>&1
rescued_s=30 # until calls go on: 3 to miss the root, 10 until its report is gone, and joining

diamond() {
	cluster <<-END || return 1
		host e0 w0 w1 w2 w3
		node n0 n1 n2 n3
		link e0 n0
		link w0 n0
		link w1 n0
		link n0 n1
		link n0 n2
		link n1 n3
		link n2 n3
		link w2 n3
		link w3 n3
	END
	greet w0 w1 w2 w3 && until_all_see_all
}

cables() { # up|down: of n2
	on n0-n2 ip link set n2 "$1"
	on n2-n3 ip link set n2 "$1"
}
n2_dies() {
	cables down
	end_at n2 KILL
}

completed() { at "$2" stats --job "$1" --json 2>/dev/null | jq '.COMPLETED.packets // 0' || echo 0; }
sums_at() { (($(completed "$1" "$2") > 1000)); } # beyond warm-ups
slowest_ms() { jq -s 'map(.max_us) | max / 1000 | round' "$@"; } # RESULTS...
in_time() { # RESULTS...
	(($(slowest_ms "$@") < rescued_s * 1000 * slow)) || { echo "the slowest call took $(slowest_ms "$@") ms"; return 1; }
}

# JOB HOST... -- [tally-perf-arguments...]: at n2, which n0 and n3 do not need to reach each other.
sums_at_n2() {
	local job=$1 host hosts=()
	shift
	while [[ $1 != -- ]]; do
		hosts+=("$1")
		shift
	done
	create_at n0 "$job" "${#hosts[@]}"
	at n0 job place "$job" --node n2 --stay
	for host in "${hosts[@]}"; do join_at "$host" n0 "$job" "${@:2}"; done
}

calls_go_on_when_the_machine_of_their_root_dies() {
	local -A wild=([float32]=--float-wild [int32]=--int-wild [int64]=--int-wild)
	local verb type kind=(allreduce:float32 allreduce:int64 reduce:int32 broadcast:float32
		reduce_scatter:float32 all_gather:int32 barrier:int32)
	diamond
	sums_at_n2 train w0 w1 w2 w3 -- --seconds 30 -n 10 -b 64K -e 64K
	for kind in "${kind[@]}"; do
		verb=${kind%:*} type=${kind#*:}
		sums_at_n2 "${verb//_/-}.$type" w0 w2 -- --seconds 30 -n 10 -b 64K -e 64K -v "$verb" -d "$type" \
			"${wild[$type]}"
	done
	until_true sums_at train n2
	until_true sums_at barrier.int32 n2 || { cat "$work"/*.errors; at n0 cluster; at n2 stats --job barrier.int32; return 1; }
	n2_dies
	finish train w0 w1 w2 w3
	echo "# eight jobs lost the machine of their root: the slowest call took $(slowest_ms "$work"/w0.{train,allreduce.*[24],reduce.int32}) ms" >&3
	in_time "$work"/w0.train "$work"/w0.allreduce.*[24] || return 1
	[[ $(shared n0 train root) != n2 ]] || { at n0 cluster; return 1; }
}

# Other agents know the new token alone, and so do its workers by then.
a_run_whose_token_was_rotated_goes_on_elsewhere() {
	diamond
	sums_at_n2 train w0 w2 -- --seconds 40 -n 10 -b 64K -e 64K
	until_true sums_at train n2
	at n0 job rotate train --token-file "$work/next.token" >/dev/null
	until_true all_are_told || { cat "$work/n2.log"; return 1; }
	n2_dies
	finish train w0 w2
	in_time "$work/w0.train" || return 1
	[[ $(shared n0 train root) != n2 ]] || { at n0 cluster; return 1; }
}
all_are_told() { # and have what was said
	[[ $(grep -c 'worker was told the new token' "$work/n2.log") == 2 ]] &&
		! on n2 ss -Htn state established 'sport = :31249' | awk '$2 > 0' | has .
}

# One root of two: the other one's part of each call is there long before.
one_root_of_several_is_replaced() {
	local host
	diamond
	create_at n0 train 4 --roots 2
	at n0 job place train --node n0 --stay
	at n0 job place train.2 --node n2 --stay
	for host in w0 w1 w2 w3; do join_at "$host" n0 train --seconds 25 -n 10 -b 64K -e 64K; done
	until_true sums_at train.2 n2
	n2_dies
	finish train w0 w1 w2 w3
	in_time "$work"/w0.train || return 1
	[[ $(shared n0 train root) == n0 && $(shared n0 train.2 root) == n[13] ]] || { at n0 cluster; return 1; }
}

# The run that it had is nobody's any more, and its slots are given back.
a_machine_that_comes_back_gives_up_the_run() {
	diamond
	sums_at_n2 train w0 w2 -- --seconds 90 -n 10 -b 64K -e 64K
	until_true sums_at train n2
	n2_dies
	patiently is_elsewhere train || { at n0 cluster; return 1; }
	cables up
	start_at n2
	runs_at n2 train || { at n2 job list; return 1; }
	patiently has_given_up train n2 || { at n2 job list; at n0 cluster; return 1; }
	finish train w0 w2
}
is_elsewhere() { [[ $(shared n0 "$1" root) != n2 && $(shared n0 "$1" state) == running ]]; }
has_given_up() { ! at "$2" job show "$1" >/dev/null 2>&1; }

# The root is alive and says so: the worker asks, hears that, and goes on when its packets do again.
who_is_cut_off_waits() {
	diamond
	sums_at_n2 train w0 w1 w2 -- --seconds 20 -n 10 -b 64K -e 64K
	until_true sums_at train n2
	on n0 ip rule add pref 1 ipproto udp iif w0 blackhole
	on n0 ip rule add pref 1 ipproto udp to "$(bed addr w0)" blackhole
	until_true has "the run that this worker is in goes on at this node" "$work/n2.log" ||
		{ cat "$work/n2.log"; return 1; }
	on n0 ip rule del pref 1
	on n0 ip rule del pref 1
	finish train w0 w1 w2
	is_root train n2
	[[ $(at n0 events --json | jq '[.events[] | select(.kind == "moved")] | length') == 0 ]]
	echo "# packets of a worker were lost: the slowest call took $(slowest_ms "$work"/w0.train) ms" >&3
}

# A move that one rank cannot make (its packets do not reach the new root) changes nothing for long;
# and who dies meanwhile is missed at once.
a_rank_that_dies_while_a_run_moves_is_missed() {
	local pid code=0 begun
	diamond
	sums_at_n2 job w0 w1 w2 -- --seconds 60 -n 10 -b 64K -e 64K
	until_true sums_at job n2
	on n0 ip rule add pref 1 ipproto udp iif w0 to "$(bed addr n1)" blackhole
	at n0 job place job --node n1 --stay
	until_true runs_at n1 job
	kill -KILL "${worker[1]}"
	begun=$SECONDS
	for pid in "${worker[0]}" "${worker[2]}"; do wait "$pid" && code=1; done
	{ wait "${worker[1]}" || true; } 2>/dev/null
	worker=()
	((code == 0 && SECONDS - begun < 10 * slow)) || { echo "after $((SECONDS - begun)) s"; return 1; }
	has -E 'rank [0-2] is gone' "$work/w0.job.errors" || { cat "$work"/w?.job.errors; return 1; }
	has -E 'rank [0-2] is gone' "$work/w2.job.errors"
}

facts calls_go_on_when_the_machine_of_their_root_dies a_run_whose_token_was_rotated_goes_on_elsewhere one_root_of_several_is_replaced \
	a_machine_that_comes_back_gives_up_the_run who_is_cut_off_waits \
	a_rank_that_dies_while_a_run_moves_is_missed
