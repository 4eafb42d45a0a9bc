#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A stranger sends the node of two jobs frames that nearly are messages of these jobs: no sum is
# wrong, no call fails, and the node counts every frame of every port.
#
#   w0 ──┐               job 1: w0 and w1
#   w1 ──┼── n0 ── x0    job 2: w2 and w3
#   w2 ──┤
#   w3 ──┘
#
#	TALLY_SECONDS=N    how long (20)
#	TALLY_SEED=N       of the frames (1)
#	TALLY_RATE=N       frames a second (4000)
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

seconds=${TALLY_SECONDS:-20}
exec 3>&1 # what is printed in any case

five_hosts() {
	network <<-END
		host w0 w1 w2 w3 x0
		node n0
		link w0 n0 rate 1gbit
		link w1 n0 rate 1gbit
		link w2 n0 rate 1gbit
		link w3 n0 rate 1gbit
		link x0 n0 mtu 1600
	END
}

arrived_by() { on n0 ip -s -j link show dev "$1" | jq '.[0].stats64.rx.packets'; }
arrived() {
	local port all=0
	for port in $(interfaces n0); do
		all=$((all + $(arrived_by "$port")))
	done
	echo "$all"
}
# Copies that leave are counted once more, on their way out.
counted() {
	node n0 stats --json |
		jq '[del(.FANNED_OUT, .NO_CHILD) | .[].packets] | add // 0'
}
# Frames that came before the node was attached. Kernels may send some while this is asked.
count_uncounted() {
	local before
	before=$(counted)
	uncounted=$(($(arrived) - before))
	(($(counted) == before))
}
uncounted_are() { (($(arrived) - $(counted) == $1)); }

drops() { # what veth tells of frames that no program saw
	local port
	for port in $(interfaces n0); do
		on n0 ethtool -S "$port" | grep drops | sed "s/^/$port:/"
	done
}

# In the background, in worker[].
job_runs() { # JOB-FILE HOST HOST TYPE
	local rank host=("$2" "$3")
	for rank in 0 1; do
		exec_on "${host[rank]}" "$build/tally-perf" --job "$1" --rank "$rank" --json \
			-d "$4" -b 256K -e 256K -n 20 -s "$seconds" --timeout 10000 \
			>"$work/perf.${host[rank]}" 2>"$work/errors.${host[rank]}" &
		worker+=($!)
	done
}

make_job() { # NUMBER FILE HOST...
	describe_job 4 -- "${@:3}"
	{ sed "s/^job .*/job $1/" "$work/description"; echo "epoch 1"; } >"$2"
	node n0 job add "$2" >/dev/null
}

# All that x0 sends is the program's: it answers nobody, and its kernel is silent.
mutations_begin() {
	on x0 "$build/tests/e2e/mutate" eth0 "$(on n0 ip -j link show dev x0 | jq -r ".[0].address")" \
		"$(bed addr n0 4)" "$(bed addr n0 6)" "${TALLY_SEED:-1}" "$seconds" \
		"${TALLY_RATE:-4000}" >"$work/mutations"
}

tell() {
	echo "# $(tail -n 1 "$work/mutations") in $seconds s, beside" \
		"$(jq -s 'map(.iterations) | add / 2' "$work"/perf.w?) calls; node:" \
		"$(node n0 stats --json | jq -r '[to_entries[] | select(.value.packets > 0) |
			"\(.key) \(.value.packets)"] | join(", ")')" >&3
}

two_jobs_do_not_notice_a_stranger_and_every_frame_is_counted() {
	local uncounted host before sent worker=()
	five_hosts
	make_job 1 "$work/job1" w0 w1
	make_job 2 "$work/job2" w2 w3
	on x0 sysctl -q -w net.ipv6.conf.eth0.disable_ipv6=1
	until_true count_uncounted
	before=$(arrived_by x0)
	job_runs "$work/job1" w0 w1 int32
	job_runs "$work/job2" w2 w3 float32
	mutations_begin
	for host in 0 1 2 3; do
		wait "${worker[host]}" || { cat "$work/errors.w$host"; return 1; }
	done
	tell
	cat "$work/mutations"
	node n0 stats
	# tally-perf has compared every sum.
	jq -se 'map(.wrong) | add == 0' "$work"/perf.w? >/dev/null
	until_true uncounted_are "$uncounted" || {
		echo "$(arrived) frames have arrived, $(counted) are counted; $uncounted were before"
		drops
		return 1
	}
	sent=$(awk '$1 == "sent:" { print $2 }' "$work/mutations")
	(($(arrived_by x0) - before == sent))
}

facts two_jobs_do_not_notice_a_stranger_and_every_frame_is_counted
