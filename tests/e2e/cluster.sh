#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Agents of a cluster: they find out who is at the other end of each link, tell it to the store,
# and each of them knows the network. A real etcd; tests/e2e/store.sh has the store by itself.
#
#   e0 (etcd) ──┐            w1
#   w0 ─────── n0 ─────────── n1 ─────────── n2 ── w2
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "$0")/cluster_lib.sh"

line() {
	cluster <<-END
		host e0 w0 w1 w2
		node n0 n1 n2
		link e0 n0 rate 200mbit
		link w0 n0 rate 100mbit
		link n0 n1 rate 50mbit
		link w1 n1 rate 100mbit
		link n1 n2 rate 40mbit
		link w2 n2 rate 100mbit
	END
}

every_agent_knows_the_network() {
	line
	greet w0 w1 w2
	until_all_see_all || return 1
	at n2 topology --export >"$work/exported"
	grep -x 'link n0 n1 rate 50mbit' "$work/exported"
	grep -x 'link n1 n2 rate 40mbit' "$work/exported"
	grep -x "way n0 h$(bed addr w2) n1" "$work/exported"
	grep -x 'way n2 n0 n1' "$work/exported"
	at n1 topology >"$work/shown"
	has -E '^cluster tally, as node n1 of 3; etcd heard [0-9.]+ s ago$' <"$work/shown"
	has -E '^n2 +ready +10\.77\.0\.3 +1,024 +1,024' <"$work/shown"
	has -E '^n0 n1 +n1 n0 +50 Mbit/s' <"$work/shown"
	at n1 topology --svg >"$work/network.svg"
	is_xml "$work/network.svg"
	has '<title>n0 n1 to n1 n0: 50 Mbit/s each way; ' "$work/network.svg"
}

settled() {
	line || return 1
	greet w0 w1 w2 && until_all_see_all
}

what_is_exported_can_be_simulated() {
	settled
	at n0 topology --export >"$work/live.topology"
	cat >"$work/two.workload" <<-END
		job a workers=h$(bed addr w0),h$(bed addr w1) bytes=1M iterations=3
		job b workers=h$(bed addr w1),h$(bed addr w2) bytes=1M iterations=3
	END
	"$build/tally-sim" run --network "$work/live.topology" --workload "$work/two.workload" \
		--placement none,traffic >"$work/simulated"
	has traffic <"$work/simulated"
}

ways_of() { at n0 topology --export | grep -c "^way $1 " || true; } # NODE
has_ways() { (($(ways_of "$1") > 0)); }
has_none() { (($(ways_of "$1") == 0)); }

# A router may have a million.
of_many_routes_none_is_told() {
	local i
	settled
	until_true has_ways n1
	for i in {0..299}; do
		echo "route add 10.99.$((i / 250)).$((i % 250 + 1))/32 dev w1"
	done >"$work/many"
	on n1 ip -batch "$work/many"
	until_true has_none n1
	has_ways n2
}

lacks() { ! drawn "$1" | has -x "$2"; } # NODE LINK

a_link_that_goes_is_not_drawn_until_it_comes_back() {
	settled
	on n1 ip link set n2 down
	until_true lacks n0 "n1 n2"
	[[ $(drawn n0) == "$(meant | grep -vx 'n1 n2')" ]] || { drawn n0; return 1; }
	on n1 ip link set n2 up
	until_true sees_all n0
}

node_is_gone() { ! at n0 topology | grep "^$1 " >/dev/null; }

a_node_that_is_killed_goes_and_comes_back() {
	local begun
	settled
	end_at n2 KILL
	begun=$SECONDS
	until_true node_is_gone n2
	echo "gone after $((SECONDS - begun)) s"
	until_true lacks n0 "n1 n2"
	lacks n0 "n2 w2"
	start_at n2
	until_true sees_all n0
	until_true sees_all n2
	[[ $(events_of n0 n2) == "came silent came" ]] || { at n0 events; return 1; }
}
events_of() { # NODE SUBJECT
	at "$1" events --json | jq -r --arg node "$2" '[.events[] | select(.node == $node and .job == "")
		.kind] | map(select(. != "leader")) | join(" ")'
}

sums_without_etcd() {
	at n0 job create train --workers 2 --token-file "$work/train.token" >/dev/null || return 1
	local host pids=()
	for host in w0 w1; do
		exec_on "$host" "$build/tally-perf" --join train --agent "$(bed addr n0)" \
			--token-file "$work/train.token" --json --hash >"$work/$host.out" &
		pids+=($!)
	done
	wait "${pids[0]}" && wait "${pids[1]}"
}

has_trouble() { at "$1" status --json | jq -r '.troubles[]' | has "$2"; }
has_no_trouble() { [[ $(at "$1" status --json | jq '.troubles | length') == 0 ]]; }

etcd_may_go_and_sums_go_on() {
	local name
	settled
	kill_etcd
	sums_without_etcd
	until_true has_trouble n0 'store of the cluster has not been heard for'
	[[ $(drawn n0) == "$(meant)" ]] || { echo "what n0 knew last:"; drawn n0; return 1; }
	at n0 topology | has -E 'etcd heard [0-9.]+ s ago'
	# An agent that starts now serves its node, and says what is wrong.
	end_at n1 TERM
	start_at n1
	until_true has_trouble n1 'store of the cluster was never heard'
	start_etcd
	for name in n0 n1 n2; do
		until_true sees_all "$name" || { drawn "$name"; at "$name" status; return 1; }
		until_true has_no_trouble "$name" || { at "$name" status; return 1; }
	done
}

# Anybody on a link can say that they are n2 at its port w2.
a_forged_hello_makes_no_link() {
	settled
	on w0 python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 255)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
name = lambda text, size: text.encode().ljust(size, b"\0")
s.sendto(b"tallyhi1" + name("tally", 64) + name("n2", 64) + name("w2", 16), ("255.255.255.255", 31250))'
	until_true has "node=n2 at=w2" "$work/n0.log" || { grep heard "$work/n0.log"; return 1; }
	until_true forged_is_stored
	sees_all n1
}
forged_is_stored() { keys_of report/n0 --print-value-only | has '"port":"w0","node":"n2"'; }

written() { at "$1" status --json | jq ".cluster.$2"; }

# Of a network in which nothing happens, and of one that is busy.
reports_are_few() {
	local name before
	settled
	# What the first seconds have brought: forecasts settle.
	until_true is_quiet
	for name in n0 n1 n2; do
		(($(written "$name" report_bytes) < 2048 * $(written "$name" reports))) || return 1
	done
	before=$(written n0 reports)
	SECONDS=0
	on w1 ping -f -q -w 10 "$(bed addr n0)" >/dev/null || true
	echo "busy: $(($(written n0 reports) - before)) reports in $SECONDS s"
	(($(written n0 reports) - before <= SECONDS + 1))
}
# Nobody has written for five seconds.
is_quiet() {
	local before now
	before=$(for name in n0 n1 n2; do written "$name" reports; done)
	on w0 timeout 5 tail -f /dev/null || true
	now=$(for name in n0 n1 n2; do written "$name" reports; done)
	[[ $now == "$before" ]]
}

a_node_without_etcd_is_a_cluster_by_itself() {
	cat >"$work/topology" <<-END
		host w0 w1
		node n0
		link w0 n0 rate 100mbit
		link w1 n0 rate 100mbit
	END
	bed up "$work/topology"
	configure n0 "file: $work/n0.cluster"
	start_at n0
	greet w0 w1
	until_true sees_all n0
	at n0 topology | has 'as node n0 of 1; local heard'
	[[ ! -e $work/n0.cluster ]] || { echo "a report is on disk"; return 1; }
}

refused() { # CLUSTER-KEYS WORDS
	local keys=$1
	[[ $keys == node:* ]] || keys="node: n0, $keys"
	sed -i "s|^cluster:.*|cluster: {$keys}|" "$work/n0.yaml"
	! on n0 "$build/tallyd" --config "$work/n0.yaml" --check >"$work/check" 2>&1 || return 1
	has "$2" <"$work/check" || { cat "$work/check"; return 1; }
}

what_is_wrong_with_the_keys_is_said() {
	cat >"$work/topology" <<-END
		host w0
		node n0
		link w0 n0 rate 100mbit
	END
	bed up "$work/topology"
	configure n0 "file: $work/n0.cluster"
	refused "etcd: [10.0.0.1:2379]" 'http://HOST:PORT or https://HOST:PORT'
	refused "etcd: ['https://10.0.0.1:2379'], user: tally" 'user and password come together'
	refused "etcd: ['https://10.0.0.1:2379'], certificate: /x" 'certificate and key come together'
	refused "etcd: ['http://10.0.0.1:2379'], ca: /x" 'only where an etcd begins with https://'
	refused "etcd: ['https://10.0.0.1:2379'], user: tally, password: $work/none" \
		"cluster.password: $work/none: No such file"
	echo secret >"$work/password"
	refused "etcd: ['http://10.0.0.1:2379'], user: tally, password: $work/password" \
		'a password goes over https:// only'
	refused "etcd: ['https://10.0.0.1']" 'http://HOST:PORT or https://HOST:PORT'
	refused "etcd: ['https://10.0.0.1:2379'], ca: $work/none" "cluster.ca: $work/none: No such file"
	refused "node: none, etcd: ['https://10.0.0.1:2379']" 'give this node a name, or leave out etcd'
	: >"$work/empty"
	refused "etcd: ['https://10.0.0.1:2379'], user: tally, password: $work/empty" \
		'its first line has to be the password'
	sed -i "s|^cluster:.*||" "$work/n0.yaml"
	start_at n0
	{ at n0 topology || true; } 2>&1 | has 'this node is in no cluster: give it a name at cluster.node'
	at n0 status --json | jq -e '.cluster == null' >/dev/null
	echo "cluster: {node: n0}" >>"$work/n0.yaml"
	{ at n0 reload || true; } 2>&1 | has 'cluster: only a restart changes this key'
}

command -v etcd >/dev/null || { echo '1..0 # SKIP no etcd here: scripts/setup.sh'; exit 0; }
facts every_agent_knows_the_network what_is_exported_can_be_simulated \
	of_many_routes_none_is_told \
	a_link_that_goes_is_not_drawn_until_it_comes_back a_node_that_is_killed_goes_and_comes_back \
	etcd_may_go_and_sums_go_on a_forged_hello_makes_no_link reports_are_few \
	a_node_without_etcd_is_a_cluster_by_itself what_is_wrong_with_the_keys_is_said
