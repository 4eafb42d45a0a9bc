#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs of a cluster move from root to root while they sum: no call fails, no sum is wrong. (Away from
# traffic: tapina.sh.)
#
#	TALLY_MOVES=N    how often, in the fact that counts (6)
#
#   e0 (etcd) ──┐      w1        w3
#   w0 ─────── n0 ──── n1 ────── n3 ── w4
#               └───── n2 ───────┘
#                     w2 w5
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "$0")/cluster_lib.sh"

exec 3>&1
moves=${TALLY_MOVES:-6}

is_there() { [[ $(at "$1" job show "$2" --json 2>/dev/null | jq -r '.[0].state') == running ]]; }
gone_at() { ! at "$1" job show "$2" >/dev/null 2>&1; }
has_moved() { is_there "$3" "$1" && gone_at "$2" "$1"; } # JOB FROM TO

# Three workers, each at another node, sum without a pause.
load() { # SECONDS [tallyctl-options...]
	create_at n0 train 3 "${@:2}"
	join_at w3 n0 train --seconds "$1" -b 256K -e 256K
	join_at w4 n1 train --seconds "$1" -b 256K -e 256K
	join_at w2 n2 train --seconds "$1" -b 256K -e 256K
	until_true is_there n3 train
}

# Where somebody else writes the place at this time, as when a run has begun, that is said.
place() { at n0 job place train --node "$1"; } # NODE
move() { # FROM TO: from any node
	until_true place "$2" || return 1
	until_true has_moved train "$1" "$2" || { at n0 cluster; tail -n 4 "$work"/n?.log; return 1; }
}

a_run_moves_to_another_root_and_back() {
	square
	load 20
	move n3 n1
	move n1 n3
	finish train w2 w3 w4
	at n0 cluster train | has -E '^train .* n3 '
}

# Whoever joined last sees each move as its agent tells it.
a_run_is_moved_again_and_again_under_load() {
	local i from=n3 to
	local -A next=([n3]=n1 [n1]=n2 [n2]=n0 [n0]=n3)
	square
	load $((moves * 4 + 20))
	for ((i = 0; i < moves; i++)); do
		to=${next[$from]}
		move "$from" "$to" || { echo "move $i"; return 1; }
		from=$to
	done
	echo "$moves moves done"
	finish train w2 w3 w4
	figures | tee "$work/figures" >&3
}

# How long calls took meanwhile, and what was sent again.
figures() {
	jq -r --arg moves "$moves" 'select(.verb == "allreduce") | "# \($moves) moves: \(.)"' "$work/w3.train"
}

# Its workers say to the new one that they are there.
a_run_moves_whose_agent_was_restarted() {
	square
	load 20
	end_at n3 KILL
	start_at n3
	move n3 n1
	finish train w2 w3 w4
}

knows_cordoned() { at n0 topology | has -E '^n1 +cordoned'; }

no_move_to_where_nobody_is() {
	square
	load 8
	{ at n0 job place train --node n9 || true; } 2>&1 | has 'the cluster has no node n9'
	{ at n0 job place other --node n1 || true; } 2>&1 | has 'the cluster has no job other'
	at n1 cordon
	until_true knows_cordoned
	{ at n0 job place train --node n1 || true; } 2>&1 | has 'node n1 is cordoned'
	at n1 uncordon
	# n2 has another job of that name, and refuses.
	at n2 job create train --workers 5 --token-file "$work/other" >/dev/null
	at n0 job place train --node n2
	finish train w2 w3 w4
}

# It is cut off before it has told all workers, or just afterwards.
a_root_that_dies_during_the_move_ends_no_run() {
	square
	load 14
	until_true place n1 # the leader may place it at this moment, too
	end_at n3 KILL
	start_at n3
	finish train w2 w3 w4
}

# Two workers at n2 and two at n3: one of these is the root, and the other one an inner node.
a_run_with_a_tree_moves_too() {
	local secret=yes root other host
	square
	create_at n0 train 4
	for host in w3 w4 w2 w5; do
		join_at "$host" n0 train --seconds 45 -b 64K -e 64K
	done
	until_true runs_somewhere
	root=$(shared n0 train root)
	other=n$((5 - ${root#n}))
	until_true is_part "$other" inner
	move "$root" "$other"
	until_true is_part "$root" inner || { at "$root" job list; tail -n 5 "$work"/n[23].log; return 1; }
	move "$other" n0
	until_true is_part "$root" inner
	until_true is_part "$other" inner
	finish train w2 w3 w4 w5
}
is_part() { at "$1" job list --json | jq -e --arg part "$2" '.[0].role == $part' >/dev/null; } # NODE ROLE

rotate() { # NODE
	rm -f "$work/next.token"
	at "$1" job rotate train --token-file "$work/next.token" >/dev/null
}

# With the token that the job had first.
opens_nothing() {
	local name
	for name in n0 n1 n2 n3; do
		{ on w0 python3 tests/e2e/joiner.py join "$(bed addr "$name" 4)" train "$work/train.token" || true; } 2>&1 |
			has EACCES || { echo "at $name"; return 1; }
	done
}

# Who is in the run is told the new one: over its connection, or when it says that it is there to an
# agent that was ended before it could tell. Who has the old one only gets nothing anywhere.
a_run_moves_whose_token_was_rotated() {
	square
	load 45 --sealed
	rotate n1
	move n3 n1
	opens_nothing
	rotate n0
	end_at n1 KILL
	start_at n1
	move n1 n3
	opens_nothing
	rotate n2
	at n3 drain --timeout 25 || { at n0 cluster train; tail -n 5 "$work"/n?.log; return 1; }
	opens_nothing
	finish train w2 w3 w4
	! is_root train n3 || return 1
	! grep -hF -f "$work/train.token" -f "$work/next.token" "$work"/n?.log || return 1
}

# Which waits until no run is on: those of the cluster go elsewhere.
a_node_is_drained_without_a_call_that_fails() {
	square
	create_at n0 train 3
	at n0 job place train --node n3 # before anybody knows where its workers are
	join_at w3 n0 train --seconds 30 -b 256K -e 256K
	join_at w4 n1 train --seconds 30 -b 256K -e 256K
	join_at w2 n2 train --seconds 30 -b 256K -e 256K
	until_true is_there n3 train
	at n3 drain --timeout 25 || { at n0 cluster train; tail -n 5 "$work"/n?.log; return 1; }
	gone_at n3 train || { at n0 cluster train; return 1; }
	until_true runs_somewhere
	finish train w2 w3 w4
	! is_root train n3 || return 1
}

command -v etcd >/dev/null || { echo '1..0 # SKIP no etcd here: scripts/setup.sh'; exit 0; }
facts a_run_moves_to_another_root_and_back a_run_moves_whose_agent_was_restarted a_run_is_moved_again_and_again_under_load \
	no_move_to_where_nobody_is a_root_that_dies_during_the_move_ends_no_run \
	a_node_is_drained_without_a_call_that_fails a_run_moves_whose_token_was_rotated a_run_with_a_tree_moves_too
