#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Workers with a secret find out what a node adds wrong; nodes go on just adding.
#
#   w0 ──┐
#   w1 ──┼── n0      n0 has the data plane, or a root that adds wrong (tests/e2e/liar.c)
#   w2 ──┘
#
#   w0 ──┐
#   w1 ──┼── n1 ── n0      n0 has an agent; n1, on the way, answers in its place
#   w2 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

star() { # COMMAND LINK-OPTIONS...
	"$1" <<-END
		host w0 w1 w2
		node n0
		link w0 n0 rate 1gbit ${*:2}
		link w1 n0 rate 1gbit ${*:2}
		link w2 n0 rate 1gbit ${*:2}
	END
}
cables() { cat >"$work/topology" && bed up "$work/topology"; }

seal() {
	echo "secret $(openssl rand -hex 16)" >>"$work/description"
	rm -f "$work/job"
	umask 077 # from now on job files have a secret
}

# No node may know the secret.
add_job() {
	if grep -q '^secret' "$work/job"; then
		! node n0 job add "$work/job" 2>"$work/refused" || return 1
		has "no node may know it" "$work/refused" || return 1
	fi
	sed 's/^secret .*/secret -/' "$work/job" >"$work/node-job"
	node n0 job add "$work/node-job" >/dev/null
}

liar() { # NODE
	exec_on "$1" "$build/tests/e2e/liar" "$(bed addr n0)" "$epoch" "${#hosts[@]}" \
		>"$work/liar" 2>&1 &
	liar=$!
	until_true has there "$work/liar" || { cat "$work/liar"; return 1; }
}

# Each rank's exit code and words; nobody waits for a timeout.
ranks_end_with() { # CODE WORDS FILE-OF-ERRORS...
	local wanted=$1 words=$2 i code begun=$SECONDS
	shift 2
	for i in "${!worker[@]}"; do
		code=0
		wait "${worker[i]}" || code=$?
		cat "$1"
		((code == wanted)) || code=-1
		has -- "$words" "$1" || code=-1
		((code >= 0)) || { echo "$1: not code $wanted and '$words'"; break; }
		shift
	done
	kill "$liar"
	wait "$liar" || true
	((code >= 0 && SECONDS - begun < 9))
}
all_end_with() { # CODE WORDS tally-perf-arguments...
	local rank
	next_epoch
	liar n0 || return 1
	for rank in "${!hosts[@]}"; do
		start_rank "$rank" "${@:3}"
	done
	ranks_end_with "$1" "$2" "$work"/errors{0,1,2}
}

one_call=(-d int32 -b 128 -e 128 -n 1 -w 0)
perf_wrong=1

without_a_secret_a_wrong_sum_is_taken_for_right() {
	star cables
	describe_job 4 window=4 payload=128 -- w0 w1 w2
	all_end_with "$perf_wrong" "wrong elements" "${one_call[@]}"
}

with_a_secret_every_rank_fails_and_says_why() {
	star cables
	describe_job 4 window=4 payload=128 -- w0 w1 w2
	seal
	all_end_with 1 "the node added wrong" "${one_call[@]}"
	if has "wrong elements" "$work"/errors?; then return 1; fi
	all_end_with 1 "the node added wrong" --verb broadcast -d float32 -b 4K -e 4K -n 1 -w 0
}

sealed_jobs_are_exact_and_get_over_losses() {
	star network loss 1
	describe_job 4 window=32 -- w0 w1 w2
	seal
	run_all -d float32 -b 4 -e 256K -f 64 -n 5
	run_all -d int32 --int-wild -b 64K -e 64K -n 3
	run_all --verb reduce_scatter --op avg -d int64 -b 64K -e 64K -n 3
	run_all --verb all_gather -d float32 -b 64K -e 64K -n 3
	(($(lost_on_links) > 0))
	jq -se 'map(.corrupt) | add == 0' "$work"/rank?
}

# --- jobs that workers join

# What goes to the service address ends at n1; the agent is asked at another address.
liar_on_the_way() {
	agent_network <<-END
		host w0 w1 w2
		node n0 n1
		link w0 n1 rate 1gbit
		link w1 n1 rate 1gbit
		link w2 n1 rate 1gbit
		link n1 n0 rate 1gbit
	END
	agent=$(on n0 ip -j -4 address show dev n1 | jq -r '.[0].addr_info[0].local')
	sed -i "s|^join: .*|join: {socket: $join, listen: [$agent]}|" "$work/tallyd.yaml"
	start_agent
	on n1 ip address add "$(bed addr n0)/32" dev lo
}

# Without tags: a node that lies has the keys of the ranks, and this one has not.
joined_end_with() { # CODE WORDS JOB [tallyctl options...]
	create_job "$3" 3 --tags no --window 4 --payload 128 "${@:4}"
	epoch=$(ctl --json job list "$3" | jq '.[0].epoch + 1')
	hosts=(w0 w1 w2)
	liar n1 || return 1
	join_all "$3" "${hosts[@]}" -- --agent "$agent" "${one_call[@]}"
	ranks_end_with "$1" "$2" "$work"/w{0,1,2}."$3".errors
}

a_joined_job_finds_a_lie_only_if_it_is_sealed() {
	liar_on_the_way
	joined_end_with "$perf_wrong" "wrong elements" open
	joined_end_with 1 "the node added wrong" shut --sealed
	if has "wrong elements" "$work"/*.shut.errors; then return 1; fi
}

is_sealed() { [[ $(ctl --json job list "$1" | jq '.[0].sealed') == "$2" ]]; } # JOB true|false

# Also by another agent than the one that made the job.
sealed_jobs_that_workers_join_are_exact() {
	star agent_network loss 1
	start_agent
	create_job train 3 --sealed
	create_job open 3
	for _ in first second; do
		is_sealed train true
		is_sealed open false
		join_all train w0 w1 w2 -- -d float32 -b 4K -e 64K -f 16 -n 5
		joined_end
		jq -se 'map(.corrupt) | add == 0' "$work"/w?.train
		end_agent KILL
		start_agent
	done
	ctl job show train | has -E " yes +$(bed addr n0)$"
	(($(lost_on_links) > 0))
}

# The worker in Python knows as much of this as a library that is older than sealed jobs.
who_does_not_know_sealed_jobs_takes_no_part() {
	star agent_network
	start_agent
	create_job train 2 --sealed
	worker=()
	join_from w0 train "${one_call[@]}"
	refuses "the job is sealed" on w1 python3 examples/worker.py --join train \
		--agent "$(bed addr n0)" --token-file "$work/train.token" allreduce
	if wait "${worker[0]}"; then return 1; fi
	grep -E "rank [01] (left|is gone)" "$work/w0.train.errors"
}

facts without_a_secret_a_wrong_sum_is_taken_for_right \
	with_a_secret_every_rank_fails_and_says_why \
	sealed_jobs_are_exact_and_get_over_losses \
	a_joined_job_finds_a_lie_only_if_it_is_sealed \
	sealed_jobs_that_workers_join_are_exact \
	who_does_not_know_sealed_jobs_takes_no_part
