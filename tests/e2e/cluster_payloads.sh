#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs of a cluster keep their payload where they go, and do not go where it does not fit.
#
#   e0 (etcd) ── n0    w0 w1 ── n0 ═══ n1 ═══ n3 ══ w2 w3     ═ 3500
#                                └──── n2 ────┘               ─ 1500: all links of n2
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "$0")/cluster_lib.sh"

diamond() {
	cluster <<-END || return 1
		host e0 w0 w1 w2 w3
		node n0 n1 n2 n3
		link e0 n0
		link w0 n0 mtu 3500
		link w1 n0 mtu 3500
		link n0 n1 mtu 3500
		link n0 n2
		link n1 n3 mtu 3500
		link n2 n3
		link w2 n3 mtu 3500
		link w3 n3 mtu 3500
	END
	greet w0 w1 w2 w3 && until_all_see_all
}

payload_at() { at "$1" job show "$2" --json | jq '.[0].payload'; } # NODE JOB
completed() { at "$2" stats --job "$1" --json 2>/dev/null | jq '.COMPLETED.packets // 0' || echo 0; }
sums_at() { (($(completed "$1" "$2") > 1000)); } # beyond warm-ups
place() { at n0 job place "$1" --node "$2" --stay; }

a_run_keeps_its_payload_when_it_moves() {
	diamond
	create_at n0 train 2
	place train n1
	join_at w0 n0 train --seconds 25 -n 10 -b 64K -e 64K
	join_at w1 n0 train --seconds 25 -n 10 -b 64K -e 64K
	until_true sums_at train n1
	[[ $(payload_at n1 train) == 3392 ]] || { at n1 job show train; return 1; }
	place train n0
	until_true sums_at train n0
	[[ $(payload_at n0 train) == 3392 ]] || { at n0 job show train; return 1; }
	finish train w0 w1
}

# Its ways to n2 would take 1408: the run stays, and its next root is another one.
a_run_does_not_move_where_its_payload_does_not_fit() {
	diamond
	create_at n0 train 2
	place train n1
	join_at w0 n0 train --seconds 25 -n 10 -b 64K -e 64K
	join_at w1 n0 train --seconds 25 -n 10 -b 64K -e 64K
	until_true sums_at train n1
	place train n2
	until_true has -F 'the run cannot go on here' "$work/n2.log" || { cat "$work/n2.log"; return 1; }
	until_true has -F 'job refused: job=train reason="payload 3392' "$work/n2.log" || { cat "$work/n2.log"; return 1; }
	finish train w0 w1
	[[ $(completed train n2) == 0 ]] || { at n2 stats; return 1; }
}

# Nobody asks the old root: what fits the next one, a new run gets.
a_run_that_loses_its_root_goes_on_where_its_payload_fits() {
	diamond
	create_at n0 train 2
	place train n1
	join_at w0 n0 train --seconds 30 -n 10 -b 64K -e 64K
	join_at w1 n0 train --seconds 30 -n 10 -b 64K -e 64K
	until_true sums_at train n1
	at n0 job place train --node n1 # and wherever the leader likes
	on n0-n1 ip link set n1 down
	on n1-n3 ip link set n1 down
	end_at n1 KILL
	finish train w0 w1
	[[ $(shared n0 train root) == n[03] ]] || { at n0 cluster; return 1; }
}

# Parts of one call go to both roots, in chunks of one size.
a_job_of_several_roots_has_the_payload_that_fits_everywhere() {
	local host
	diamond
	create_at n0 train 4 --roots 2
	place train n1
	place train.2 n2
	for host in w0 w1 w2 w3; do join_at "$host" n0 train --seconds 5 -n 10 -b 64K -e 64K; done
	until_true sums_at train n1
	[[ $(payload_at n1 train) == 1408 ]] || { at n1 job show train; return 1; }
	finish train w0 w1 w2 w3
}

facts a_run_keeps_its_payload_when_it_moves a_run_does_not_move_where_its_payload_does_not_fit \
	a_run_that_loses_its_root_goes_on_where_its_payload_fits \
	a_job_of_several_roots_has_the_payload_that_fits_everywhere
