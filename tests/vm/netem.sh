#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: long and bad ways, made by the kernel's own emulator. Sums are exact, and the
# same on all workers, as if nothing had been in the way.
#
#   w0 ── netem ──┐
#   w1 ── netem ──┼── n0      both ways on every cable
#   w2 ── netem ──┘
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/../e2e/lib.sh"

# Each cable of the testbed is a namespace, with an interface for each of its ends.
ways=(w0-n0:w0 w0-n0:n0 w1-n0:w1 w1-n0:n0 w2-n0:w2 w2-n0:n0)

star_through() { # NETEM-OPTIONS...
	local way
	network <<-END
		host w0 w1 w2
		node n0
		link w0 n0
		link w1 n0
		link w2 n0
	END
	for way in "${ways[@]}"; do
		tc -n "$TALLY_TESTBED-${way%:*}" qdisc replace dev "${way#*:}" root netem limit 10000 "$@"
	done
	describe_job 4 -- w0 w1 w2
}

drops() {
	local way
	for way in "${ways[@]}"; do
		tc -n "$TALLY_TESTBED-${way%:*}" -s -j qdisc show dev "${way#*:}"
	done | jq -s '[.[][] | select(.kind == "netem").drops] | add'
}

exact() {
	run_all -d int32 --int-wild -b 4 -e 256K -f 65536 -n 2 -w 0
	run_all -d float32 --float-wild -b 4 -e 256K -f 65536 -n 2 -w 0
	run_all --verb barrier -n 3
}

exact_through() {
	star_through "$@"
	exact
}

ten_milliseconds_change_nothing() {
	exact_through delay 10ms
	# They were there: a round trip takes two of them.
	jq -e '.min_us > 20000' "$work/rank0"
}

# What pings see of the way between a worker and the node.
pings() { on w0 ping -q -c 100 -i 0.01 "$(bed addr n0 4)"; }

fifty_milliseconds_that_vary_change_nothing() {
	exact_through delay 50ms 10ms distribution normal
	# They do: the spread of round trips is milliseconds.
	pings | awk -F '[/ ]' '/^rtt/ { print; exit !($(NF - 1) > 2) }'
}

a_tenth_lost_is_sent_again() {
	exact_through delay 10ms loss 10%
	(($(drops) > 0))
}

losses_in_rows_are_sent_again() {
	exact_through delay 10ms loss gemodel 2% 30%
	(($(drops) > 0))
}

late_frames_change_nothing() {
	# Without a correlation: netem's pulls chances so far to their middle that hardly any frame waits.
	exact_through delay 10ms reorder 50%
	# Of pings that left at once, some came before others that had left earlier.
	on w0 ping -c 200 -l 50 -i 0.01 "$(bed addr n0 4)" |
		awk -F 'icmp_seq=' 'NF > 1 { if ($2 + 0 < last) late++; last = $2 + 0 } END { print late; exit !late }'
}

copies_change_nothing() {
	exact_through delay 10ms duplicate 20%
	(($(count DUPLICATE) > 0))
}

all_of_it_at_once_changes_nothing() {
	exact_through delay 20ms 10ms loss 1% duplicate 2% reorder 80%
	(($(drops) > 0))
}

facts ten_milliseconds_change_nothing \
	fifty_milliseconds_that_vary_change_nothing \
	a_tenth_lost_is_sent_again \
	losses_in_rows_are_sent_again \
	late_frames_change_nothing \
	copies_change_nothing \
	all_of_it_at_once_changes_nothing
