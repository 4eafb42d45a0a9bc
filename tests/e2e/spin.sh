#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Who waits for small calls looks for results before it sleeps (client/spin.h): calls take less
# time, and who waits for a late rank sleeps as before. Both sides in turn, so that what else the
# machine does is the same for both.
#
#   w0 ──┐
#   w1 ──┼── n0      four workers, bare cables
#   w2 ──┤
#   w3 ──┘
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
exec 3>&1

rounds=15	# at most: of a machine that others use, some are lost to them
most=0.85	# of the time of those who sleep at once
wait_s=2	# for the late rank
wait_ms=60	# of processor time more, at most

star() {
	network <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0
		link w1 n0
		link w2 n0
		link w3 n0
	END
}

# The figure of a run is in $figure: a shell of its own would not count epochs.

time_calls() { # SPIN: the median of calls of 1 KiB in microseconds, the best of ranks
	run_all --spin "$1" --no-check -b 1K -e 1K -n 2000 -w 100
	figure=$(jq -s 'map(.p50_us) | min' "$work"/rank?)
}

are_quicker() {
	jq -ne --argjson most "$most" '[$ARGS.positional[] | tonumber] |
		length > 0 and (.[length / 2:] | min) <= (.[:length / 2] | min) * $most
		' --args "${sleeps[@]}" "${looks[@]}"
}

# The least median of all rounds: what another process did meanwhile only adds to one.
small_calls_take_less_time() {
	local round sleeps=() looks=()
	star
	describe_job 4 -- w0 w1 w2 w3
	for ((round = 0; round < rounds; round++)); do
		! are_quicker || break
		time_calls 0
		sleeps+=("$figure")
		time_calls auto
		looks+=("$figure")
	done
	echo "# us of 1 KiB: who sleeps at once ${sleeps[*]}; who looks ${looks[*]}" >&3
	are_quicker
}

ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; } # of a process: user and system

is_there() { on w0 ss -Huna "sport = :40000" | has .; }

# Rank 0 waits in a barrier, and rank 1 has not come. In milliseconds of processor time.
time_waiting() { # SPIN
	local before after
	next_epoch
	add_job
	start_rank 0 --spin "$1" --verb barrier -n 1 -w 0
	until_true is_there
	before=$(ticks "${worker[0]}")
	sleep "$wait_s" # what is measured, not a way of waiting for something
	after=$(ticks "${worker[0]}")
	start_rank 1 --spin "$1" --verb barrier -n 1 -w 0
	finish_all
	figure=$(((after - before) * 1000 / $(getconf CLK_TCK)))
}

who_waits_for_a_late_rank_sleeps() {
	local sleeps looks
	star
	describe_job 4 -- w0 w1
	time_waiting 0
	sleeps=$figure
	time_waiting auto
	looks=$figure
	echo "# ms of processor time in ${wait_s} s: who sleeps at once $sleeps, who looks $looks" >&3
	((looks <= sleeps + wait_ms * slow))
}

a_wrong_time_is_refused_in_words() {
	star
	describe_job 4 -- w0
	next_epoch
	add_job
	start_rank 0 --spin never
	! wait "${worker[0]}" && has "TALLY_SPIN: 'never': microseconds, 0 to 1000000, or 'auto'" "$work/errors0"
}

facts small_calls_take_less_time who_waits_for_a_late_rank_sleeps a_wrong_time_is_refused_in_words
