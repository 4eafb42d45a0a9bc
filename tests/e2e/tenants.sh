#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Two tenants on one node. Each may come in by its own ports; one of them floods.
#
#   red   w0, w1 ──┐
#                  ├── n0 (tallyd)
#   blue  w2, w3 ──┘
# shellcheck source=tests/e2e/noise_lib.sh
source "$(dirname "$0")/noise_lib.sh"

rate=2000 # packets a second that red may send; it floods at ten times as many

# Links are the bottleneck, not the processors that all of this shares.
two_tenants() {
	agent_network <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0 rate 1gbit
		link w1 n0 rate 1gbit
		link w2 n0 rate 200mbit
		link w3 n0 rate 200mbit
	END
	cat >>"$work/tallyd.yaml" <<-END
		tenants:
		  - {name: red, slots: 512, ${red:-packets_per_second: $rate}, ingress: [w0, w1, w2]}
		  - {name: blue, slots: 512, ingress: [w2, w3]}
		  - {name: free, slots: 512, ingress: [w0, w1, w2]}
	END
	start_agent
	# With tags a flood of who has no key would end before what is shown here.
	create_job reds 2 --tenant red --tags no
	create_job blues 2 --tenant blue --tags no
}

# What came in at a port, by what became of each packet, and as the kernel has it.
counted_at() { ctl --json stats --port "$1" | jq 'with_entries(select(.key | IN("FANNED_OUT", "NO_CHILD") | not)) | [.[].packets] | add'; }
received_at() { ctl --json links | jq ".[] | select(.name == \"$1\").receive.packets"; }
# How many the kernel had beyond ours. What comes between two samples, as while IPv6 looks for
# routers, would be in one of the two numbers only.
beyond_ours() { # PORT
	local received counted
	until received=$(received_at "$1") counted=$(counted_at "$1") && [[ $(received_at "$1") == "$received" ]]; do :; done
	echo $((received - counted))
}
adds_up() { # PORT BEFORE: how many the kernel had beyond ours then
	(($(received_at "$1") - $(counted_at "$1") == $2))
}

no_place() { # HOST JOB WORDS...: the worker of this host may not join, and hears all of these words
	join_all "$2" "$1" -- -d int32 -b 4 -e 4 -n 1 -w 0
	if wait "${worker[@]}"; then echo "$1 joins $2"; return 1; fi
	hears "$@"
}
hears() { # HOST JOB WORDS...: has said so
	local words
	for words in "${@:3}"; do
		has -F "$words" "$work/$1.$2.errors" || { cat "$work/$1.$2.errors"; return 1; }
	done
}

# Where the node can tell; over IPv6, too.
a_worker_outside_its_tenants_ingress_points_may_not_join() {
	local family
	two_tenants
	ctl tenant add tagged --slots 4 --ingress "w0 vlan 5" --ingress "w1 source 10.99.0.0/24" >/dev/null
	create_job tags 1 --tenant tagged --window 2
	create_job blue6 1 --tenant blue --window 2 --service "$(bed addr n0 6)"
	no_place w0 blues "$(bed addr w0 4) without a VLAN tag at w0: tenant blue may not come in from there" \
		"(in $work/tallyd.yaml, then tallyctl reload). It has w2; w3"
	no_place w0 tags "may not come in from there" "(tallyctl tenant set tagged --ingress ...). It has w0 vlan 5; w1 source 10.99.0.0/24"
	no_place w1 tags "$(bed addr w1 4) without a VLAN tag at w1"
	family=6 no_place w1 blue6 "$(bed addr w1 6) without a VLAN tag at w1"
	on n0 curl --silent --fail http://127.0.0.1:9464/metrics | has -F 'tally_joins_refused_total{reason="ingress"} 4'
	has 'worker refused: job=blues.*without a VLAN tag at w0' "$work/tallyd.log"
	blue_runs -n 1 -w 0
	family=6 join_all blue6 w3 -- -d int32 -b 4 -e 4 -n 1 -w 0
	joined_end
}

# A run that is on goes on until a call fails.
who_comes_to_be_outside_hears_what_may_be_wrong() {
	two_tenants
	ctl tenant add late --slots 8 >/dev/null
	create_job late 2 --tenant late --window 4
	join_all late w2 w3 -- -d int32 -b 4 -e 4 -n 8 -w 0 -s 60 --timeout 2000
	another late 10
	ctl tenant set late --ingress w2 >/dev/null
	if wait "${worker[0]}" || wait "${worker[1]}"; then return 1; fi
	hears w3 late "this one, for 2" "or refused there, as outside the tenant's ingress points? tallyctl doctor on the node"
}

# With sums that never complete in the slots of its own job, or with those of another's.
forged_contributions_touch_no_slot_of_the_other() {
	local before
	two_tenants
	before=$(beyond_ours w0)
	join_all blues w2 w3 -- -d int32 --int-wild -b 256K -e 256K -n 8 -w 0 -s 4
	another blues 100
	(flood blues $((10 * rate)) 2)
	joined_end
	# The victim's traffic is its own; the port where all this came in has each packet once.
	(($(at_port w0 OTHER_PORT) > 2 * rate && $(at_port w2 OTHER_PORT) == 0))
	(($(outcome blues OTHER_PORT) == 0 && $(outcome blues OVER_RATE) == 0))
	ctl --json top --once | jq -e '[.tenants[], .jobs[]] | all(.refused_per_second == 0)'
	until_true adds_up w0 "$before"
}

what_is_beyond_the_rate_is_dropped_and_the_rest_is_not() {
	local passed
	two_tenants
	join_all reds w0 w1 -- -d int32 -b 64K -e 64K -n 8 -w 0 -s 4
	another reds 50
	(flood reds $((10 * rate)) 3 >"$work/sent")
	wait "${worker[@]}" || true # they share the rate with the flood, and may be too slow
	(($(outcome reds OVER_RATE) > $(cat "$work/sent") / 2))
	passed=$(ctl --json stats --job reds | jq '[.ABSORBED, .COMPLETED, .DUPLICATE, .STALE, .BEHIND, .CONFLICT, .ANSWERED | .packets] | add')
	# Three seconds of flood, four of work, one of bucket.
	((passed < 9 * rate)) || { echo "$passed packets passed"; return 1; }
}

# Sixteen workers, of whom one asks and asks: each ask leaves sixteen times. The others are stopped,
# so that all that leaves is this one's doing.
what_leaves_is_within_the_rate_too() {
	local began=$SECONDS bytes=1000000 left limit all=()
	red="bytes_per_second: $bytes" two_tenants
	create_job many 16 --tenant red --tags no
	for _ in 1 2 3 4 5 6 7 8; do
		all+=(w0 w1)
	done
	join_all many "${all[@]}" -- -d int32 -b 4 -e 4 -n 8 -w 0 -s 60
	another many 1
	kill -s STOP "${worker[@]}"
	(flood many 20000 4 asks >"$work/sent")
	left=$(ctl --json stats --job many | jq '.FANNED_OUT.bytes')
	limit=$((bytes * (SECONDS - began + 2)))
	kill -s KILL "${worker[@]}"
	wait "${worker[@]}" || true
	(($(outcome many ASKED) > 100 && $(outcome many OVER_RATE) > $(cat "$work/sent") / 2))
	((left < limit)) || { echo "$left bytes left, $limit may"; return 1; }
}

counted() { ctl --json stats --job "$1" | jq 'map(.packets) | add // 0'; } # JOB
counted_beyond() { (($(counted "$2") > $1)); }

# The median of blue's time meanwhile. Each packet for JOB leaves 64 times, by w2's link.
blue_runs_while_flooded() { # JOB
	local flooder=() before
	before=$(counted "$1")
	flood "$1" 1000 60 sums >/dev/null &
	flooder+=($!)
	flood blues 500 60 >/dev/null &
	flooder+=($!)
	until_true counted_beyond $((before + 100)) "$1"
	blue_runs
	kill "${flooder[@]}"
	wait "${flooder[@]}" || true
}

# Alternating, and the best of five medians, since whatever else this machine does only makes calls
# slower. The flooder needs next to no processor: what it makes the node send, without a limit, fills
# the victim's link.
a_flood_does_not_change_how_long_the_other_takes() {
	local quiet=() limited=() unlimited=()
	red="bytes_per_second: 20000" two_tenants
	crowds_may_stay
	crowd limited red
	crowd unlimited free
	for _ in 1 2 3 4 5; do
		quiet+=("$(blue_runs)")
		limited+=("$(blue_runs_while_flooded limited)")
		unlimited+=("$(blue_runs_while_flooded unlimited)")
	done
	exec {stay}>&-
	jq -en --argjson quiet "[$(IFS=,; echo "${quiet[*]}")]" \
		--argjson limited "[$(IFS=,; echo "${limited[*]}")]" \
		--argjson unlimited "[$(IFS=,; echo "${unlimited[*]}")]" '
		(($limited | min) / ($quiet | min)) as $ratio |
		(($unlimited | min) / ($quiet | min)) as $control |
		"quiet \($quiet), flooded \($limited), ratio \($ratio), limit 1.10; " +
		"without a limit of rate \($unlimited), ratio \($control), at least 1.5" |
		if $ratio > 1.1 or $control < 1.5 then halt_error(1) else . end'
	(($(outcome limited OVER_RATE) > 500 && $(at_port w0 OTHER_PORT) > 1000))
	(($(outcome limited FANNED_OUT) > 64 && $(outcome unlimited FANNED_OUT) > 64 * 500))
}

facts a_worker_outside_its_tenants_ingress_points_may_not_join \
	who_comes_to_be_outside_hears_what_may_be_wrong \
	forged_contributions_touch_no_slot_of_the_other \
	what_is_beyond_the_rate_is_dropped_and_the_rest_is_not \
	what_leaves_is_within_the_rate_too \
	a_flood_does_not_change_how_long_the_other_takes
