#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A job with two roots, each with an agent of its own: workers join both, and each call is split
# between them.
#
#   w0 ──┬── n0
#        ╳
#   w1 ──┴── n1
# shellcheck source=tests/e2e/tree_lib.sh
source "$(dirname "$0")/tree_lib.sh"

two_roots() { # LINK-OPTIONS: both agents run, with a job train of two workers
	agent_network <<-END || return 1
		host w0 w1
		node n0 n1
		link w0 n0 $*
		link w1 n0 $*
		link w0 n1 $*
		link w1 n1 $*
	END
	configure_inner n1 1024
	start_agent && start_inner n1
	create_job train 2 && create_at_n1 train
	both=(--agent "$(bed addr n0),$(bed addr n1)" --token-file "$work/train.token,$work/n1.token")
}
create_at_n1() { # JOB
	rm -f "$work/n1.token"
	at n1 job create "$1" --workers 2 --token-file "$work/n1.token" >/dev/null
}
completed_at() { # n0 or n1
	if [[ $1 == n0 ]]; then
		completed_of train
	else
		at n1 --json stats --job train | jq .COMPLETED.packets
	fi
}
completed_beyond_at() { (($(completed_at "$1") > $2)); }
another_at() { until_true completed_beyond_at "$1" $(($(completed_at "$1") + $2)); } # NODE CHUNKS
received_at() { # NODE: bytes at its ports
	on "$1" ip -j -s link | jq '[.[] | select(.ifname != "lo") | .stats64.rx.bytes] | add'
}
hashes() { jq -c '[.bytes, .hash]' "$work/w0.train"; }
fails_with() { # HOST WORDS
	grep -E "$2" "$work/$1.train.errors" || { cat "$work/$1.train.errors"; return 1; }
}
# All who joined fail.
all_fail() {
	local i
	for i in "${!worker[@]}"; do
		! wait "${worker[i]}" || { echo "${joined[i + 1]} did not fail"; return 1; }
	done
}
endless=(-d int32 --int-wild -b 1M -e 1M -w 0 --seconds 3600)

join_two() { # tally-perf arguments...: rank 0 on w0
	worker=() joined=(train w0 w1)
	join_from w0 train "$@" --rank 0
	join_from w1 train "$@" --rank 1
}

# Every collective, under loss; floats, too, whatever the shares.
results_have_the_bits_of_one_root() {
	local verb type args
	two_roots rate 500mbit loss 1
	for verb in allreduce reduce broadcast reduce_scatter all_gather barrier; do
		for type in int32 float32; do
			args=(-v "$verb" -d "$type" -b 4 -e 300K -f 270 -n 2 -w 0)
			[[ $type == int32 ]] && args+=(--int-wild) || args+=(--float-wild)
			join_two "${args[@]}"
			joined_end
			hashes >"$work/one"
			join_two "${both[@]}" --shares 2,1 "${args[@]}"
			joined_end
			hashes | cmp - "$work/one"
			echo "$verb of $type: $(completed_at n0) and $(completed_at n1) chunks"
		done
	done
	(($(completed_at n1) > 1000 && $(lost_on_links) > 100))
}

# 1 MiB has 745 chunks: 559 and 186 of them. Barriers and the opening are at both roots.
each_root_has_its_share() {
	local n0 n1 calls=40
	two_roots rate 1gbit
	n0=$(received_at n0) n1=$(received_at n1)
	join_all train w0 w1 -- "${both[@]}" --shares 3,1 -d int32 -b 1M -e 1M -n "$calls" -w 0 --no-check
	joined_end
	n0=$(($(received_at n0) - n0)) n1=$(($(received_at n1) - n1))
	echo "n0 completed $(completed_at n0) chunks and received $n0 bytes," \
		"n1 $(completed_at n1) and $n1"
	(($(completed_at n0) - $(completed_at n1) == calls * (559 - 186)))
	(($(completed_at n1) < calls * 186 + 100))
	((n0 > 2 * n1 && n0 < 4 * n1))
}

agents_of_both_roots_are_killed_in_mid_run() {
	two_roots rate 200mbit loss 1
	join_two "${both[@]}" -d int32 --int-wild -b 1M -e 1M -w 0 -n 500
	another_at n1 1000
	at n1 reload
	end_inner n1 KILL
	another_at n0 1000
	start_inner n1
	end_agent KILL
	another_at n1 1000
	start_agent
	another_at n0 1000
	another_at n1 1000
	joined_end
	until_true state_is train waiting
}

# Its node is gone, too.
a_root_that_is_gone_is_named() {
	local port
	two_roots rate 1gbit
	join_two "${both[@]}" "${endless[@]}" --timeout 2000
	another_at n1 1000
	another_at n0 1000
	for port in $(interfaces n1); do
		on n1 ip link set "$port" down
	done
	all_fail
	fails_with w0 "root $(bed addr n1): (no node answered|rank 1 missing)"
	fails_with w1 "root $(bed addr n1): (no node answered|rank 0 missing)"
	until_true state_is train waiting # they have left the other root
}

a_rank_that_is_gone_is_named() {
	two_roots rate 1gbit
	join_two "${both[@]}" "${endless[@]}"
	another_at n1 1000
	kill -s KILL "${worker[1]}"
	all_fail
	fails_with w0 "root .*: the agent at .*: rank 1 is gone"
	until_true state_is train waiting
}

ranks_must_have_the_same_roots_and_shares() {
	two_roots rate 1gbit
	worker=() joined=(train w0 w1)
	join_from w0 train "${both[@]}" --shares 2,1 -b 1M -e 1M
	join_from w1 train "${both[@]}" -b 1M -e 1M
	all_fail
	fails_with w0 "ranks make different calls: .*the first call as root [12] of 2, with roots and shares"
	fails_with w1 "ranks make different calls: .*the first call as root [12] of 2, with roots and shares"
	until_true state_is train waiting
	# In another order, or not all: each waits where the other one is not.
	worker=()
	join_from w0 train "${both[@]}" --join-timeout 2000
	join_from w1 train --agent "$(bed addr n1),$(bed addr n0)" \
		--token-file "$work/n1.token,$work/train.token" --join-timeout 2000
	all_fail
	fails_with w0 "root 1 of 2: .* job train .* not come within 2.0 s"
	fails_with w1 "root 1 of 2: .* job train .* not come within 2.0 s"
	worker=()
	join_from w0 train "${both[@]}" --join-timeout 2000
	join_from w1 train --join-timeout 2000
	all_fail
	fails_with w0 "root 2 of 2: .* job train .* not come within 2.0 s"
	fails_with w1 "the agent at .*: rank . (left|is gone)"
}

# The token of the second root is that of the first.
what_fails_at_joining_names_the_root() {
	two_roots rate 1gbit
	join_two "${both[@]}" --token-file "$work/train.token"
	all_fail
	fails_with w0 "root 2 of 2: the agent at .*: no such job, or a wrong token"
}

facts results_have_the_bits_of_one_root \
	each_root_has_its_share \
	agents_of_both_roots_are_killed_in_mid_run \
	a_root_that_is_gone_is_named \
	a_rank_that_is_gone_is_named \
	ranks_must_have_the_same_roots_and_shares \
	what_fails_at_joining_names_the_root
