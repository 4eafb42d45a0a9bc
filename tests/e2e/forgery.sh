#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Who has not a rank's key cannot speak for the rank, nor for the node. Each forgery is shown to
# end a run without keys first: that is the control. Without keys an agent's node still knows each
# rank by its address, and where it can by its port.
#
#   w0 w1 x0 n0      one ordinary switch, one port of the node; x0 has no part in the job, and
#    └─┴┬─┴──┘       forges whatever address it likes
#       s0
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

three() { "${1:-network}" < <(lines_of_three); }
lines_of_three() {
	cat <<-END
		host w0 w1 x0
		node n0
		switch s0
		link w0 s0 rate 200mbit
		link w1 s0 rate 200mbit
		link x0 s0 rate 200mbit
		link n0 s0 rate 200mbit
	END
}

# What each rank gets, and nobody else: its own key.
files_for_ranks() {
	local rank
	for rank in "${!hosts[@]}"; do
		awk -v rank="$rank" '$1 == "key" && n++ != rank { $2 = "-" } 1' "$work/job" \
			>"$work/job$rank"
	done
}

calls=(-d int32 -b 64K -e 64K -n 10 -w 0)
begin_rank() { # RANK JOB-FILE
	exec_on "${hosts[$1]}" "$build/tally-perf" --job "$2" --rank "$1" --json --hash \
		--timeout 10000 "${calls[@]}" >"$work/rank$1" 2>"$work/errors$1" &
	worker[$1]=$!
}

# Rank 0 waits for rank 1, and hears of the forger, long before its patience is over.
run_ends_by() { # TO WHAT
	local to=$1 code=0
	next_epoch && add_job || return 1
	[[ $to == n0 ]] || to=$(bed addr w0):40000
	forge_from x0 "$to" 0 - "$2"
	begin_rank 0 "$work/job"
	wait "${worker[0]}" || code=$?
	call_off
	echo "$2: $(cat "$work/errors0")"
	((code != 0)) && ! grep "for 10.0 s" "$work/errors0"
}

without_keys_each_forgery_ends_a_run() {
	three
	describe_job 4 window=32 -- w0 w1
	run_ends_by n0 repair
	run_ends_by n0 call
	run_ends_by n0 ahead
	run_ends_by n0 several
	run_ends_by w0 mismatch
	run_ends_by w0 overtaken
}

# All at once, by a neighbour without a key, and by rank 1 in the name of rank 0.
with_keys_no_forgery_does_any_harm() {
	local forged
	three
	describe_job 4 window=32 -- w0 w1
	give_keys
	next_epoch
	files_for_ranks
	add_job
	forge_from x0 n0 0 - repair call ahead flush several
	forge_from w1 n0 0 "${key[1]}" repair call ahead flush several
	forge_from w1 n0 1 "${key[1]}" several
	forge_from w1 n0 200 "${key[0]//?/0}" repair # no rank of the job; the map has zeros there
	forge_from x0 "$(bed addr w0):40000" 0 - mismatch overtaken
	forge_from w1 "$(bed addr w0):40000" 0 "${key[1]}" mismatch overtaken
	begin_rank 0 "$work/job0"
	begin_rank 1 "$work/job1"
	finish_all
	call_off
	forged=$(count FORGED)
	echo "$forged forged"
	((forged > 10000))
	(($(count CONFLICT) == 0 && $(count BEHIND) == 0))
	jq -se 'map(.corrupt) | add == 0' "$work"/rank0 "$work"/rank1
}

# What one run said is nothing in the next one, though the keys stay: another epoch.
ranks_with_keys_get_over_losses() {
	network <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0 rate 1gbit loss 1
		link w1 n0 rate 1gbit loss 1
		link w2 n0 rate 1gbit loss 1
		link w3 n0 rate 1gbit loss 1
	END
	describe_job 6 window=32 -- w0 w1 w2 w3
	give_keys
	run_all -d float32 -b 4 -e 256K -f 64 -n 5
	run_all --verb reduce --root 2 -d int32 -b 64K -e 64K -n 5
	run_all --verb all_gather -d int64 -b 64K -e 64K -n 5
	(($(count FORGED) == 0 && $(lost_on_links) > 0))
}

# The service address is on the switch's link: who is there, too, comes in by that port alone.
an_agent() {
	local service
	agent_network <<-END
		host w0 w1 x0
		node n0
		switch s0
		link w0 s0 rate 200mbit
		link x0 s0 rate 200mbit
		link n0 s0 rate 200mbit
		link w1 n0 rate 200mbit
	END
	service=$(on n0 ip -j -4 address show dev s0 | jq -r '.[0].addr_info[0].local')
	sed -i "s/^service: \[/&$service, /" "$work/tallyd.yaml"
	start_agent
	create_job two 2 --tags no
	to=$service:31249
}

# In the name of the rank that is at w0, as if from FROM.
forge_rank() { # HOST FROM WHAT...
	local job
	job=$(ctl --json job list two | jq -r --arg at "$(bed addr w0):" '.[0] |
		"\(.id) \(.epoch) 2 \(.members[] | select(.address | startswith($at)).rank)"')
	# shellcheck disable=SC2086
	forge_as "$1" "$2" "$to" $job - "${@:3}"
}
forged_at() { ctl --json stats --port "$1" | jq .FORGED.packets; }
forged_are_beyond() { (($(forged_at s0) > $1 && $(forged_at w1) > $1)); }

doctor_names() { # PORT...
	on n0 "$build/tallyctl" --socket "$control" doctor --json >"$work/doctor"
	[[ $(jq -r '[.[] | select(.check == "refused" and .level == "warn") | .text |
		capture("^port (?<at>[a-z0-9]+): [1-9][0-9]* FORGED packets").at] | join(" ")' "$work/doctor") == "$*" ]]
}

# So many calls; the workers are stopped in the midst of them.
two_stop() { # CALLS
	join_all two w0 w1 -- -d int32 -b 64K -e 64K -n "$1" -w 0
	another two 50
	kill -s STOP "${worker[@]}"
}

# By a neighbour with its own address, and with the rank's own by another port.
a_bound_rank_speaks_from_its_place_alone() {
	local to code=0
	an_agent
	two_stop 1000
	forge_rank x0 "$(bed addr x0)" repair call ahead flush
	forge_rank w1 "$(bed addr w0)" repair call ahead flush
	kill -s CONT "${worker[@]}"
	until_true forged_are_beyond 1000
	until_true doctor_names s0 w1
	joined_end
	call_off
	echo "forged: $(forged_at s0) by the switch, $(forged_at w1) by w1"
	ctl --json stats --job two | jq -e '[.FORGED, .CONFLICT, .BEHIND] | all(.packets == 0)'
	jq -se 'map(.corrupt) | add == 0' "$work"/w?.two
	# The control: with all that is the rank's, the same ends a run.
	two_stop 1000
	forge_rank x0 "$(bed addr w0)" repair call ahead
	kill -s CONT "${worker[@]}"
	wait "${worker[0]}" || code=$?
	call_off
	((code != 0))
}

# In the name of rank 0, or to it, and from where that one, or the node, would say it.
forge_joined() { # HOST TO KEY WHAT...
	local from to
	from=$(bed addr w0 4) to=$(bed addr n0 4):31249
	[[ $2 == n0 ]] || from=$(bed addr n0 4) to=$(bed addr w0 4):40000
	forge_as "$1" "$from" "$to" 1 "$epoch" 2 0 "${@:3}"
}

# The same by an agent: rank 1 is there, and contributes nothing.
joined_run_ends_by() { # TO WHAT
	local code=0
	mkfifo "$work/stay$2"
	exec_on w1 python3 tests/e2e/joiner.py stay "$(bed addr n0 4)" train "$work/train.token" 1 \
		<>"$work/stay$2" >"$work/there" &
	helper=$!
	TALLY_ADDRESS=$(bed addr w0 4):40000 join_from w0 train --rank 0 "${calls[@]}"
	until_true state_is train running
	epoch=$(epoch_of train)
	forge_joined x0 "$1" - "$2"
	wait "${worker[-1]}" || code=$?
	call_off
	kill "$helper"
	wait "$helper" || true
	echo "$2: $(cat "$work/w0.train.errors")"
	((code != 0)) && ! grep -e "for 10.0 s" -e "is gone" "$work/w0.train.errors"
}
epoch_of() { ctl --json job list "$1" | jq '.[0].epoch'; }

joined_without_tags_each_forgery_ends_a_run() {
	three agent_network
	start_agent
	create_job train 2 --id 1 --window 32 --tags no
	joined_run_ends_by n0 repair
	joined_run_ends_by n0 call
	joined_run_ends_by n0 ahead
	joined_run_ends_by w0 mismatch
	joined_run_ends_by w0 overtaken
}

# Who is root on the node can make the keys: here, to forge as rank 1 could.
key_of() { # RANK
	python3 - "$work/state.json" "$1" <<-'END'
		import hashlib, hmac, json, sys
		job = json.load(open(sys.argv[1]))["jobs"][0]
		text = "tally key\njob {id}\nepoch {epoch}\nnonce {nonce}\nrank ".format(**job) + sys.argv[2] + "\n"
		print(hmac.new(bytes.fromhex(job["secret"]), text.encode(), hashlib.sha256).hexdigest()[:32])
	END
}
joined_tally() { ctl --json stats --job train | jq ".$1.packets"; }

# The same, and each rank in the name of the other; tallyd is killed meanwhile.
joined_by_default_no_forgery_does_any_harm() {
	three agent_network
	start_agent
	no_forgery_harms_those_who_join
}

# A worker's own key is none of the node's, so it makes no sum of several ranks.
in_borrowed_slots_no_forgery_does_any_harm() {
	three agent_network
	sed -i 's/^slots: .*/slots: 2/' "$work/tallyd.yaml"
	echo "pool: {slots: 64}" >>"$work/tallyd.yaml"
	start_agent
	loses_slots=1 no_forgery_harms_those_who_join
	echo "$(joined_tally SENT_UP) sums went up"
	(($(joined_tally SENT_UP) > 1000))
}

no_forgery_harms_those_who_join() {
	local key forged
	create_job train 2 --id 1 --window 32
	TALLY_ADDRESS=$(bed addr w0 4):40000 join_from w0 train --rank 0 -d int32 -b 64K -e 64K -n 1500 -w 0
	join_from w1 train --rank 1 -d int32 -b 64K -e 64K -n 1500 -w 0
	joined=(train w0 w1)
	until_true state_is train running
	epoch=$(epoch_of train)
	key=$(key_of 1)
	forge_joined x0 n0 - repair call ahead flush
	forge_joined w1 n0 "$key" repair call ahead flush several
	forge_joined w1 n0 "$(key_of 0)" several
	forge_joined x0 w0 - mismatch overtaken
	forge_joined w1 w0 "$key" mismatch overtaken
	end_agent KILL
	start_agent
	joined_end
	call_off
	forged=$(ctl --json stats | jq .FORGED.packets)
	echo "$forged forged, $(joined_tally COMPLETED) completed"
	((forged > 10000))
	(($(joined_tally CONFLICT) == 0 && $(joined_tally BEHIND) == 0))
	if grep -e "$key" -e "$(jq -r '.jobs[0].secret' "$work/state.json.old")" "$work/tallyd.log"; then
		return 1
	fi
}

forge_icmp() { # KIND RANK SECONDS
	on x0 tests/e2e/icmp.py "$1" "$(bed addr n0 4)" \
		"$(ctl --json job list two | jq -r ".[0].members[$2].address")" "$3"
}
two_run() {
	three agent_network
	start_agent
	create_job two 2
	join_all two w0 w1 -- -d int32 -b 64K -e 64K -n 1000000 -w 0
	another two 50
}

# Who was restarted asks its workers whether they are there. "No" is the word of who was asked.
what_nobody_was_asked_ends_no_run() {
	local rank words=()
	two_run
	kill -s STOP "${worker[@]}" # so they do not say that they stay
	end_agent KILL
	start_agent
	for rank in 0 1; do
		forge_icmp gone "$rank" 5 &
		words+=($!)
	done
	wait "${words[@]}"
	[[ $(ctl --json job list two | jq -c '[.[0].members[].state]') == '["detached","detached"]' ]]
	kill -s CONT "${worker[@]}"
	another two 50
	kill -s KILL "${worker[@]}"
	wait "${worker[@]}" || true
	until_true state_is two waiting
}

# A worker that believed that would send nothing more, nor any other on its machine.
what_nobody_knows_of_the_way_holds_up_no_run() {
	local host
	two_run
	forge_icmp too-big 0 1
	forge_icmp too-big 1 1
	for host in w0 w1; do # whose kernels do believe that
		on "$host" ip route get "$(bed addr n0 4)" >"$work/route"
		grep 'mtu 552' "$work/route"
	done
	another two 50
	kill -s KILL "${worker[@]}"
	wait "${worker[@]}" || true
	until_true state_is two waiting
	join_all two w0 w1 -- "${calls[@]}"
	joined_end
}

facts without_keys_each_forgery_ends_a_run \
	with_keys_no_forgery_does_any_harm \
	ranks_with_keys_get_over_losses \
	a_bound_rank_speaks_from_its_place_alone \
	joined_without_tags_each_forgery_ends_a_run \
	joined_by_default_no_forgery_does_any_harm \
	in_borrowed_slots_no_forgery_does_any_harm \
	what_nobody_was_asked_ends_no_run \
	what_nobody_knows_of_the_way_holds_up_no_run
