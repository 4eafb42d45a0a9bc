#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Ranks that disagree, runs that meet another run's leftovers, and versions that differ: whoever is
# concerned hears so within a second, in words that say what to do, and gets nobody else's data.
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

#   w0 ──┐
#   w1 ──┼── n0
#   w2 ──┤
#   w3 ──┘
star() {
	network <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0 rate 1gbit
		link w1 n0 rate 1gbit
		link w2 n0 rate 1gbit
		link w3 n0 rate 1gbit
	END
	describe_job 4 -- w0 w1 w2 w3
}

#   w0 ─┐
#   w1 ─┴─ a0 ──┐
#   w2 ─────────┼─ n0
#   w3 ─────────┘
tree() {
	network <<-END
		host w0 w1 w2 w3
		node n0 a0
		link w0 a0 rate 1gbit
		link w1 a0 rate 1gbit
		link w2 n0 rate 1gbit
		link w3 n0 rate 1gbit
		link a0 n0 rate 1gbit
	END
	add_job() {
		node a0 job add "$work/job" --below 0-1 >/dev/null &&
			node n0 job add "$work/job" --via 0-1="$(bed addr a0)" >/dev/null
	}
	describe_job 4 -- w0 w1 w2 w3
}

# Output in $work/said*, the process in worker[].
call_from() { # RANK JOB-FILE CALL...
	local rank=$1
	exec_on "${hosts[rank]}" "$build/tests/e2e/calls" "$2" "$rank" "${@:3}" \
		>"$work/said$rank" 2>&1 &
	worker[rank]=$!
}

# Since the last rank has begun; under load processes begin at different times.
within_a_second() {
	awk -v limit=$((1000 * slow)) '$1 > began { began = $1 } $2 > ended { ended = $2 }
		END { exit !(NR > 0 && ended < began + limit) }' "$work"/said?
}

ended_with() { # RANK CODE
	local code=0
	wait "${worker[$1]}" || code=$?
	((code == $2)) || { echo "rank $1 ended with code $code: $(cat "$work/said$1")"; return 1; }
}

failed_with() { # RANK ERRNO PATTERN: without "(this one)", where these words may be
	local error='' words=''
	ended_with "$1" 1 && read -r _ _ error words <"$work/said$1"
	words=$(sed -E 's/ \(this one( included)?\)//' <<<"$words")
	[[ $error == -$2 && $words =~ ^$3$ ]] || {
		echo "rank $1: $error $words"
		echo "is not: -$2 $3"
		return 1
	}
}

# The odd rank was the first in its slot, or another rank was: both ways to say so are right.
all_hear_both_calls() { # ODD-RANK ITS-WORDS WORDS-OF-THE-OTHERS
	local rank odd="rank $1 calls $2" others=0123
	local theirs="ranks? [${others/$1/}, ]+ calls? $3"
	for rank in ${4-0 1 2 3}; do
		failed_with "$rank" 71 \
			"ranks make different calls: ($theirs, $odd|$odd, $theirs)(, this rank $3)?"
	done
	within_a_second
}

# What one rank calls | what is said of that | what the others call | what is said of that
table() {
	cat <<-'END'
		allreduce:200|allreduce of 200 int32, sum|reduce:200|reduce of 200 int32 to rank 0, sum
		allreduce:9|allreduce of 9 int32, sum|broadcast:9:float32:sum:2|broadcast of 9 float32 from rank 2
		allreduce:200|allreduce of 200 int32, sum|reduce_scatter:50|reduce_scatter of 50 int32, sum
		all_gather:50|all_gather of 50 int32|allreduce:200|allreduce of 200 int32, sum
		barrier|barrier|all_gather:50|all_gather of 50 int32
		broadcast:4|broadcast of 4 int32 from rank 0|barrier|barrier
		allreduce:200|allreduce of 200 int32, sum|allreduce:200:int64|allreduce of 200 int64, sum
		allreduce:9:float32|allreduce of 9 float32, sum|allreduce:9|allreduce of 9 int32, sum
		allreduce:200|allreduce of 200 int32, sum|allreduce:200:int32:avg|allreduce of 200 int32, average
		reduce:9:int64:sum:1|reduce of 9 int64 to rank 1, sum|reduce:9:int64:sum:2|reduce of 9 int64 to rank 2, sum
		broadcast:9|broadcast of 9 int32 from rank 0|broadcast:9:int32:sum:3|broadcast of 9 int32 from rank 3
		allreduce:26:float32|allreduce of 26 float32, sum|allreduce:32:float32|allreduce of 32 float32, sum
		allreduce:90000|allreduce of 90000 int32, sum|allreduce:90001|allreduce of 90001 int32, sum
		allreduce:8 allreduce:900|allreduce of 8 int32, sum|allreduce:900 allreduce:8|allreduce of 900 int32, sum
		barrier allreduce:8|allreduce of 8 int32, sum|barrier barrier|barrier
	END
}

call_all() { # CALL...
	local rank
	for rank in 0 1 2 3; do
		call_from "$rank" "$work/job" "$@"
	done
}

each_row_of_the_table_is_told() { # ODD-RANK
	local odd_calls odd_words calls words rank rows=0
	while IFS='|' read -r odd_calls odd_words calls words; do
		next_epoch && add_job
		for rank in 0 1 2 3; do
			# shellcheck disable=SC2046
			call_from "$rank" "$work/job" \
				$( ((rank == $1)) && echo "$odd_calls" || echo "$calls")
		done
		all_hear_both_calls "$1" "$odd_words" "$words"
		rows=$((rows + 1))
	done < <(table)
	((rows == 15))
}

all_ranks_hear_who_calls_what() {
	star
	each_row_of_the_table_is_told 3
}

# An inner node has two calls in one slot, or sends up a sum that does not agree at the root.
all_ranks_hear_who_calls_what_in_a_tree() {
	tree
	each_row_of_the_table_is_told 1
	(($(count_on a0 PASSED_UP) > 0))
	each_row_of_the_table_is_told 3
}

# Rank 3's job file is another one than that of all others.
another_job_file_is_told() { # KEY VALUE OTHER-VALUE
	local rank
	describe_job 4 "$1=$2" -- w0 w1 w2 w3
	next_epoch && add_job
	sed "s/^$1 .*/$1 $3/" "$work/job" >"$work/job3"
	for rank in 0 1 2; do
		call_from "$rank" "$work/job" allreduce:8
	done
	call_from 3 "$work/job3" allreduce:8
	all_hear_both_calls 3 "the first call, with $1 $3" "the first call, with $1 $2"
}

each_difference_of_job_files_is_told() {
	another_job_file_is_told window 64 32
	another_job_file_is_told window 64 128
	another_job_file_is_told payload 1024 1408
	another_job_file_is_told payload 1024 64
}

all_ranks_hear_how_job_files_differ() {
	star
	each_difference_of_job_files_is_told
}

all_ranks_hear_how_job_files_differ_in_a_tree() {
	tree
	each_difference_of_job_files_is_told
}

# The others' barrier is a call like any other: it is not that of a rank that closes.
a_rank_that_closes_while_the_others_call_is_named() {
	local make calls words rank
	for make in star tree; do
		"$make"
		while IFS='|' read -r calls words; do
			next_epoch && add_job
			for rank in 0 1 2; do
				call_from "$rank" "$work/job" "$calls"
			done
			call_from 3 "$work/job"
			all_hear_both_calls 3 tally_close "$words" "0 1 2"
			ended_with 3 0
		done < <(echo "allreduce:8|allreduce of 8 int32, sum" && echo "barrier|barrier")
		bed down
		rm -rf "$pin"-*
	done
}

all_hear_that_the_epoch_was_used() {
	local rank
	for rank in 0 1 2 3; do
		failed_with "$rank" 116 "epoch $epoch of job 1 was used before, or another process runs\
 as rank $rank: give the job a new epoch on all ranks"
	done
	within_a_second
}

a_job_file_used_twice_fails_at_once() {
	local calls rank
	star
	# Of the first run the slots hold the opening, or no chunk of so early a number any more.
	for calls in allreduce:8 allreduce:1000000; do
		next_epoch && add_job
		call_all "$calls"
		for rank in 0 1 2 3; do
			ended_with "$rank" 0
		done
		call_all "$calls"
		all_hear_that_the_epoch_was_used
		refuses "job 1 is there already with epoch $epoch: give a new run another epoch" \
			node n0 job add "$work/job"
	done
}

completed_more() { (($(count COMPLETED) > $1)); }

a_rank_restarted_in_its_epoch_fails_at_once() {
	local rank
	star
	start_all -d int32 -b 1M -e 1M -n 100000 --timeout 1500
	until_true completed_more 1000
	kill -KILL "${worker[3]}"
	wait "${worker[3]}" || true
	call_from 3 "$work/job" allreduce:262144
	failed_with 3 116 "epoch 1 of job 1 was used before, or another process runs as rank 3: .*"
	within_a_second
	for rank in 0 1 2; do
		if wait "${worker[rank]}"; then return 1; fi
		grep -q "rank 3 missing" "$work/errors$rank"
	done
}

#   w0 ─┐      ┌─ w1      a job of w0 and w1, which n0 sums
#       a0 ── n0
#   w2 ─┘      └─ w3      a job of w2 and w3, which a0 sums
two_jobs_of_one_number_and_epoch_on_one_path_do_not_mix() {
	local node rank other=()
	network <<-END
		host w0 w1 w2 w3
		node n0 a0
		link w0 a0 rate 1gbit loss 0.1
		link w2 a0 rate 1gbit loss 0.1
		link a0 n0 rate 1gbit loss 0.1
		link w1 n0 rate 1gbit loss 0.1
		link w3 n0 rate 1gbit loss 0.1
	END
	describe_job 4 -- w2 w3
	sed "s/^service .*/service $(bed addr a0)/; \$a epoch 1" "$work/description" >"$work/other"
	describe_job 4 -- w0 w1
	start_all -d int32 -b 1M -e 1M -n 30
	[[ $(grep -E '^(job|epoch)' "$work/job") == $(grep -E '^(job|epoch)' "$work/other") ]]
	node a0 job add "$work/other" >/dev/null
	for rank in 0 1; do
		exec_on "w$((rank + 2))" "$build/tally-perf" --job "$work/other" --rank "$rank" \
			-d float32 -b 1M -e 1M -n 30 --timeout 10000 &
		other+=($!)
	done
	finish_all
	wait "${other[0]}"
	wait "${other[1]}"
	for node in n0 a0; do
		(($(count_on "$node" OTHER_ADDRESS) > 1000))
		(($(count_on "$node" CONFLICT) == 0 && $(count_on "$node" WRONG_EPOCH) == 0))
	done
}

job_number() { ctl --json job list "$1" | jq '.[0].id'; }

agents_do_not_number_jobs_alike() {
	local name
	agent_network <<-END
		host w0 w1
		node n0
		link w0 n0
		link w1 n0
	END
	for _ in first second; do
		rm -f "$work/state.json"
		start_agent
		for name in a b; do
			create_job "$name" 2
			job_number "$name"
			ctl job del "$name" >/dev/null
		done
		end_agent TERM
	done >"$work/numbers"
	cat "$work/numbers"
	(($(sort -u "$work/numbers" | wc -l) == 4))
	# Counting from 1 is not random, wherever a count goes on.
	awk '$1 < 1000 { small++ } END { exit small > 0 }' "$work/numbers"
}

# A contribution of rank 0 as version 1 had it; what comes back is printed in hex.
speak_version_1() { # HOST
	on "$1" python3 - "$(bed addr "$1")" "$(bed addr n0)" "$epoch" <<-'END'
		import socket, struct, sys
		message = struct.pack("<BBBBIHHIHBBBBBB4QQ", 0xa7, 1, 1, 0, 1, int(sys.argv[3]), 0, 0,
		                      0xffff, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0)
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.bind((sys.argv[1], 40000))
		s.connect((sys.argv[2], 31249))
		s.settimeout(5)
		s.send(message)
		print(s.recv(2000).hex())
	END
}

a_worker_of_version_1_is_told_the_nodes_version() {
	star
	next_epoch && add_job
	speak_version_1 w0 >"$work/answer"
	cat "$work/answer"
	# 64 bytes: magic, version, job 1.
	grep -qE '^a702.{4}01000000.{112}$' "$work/answer"
	(($(count OLD_VERSION) == 1))
}

facts all_ranks_hear_who_calls_what \
	all_ranks_hear_who_calls_what_in_a_tree \
	all_ranks_hear_how_job_files_differ \
	all_ranks_hear_how_job_files_differ_in_a_tree \
	a_rank_that_closes_while_the_others_call_is_named \
	a_job_file_used_twice_fails_at_once \
	a_rank_restarted_in_its_epoch_fails_at_once \
	two_jobs_of_one_number_and_epoch_on_one_path_do_not_mix \
	agents_do_not_number_jobs_alike \
	a_worker_of_version_1_is_told_the_nodes_version
