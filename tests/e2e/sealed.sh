#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Workers with a secret find out what a node adds wrong; nodes go on just adding.
#
#   w0 ──┐
#   w1 ──┼── n0      n0 has the data plane, or a root that adds wrong (tests/e2e/liar.c)
#   w2 ──┘
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

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

liar() {
	exec_on n0 "$build/tests/e2e/liar" "$(bed addr n0)" "$epoch" "${#hosts[@]}" \
		>"$work/liar" 2>&1 &
	liar=$!
	until_true has there "$work/liar" || { cat "$work/liar"; return 1; }
}

# Each rank's exit code and words; nobody waits for a timeout.
all_end_with() { # CODE WORDS tally-perf-arguments...
	local rank code=0 begun=$SECONDS
	next_epoch
	liar || return 1
	for rank in "${!hosts[@]}"; do
		start_rank "$rank" "${@:3}"
	done
	for rank in "${!hosts[@]}"; do
		code=0
		wait "${worker[rank]}" || code=$?
		cat "$work/errors$rank"
		((code == $1)) || code=-1
		has -- "$2" "$work/errors$rank" || code=-1
		((code >= 0)) || { echo "rank $rank: not code $1 and '$2'"; break; }
	done
	kill "$liar"
	wait "$liar" || true
	((code >= 0 && SECONDS - begun < 9))
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

facts without_a_secret_a_wrong_sum_is_taken_for_right \
	with_a_secret_every_rank_fails_and_says_why \
	sealed_jobs_are_exact_and_get_over_losses
