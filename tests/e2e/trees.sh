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
# shellcheck source=tests/e2e/tree_lib.sh
source "$(dirname "$0")/tree_lib.sh"

two_levels() { levels 1024 "$@" && start_levels; } # LINK-OPTIONS

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

each_worker_says_which_rank_it_is() {
	two_levels rate 1gbit
	create_job train 4 --tree "$work/tree.json"
	worker=() joined=(train w0)
	join_from w0 train "${small[@]}"
	! wait "${worker[0]}" || return 1
	has -F 'job train has a tree, which says where each rank is (a0: 0-1; a1: 2-3): say which rank' \
		"$work/w0.train.errors"
	[[ $(on n0 curl -s localhost:9464/metrics) == *'tally_joins_refused_total{reason="rank"} 1'* ]]
	worker=()
	TALLY_RANK=0 join_from w0 train "${small[@]}"
	TALLY_RANK=1 join_from w1 train "${small[@]}"
	TALLY_RANK=2 join_from w2 train "${small[@]}"
	TALLY_RANK=3 join_from w3 train "${small[@]}"
	joined=(train w0 w1 w2 w3)
	joined_end
}

# Each is behind the node of the other one. All sums are right.
ranks_at_the_wrong_node_are_said() {
	local words='ranks 1-2 are not behind the nodes where the tree has them'
	two_levels rate 1gbit
	create_job train 4 --tree "$work/tree.json"
	worker=() joined=(train w0 w1 w2 w3)
	join_from w0 train --rank 0 "${long[@]}" -n 40
	join_from w1 train --rank 2 "${long[@]}" -n 40
	join_from w2 train --rank 1 "${long[@]}" -n 40
	join_from w3 train --rank 3 "${long[@]}" -n 40
	bring_all train
	until_true state_is train running
	says_at_root "$words" job show train
	says_at_root "job train: $words" status
	ctl doctor >"$work/doctor" || true
	has "job train: $words" "$work/doctor"
	says a0 "rank 1 is not behind the node where the tree has it" job show train
	says a1 "rank 2 is not behind the node where the tree has it" job show train
	joined_end
	join_ranks train "${small[@]}"
	bring_all train
	joined_end
	[[ $(ctl --json job list train | jq -r '.[0].astray') == '' ]]
	(($(grep -c 'ranks are astray' "$work/tallyd.log") == 1))
}
says_at_root() { ctl "${@:2}" | has "$1"; } # WORDS COMMAND...

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
	create_job train 4 --tree "$work/tree.json"
	refuses "has no run now" ctl job documents train
	join_ranks train "${long[@]}"
	until_true has_documents train
	refuses "no inner node a2; it has a0 a1" ctl job documents train --node a2
	ctl job documents train --node a1 >"$work/document"
	refuses "it is for node a1, whose address is $(bed addr a1)" at a0 apply "$work/document"
	refuses "which is the root's" ctl apply "$work/document"
	refuses "standard input: is null" at a0 apply - <<<null
	refuses "rank 2 is at port 31249, which is that of nodes" at a1 apply \
		<(jq '.ranks[0].address |= sub(":[0-9]+$"; ":31249")' "$work/document")
	refuses "ranks 2: a rank is named twice" at a1 apply <(jq '.ranks += [.ranks[0]]' "$work/document")
	bring_all train
	refuses "another document of run" at a1 apply <(jq 'del(.ranks[0], .keys)' "$work/document")
	refuses "this node is an inner node of job train" at a1 job token train
	refuses "this node is an inner node of job train" at a1 job restart train
	joined_end
}

without_tags_documents_have_no_keys() {
	two_levels rate 1gbit
	create_job train 4 --tree "$work/tree.json" --tags no
	join_ranks train "${large[@]}"
	bring_all train
	joined_end
	jq -se 'length == 2 and all(has("keys") | not)' "$work/documents"
	(($(sent_up a0) > 1000 && $(sent_up a1) > 1000))
}

facts sums_are_made_at_two_levels_with_loss \
	without_tags_documents_have_no_keys \
	each_run_has_documents_of_its_own \
	each_worker_says_which_rank_it_is \
	ranks_at_the_wrong_node_are_said \
	an_inner_agent_is_killed_in_mid_job \
	an_inner_node_is_detached_in_mid_job \
	a_neighbour_that_is_silent_holds_up_nobody \
	what_is_no_document_for_this_node_is_refused
