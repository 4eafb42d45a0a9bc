#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What jobs of a cluster do when links, etcd and the network fail: no call fails and no sum is wrong;
# and how long it takes until all is as before, each with its limit.
# (Agents, leaders and roots that die: cluster_jobs.sh, cluster_moves.sh; etcd under load: store.sh.)
#
#   e0 (etcd) ──┐      w1        w3
#   w0 ─────── n0 ──── n1 ────── n3 ── w4
#               └───── n2 ───────┘
#                     w2 w5
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "$0")/cluster_lib.sh"

exec 3>&1
resumed_s=2	# after a link is back, until calls end again
member_s=8	# after a member of etcd has died, until something is written again
healed_s=15	# after a network is one again, until each agent knows all of it

job_of_two() { # SECONDS: at n1 and n3; the root is n3
	create_at n0 train 2
	join_at w1 n0 train --seconds "$1" -b 64K -e 64K -n 10
	join_at w3 n1 train --seconds "$1" -b 64K -e 64K -n 10
	until_true runs_somewhere
	at n0 job place train --node n3 --stay
	until_true sums_at n3
}
sums_at() { (($(completed "$1") > 0)); }
completed() { at "$1" stats --job train --json 2>/dev/null | jq '.COMPLETED.packets // 0' || echo 0; } # NODE
beyond() { (($(completed "$1") > $2)); } # NODE CHUNKS

# In one figure: the slowest call, of both workers.
slowest_ms() { jq -s 'map(.max_us) | max / 1000 | round' "$work"/w[13].train; }
at_most() { (($1 <= $2 * slow)) || { echo "$3: $1, at most $2"; return 1; }; }

lacks() { ! drawn n0 | has -x "n1 n3"; }
now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

# Down until all know that, and then up: twice.
a_link_that_flaps_stops_calls_no_longer_than_it_is_down() {
	local i begun down=0
	square
	job_of_two 25
	for i in 1 2; do
		begun=$(now_ms)
		on n1-n3 ip link set n1 down
		until_true lacks
		on n1-n3 ip link set n1 up
		begun=$(($(now_ms) - begun))
		((begun < down)) || down=$begun
		until_true beyond n3 "$(completed n3)"
		until_true sees_all n0
	done
	finish train w1 w3
	echo "# a link is down twice, for up to $down ms: the slowest call took $(slowest_ms) ms" >&3
	at_most "$(slowest_ms)" $((down + resumed_s * 1000)) "ms of the slowest call"
}

rate_set() { # RATE: of the cable between n1 and n3, both ways
	local dev
	for dev in $(on n1-n3 tc -j qdisc show | jq -r '.[] | select(.kind == "tbf").dev'); do
		on n1-n3 tc qdisc change dev "$dev" root tbf rate "$1" burst 131072 latency 20ms
	done
}

# Sums in a second, while so many are made.
sums_a_second() { # CHUNKS
	local was begun
	was=$(completed n3) begun=$(now_ms)
	until_true beyond n3 $((was + $1))
	echo $((($(completed n3) - was) * 1000 / ($(now_ms) - begun)))
}

# 100 to 10 Mbit/s: its ports say nothing of that, so the job stays, and takes what there is.
a_link_that_slows_to_a_tenth_slows_calls_and_ends_none() {
	local before during after
	square
	job_of_two 35
	before=$(sums_a_second 40000)
	rate_set 10mbit
	during=$(sums_a_second 6000)
	rate_set 100mbit
	until_true beyond n3 $(($(completed n3) + 2000)) # what was lost is sent again
	after=$(sums_a_second 40000)
	finish train w1 w3
	echo "# sums in a second at 100 Mbit/s $before, at 10 $during, at 100 again $after; slowest call" \
		"$(slowest_ms) ms" >&3
	((during > 0 && after * 2 > before))
}

# --- three members of etcd, all at e0

member=()
member_url() { echo "http://$(bed addr e0):$((2379 + 10 * $1))"; }
start_member() { # NUMBER [new|existing]
	local all i
	for i in 0 1 2; do all+=${all:+,}m$i=http://$(bed addr e0):$((2380 + 10 * i)); done
	exec_on e0 etcd --name "m$1" --data-dir "$work/etcd$1" \
		--listen-client-urls "$(member_url "$1")" --advertise-client-urls "$(member_url "$1")" \
		--initial-advertise-peer-urls "http://$(bed addr e0):$((2380 + 10 * $1))" \
		--listen-peer-urls "http://$(bed addr e0):$((2380 + 10 * $1))" \
		--initial-cluster "$all" >>"$work/etcd$1.log" 2>&1 &
	member[$1]=$!
}
kill_member() { kill -KILL "${member[$1]}"; wait "${member[$1]}" 2>/dev/null || true; }
start_members() {
	local i
	for i in 0 1 2; do start_member "$i"; done
	until_true etcd_answers
}
member_that_leads() {
	local i
	for i in 0 1 2; do
		ETCDCTL_API=3 on e0 etcdctl --endpoints "$(member_url "$i")" endpoint status -w json 2>/dev/null |
			jq -e '.[0].Status | .leader == .header.member_id' >/dev/null && echo "$i" && return
	done
}
all_members() { echo "etcd: [$(member_url 0), $(member_url 1), $(member_url 2)]"; }
created() { at "$1" job create "$2" --workers 2 --cluster --token-file "$work/$2.token" >/dev/null 2>&1; }

members_of_etcd_die_and_come_back() {
	local name lead seconds
	cluster_starts=start_members cluster_store=all_members square
	job_of_two 60
	lead=$(member_that_leads)
	kill_member "$lead"
	seconds=$SECONDS
	until_true created n1 second
	seconds=$((SECONDS - seconds))
	echo "# the member of etcd that leads has died: written again after $seconds s" >&3
	at_most "$seconds" "$member_s" "seconds until something is written"
	# Without a majority nothing is written, and says so; what sums goes on.
	kill_member $(((lead + 1) % 3))
	until_true cannot_write n2
	until_true beyond n3 "$(completed n3)"
	start_member $(((lead + 1) % 3))
	seconds=$SECONDS
	until_true created n2 third
	echo "# a majority is back: written again after $((SECONDS - seconds)) s" >&3
	start_member "$lead"
	for name in n0 n1 n2 n3; do
		until_true sees_all "$name"
	done
	finish train w1 w3
}
cannot_write() {
	! at "$1" job create never --workers 2 --cluster --token-file "$work/never" >"$work/words" 2>&1 &&
		has 'the store' "$work/words"
}

# --- a network in two parts: n0 and n1 with etcd, n2 and n3 without

split() { # up | down
	on n0-n2 ip link set n0 "$1"
	on n1-n3 ip link set n1 "$1"
}
is_cut_off() { at n3 topology | has -E 'etcd heard [1-9][0-9](\.[0-9]+)? s ago'; }
knows_two() { [[ $(at n0 topology --json | jq '[.machines[] | select(.kind == "node")] | length') == 2 ]]; }
summed_beyond() { (($(at n3 stats --job both --json | jq .COMPLETED.packets) > $1)); }

a_network_that_splits_sums_on_in_both_parts_and_becomes_one() {
	local name seconds was
	square
	create_at n0 both 3
	for name in w3 w4 w5; do
		join_at "$name" n2 both --seconds 45 -b 64K -e 64K -n 10
	done
	until_true at_n3 both
	split down
	until_true is_cut_off
	until_true knows_two
	was=$(at n3 stats --job both --json | jq .COMPLETED.packets)
	until_true summed_beyond "$was"
	{ at n3 job create late --workers 2 --cluster --token-file "$work/late" || true; } 2>&1 | has 'the store'
	at n0 job create early --workers 2 --cluster --token-file "$work/early" >/dev/null
	split up
	seconds=$SECONDS
	until_all_see_all || return 1
	seconds=$((SECONDS - seconds))
	echo "# a split network is one again: each agent knows all of it after $seconds s" >&3
	at_most "$seconds" "$healed_s" "seconds until all is known"
	until_true knows_job n3 early
	finish both w3 w4 w5
}
at_n3() { [[ $(shared n0 "$1" root) == n3 && $(shared n0 "$1" state) == running ]]; }
knows_job() { at "$1" cluster "$2" >/dev/null 2>&1; }

command -v etcd >/dev/null || { echo '1..0 # SKIP no etcd here: scripts/setup.sh'; exit 0; }
facts a_link_that_flaps_stops_calls_no_longer_than_it_is_down \
	a_link_that_slows_to_a_tenth_slows_calls_and_ends_none \
	a_network_that_splits_sums_on_in_both_parts_and_becomes_one members_of_etcd_die_and_come_back
