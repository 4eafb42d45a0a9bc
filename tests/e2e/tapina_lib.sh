# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What tapina.sh and scripts/demo-cluster share: a cluster on the network of TAPINA's authors, and
# their five jobs with 23 workers.
#
#         s9  s10            core: 20 Mbit/s
#       s5 s6   s7 s8 ── p0  aggregation: 30; p0 is a parameter server, which sums in software
#       s1 s2   s3 s4        tops of rack, each with three hosts: 50
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/cluster_lib.sh"

window=4 # chunks: of many more a queue that 23 workers share loses some

# Behind which hosts the workers of the jobs are: the authors' (tests/unit/tapina.h).
declare -A hosts_of=([a]="h1 h4 h5 h7 h10 h11" [b]="h1 h4 h7 h10" [c]="h1 h2 h7"
	[d]="h1 h2 h4 h5 h7 h10" [e]="h1 h7 h8 h10")
five=(a b c d e)
declare -A root_of=() # of each job: the node that it is to have, or has

network_of_tapina() {
	local i s core
	echo "host e0" h{1..12}
	echo "node" s{1..10} p0
	echo "link e0 s9 rate 50mbit"
	echo "link p0 s8 rate 50mbit"
	for i in {1..12}; do echo "link h$i s$(((i + 2) / 3)) rate 50mbit"; done
	for i in 1 2; do for s in 5 6; do echo "link s$i s$s rate 30mbit"; done; done
	for i in 3 4; do for s in 7 8; do echo "link s$i s$s rate 30mbit"; done; done
	for s in 5 6 7 8; do for core in 9 10; do echo "link s$s s$core rate 20mbit"; done; done
}

tapina() {
	local i
	cluster < <(network_of_tapina)
	for i in {1..12}; do
		on "h$i" ping -c 1 -W 2 "$(bed addr s1)" >/dev/null
	done
	until_true sees_all s1 || { diff <(drawn s1) <(meant); return 1; }
}

# All five jobs at once.
five_begin() { # tally-perf-arguments...
	local job host
	for job in "${five[@]}"; do
		create_at s1 "$job" "$(wc -w <<<"${hosts_of[$job]}")" --window "$window"
		[[ -z ${root_of[$job]-} ]] || at s1 job place "$job" --node "${root_of[$job]}" --stay
	done
	bed bytes >"$work/before"
	worker=()
	for job in "${five[@]}"; do
		for host in ${hosts_of[$job]}; do
			join_at "$host" "s$(((${host#h} + 2) / 3))" "$job" --type int32 --no-check \
				-w 0 "$@"
		done
	done
	for job in "${five[@]}"; do
		until_true runs "$job"
		root_of[$job]=$(shared s1 "$job" root)
	done
}
runs() { [[ $(shared s1 "$1" state) == running ]]; } # JOB

wait_for_workers() {
	local pid code=0
	for pid in "${worker[@]}"; do
		wait "$pid" || code=1
	done
	worker=()
	((code == 0)) || { cat "$work"/*.errors; return 1; }
}

five_end() {
	local job
	wait_for_workers
	bed bytes >"$work/after"
	for job in "${five[@]}"; do
		same_bits "$job"
		at s1 job del "$job"
	done
}

same_bits() { # JOB
	local host
	for host in ${hosts_of[$1]}; do
		jq -r .hash "$work/$host.$1"
	done | sort -u | awk 'END { exit NR != 1 }'
}

# What went over the links a moment ago is forgotten: a leader would have jobs avoid it.
quiet() {
	at s1 topology --json | jq -e 'all(.links[];
		([.from, .to] | map(.forecast_bytes_per_second) | max) < .rate_mbps * 125000 / 20)' >/dev/null
}

# "A B C D E": Mbit/s of gradients that jobs sum, as their roots have reported last.
rates() {
	at s1 cluster --json | jq -r '[.jobs | sort_by(.name)[] |
		.chunks_per_second * 1408 * 8 / 1e5 | round / 10] | join(" ")'
}
slowest() { tr ' ' '\n' <<<"$1" | sort -g | head -n 1; } # RATES

# Others send from h9 to h12, on the two links that the network takes for them: 27 of 30 Mbit/s.
others_begin() { # SECONDS
	exec_on h12 iperf3 -s -1 --forceflush >"$work/server" 2>&1 &
	until_true has listening "$work/server"
	exec_on h9 iperf3 -c "$(bed addr h12)" -u -b 27M -t "$1" >"$work/traffic" 2>&1 &
	others=$! # shellcheck disable=SC2034
}
others_on() { at s1 topology --export | awk -v to="h$(bed addr h12)" '$1 == "way" && $2 == "s3" && $3 == to { print $4 }'; }

# Do jobs have less by them, as their roots report it?
are_squeezed() { awk -v is="$(slowest "$(rates)")" 'BEGIN { exit !(is < 2) }'; }

roots() {
	local job
	for job in "${five[@]}"; do printf '%s ' "$(shared s1 "$job" root)"; done
}
moved() { [[ $(roots) != "$1" ]]; } # ROOTS

# No job was given a place for so long, and all sum.
settled() { # [SECONDS]
	local last
	last=$(sed -n 's/^\([^ ]*\) info job placed.*/\1/p' "$work"/*.log | sort | tail -n 1)
	(($(date +%s) - $(date -d "$last" +%s) > ${1:-10})) &&
		at s1 cluster --json | jq -e 'all(.jobs[]; .chunks_per_second > 0)' >/dev/null
}

# By the simulator the slowest job has 0.7 Mbit/s beside these others where nothing moves, and 2.3 at
# best.
are_well() { awk -v is="$(slowest "$(rates)")" 'BEGIN { exit !(is >= 1.2) }'; }
