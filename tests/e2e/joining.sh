#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Who joins proves that the job's token is known, without saying it: those who listen, say again
# what they heard, guess, or change what is said on the way get no place, and are counted.
#
#   w0 ──┐
#        ├── n0 (tallyd)
#   w1 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

small=(-d int32 --int-wild -b 4 -e 16K -f 64 -n 3 -w 0)
others=() # processes beside workers

pair() {
	local pid
	for pid in "${others[@]}"; do
		kill "$pid" 2>/dev/null || true
	done
	others=()
	agent_network <<-END
		host w0 w1
		node n0
		link w0 n0 rate 50mbit
		link w1 n0 rate 50mbit
	END
	start_agent
	create_job train 2
	create_job solo 1
}

joiner() { on "$1" python3 tests/e2e/joiner.py "${@:2}"; } # HOST joiner.py-arguments...
beside() { # HOST OUTPUT joiner.py-arguments...: in the background; returns when it has begun
	: >"$work/$2" # an earlier fact may have left it
	exec_on "$1" python3 tests/e2e/joiner.py "${@:3}" >"$work/$2" 2>&1 &
	others+=($!)
	until_true grep -q there "$work/$2" || { cat "$work/$2"; return 1; }
}
joins() { # HOST JOB [AGENT]
	local worker=()
	join_from "$1" "$2" ${3:+--agent "$3"} "${small[@]}"
	wait "${worker[0]}" || { cat "$work/$1.$2.errors"; return 1; }
}
wrong_tokens() {
	on n0 curl -sf http://127.0.0.1:9464/metrics |
		awk '$1 == "tally_joins_refused_total{reason=\"token\"}" { print $2 }'
}
hex() { od -An -v -tx1 | tr -d ' \n'; }

who_listens_sees_no_token() {
	local token
	pair
	beside w1 wire listen eth0
	join_all train w0 w1 -- "${small[@]}"
	joined_end
	token=$(cat "$work/train.token")
	until_true grep -q "$(printf 'job train' | hex)" "$work/wire"
	grep -q "$(printf 'leave' | hex)" "$work/wire"
	if grep -qe "$(printf %s "$token" | hex)" -e "$token" "$work/wire" "$work/tallyd.log"; then
		return 1
	fi
}

what_was_recorded_gets_no_place() {
	local job
	pair
	beside w0 relay relay 4000 "$(bed addr n0 4)" "$work/recorded"
	# Who stands between them changes nothing, and the worker's address is the same there.
	joins w0 solo "$(bed addr w0 4):4000"
	until_true test -s "$work/recorded"
	grep -q '^join' "$work/recorded"
	joiner w0 replay "$(bed addr n0 4)" "$work/recorded" | has '^error EACCES'
	until_true state_is solo waiting
	[[ $(wrong_tokens) == 1 ]]
}

# In order: the side and the byte that is changed, and what the worker that joins then says. That of
# a worker is first its greeting, then a proof, then the message.
changes=(
	"worker:1 no such greeting"
	"worker:11 version 5: the worker is newer than the agent, which speaks version 4"
	"worker:18 no such job, or a wrong token, or something on the way changed a byte"
	"worker:40 (wrong token|32 digits)"
	"worker:90 (wrong token|a line 'proof)"
	"worker:165 wrong token"
	"agent:1 something else listens there"
	"agent:30 (wrong token|32 digits)"
	"agent:70 its proof is (wrong|malformed)"
	"agent:135 its proof is (wrong|malformed)"
)
a_byte_changed_on_the_way_ends_it_with_words() {
	local change agent
	pair
	agent=$(bed addr w0 4):4000
	beside w0 relay relay 4000 "$(bed addr n0 4)" "$work/recorded" "${changes[@]%% *}"
	for change in "${changes[@]}"; do
		if joins w0 solo "$agent" >"$work/words"; then
			echo "joined with a byte changed: $change"
			return 1
		fi
		grep -E "the agent at $agent\>.*${change#* }" "$work/words" ||
			{ echo "$change:" && cat "$work/words"; return 1; }
	done
	joins w0 solo "$agent"
}

who_guesses_is_slowed_and_counted_and_nobody_else_waits() {
	local began answered busy wrong
	pair
	joiner w1 guess "$(bed addr n0 4)" solo 1000 4 >"$work/guesses" &
	others+=($!)
	began=$(date +%s%N)
	until_true grep -q 'wrong tokens' "$work/tallyd.log"
	for _ in 1 2 3; do
		joins w0 solo
	done
	answered=$((($(date +%s%N) - began) / 1000000))
	wait "${others[-1]}"
	cat "$work/guesses"
	wrong=$(awk '$1 == "EACCES" { print $2 }' "$work/guesses")
	busy=$(awk '$1 == "EAGAIN" { print $2 }' "$work/guesses")
	echo "three joins: $answered ms beside $((wrong + busy)) guesses"
	# Ten at once, and one a second; the rest was not even looked at.
	((wrong >= 10 && wrong <= 10 + 5 * slow && busy > 100))
	[[ $(wc -l <"$work/guesses") == 2 ]]
	[[ $(wrong_tokens) == "$wrong" ]]
	((answered < 3000 * slow))
	[[ $(grep -c 'wrong tokens' "$work/tallyd.log") == 1 ]]
	grep -E '^EAGAIN .*too many wrong tokens came from there: join again in [0-9]+ s$' "$work/guesses"
}

say() { # TEXT: an old worker's, and what it hears
	on w0 bash -c "exec 3<>/dev/tcp/$(bed addr n0 4)/31249 && printf '$1' >&3 && timeout 10 cat <&3"
}

old_workers_hear_at_once_which_versions_there_are() {
	local began
	pair
	began=$SECONDS
	say 'tally-join 2\njob solo\ntoken 5b1f\nport 40000\n\n' |
		has '^error EPROTONOSUPPORT .*version 2: the worker is older than the agent, which speaks version 4$'
	say 'tally-join 3\njob solo\nchallenge 00112233445566778899aabbccddeeff\n\n' |
		has '^error EPROTONOSUPPORT .*version 3: the worker is older than the agent, which speaks version 4$'
	say 'tally-leave 2\njob solo\ntoken 5b1f\nrank 0\nepoch 1\n\n' | has '^error EPROTONOSUPPORT '
	((SECONDS - began < 5))
}

# Three runs of a job, the last one with another agent: the state file has what was drawn for a run,
# and who listens sees the agent's challenges, and its share for the keys of ranks.
what_an_agent_draws_is_never_drawn_again() {
	local run
	pair
	mkfifo "$work/open"
	exec {open}<>"$work/open"
	beside w0 wire listen eth0
	for run in 1 2 3; do
		((run < 3)) || { end_agent TERM; start_agent; }
		: >"$work/stays"
		exec_on w0 python3 tests/e2e/joiner.py stay "$(bed addr n0 4)" solo "$work/solo.token" 0 \
			<&"$open" >>"$work/stays" &
		until_true has there "$work/stays"
		jq -r '.jobs[] | select(.name == "solo") | .nonce, .secret' "$work/state.json"
		kill "$!"
		until_true state_is solo waiting
	done >"$work/drawn"
	exec {open}>&-
	cat "$work/drawn"
	grep -vxE '0*|none|null' "$work/drawn" | sort -u >"$work/different"
	(($(wc -l <"$work/different") == 6))
	until_true heard 3 'tally-join 4\nchallenge ' 32
	until_true heard 2 '\nkey ' 64
}
heard() { # COUNT TEXT DIGITS: so many different numbers behind this
	(($(grep -oE "$(printf %b "$2" | hex)[0-9a-f]{$((2 * $3))}" "$work/wire" | sort -u | wc -l) == $1))
}

facts who_listens_sees_no_token \
	what_was_recorded_gets_no_place \
	a_byte_changed_on_the_way_ends_it_with_words \
	who_guesses_is_slowed_and_counted_and_nobody_else_waits \
	old_workers_hear_at_once_which_versions_there_are \
	what_an_agent_draws_is_never_drawn_again
