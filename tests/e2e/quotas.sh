#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Slots go where they are used, while jobs run.
#
#   w0 ──┐
#   w1 ──┼── n0 (tallyd, 256 slots)
#   w2 ──┤
#   w3 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

# LOSS: of each link, in percent
small_node() {
	agent_network <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0 rate 1gbit loss $1
		link w1 n0 rate 1gbit loss $1
		link w2 n0 rate 1gbit loss $1
		link w3 n0 rate 1gbit loss $1
	END
	sed -i 's/^slots: .*/slots: 256/' "$work/tallyd.yaml"
	start_agent
}

of_job() { ctl --json job list "$1" | jq ".[0].$2"; } # JOB FIELD
moved() { on n0 curl --silent --fail http://127.0.0.1:9464/metrics | awk '$1 == "tally_runs_moved_total" { print $2 }'; }

has_moved() { [[ $(moved) == "$1" ]]; } # a text of metrics holds for a while

# A run of 64 slots, until end_of().
idle_run() { # JOB HOST
	create_job "$1" 1 --window 32
	join_from "$2" "$1" -d int32 -b 4 -e 4 -n 8 -w 0 -s 600
	idle[$1]=${worker[-1]}
	until_true state_is "$1" running
}
end_of() { # JOB
	kill -KILL "${idle[$1]}"
	wait "${idle[$1]}" || true
	until_true state_is "$1" waiting
	ctl job del "$1"
}

# Two holes of 64 slots, and between them a run that sums: it makes room for one of 128.
it_moves_while_it_sums() { # LOSS
	declare -A idle=()
	local bytes=256K longest
	worker=()
	small_node "$1"
	idle_run first w2
	create_job sums 2 --window 32
	join_all sums w0 w1 -- -d int32 --int-wild -b "$bytes" -e "$bytes" -n 8 -w 0 -s 4
	longest=("${worker[@]}")
	until_true state_is sums running
	worker=()
	idle_run third w2
	idle_run last w3
	end_of first
	end_of third
	another sums 500
	has_moved 0
	create_job large 2 --window 64
	join_from w2 large -d int32 -b "$bytes" -e "$bytes" -n 20 -w 0
	join_from w3 large -d int32 -b "$bytes" -e "$bytes" -n 20 -w 0
	until_true grep -q 'run begins: job=large .*window=64' "$work/tallyd.log" || { tail -n 8 "$work/tallyd.log"; ctl job list; cat "$work"/w[23].large*; return 1; }
	until_true has_moved 1
	grep 'runs moved: another one needs slots in a row: runs=1 job=large slots=128' "$work/tallyd.log"
	wait "${worker[-1]}" "${worker[-2]}"
	another sums 100
	worker=("${longest[@]}") joined=(sums w0 w1)
	loses_slots=1 joined_end
	jq -s '"the longest call \(.[0].max_us / 1000) ms, the median \(.[0].p50_us / 1000) ms"' "$work/w0.sums"
	jq -es 'all(.corrupt == 0 and .spilled == 0)' "$work/w0.sums" "$work/w1.sums"
	end_of last
}

a_run_moves_while_it_sums() { it_moves_while_it_sums 0; }
a_run_moves_while_packets_are_lost() { it_moves_while_it_sums 0.5; }

# Half of the node is lent to red, whose quota is a quarter; then others want what is theirs.
loans_are_recalled() { # LOSS
	local sums
	small_node "$1"
	echo "quotas: lend" >>"$work/tallyd.yaml"
	ctl reload >/dev/null
	ctl tenant add red --slots 64 >/dev/null
	create_job sums 2 --tenant red --window 64
	worker=()
	join_all sums w0 w1 -- -d int32 --int-wild -b 256K -e 256K -n 8 -w 0 -s 4
	sums=("${worker[@]}")
	another sums 500
	[[ $(of_job sums on_loan) == true && $(of_job sums slots) == 128 ]]
	ctl tenant list | grep ' 0 of 64, 128 on loan '
	ctl job list | grep '^sums .* on loan '
	ctl status | grep '128 of 256 in use, 64 reserved, 128 on loan'
	create_job large 2 --window 64
	create_job small 2 --window 32
	worker=()
	join_from w2 large -d int32 -b 256K -e 256K -n 8 -w 0 -s 2
	join_from w3 large -d int32 -b 256K -e 256K -n 8 -w 0 -s 2
	until_true state_is large running
	[[ $(of_job sums on_loan) == true ]] # there was room for both
	join_from w2 small -d int32 -b 256K -e 256K -n 8 -w 0 -s 1
	join_from w3 small -d int32 -b 256K -e 256K -n 8 -w 0 -s 1
	until_true grep 'slots on loan recalled: the run goes on in software: job=sums slots=128 for=small' "$work/tallyd.log"
	until_true state_is small running
	[[ $(of_job sums in_software) == true && $(of_job small slots) == 64 && $(of_job large slots) == 128 ]]
	wait "${worker[@]}"
	jq -es 'all(.corrupt == 0 and .spilled == 0)' "$work"/w[23].large "$work"/w[23].small
	worker=("${sums[@]}") joined=(sums w0 w1)
	loses_slots=1 joined_end
	jq -es 'all(.corrupt == 0 and .spilled > 0 and .spilled < .chunks)' "$work"/w[01].sums
	on n0 curl --silent --fail http://127.0.0.1:9464/metrics | grep '^tally_loans_recalled_total 1$'
}

slots_on_loan_are_given_back_while_a_run_sums() { loans_are_recalled 0; }
slots_on_loan_are_given_back_while_packets_are_lost() { loans_are_recalled 0.5; }

in_software() { [[ $(of_job "$1" in_software) == "$2" ]]; } # JOB YES?

# One of three runs ends. The run in software gets its slots, once another ring has moved.
a_run_in_software_gets_slots_while_it_sums() {
	declare -A idle=()
	local sums
	small_node 0.5
	idle_run first w2
	idle_run third w2
	idle_run last w3
	create_job sums 2 --window 64
	worker=()
	join_all sums w0 w1 -- -d int32 --int-wild -b 256K -e 256K -n 8 -w 0 -s 25
	sums=("${worker[@]}")
	until_true in_software sums true
	another sums 500
	end_of first
	until_true in_software sums false
	grep 'the run has slots from now on: job=sums .*slots=128' "$work/tallyd.log"
	[[ $(of_job sums slots) == 128 ]]
	another sums 500
	worker=("${sums[@]}") joined=(sums w0 w1)
	loses_slots=1 joined_end
	jq -es 'all(.corrupt == 0 and .spilled > 0 and .spilled < .chunks)' "$work"/w[01].sums
	on n0 curl --silent --fail http://127.0.0.1:9464/metrics | grep '^tally_runs_refilled_total 1$'
	end_of third
	end_of last
}

borrows() { [[ $(of_job "$1" borrows) == "$2" ]]; } # JOB YES?

# Software cannot tell VLANs, nor where what a swap sends up has come in.
ingress_points_come_while_runs_borrow() {
	small_node 0.5
	sed -i 's/^slots: .*/slots: 64/' "$work/tallyd.yaml"
	echo "pool: {slots: 32}" >>"$work/tallyd.yaml"
	ctl reload >/dev/null
	ctl tenant add red --slots 0 >/dev/null
	ctl tenant add blue --slots 0 >/dev/null
	create_job sums 2 --tenant red --window 64
	create_job other 2 --tenant blue --window 64
	worker=()
	for host in w0 w1; do join_from "$host" sums -d int32 --int-wild -b 64K -e 64K -n 8 -w 0 -s 8; done
	for host in w2 w3; do join_from "$host" other -d int32 --int-wild -b 64K -e 64K -n 8 -w 0 -s 8; done
	until_true borrows sums true
	until_true borrows other true
	another sums 300
	! ctl tenant set red --ingress 'w0 vlan 5' --ingress w1 2>"$work/refused" || return 1
	grep 'job sums: its run is summed in software, and software cannot tell by which VLAN' "$work/refused"
	borrows sums true
	ctl tenant set red --ingress w0 --ingress w1
	borrows sums false
	borrows other true
	in_software sums true
	another sums 300
	for host in "${worker[@]}"; do wait "$host" || { cat "$work"/w?.*.errors; return 1; }; done
	jq -es 'all(.corrupt == 0 and .wrong == 0 and .chunks > 0 and .spilled == .chunks)' "$work"/w[01].sums "$work"/w[23].other
	[[ $(ctl --json stats --job sums | jq '.OTHER_PORT.packets + .OTHER_SOURCE.packets') == 0 ]]
}

checks() { on n0 "$build/tallyd" --check --config "$work/tallyd.yaml"; }

# The first of two runs is over, and the other one lies behind what would be left.
fewer_slots_than_a_run_needs_are_refused_by_its_name() {
	declare -A idle=()
	local words='slots: 64: the run of job last has slots 64 to 127.*put slots: back to 256.*job restart last'
	worker=()
	small_node 0
	idle_run first w2
	idle_run last w3
	end_of first
	sed -i 's/^slots: .*/slots: 64/' "$work/tallyd.yaml"
	! ctl reload 2>"$work/refused" || return 1
	grep "$words" "$work/refused"
	end_agent TERM
	! checks 2>"$work/refused" || return 1
	grep "$words" "$work/refused"
	! on n0 "$build/tallyd" --config "$work/tallyd.yaml" 2>"$work/refused" || return 1
	grep "$words" "$work/refused"
	sed -i 's/^slots: .*/slots: 256/' "$work/tallyd.yaml"
	checks
	start_agent
	ctl job restart last
	sed -i 's/^slots: .*/slots: 64/' "$work/tallyd.yaml"
	checks
	ctl reload
	wait "${idle[last]}" || true
	[[ $(ctl --json status | jq .slots.total) == 64 ]]
}

facts a_run_in_software_gets_slots_while_it_sums \
	slots_on_loan_are_given_back_while_a_run_sums \
	slots_on_loan_are_given_back_while_packets_are_lost \
	ingress_points_come_while_runs_borrow \
	fewer_slots_than_a_run_needs_are_refused_by_its_name \
	a_run_moves_while_it_sums \
	a_run_moves_while_packets_are_lost
