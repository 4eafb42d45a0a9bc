#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Figure 1 of InArt in a cluster: as inart.sh has it, but nobody writes split and routes by hand. The
# leader finds ways to both roots and the shares that fit them, and six workers reach 2.5 units of 4
# Mbit/s. By routing's ways, which pass v1 and v2 by, it is 1.33.
#
#                 ┌─ 6 ─ v1 ──┐    ┌─ 6 ─ n0
#   w0 ... w5 ─── r ─ 6 ─ v2 ── q ─┤
#                 └───────────┘    └─ 2 ─ n1
#
# r and q only forward; e0, with the store, is at q.
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "$0")/cluster_lib.sh"

exec 3>&1
payload=1408 frame=1514 # bytes
secret=true steering=true finds=true
workers=(w0 w1 w2 w3 w4 w5)

figure_1() {
	local name
	cluster <<-END || return 1
		host e0 ${workers[*]}
		node n0 n1 v1 v2 r q
		link e0 q rate 200mbit
		$(for name in "${workers[@]}"; do echo "link $name r rate 24mbit"; done)
		link v1 r rate 24mbit
		link v2 r rate 24mbit
		link v1 q rate 100mbit
		link v2 q rate 100mbit
		link r q rate 100mbit
		link n0 q rate 24mbit
		link n1 q rate 8mbit
	END
	for name in r q; do # they sum for nobody
		end_at "$name" TERM
		secret='' configure "$name" && start_at "$name" || return 1
	done
	greet "${workers[@]}" && until_all_see_all
}

create() {
	create_at n0 train 6 --roots 2 --window 8
	at n0 job place train --node n0 --stay
	at n0 job place train.2 --node n1 --stay
}
train() { # [tally-perf-arguments...]
	local host
	for host in "${workers[@]}"; do join_at "$host" n0 train -d int32 "$@"; done
	until_true runs_at n1 train.2
}
have_ways() { [[ -n $(keys_of ways/train) && -n $(keys_of ways/train.2) ]] && (($(steered r) > 0)); }
seen() { at n0 cluster train; at n0 cluster train.2; at n0 events; grep -hE 'ways|shares' "$work"/*.log | tail -n 8; }

the_leader_finds_ways_to_both_roots_and_shares() {
	local began
	figure_1
	create
	train --seconds 60 -b 64K -e 64K
	began=$SECONDS
	patiently have_ways || { seen; return 1; }
	echo "# ways after $((SECONDS - began)) s, shares $(shared n0 train share) and $(shared n0 train.2 share)" >&3
	has 'with ways and shares of its own workers can send' <<<"$(at n0 cluster train.2)" || { seen; return 1; }
	finish train "${workers[@]}" || { seen; return 1; }
	train -b 512K -e 512K -w 1 -n 12
	finish train "${workers[@]}"
	have_ways || { seen; return 1; }
	jq -rs '[.[] | select(.verb == "allreduce")] | "\(map(.algbw) | min * 8000) \(map(.retransmitted) | add)"' \
		"$work"/w[0-5].train | {
		read -r is resent
		awk -v is="$is" -v resent="$resent" -v part="$(jq -n "$payload / $frame")" 'BEGIN {
			due = 2.5 * 4 * part
			printf "# slowest worker: %.2f Mbit/s of %.2f, %d contributions sent again\n", is, due, resent
			exit !(is > 0.9 * due && is < 1.05 * due) }' >&3
	} || { seen; return 1; }
	at n0 job del train
	until_true has_rules r 0 0
	[[ -z $(keys_of ways/) ]]
}

command -v etcd >/dev/null || { echo '1..0 # SKIP no etcd here: scripts/setup.sh'; exit 0; }
facts the_leader_finds_ways_to_both_roots_and_shares
