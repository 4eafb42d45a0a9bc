#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A job with two roots, each with an agent of its own: workers join both, and each call is split
# between them. One root may be in software, have a node below, or lose its slots.
#
#   w0 ──┬── n0
#        ╳
#   w1 ──┴── n1
# shellcheck source=tests/e2e/tree_lib.sh
source "$(dirname "$0")/tree_lib.sh"

two_roots() { # LINK-OPTIONS: both agents run, with a job train of two workers
	cable_roots "$@" && configure_inner n1 1024 && start_roots
}
cable_roots() { # LINK-OPTIONS
	agent_network <<-END
		host w0 w1
		node n0 n1
		link w0 n0 $*
		link w1 n0 $*
		link w0 n1 $*
		link w1 n1 $*
	END
}
start_roots() { start_agent && start_inner n1 && create_at_both; }
create_at_both() { # [tallyctl options...]: of both
	create_job train 2 "$@" && create_at_n1 train "$@" || return 1
	both=(--agent "$(bed addr n0),$(bed addr n1)" --token-file "$work/train.token,$work/n1.token")
}
create_at_n1() { # JOB [tallyctl options...]
	rm -f "$work/n1.token"
	at n1 job create "$1" --workers 2 --token-file "$work/n1.token" "${@:2}" >/dev/null
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
state_is_at_n1() { [[ $(at n1 --json job list train | jq -r '.[0].state') == "$1" ]]; } # STATE
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

# Every collective, under loss; floats, too, whatever the shares; also with a thread for each root.
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
			join_two "${both[@]}" --shares 2,1 --progress-threads 2 "${args[@]}"
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

# Its data plane goes with all slots: workers give results back, to this root alone.
a_root_loses_its_slots_in_mid_run() {
	local loses_slots=yes
	two_roots rate 200mbit loss 1
	join_two "${both[@]}" -d int32 -b 1M -e 1M -w 0 -n 40
	another_at n1 1000
	end_inner n1 KILL
	node n1 detach
	start_inner n1
	another_at n1 1000
	another_at n0 1000
	joined_end
	lost_no_slots train
	jq -e '.node_reloads > 0' "$work/w0.train"
}

all_is_right() { # tally-perf arguments...: and both roots had work
	join_two "${both[@]}" -b 4 -e 300K -f 270 -n 10 -w 0 "$@"
	joined_end
	until_true state_is train waiting
	until_true state_is_at_n1 waiting
	echo "$(completed_at n0) and $(completed_at n1) chunks"
	(($(completed_at n0) > 500 && $(completed_at n1) > 500))
}

by_ipv6() {
	two_roots rate 500mbit loss 1
	ctl job del train && at n1 job del train
	create_job train 2 --service "$(bed addr n0 6)"
	create_at_n1 train --service "$(bed addr n1 6)"
	both=(--agent "$(bed addr n0 6),[$(bed addr n1 6)]:31249" "${both[@]:2}")
	all_is_right -d float32
	at n1 --json job show train | jq -r '.[0].service' | has :
}

sealed_at_both() {
	cable_roots rate 500mbit loss 1
	configure_inner n1 1024
	start_agent && start_inner n1
	create_at_both --sealed
	[[ $(at n1 --json job list train | jq '.[0].sealed') == true ]]
	all_is_right -d float32
	join_two "${both[@]}" --shares 1,3 -b 4 -e 300K -f 270 -n 10 -w 0 -d int32 --int-wild
	joined_end
}

# Ports that are not there: workers' packets go to the agent's software.
one_root_is_in_software() {
	cable_roots rate 500mbit loss 1
	configure_inner n1 2
	sed -i '/^ports:/,/^slots:/c ports: none0\nslots: 2' "$work/n1.yaml"
	start_roots
	all_is_right -d float32
	jq -es 'map(.spilled) | add > 500' "$work/w0.train"
	jq -es 'map(.chunks - .spilled) | add > 500' "$work/w0.train"
}

# Two jobs at one agent, each with numbers, slots and a UDP port of each worker of its own.
both_roots_may_be_at_one_node() {
	local host rank=0 calls=40 job args=(-d int32 -b 1M -e 1M -n 40 -w 0 --no-check)
	cable_roots rate 1gbit
	start_agent
	create_job train 2 && create_job more 2
	join_two "${args[@]}"
	joined_end
	hashes >"$work/one"
	job=$(completed_of train)
	worker=() joined=(train w0 w1)
	for host in w0 w1; do
		TALLY_ADDRESS=$(bed addr "$host"):40000,$(bed addr "$host"):40001 \
			join_from "$host" train --join=train,more --rank "$((rank++))" \
			--shares 3,1 --progress-threads 2 \
			--token-file "$work/train.token,$work/more.token" "${args[@]}"
	done
	until_true ports_are 40000 train
	until_true ports_are 40001 more
	joined_end
	hashes | cmp - "$work/one"
	job=$(($(completed_of train) - job))
	echo "$job and $(completed_of more) chunks"
	((job > calls * 559 && job < calls * 559 + 100))
	(($(completed_of more) > calls * 186 && $(completed_of more) < calls * 186 + 100))
}
ports_are() { # PORT JOB: at which its workers receive
	ctl --json job show "$2" | jq -e --arg port "$1" '.[0].members | map(.address | split(":")[1]) |
		. == [$port, $port]' >/dev/null
}

#   w0 ──┬─── n0 ───┬── w1
#        └── a0 ────┘
#            └ n1
one_root_has_a_node_below() {
	agent_network <<-END
		host w0 w1
		node n0 n1 a0
		link w0 n0 rate 500mbit loss 1
		link w1 n0 rate 500mbit loss 1
		link w0 a0 rate 500mbit loss 1
		link w1 a0 rate 500mbit loss 1
		link a0 n1 rate 500mbit loss 1
	END
	configure_inner n1 1024
	configure_inner a0 1024
	start_agent && start_inner n1 && start_inner a0
	jq -n '[{ name: "a0", address: $ARGS.positional[0], ranks: "0-1" }]' --args "$(bed addr a0)" \
		>"$work/tree.json"
	create_job train 2
	create_at_n1 train --tree "$work/tree.json"
	both=(--agent "$(bed addr n0),$(bed addr n1)" --token-file "$work/train.token,$work/n1.token")
	join_two "${both[@]}" -d float32 -b 1M -e 1M -n 30 -w 0
	until_true state_is_at_n1 running
	at n1 job documents train | at a0 apply -
	until_true is_on_at a0 train
	joined_end
	echo "a0 sent $(sent_up a0) sums up, n1 completed $(completed_at n1), n0 $(completed_at n0)"
	(($(sent_up a0) > 3000 && $(completed_at n0) > 10000))
}

start_from() { # HOST RANK started-arguments...
	TALLY_AGENT=${both[1]} TALLY_TOKEN_FILE=${both[3]} TALLY_JOB=train TALLY_RANK=$2 \
		exec_on "$1" "$build/tests/e2e/started" "${@:3}" >"$work/$1.train" \
		2>"$work/$1.train.errors" &
	worker+=($!)
}
ends_well() { wait "${worker[$1]}" || { cat "$work/${joined[$(($1 + 1))]}.train.errors"; return 1; }; }

calls_that_are_started_and_aborted() {
	two_roots rate 500mbit loss 1
	worker=() joined=(train w0 w1)
	start_from w0 0 thread 20
	start_from w1 1 calls 20
	ends_well 0 && ends_well 1
	until_true state_is train waiting
	until_true state_is_at_n1 waiting
	worker=()
	start_from w0 0 thread 1000000
	start_from w1 1 calls 5 abort
	ends_well 1
	has aborted "$work/w1.train"
	! wait "${worker[0]}" || return 1
	fails_with w0 "root .*: the agent at .*: rank 1 left"
	until_true state_is train waiting
	until_true state_is_at_n1 waiting
}

facts results_have_the_bits_of_one_root \
	each_root_has_its_share \
	agents_of_both_roots_are_killed_in_mid_run \
	a_root_that_is_gone_is_named \
	a_rank_that_is_gone_is_named \
	ranks_must_have_the_same_roots_and_shares \
	what_fails_at_joining_names_the_root \
	a_root_loses_its_slots_in_mid_run \
	by_ipv6 \
	sealed_at_both \
	one_root_is_in_software \
	both_roots_may_be_at_one_node \
	one_root_has_a_node_below \
	calls_that_are_started_and_aborted
