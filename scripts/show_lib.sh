# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What demo and tour share: a testbed of their own, tallyd on its node n0, and an end that leaves
# nothing behind. The end cleans up first and prints later, since nobody may be there to read, and
# no signal stops it, since people press ^C more than once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=${TALLY_BUILD:-build}
unset TALLY_AGENT TALLY_JOB TALLY_TOKEN_FILE TALLY_RANK TALLY_ADDRESS # those of another job
export TALLY_TESTBED=${0##*/}$$
pin=/sys/fs/bpf/tally-$TALLY_TESTBED
work=$(mktemp -d)
export TALLY_SOCKET=$work/control.sock

bed() { scripts/testbed "$@"; }
exec_on() { exec scripts/testbed exec "$@"; } # a process of its own, not a shell that waits for it
ctl() { bed exec n0 "$build/tallyctl" "$@"; }

finish() {
	local code=$? logs pids
	((BASHPID == $$)) || exit "$code" # forked a moment ago, with these traps
	trap '' HUP INT QUIT TERM PIPE
	set +e
	logs=$(tail -n 50 "$work"/*.log 2>/dev/null)
	mapfile -t pids < <(jobs -p)
	((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null
	bed down # tallyd too, which takes the data plane along
	[[ ! -e $pin ]] || "$build/tally-node" detach --pin "$pin" >/dev/null 2>&1
	rm -rf "$work"
	((code == 0 || code > 128)) || echo "$logs" >&2
	exit "$code"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

start_agent() { # PORT...: standard input has what else its configuration says
	{
		echo "ports: [$(IFS=,; echo "$*")]"
		echo "service: $(bed addr n0)"
		echo "pin: $pin"
		echo "state: $work/state.json"
		echo "control: {socket: $TALLY_SOCKET}"
		echo "join: {socket: none}"
		cat
	} >"$work/tallyd.yaml"
	exec_on n0 "$build/tallyd" --config "$work/tallyd.yaml" --detach 2>"$work/tallyd.log" &
	agent=$!
	until ctl status >/dev/null 2>&1; do
		kill -0 "$agent" 2>/dev/null || { echo "tallyd has ended; its log follows" >&2; exit 1; }
	done
}
