#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs that the agents of a cluster share: created at any node, joined at any node, placed by the
# one that leads, and kept when nodes, leaders and etcd go.
#
#   e0 (etcd) ──┐      w1        w3
#   w0 ─────── n0 ──── n1 ────── n3 ── w4
#               └───── n2 ───────┘
#                     w2 w5
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "$0")/cluster_lib.sh"

a_job_is_joined_at_any_node_and_its_root_is_near() {
	square
	create_at n2 train 3
	# Two of three are at n3, and nobody joins there.
	join_at w3 n0 train
	join_at w4 n1 train
	join_at w2 n2 train
	finish train w2 w3 w4
	is_root train n3
	[[ $(at n3 job show train --json | jq -r '.[0].clustered') == true ]]
	! at n0 job show train >/dev/null 2>&1 || return 1
	at n1 cluster train >"$work/shown"
	has 'least cost: ' <"$work/shown"
	has -E '^n3 +[0-9.]+' <"$work/shown"
	# Once more: the place is known, so they are sent there at once.
	join_at w3 n0 train
	join_at w4 n1 train
	join_at w2 n2 train
	finish train w2 w3 w4
}

is_waiting() { [[ $(shared n0 "$1" waiting) == "$2" ]]; } # JOB COUNT

who_waits_is_told_who_is_missing_and_who_goes_is_forgotten() {
	local code=0
	square
	create_at n0 train 2
	join_at w1 n1 train
	until_true is_waiting train 1
	[[ $(shared n0 train state) == forming ]]
	kill "${worker[0]}"
	worker=()
	until_true is_waiting train 0
	[[ -z $(keys_of worker/) ]] || { keys_of worker/; return 1; }
	join_at w1 n1 train --join-timeout 1500 || true
	wait "${worker[0]}" || code=$?
	((code != 0))
	has 'rank 1 of job train has not come within 1.5 s' "$work/w1.train.errors" ||
		{ cat "$work/w1.train.errors"; return 1; }
}

the_token_is_proven_at_any_node() {
	local code=0
	square
	create_at n0 train 1
	cp "$work/train.token" "$work/right"
	echo wrong >"$work/train.token"
	join_at w1 n1 train
	wait "${worker[0]}" || code=$?
	((code != 0))
	has 'EACCES\|no such job, or a wrong token\|token' "$work/w1.train.errors" ||
		{ cat "$work/w1.train.errors"; return 1; }
	worker=()
	[[ $(at n3 job token train) == $(cat "$work/right") ]]
	! grep -r "$(cat "$work/right")" "$work"/n*.log || return 1
}

# What `job create` says at one node reaches the others a moment later: whoever joins there at once
# is no guesser. Who has a wrong token is one, whether the job is known or not.
who_joins_at_once_at_another_node_is_served() {
	local name late before after code=0
	square
	late=(pref 1 ipproto tcp sport 2379 to "$(on n1 ip -o route get "$(bed addr e0)" |
		sed 's/.* src \([^ ]*\).*/\1/')" blackhole) # what the store says to n1
	for name in {1..5}; do
		on n0 ip rule add "${late[@]}"
		create_at n2 "at-once-$name" 3
		join_at w1 n1 "at-once-$name"
		join_at w3 n1 "at-once-$name"
		join_at w4 n1 "at-once-$name"
		until_true have_come n1 3
		on n0 ip rule del "${late[@]}"
		finish "at-once-$name" w1 w3 w4 || code=1
	done
	[[ $code:$(guesses) == 0:0 ]] || { guesses; return 1; }
	for name in none at-once-1; do
		(umask 077 && echo wrong >"$work/wrong.$name") && mv "$work/wrong.$name" "$work/$name.token"
		before=$(date +%s%N)
		join_at w3 n2 "$name"
		! wait "${worker[0]}" || return 1
		worker=()
		after=$(date +%s%N)
		has 'no such job, or a wrong token' "$work/w3.$name.errors" || return 1
		echo "$name: after $(((after - before) / 1000000)) ms"
		((after - before >= 900000000)) || return 1
	done
	[[ $(guesses) == 2 ]]
}

# A right token says nothing to whoever has guessed too often, at whichever node.
who_guesses_in_a_cluster_must_wait() {
	local code=0
	square
	create_at n2 train 1
	cp -p "$work/train.token" "$work/right"
	(umask 077 && echo wrong >"$work/wrong") && mv "$work/wrong" "$work/train.token"
	for _ in {1..14}; do join_at w3 n1 train; done
	! wait "${worker[@]}" || return 1
	worker=()
	mv "$work/right" "$work/train.token"
	join_at w3 n1 train
	wait "${worker[0]}" || code=$?
	worker=()
	((code != 0))
	has 'too many wrong tokens came from there' "$work/w3.train.errors" ||
		{ cat "$work/w3.train.errors"; return 1; }
}

# Who says many wrong tokens at once has 64 of them held: the others are answered before these.
an_agent_holds_few_of_one_source() {
	square
	on w3 python3 tests/e2e/joiner.py crowd "$(bed addr n1)" none 66 >"$work/order"
	[[ $(wc -l <"$work/order") == 66 ]]
	[[ $(head -2 "$work/order" | sort | xargs) == '64 65' ]] || { head -5 "$work/order"; return 1; }
}

# Hanging up before the answer saves nobody from being counted, and who is to wait is not held.
who_hangs_up_has_guessed_all_the_same() {
	square
	on w3 python3 tests/e2e/joiner.py hang-up "$(bed addr n1)" none 64
	until_true are_counted 64 || { guesses; return 1; }
	on w3 python3 tests/e2e/joiner.py crowd "$(bed addr n1)" none 66 >"$work/order"
	[[ $(head -2 "$work/order" | sort | xargs) != '64 65' ]] || return 1
	[[ $(guesses) == 64 ]]
	has 'wrong tokens' "$work/n1.log"
}
are_counted() { [[ $(guesses) == "$1" ]]; }
have_come() { (($(on "$1" ss -Htn state established 'sport = :31249' | wc -l) == $2)); } # NODE COUNT
guesses() { # at all nodes
	local name
	for name in $(nodes); do
		on "$name" curl -s http://127.0.0.1:9464/metrics
	done | awk '/^tally_joins_refused_total.*token/ { n += $2 } END { print n + 0 }'
}

who_waits_at_an_agent_that_dies_joins_at_another_one() {
	square
	create_at n0 train 2
	join_at w3 n1 train --other-agents "$(bed addr n2)"
	until_true is_waiting train 1
	end_at n1 KILL
	join_at w4 n1 train --other-agents "$(bed addr n2),$(bed addr n0)" # it is away from the start
	finish train w3 w4
	# One that is restarted has its worker again.
	start_at n1
	create_at n0 second 2
	join_at w3 n1 second
	until_true is_waiting second 1
	end_at n1 KILL
	start_at n1
	join_at w4 n2 second
	finish second w3 w4
}

gone_at() { ! at "$1" job show "$2" >/dev/null 2>&1; }
at_root() { at "$1" job show "$2" >/dev/null 2>&1; }

a_job_is_deleted_at_any_node() {
	local code=0
	square
	create_at n0 train 2
	{ at n1 job create train --workers 2 --cluster || true; } 2>&1 | has 'the cluster has a job train'
	join_at w3 n0 train --seconds 60 -b 64K -e 64K
	join_at w4 n1 train --seconds 60 -b 64K -e 64K
	until_true runs_at n3 train
	at n1 job del train
	wait "${worker[0]}" || code=$?
	((code != 0))
	wait "${worker[1]}" || true
	has 'the job was deleted' "$work/w3.train.errors" || { cat "$work/w3.train.errors"; return 1; }
	until_true gone_at n3 train
	until_true nothing_is_left
	{ at n2 job del train || true; } 2>&1 | has 'there is no job train\|no job train'
}
nothing_is_left() { [[ -z $(keys_of job/)$(keys_of place/)$(keys_of worker/) ]]; }

what_was_done_is_known_where_it_was_asked_for() {
	square
	for _ in {1..20}; do
		create_at n2 train 2
		at n2 job place train --node n1
		[[ $(shared n2 train root) == n1 ]]
		at n2 job del train
		[[ $(at n2 cluster --json | jq '.jobs | length') == 0 ]]
	done
}

who_leads_may_go() {
	local was name
	square
	was=$(leader n0)
	[[ $was == n? ]]
	end_at "$was" KILL
	until_true another_leads "$was"
	for name in n0 n1 n2 n3; do
		[[ $name == "$was" ]] || until_true has_seen_it_go "$name" || { at "$name" events; return 1; }
	done
	start_at "$was"
	create_at "$was" train 2
	join_at w1 n1 train
	join_at w2 n2 train
	finish train w1 w2
}
has_seen_it_go() { # NODE
	at "$1" events --json | jq -e --arg was "$was" '[.events[] |
		(select(.kind == "leader" and .from == $was), select(.kind == "silent" and .node == $was))] |
		length == 2' >/dev/null
}
another_leads() {
	local name
	for name in n0 n1 n2 n3; do
		[[ $name == "$1" ]] || { [[ $(leader "$name") == n? && $(leader "$name") != "$1" ]] || return 1; }
	done
}

a_root_that_dies_is_replaced_when_workers_come_again() {
	square
	create_at n0 train 2
	join_at w3 n0 train
	join_at w4 n1 train
	finish train w3 w4
	is_root train n3
	# w1 and w2 are the workers now; n3 is dead, and so are the ways through it.
	end_at n3 KILL
	node n3 detach >/dev/null 2>&1 || true
	join_at w1 n1 train --join-timeout 40000
	join_at w2 n2 train --join-timeout 40000
	finish train w1 w2
	! is_root train n3 || return 1
}

a_cordoned_node_is_no_root() {
	square
	at n3 cordon
	create_at n0 train 2
	join_at w3 n0 train
	join_at w4 n1 train
	finish train w3 w4
	! is_root train n3 || return 1
	at n3 uncordon
}

a_node_that_refuses_is_passed_over() {
	square
	# A job of that name, of n3 alone.
	at n3 job create train --workers 5 --token-file "$work/other" >/dev/null
	create_at n0 train 2
	join_at w3 n0 train
	join_at w4 n1 train
	finish train w3 w4
	! is_root train n3 || return 1
	[[ $(shared n0 train 'refused[0]') == n3 ]]
	at n3 job show train --json | jq -e '.[0].workers == 5' >/dev/null
}

runs_and_restarts_need_no_etcd() {
	square
	create_at n0 train 2
	join_at w3 n0 train --seconds 12 -b 64K -e 64K
	join_at w4 n1 train --seconds 12 -b 64K -e 64K
	until_true runs_at n3 train
	kill_etcd
	end_at n3 TERM
	start_at n3
	runs_at n3 train
	finish train w3 w4
	start_etcd
	until_true knows_again
	at_root n3 train
	create_at n1 second 2
	until_true knows_second
	join_at w1 n1 second
	join_at w2 n2 second
	finish second w1 w2
}
knows_second() { [[ $(shared n2 second state) == forming ]]; }
knows_again() { [[ $(shared n3 train root) == n3 ]]; }

# A tenant that only n0 has, which takes no runs: nobody else waits for that.
a_job_without_a_place_holds_up_nobody() {
	square
	at n0 tenant add red --slots 256 >/dev/null
	at n0 cordon
	create_at n0 aaa 1 --tenant red
	join_at w0 n0 aaa
	until_true all_refuse
	outlook n3 aaa | has 'it gets no root: no node may have it: all are cordoned, or have refused it'
	create_at n1 train 2
	outlook n2 train | has '0 of 2 workers have come'
	local alone=("${worker[@]}")
	worker=()
	join_at w3 n1 train
	join_at w4 n1 train
	finish train w3 w4
	until_true no_run_is_on n2 train
	kill "${alone[0]}"
}
no_run_is_on() { outlook "$1" "$2" | has 'no run is on; workers that come are sent to its root'; }
outlook() { at "$1" cluster "$2" | sed -n 's/^now: //p'; } # NODE JOB
all_refuse() { [[ $(shared n1 aaa 'refused | length') == 3 ]]; }

has_inner() { at "$1" job show train --json | jq -e --arg node "$2" '.[0].nodes | map(.name) == [$node]' >/dev/null; }
is_inner() { at "$1" job list --json | jq -e '.[0].role == "inner"' >/dev/null; }

# The root's two workers beside it, and the other two behind the node that sums for them.
is_drawn() { # NODE
	at n1 cluster train | sed -n '/^TREE/,$p' >"$work/tree"
	has -E '^n[23] +root +- +- +-' <"$work/tree" && has -E "^ +$1 +sums .* 100 Mbit/s" <"$work/tree" &&
		(($(grep -cE '^ +h10[.0-9]+ +1 worker ' "$work/tree") == 4))
}

# With a secret, agents find the nodes between the root and its workers by themselves.
top_shows_the_load() {
	at n1 top --cluster --once >"$work/top"
	has -E '^n[0-3] [-a-z0-9.]+ .* 100 Mbit/s +[0-9.]+ Mbit/s' <"$work/top"
}
nodes_on_the_way_sum_too() {
	local secret=yes root other host
	square
	create_at n0 train 4
	for host in w3 w4 w2 w5; do
		join_at "$host" n0 train --seconds 12 -b 64K -e 64K
	done
	until_true runs_somewhere
	root=$(shared n0 train root)
	other=n$((5 - ${root#n})) # two workers are at n2, and two at n3
	until_true has_inner "$root" "$other" || { at "$root" job show train; tail -n 5 "$work"/n[23].log; return 1; }
	until_true is_inner "$other" || { at "$other" job list; at "$root" job show train; tail -n 9 "$work"/n[23].log; return 1; }
	until_true is_drawn "$other" || { at n1 cluster train; return 1; }
	at n1 cluster train --svg >"$work/tree.svg"
	is_xml "$work/tree.svg"
	has "<g class=\"node root sums\"><title>node $root," "$work/tree.svg"
	has "<g class=\"node sums\"><title>node $other," "$work/tree.svg"
	(($(grep -c 'link [a-z]* branch' "$work/tree.svg") == 5))
	until_true top_shows_the_load || { cat "$work/top"; return 1; }
	has -E '^train .* running .* n[23] ' <"$work/top" && has 'the fullest of 11 links' <"$work/top"
	finish train w2 w3 w4 w5
	at "$other" stats --json | jq -e '.SENT_UP.packets > 100' >/dev/null || { at "$other" stats; return 1; }
	at n0 job del train
	until_true gone_at "$other" train
}

# What has happened since all agents are there: KIND JOB NODE BEFORE, a line each.
happened() { # NODE
	at "$1" events --json | jq -r '.events[] | select(.kind != "came" and .kind != "leader") |
		[.kind, .job, .node, .from] | map(if . == "" then "-" else . end) | join(" ")'
}
has_happened() { [[ $(happened "$1") == "$(<"$work/wanted")" ]]; } # NODE

everywhere() { # what is on standard input has happened at all nodes
	local name
	cat >"$work/wanted"
	for name in n0 n1 n2 n3; do
		until_true has_happened "$name" || { happened "$name"; at "$name" events; return 1; }
	done
}

what_happens_is_seen_at_every_node() {
	square
	create_at n2 train 2
	at n2 job place train --node n1
	at n0 job place train --node n3
	at n1 job del train
	everywhere <<-END
		created train - -
		placed train n1 -
		moved train n3 n1
		deleted train - n3
	END
	at n3 cordon
	until_true last_is n0 'cordoned - n3 -'
	at n3 uncordon
	until_true last_is n0 'uncordoned - n3 -'
	# What is told anew has not happened anew.
	kill_etcd
	start_etcd
	until_true is_created_again
	everywhere <<-END
		created train - -
		placed train n1 -
		moved train n3 n1
		deleted train - n3
		cordoned - n3 -
		uncordoned - n3 -
		created second - -
	END
	at n0 events >"$work/shown"
	has -E '^[-0-9]{10} [:0-9]{8}  moved +train +n3 +n1 +an operator said so$' <"$work/shown" ||
		{ cat "$work/shown"; return 1; }
	on n0 curl -s http://127.0.0.1:9464/metrics >"$work/metrics"
	has -x 'tally_cluster_events_total{kind="moved"} 1' <"$work/metrics"
}
last_is() { [[ $(happened "$1" | tail -n 1) == "$2" ]]; } # NODE EVENT
is_created_again() { create_at n0 second 2 2>/dev/null; }

command -v etcd >/dev/null || { echo '1..0 # SKIP no etcd here: scripts/setup.sh'; exit 0; }
facts a_job_is_joined_at_any_node_and_its_root_is_near \
	who_waits_is_told_who_is_missing_and_who_goes_is_forgotten the_token_is_proven_at_any_node \
	who_joins_at_once_at_another_node_is_served \
	who_waits_at_an_agent_that_dies_joins_at_another_one who_guesses_in_a_cluster_must_wait \
	an_agent_holds_few_of_one_source who_hangs_up_has_guessed_all_the_same \
	a_job_is_deleted_at_any_node what_was_done_is_known_where_it_was_asked_for who_leads_may_go \
	a_root_that_dies_is_replaced_when_workers_come_again a_cordoned_node_is_no_root \
	a_node_that_refuses_is_passed_over runs_and_restarts_need_no_etcd nodes_on_the_way_sum_too \
	a_job_without_a_place_holds_up_nobody what_happens_is_seen_at_every_node
