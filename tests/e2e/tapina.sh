#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Placement by traffic beside others, live: the five jobs of TAPINA's authors on their network at the
# same time, once under each policy. Jobs have one node that sums, as there.
#
#	TALLY_ROUNDS=N    all policies in turn, so often (1)
# shellcheck source=tests/e2e/tapina_lib.sh
source "$(dirname "$0")/tapina_lib.sh"

exec 3>&1
rounds=${TALLY_ROUNDS:-1}
calls=8 bytes=1048576
payload=1408 headers=106 # bytes of a frame
declare -A came=() # of each job: when its first call began

# As the cluster says it, but that links carry no headers, and nobody sums at p0.
network_of_the_simulator() {
	at s1 topology --export | awk -v payload="$payload" -v headers="$headers" '
		$1 == "node" { sub(/ p0/, "") }
		$1 == "host" { $0 = $0 " p0" }
		$4 == "rate" { $5 = sprintf("%dbit", $5 * 1e6 * payload / (payload + headers)) }
		{ print }' >"$work/network.topology"
}

# Jobs with the roots that they have, which came when they did.
workload() {
	local job host workers
	for job in "${five[@]}"; do
		workers=
		for host in ${hosts_of[$job]}; do
			workers+=${workers:+,}h$(bed addr "$host")
		done
		echo "job $job workers=$workers bytes=$bytes iterations=$calls compute=0" \
			"root=${root_of[$job]:-none} arrives=${came[$job]:-0}"
	done >"$work/five.workload"
}

simulated() { # POLICY SEED: as JSON
	workload
	"$build/tally-sim" run --network "$work/network.topology" --workload "$work/five.workload" \
		--placement "$1" --seed "$2" --nodes 3 --node-jobs 2 --json
}

# Which node is to be the root of each job; under `tally` the leader says.
decide() { # POLICY SEED
	local job
	root_of=() came=()
	case $1 in
	ps) for job in "${five[@]}"; do root_of[$job]=p0; done ;;
	random | tor)
		simulated "$1" "$2" >"$work/decided"
		for job in "${five[@]}"; do
			root_of[$job]=$(jq -r --arg job "$job" '.policies[0].jobs[] |
				select(.job == $job) | .nodes[0] // "p0"' "$work/decided")
		done
		;;
	esac
}

# "JOB BEGAN SECONDS" of each: its first call after that of all, and how long all of its calls took.
times() {
	local job host
	for job in "${five[@]}"; do
		for host in ${hosts_of[$job]}; do
			jq -c --arg job "$job" '. + {job: $job}' "$work/$host.$job"
		done
	done >"$work/told"
	jq -rs 'def ms: . * 1000 | round / 1000;
		(map(.began_s) | min) as $begun | group_by(.job)[] | (map(.began_s) | min) as $first |
		"\(.[0].job) \($first - $begun | ms) \((map(.ended_s) | max) - $first | ms)"' "$work/told" >"$work/times"
	while read -r job began _; do
		came[$job]=$began
	done <"$work/times"
}

# Bytes on all links, what part of the busiest one was used until the last job ended, and what was
# sent again.
figures() {
	paste -d ' ' "$work/before" "$work/after" |
		awk -v seconds="$(awk '$2 + $3 > n { n = $2 + $3 } END { print n }' "$work/times")" '
		{ all += $8 - $3 + $9 - $4
		  for (i = 0; i < 2; i++) {
			part = ($(8 + i) - $(3 + i)) * 8 / ($5 * 1e6 * seconds)
			if (part > most) most = part } }
		END { printf "%.0f %.3f", all, most }'
	jq -rs '" \(map(.retransmitted) | add)"' "$work/told"
}

# POLICY, seconds of a to e and their mean, MB, use, resent; then what the simulator says of the
# mean and of MB, with the same roots, and how many jobs have moved meanwhile.
a_run() { # POLICY SEED
	local mean times all use resent moves=0 job
	until_true quiet
	decide "$1" "$2"
	five_begin -b "$bytes" -e "$bytes" -n "$calls"
	wait_for_workers
	for job in "${five[@]}"; do
		[[ $(shared s1 "$job" root) == "${root_of[$job]}" ]] || moves=$((moves + 1))
	done
	[[ $1 == tally || $1 == trees || $moves == 0 ]] || { echo "$moves jobs moved"; return 1; }
	five_end
	times
	simulated none 1 >"$work/simulated"
	times=$(awk '{ printf "%6.1f", $3 }' "$work/times")
	mean=$(awk '{ n += $3 } END { print n / NR }' "$work/times")
	read -r all use resent < <(figures)
	jq -r --arg policy "$1" --argjson mean "$mean" --argjson all "$all" --arg times "$times" \
		--argjson use "$use" --argjson resent "$resent" --argjson of "$payload" \
		--argjson more "$headers" --argjson moves "$moves" '
		def r($d): . * $d | round / $d;
		.policies[0] | (.link_bytes * (1 + $more / $of)) as $bytes |
		"\($policy) \($times) \($mean | r(100)) \($all / 1e6 | r(1)) \($use) \($resent) " +
		"\(.completion_mean_s | r(100)) \($bytes / 1e6 | r(1)) \($moves)"' "$work/simulated" |
		tee -a "$work/rows"
}

# From now on agents tell one another about trees: nodes on the way sum, too.
with_trees() {
	local name secret=yes
	for name in $(nodes); do
		end_at "$name" TERM
		configure "$name"
		start_at "$name"
	done
	until_true sees_all s1
}

mean_of() { awk -v policy="$1" -v column="$2" '$1 == policy { n++; sum += $column } END { print sum / n }' "$work/rows"; }
# What a policy has of another one's figure: POLICY OTHER COLUMN
part() { awk -v a="$(mean_of "$1" "$3")" -v b="$(mean_of "$2" "$3")" 'BEGIN { print a / b }'; }
at_most() { awk -v value="$1" -v most="$2" 'BEGIN { exit !(value <= most) }' || { echo "$3: $1, at most $2"; return 1; }; }

placement_by_traffic_beside_others() {
	local round policy
	tapina
	network_of_the_simulator
	for ((round = 1; round <= rounds; round++)); do
		for policy in ps random tor tally; do
			a_run "$policy" "$round"
		done
	done
	with_trees
	for ((round = 1; round <= rounds; round++)); do
		a_run trees "$round"
	done
	table >&3
	at_most "$(part tally ps 7)" 0.7 "time with tally of that with ps"
	at_most "$(part tally tor 7)" 0.9 "time with tally of that with tor"
	at_most "$(part tally random 7)" 1 "time with tally of that with random"
	at_most "$(part tally ps 8)" 0.85 "bytes with tally of those of ps"
	at_most "$(part trees tally 8)" 0.8 "bytes with trees of those without"
	# The simulator, by the same roots; it knows of no trees that agents find, and no moves.
	awk '$1 != "trees" && $13 == 0 { time = $7 / $11; bytes = $8 / $12
		if (time < 0.9 || time > 1.1 || bytes < 0.9 || bytes > 1.1) { print "simulator:", $0; bad = 1 } }
		END { exit bad }' "$work/rows"
}

table() {
	awk -v rounds="$rounds" '
		{ n[$1]++; order[NR] = $1
		  for (i = 2; i <= NF; i++) { sum[$1, i] += $i; if (n[$1] == 1 || $i < least[$1, i]) least[$1, i] = $i
			if ($i > most[$1, i]) most[$1, i] = $i } }
		END {
			printf "# means of %d rounds: seconds of the jobs, MB on all links, use of the busiest one\n", rounds
			printf "# %-8s%8s%8s%8s%8s%8s%8s%9s%7s%8s%9s%8s%7s\n", "policy", "a", "b", "c", "d", "e",
				"mean", "MB", "use", "resent", "sim mean", "sim MB", "moves"
			for (k = 1; k <= NR; k++) { p = order[k]; if (shown[p]++) continue
				printf "# %-8s", p
				for (i = 2; i <= 7; i++) printf "%8.1f", sum[p, i] / n[p]
				printf "%9.0f%7.2f%8.0f%9.1f%8.0f%7.1f\n", sum[p, 8] / n[p], sum[p, 9] / n[p],
					sum[p, 10] / n[p], sum[p, 11] / n[p], sum[p, 12] / n[p], sum[p, 13] / n[p] } }' "$work/rows"
}

# Stated in docs/cluster.md: 45 s. A worker joins elsewhere over the links that others have filled.
jobs_move_away_from_traffic() {
	local were before during after seconds others
	tapina
	five_begin -b 256K -e 256K --seconds 120
	slow=$((3 * slow)) until_true settled
	were=$(roots) before=$(rates)
	others_begin 140
	seconds=$SECONDS
	until_true are_squeezed
	during=$(rates)
	slow=$((3 * slow)) until_true moved "$were"
	seconds=$((SECONDS - seconds))
	slow=$((3 * slow)) until_true are_well
	after=$(rates)
	{
		echo "# others from h9 by s3, $(others_on) and s4 to h12 with 27 Mbit/s; jobs a to e, Mbit/s:"
		echo "#   before     $before"
		echo "#   with them  $during"
		echo "#   moved      $after, the first one after $seconds s"
		echo "# roots: $were, then $(roots)"
	} >&3
	grep -h 'it moves' "$work"/*.log
	at_most "$seconds" $((45 * slow)) "seconds until the first move"
	five_end
	kill "$others"
}

command -v etcd >/dev/null || { echo '1..0 # SKIP no etcd here: scripts/setup.sh'; exit 0; }
facts placement_by_traffic_beside_others jobs_move_away_from_traffic
