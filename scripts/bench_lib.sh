# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What benchmarks share: a testbed of their own, workers in it, the bare reflector, and an end that
# leaves nothing behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=${TALLY_BUILD:-build}
payload=1408
window=128
seconds=2	# that the reflector is measured
checks=(--no-check) # of tally-perf; without it, results are checked, and times are worth nothing
export TALLY_TESTBED=bench$$
pin=/sys/fs/bpf/tally-$TALLY_TESTBED
work=$(mktemp -d)
epoch=0
trap finish EXIT

bed() { scripts/testbed "$@"; }
exec_on() { exec scripts/testbed exec "$@"; } # a process of its own, not a shell that waits for it
node_at() { bed exec "$1" "$build/tally-node" "${@:2}" --pin "$pin-$1"; } # NODE ARGUMENTS...
node() { node_at n0 "$@"; }
ports() { seq -f 'w%.0f' 0 $(($1 - 1)); }

finish() {
	local pids
	trap '' HUP INT QUIT TERM PIPE
	mapfile -t pids < <(jobs -p)
	((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
	bed down
	rm -rf "$pin"-* "$work"
}

star() { # HOSTS LINK-OPTIONS...
	local name
	{
		echo "host $(ports "$1" | paste -sd ' ')"
		echo "node n0"
		for name in $(ports "$1"); do echo "link $name n0 ${*:2}"; done
	} >"$work/topology"
	bed up "$work/topology"
}

attach() { # HOSTS
	# shellcheck disable=SC2046
	node attach $(ports "$1") >/dev/null
}

# A job with so many workers, an equal number on each host. Every run is an epoch of its own.
next_job() { # HOSTS WORKERS
	local i hosts=()
	mapfile -t hosts < <(ports "$1")
	epoch=$((epoch + 1))
	host_of=()
	{
		printf 'job 1\nepoch %d\nwindow %d\n' "$epoch" "$window"
		printf 'payload %d\nservice %s\n' "$payload" "$(bed addr n0)"
		for ((i = 0; i < $2; i++)); do
			host_of[i]=${hosts[i * $1 / $2]}
			echo "worker ${address[${host_of[i]}]:=$(bed addr "${host_of[i]}")}:$((40000 + i))"
		done
	} >"$work/job"
	add_job >/dev/null
}
add_job() { node job add "$work/job"; }
declare -A address=()

start_rank() { # RANK tally-perf-arguments...
	exec_on "${host_of[$1]}" "$build/tally-perf" --job "$work/job" --rank "$1" \
		"${checks[@]}" --json "${@:2}" >"$work/perf$1" &
	worker[$1]=$!
}

# What each rank says of each size is then in $work/perf*.
run_job() { # HOSTS WORKERS tally-perf-arguments...
	local rank
	rm -f "$work"/perf*
	worker=()
	next_job "$1" "$2"
	for ((rank = 0; rank < $2; rank++)); do start_rank "$rank" "${@:3}"; done
	wait_for_workers
}

wait_for_workers() {
	local pid
	for pid in "${worker[@]}"; do
		wait "$pid" || { echo "a worker has failed" >&2; exit 1; }
	done
}

mbit_of() { # RATE, of which this is known: Nmbit or Ngbit
	case $1 in
	*mbit) echo "${1%mbit}" ;;
	*gbit) echo $((1000 * ${1%gbit})) ;;
	esac
}

# In the background, until it is killed.
repeat() { # SECONDS COMMAND...
	local never
	exec {never}<> <(:)
	while :; do
		"${@:2}"
		read -rt "$1" -u "$never" || true
	done
}

# Payload bytes a second that come back to each worker from the reflector, in GB/s.
reflected() { # WORKERS
	local name bouncing=()
	# shellcheck disable=SC2046
	bed exec n0 "$build/tests/bench/reflector" $(ports "$1") >/dev/null
	for name in $(ports "$1"); do
		exec_on "$name" "$build/tests/bench/bounce" "$(bed addr "$name"):40000" \
			"$(bed addr n0)" "$window" "$payload" "$seconds" >"$work/rate-of-$name" &
		bouncing+=($!)
	done
	wait "${bouncing[@]}"
	# shellcheck disable=SC2046
	bed exec n0 "$build/tests/bench/reflector" --detach $(ports "$1") >/dev/null
	awk -v payload="$payload" '{ sum += $1 } END { print sum / NR * payload / 1e9 }' \
		"$work"/rate-of-*
	rm "$work"/rate-of-*
}
