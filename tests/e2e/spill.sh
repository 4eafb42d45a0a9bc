#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A root that has no XDP at all: jobs are summed in user space, by a process without rights, by the
# same rules. Memory may be short, and the process may end. Then an agent whose slots are used up.
#
#   w0 ──┐
#   w1 ──┼── n0      1 Gbit/s; n0 runs `tally-node spill`, or tallyd
#   w2 ──┤
#   w3 ──┘
# shellcheck source=tests/e2e/noise_lib.sh
source "$(dirname "$0")/noise_lib.sh"

memory=64 # MiB of sums
nobody=65534

star() { # LINK-OPTIONS...
	bed up <(
		echo "host w0 w1 w2 w3"
		echo "node n0"
		printf "link w%d n0 rate 1gbit $*\n" 0 1 2 3
	)
}

spill_runs() { grep -q software "$work/spill"; }

start_spill() {
	exec_on n0 setpriv --reuid "$nobody" --clear-groups --inh-caps=-all \
		"$build/tally-node" spill "$work/job" --memory "$memory" >"$work/spill" 2>&1 &
	spill=$!
	until_true spill_runs || { cat "$work/spill"; return 1; }
}

# Its counters are what it says at its end.
end_spill() {
	[[ -n ${spill-} ]] || return 0
	kill "$spill"
	wait "$spill" || return 1
	cat "$work/spill" >>"$work/counters"
	spill=
}

spilled() { awk -v name="$1" '$1 == name { sum += $2 } END { print sum + 0 }' "$work/counters"; }

# A run needs a spill of its epoch (tests/e2e/lib.sh calls this before each).
add_job() {
	end_spill
	chmod 711 "$work"
	chown "$nobody" "$work/job" # which may have secrets
	start_spill
}

all_was_spilled() { jq -se 'map(.spilled == .chunks and .chunks > 0) | all' "$work"/rank?; }

all_collectives_at_loss() {
	local verb type
	star loss "$1"
	describe_job 4 window=256 -- w0 w1 w2 w3
	for verb in allreduce reduce broadcast reduce_scatter all_gather; do
		for type in int32 float32; do
			run_all --verb "$verb" -d "$type" -b 4 -e 1M -f 64 -n 2 -w 1 || return 1
		done
	done
	run_all --verb barrier -n 50
	all_was_spilled || return 1
	end_spill
	[[ $1 == 0 ]] || (($(lost_on_links) > 0))
	(($(spilled COMPLETED) > 1000 && $(spilled NO_MEMORY) == 0))
}

collectives_are_exact_without_loss() { all_collectives_at_loss 0; }
collectives_are_exact_at_1_percent_loss() { all_collectives_at_loss 1; }

# The second one would take the place of the first one.
a_job_that_is_named_twice_is_refused() {
	star loss 0
	describe_job 4 -- w0 w1 w2 w3
	next_epoch
	if on n0 timeout 10 "$build/tally-node" spill "$work/job" "$work/job" >"$work/twice" 2>&1; then
		return 1
	fi
	grep "$work/job: job 1 is that of $work/job already" "$work/twice"
}

# Where it runs on another machine than the job file says.
who_has_not_the_service_address_is_warned() {
	star loss 0
	describe_job 4 -- w0 w1 w2 w3
	next_epoch && add_job
	if grep 'has no address' "$work/spill"; then return 1; fi
	end_spill
	exec_on w0 "$build/tally-node" spill "$work/job" >"$work/spill" 2>&1 &
	spill=$!
	until_true spill_runs
	grep "this machine has no address $(bed addr n0)" "$work/spill"
	end_spill
}

memory_that_is_short_costs_time_only() {
	memory=1
	star loss 0.5
	describe_job 4 window=1024 -- w0 w1 w2 w3
	run_all -b 8M -e 8M -n 3 -w 0
	end_spill
	grep -E "evicted [1-9]" "$work/counters"
}

a_spill_that_is_killed_in_mid_job_loses_nothing() {
	local kills=0
	star
	describe_job 4 -- w0 w1 w2 w3
	start_all -b 1M -e 1M -n 60 -w 0
	while kill -0 "${worker[0]}" 2>/dev/null && ((kills < 5)); do
		kill -KILL "$spill"
		wait "$spill" 2>/dev/null || true
		start_spill
		kills=$((kills + 1)) before=$(received)
		until_true goes_on
	done
	finish_all
	echo "killed $kills times"
	((kills >= 3))
	jq -se 'map(.node_reloads) | add > 0' "$work/rank0"
}
goes_on() { ! kill -0 "${worker[0]}" 2>/dev/null || (($(received) > before + 500)); }
received() { on n0 nstat -az UdpInDatagrams | awk '/UdpIn/ { print $2 }'; }

it_sums_over_ipv6() {
	star loss 1
	describe_job 6 -- w0 w1 w2 w3
	run_all -b 4 -e 1M -f 64 -n 2
}

ranks_with_keys_are_summed_and_nobody_forges() {
	local zeros
	star loss 0.5
	describe_job 4 -- w0 w1 w2 w3
	give_keys
	zeros=${key[0]//?/0}
	start_all -d int32 -b 256K -e 256K -n 20 -w 0
	forge_from w3 n0 0 - repair call ahead flush
	forge_from w3 n0 0 "${key[3]}" repair call ahead flush
	forge_from w3 n0 200 "$zeros" repair
	finish_all
	call_off
	run_all --verb reduce --root 2 -d int32 -b 64K -e 64K -n 5
	run_all --verb all_gather -d int64 -b 64K -e 64K -n 5
	all_was_spilled
	end_spill
	echo "$(spilled FORGED) forged"
	(($(spilled FORGED) > 1000 && $(spilled CONFLICT) == 0 && $(spilled BEHIND) == 0))
	jq -se 'map(.corrupt) | add == 0' "$work"/rank?
}

# --- an agent

agent_star() {
	agent_network <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0 rate 1gbit loss 0.2
		link w1 n0 rate 1gbit loss 0.2
		link w2 n0 rate 1gbit loss 0.2
		link w3 n0 rate 1gbit loss 0.2
	END
	echo "spill: {threads: 2}" >>"$work/tallyd.yaml"
	start_agent
	ctl tenant add red --slots 256 >/dev/null
	create_job first 4 --tenant red
	create_job second 4 --tenant red
}
in_software() { [[ $(ctl --json job list "$1" | jq '.[0].in_software') == "$2" ]]; }
chunks_of() { cat "$work"/w?."$1" | jq -se "map(.spilled $2 .chunks) | all"; }

# Its workers also agree on something before and after.
counted() { (($(completed_of "$1") >= $(jq .chunks "$work/w0.$1"))); }

has_sums_in_memory() { # some, within the limit
	on n0 curl --silent --fail http://127.0.0.1:9464/metrics |
		awk -F '[ "]' '$1 == "tally_software_memory_bytes{kind=" { bytes[$2] = $4 }
			END { exit !(bytes["used"] > 0 && bytes["used"] <= bytes["limit"]) }'
}

a_job_over_its_quota_is_summed_in_software() {
	agent_star
	join_all first w0 w1 w2 w3 -- -b 1M -e 1M -n 20 -w 0
	joined_end
	chunks_of first "!="
	join_all second w0 w1 w2 w3 -- -b 1M -e 1M -n 8 -w 0 -s $((4 * slow))
	until_true in_software second true
	grep "run begins, summed in software.*job=second" "$work/tallyd.log"
	[[ $(ctl --json status | jq .slots.used) == 0 ]]
	ctl status | has '^runs *1, 1 summed in software, for lack of slots'
	ctl job list | has '^second .*in software'
	ctl job show second | has '^no slots of its own: it wants 256, and tenant red has a quota of 256; in use: none of 4096'
	on n0 "$build/tallyctl" --socket "$control" doctor | has 'warn  software    job second is summed in software'
	until_true has_sums_in_memory
	joined_end
	chunks_of second ==
	until_true counted second
	(($(ctl --json stats --tenant red | jq .COMPLETED.packets) >=
		$(completed_of first) + $(completed_of second)))
	# When there is room, the next run gets slots.
	ctl job del first
	join_all second w0 w1 w2 w3 -- -b 1M -e 1M -n 5 -w 0
	joined_end
	chunks_of second "!="
}

rates_hold_in_software() {
	local refused
	agent_star
	ctl tenant set red --packets-per-second 4k
	join_all second w0 w1 w2 w3 -- -b 256K -e 256K -n 8 -w 0
	until_true in_software second true
	joined_end
	chunks_of second ==
	refused=$(ctl --json stats --job second | jq .OVER_RATE.packets)
	((refused > 0))
	# Eight packets a chunk, at 4,000 a second, of which 400 at once.
	jq -se '.[0] | .chunks * 8 / (.time_us * .iterations / 1e6) < 4400' "$work/w0.second"
}

# Of sums that grow and are never finished, so that none has stalled, at a rate that red may have.
one_that_floods_leaves_the_other_its_memory() {
	local jobs=6 job alone beside flooder=()
	agent_network <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0 rate 1gbit
		link w1 n0 rate 1gbit
		link w2 n0 rate 200mbit
		link w3 n0 rate 200mbit
	END
	cat >>"$work/tallyd.yaml" <<-END
		spill: {memory_mib: 16}
		tenants: [{name: red, slots: 0, packets_per_second: 15k}, {name: blue, slots: 0}]
	END
	start_agent
	create_job blues 2 --tenant blue
	crowds_may_stay
	for ((job = 0; job < jobs; job++)); do
		crowd "red$job" red --window 1024
		(flood "red$job" $((14400 / jobs)) 100 parts) &
		flooder+=($!)
	done
	until_true memory_is_full
	# This machine may have had something else to do once or twice.
	for _ in 1 2 3; do
		kill -STOP "${flooder[@]}"
		alone=$(blue_runs -n 40)
		kill -CONT "${flooder[@]}"
		until_true memory_is_full
		beside=$(blue_runs -n 40)
		memory_is_full
		echo "alone $alone ms, beside a flood $beside ms"
		jq -en "$beside <= 1.5 * $alone" && return
	done
	return 1
}
in_metrics() { on n0 curl --silent --fail http://127.0.0.1:9464/metrics | awk -v "series=$1" '$1 == series { print $2 }'; }
memory_is_full() {
	(($(in_metrics 'tally_software_memory_bytes{kind="used"}') > 16 * 1000 * 1000)) &&
		(($(in_metrics 'tally_tenant_software_memory_bytes{tenant="red"}') > 12 * 1000 * 1000))
}

refused_beyond() { (($(ctl --json stats | jq ".$1.packets") > $2)); } # OUTCOME PACKETS

ingress_points_hold_in_software() {
	local elsewhere=(--ingress w0 --ingress w1 --ingress w2)
	agent_star
	ctl tenant set red --ingress w0 --ingress "w1 source $(bed addr w1)/32" \
		--ingress w2 --ingress "w3 vlan 0" >/dev/null
	join_all second w0 w1 w2 w3 -- -b 1M -e 1M -n 60 -w 0
	until_true in_software second true
	another second 10
	if refused_beyond OTHER_SOURCE 0 || refused_beyond OTHER_PORT 0; then return 1; fi
	# They hold from now on; what was right is right again.
	ctl tenant set red "${elsewhere[@]}" --ingress "w3 source 192.0.2.0/24" >/dev/null
	until_true refused_beyond OTHER_SOURCE 10
	# Which VLAN it was, software does not know.
	refuses "software cannot tell by which VLAN" ctl tenant set red "${elsewhere[@]}" --ingress "w3 vlan 5"
	ctl tenant set red "${elsewhere[@]}" >/dev/null
	until_true refused_beyond OTHER_PORT 10
	ctl tenant set red "${elsewhere[@]}" --ingress w3 >/dev/null
	joined_end
	chunks_of second ==
	create_job six 2 --tenant red --service "$(bed addr n0 6)"
	family=6 join_all six w0 w2 -- -b 64K -e 64K -n 4 -w 0
	joined_end
	chunks_of six ==
	until_true state_is second waiting
	until_true state_is six waiting
	ctl tenant set red "${elsewhere[@]}" --ingress "w3 vlan 5" >/dev/null
	refuses "quota of 256" ctl job create third --workers 4 --tenant red
}

a_run_in_software_goes_on_when_tallyd_is_killed() {
	agent_star
	join_all second w0 w1 w2 w3 -- -b 1M -e 1M -n 60 -w 0
	until_true in_software second true
	end_agent KILL
	start_agent
	in_software second true
	loses_slots=1 joined_end # with tallyd go the sums
	chunks_of second ==
	until_true state_is second waiting
}

# Their machines say so, if they are asked from the port that the sums have.
workers_that_go_while_there_is_no_agent_leave_a_run_in_software() {
	agent_star
	join_all second w0 w1 w2 w3 -- -b 1M -e 1M -n 600 -w 0
	until_true in_software second true
	end_agent KILL
	kill -KILL "${worker[@]}"
	wait "${worker[@]}" || true
	start_agent
	state_is second running
	until_true state_is second waiting
	if grep 'cannot ask for detached' "$work/tallyd.log"; then return 1; fi
	[[ $(ctl --json status | jq '.troubles | length') == 0 ]]
}

facts collectives_are_exact_without_loss \
	collectives_are_exact_at_1_percent_loss \
	a_job_that_is_named_twice_is_refused \
	who_has_not_the_service_address_is_warned \
	memory_that_is_short_costs_time_only \
	a_spill_that_is_killed_in_mid_job_loses_nothing \
	it_sums_over_ipv6 \
	ranks_with_keys_are_summed_and_nobody_forges \
	a_job_over_its_quota_is_summed_in_software \
	rates_hold_in_software \
	one_that_floods_leaves_the_other_its_memory \
	ingress_points_hold_in_software \
	a_run_in_software_goes_on_when_tallyd_is_killed \
	workers_that_go_while_there_is_no_agent_leave_a_run_in_software
