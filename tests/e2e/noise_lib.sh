# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What tests share in which some make noise at a node, and others must not notice.
#
#	TALLY_CONNECTIONS=1000	of strangers; of members, 5,000 at most
#	TALLY_LISTERS=300	connections that ask for all jobs
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/agent_lib.sh"

connections=${TALLY_CONNECTIONS:-1000} listers=${TALLY_LISTERS:-300}
members=$((connections < 5000 ? connections : 5000)) # beside those who stay: 8,192 in all
per_crowd=250 # of each job that waits for others
lost=4 # jobs whose one worker nobody finds
tool=$build/tests/e2e/latency

of_job() { ctl --json job list "$1" | jq ".[0].$2"; }
outcome() { ctl --json stats --job "$1" | jq ".$2.packets"; }
at_port() { ctl --json stats --port "$1" | jq ".$2.packets"; }

flood() { # JOB PACKETS-PER-SECOND SECONDS [asks|sums|parts]: from w0, in the name of the job's rank 0
	local from
	from=$(of_job "$1" 'members[0].address' | jq -r 'sub(":.*"; "")')
	exec_on w0 "$build/tests/e2e/flood" "$(bed addr n0 4)" "${from:-$(bed addr w0)}" "$(of_job "$1" id)" "$(of_job "$1" epoch)" "$(of_job "$1" workers)" "${@:2}"
}

blue_runs() { # [arguments...]: median milliseconds of an allreduce
	join_all blues w2 w3 -- -d int32 -b 512K -e 512K -n 12 -w 2 "$@"
	joined_end >&2 || return 1
	jq -s '.[0].p50_us / 1000' "$work/w2.blues"
}

# A job of 64 ranks who do nothing, all on w2, until what they read is closed.
stay=''
crowds_may_stay() {
	mkfifo "$work/stay"
	exec {stay}<>"$work/stay"
}
crowd() { # JOB TENANT [tallyctl options...]
	create_job "$1" 64 --tenant "$2" --tags no "${@:3}"
	"$build/tests/e2e/cycles" "$join" "$1" "$work/$1.token" 64 "$(bed addr w2 4)" 0 \
		<&"$stay" >/dev/null &
	until_true state_is "$1" running
}

neighbours() { # all that workers have; an entry that is permanent is not thrown away
	local n
	for ((n = 0; n < 2000; n++)); do
		echo "neigh replace 10.99.$((n / 250)).$((1 + n % 250)) lladdr 02:00:00:00:00:01 dev w0 nud permanent"
	done
}

tokens() { jq -r --arg of "$1" '.jobs[] | select(.name | startswith($of)) | "\(.name) \(.token) \(.workers)"' "$work/state.json"; }

workers_behind_w0() { # before the agent starts
	on n0 ip route add 10.98.0.0/15 dev w0
	neighbours | on n0 ip -batch -
}

jobs_of_noise() { # [tallyctl options...]
	local n
	for ((n = 0; n * per_crowd < members; n++)); do
		create_job "crowd$n" $((per_crowd + 1)) --window 8 "$@"
	done
	for ((n = 0; n < lost; n++)); do
		create_job "lost$n" 1 --window 8 "$@"
	done
	tokens crowd | sed "s/ $((per_crowd + 1))\$/ $per_crowd/" >"$work/crowd"
	tokens lost >"$work/lost"
}

# --- noise: each says "ready", and ends by a signal

strangers() { exec_on w0 "$tool" strangers "$(bed addr n0 4)" 31249 "$connections"; }
members() { exec "$tool" members "$join" "$work/crowd" "$members"; }
listers() { exec "$tool" list "$control" "$listers"; }
lost() { exec "$tool" lost "$join" "$work/lost" "$lost"; }

# Of a worker, and of one that might be a gateway.
macs() {
	local n
	for ((n = 0; ; n++)); do
		printf "neigh replace 10.99.$((n % 2 * 100)).1 lladdr 02:00:00:00:00:%02x dev w0 nud permanent\n" \
			$((n / 2 % 2))
		sleep 0.02
	done
}
flapping() { echo ready; exec_on n0 ip -batch - < <(macs); }

changes() {
	local name=noise$BASHPID # one that was ended may have left its tenant there
	echo ready
	while ctl tenant add "$name" --slots 16 && ctl tenant del "$name"; do
		kill -HUP "$daemon"
	done
}

