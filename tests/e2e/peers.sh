#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The agents of a tree tell one another: the root's brings each inner node the document of each run,
# and a farewell when the job is deleted. Nobody carries anything.
# shellcheck source=tests/e2e/tree_lib.sh
source "$(dirname "$0")/tree_lib.sh"

# As levels; a0 and a1 take documents from n0.
peers() { # LINK-OPTIONS
	levels 1024 "$@" && peers_of a0 a1
}
told_again() { (($(grep -c 'document told' "$work/tallyd.log") == 4)); }
knows() { # HOW-MANY-ARE-AWAY STATE-OF-a0 STATE-OF-a1
	[[ $(on n0 curl -s localhost:9464/metrics | grep '^tally_inner_nodes_away ') == *" $1" ]] &&
		[[ $(ctl --json job list train | jq -r '[.[0].nodes[].state] | join(" ")') == "$2 $3" ]]
}
said() { grep -q "$2" "$1"; } # FILE WORDS
long=(-d int32 -b 1M -e 1M -n 300 -w 0)
large=(-d float32 -b 1M -e 4M -n 5 -w 0)

each_run_begins_without_anybody_carrying_anything() {
	local run
	peers rate 1gbit loss 1
	start_levels
	create_job train 4 --tree "$work/tree.json"
	for run in 1 2; do
		join_ranks train "${large[@]}"
		joined_end
		until_true state_is train waiting
		(($(sent_up a0) > 1000 * run && $(sent_up a1) > 1000 * run))
		(($(grep -c 'document told' "$work/tallyd.log") == 2 * run))
		(($(grep -c "request: agent=$(bed addr n0) result=done request=apply job=train" "$work/a0.log") == run))
	done
	ctl job del train
	until_true is_clean_at a0
	until_true is_clean_at a1
}

agents_are_killed_in_mid_job() {
	peers rate 1gbit loss 1
	start_levels
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${long[@]}"
	goes_on_at a0
	end_inner a0 KILL
	another train 1000
	start_inner a0
	is_on_at a0 train
	end_agent KILL
	start_agent
	until_true told_again
	goes_on_at a0
	goes_on_at a1
	joined_end
	ctl job del train
	until_true is_clean_at a0
	until_true is_clean_at a1
}

# The run begins all the same; ranks behind it get results when they ask again, until it is there.
an_inner_agent_comes_late() {
	peers rate 1gbit
	start_agent
	start_inner a1
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${long[@]}"
	until_true said "$work/tallyd.log" 'cannot tell an inner node.*node=a0.*refused'
	until_true knows 1 away told
	ctl status | has 'job train: inner node a0 (10\..*) does not know of the run'
	ctl job show train | has '^a0 .* away$'
	start_inner a0
	goes_on_at a0
	until_true knows 0 told told
	[[ $(ctl --json status | jq .troubles) == "[]" ]]
	sed -i '/^peers:/d' "$work/tallyd.yaml" # whoever carries documents by hand knows better
	ctl reload
	knows 0 "" ""
	joined_end
}

# Two runs have all slots of each inner node. When they are over, another one finds slots there; so
# it is where the root's agent was killed just then. The next run of such a job gets slots again.
slots_of_runs_that_are_over_are_others() {
	local job
	levels 256 rate 1gbit
	peers_of a0 a1
	asks a0 a1
	start_levels
	for job in one two; do
		create_job "$job" 4 --tree auto --window 64
		join_all "$job" w0 w1 w2 w3 -- -d int32 -b 256K -e 256K -n 300 -w 0
		until_true is_on_at a0 "$job"
		until_true is_on_at a1 "$job"
		joined_end
		until_true state_is "$job" waiting
	done
	has_document a0 two
	until_true is_clean_at a0
	until_true is_clean_at a1
	create_job train 4 --tree auto --window 64
	join_all train w0 w1 w2 w3 -- "${long[@]}"
	goes_on_at a0
	joined_end
	until_true state_is train waiting
	end_agent KILL
	has_document a0 train
	start_agent
	until_true is_clean_at a0
	until_true is_clean_at a1
	[[ $(ctl --json status | jq .troubles) == "[]" ]]
	join_all train w0 w1 w2 w3 -- "${long[@]}"
	goes_on_at a0
	joined_end
}
has_document() { [[ $(at "$1" --json job list "$2" | jq -r '.[0].role') == inner ]]; } # NODE JOB

# The node is away when its job goes, and the farewell is forgotten with the root's agent.
a_later_job_of_that_name_needs_no_farewell() {
	peers rate 1gbit
	start_levels
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${large[@]}"
	joined_end
	until_true state_is train waiting
	end_inner a0 KILL
	ctl job del train
	end_agent KILL
	start_agent
	start_inner a0
	[[ $(at a0 --json job list | jq length) == 1 ]]
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${long[@]}"
	goes_on_at a0
	joined_end
	ctl job del train
	until_true is_clean_at a0
}

# As docs/out-of-service.md says.
an_inner_node_is_taken_out_of_service_in_mid_run() {
	peers rate 1gbit
	asks a0 a1
	start_levels
	create_job train 4 --tree auto
	join_all train w0 w1 w2 w3 -- "${long[@]}"
	goes_on_at a0
	sed -i 's/{name: a0, [^}]*}, //' "$work/tallyd.yaml"
	ctl reload
	until_true is_clean_at a0
	goes_on_at a1
	end_inner a0 TERM
	node a0 detach
	another train 1000
	joined_end
}

# Both sides say so, and go on when it is mended: no restart, no reload.
another_secret_is_refused() {
	peers rate 1gbit
	secret a0
	start_levels
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${long[@]}"
	until_true said "$work/tallyd.log" 'cannot tell an inner node.*node=a0.*knows another secret'
	until_true said "$work/a0.log" 'agent refused.*last=10\.[0-9.:]* .*knows another secret'
	is_clean_at a0
	chmod 644 "$work/n0.secret"
	until_true said "$work/tallyd.log" 'cannot tell an inner node.*every user of this machine'
	chmod 600 "$work/n0.secret"
	cp -p "$work/n0.secret" "$work/a0.secret"
	goes_on_at a0
	joined_end
}

# tallyd starts all the same: only trees need the secret.
a_secret_that_cannot_be_used_is_said_before_it_is_needed() {
	local file=$work/n0.secret
	peers rate 1gbit
	checks
	chmod 644 "$file"
	refuses "$file: every user of this machine may read or write the agents' secret" checks
	start_agent
	said "$work/tallyd.log" "no talk with other agents: reason=\"$file: every user"
	echo short >"$file"
	chmod 600 "$file"
	refuses "no secret of agents: 32 to 128 of" checks
	ctl reload
	said "$work/tallyd.log" 'no talk with other agents: .*no secret of agents: 32 to 128'
	rm "$file"
	refuses "$file: No such file" checks
}
checks() { on n0 "$build/tallyd" --check --config "$work/tallyd.yaml"; }

a_root_that_is_no_peer_is_refused() {
	peers rate 1gbit
	sed -i "s/roots: .*]/roots: [10.77.99.99]/" "$work/a0.yaml"
	start_levels
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${long[@]}"
	until_true said "$work/tallyd.log" 'cannot tell an inner node.*node=a0.*takes no documents from that root'
	until_true said "$work/a0.log" 'agent refused.*none of the roots'
	is_clean_at a0
	sed -i "s/roots: .*]/roots: [$(bed addr n0)]/" "$work/a0.yaml"
	at a0 reload
	goes_on_at a0
	joined_end
}

as_agent() { # WORDS ROOT MESSAGE: said to a0 with the secret, and answered with these words
	on w0 python3 tests/e2e/joiner.py peer "$(bed addr a0)" "$2" "$work/n0.secret" "$3" >"$work/answer"
	has "$1" "$work/answer"
}

# As many addresses as a node says, and as many workers as a job has, each behind another address.
the_longest_answer_comes_whole_and_with_its_proof() {
	local i middle=1111:2222:3333:4444:5555:6666
	peers rate 1gbit
	start_levels
	for i in $(seq -f %04.0f 1000 1255); do
		echo "address add fd77:$middle:$i/128 dev lo"
		echo "route add fd78::$i via fd79:$middle:$i dev w0 onlink"
	done >"$work/batch"
	on a0 ip -6 -batch "$work/batch"
	as_agent '"ok":true' "$(bed addr n0)" "$(seq -f 'fd78::%04.0f' 1000 1255 |
		jq -Rnc '{ do: "next-hops", workers: [inputs] }')"
	[[ $(tail -n +2 "$work/answer" | jq -c '.result | [(.own | length), (.hops | length)]') == "[128,256]" ]]
}

# Who has the secret of the agents speaks for its own jobs alone, and only of these.
what_an_agent_may_not_say() {
	local n0 n0_link id
	peers rate 1gbit
	start_levels
	n0=$(bed addr n0)
	n0_link=$(on a0 ip -j route get "$(bed addr w2)" | jq -r '.[0].gateway')
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${long[@]}"
	goes_on_at a0
	at a0 job create own --workers 2 >/dev/null
	id=$(ctl --json job list train | jq '.[0].id')

	ctl job documents train --node a0 | jq -c '.root = "10.77.99.99"' >"$work/document"
	as_agent "the root of that job is 10.77.99.99" "$n0" \
		"{\"do\":\"apply\",\"document\":$(<"$work/document")}"
	as_agent "takes no documents from that root" 10.77.99.99 "{\"do\":\"job-del\",\"name\":\"train\",\"id\":$id}"
	as_agent "agents say apply, job-del and next-hops" "$n0" '{"do":"cordon"}'
	as_agent "next-hops: the key 'workers' is needed" "$n0" '{"do":"next-hops"}'
	as_agent '"own":\[.*"hops":\[\]' "$n0" "{\"do\":\"next-hops\",\"workers\":[\"$(bed addr w0)\"]}"
	as_agent "\"hops\":\[{\"address\":\"$n0_link\",\"ranks\":\"0\"}\]" "$n0" \
		"{\"do\":\"next-hops\",\"workers\":[\"$(bed addr w2)\"]}"
	as_agent "not JSON" "$n0" 'hello'
	as_agent '"ok": true' "$n0" '{"do":"job-del","name":"own","id":1}'
	as_agent '"ok": true' "$n0" \
		"{\"do\":\"job-del\",\"name\":\"own\",\"id\":$(at a0 --json job list own | jq '.[0].id')}"
	as_agent '"ok": true' "$n0" "{\"do\":\"job-del\",\"name\":\"train\",\"id\":$((id - 1))}"
	[[ $(at a0 --json job list | jq -c '[.[].name]') == '["own","train"]' ]]
	[[ $(at a0 --json status | jq .cordoned) == false ]]
	secret other
	cp "$work/other.secret" "$work/n0.secret"
	as_agent "the proof is wrong" "$n0" "{\"do\":\"job-del\",\"name\":\"train\",\"id\":$id}"
	joined_end
}

# NODE NAME...: its file has these secrets from now on
has_secrets() { (cd "$work" && cat "${@:2}" >next && chmod 600 next && mv next "$1.secret"); }
all_are_told() { # by a run of its own; nobody was refused so far
	join_ranks train "${large[@]}"
	joined_end
	until_true state_is train waiting
	runs=$((runs + 1))
	(($(grep -c 'document told' "$work/tallyd.log") == 2 * runs))
	! grep -E 'cannot tell|agent refused' "$work/tallyd.log" "$work/a0.log" "$work/a1.log"
}

# First all nodes get the new one as a second line, then in the first, and then it is alone.
the_secret_is_changed_without_a_gap() {
	local runs=0
	peers rate 1gbit
	secret new
	mv "$work/new.secret" "$work/new"
	cp "$work/n0.secret" "$work/old"
	start_levels
	create_job train 4 --tree "$work/tree.json"
	has_secrets n0 old new
	has_secrets a0 old new
	all_are_told
	has_secrets a1 old new
	has_secrets a0 new old
	all_are_told
	has_secrets n0 new old
	has_secrets a1 new old
	has_secrets a0 new
	all_are_told
	has_secrets n0 new
	has_secrets a1 new
	all_are_told
}

# Who holds a node's address, as by ARP, and passes on what comes there.
relay_at() { # NODE ADDRESS AGENT [SIDE:BYTE...]: to that agent
	: >"$work/relay"
	rm -f "$work/recorded"
	exec_on "$1" python3 tests/e2e/joiner.py relay "$2:31249" "$3" "$work/recorded" "${@:4}" \
		>"$work/relay" 2>&1 &
	relay=$!
	until_true has there "$work/relay" || { cat "$work/relay"; return 1; }
}
only_greets() { # what was recorded last
	until_true has -a '^challenge' "$work/recorded" && ! has -a '^proof' "$work/recorded"
}

# a1 has the same secret, and the same job of this root: it would forget it in the place of a0.
no_other_node_answers_in_the_place_of_one() {
	peers rate 1gbit
	start_levels
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${long[@]}"
	goes_on_at a0
	goes_on_at a1
	end_inner a0 KILL
	relay_at a0 "$(bed addr a0)" "$(bed addr a1)"
	ctl job del train
	until_true test -s "$work/recorded"
	kill "$relay"
	wait "$relay" || true
	start_inner a0
	until_true is_clean_at a0
	until_true is_clean_at a1
	said "$work/tallyd.log" "cannot tell an inner node.*node=a0.*is another one than meant"
	said "$work/a1.log" "agent refused.*$(bed addr a0) is none of"
	only_greets
}

# The relay leads to a0 itself; in the first talks a byte of a0's first proof is another one.
who_has_not_proven_hears_nothing() {
	local link greeting
	peers rate 1gbit
	link=$(on a0 ip -4 -j addr show dev n0 | jq -r '.[0].addr_info[0].local')
	sed -i "s/^join: {/join: {listen: $link, /" "$work/a0.yaml"
	greeting=$(printf 'tally-peer 3\nroot %s\nto %s\nchallenge %032d\nshare %064d\n\n' \
		"$(bed addr n0)" "$(bed addr a0)" 0 0 | wc -c)
	start_levels
	# shellcheck disable=SC2046 # of twenty talks
	relay_at a0 "$(bed addr a0)" "$link" $(printf "agent:$((greeting + 10)) %.0s" {1..20})
	create_job train 4 --tree "$work/tree.json"
	join_ranks train "${long[@]}"
	until_true said "$work/tallyd.log" 'cannot tell an inner node.*node=a0.*knows another secret'
	until_true said "$work/a0.log" 'agent refused.*when it had our proof.*gave up waiting'
	only_greets
	is_clean_at a0
	kill "$relay"
	wait "$relay" || true
	relay_at a0 "$(bed addr a0)" "$link"
	goes_on_at a0
	joined_end
}

facts each_run_begins_without_anybody_carrying_anything \
	agents_are_killed_in_mid_job \
	an_inner_agent_comes_late \
	slots_of_runs_that_are_over_are_others \
	a_later_job_of_that_name_needs_no_farewell \
	an_inner_node_is_taken_out_of_service_in_mid_run \
	another_secret_is_refused \
	a_secret_that_cannot_be_used_is_said_before_it_is_needed \
	the_secret_is_changed_without_a_gap \
	a_root_that_is_no_peer_is_refused \
	no_other_node_answers_in_the_place_of_one \
	who_has_not_proven_hears_nothing \
	the_longest_answer_comes_whole_and_with_its_proof \
	what_an_agent_may_not_say
