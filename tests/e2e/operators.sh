#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What operators do to a node that is at work, with a real tallyd and real workers.
#
#   w0 ──┐
#        ├── n0 (tallyd, tallyctl)
#   w1 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

pair() {
	agent_network <<-END
		host w0 w1
		node n0
		link w0 n0 rate 200mbit
		link w1 n0 rate 200mbit
	END
}

load() { join_all train w0 w1 -- -d int32 -b 64K -e 64K -n 8 -w 0 -s "$1"; } # SECONDS
small=(-d int32 --int-wild -b 4 -e 16K -f 64 -n 3 -w 0)

fails() { # HOST JOB WORDS: the worker of this host, which has failed or does so
	local i
	for i in "${!worker[@]}"; do
		[[ ${joined[i + 1]} != "$1" ]] || ! wait "${worker[i]}" || { echo "$1 ends well"; return 1; }
	done
	grep -F "$3" "$work/$1.$2.errors" || { cat "$work/$1.$2.errors"; return 1; }
}

value_of() { on n0 curl --silent --fail --max-time 10 http://127.0.0.1:9464/metrics | sed -n "s/^tally_$1 //p"; }

says_draining() { grep -q 'waiting for 1 runs: train' "$work/drain.errors"; }
cordoned_is() { [[ $(ctl --json status | jq .cordoned) == "$1" ]]; }

# Also the agent that comes after it.
a_cordoned_node_begins_no_run_and_drains() {
	local draining
	pair
	start_agent
	create_job train 2
	create_job other 2
	load 3
	another train 50
	ctl drain >"$work/drain" 2>"$work/drain.errors" &
	draining=$!
	until_true says_draining
	refuses "runs are still on: train" ctl drain --timeout 1
	cordoned_is true
	joined_end
	wait "$draining"
	grep '^drained: ' "$work/drain"
	ctl status | grep '^runs *0, cordoned'
	end_agent TERM
	start_agent
	cordoned_is true
	join_all other w0 -- "${small[@]}"
	fails w0 other "the node is cordoned: no run begins until tallyctl uncordon"
	(($(value_of 'joins_refused_total{reason="cordoned"}') == 1))
	ctl uncordon
	join_all other w0 w1 -- "${small[@]}"
	joined_end
}

a_job_that_is_restarted_ends_its_run_and_takes_its_workers_again() {
	local epoch
	pair
	start_agent
	create_job train 2
	refuses "has no run" ctl job restart train
	load 60
	another train 50
	epoch=$(ctl --json job list train | jq '.[0].epoch')
	ctl job restart train
	state_is train waiting
	fails w0 train "the job was restarted: join again"
	fails w1 train "the job was restarted: join again"
	join_all train w0 w1 -- "${small[@]}"
	joined_end
	(($(ctl --json job list train | jq '.[0].epoch') == epoch + 1))
}

rank_state() { [[ $(ctl --json job list train | jq -r ".[0].members[$1].state") == "$2" ]]; }

a_rank_that_is_sent_away_goes_and_the_others_hear_which() {
	pair
	start_agent
	create_job train 2
	join_all train w0 -- --rank 0 "${small[@]}"
	until_true rank_state 0 joined
	refuses "nobody is rank 1" ctl job kick train --rank 1
	refuses "has ranks 0 to 1" ctl job kick train --rank 2
	ctl job kick train --rank 0 # while it waits
	fails w0 train "the operator has sent this rank away"
	rank_state 0 missing
	join_all train w0 -- --rank 0 -d int32 -b 64K -e 64K -n 8 -w 0 -s 60
	joined+=(w1)
	join_from w1 train --rank 1 -d int32 -b 64K -e 64K -n 8 -w 0 -s 60
	another train 50
	ctl job kick train --rank 1
	fails w1 train "the operator has sent this rank away"
	fails w0 train "rank 1 was sent away"
	until_true state_is train waiting
}

facts a_cordoned_node_begins_no_run_and_drains \
	a_job_that_is_restarted_ends_its_run_and_takes_its_workers_again \
	a_rank_that_is_sent_away_goes_and_the_others_hear_which
