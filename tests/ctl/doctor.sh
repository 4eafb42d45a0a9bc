#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
#    namespace a              namespace b
#   ┌────────────┐           ┌────────────┐
#   │ node    v0 ├───────────┤ v1         │    things are broken one by one; tallyctl doctor
#   │         w0 ├───────────┤ w1         │    must find each, and its own command must mend it
#   └────────────┘           └────────────┘
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

build=$(cd "${TALLY_BUILD:-build}" && pwd)
PATH=$build:$PATH
export TALLY_SOCKET=/nowhere/to/be/found
prefix=doctor$$
count=0 failed=0

tear_down() {
	local server
	for server in $(jobs -p); do
		kill "$server" 2>/dev/null
	done
	wait 2>/dev/null
	tally-node detach --pin "/sys/fs/bpf/tally-v0-v1" 2>/dev/null
	tally-node detach --pin "/sys/fs/bpf/tally-w0-w1" 2>/dev/null
	ip netns del "$prefix-a" 2>/dev/null
	ip netns del "$prefix-b" 2>/dev/null
	ip netns del "$prefix-c" 2>/dev/null
}
trap tear_down EXIT

on() { local name=$1; shift; nsenter --net="/run/netns/$prefix-$name" "$@"; }

ip netns add "$prefix-a" && ip netns add "$prefix-b" && ip netns add "$prefix-c" || exit 1
ip link add v0 netns "$prefix-a" type veth peer name v1 netns "$prefix-b"
ip link add w0 netns "$prefix-a" type veth peer name w1 netns "$prefix-b"
on a ip link set w0 up
on b ip link set v1 up
on b ip link set w1 up

# The finding of a check, on a port or "" for the node: a line of JSON.
finding() { # CHECK PORT
	on a tallyctl doctor v0 w0 --json |
		jq -c --arg check "$1" --arg port "$2" \
			'[.[] | select(.check == $check and .port == $port)] | last'
}

result() { # FACT CODE WHAT-WAS-SEEN
	count=$((count + 1))
	if [ "$2" = 0 ]; then
		echo "ok $count - $1"
	else
		echo "not ok $count - $1"
		printf '%s\n' "$3" | sed 's/^/# /'
		failed=1
	fi
}

# It is found, and mended by the command that is found with it.
found_and_mended() { # FACT LEVEL CHECK PORT WORDS
	local before after mend
	before=$(finding "$3" "$4")
	mend=$(jq -r .mend <<<"$before")
	if [ "$(jq -r .level <<<"$before")" != "$2" ] || [[ $before != *"$5"* ]] || [ -z "$mend" ]; then
		result "$1" 1 "$before"
		return
	fi
	on a bash -c "$mend" >/dev/null 2>&1
	after=$(finding "$3" "$4")
	[[ $after == null || $(jq -r .level <<<"$after") == ok ]]
	result "$1" $? "before: $before; after '$mend': $after"
}

found_and_mended "a port that is down is found and mended" fail link v0 "is down"
found_and_mended "a node that does not route is found and mended" warn forwarding "" "does not route"
found_and_mended "a veth without a program at its other end is found, in its namespace, and mended" \
	fail peer v0 "v1 in namespace $prefix-b"
on b ethtool -K w1 gro on
found_and_mended "GRO alone is not enough at the other end of a veth" fail peer w0 "never delivers"
on a sysctl -qw net.ipv4.conf.w0.rp_filter=1
found_and_mended "a strict reverse path filter is found and mended" warn rp_filter w0 "strict"
on a ip link set w0 mtu 1400
seen=$(finding mtu w0)
[[ $seen == *'"warn"'*"--payload 1280"* ]]
result "an MTU that the ordinary payload does not fit is found" $? "$seen"
on a ethtool -K w0 rx-udp-gro-forwarding on
found_and_mended "an offload that joins messages is found and mended" fail offloads w0 "join"

seen=$(on a tallyctl doctor v0 w0 --json | jq -c 'map(select(.level == "fail") | .check)')
[[ $seen == '["daemon"]' ]]
result "without a daemon that fails, and nothing else" $? "$seen"

on b ip link set w1 down
seen=$(finding link w0)
[[ $seen == *'"fail"'*"has no carrier"* ]]
result "a port without a carrier is found" $? "$seen"
on b ip link set w1 up

on a ip link add x0 type veth peer name v1 netns "$prefix-c"
on a ip link set x0 up
seen=$(on a tallyctl doctor v0 x0 --json | jq -r '.[] | select(.check == "peer") | .mend')
[[ $seen == *"--pin /sys/fs/bpf/tally-x0-v1"* ]]
result "two peers of one name get pins of their own" $? "$seen"

on a "$build/testbed-cable" pass x0
seen=$(on a tallyctl doctor x0 --json | jq -c '.[] | select(.check == "xdp")')
[[ $seen == *'"fail"'*"and not Tally's"*"tallyd does not start with this port"*"{name: x0, share: true}"* ]]
result "another XDP program on a port is why tallyd does not start there" $? "$seen"

# Where /etc/tally/tallyd.yaml has these ports, and /etc nothing else.
taken() { # PORTS
	# shellcheck disable=SC2016
	on a unshare --mount bash -c 'mount -t tmpfs none /etc && mkdir /etc/tally &&
		printf "ports: %s\nservice: 10.0.0.1\n" "$0" >/etc/tally/tallyd.yaml &&
		exec tallyctl doctor x0 --json' "$1" | jq -c '.[] | select(.check == "xdp")'
}
seen=$(taken '[x0]')
[[ $seen == *'"fail"'*"{name: x0, share: true} at ports: in /etc/tally/tallyd.yaml"* ]]
result "also where the configuration wants the port" $? "$seen"
seen=$(taken '[w0]')
[[ $seen == *'"warn"'*"and not Tally's"* ]]
result "where the configuration does not want the port yet, that is a warning" $? "$seen"
seen=$(taken '[{name: x0, share: true}]')$(taken '[{name: x0, mode: tc}]')
[[ $seen == *'"ok"'*'"ok"'* && $seen != *"not Tally's"* ]]
result "a port that is shared, or served by TC, is not kept from tallyd" $? "$seen"

# The process itself, which tear_down() ends, and not a shell around the process.
coproc server { exec nsenter --net="/run/netns/$prefix-a" iperf3 --server --port 31249 --forceflush 2>&1; }
# shellcheck disable=SC2154
while read -r line <&"${server[0]}" && [[ $line != *listening* ]]; do :; done
seen=$(finding sockets "")
[[ $seen == *'"fail"'*"TCP port 31249 is in use by iperf3 (process "* ]]
result "another program on the port of joins is found by its name" $? "$seen"
on a tallyctl doctor v0 >/dev/null
[ $? = 1 ]
result "the exit code is 1 when something fails" $? "$(on a tallyctl doctor v0)"

seen=$(on a setpriv --reuid 65534 --clear-groups "$build/tallyctl" doctor v0 w0 2>&1)
[[ $seen == *"only root may load a BPF program"* && $seen == *"only root can look there"* && $seen == *"not checked"* ]]
result "without being root it says what it could not check" $? "$seen"

seen=$(on a tallyctl doctor nosuch0 2>&1)
[[ $seen == *"nosuch0: no such interface"* ]]
result "a port that does not exist is a failure" $? "$seen"

seen=$(on a tallyctl doctor 2>&1)
[[ $seen == *"name the ports to check"*"tallyctl doctor eth1 eth2"* ]]
result "without a daemon it asks for ports" $? "$seen"

echo "1..$count"
exit "$failed"
