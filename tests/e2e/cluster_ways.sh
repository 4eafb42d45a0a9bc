#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Ways that the leader finds: routing takes the direct way, which is slow, and nobody writes ways
# into the store but the agent that leads.
#
#   e0 (etcd) ── n0    w0 w1 ── n0 ─────── 8 ─────── n3 ── w3
#                                └─ 40 ── n1 ── 40 ──┘
#                                         w2
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "$0")/cluster_lib.sh"

exec 3>&1
secret=true steering=true finds=true # nodes take parts in trees, steer, and find ways

# A job of these workers with its root at n3.
create() { # HOST...
	create_at n0 train $# --window 8
	at n0 job place train --node n3 --stay
}
train() { # HOSTS [tally-perf-arguments...]
	local host
	for host in $1; do join_at "$host" n0 train "${@:2}"; done
	until_true runs_at n3 train
}

# Up from workers; down to workers and to who sums.
are_steered() { has_rules n0 2 1 && has_rules n1 "$1" 2 && has_rules n3 "$2" 1; } # RULES-AT-N1 RULES-AT-N3
are_free() { has_rules n0 0 0 && has_rules n1 0 0 && has_rules n3 0 0; }
has_no_key() { [[ -z $(keys_of ways/) ]]; }
has_key() { [[ -n $(keys_of ways/train) ]]; }
rate() { jq -s '[.[] | select(.verb == "allreduce") | .algbw * 8000] | min' "$work"/w[0-3].train; } # Mbit/s of the slowest
seen() { at n0 cluster train; at n0 events; grep -h ways "$work"/n?.log | tail -n 5; }

the_leader_finds_the_faster_way_and_it_goes_with_the_job() {
	local before after began
	triangle
	create w0 w1 w2 w3
	train 'w0 w1 w2 w3' -d int32 -b 512K -e 512K -n 3
	finish train w0 w1 w2 w3
	before=$(rate)
	train 'w0 w1 w2 w3' --seconds 30 -b 64K -e 64K
	began=$SECONDS
	patiently has_key || { seen; return 1; }
	until_true are_steered 6 5 || { seen; return 1; }
	echo "# ways after $((SECONDS - began)) s" >&3
	((SECONDS - began < 60))
	finish train w0 w1 w2 w3
	train 'w0 w1 w2 w3' -d int32 -b 512K -e 512K -n 40 -w 1
	finish train w0 w1 w2 w3
	after=$(rate)
	echo "# slowest worker, Mbit/s: $before by routing, of 8; $after by the ways, of 40" >&3
	jq -en "$after > 3 * $before" >/dev/null
	at n0 cluster train | has 'ways: with ways of its own workers can send' || { seen; return 1; }
	at n0 events | has 'ways .*with ways of its own workers can send' || { seen; return 1; }
	at n0 cluster train | has -E "^$(bed addr w0) +n0, n1, n3" || { seen; return 1; }
	at n0 job del train
	until_true are_free
	has_no_key
	until_true has_no_job n3
}
has_no_job() { ! at "$1" job show train >/dev/null 2>&1; }

# Routing does not need n1, and neither do these workers.
a_way_that_breaks_is_given_up_and_no_call_fails() {
	triangle
	create w0 w1 w3
	train 'w0 w1 w3' --seconds 60 -b 64K -e 64K
	patiently has_key || { seen; return 1; }
	until_true are_steered 5 3 || { seen; return 1; }
	on n0 ip link set n1 down
	patiently has_no_key || { seen; return 1; }
	until_true has_rules n0 0 0 || { seen; return 1; }
	has_no_key # the link is not there
	finish train w0 w1 w3
	grep -hq 'ways given up.*job=train' "$work"/n?.log
}

command -v etcd >/dev/null || { echo '1..0 # SKIP no etcd here: scripts/setup.sh'; exit 0; }
facts the_leader_finds_the_faster_way_and_it_goes_with_the_job \
	a_way_that_breaks_is_given_up_and_no_call_fails
