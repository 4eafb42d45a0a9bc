# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the e2e tests of the agent share, over lib.sh: a network whose node n0 is run by a real
# tallyd, and workers that join jobs through it.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

control=$work/control.sock
join=$work/join.sock
daemon='' # tallyd's process

ctl() { "$build/tallyctl" --socket "$control" "$@"; }
answers() { ctl status >/dev/null 2>&1; }

# The network on standard input, and tallyd's configuration but for what tenants there are.
agent_network() {
	local name
	cat >"$work/topology"
	rm -f "$work/state.json" "$work/tallyd.log"
	bed up "$work/topology" || return 1
	{
		echo "ports:"
		for name in $(interfaces n0); do
			echo "  - $name"
		done
		echo "slots: 4096"
		echo "pin: $pin-n0"
		echo "state: $work/state.json"
		echo "service: [\"$(bed addr n0 4)\", \"$(bed addr n0 6)\"]"
		echo "control: {socket: $control}"
		echo "join: {socket: $join}"
		echo "metrics: {listen: \"127.0.0.1:9464\"}"
	} >"$work/tallyd.yaml"
}

# w0 and w1 at n0.
two_hosts() { # RATE
	agent_network <<-END
		host w0 w1
		node n0
		link w0 n0 rate $1
		link w1 n0 rate $1
	END
}

start_agent() { # [COMMAND...]: returns when it answers
	(($#)) || set -- "$build/tallyd"
	exec_on n0 "$@" --config "$work/tallyd.yaml" 2>>"$work/tallyd.log" &
	daemon=$!
	until_true answers || { cat "$work/tallyd.log"; return 1; }
}

end_agent() { # SIGNAL
	local code=0
	kill -s "$1" "$daemon" || return 1
	wait "$daemon" 2>/dev/null || code=$? # whose death bash need not report
	daemon=''
	[[ $1 == KILL || $code == 0 ]]
}

create_job() { # NAME WORKERS [tallyctl options...]
	local name=$1 workers=$2
	shift 2
	rm -f "$work/$name.token"
	ctl job create "$name" --workers "$workers" --token-file "$work/$name.token" "$@" >/dev/null
}

# A worker of a job on a host; output in $work/HOST.JOB, its process in worker[].
join_from() { # HOST JOB [tally-perf arguments...]
	local host=$1 job=$2
	shift 2
	exec_on "$host" "$build/tally-perf" --join "$job" --agent "$(bed addr n0 "${family:-4}")" \
		--token-file "$work/$job.token" --json --hash --timeout 10000 "$@" \
		>"$work/$host.$job" 2>"$work/$host.$job.errors" &
	worker+=($!)
}

join_all() { # JOB HOST... -- [tally-perf arguments...]
	local job=$1 host all=()
	shift
	while [[ $1 != -- ]]; do
		all+=("$1")
		shift
	done
	shift
	worker=() joined=("$job" "${all[@]}")
	for host in "${all[@]}"; do
		join_from "$host" "$job" "$@"
	done
}

# The node has taken no result back, as it does when it has lost its slots. (A worker also gives
# back a result that has overtaken the node's question for it; the node has no use for that.) Where
# tallyd was stopped, nobody can be asked.
lost_no_slots() { ! answers || [[ $(ctl --json stats --job "$1" | jq .REPAIRED.packets) == 0 ]]; } # JOB

# All who joined end well, with the same bits, and the node has lost no slots, unless the test takes
# them away ($loses_slots).
joined_end() {
	local i code=0 job=${joined[0]} host
	for i in "${!worker[@]}"; do
		host=${joined[i + 1]}
		wait "${worker[i]}" || {
			echo "$host ended with code $?: $(cat "$work/$host.$job.errors")"
			code=1
		}
	done
	((code == 0)) || { tail -n 20 "$work/tallyd.log"; return 1; }
	for host in "${joined[@]:1}"; do
		jq -c 'select(.verb | IN("allreduce", "broadcast", "all_gather")) | [.bytes, .hash]' \
			"$work/$host.$job" >"$work/$host.hash"
		cmp "$work/${joined[1]}.hash" "$work/$host.hash" || return 1
		[[ ${loses_slots-} ]] ||
			jq -es 'all(.node_reloads == 0)' "$work/$host.$job" >/dev/null ||
			{ echo "$host: the node was loaded anew"; return 1; }
	done
	[[ ${loses_slots-} ]] || lost_no_slots "$job" || { echo "the node has lost its slots"; return 1; }
}

# The command fails, and says so.
refuses() { # WORDS COMMAND...
	local words=$1
	shift
	if "$@" >"$work/words" 2>&1; then
		echo "did not fail: $*"
		return 1
	fi
	grep -F "$words" "$work/words" || { cat "$work/words"; return 1; }
}

completed_of() { ctl --json stats --job "$1" | jq .COMPLETED.packets; } # JOB
completed_beyond() { (($(completed_of "$1") > $2)); }
another() { until_true completed_beyond "$1" $(($(completed_of "$1") + $2)); } # JOB CHUNKS
state_is() { [[ $(ctl --json job list "$1" | jq -r '.[0].state') == "$2" ]]; } # JOB STATE

# WORDS: in the status of the node; REGEX: in the log.
trouble_has() { [[ $(ctl --json status | jq -r '.troubles | join(" ")') == *"$1"* ]]; }
logged() { grep -qE -- "$1" "$work/tallyd.log" || { grep request "$work/tallyd.log"; return 1; }; }
