#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Clients that mean harm, or are broken, at each of tallyd's sockets. Those who behave do not
# notice, and when the others have gone nothing is left of them.
#
#   w0 ──┐
#        ├── n0 (tallyd)
#   w1 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

pair() {
	agent_network <<-END
		host w0 w1
		node n0
		link w0 n0 rate 50mbit
		link w1 n0 rate 50mbit
	END
	start_agent
	create_job train 2
	create_job later 2
	# Whatever is made once is there before anybody measures.
	join_all later w0 w1 -- "${small[@]}"
	joined_end
	until_true state_is later waiting
}

small=(-d int32 --int-wild -b 4 -e 16K -f 64 -n 3 -w 0)
load() { join_all train w0 w1 -- -d int32 -b 256K -e 256K -n 8 -w 0 -s "$1"; } # SECONDS

# In the background; returns when they have begun. Processes in hostile[].
attack() { # HOST hostile-arguments...
	local host=$1 log=$work/hostile.${#hostile[@]}
	shift
	: >"$log"
	exec_on "$host" "$build/tests/e2e/hostile" "$@" >"$log" 2>&1 &
	hostile+=($!)
	until_true grep -q there "$log" || { cat "$log"; return 1; }
}
call_off() { # some were sent away before
	kill "${hostile[@]}" 2>/dev/null || true
	wait "${hostile[@]}" || true
	hostile=()
}
all_are_sent_away() {
	local pid
	for pid in "${hostile[@]}"; do
		! kill -0 "$pid" 2>/dev/null || return 1
	done
}
hostile=()

files() { find "/proc/$daemon/fd" -mindepth 1 2>/dev/null | wc -l; }
memory() { awk '$1 == "VmRSS:" { print $2 }' "/proc/$daemon/status"; }
files_are_at_most() { (($(files) <= $1)); }
memory_is_below() { (($(memory) < $1)); }

# Forty questions; how many took longer than a second.
slow_answers() {
	local began slow=0
	for _ in {1..40}; do
		began=$(date +%s%N)
		timeout 10 "$build/tallyctl" --socket "$control" status >/dev/null || return 1
		(($(date +%s%N) - began < 1000000000)) || slow=$((slow + 1))
	done
	echo "$slow"
}

answers_in_time() {
	local slow
	slow=$(slow_answers)
	# This machine may have had something else to do once or twice.
	((slow <= 2)) || { echo "$slow of 40 took longer than a second"; return 1; }
}

# The counters of all rows, 1.1 MB for a moment, may move from a mapping of their own into the heap.
spare=2048

nothing_is_left() { # FILES MEMORY
	until_true files_are_at_most "$1"
	echo "memory: $2 KiB before, $(memory) KiB after"
	until_true memory_is_below $(($2 + spare))
}

# At 50 Mbit/s it lasts until it is told to end.
run_begins() {
	load 120
	another train 100
}
run_goes_on_and_others_join() {
	another train 100
	join_all later w0 w1 -- "${small[@]}"
	joined_end
}
run_ends() {
	ctl job del train
	wait "${trainer[@]}" || true
}

five_hundred_at_the_control_socket() {
	attack n0 "$control" 200 garbage
	attack n0 "$control" 100 say '{"do": "stat'
	attack n0 "$control" 100 say ''
	attack n0 "$control" 50 repeat $'{"do": "stats"}\n'
	attack n0 "$control" 50 repeat x
}

who_asks_is_answered_while_five_hundred_misuse_the_control_socket() {
	local files memory trainer
	pair
	run_begins
	trainer=("${worker[@]}")
	files=$(files) memory=$(memory)
	five_hundred_at_the_control_socket
	answers_in_time
	run_goes_on_and_others_join
	call_off
	answers_in_time
	nothing_is_left "$files" "$memory"
	run_ends
}

misuse_of_the_join_sockets() {
	local from where greeting=$'tally-join 4\njob train\nchallenge 00112233445566778899aabbccddeeff\n\n'
	for where in "n0 $join" "w0 $(bed addr n0 4)"; do
		from=${where%% *} where=${where#* }
		attack "$from" "$where" 100 garbage
		attack "$from" "$where" 60 say $'tally-join 4\njob train\nchallenge 1234'
		attack "$from" "$where" 60 say ''
		attack "$from" "$where" 20 repeat $'tally-join 2\njob train\ntoken 12\n\n'
		attack "$from" "$where" 20 repeat "$greeting"
		attack "$from" "$where" 20 repeat x
	done
}

who_joins_gets_a_place_while_five_hundred_misuse_the_join_sockets() {
	local files memory trainer
	pair
	run_begins
	trainer=("${worker[@]}")
	files=$(files) memory=$(memory)
	misuse_of_the_join_sockets
	answers_in_time
	run_goes_on_and_others_join
	# Nobody may stay who does not join.
	until_true all_are_sent_away
	hostile=()
	nothing_is_left "$files" "$memory"
	run_ends
}

# A list of all jobs has then 530 KB, more than the kernel takes for one who does not read.
many_jobs() {
	end_agent TERM
	jq -c '.jobs += [range(1000) as $n | .jobs[0] | .id = $n + 1 | .name = "\("many" * 15)\($n)"]' \
		"$work/state.json" >"$work/many.json"
	mv "$work/many.json" "$work/state.json"
	start_agent nice -n -10 "$build/tallyd" # two hundred of them take 3 s of a processor
}

peak() { awk '$1 == "VmHWM:" { print $2 }' "/proc/$daemon/status"; }

# Two hundred such lists would be 106 MB. All that nobody reads is 32 MiB at most.
who_ends_no_request_or_reads_no_answer_goes_in_time_and_takes_little() {
	local files memory
	pair
	many_jobs
	ctl job list >/dev/null
	files=$(files) memory=$(memory)
	echo 5 >"/proc/$daemon/clear_refs" # the peak is that from now on
	attack n0 "$control" 200 say $'{"do": "job-list"}\n'
	attack n0 "$control" 100 say '{"do": "stat'
	attack n0 "$control" 100 say ''
	attack n0 "$control" 20 repeat x
	answers_in_time
	slow=$((2 * slow)) until_true all_are_sent_away
	hostile=()
	until_true files_are_at_most "$files"
	told_off
	echo "memory: $memory KiB before, $(peak) KiB at the peak, $(memory) KiB after"
	(($(peak) < memory + (48 << 10)))
	until_true memory_is_below $((memory + (8 << 10))) # the heap has pieces of a list left
}

told_off() { has 'service=control times=.*the peer does not read' "$work/tallyd.log"; }
trace_is_off() {
	bpftool -j map dump pinned "$pin-n0/settings" |
		jq -e '.[0].formatted.value.trace_every == 0' >/dev/null
}

who_traces_and_does_not_read_is_sent_away() {
	local memory trainer
	pair
	run_begins
	trainer=("${worker[@]}")
	attack n0 "$control" 20 say $'{"do": "trace"}\n'
	until_true all_are_sent_away
	hostile=()
	told_off
	until_true trace_is_off
	another train 20000 # what is read for each sample has its place in the heap
	memory=$(memory)
	attack n0 "$control" 20 say $'{"do": "trace"}\n'
	answers_in_time
	until_true all_are_sent_away
	hostile=()
	until_true trace_is_off
	run_goes_on_and_others_join
	until_true memory_is_below $((memory + spare))
	run_ends
}

facts who_asks_is_answered_while_five_hundred_misuse_the_control_socket \
	who_joins_gets_a_place_while_five_hundred_misuse_the_join_sockets \
	who_ends_no_request_or_reads_no_answer_goes_in_time_and_takes_little \
	who_traces_and_does_not_read_is_sent_away
