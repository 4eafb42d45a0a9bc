#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Trees through agents: each node is run by a tallyd. The root's makes a document for each inner
# node, an operator carries it there.
#
#   w0 ──┐
#   w1 ──┴── a0 ──┐
#   w2 ──┬── a1 ──┴── n0      a0 and a1 send one packet up where two came in
#   w3 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

declare -A inner=() # process of each inner node's tallyd

at() { # NODE tallyctl-arguments...: at an inner node
	local name=$1
	shift
	"$build/tallyctl" --socket "$work/$name.control" "$@"
}
answers_at() { at "$1" status >/dev/null 2>&1; }

start_inner() { # NODE
	exec_on "$1" "$build/tallyd" --config "$work/$1.yaml" 2>>"$work/$1.log" &
	inner[$1]=$!
	until_true answers_at "$1" || { cat "$work/$1.log"; return 1; }
}

end_inner() { # NODE SIGNAL
	kill -s "$2" "${inner[$1]}" || return 1
	wait "${inner[$1]}" 2>/dev/null || true
	unset "inner[$1]"
}

configure_inner() { # NODE
	local port
	rm -f "$work/$1".{state,log}
	{
		echo "ports:"
		for port in $(interfaces "$1"); do
			echo "  - $port"
		done
		echo "slots: 1024"
		echo "pin: $pin-$1"
		echo "state: $work/$1.state"
		echo "service: [\"$(bed addr "$1" 4)\", \"$(bed addr "$1" 6)\"]"
		echo "control: {socket: $work/$1.control}"
		echo "join: {socket: $work/$1.join}"
		echo "metrics: {listen: \"127.0.0.1:9464\"}"
	} >"$work/$1.yaml"
}

two_levels() { # LINK-OPTIONS
	local name
	agent_network <<-END || return 1
		host w0 w1 w2 w3
		node n0 a0 a1
		link w0 a0 $*
		link w1 a0 $*
		link w2 a1 $*
		link w3 a1 $*
		link a0 n0 $*
		link a1 n0 $*
	END
	start_agent || return 1
	for name in a0 a1; do
		configure_inner "$name"
		start_inner "$name" || return 1
	done
	tree "$(bed addr a0)" 0-1 "$(bed addr a1)" 2-3
}

tree() { # ADDRESS RANKS ADDRESS RANKS
	jq -n '[{ name: "a0", address: $ARGS.positional[0], ranks: $ARGS.positional[1] },
		{ name: "a1", address: $ARGS.positional[2], ranks: $ARGS.positional[3] }]' \
		--args "$@" >"$work/tree.json"
}

has_documents() { ctl job documents "$1" >"$work/documents" 2>/dev/null; } # JOB
bring() { ctl job documents "$1" --node "$2" | at "$2" apply -; } # JOB NODE
bring_all() { # JOB
	until_true has_documents "$1" || return 1
	bring "$1" a0 && bring "$1" a1
}
# Ranks are given by who comes first: here each comes from where the tree has it.
join_ranks() { # JOB [tally-perf arguments...]
	local rank job=$1
	shift
	worker=() joined=("$job" w0 w1 w2 w3)
	for rank in 0 1 2 3; do
		join_from "w$rank" "$job" --rank "$rank" "$@"
	done
}

sent_up() { at "$1" --json stats --job train | jq .SENT_UP.packets; } # NODE
sent_up_beyond() { (($(sent_up "$1") > $2)); }
is_on_at() { [[ $(at "$1" --json job list "$2" | jq -r '.[0].state') == running ]]; } # NODE JOB
small=(-d int32 --int-wild -b 4 -e 64K -f 256 -n 3 -w 0)
long=(-d int32 -b 1M -e 1M -n 120 -w 0)
large=(-d float32 -b 1M -e 4M -n 5 -w 0)

sums_are_made_at_two_levels_with_loss() {
	two_levels rate 1gbit loss 1
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${large[@]}"
	bring_all train
	joined_end
	echo "sent up: $(sent_up a0), $(sent_up a1)"; (($(sent_up a0) > 1000 && $(sent_up a1) > 1000))
	at a0 job show train
	at a0 job show train | has 'inner'
	[[ $(at a0 --json job list train | jq -r '.[0].service') == "$(bed addr n0)" ]]
}

each_run_has_documents_of_its_own() {
	local epoch
	two_levels rate 1gbit
	create_job train 4 --tree "$work/tree.json"
	for epoch in 1 2; do
		join_ranks train "${small[@]}"
		bring_all train
		joined_end
		until_true state_is train waiting
	done
	refuses "has no run now" ctl job documents train
	at a0 job del train
	[[ $(at a0 --json status | jq '.slots.used') == 0 ]]
}

# The maps do without an agent, and the next one finds in its state file what they have.
an_inner_agent_is_killed_in_mid_job() {
	local up
	two_levels rate 1gbit loss 1
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${long[@]}"
	bring_all train
	another train 2000
	end_inner a0 KILL
	another train 2000
	start_inner a0
	is_on_at a0 train
	bring train a0 # it is there, and a second time does no harm
	up=$(sent_up a0)
	until_true sent_up_beyond a0 $((up + 500))
	joined_end
	(($(grep -c 'run begins at this inner node' "$work/a0.log") == 1))
}

# What a0 would have added passes it, but results come to nobody behind it, until it is back.
an_inner_node_is_detached_in_mid_job() {
	local up loses_slots=yes
	two_levels rate 1gbit loss 1
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${long[@]}"
	bring_all train
	another train 2000
	end_inner a0 KILL
	node a0 detach
	start_inner a0
	until_true is_on_at a0 train
	up=$(sent_up a0)
	until_true sent_up_beyond a0 $((up + 500))
	joined_end
}

says() { at "$1" "${@:3}" | has "$2"; } # NODE WORDS COMMAND...

# w0 is away: a0 answers at once all the same, says why the run is not there, and takes it in when
# it hears of w0.
a_neighbour_that_is_silent_holds_up_nobody() {
	local began silent
	two_levels rate 1gbit
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${small[@]}"
	bring_all train
	sed -n 1p "$work/documents" >"$work/document"
	joined_end
	silent=$(bed addr w0)
	at a0 job del train
	on w0 sysctl -qw net.ipv4.conf.eth0.arp_ignore=8
	on a0 ip neigh del "$silent" dev w0
	began=${EPOCHREALTIME/./}
	at a0 apply "$work/document" >"$work/applied"
	((${EPOCHREALTIME/./} - began < 500000 * slow))
	has "$silent: no neighbour answers" "$work/applied"

	says a0 "$silent: no neighbour answers" job show train
	says a0 "inner, waits" job list
	says a0 "its run waits at this inner node: $silent" status
	at a0 doctor >"$work/doctor" || true
	has "its run waits at this inner node: $silent" "$work/doctor"
	began=${EPOCHREALTIME/./}
	at a0 tenant add red --slots 16 >/dev/null # reads the maps, and tries the run again
	((${EPOCHREALTIME/./} - began < 500000 * slow))
	(($(grep -c 'run waits at this inner node' "$work/a0.log") == 1))
	on w0 sysctl -qw net.ipv4.conf.eth0.arp_ignore=0
	until_true on w0 ping -c 1 -W 1 "$(bed addr a0)"
	until_true is_on_at a0 train
	says a0 "1 as an inner node" status
	[[ $(on a0 curl -s localhost:9464/metrics | grep '^tally_runs_inner ') == *' 1' ]]
	at a0 drain --timeout 5 | has 'of runs that end elsewhere 1 is here' -i
	refuses "the node is cordoned" at a0 apply <(jq -c '.epoch = (.epoch + 1) % 65536' "$work/document")
}

what_is_no_document_for_this_node_is_refused() {
	two_levels rate 1gbit
	tree "$(bed addr a0)" 0-1 "$(bed addr a1)" 1-3
	refuses "nodes a0 and a1 share some ranks of 1-3" create_job train 4 --tree "$work/tree.json"
	tree "$(bed addr a0)" 0-1 "$(bed addr n0)" 2-3
	refuses "is the root's own address" create_job train 4 --tree "$work/tree.json"
	tree "$(bed addr a0)" 0-1 "$(bed addr a1)" 2-4
	refuses "node a1: ranks 2-4: the job's ranks are 0-3" create_job train 4 --tree "$work/tree.json"
	tree "$(bed addr a0)" 0-1 "$(bed addr a1)" 2-3
	refuses "a job with a tree has none" create_job train 4 --tree "$work/tree.json" --tags yes
	create_job train 4 --tree "$work/tree.json"
	refuses "has no run now" ctl job documents train
	join_ranks train "${small[@]}"
	until_true has_documents train
	refuses "no inner node a2; it has a0 a1" ctl job documents train --node a2
	ctl job documents train --node a1 >"$work/document"
	refuses "it is for node a1, whose address is $(bed addr a1)" at a0 apply "$work/document"
	refuses "which is the root's" ctl apply "$work/document"
	refuses "standard input: is null" at a0 apply - <<<null
	refuses "ranks 2: a rank is named twice" at a1 apply <(jq '.ranks += [.ranks[0]]' "$work/document")
	refuses "give the tenant more" at a1 apply <(jq '.window = 1024' "$work/document")
	bring_all train
	refuses "another document of run" at a1 apply <(jq 'del(.ranks[0])' "$work/document")
	refuses "this node is an inner node of job train" at a1 job token train
	refuses "this node is an inner node of job train" at a1 job restart train
	joined_end
}

facts sums_are_made_at_two_levels_with_loss \
	each_run_has_documents_of_its_own \
	an_inner_agent_is_killed_in_mid_job \
	an_inner_node_is_detached_in_mid_job \
	a_neighbour_that_is_silent_holds_up_nobody \
	what_is_no_document_for_this_node_is_refused
