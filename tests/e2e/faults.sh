#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Things go wrong in the middle: the node loses its memory, workers come late or die, other
# traffic wants through.
#
#   w0 ──┐
#   w1 ──┼── n0      1 Gbit/s, 0.1 % lost
#   w2 ──┤
#   w3 ──┘
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

star() {
	network <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0 rate 1gbit loss ${1-0.1}
		link w1 n0 rate 1gbit loss ${1-0.1}
		link w2 n0 rate 1gbit loss ${1-0.1}
		link w3 n0 rate 1gbit loss ${1-0.1}
	END
}

packets_sent() { on "$1" ip -s -j link show dev eth0 | jq ".[0].stats64.tx.packets"; }
has_sent_more() { (($(packets_sent "$1") > $2)); }
completed_more() { (($(count COMPLETED) > $1)); }

# Nobody sums yet when the workers begin: the first chunk is lost, and so is all that is sent again.
the_very_first_packets_may_be_lost() {
	star 0
	describe_job 4 -- w0 w1 w2 w3
	next_epoch
	for rank in 0 1 2 3; do
		start_rank "$rank" -d int32 -b 1M -e 1M -n 3
	done
	for host in "${hosts[@]}"; do
		until_true has_sent_more "$host" 8
	done
	add_job
	finish_all
}

a_worker_that_starts_two_seconds_late_is_waited_for() {
	star
	describe_job 4 -- w0 w1 w2 w3
	next_epoch
	add_job
	for rank in 0 1 2; do
		start_rank "$rank" -d int32 -b 64K -e 64K -n 3
	done
	sleep 2 # what is tested, not a way of waiting for something
	start_rank 3 -d int32 -b 64K -e 64K -n 3
	finish_all
}

a_worker_that_dies_is_named_by_the_others() {
	star
	describe_job 4 -- w0 w1 w2 w3
	start_all -d int32 -b 1M -e 1M -n 100000 --timeout 1500
	until_true completed_more 1000
	kill -KILL "${worker[2]}"
	for rank in 0 1 3; do
		if wait "${worker[rank]}"; then return 1; fi
		grep -q "rank 2 missing" "$work/errors$rank"
	done
}

no_node_is_told_from_a_missing_rank() {
	star
	describe_job 4 -- w0 w1 w2 w3
	next_epoch
	start_rank 0 -d int32 -b 4 -e 4 --timeout 500
	if wait "${worker[0]}"; then return 1; fi
	grep -q "no node answered at 10.77.0.1 .*port unreachable" "$work/errors0"
}

run_rank_0() {
	on w0 timeout -s KILL 20 "$build/tally-perf" --job "$work/job" --rank 0 -d int32 \
		-b 1M -e 1M --timeout 3000 --congestion off 2>"$work/errors0"
}

# The bucket has tokens for the barrier before the first call. What comes then waits in the queue
# of w0's interface, until the socket has no room for more.
a_worker_whose_way_out_is_stuck_fails_in_time_and_sleeps_meanwhile() {
	local TIMEFORMAT='%R %U %S'
	star 0
	describe_job 4 -- w0 w1 w2 w3
	next_epoch && add_job
	for rank in 1 2 3; do
		start_rank "$rank" -d int32 -b 1M -e 1M
	done
	on w0 tc qdisc replace dev eth0 root tbf rate 1kbit burst 2000 limit 100000000
	{ time run_rank_0 || true; } 2>"$work/took"
	cat "$work/took"
	grep -q "for 3.0 s" "$work/errors0"
	on w0 tc -s -j qdisc show dev eth0 | jq -e '.[0].backlog > 200000 and .[0].drops == 0'
	awk -v slow="$slow" '{ exit $1 > 3 + 2 * slow || $2 + $3 > 0.3 * slow }' "$work/took"
}

a_payload_beyond_the_mtu_is_refused_with_what_fits() {
	star
	describe_job 4 payload=3392 -- w0 w1 w2 w3
	next_epoch
	start_rank 0 -d int32 -b 4 -e 4
	if wait "${worker[0]}"; then return 1; fi
	grep -q "MTU of 1500 of eth0: lower the job's payload to 1408" "$work/errors0"
}

reload_in_mid_job() { # SLOTS-STEP: how many more slots each time
	local reloads=0
	star
	describe_job 4 -- w0 w1 w2 w3
	start_all -d int32 -b 4M -e 4M -n 30 -w 0
	while kill -0 "${worker[0]}" 2>/dev/null && ((reloads < 5)); do
		until_true completed_more 2000
		reloads=$((reloads + 1))
		attach n0 --replace --slots $((4096 + reloads * $1))
	done
	((reloads >= 3))
	finish_all
}

a_node_reloaded_again_and_again_in_mid_job_loses_nothing() {
	reload_in_mid_job 0
	jq -se 'map(.node_reloads) | add == 0' "$work/rank0"
}

a_node_that_loses_its_slots_again_and_again_is_healed() {
	reload_in_mid_job 1
	jq -se 'map(.node_reloads) | add > 0' "$work/rank0"
}

other_traffic_passes_untouched() {
	star 0
	describe_job 4 -- w0 w1 w2 w3
	on w1 iperf3 -s -1 -B "$(bed addr w1)" >"$work/server" 2>&1 &
	until_true eval "on w1 ss -ltn | has :5201"
	start_all -d int32 -b 1M -e 1M -n 100
	# ping compares the payload that comes back, too.
	on w0 ping -f -c 2000 -s 1400 -q "$(bed addr w2)" >"$work/ping"
	on w0 iperf3 -c "$(bed addr w1)" -n 10M -J >"$work/iperf" || { cat "$work/server"; return 1; }
	finish_all
	grep ' 0% packet loss' "$work/ping"
	jq -e '.end.sum_sent.bytes >= 10000000' "$work/iperf"
	(($(count FOREIGN) > 4000))
}

detaching_leaves_nothing_behind() {
	star
	describe_job 4 -- w0 w1 w2 w3
	run_all -d int32 -b 4 -e 4 -n 1
	node n0 detach
	[[ ! -e $pin-n0 ]]
	for port in $(interfaces n0); do
		if on n0 ip -d link show dev "$port" | has prog/xdp; then return 1; fi
	done
}

facts the_very_first_packets_may_be_lost \
	a_worker_that_starts_two_seconds_late_is_waited_for \
	a_worker_that_dies_is_named_by_the_others \
	no_node_is_told_from_a_missing_rank \
	a_worker_whose_way_out_is_stuck_fails_in_time_and_sleeps_meanwhile \
	a_payload_beyond_the_mtu_is_refused_with_what_fits \
	a_node_reloaded_again_and_again_in_mid_job_loses_nothing \
	a_node_that_loses_its_slots_again_and_again_is_healed \
	other_traffic_passes_untouched \
	detaching_leaves_nothing_behind
