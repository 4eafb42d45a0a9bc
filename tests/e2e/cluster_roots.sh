#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs of a cluster with several roots: the leader finds these and how much of each call is whose,
# and workers that know nothing but the job's name take part at all of them.
#
#   e0 (etcd) ── n0    w0 w1 ── n0 ── 40 ── n1 ── 40 ── n3 ── w2 w3
#                                └─── 10 ── n2 ── 10 ───┘
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "$0")/cluster_lib.sh"

exec 3>&1

diamond() {
	cluster <<-END || return 1
		host e0 w0 w1 w2 w3
		node n0 n1 n2 n3
		link e0 n0 rate 200mbit
		link w0 n0 rate 100mbit
		link w1 n0 rate 100mbit
		link n0 n1 rate 40mbit
		link n0 n2 rate 10mbit
		link n1 n3 rate 40mbit
		link n2 n3 rate 10mbit
		link w2 n3 rate 100mbit
		link w3 n3 rate 100mbit
	END
	greet w0 w1 w2 w3 && until_all_see_all
}

places() { at n0 cluster --json | jq -c '[.jobs[] | [.name, .root, .share]]'; }
# MB/s of the slowest worker's largest call.
rate_of_job() { jq -s '[.[] | select(.bytes == 1048576) | .algbw] | min' "$work"/w[0-3]."$1"; }
all_join() { # JOB [tally-perf-arguments...]
	local i
	for i in {0..3}; do
		join_at "w$i" "n$((3 - i))" "$1" -b 1M -e 1M -n 10 "${@:2}" # any node's agent
	done
}

is_about() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(b >= a - 0.015 && b <= a + 0.015) }'; }

the_leader_finds_roots_and_shares() {
	local one two
	diamond
	create_at n2 one 4 --window 8 # short queues: there is no congestion control
	all_join one
	finish one w0 w1 w2 w3
	at n1 job del one
	until_true all_is_quiet # what has just ended counts as others' traffic
	create_at n2 train 4 --roots 2 --window 8
	[[ $(places) == '[["train","",0],["train.2","",0]]' ]]
	all_join train
	finish train w0 w1 w2 w3
	# A worker may send 20 by the upper way and 5 by the lower one.
	[[ $(shared n0 train root) == n[013] && $(shared n0 train.2 root) == n2 ]] || { said; return 1; }
	{ is_about 0.8 "$(shared n0 train share)" && is_about 0.2 "$(shared n0 train.2 share)"; } || { said; return 1; }
	at n1 cluster | has -E "^train.2 .* n2 +[12][0-9](\.[0-9]+)? % "
	has 'root 2 of 2: [45][.0-9]* of 2[45][.0-9]* Mbit/s' <<<"$(shared n3 train.2 why)" || { shared n3 train.2 why; return 1; }
	one=$(rate_of_job one) two=$(rate_of_job train)
	echo "# slowest worker, GB/s: one root $one, two $two; 1.25 times as much at most" >&3
	jq -en "$two > 1.15 * $one" >/dev/null
	# The places are known, so the next run begins there at once.
	all_join train
	finish train w0 w1 w2 w3
	at n3 job del train
	until_true nothing_is_left
}
said() { places; at n0 events; grep -h 'msg="job placed' "$work"/n?.log; grep -h 'placed' "$work"/n?.log; } # what the leader did, and why
all_is_quiet() { [[ $(at "$(leader n0)" topology --json |
	jq '[.links[] | .from, .to | .forecast_bytes_per_second] | max < 50000') == true ]]; }
nothing_is_left() { [[ -z $(keys_of job/)$(keys_of place/)$(keys_of worker/) ]]; }

all_roots_are_one_job() {
	local code=0
	diamond
	create_at n0 train.2 1
	{ at n1 job create train --workers 4 --cluster --roots 2 || true; } 2>&1 |
		has 'the cluster has a job train, or one of train.2 to train.2'
	[[ $(at n1 cluster --json | jq -c '[.jobs[].name]') == '["train.2"]' ]]
	at n0 job del train.2
	{ at n1 job create train --workers 4 --roots 2 || true; } 2>&1 | has 'roots: only a job of the cluster has several'
	{ at n1 job create "$(printf 'a%.0s' {1..60})" --workers 4 --cluster --roots 12 || true; } 2>&1 |
		has 'name: with 12 roots it may have 60 characters at most' || at n1 job list
	create_at n0 train 2 --roots 2
	{ at n1 job del train.2 || true; } 2>&1 | has 'train.2 is root 2 of a job with 2 roots: name that job'
	{ at n1 job rotate train.2 || true; } 2>&1 | has 'train.2 is root 2 of a job with 2 roots: name that job'
	# All roots get the same new token.
	cp "$work/train.token" "$work/old.token"
	rm "$work/train.token"
	at n3 job rotate train --token-file "$work/train.token" >/dev/null
	! cmp -s "$work/train.token" "$work/old.token" || return 1
	[[ $(at n1 job token train) == "$(cat "$work/train.token")" && $(at n2 job token train.2) == "$(cat "$work/train.token")" ]] ||
		{ at n1 job token train; at n2 job token train.2; return 1; }
	join_at w0 n0 train -b 64K -e 64K
	join_at w2 n3 train -b 64K -e 64K
	finish train w0 w2
	# Who joins one root alone would sum a part of each call only.
	cp "$work/train.token" "$work/train.2.token"
	join_at w0 n0 train.2
	join_at w1 n0 train.2
	for pid in "${worker[@]}"; do wait "$pid" && code=1; done
	worker=()
	((code == 0))
	has 'this is root 2 of a job with 2 roots: join the job by its own name' "$work/w0.train.2.errors" ||
		{ cat "$work"/w?.train.2.errors; return 1; }
	join_at w0 n0 train --shares 2,1 --join-timeout 3000
	join_at w1 n0 train --join-timeout 3000
	for pid in "${worker[@]}"; do wait "$pid" && code=1; done
	worker=()
	((code == 0))
	has 'shares: ' "$work/w0.train.errors" || { cat "$work/w0.train.errors"; return 1; }
}

a_root_that_dies_is_replaced_and_the_other_stays() {
	local was
	diamond
	create_at n0 train 2 --roots 2
	join_at w0 n0 train -b 64K -e 64K
	join_at w2 n3 train -b 64K -e 64K
	finish train w0 w2
	was=$(shared n0 train root)
	end_at n2 KILL
	[[ $was != n2 && $(shared n0 train.2 root) == n2 ]] || { places; return 1; }
	until_true is_missing n2
	join_at w0 n0 train -b 64K -e 64K
	join_at w2 n3 train -b 64K -e 64K
	finish train w0 w2
	[[ $(shared n0 train root) == "$was" && $(shared n0 train.2 root) != n2 && $(shared n0 train.2 root) != "$was" ]] || { places; return 1; }
}
is_missing() { [[ $(at n0 topology --json | jq "[.machines[] | select(.name == \"$1\")] | length") == 0 ]]; }

an_operator_may_say_where_a_root_is() {
	diamond
	create_at n0 train 2 --roots 2
	at n0 job place train.2 --node n3
	join_at w0 n0 train -b 64K -e 64K
	join_at w2 n3 train -b 64K -e 64K
	finish train w0 w2
	[[ $(shared n0 train.2 root) == n3 && $(shared n0 train root) != n3 ]] || { places; return 1; }
	has 'an operator said so' <<<"$(shared n0 train.2 why)"
}

has_moved() { runs_at "$3" "$1" && ! at "$2" job show "$1" >/dev/null 2>&1; } # JOB FROM TO

# Each by itself, and both at once, while the workers sum.
each_root_moves_while_workers_sum() {
	local i
	diamond
	create_at n0 train 3 --roots 2 --window 16
	at n0 job place train --node n0 --stay
	at n0 job place train.2 --node n2 --stay
	for i in 0 1 2; do join_at "w$i" n0 train --seconds 25 -b 64K -e 64K; done
	until_true runs_at n2 train.2
	for i in {1..4}; do
		at n1 job place train.2 --node n3 --stay
		until_true has_moved train.2 n2 n3 || { at n0 cluster; return 1; }
		at n1 job place train --node n1 --stay
		at n1 job place train.2 --node n2 --stay
		until_true has_moved train n0 n1 || { at n0 cluster; return 1; }
		until_true has_moved train.2 n3 n2 || { at n0 cluster; return 1; }
		at n3 job place train --node n0 --stay
		until_true has_moved train n1 n0 || { at n0 cluster; return 1; }
	done
	finish train w0 w1 w2
	jq -r '"# 16 moves: \(.iterations) calls, median \(.p50_us) us, slowest \(.max_us) us, \(.retransmitted) sent again"' \
		"$work/w0.train" >&3
}

# Others fill the upper way for a while: the lower one gets half of each call, whose runs go on.
shares_follow_the_traffic() {
	local i others
	diamond
	create_at n0 train 4 --roots 2 --window 8
	at n0 job place train --node n1 --stay
	at n0 job place train.2 --node n2 --stay
	for i in {0..3}; do join_at "w$i" n0 train --seconds 70 -b 64K -e 64K; done
	until_true runs_at n2 train.2
	until_true has_share train 0.74 0.86 || { at n0 cluster; at n0 cluster train; return 1; }
	exec_on w2 iperf3 -s -1 --forceflush >"$work/server" 2>&1 &
	until_true has listening "$work/server"
	exec_on w0 iperf3 -c "$(bed addr w2)" -u -b 30M -t 60 >"$work/traffic" 2>&1 &
	others=$!
	patiently has_share train 0.4 0.65 || { at n0 cluster; at n0 cluster train; return 1; }
	until_true sums_alike || { at n0 cluster; return 1; }
	finish train w0 w1 w2 w3
	kill "$others" 2>/dev/null || true
}
has_share() { awk -v s="$(shared n0 "$1" share)" -v a="$2" -v b="$3" 'BEGIN { exit !(s > a && s < b) }'; } # JOB FROM TO
sums_alike() { jq -en "[$(shared n0 train chunks_per_second), $(shared n0 train.2 chunks_per_second)] | .[1] > 0.5 * .[0]" >/dev/null; }

command -v etcd >/dev/null || { echo '1..0 # SKIP no etcd here: scripts/setup.sh'; exit 0; }
facts the_leader_finds_roots_and_shares all_roots_are_one_job \
	a_root_that_dies_is_replaced_and_the_other_stays an_operator_may_say_where_a_root_is \
	each_root_moves_while_workers_sum shares_follow_the_traffic
