#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Three jobs borrow the slots of one inner node, which has an eighth of what they want, while
# packets are lost: all sums are exact on each worker, whoever has the slots.
#
#   w0 ─┐
#   w1 ─┴─ a0 ──┐      a0: 24 slots in a pool; the jobs' rings would have 3 x 64
#   w2 ─────────┼─ n0  the root: a ring for each
#   w3 ─────────┘
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

jobs=(1 2 3)

two_levels_with_a_pool() { # tally-node attach options...
	network <<-END
		host w0 w1 w2 w3
		node n0 a0
		link w0 a0 rate 1gbit loss 1
		link w1 a0 rate 1gbit loss 1
		link w2 n0 rate 1gbit loss 1
		link w3 n0 rate 1gbit loss 1
		link a0 n0 rate 1gbit loss 1
	END
	attach a0 --replace --pool 24 "$@"
}

# Their ranges of the pool begin at equal distances.
add_jobs() { # payload of each...
	local job
	for job in "${jobs[@]}"; do
		describe_job 4 window=32 payload="$1" -- w0 w1 w2 w3
		shift
		{
			sed "s/^job 1/job $job/; s/:400/:4${job}0/" "$work/description"
			echo "epoch 1"
		} >"$work/job$job"
		node a0 job add "$work/job$job" --below 0-1 --borrow "${by_hash:-$((8 * (job - 1)))}" &&
			node n0 job add "$work/job$job" --via 0-1="$(bed addr a0)" || return 1
	done
}

run_jobs() { # tally-perf arguments...
	local job rank pids=() code=0 pid
	for job in "${jobs[@]}"; do
		for rank in 0 1 2 3; do
			exec_on "w$rank" "$build/tally-perf" --job "$work/job$job" --rank "$rank" \
				--json --timeout 20000 "$@" \
				>"$work/said-$job-$rank" 2>"$work/errors-$job-$rank" &
			pids+=($!)
		done
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || code=$?
	done
	((code == 0)) || { cat "$work"/errors-*; return 1; }
	# Workers find wrong sums, and all would be made anew: none was wrong on the way either.
	jq -se 'all(.wrong == 0 and .corrupt == 0 and .chunks > 0) and length > 0' "$work"/said-*
}

sums_are_right_where_holders_give_way() {
	two_levels_with_a_pool
	add_jobs 1408 1408 1408
	run_jobs -d int32 -b 256K -e 256K -n 40 -w 0
	node a0 stats
	(($(count_on a0 SWAPPED) > 100 && $(count_on a0 SENT_UP) > 100))
	node a0 job list --json | jq -e 'all(.borrows)'
}

sums_are_right_where_a_hash_says_whose_slot_it_is() {
	local by_hash=hash
	two_levels_with_a_pool
	add_jobs 1408 1408 1408
	node a0 job list --json | jq -e 'all(.slot_count == 24)'
	run_jobs -d int32 -b 256K -e 256K -n 40 -w 0
	node a0 stats
	(($(count_on a0 SWAPPED) > 100 && $(count_on a0 SENT_UP) > 100))
}

# Frames of one job cannot carry the sums of another.
sums_are_right_where_payloads_differ() {
	two_levels_with_a_pool
	add_jobs 1408 704 1408
	run_jobs -d int32 -b 256K -e 256K -n 40 -w 0
	node a0 stats
	(($(count_on a0 SWAPPED) > 100 && $(count_on a0 REFUSED) > 100))
}

sums_are_right_where_who_comes_first_keeps_its_slot() {
	two_levels_with_a_pool --policy fcfs
	add_jobs 1408 1408 1408
	run_jobs -d int32 -b 256K -e 256K -n 40 -w 0
	node a0 stats
	(($(count_on a0 SWAPPED) == 0 && $(count_on a0 REFUSED) > 100))
}

sums_are_right_where_the_more_urgent_comes_first() {
	two_levels_with_a_pool --policy esa
	add_jobs 1408 1408 1408
	run_jobs -d int32 -b 256K -e 256K -n 40 -w 0
	node a0 stats
	(($(count_on a0 SWAPPED) > 0 && $(count_on a0 REFUSED) > 0))
}

new_programs_and_another_policy_keep_jobs_right() {
	two_levels_with_a_pool
	add_jobs 1408 1408 1408
	run_jobs -d int32 -b 256K -e 256K -n 60 -w 0 &
	local runs=$!
	until_true a_swap_was_seen
	attach a0 --replace --pool 24 --policy esa+stalled
	attach a0 --replace --pool 8
	attach a0 --replace --pool 0
	attach a0 --replace --pool 24
	wait "$runs"
}
a_swap_was_seen() { (($(count_on a0 SWAPPED) > 0)); }

facts sums_are_right_where_holders_give_way \
	sums_are_right_where_a_hash_says_whose_slot_it_is \
	sums_are_right_where_payloads_differ \
	sums_are_right_where_who_comes_first_keeps_its_slot \
	sums_are_right_where_the_more_urgent_comes_first \
	new_programs_and_another_policy_keep_jobs_right
