#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Slots are scarce: three jobs of two tenants at once, on nodes that have slots for a few of them.
# What finds none borrows slots, and is summed in software. Meanwhile packets are lost, a node is
# reloaded and agents are killed: all sums are exact on each worker, and nobody is refused.
# shellcheck source=tests/e2e/tree_lib.sh
source "$(dirname "$0")/tree_lib.sh"

jobs=(alpha beta gamma)
declare -A calls=([alpha]=700 [beta]=200 [gamma]=200) # who has slots is faster
declare -A members=() # processes of each job's workers

# All sums are exact, the same on all workers; on the way nothing was refused.
jobs_end() {
	local job
	for job in "${jobs[@]}"; do
		read -ra worker <<<"${members[$job]}"
		joined=("$job" w0 w1 w2 w3)
		loses_slots=1 joined_end || return 1
		jq -se 'all(.wrong == 0 and .chunks > 0)' "$work"/w?."$job" >/dev/null || return 1
		until_true state_is "$job" waiting
	done
	if grep -E 'worker refused|run does not begin|run is over .*reason' "$work/tallyd.log"; then
		return 1
	fi
}

another_of_each() { # CHUNKS
	local job
	for job in "${jobs[@]}"; do
		another "$job" "$1" || return 1
	done
}

reloads() { grep -c 'configuration reloaded' "$work/tallyd.log" || true; }
reloads_beyond() { (($(reloads) > $1)); }
reload_with() { # SED-SCRIPT
	local before
	before=$(reloads)
	sed -i "$1" "$work/tallyd.yaml"
	kill -HUP "$daemon"
	until_true reloads_beyond "$before"
}

in_software() { [[ $(ctl --json job list "$1" | jq '.[0].in_software') == "$2" ]]; } # JOB YES?
borrows() { [[ $(ctl --json job list "$1" | jq '.[0].borrows') == "$2" ]]; }
borrows_at() { [[ $(at "$1" --json job list "$2" | jq '.[0].borrows') == "$3" ]]; } # NODE JOB YES?
passes_at() { [[ $(at "$1" --json job list "$2" | jq '.[0].passes_on') == "$3" ]]; }  # NODE JOB YES?
of_job() { cat "$work"/w?."$1" | jq -se "map(.spilled $2 .chunks) | all" >/dev/null; }

# The three want 256 slots at each node, which has 64, and perhaps a pool.
two_tenants_on_two_levels() { # SLOTS-OF-POOL
	levels 64 rate 1gbit loss 1
	sed -i 's/^slots: .*/slots: 64/' "$work/tallyd.yaml"
	echo "pool: {slots: $1}" | tee -a "$work/tallyd.yaml" "$work/a0.yaml" >>"$work/a1.yaml"
	echo "tenants: [{name: red, slots: 64}, {name: blue, slots: 0}]" >>"$work/tallyd.yaml"
	start_levels
	create_job alpha 4 --tenant red --window 32 --tree "$work/tree.json"
	create_job beta 4 --tenant red --window 64 --tree "$work/tree.json"
	create_job gamma 4 --tenant blue --window 32 --tree "$work/tree.json"
}

outcome_of() { ctl --json stats --job "$1" | jq ".$2.packets"; } # JOB OUTCOME

join_jobs() {
	local job
	for job in "${jobs[@]}"; do
		join_ranks "$job" -d int32 -b 256K -e 256K -n "${calls[$job]}" -w 0 || return 1
		members[$job]=${worker[*]}
		bring_all "$job" || return 1
	done
}

three_jobs_have_slots_for_one_of_them() { # [POOL]
	local job pool=${1-0} borrows=false passes=true
	((pool == 0)) || { borrows=true && passes=false; }
	two_tenants_on_two_levels "$pool"
	join_jobs
	in_software alpha false
	in_software beta true
	in_software gamma true
	borrows beta "$borrows"
	borrows_at a0 alpha false
	borrows_at a0 beta "$borrows"
	borrows_at a0 gamma "$borrows"
	passes_at a0 gamma "$passes"
	another_of_each 500
	reload_with 's/^slots: .*/slots: 80/; s/^pool: .*/pool: {slots: 48}/'
	another_of_each 500
	end_inner a0 KILL
	another_of_each 500
	start_inner a0
	for job in "${jobs[@]}"; do
		is_on_at a0 "$job"
	done
	borrows_at a0 gamma "$borrows"
	end_agent KILL
	start_agent
	borrows beta "$borrows"
	another_of_each 500
	jobs_end
	of_job alpha "!="
	of_job beta ==
	of_job gamma ==
}

has_own_slots_at() { borrows_at "$1" "$2" false && passes_at "$1" "$2" false; } # NODE JOB

# A job that ends leaves slots at two nodes below the root; another job's run gets them as it is on.
inner_nodes_give_slots_to_a_run_that_is_on() { # POOL
	local before
	jobs=(alpha gamma)
	calls[gamma]=900
	two_tenants_on_two_levels "$1"
	ctl job del beta
	join_jobs
	! has_own_slots_at a0 gamma || return 1
	! has_own_slots_at a1 gamma || return 1
	another_of_each 300
	! has_own_slots_at a0 gamma || return 1
	read -ra worker <<<"${members[alpha]}"
	kill -KILL "${worker[@]}"
	wait "${worker[@]}" || true
	until_true state_is alpha waiting
	ctl job del alpha
	at a0 job del alpha
	at a1 job del alpha
	until_true has_own_slots_at a0 gamma
	until_true has_own_slots_at a1 gamma
	another gamma 500
	before=$(at a0 --json stats --job gamma | jq .SENT_UP.packets)
	end_inner a1 KILL
	another gamma 500
	start_inner a1
	has_own_slots_at a1 gamma
	(($(at a0 --json stats --job gamma | jq .SENT_UP.packets) > before))
	jobs=(gamma)
	jobs_end
}

inner_nodes_that_pass_on_get_slots() { inner_nodes_give_slots_to_a_run_that_is_on 0; }
inner_nodes_that_borrow_get_slots() { inner_nodes_give_slots_to_a_run_that_is_on 64; }

star() { # LINK-OPTIONS
	agent_network <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0 $*
		link w1 n0 $*
		link w2 n0 $*
		link w3 n0 $*
	END
}

up_of() { # JOB: packets that software got
	ctl --json stats --job "$1" |
		jq '[.SENT_UP, .PASSED_UP, .FLUSHED_UP, .SWAPPED, .REFUSED] | map(.packets) | add'
}

software_gets_one_packet_for_each_chunk() {
	local job
	star rate 1gbit
	sed -i 's/^slots: .*/slots: 2/' "$work/tallyd.yaml"
	echo "pool: {slots: 256}" >>"$work/tallyd.yaml"
	start_agent
	create_job plain 4 --tags no
	create_job tagged 4
	for job in plain tagged; do
		join_all "$job" w0 w1 w2 w3 -- -d int32 -b 1M -e 1M -n 20 -w 0
		until_true borrows "$job" true
		ctl job list | has "^$job .*borrows slots"
		ctl job show "$job" | has '^no slots of its own: it wants 256'
		ctl status | has '1 summed in software, for lack of slots, 1 in borrowed slots'
		joined_end
		of_job "$job" ==
		echo "$job: $(up_of "$job") went up, for $(outcome_of "$job" COMPLETED) results"
		(($(up_of "$job") * 10 < $(outcome_of "$job" COMPLETED) * 12))
		(($(outcome_of "$job" FORGED) == 0))
	done
}

# An agent whose ports are not there: nothing is in the network but routers.
three_jobs_without_any_xdp() {
	local job
	star rate 1gbit loss 1
	sed -i '/^ports:/,/^slots:/c ports: none0\nslots: 2' "$work/tallyd.yaml"
	echo "tenants: [{name: red, slots: 0}, {name: blue, slots: 0}]" >>"$work/tallyd.yaml"
	start_agent
	create_job alpha 4 --tenant red
	create_job beta 4 --tenant red --tags no
	create_job gamma 4 --tenant blue --sealed
	for job in "${jobs[@]}"; do
		join_all "$job" w0 w1 w2 w3 -- -d int32 -b 256K -e 256K -n 500 -w 0
		members[$job]=${worker[*]}
	done
	for job in "${jobs[@]}"; do
		until_true in_software "$job" true
	done
	another_of_each 500
	reload_with 's/red, slots: 0/red, slots: 1/'
	another_of_each 500
	end_agent KILL
	start_agent
	another_of_each 500
	jobs_end
	for job in "${jobs[@]}"; do
		of_job "$job" ==
	done
}

# Software gets sums of all workers, and packets of one that found their slot taken.
the_others_borrow_from_a_pool() {
	local job
	three_jobs_have_slots_for_one_of_them 64
	for job in beta gamma; do
		echo "$job: $(outcome_of "$job" SENT_UP) sums of all, $(outcome_of "$job" COMPLETED) results"
		(($(outcome_of "$job" SENT_UP) > 1000 && $(outcome_of "$job" SWAPPED) > 100))
	done
}

facts three_jobs_have_slots_for_one_of_them \
	the_others_borrow_from_a_pool \
	software_gets_one_packet_for_each_chunk \
	three_jobs_without_any_xdp \
	inner_nodes_that_pass_on_get_slots \
	inner_nodes_that_borrow_get_slots
