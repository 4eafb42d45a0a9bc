#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The worker in Python, which was written from docs/protocol.md, and libtally understand each other.
#
#   w0 (Python) ──┐
#   w1 (C)      ──┼── n0      1 % of all frames lost, in both directions
#   w2 (Python) ──┤
#   w3 (C)      ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

export PYTHONDONTWRITEBYTECODE=1

star() {
	network <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0 rate 1gbit loss 1
		link w1 n0 rate 1gbit loss 1
		link w2 n0 rate 1gbit loss 1
		link w3 n0 rate 1gbit loss 1
	END
}

start_mixed() { # RANK worker.py-arguments...
	local rank=$1 program=examples/worker.py
	((rank % 2 == 0)) || program=tests/e2e/cworker.py
	exec_on "${hosts[rank]}" python3 "$program" --job-file "$work/job" --rank "$rank" \
		--timeout $((20 * slow)) "${@:2}" >"$work/rank$rank" 2>"$work/errors$rank" &
	worker[rank]=$!
}

# A rank ends with an error if an element is not what the inputs of all ranks give. What all ranks
# get is the same, bit by bit.
all_agree() { # CALL...
	local rank code=0 shared
	next_epoch && add_job
	for rank in 0 1 2 3; do
		start_mixed "$rank" --hash --root 1 "$@"
	done
	for rank in 0 1 2 3; do
		wait "${worker[rank]}" || code=1
		grep -E '^(allreduce|broadcast|all_gather) ' "$work/rank$rank" >"$work/hash$rank"
	done
	shared=$(printf '%s\n' "$@" | grep -cE '^(allreduce|broadcast|all_gather):')
	((code == 0)) && [[ $(wc -l <"$work/hash0") == "$shared" ]] &&
		cmp "$work/hash0" "$work/hash1" && cmp "$work/hash0" "$work/hash2" &&
		cmp "$work/hash0" "$work/hash3" && return
	tail -n 30 "$work"/rank? "$work"/errors?
	return 1
}

python_and_c_get_the_same_bits() {
	local calls=(barrier) kind type data verb
	for kind in float32:tame float32:tiny float32:wild float32:nonfinite int32:tame int32:wild \
		int64:wild; do
		type=${kind%:*} data=${kind#*:}
		for verb in allreduce reduce reduce_scatter; do
			calls+=("$verb:$type:2001:sum:$data" "$verb:$type:701:avg:$data")
		done
		for verb in broadcast all_gather; do
			calls+=("$verb:$type:701:sum:$data")
		done
	done
	for kind in int8:wild int8:tame uint8:wild int16:wild uint16:wild uint32:wild uint64:wild \
		bfloat16:{tame,wild,nonfinite} float16:{tame,wild,nonfinite} \
		float64:{tame,wild,nonfinite} halved:{tame,tiny,wild,nonfinite} \
		float32@20:tame bfloat16@9:tame float16@24:tame float64@-3:tame; do
		type=${kind%:*} data=${kind#*:}
		calls+=("allreduce:$type:501:sum:$data" "reduce_scatter:$type:301:avg:$data"
			"reduce:$type:99:sum:$data" "broadcast:$type:99:sum:$data")
	done
	star
	describe_job 4 -- w0 w1 w2 w3
	all_agree "${calls[@]}"
	# Calls of many windows: a chunk is sent as the result one window before says.
	describe_job 4 window=4 payload=192 -- w0 w1 w2 w3
	all_agree "${calls[@]}"
	(($(lost_on_links) > 0))
}

# The odd rank was the first in its slot, or another rank was.
python_names() { # ODD-RANK ITS-WORDS WORDS-OF-THE-OTHERS
	local rank one="rank $1 calls $2, .*; [0-3,-]+ $3, "
	local other="rank [0-3] calls $3, .*; $1 $2, "
	for rank in 0 2; do
		grep -E "ranks make different calls: ($one|$other)" "$work/errors$rank" && continue
		echo "rank $rank does not name rank $1: $(cat "$work/errors$rank")"
		return 1
	done
}

c_names() { # ODD-RANK
	grep -E "ranks make different calls: .*rank $1 calls" "$work/errors1" "$work/errors3"
}

python_and_c_name_a_rank_that_disagrees() {
	local odd rank call sum='\(sum\)'
	star
	describe_job 4 -- w0 w1 w2 w3
	for odd in 0 3; do
		next_epoch && add_job
		for rank in 0 1 2 3; do
			call=allreduce:float32:200
			((rank != odd)) || call=allreduce:int32:201
			start_mixed "$rank" barrier "$call"
		done
		for rank in 0 1 2 3; do
			if wait "${worker[rank]}"; then return 1; fi
		done
		python_names "$odd" "allreduce of 201 int32 $sum" "allreduce of 200 float32 $sum"
		c_names "$odd"
	done
}

python_and_c_join() { # CALL...
	local program code=0 pids=() pid
	for program in examples/worker.py tests/e2e/cworker.py; do
		exec_on "w${#pids[@]}" python3 "$program" --join train --agent "$(bed addr n0)" \
			--token-file "$work/train.token" "$@" >"$work/rank${#pids[@]}" 2>&1 &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || code=1
	done
	((code == 0)) || { cat "$work"/rank? "$work/tallyd.log"; return 1; }
}

python_and_c_join_a_job_of_an_agent() {
	agent_network <<-END
		host w0 w1
		node n0
		link w0 n0 rate 1gbit
		link w1 n0 rate 1gbit
	END
	start_agent
	create_job train 2
	# The second run finds the places of the first one free.
	for _ in first second; do
		python_and_c_join allreduce:float32:150 allreduce:int64:150 broadcast:int32:99
		until_true state_is train waiting
	done
}

says_answer() { # LINE...: what the worker in Python makes of them, in a run's answer
	python3 - "$@" <<-'END'
		import sys
		sys.path.insert(0, "examples")
		from tally_job import TallyError, parse_answer
		lines = ["rank 1", "nonce 00000000000000ff", "key none", *sys.argv[1:], "job 7",
		         "epoch 3", "window 8", "payload 192", "service 10.77.0.1",
		         "worker 10.77.1.1:40000", "worker 10.77.2.1:40000", ""]
		try:
		    job, key = parse_answer(lines)
		    print(job.number, job.rank, job.nonce, len(job.workers), key)
		except TallyError as error:
		    print(error)
	END
}

# Of a cluster: who else may be asked, and that a root is one of several.
python_knows_what_it_may_ignore_in_an_answer() {
	[[ $(says_answer) == '7 1 255 2 none' ]]
	[[ $(says_answer 'other 10.77.0.2' 'other fd77::2') == '7 1 255 2 none' ]]
	says_answer 'roots 2' 'which 1' 'share 800' | has 'several roots, and this worker knows one only'
	says_answer 'sealed true' | has 'the job is sealed'
	says_answer 'frob 1' | has 'no such key: frob'
}

python_makes_and_reads_the_test_vectors() {
	python3 tests/e2e/vectors.py docs/vectors.md
}

facts python_makes_and_reads_the_test_vectors python_knows_what_it_may_ignore_in_an_answer \
	python_and_c_get_the_same_bits \
	python_and_c_name_a_rank_that_disagrees \
	python_and_c_join_a_job_of_an_agent
