# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Read this file first: the words that the tests of this folder are written in.
#
# What the e2e tests share: a testbed of their own, real workers in it, TAP out of it. A test
# is a function named for the fact it shows; `facts` runs them, and one that fails or ends
# early is "not ok" with all it printed. Everything made is removed by a trap.
#
#	TALLY_FACTS="NAME..."    of the facts, only these
#	TALLY_SLOW=N             this machine is so many times as slow as others (1)

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

build=${TALLY_BUILD:-build}
slow=${TALLY_SLOW:-1}
unset TALLY_AGENT TALLY_JOB TALLY_TOKEN_FILE TALLY_RANK TALLY_ADDRESS TALLY_SHARES TALLY_OTHER_AGENTS TALLY_SPIN TALLY_PROGRESS_THREADS TALLY_CONGESTION # those of another job
export TALLY_TESTBED=e2e$$
pin=/sys/fs/bpf/tally-$TALLY_TESTBED
work=$(mktemp -d)
epoch=0

bed() { scripts/testbed "$@"; }
on() { scripts/testbed exec "$@"; }
# grep -q at the end of a pipe leaves when it has seen enough, and whoever still writes fails.
has() { grep "$@" >/dev/null; }

# In the background: the process is the program itself, and not a shell that waits for it. A fact
# that became a program itself would tear nothing down: its agents would go on, without a directory.
exec_on() {
	((BASHPID != ${owner:-0})) || { on "$@"; return; }
	exec scripts/testbed exec "$@"
}
node() { # NODE tally-node-arguments...
	local name=$1
	shift
	on "$name" "$build/tally-node" "$@" --pin "$pin-$name"
}

tear_down() {
	local pids
	((BASHPID == owner)) || exit # forked a moment ago, with this trap
	trap '' HUP INT QUIT TERM PIPE # all goes, however often somebody presses ^C
	set +e # whatever has ended by itself: all the rest goes too
	mapfile -t pids < <(jobs -p)
	((${#pids[@]} == 0)) || { kill "${pids[@]}"; kill -s CONT "${pids[@]}"; } 2>/dev/null
	wait 2>/dev/null
	bed down
	rm -rf "$pin"-*
}
trap 'trap "" HUP INT QUIT TERM PIPE; rm -rf "$work"' EXIT

# Builds the topology on standard input and attaches every node to all its interfaces.
network() { # [tally-node attach options...]
	local name
	cat >"$work/topology"
	bed up "$work/topology" || return 1
	while read -r name; do
		attach "$name" "$@" || return 1
	done < <(awk '$1 == "node" { for (i = 2; i <= NF; i++) print $i }' "$work/topology")
}

interfaces() { on "$1" ip -o link | awk -F '[:@ ]+' '$2 != "lo" { print $2 }'; }

attach() { # NODE [options...]
	local name=$1
	shift
	# shellcheck disable=SC2046
	node "$name" attach $(interfaces "$name") "$@" >/dev/null
}

# Says who takes part: one worker for each name, several on a host take ports of their own.
describe_job() { # FAMILY KEY=VALUE... -- HOST...
	local family=$1 key address port=40000
	shift
	{
		echo "job 1"
		echo "service $(bed addr n0 "$family")"
		while [[ $1 != -- ]]; do
			key=${1%%=*}
			echo "$key ${1#*=}"
			shift
		done
		shift
		for host; do
			address=$(bed addr "$host" "$family")
			[[ $family == 4 ]] || address="[$address]"
			echo "worker $address:$port"
			port=$((port + 1))
		done
	} >"$work/description"
	hosts=("${@}")
}

# Every run is an epoch of its own.
next_epoch() {
	epoch=$((epoch + 1))
	{ cat "$work/description"; echo "epoch $epoch"; } >"$work/job"
}

add_job() { node n0 job add "$work/job" >/dev/null; }

# One process for each rank, in the background; output in $work/rank*.
start_rank() { # RANK tally-perf-arguments...
	local rank=$1
	shift
	exec_on "${hosts[rank]}" "$build/tally-perf" --job "$work/job" --rank "$rank" --json --hash \
		--timeout 10000 "$@" >"$work/rank$rank" 2>"$work/errors$rank" &
	worker[rank]=$!
}

start_all() {
	local rank
	worker=()
	next_epoch && add_job || return 1
	for rank in "${!hosts[@]}"; do
		start_rank "$rank" "$@"
	done
}

# All workers end well, with the same bits. Where ranks' results differ by nature, no hash.
finish_all() {
	local rank code=0
	for rank in "${!hosts[@]}"; do
		wait "${worker[rank]}" || {
			echo "rank $rank ended with code $?: $(cat "$work/errors$rank")"
			code=1
		}
	done
	((code == 0)) || return 1
	for rank in "${!hosts[@]}"; do
		jq -c 'select(.verb | IN("allreduce", "broadcast", "all_gather")) | [.bytes, .hash]' \
			"$work/rank$rank" >"$work/hash$rank"
		cmp "$work/hash0" "$work/hash$rank" || return 1
	done
}

run_all() { start_all "$@" && finish_all; }

# Polls a condition until it holds; the limit is only there so that a broken test ends. Between two
# looks the processor is free for what is waited for, and for other tests.
until_true() { # CONDITION...
	local deadline=$((SECONDS + 20 * slow))
	until "$@"; do
		((SECONDS < deadline)) || { echo "never came: $*"; return 1; }
		sleep 0.05
	done
}

# Limits of time at a processor are those of a usual one, which makes this loop in 80 ms. Prints how
# many times as high they are here: $slow at least.
slower() {
	local loop_s
	loop_s=$(TIMEFORMAT=%U; { time awk 'BEGIN { for (i = 0; i < 3000000; i++) x += i % 7 }'; } 2>&1)
	awk "BEGIN { print ($loop_s > 0.08 * $slow ? $loop_s / 0.08 : $slow) }"
}

# --- rank keys, and who forges

key=() # by rank
give_keys() {
	local rank
	for rank in "${!hosts[@]}"; do
		key[rank]=$(openssl rand -hex 16)
		echo "key ${key[rank]}" >>"$work/description"
	done
	rm -f "$work/job"
	umask 077 # from now on job files have secrets
}

# To the node, or to a worker in the name of the node. In the background.
forge_from() { # HOST TO SENDER KEY WHAT...
	local from
	from=$(bed addr n0)
	[[ $2 == n0 ]] && set -- "$1" "$(bed addr n0):31249" "${@:3}" && from=10.9.9.9
	forge_as "$1" "$from" "$2" 1 "$epoch" "${#hosts[@]}" "${@:3}"
}
forge_as() { # HOST FROM TO JOB EPOCH WORKERS SENDER KEY WHAT...
	local log=$work/forger$RANDOM
	: >"$log"
	exec_on "$1" "$build/tests/e2e/forge" "${@:2}" >"$log" 2>&1 &
	forger+=($!)
	until_true has there "$log" || { cat "$log"; return 1; }
}
forger=()
call_off() {
	kill "${forger[@]}"
	wait "${forger[@]}" || true
	forger=()
}

count_on() { node "$1" stats --json | jq ".$2.packets"; } # NODE OUTCOME
count() { count_on n0 "$1"; }

lost_on_links() { bed status --json | jq '[.links[] | .up.lost, .down.lost] | add'; }

facts() {
	local number=0 failed=0 code name
	for name in ${TALLY_FACTS:-"$@"}; do
		[[ " $* " == *" $name "* ]] || { echo "$0: there is no fact $name" >&2; exit 2; }
		number=$((number + 1))
		# Not as a condition: that would switch `set -e` off inside.
		(owner=$BASHPID; trap tear_down EXIT; set -e; "$name") >"$work/said" 2>&1
		code=$?
		if ((code == 0)); then
			echo "ok $number - ${name//_/ }$(sed -n 's/^SKIP/ # SKIP/p' "$work/said")"
		else
			echo "not ok $number - ${name//_/ }"
			sed 's/^/# /' "$work/said"
			failed=1
		fi
	done
	echo "1..$number"
	exit "$failed"
}
