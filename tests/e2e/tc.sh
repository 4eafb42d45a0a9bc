#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Ports that XDP cannot serve are served by TC, beside those that it can.
#
#   w0 ──┐      native XDP
#   w1 ──┼── n0      TC: another agent holds the port's XDP hook by a BPF link
#   w2 ──┘      TC: it is asked for
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

star() {
	network <<-END
		host w0 w1 w2
		node n0
		link w0 n0 rate 1gbit loss ${1-1}
		link w1 n0 rate 1gbit loss ${1-1}
		link w2 n0 rate 1gbit loss ${1-1}
	END
	node n0 detach
}

other() { on n0 "$build/tally-node" "$@" --pin "$pin-other"; }

# The other agent is a Tally node as well, which has no jobs and passes all. n0's port to w2 is
# attached alone at first, since a mode is for all ports that are named.
three_ways() {
	star "$@"
	other attach w1 --mode native
	node n0 attach w2 --mode tc >"$work/attached"
	node n0 attach w0 w1 w2 --replace >>"$work/attached"
	cat "$work/attached"
	grep -qx 'w2: tc' "$work/attached"
	grep -qx 'w0: native' "$work/attached"
	grep -q '^w1: tc (not native: native: .*busy.*; generic: another XDP program' "$work/attached"
}

qdiscs() { on n0 tc qdisc show | grep -c clsact; }

check() {
	run_all -d int32 --int-wild -b 4 -e 256K -f 64 -n 3
	run_all -d float32 --float-wild -b 4 -e 256K -f 64 -n 3
	run_all --verb reduce -d int32 -b 4 -e 64K -f 64 -n 3
	run_all --verb reduce_scatter -d float32 -b 4 -e 64K -f 64 -n 3
	run_all --verb all_gather -d int64 -b 8 -e 64K -f 64 -n 3
}

one_job_goes_over_ports_of_both_kinds() {
	local family
	three_ways
	for family in 4 6; do
		describe_job "$family" window=64 -- w0 w1 w2
		check
	done
	(($(count COMPLETED) > 0 && $(count NO_CHILD) == 0 && $(count NO_GROUP) == 0))
	(($(count FANNED_OUT) >= 3 * $(count COMPLETED)))
	for host in w0 w1 w2; do
		on "$host" nstat -az UdpInCsumErrors Udp6InCsumErrors | awk '/Csum/ { bad += $2 }
			END { exit bad }'
	done
}

large_packets_go_by_tc_too() {
	local family
	network --mode tc <<-END
		host w0 w1 w2
		node n0
		link w0 n0 mtu 3500 rate 1gbit loss 0.5
		link w1 n0 mtu 3500 rate 1gbit loss 0.5
		link w2 n0 mtu 3500 rate 1gbit loss 0.5
	END
	describe_job 4 payload=3392 -- w0 w1 w2
	check
}

# Batches of a sender on the same machine arrive whole: workers must notice, and send such no more
# but to try the path now and then; and their checksums are not made yet.
senders_whose_frames_are_not_finished_are_served() {
	local host
	network --mode tc <<-END
		host w0 w1 w2
		node n0
		link w0 n0 plain
		link w1 n0 plain
		link w2 n0 plain
	END
	for host in w0 w1 w2; do
		on "$host" ethtool -K eth0 tx on tx-udp-segmentation on >/dev/null
		on n0 ethtool -K "$host" tx off >/dev/null
	done
	describe_job 4 -- w0 w1 w2
	check
	(($(count COALESCED) > 0))
	run_all -d int32 -b 1M -e 1M -n 20
	for rank in 0 1 2; do
		jq -e '.retransmitted * 5 < .chunks' "$work/rank$rank"
	done
	for host in w0 w1 w2; do
		on "$host" nstat -az UdpInCsumErrors | has 'UdpInCsumErrors *0 '
	done
}

#   w0 ─┐
#   w1 ─┴─ a0 ───── n0 ── w2      a0: all by TC; n0: its port to a0 by TC
sums_are_made_at_two_levels() {
	network <<-END
		host w0 w1 w2
		node n0 a0
		link w0 a0 rate 1gbit loss 0.5
		link w1 a0 rate 1gbit loss 0.5
		link a0 n0 rate 1gbit loss 0.5
		link w2 n0 rate 1gbit loss 0.5
	END
	node a0 detach
	attach a0 --mode tc
	node n0 detach
	node n0 attach a0 --mode tc
	attach n0 --replace
	add_job() {
		node a0 job add "$work/job" --below 0-1 &&
			node n0 job add "$work/job" --via 0-1="$(bed addr a0)"
	}
	describe_job 4 -- w0 w1 w2
	check
	(($(count_on a0 SENT_UP) > 1000 && $(count_on a0 SENT_DOWN) > 1000))
	attach a0 --replace
	check
}

# w1 is behind a tunnel, which has no XDP of its own, and whose frames' sums the kernel knows.
tunnel() { # HOST OWN-ADDRESS OTHER-ADDRESS INNER-ADDRESS MAC OTHER-INNER OTHER-MAC
	on "$1" ip link add vx0 address "$5" type vxlan id 7 dstport 4789 local "$2" remote "$3" udpcsum
	on "$1" ip addr add "$4/24" dev vx0
	on "$1" ip link set vx0 up
	on "$1" ip neigh add "$6" lladdr "$7" dev vx0
}

a_way_that_no_result_would_take_is_refused_and_others_work() {
	local near far mode
	network <<-END # generic XDP does not see what the testbed's cables hand over
		host w0 w1 w2
		node n0
		link w0 n0 plain
		link w1 n0 plain
		link w2 n0 plain
	END
	node n0 detach
	far=$(bed addr w1)
	near=${far%.*}.254
	tunnel n0 "$near" "$far" 10.99.0.254 02:00:00:00:99:fe 10.99.0.1 02:00:00:00:99:01
	tunnel w1 "$far" "$near" 10.99.0.1 02:00:00:00:99:01 10.99.0.254 02:00:00:00:99:fe
	on w1 ip route replace "$(bed addr n0)" via 10.99.0.254 dev vx0
	describe_job 4 payload=1344 -- w0 w1 w2
	sed -i "s/^worker $far:/worker 10.99.0.1:/" "$work/description"
	next_epoch
	node n0 attach vx0 --mode tc
	node n0 attach vx0 w0 w2 --replace
	refuses "vx0 cannot send frames that native XDP on w" \
		node n0 job add "$work/job"
	for mode in generic tc; do
		node n0 detach
		node n0 attach w0 w2 vx0 --mode "$mode"
		check
	done
}

completed_more() { (($(count COMPLETED) > $1)); }

programs_are_replaced_in_mid_job_and_nothing_is_lost() {
	local reloads=0
	three_ways 0.1
	describe_job 4 -- w0 w1 w2
	start_all -d int32 -b 4M -e 4M -n 25
	while kill -0 "${worker[0]}" 2>/dev/null && ((reloads < 5)); do
		until_true completed_more $(($(count COMPLETED) + 2000))
		reloads=$((reloads + 1))
		node n0 attach w0 w1 w2 --replace >/dev/null
	done
	((reloads >= 3))
	finish_all
	jq -se 'map(.node_reloads) | add == 0' "$work/rank0"
}

other_traffic_passes_untouched() {
	three_ways 0
	describe_job 4 -- w0 w1 w2
	on w1 iperf3 -s -1 -B "$(bed addr w1)" >"$work/server" 2>&1 &
	until_true eval "on w1 ss -ltn | has :5201"
	start_all -d int32 -b 1M -e 1M -n 50
	on w0 ping -f -c 2000 -s 1400 -q "$(bed addr w2)" >"$work/ping"
	on w2 iperf3 -c "$(bed addr w1)" -n 10M -J >"$work/iperf" || { cat "$work/server"; return 1; }
	finish_all
	grep ' 0% packet loss' "$work/ping"
	jq -e '.end.sum_sent.bytes >= 10000000' "$work/iperf"
}

detaching_leaves_no_qdisc_that_was_made_for_it() {
	three_ways 0
	(($(qdiscs) == 2))
	node n0 detach
	(($(qdiscs) == 0))
	[[ ! -e $pin-n0 ]]
	on n0 ip -d link show dev w1 | has prog/xdp # the other agent's
	other detach
}

reloaded() { grep -q 'configuration reloaded' "$work/tallyd.log"; }
modes() { ctl --json status | jq -c '[.ports[] | [.name, .mode]] | sort'; }

tallyd_serves_by_tc_and_says_why() {
	agent_network <<-END
		host w0 w1 w2
		node n0
		link w0 n0 rate 1gbit loss 0.1
		link w1 n0 rate 1gbit loss 0.1
		link w2 n0 rate 1gbit loss 0.1
	END
	other attach w1 --mode native
	sed -i '/- w2$/d' "$work/tallyd.yaml"
	start_agent
	sed -i 's/- w1$/&\n  - {name: w2, mode: tc}/' "$work/tallyd.yaml"
	kill -HUP "$daemon" # it has given up what it needed to begin with
	until_true reloaded
	[[ $(modes) == '[["w0","native"],["w1","tc"],["w2","tc"]]' ]]
	ctl --json status | jq -e '.ports[] | select(.name == "w1").why | test("native: .*generic: ")'
	create_job train 3
	join_all train w0 w1 w2 -- -d float32 --float-wild -b 256K -e 256K -n 8 -w 0 -s $((12 * slow))
	another train 200
	end_agent KILL
	start_agent
	grep -q 'mode=tc' "$work/tallyd.log"
	[[ $(modes) == '[["w0","native"],["w1","tc"],["w2","tc"]]' ]]
	another train 200
	end_agent TERM
	start_agent "$build/next/tallyd" # with other programs, as an upgrade brings
	grep -q 'programs=upgraded' "$work/tallyd.log"
	another train 200
	joined_end
	other detach
}

facts one_job_goes_over_ports_of_both_kinds \
	large_packets_go_by_tc_too \
	senders_whose_frames_are_not_finished_are_served \
	sums_are_made_at_two_levels \
	a_way_that_no_result_would_take_is_refused_and_others_work \
	programs_are_replaced_in_mid_job_and_nothing_is_lost \
	other_traffic_passes_untouched \
	detaching_leaves_no_qdisc_that_was_made_for_it \
	tallyd_serves_by_tc_and_says_why
