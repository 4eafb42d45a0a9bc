#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs share cables with others, and cables lose packets: how many chunks are in flight.
#
#   w0 ──┐
#        ├── n0      100 Mbit/s and a queue of about 250 packets at each end
#   w1 ──┘
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/fair_lib.sh
source scripts/fair_lib.sh

segment=1448 # bytes of TCP's data in a full segment
bits=$((100 * 1000 * 1000 / 8)) # bytes in a second

cables() { # OPTIONS of w0's and of w1's
	network <<-END
		host w0 w1
		node n0
		link w0 n0 rate 100mbit $1
		link w1 n0 rate 100mbit $2
	END
}
pair() { # [link options...]
	cables "$*" "$*"
	use_cubic w0
}

start_job() { start_job_of w0 w1 "$@"; } # NUMBER WINDOW tally-perf-arguments...
finish_jobs() {
	local said
	wait "${worker[@]}" || return 1
	worker=()
	for said in "$work"/out*; do
		jq -r '"# \(.iterations) calls, at most \(.max_us / 1000 | floor) ms, " +
			"\(.retransmitted) resent, window \(.window), \(.cuts) cuts"' "$said" >&3
	done
}
rate_of() { said_of "$1" '.bytes * .iterations / (.ended_s - .began_s) | floor'; }
has_completed() { (($(count COMPLETED) > $1)); }
is_between() { # PERCENT PERCENT PART OF
	echo "# $3 of $4: $((100 * $3 / $4)) %" >&3
	((100 * $3 >= $1 * $4 && 100 * $3 <= $2 * $4))
}

two_jobs_share_a_cable_and_waste_nothing() {
	local first second
	pair
	start_job 1 512 -s 7
	start_job 2 512 -s 7
	finish_jobs
	first=$(rate_of 1) second=$(rate_of 2)
	is_between 75 150 $((first + second)) "$bits" # one of them ends later, and has all of it then
	is_between 34 66 "$first" $((first + second)) # Jain's index is 0.9 at a third
	(($(said_of 1 .retransmitted) * 100 < $(said_of 1 .chunks)))
	(($(said_of 2 .retransmitted) * 100 < $(said_of 2 .chunks)))
}

# What a fixed window does: it fills the queue for good.
switched_off_it_wastes_what_the_queue_loses() {
	pair
	start_job 1 512 -s 3 --congestion off
	finish_jobs
	(($(said_of 1 .retransmitted) * 20 > $(said_of 1 .chunks)))
}

# Bytes of its frames: in the last ten seconds, for it needs some to find its part; in all.
tcp_settled() { jq "[.intervals[-10:][].sum.bytes] | add * $frame / $segment | floor" "$work/tcp"; }
tcp_bytes() { jq ".end.sum_received.bytes * $frame / $segment | floor" "$work/tcp"; }

# TCP comes to a queue that the job has filled. Bytes of TCP once it has settled, and of both: so the
# job has what TCP has not.
share_with_tcp() {
	local before
	pair
	tcp_listen w1
	start_job 1 512 -s 19
	until_true has_completed 4000
	before=$(count COMPLETED)
	tcp_flow w0 w1 16
	both=$((($(count COMPLETED) - before) * frame + $(tcp_bytes)))
	finish_jobs
	settled=$(tcp_settled)
}

# A job needs a processor twice for each chunk, and TCP for many segments at once: what others do at
# the machine takes from the job. So there are three tries.
beside_tcp_cubic_each_has_two_fifths() {
	local try both settled
	for ((try = 1; try <= 3; try++)); do
		((try == 1)) || { bed down && rm -rf "$pin"-*; }
		share_with_tcp
		is_between 75 110 "$both" $((16 * bits))
		! is_between 40 60 "$settled" $((10 * bits)) || return 0
	done
	return 1
}

rate_with_loss() { # PERCENT
	pair loss "$1" >&2
	start_job 1 128 -s 3 >&2
	finish_jobs >&2 || return 1
	rate_of 1
	said_of 1 '.max_us / .p50_us * 10 | floor' >"$work/slowest"
	bed down >&2
	rm -rf "$pin"-*
}

loss_by_chance_is_no_congestion() {
	local best some much
	best=$(rate_with_loss 0)
	is_between 75 100 "$best" "$bits"
	(($(cat "$work/slowest") <= 20))
	some=$(rate_with_loss 0.1)
	is_between 90 130 "$some" "$best" # above 100: others used the machine before
	(($(cat "$work/slowest") <= 20))
	much=$(rate_with_loss 1)
	is_between 75 130 "$much" "$best"
	(($(cat "$work/slowest") <= 20))
}

all_ranks_heard() { # WHAT of the output of each
	jq -es "length == 2 and all($1)" "$work"/out1.*
}
marks_are_heard_by_all() { # OPTIONS of w0's cable
	cables "$1" ''
	start_job 1 128 -s 2
	finish_jobs
	all_ranks_heard '.marked > 10 and .cuts > 5 and .retransmitted < .chunks / 100'
}

# The node ORs them into the sum.
marks_on_the_way_up_reach_all_ranks() { marks_are_heard_by_all 'mark-up 1'; }

# Whose copy of a result has one tells the others.
marks_on_the_way_down_reach_all_ranks() { marks_are_heard_by_all 'mark-down 1'; }

marks_reach_all_ranks_over_ipv6() {
	local family=6
	marks_are_heard_by_all 'mark-up 1 mark-down 1'
}

switched_off_packets_take_no_marks() {
	cables 'mark-up 100 mark-down 100' ''
	start_job 1 128 -s 1 --congestion off
	finish_jobs
	all_ranks_heard '.marked == 0 and .cuts == 0'
}

# 32 chunks fit the queue, and are more than the cable needs.
a_late_rank_is_no_congestion() {
	local before
	pair
	start_job 1 32 -s 5
	for _ in 1 2 3 4 5; do
		before=$(count COMPLETED)
		until_true has_completed $((before + 1000))
		kill -STOP "${worker[1]}"
		sleep 0.3 # what is tested: so late is the rank
		kill -CONT "${worker[1]}"
	done
	finish_jobs
	jq -e '.max_us > 250000 and .cuts == 0 and .window == 32' "$work/out1.0"
}

exec 3>&1
worker=()
facts two_jobs_share_a_cable_and_waste_nothing \
	switched_off_it_wastes_what_the_queue_loses \
	beside_tcp_cubic_each_has_two_fifths \
	loss_by_chance_is_no_congestion \
	marks_on_the_way_up_reach_all_ranks \
	marks_on_the_way_down_reach_all_ranks \
	marks_reach_all_ranks_over_ipv6 \
	switched_off_packets_take_no_marks \
	a_late_rank_is_no_congestion
