#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In three guests, started by vm-testbed/routers: each takes a part in
#
#   w0 ─────────────── n0 ─────────────── w1
#   10.77.1.1    .1.254  .2.254    10.77.2.1
#
# n0 forwards, as any router; later it also sums. w0 leads: it asks the others by TCP, and
# prints what came of it as TAP.
set -euo pipefail
cd "$(dirname "$0")/../.."

me=10.77.0.1		# n0's service address
limit_s=120		# for one step; only there so that a broken test ends

interface() { # NUMBER: the one whose address ends in it
	local device
	for device in /sys/class/net/*; do
		[[ $(<"$device/address") != *:"$1" ]] || echo "${device##*/}"
	done
}

# Neighbours are known beforehand: nothing has to be asked for.
connect() { # NUMBER ADDRESS PEER PEER-NUMBER
	local device
	device=$(interface "$1")
	ip address add "$2/24" dev "$device"
	ip link set "$device" up
	ip neighbour add "$3" lladdr "02:77:00:00:00:$4" nud permanent dev "$device"
}

job() { # NUMBER
	printf 'job %d\nservice %s\nworker 10.77.1.1:40000\nworker 10.77.2.1:40000\n' "$1" "$me" \
		>"/tmp/job$1"
}

# Frames as they are on the wire: none is longer than the MTU while it is being forwarded.
no_giants() { ethtool -K "$(interface "$1")" tso off gso off gro off >/dev/null; }

# --- n0

router() {
	connect 21 10.77.1.254 10.77.1.1 11
	connect 22 10.77.2.254 10.77.2.1 31
	ip address add "$me/32" dev lo
	sysctl -q -w net.ipv4.ip_forward=1
	for step in router_attach router_replace router_stats router_overcommit; do
		nc -l -p 5555 -e "$0" "$step" || true # what it says is looked at elsewhere
	done
}

router_attach() {
	local number
	build/tally-node attach --mode native "$(interface 21)" "$(interface 22)" 2>&1
	for number in 1 2 3; do
		job "$number"
		build/tally-node job add "/tmp/job$number" 2>&1
	done
	for number in 21 22; do
		ethtool -l "$(interface "$number")" | awk '/^Combined/ { n = $2 } END { print n " queues" }'
	done
	dmesg | grep 'XDP request' || echo "XDP_TX has a queue on each CPU"
}

# The driver now counts XDP's queues among its own: that is no reason to refuse.
router_replace() {
	build/tally-node attach --replace --mode native "$(interface 21)" "$(interface 22)" 2>&1
}

router_stats() {
	build/tally-node stats --json
	build/tally-node detach
}

# More queues than CPUs, and none left for XDP: the driver takes the program, and panics later.
router_overcommit() {
	local device
	device=$(interface 21)
	ethtool -L "$device" combined 4 2>&1 || { echo "SKIP its interfaces have one queue"; return; }
	build/tally-node attach --mode native "$device" 2>&1 && return 1
	build/tally-node attach "$device" 2>&1
	build/tally-node detach
}

# --- w1, which does what w0 does

worker1() {
	iperf3 --server --daemon
	connect 31 10.77.2.1 10.77.2.254 22
	ip route add default via 10.77.2.254
	no_giants 31
	nc -l -p 5555 </dev/null
	sum 1
	hashes >/tmp/mine
	nc -l -p 5556 -e cat /tmp/mine
}

# --- w0, which leads

fact() { # NAME COMMAND...: what it says is a remark, with the fact before it
	local name=$1 code=0
	shift
	count=$((count + 1))
	"$@" >/tmp/said 2>&1 || code=$?
	((code == 0)) || failed=1
	((code == 0)) && echo -n "ok " || echo -n "not ok "
	echo "$count - $name$(sed -n 's/^SKIP/ # SKIP/p' /tmp/said)"
	sed 's/^/# /' /tmp/said
}

until_true() {
	local deadline=$((SECONDS + limit_s))
	until "$@" 2>/dev/null; do
		((SECONDS < deadline)) || { echo "never came: $*"; return 1; }
	done
}

# The same calls on both ranks, in the same order. The last one is timed, without checks.
sum() { # RANK
	local number
	local -A arguments=(
		[1]="-d int32 --int-wild -b 4 -e 1M -f 64 -n 3 --hash"
		[2]="-d float32 --float-wild -b 4 -e 1M -f 64 -n 3 --hash"
		[3]="-d float32 -b 4M -e 4M -n 5 --no-check")
	for number in 1 2 3; do
		job "$number"
		# shellcheck disable=SC2086
		build/tally-perf --job "/tmp/job$number" --rank "$1" --timeout 60000 --json \
			${arguments[$number]} >"/tmp/sum$number" || return 1
	done
}

hashes() { jq -c '[.bytes, .hash]' /tmp/sum1 /tmp/sum2; }

# Mbit/s that arrive at a worker, with as much going the other way at the same time.
forwarded() { # IPERF3-OPTIONS...
	iperf3 --client 10.77.2.1 --bidir --time 4 --json "$@" >/tmp/iperf || return 1
	jq '[.end.streams[] | (.udp // .receiver).bits_per_second] | add / length / 1e6 | round' /tmp/iperf
}

worker0() {
	count=0 failed=0
	connect 11 10.77.1.1 10.77.1.254 21
	ip route add default via 10.77.1.254
	no_giants 11
	fact "w0 reaches w1 through n0" until_true ping -q -c 1 -W 1 10.77.2.1
	fact "n0 forwards" forward_both
	fact "n0 takes both ports in native XDP" ask_to_attach
	fact "n0 takes new programs while it runs" ask_to_replace
	fact "sums are exact" sum_with_w1
	fact "both workers have the same bits" same_as_w1
	fact "n0 made the sums" ask_for_stats
	fact "n0 refuses native XDP where it would panic" ask_to_overcommit
	echo "# rate: Mbit/s to each worker and as much from it: summed $(summed)," \
		"forwarded UDP $(</tmp/udp), TCP $(</tmp/tcp)"
	echo "1..$count"
	exit "$failed"
}

forward_both() {
	forwarded --udp --bitrate 0 --length 1472 >/tmp/udp && forwarded >/tmp/tcp
}

ask_to_attach() {
	nc 10.77.1.254 5555 </dev/null | tee /tmp/attached
	(($(grep -c ': native' /tmp/attached) == 2))
}

ask_to_replace() {
	until_true nc 10.77.1.254 5555 >/tmp/replaced </dev/null
	cat /tmp/replaced
	(($(grep -c ': native' /tmp/replaced) == 2))
}

sum_with_w1() {
	until_true nc 10.77.2.1 5555 </dev/null
	sum 0
}

same_as_w1() {
	hashes >/tmp/mine
	until_true nc 10.77.2.1 5556 >/tmp/theirs </dev/null
	cat /tmp/theirs
	[[ -s /tmp/theirs ]] && cmp /tmp/mine /tmp/theirs
}

summed() { jq '.bytes * 8 / .time_us | round' /tmp/sum3; }

ask_for_stats() {
	until_true nc 10.77.1.254 5555 >/tmp/stats </dev/null
	cat /tmp/stats
	jq -e '.COMPLETED.packets > 2000' /tmp/stats
}

ask_to_overcommit() {
	until_true nc 10.77.1.254 5555 >/tmp/refusal </dev/null
	cat /tmp/refusal
	grep -q '^SKIP' /tmp/refusal || grep -q 'generic (not native: 4 queues on 2 CPUs' /tmp/refusal
}

"$@"
