#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Two tenants on one node. Red and strangers do all that they should not at once; blue's sums are
# exact, and take no longer.
#
#   red, strangers  w0 ──┐
#                        ├── n0 (tallyd)
#   blue         w2, w3 ─┘
#
#	TALLY_CONNECTIONS=1000 TALLY_LISTERS=300	8000 and 900 for the full size
#	TALLY_ROUNDS=9		at most; three, where half of them are within the limit
#	TALLY_ATTACKS="NAME..."	only these
#
# Blue's workers go before all others at the processor, and tallyd before who attacks: in earnest
# these have machines of their own. Blue's links are the bottleneck.
# shellcheck source=tests/e2e/noise_lib.sh
source "$(dirname "$0")/noise_lib.sh"

rounds=${TALLY_ROUNDS:-9}
rate=200 # packets a second that red may send; it floods at ten times as many
limit=1.10 # of the time without a siege
slow=$((3 * slow)) # who waits for ten attacks to begin has little of the processors
exec 3>&1

two_tenants() {
	local job key
	agent_network <<-END
		host w0 w2 w3
		node n0
		link w0 n0 rate 1gbit mtu 1600
		link w2 n0 rate 200mbit
		link w3 n0 rate 200mbit
	END
	sed -i 's/^slots: .*/slots: 16384/' "$work/tallyd.yaml"
	cat >>"$work/tallyd.yaml" <<-END
		tenants:
		  - {name: red, slots: 8192, packets_per_second: $rate, bytes_per_second: 100000, ingress: [w0, w2]}
		  - {name: free, slots: 1024, ingress: [w0, w2]}
		  - {name: blue, slots: 512, ingress: [w2, w3]}
	END
	workers_behind_w0
	start_agent nice -n -10 "$build/tallyd"
	create_job blues 2 --tenant blue
	crowd limited red
	crowd unlimited free
	create_job solo 1 --tenant red
	jobs_of_noise --tenant red
	for job in blues limited unlimited; do
		for key in id epoch workers 'members[0].address'; do
			known[$job $key]=$(ctl --json job list "$job" | jq ".[0].$key")
		done
	done
}
# As it was at the beginning: attacks begin one by one, and tallyd may be busy by then.
declare -A known
of_job() { echo "${known[$1 $2]}"; }

# --- attacks

long=600 # seconds; they are called off before
# First at the processor: in bursts, most copies would be lost before they reach the victim's link, and
# no limit would be needed.
floods() { first flood limited $((10 * rate)) "$long" sums; }
unlimited_floods() { first flood unlimited $((10 * rate)) "$long" sums; }
forgeries() { flood blues 2000 "$long"; }
mutations() {
	exec_on w0 "$build/tests/e2e/mutate" eth0 "$(on n0 ip -j link show dev w0 | jq -r ".[0].address")" \
		"$(bed addr n0 4)" "$(bed addr n0 6)" 1 "$long" 2000 \
		"$(of_job blues id)" 1 "$(of_job limited id)" "$(of_job limited epoch)"
}
guesses() { exec_on w0 python3 tests/e2e/joiner.py guess "$(bed addr n0 4)" solo 1000000 "$long"; }

read -ra attacks <<<"${TALLY_ATTACKS:-members strangers listers lost flapping changes guesses mutations forgeries floods}"
declare -A attacker

refused() { awk "/^tally_$1_refused_total.*\"($2)\"/ { n += \$2 } END { print n + 0 }" "$work/metrics"; }
# How much of each attack has come to the node.
seen() {
	local name
	on n0 curl -sf http://127.0.0.1:9464/metrics >"$work/metrics"
	echo "floods $(outcome limited OVER_RATE)"
	echo "forgeries $(at_port w0 OTHER_PORT)"
	echo "mutations $(outcome limited CORRUPT)"
	echo "guesses $(refused joins 'token|slowed')"
	echo "strangers $(on n0 nstat -asz TcpPassiveOpens | awk '/Tcp/ { print $2 }')"
	echo "lost $(refused runs no_way)"
	echo "changes $(grep -c 'configuration reloaded' "$work/tallyd.log")"
	echo "unlimited_floods $(outcome unlimited FANNED_OUT)"
	for name in members listers flapping; do # what these do nobody counts, but it takes time
		echo "$name $(cut -d ' ' -f 1 "/proc/${attacker[$name]-self}/schedstat")"
	done
}
more_is_seen() { # ATTACK...
	seen | sort >"$work/after"
	join "$work/before" "$work/after" | awk -v of=" $* " '
		index(of, " " $1 " ") && $3 <= $2 { missing = 1 }
		END { exit missing }'
}
all_are_there() {
	local name
	for name in "${!attacker[@]}"; do
		kill -0 "${attacker[$name]}" || { cat "$work/$name.said"; return 1; }
	done
}

begin() { # ATTACK...: crowds gather before the others begin
	local name crowds=()
	for name; do
		: >"$work/$name.said"
		"$name" >"$work/$name.said" 2>&1 &
		attacker[$name]=$!
		case $name in strangers | members) crowds+=($!) ;;& strangers | members | listers)
			until_true has ready "$work/$name.said" || { cat "$work/$name.said"; return 1; } ;;
		esac
	done
	seen | sort >"$work/before"
	((${#crowds[@]} == 0)) || kill -s USR1 "${crowds[@]}"
	until_true more_is_seen "${@//forgeries/}" || # these come to a job that runs
		{ join "$work/before" "$work/after"; tail -n 3 "$work"/*.said; return 1; }
}
call_off() {
	all_are_there
	kill "${attacker[@]}"
	wait "${attacker[@]}" || true
	attacker=()
}

# A lull and a siege in turns, soon one after the other: what else this machine does meets both.
in_a_lull() { # COMMAND...
	local code=0
	kill -s STOP "${attacker[@]}"
	"$@" || code=$?
	kill -s CONT "${attacker[@]}"
	return "$code"
}

unlimited_is_full() { (($(outcome unlimited FANNED_OUT) > 64 * 200)); }

# --- facts

# Before others at the processor, as who has one alone.
first() { renice -n -15 "$BASHPID" >/dev/null && "$@"; }
as_list() { (IFS=,; echo "[$*]"); }
verdict() { # JQ-FILTER, of $quiet, $besieged, $ratio
	jq -rn --argjson quiet "$(as_list "${quiet[@]}")" --argjson besieged "$(as_list "${besieged[@]}")" \
		--argjson limit "$limit" --argjson unlimited "$(as_list "${unlimited[@]}")" "
		([\$quiet, \$besieged] | transpose | map(.[1] / .[0]) | sort | .[length / 2 | floor]) as \$ratio | $1"
}
# shellcheck disable=SC2016
is_within() { verdict 'if $ratio > $limit then halt_error(1) else empty end' 2>/dev/null; }
# shellcheck disable=SC2016
is_harmed() { verdict 'if ($unlimited | max) < 1.5 * ($quiet | max) then halt_error(1) else empty end' 2>/dev/null; }

a_siege_does_not_change_how_long_the_other_takes() {
	local quiet=() besieged=() unlimited=() n
	crowds_may_stay
	two_tenants
	begin "${attacks[@]}"
	seen | sort >"$work/before"
	for ((n = 1; n <= rounds; n++)); do
		quiet+=("$(in_a_lull first blue_runs -n 20)")
		besieged+=("$(first blue_runs -n 20)")
		((n < 3 || n % 2 == 0)) || ! is_within || break
	done
	until_true more_is_seen "${attacks[@]}"
	call_off
	join "$work/before" "$work/after" | awk '{ print "# of " $1 ", " $3 - $2 " came" }' >&3
	begin unlimited_floods
	until_true unlimited_is_full
	for ((n = 1; n <= 5; n++)); do # other load makes the flood weaker
		unlimited+=("$(first blue_runs -n 3 -w 1)")
		! is_harmed || break
	done
	call_off
	exec {stay}>&-
	# shellcheck disable=SC2016
	verdict '
		(($unlimited | max) / ($quiet | max)) as $control |
		"# ms of an allreduce: quiet \($quiet), besieged \($besieged), ratio \($ratio), " +
		"limit \($limit); a flood without a limit \($unlimited), ratio \($control), at least 1.5" |
		if $ratio > $limit or $control < 1.5 then halt_error(1) else . end' >&3
}

facts a_siege_does_not_change_how_long_the_other_takes
