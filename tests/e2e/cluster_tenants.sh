#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tenants and tokens that the agents of a cluster share: changed at any node, and the same at all.
#
#   e0 (etcd) ──┐      w1        w3
#   w0 ─────── n0 ──── n1 ────── n3 ── w4
#               └───── n2 ───────┘
#                     w2 w5
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "$0")/cluster_lib.sh"

runs_at() { [[ $(at "$1" job show "$2" --json 2>/dev/null | jq -r '.[0].state') == running ]]; }
has_token() { [[ $(at "$1" job token train) == $(cat "$2") ]]; } # NODE FILE
is_waiting() { [[ $(shared n0 train waiting) == "$1" ]]; }

is_silent() { [[ $(shared n1 train state) == 'root is silent' ]]; }

# Whoever comes with the token of FILE to NODE is refused.
is_refused_at() { # NODE FILE
	local code=0
	cp "$2" "$work/train.token"
	join_at w0 "$1" train --join-timeout 5000
	wait "${worker[-1]}" || code=$?
	unset "worker[-1]"
	has 'wrong token' "$work/w0.train.errors" || code=0
	((code != 0)) || { echo "not refused at $1"; cat "$work/w0.train.errors"; return 1; }
}

a_token_is_rotated_at_any_node() {
	local name
	square
	create_at n0 train 2
	cp "$work/train.token" "$work/first"
	join_at w3 n0 train --seconds 15 -b 64K -e 64K
	join_at w4 n1 train --seconds 15 -b 64K -e 64K
	until_true runs_at n3 train
	at n1 job rotate train --token-file "$work/second" >/dev/null
	! cmp -s "$work/first" "$work/second" || return 1
	has_token n1 "$work/second"
	for name in n0 n2 n3; do
		until_true has_token "$name" "$work/second"
	done
	until_true has 'token changed: job=train' "$work/n3.log"
	for name in n0 n2 n3; do
		is_refused_at "$name" "$work/first"
	done
	# The run of before knows nothing of that.
	runs_at n3 train
	finish train w3 w4
	cp "$work/second" "$work/train.token"
	join_at w3 n2 train
	join_at w4 n0 train
	finish train w3 w4
	! grep -rF "$(cat "$work/second")" "$work"/n*.log || return 1
	{ at n0 job rotate other || true; } 2>&1 | has 'there is no job other'
}

# Who waits for a place waits with a token that opens nothing any more; and an agent that was away
# follows when it is back.
who_waits_or_was_away_follows_a_rotation() {
	local code=0
	square
	create_at n0 train 2
	rm -f "$work/second"
	cp "$work/train.token" "$work/first"
	join_at w3 n0 train
	join_at w4 n1 train
	finish train w3 w4
	is_root train n3
	end_at n3 TERM
	until_true is_silent
	join_at w1 n1 train --join-timeout 30000
	until_true is_waiting 1
	at n2 job rotate train --token-file "$work/second" >/dev/null
	wait "${worker[0]}" || code=$?
	worker=()
	((code != 0))
	has 'the job has a new token: join again' "$work/w1.train.errors" ||
		{ cat "$work/w1.train.errors"; return 1; }
	start_at n3
	until_true has 'token changed: job=train' "$work/n3.log"
	is_refused_at n3 "$work/first"
	cp "$work/second" "$work/train.token"
	join_at w3 n3 train
	join_at w4 n1 train
	finish train w3 w4
}

command -v etcd >/dev/null || { echo '1..0 # SKIP no etcd here: scripts/setup.sh'; exit 0; }
facts a_token_is_rotated_at_any_node who_waits_or_was_away_follows_a_rotation
