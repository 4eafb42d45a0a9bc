#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Figure 1 of InArt, live, with roots that differ: six workers, two roots that take 6 and 2, two nodes
# to each of which workers send 6, links of 6; a unit is 4 Mbit/s. With equal shares workers reach 2.0
# at most, and 2.5 with shares of 80 and 20 % (the vectors of tests/unit/test_route.c): where each
# share of each worker is summed is what gives these rates there.
#
#                 ┌─ 6 ─ v1 ──┐    ┌─ 6 ─ n0
#   w0 ... w5 ─── r ─ 6 ─ v2 ── q ─┤
#                 └───────────┘    └─ 2 ─ n1
#
# r forwards by which worker sends to which root, q only forwards.
# shellcheck source=tests/e2e/tree_lib.sh
source "$(dirname "$0")/tree_lib.sh"

exec 3>&1
payload=1408 frame=1514 # bytes
window=8

figure_1() {
	local i name
	agent_network <<-END
		host w0 w1 w2 w3 w4 w5
		node n0 n1 v1 v2 r q
		$(for i in {0..5}; do echo "link w$i r rate 24mbit"; done)
		link v1 r rate 24mbit
		link v2 r rate 24mbit
		link v1 q rate 100mbit
		link v2 q rate 100mbit
		link r q rate 100mbit
		link n0 q rate 24mbit
		link n1 q rate 8mbit
	END
	for name in n1 v1 v2; do
		configure_inner "$name" 1024
	done
	secret n0
	echo "peers: {secret: $work/n0.secret}" >>"$work/tallyd.yaml"
	for name in n1 v1 v2; do
		cp -p "$work/n0.secret" "$work/$name.secret"
		echo "peers: {secret: $work/$name.secret, roots: [$(bed addr n0), $(bed addr n1)]}" >>"$work/$name.yaml"
	done
	start_agent
	for name in n1 v1 v2; do start_inner "$name"; done
	for i in 1 2; do
		on r ip route add default via "$(on "v$i" ip -j -4 addr show dev r | jq -r '.[0].addr_info[0].local')" \
			dev "v$i" table $((100 + i))
	done
}

# What these workers send to the root goes to the node first; there it is summed.
by() { # NODE ROOT RANK...
	local rank table=$((100 + ${1#v})) root=$2
	for rank in "${@:3}"; do
		on r ip rule add iif "w$rank" to "$(bed addr "$root")" lookup "$table"
	done
}
node_of_tree() { # NODE RANKS
	jq -n --arg name "$1" --arg address "$(bed addr "$1")" --arg ranks "$2" '{ $name, $address, $ranks }'
}

# A job at both roots, and its Mbit/s of gradients with these shares.
sums() { # SHARES
	local i
	create_job train 6 --window "$window" --tree "$work/tree.n0"
	rm -f "$work/n1.token"
	at n1 job create train --workers 6 --window "$window" --tree "$work/tree.n1" --token-file "$work/n1.token" >/dev/null
	worker=() joined=(train w0 w1 w2 w3 w4 w5)
	for i in {0..5}; do
		join_from "w$i" train --agent "$(bed addr n0),$(bed addr n1)" --rank "$i" --shares "$1" \
			--token-file "$work/train.token,$work/n1.token" -d int32 -b 512K -e 512K -w 1 -n 12 --no-check
	done
	joined_end
	ctl job del train
	at n1 job del train
	jq -rs '"\(map(.algbw) | min * 8000) \(map(.retransmitted) | add)"' "$work"/w[0-5].train >"$work/reached"
}

# The rate within 10 % of what InArt's model has, less headers.
reaches() { # UNITS SHARES
	local is resent
	sums "$2"
	read -r is resent <"$work/reached"
	awk -v units="$1" -v shares="$2" -v is="$is" -v resent="$resent" -v part="$(jq -n "$payload / $frame")" 'BEGIN {
		due = units * 4 * part
		printf "# shares %s, %.1f units: %.2f Mbit/s of %.2f, %d contributions sent again\n", shares,
			units, is, due, resent
		exit !(is > 0.9 * due && is < 1.05 * due) }' >&3
}

equal_shares_reach_two() {
	figure_1
	by v1 n0 0 1 2 3 4 5
	by v2 n1 0 1 2 3 4 5
	node_of_tree v1 0-5 | jq -s . >"$work/tree.n0"
	node_of_tree v2 0-5 | jq -s . >"$work/tree.n1"
	reaches 2 1,1
}

shares_of_80_and_20_reach_two_and_a_half() {
	figure_1
	by v1 n0 0 1 2
	by v2 n0 3 4
	by v2 n1 0 1 2 3
	{ node_of_tree v1 0-2; node_of_tree v2 3-4; } | jq -s . >"$work/tree.n0"
	node_of_tree v2 0-3 | jq -s . >"$work/tree.n1"
	reaches 2.5 4,1
}

facts equal_shares_reach_two shares_of_80_and_20_reach_two_and_a_half
