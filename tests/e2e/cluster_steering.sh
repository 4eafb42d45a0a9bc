#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Ways that a cluster wants: whoever writes ways/JOB into the store has a job's packets take them,
# and nodes on them sum. Routing takes the direct way, which is slow.
#
#   e0 (etcd) ── n0    w0 w1 ── n0 ─────── 8 ─────── n3 ── w3
#                                └─ 40 ── n1 ── 40 ──┘
#                                         w2
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "$0")/cluster_lib.sh"

exec 3>&1
secret=true steering=true # nodes take parts in trees, and steer

# A job of all workers with its root at n3, which is then joined.
train() { # [tally-perf-arguments...]
	local i
	create_at n0 train 4 --window 8
	at n0 job place train --node n3 --stay
	for i in {0..3}; do join_at "w$i" n0 train "$@"; done
	until_true runs_at n3 train
}

way() { # HOST NODE...
	jq -n --arg worker "$(bed addr "$1")" '{ $worker, nodes: $ARGS.positional }' --args "${@:2}"
}
triangle_ways() { way w0 n0 n1 n3; way w1 n0 n1 n3; way w2 n1 n3; way w3 n3; }
want() { # [SUMS [WAYS]]: a list in JSON, and a function
	local birth
	birth=$(keys_of job/train --print-value-only | jq -r .birth)
	"${2:-triangle_ways}" |
		jq -sc --arg birth "$birth" --arg address "$(bed addr n3)" --argjson sums "${1:-[\"n0\",\"n1\"]}" \
			'{ $birth, root: "n3", $address, why: "the upper way is free", $sums, ways: . }' |
		put ways/train
}
put() { ETCDCTL_API=3 on e0 etcdctl --endpoints "$(etcd_url)" put "/tally/tally/$1" >/dev/null; }
delete() { ETCDCTL_API=3 on e0 etcdctl --endpoints "$(etcd_url)" del "/tally/tally/$1" >/dev/null; }

# Up from workers; down to workers and to who sums.
are_steered() { has_rules n0 2 1 && has_rules n1 6 2 && has_rules n3 5 1; }
are_free() { has_rules n0 0 0 && has_rules n1 0 0 && has_rules n3 0 0; }
sums() { [[ $(at "$1" job list --json | jq -r '.[] | select(.name == "train") | .role') == inner ]]; } # NODE
sent() { on "$1" ip -j -s link show "$2" | jq '.[0].stats64.tx.bytes'; } # NODE PORT
chunks() { at "$1" stats --json | jq .SENT_UP.packets; } # NODE
rate() { jq -s '[.[] | select(.verb == "allreduce") | .algbw * 8000] | min' "$work"/w[0-3].train; } # Mbit/s of the slowest

packets_take_the_ways_and_nodes_on_them_sum() {
	local i by before after was
	triangle
	train -d int32 -b 512K -e 512K -n 10 -w 1
	finish train w0 w1 w2 w3
	before=$(rate)
	for i in {0..3}; do join_at "w$i" n0 train --seconds 25 -b 512K -e 512K; done
	until_true runs_at n3 train
	want
	until_true are_steered || { on n0 ip rule; tail -n 3 "$work"/n?.log; return 1; }
	{ until_true sums n0 && until_true sums n1; } || { at n3 job show train; tail -n 5 "$work"/n?.log; return 1; }
	by=$(sent n0 n3) was=$(chunks n1)
	until_true sent_more n0 n1 2000000
	(($(sent n0 n3) - by < 100000)) || { echo "$(($(sent n0 n3) - by)) bytes went the other way"; return 1; }
	(($(chunks n1) > was))
	finish train w0 w1 w2 w3
	for i in {0..3}; do join_at "w$i" n0 train -d int32 -b 512K -e 512K -n 40 -w 1; done
	finish train w0 w1 w2 w3
	after=$(rate)
	echo "# slowest worker, Mbit/s: $before by routing, of 8; $after by the ways, of 40" >&3
	jq -en "$after > 30 and $before < 8" >/dev/null
}
sent_more() { # NODE PORT BYTES: since it was asked first
	local now
	now=$(sent "$1" "$2")
	: "${first:=$now}"
	((now - first > $3))
}

# As above, with a longer way: neither from n0 nor from n1, which sum, does routing take it, and the
# links that it takes are slow both ways.
#
#   e0 ── n0    w0 w1 ── n0 ─────────── 8 ─────────── n3 ── w3
#                        └─ 40 ── n1 ── 8 ────────────┤
#                                 │└── 40 ── n2 ── 40 ┘
#                                 w2
longer() {
	cluster <<-END || return 1
		host e0 w0 w1 w2 w3
		node n0 n1 n2 n3
		link e0 n0 rate 200mbit
		link w0 n0 rate 100mbit
		link w1 n0 rate 100mbit
		link w2 n1 rate 100mbit
		link w3 n3 rate 100mbit
		link n0 n3 rate 8mbit
		link n1 n3 rate 8mbit
		link n0 n1 rate 40mbit
		link n1 n2 rate 40mbit
		link n2 n3 rate 40mbit
	END
	greet w0 w1 w2 w3 && until_all_see_all
}
longer_ways() { way w0 n0 n1 n2 n3; way w1 n0 n1 n2 n3; way w2 n1 n2 n3; way w3 n3; }
longer_are_steered() { has_rules n0 2 1 && has_rules n1 6 2 && has_rules n2 8 2 && has_rules n3 5 1; }
slow() { # bytes that the slow links carried, both ways
	echo $(($(sent n0 n3) + $(sent n3 n0) + $(sent n1 n3) + $(sent n3 n1)))
}

results_come_back_by_the_ways() {
	local i before after by
	longer
	train -d int32 -b 512K -e 512K -n 10 -w 1
	finish train w0 w1 w2 w3
	before=$(rate)
	for i in {0..3}; do join_at "w$i" n0 train -d int32 --seconds 25 -b 64K -e 64K; done
	until_true runs_at n3 train
	for i in 1 2; do # they come and go while the run is on
		want '["n0", "n1"]' longer_ways
		until_true longer_are_steered || { on n2 ip rule; tail -n 3 "$work"/n?.log; return 1; }
		{ until_true sums n0 && until_true sums n1; } || { at n3 job show train; return 1; }
		first='' && until_true sent_more n3 n2 2000000 # results, in the midst of it
		delete ways/train
		until_true has_rules n2 0 0
		first='' && until_true sent_more n3 n0 100000 # as routing has it
	done
	want '["n0", "n1"]' longer_ways
	until_true longer_are_steered
	finish train w0 w1 w2 w3
	for i in {0..3}; do join_at "w$i" n0 train -d int32 -b 512K -e 512K -n 60 -w 1; done
	until_true runs_at n3 train
	by=$(slow)
	finish train w0 w1 w2 w3
	by=$(($(slow) - by)) after=$(rate)
	echo "# slowest worker, Mbit/s: $before by routing, of 8; $after by the ways, of 40; $by bytes by the slow links" >&3
	jq -en "$after > 32 and $before < 8" >/dev/null
	((by < 400000)) # of 30 MB of results that each node gets: what agents say to one another
}

# Rules and routes of others, with one or two of the numbers that ours have.
foreign() {
	local add=${1:-add}
	on "$2" ip rule "$add" from 10.99.0.1 to 10.99.0.2 priority 8400 table 99
	on "$2" ip rule "$add" from 10.99.0.1 to 10.99.0.2 priority 99 protocol 84 table 2047934464
	on "$2" ip route "$add" 10.99.0.0/16 dev n1 table 99 proto 84
}
kernel_of() { { on "$1" ip rule; on "$1" ip route show table all; on "$1" ip -6 rule; } | sort; } # NODE

ways_go_as_they_came_and_the_run_goes_on() {
	local i
	triangle
	foreign add n0
	kernel_of n0 >"$work/before"
	train --seconds 25 -b 64K -e 64K
	want
	until_true are_steered
	want '["n1"]' # another tree on the same ways
	until_true sums_not n0
	until_true sums n1
	delete ways/train
	until_true are_free
	kernel_of n0 | diff "$work/before" -
	until_true sums n0 # where routing leads
	want
	until_true are_steered
	finish train w0 w1 w2 w3
	at n0 cluster train | has -E "^$(bed addr w0) +n0, n1, n3" || { at n0 cluster train; return 1; }
	at n0 events | has 'ways .*the upper way is free' || { at n0 events; return 1; }
}
sums_not() { ! sums "$1"; }

an_agent_that_is_killed_leaves_nothing_for_long() {
	triangle
	foreign add n0
	kernel_of n0 >"$work/before"
	train --seconds 30 -b 64K -e 64K
	want
	until_true are_steered
	end_at n1 KILL
	has_rules n1 6 2 # nobody took them away
	on n1 ip rule add from 10.99.0.3 to 10.99.0.4 priority 8400 protocol 84 table 2047934465 # as a way that was
	start_at n1
	until_true are_steered || { on n1 ip rule; return 1; }
	until_true sums n1
	end_at n0 TERM
	has_rules n0 0 0
	kernel_of n0 | diff "$work/before" -
	until_true has_rules n1 0 0 # no way holds
	at n1 cluster train | has -E 'packets take the ways of routing: (n0 reports nothing|n1 does not hear n0)' || { at n1 cluster train; return 1; }
	start_at n0
	until_true are_steered
	finish train w0 w1 w2 w3
}

# All tables have routes of others. Nobody's ways hold then, and everybody knows.
what_the_kernel_does_not_do_is_said() {
	local table
	triangle
	for ((table = 2047934464; table < 2047934464 + 64; table++)); do
		echo "route add 10.98.0.0/16 dev n3 table $table"
	done | exec_all n0
	train --seconds 15 -b 64K -e 64K
	want
	until_true has_status n0 'packets take the ways of routing here: the kernel cannot be told of a next node' ||
		{ at n0 status; return 1; }
	until_true has_trouble 'n0 does not steer' || { at n1 cluster train; return 1; }
	until_true are_free
	finish train w0 w1 w2 w3
}
exec_all() { on "$1" ip -batch -; } # NODE: commands of ip on standard input
has_status() { at "$1" status | has "$2"; }
has_trouble() { [[ $(at n1 cluster train --json | jq -r .jobs[0].ways.trouble) == "$1" ]]; }

command -v etcd >/dev/null || { echo '1..0 # SKIP no etcd here: scripts/setup.sh'; exit 0; }
facts packets_take_the_ways_and_nodes_on_them_sum results_come_back_by_the_ways \
	ways_go_as_they_came_and_the_run_goes_on an_agent_that_is_killed_leaves_nothing_for_long \
	what_the_kernel_does_not_do_is_said
