#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Every collective, every type, at every loss rate: exact integers, floats within their bound
# of a float64 reference, and the same bits on all workers.
#
#   w0 ──┐
#   w1 ──┼── n0      1 Gbit/s, frames lost on the way in both directions
#   w2 ──┤
#   w3 ──┘
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

star() { # LINK-OPTIONS...
	network <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0 rate 1gbit $*
		link w1 n0 rate 1gbit $*
		link w2 n0 rate 1gbit $*
		link w3 n0 rate 1gbit $*
	END
}

all_verbs_and_types() {
	local verb type
	for verb in allreduce reduce broadcast reduce_scatter all_gather; do
		for type in int32 int64 float32; do
			run_all --verb "$verb" -d "$type" -b 4 -e 1M -f 16 -n 2 -w 1 || {
				echo "$verb of $type failed"
				return 1
			}
		done
	done
	run_all --verb barrier -n 50
	jq -se 'map(.spilled == 0) | all' "$work"/rank?
}

all_collectives_at_loss() {
	star loss "$1"
	describe_job 4 -- w0 w1 w2 w3
	all_verbs_and_types
	# The loss was real.
	[[ $1 == 0 ]] || (($(lost_on_links) > 0))
	(($(count COMPLETED) > 1000))
}

collectives_are_exact_without_loss() { all_collectives_at_loss 0; }
collectives_are_exact_at_0_1_percent_loss() { all_collectives_at_loss 0.1; }
collectives_are_exact_at_1_percent_loss() { all_collectives_at_loss 1; }
collectives_are_exact_at_5_percent_loss() { all_collectives_at_loss 5; }

floats_of_all_magnitudes_and_kinds_arrive() {
	star loss 1
	describe_job 4 -- w0 w1 w2 w3
	run_all -d float32 -b 4 -e 256K -f 8 -n 3 --float-wild
	run_all -d float32 -b 4 -e 256K -f 8 -n 3 --nonfinite
	run_all -d float32 -o avg -b 4 -e 256K -f 8 -n 3
	run_all -d int32 -o avg -b 4 -e 256K -f 8 -n 3
}

# Their sums need the wide form, which is two chunks for each narrow one, in a round of its own.
integers_of_the_full_range_arrive() {
	local verb
	star loss 2
	describe_job 4 -- w0 w1 w2 w3
	for verb in allreduce reduce reduce_scatter; do
		run_all --verb "$verb" -d int32 --int-wild -b 4 -e 256K -f 8 -n 3
		run_all --verb "$verb" -d int64 --int-wild -b 8 -e 256K -f 8 -n 3
	done
	(($(lost_on_links) > 100))
}

# All types but those above: what fits, and what wraps or is of all magnitudes; each verb.
numbers_of_all_types_arrive() {
	local type verb wild
	star loss 1
	describe_job 4 -- w0 w1 w2 w3
	for type in int8 int16 uint8 uint16 uint32 uint64 bfloat16 float16 float64; do
		wild=--int-wild
		[[ $type != *float* ]] || wild=--float-wild
		run_all -d "$type" -b 1 -e 256K -f 64 -n 3
		run_all -d "$type" "$wild" -o avg -b 1 -e 256K -f 64 -n 3
		for verb in reduce reduce_scatter broadcast all_gather; do
			run_all --verb "$verb" -d "$type" "$wild" -b 64K -e 64K -n 2
		done
		[[ $type != *float* ]] || run_all -d "$type" --nonfinite -b 4K -e 256K -f 64 -n 3
	done
	(($(lost_on_links) > 100))
}

# 16 bits an element: within the bound, and as what the call before has lost goes with it.
halved_floats_arrive_and_so_does_what_they_lose() {
	local verb
	star loss 1
	describe_job 4 -- w0 w1 w2 w3
	run_all -d halved -b 4 -e 256K -f 16 -n 3
	run_all -d halved -o avg --float-wild -b 4 -e 256K -f 16 -n 3
	run_all -d halved --nonfinite -b 4K -e 256K -f 64 -n 3
	for verb in allreduce reduce reduce_scatter; do
		run_all --verb "$verb" -d halved --feedback -b 4 -e 256K -f 64 -n 8
		run_all --verb "$verb" -d halved --feedback --nonfinite -o avg -b 64K -e 64K -n 8
	done
	for verb in reduce reduce_scatter broadcast all_gather; do
		run_all --verb "$verb" -d halved --float-wild -b 64K -e 64K -n 2
	done
	(($(lost_on_links) > 100))
}

# But for those whose scale was guessed wrong.
halved_floats_take_half_the_packets() {
	local chunks
	star
	describe_job 4 -- w0 w1 w2 w3
	run_all -d float32 -b 1M -e 1M -n 4
	chunks=$(jq '.chunks - .redone' "$work/rank0")
	run_all -d halved -b 1M -e 1M -n 4
	jq -e --argjson chunks "$chunks" '(.chunks - .redone) / $chunks | . > 0.49 and . < 0.51' \
		"$work/rank0"
}

a_fixed_point_is_exact_and_says_what_does_not_fit() {
	local type verb rank
	star loss 1
	describe_job 4 -- w0 w1 w2 w3
	for type in float32 bfloat16 float16 float64; do
		run_all -d "$type" --point 30 -b 8 -e 256K -f 64 -n 3
		run_all -d "$type" --point 9 -o avg -b 8 -e 256K -f 64 -n 3
	done
	for verb in reduce reduce_scatter broadcast all_gather; do
		run_all --verb "$verb" -d float32 --point 23 -b 64K -e 64K -n 2
	done
	start_all -d float32 --point 23 --nonfinite -b 256K -e 256K -n 1 -w 0
	if finish_all; then return 1; fi
	for rank in 0 1 2 3; do
		grep -E "in\[[0-9]+\] does not fit: \|x\| must be below 2\^37, with point 23 and 4 ranks" \
			"$work/errors$rank"
	done
}

# Each size comes twice; the wrong buffer, or the wrong part of it, would be a wrong result.
all_verbs_work_in_place() {
	local verb
	star loss 1
	describe_job 4 -- w0 w1 w2 w3
	for verb in allreduce reduce broadcast reduce_scatter all_gather; do
		run_all --verb "$verb" --in-place -b 4 -e 1M -f 16 -n 3 -w 1
		jq -se 'length == 10 and all(.wrong == 0 and .cpu_s > 0 and .slow_calls < 3) and
			map(.in_place) == [range(5) | false, true]' "$work/rank1"
	done
	run_all --in-place --no-check -d float32 -b 4K -e 4K -n 300
	jq -se 'map([.in_place, .iterations]) == [[false, 300], [true, 300]]' "$work/rank0"
}

the_table_is_that_of_nccl_tests() {
	star
	describe_job 4 -- w0 w1 w2 w3
	next_epoch && add_job
	for rank in 1 2 3; do
		exec_on "${hosts[rank]}" "$build/tally-perf" --job "$work/job" --rank "$rank" --in-place \
			-e 128 -n 3 &
	done >"$work/others"
	on w0 "$build/tally-perf" --job "$work/job" --rank 0 --in-place -e 128 -n 3 >"$work/table"
	wait
	cat "$work/table"
	grep -E '^# +out-of-place +in-place$' "$work/table"
	grep -E '^# +size +count +type +redop +root( +time +algbw +busbw +#wrong){2} ' "$work/table"
	grep -Fx '# Out of bounds values : 0 OK' "$work/table"
	# size, count, type, redop, root; time, algbw, busbw, #wrong, twice; busbw is 1.5 times algbw.
	awk '!/^#/ { n++; sum += $8 + $12
			bad += NF != 19 || $9 || $13 || $5 != -1 || $1 != 4 * $2 ||
				$8 > 1.5 * $7 + 0.0002 || $12 < 1.5 * $11 - 0.0002 }
		/^# Avg bus bandwidth    : / { average = $NF }
		END { print n, bad, sum / 6, average; exit bad || n != 3 || average < sum / 6 - 0.0001 ||
			average > sum / 6 + 0.0001 }' "$work/table"
}

copies_and_late_frames_change_nothing() {
	star dup 3 reorder 3 loss 0.5
	describe_job 4 -- w0 w1 w2 w3
	all_verbs_and_types
	bed status --json | jq -e '[.links[].up | .duplicated, .reordered] | min > 0'
}

# "ELEMENTS PRIORITY" of each contribution that leaves w0 while a program with a job of its own runs.
priorities_of() { # UNTIL-CONDITION PROGRAM...
	local listener
	: >"$work/frames"
	exec_on w0 python3 tests/e2e/joiner.py listen eth0 >"$work/frames" &
	listener=$!
	until_true grep -q there "$work/frames"
	next_epoch && add_job
	exec_on w0 "${@:2}" --job "$work/job" --rank 0 >"$work/said" 2>"$work/errors0" &
	worker=("$!")
	until_true "$1" || { cat "$work/errors0"; return 1; }
	kill "${worker[0]}" 2>/dev/null || true
	wait "${worker[0]}" 2>/dev/null || true
	kill "$listener"
	wait "$listener" 2>/dev/null || true
	PYTHONDONTWRITEBYTECODE=1 python3 tests/e2e/priorities.py "$work/frames" >"$work/priorities"
}
has_ended() { ! kill -0 "${worker[0]}" 2>/dev/null; }
first_priority_is() { # PRIORITY tally-perf-arguments...
	priorities_of has_ended "$build/tally-perf" -b 4K -e 4K -n 1 -w 0 "${@:2}"
	[[ $(sed -n '2s/.* //p' "$work/priorities") == "$1" ]] || { cat "$work/priorities"; return 1; }
}
has_20_steps() {
	PYTHONDONTWRITEBYTECODE=1 python3 tests/e2e/priorities.py "$work/frames" >"$work/priorities"
	(($(grep -c '^1290 ' "$work/priorities") > 20 * 4))
}

# Before anything is measured, a job communicates as much as it computes (client/priority.h).
programs_say_layers_and_remaining_time() {
	network <<-END
		host w0
		node n0
		link w0 n0
	END
	describe_job 4 -- w0
	first_priority_is 149
	first_priority_is 232 --layers 8 --remaining 1
	first_priority_is 144 --layer 7 --layers 8
	[[ -r /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ]] ||
		{ echo "SKIP train: no data set"; return 0; }
	priorities_of has_20_steps "$build/train"
	# The second layer is started right behind the first: half its weight is 8 less, and what was
	# measured in between may add to that.
	awk '$1 == 100480 { first = $2 } $1 == 1290 { n++; lower += first - $2 >= 7; less += first - $2 }
		END { print n, lower, less / n; exit !(n > 80 && lower == n && less / n < 11) }' \
		"$work/priorities"
}

facts collectives_are_exact_without_loss \
	collectives_are_exact_at_0_1_percent_loss \
	collectives_are_exact_at_1_percent_loss \
	collectives_are_exact_at_5_percent_loss \
	floats_of_all_magnitudes_and_kinds_arrive \
	integers_of_the_full_range_arrive \
	numbers_of_all_types_arrive \
	halved_floats_arrive_and_so_does_what_they_lose \
	halved_floats_take_half_the_packets \
	a_fixed_point_is_exact_and_says_what_does_not_fit \
	all_verbs_work_in_place \
	the_table_is_that_of_nccl_tests \
	copies_and_late_frames_change_nothing \
	programs_say_layers_and_remaining_time
