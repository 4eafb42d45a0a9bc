#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A port of the node that had an XDP program before tallyd came: tests/bpf/beside.bpf.c, which
# counts frames and drops UDP to port 9.
#
#   w0 ──┐ (beside)
#        ├── n0 (tallyd)
#   w1 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

# With `share: SHARE` for w0, or without the key; the other program is attached without a link.
network_with_another() { # PROGRAM [SHARE]
	agent_network <<-END
		host w0 w1
		node n0
		link w0 n0 rate 200mbit
		link w1 n0 rate 200mbit
	END
	[[ -z ${2-} ]] || sed -i "s/^  - w0\$/  - {name: w0, share: $2}/" "$work/tallyd.yaml"
	mkdir "$pin-other"
	bpftool prog loadall "$build/tests/bpf/beside.bpf.o" "$pin-other"
	on n0 bpftool net attach xdpdrv pinned "$pin-other/$1" dev w0
	other=$(bpftool -j prog show pinned "$pin-other/$1" | jq .id)
}

# What the other program counts: seen, seen_tally or dropped.
counted() {
	bpftool -j map dump id "$(bpftool -j prog show id "$other" | jq '.map_ids[0]')" |
		jq "[.. | .\"$1\"? // empty] | add"
}
counted_is() { (($(counted "$1") == $2)); } # WHAT NUMBER
program_on() { on n0 ip -j link show dev "$1" | jq '.[0].xdp.prog.id'; }

send() { # PORT: a datagram from w0
	# shellcheck disable=SC2016
	on w0 bash -c 'echo "not for Tally" >"/dev/udp/$0/$1"' "$(bed addr w1 4)" "$1"
}
ping_from_w0() { on w0 ping -q -i 0.01 -c "$1" -W 5 "$(bed addr w1 4)" >/dev/null; }

# It decides what becomes of all frames that are not Tally's, and sees none of those that are.
other_goes_on() {
	local seen dropped tally
	seen=$(counted seen) dropped=$(counted dropped) tally=$(counted seen_tally)
	join_all train w0 w1 -- -d int32 -b 64K -e 64K -n 8 -w 0 -s $((2 * slow))
	another train 100
	ping_from_w0 20
	send 9
	send 10
	until_true counted_is dropped $((dropped + 1))
	(($(counted seen) >= seen + 22))
	joined_end
	(($(counted seen_tally) == tally))
	# Of the run, which has many times as many frames, no more than its joins.
	(($(counted seen) - seen < $(completed_of train) / 4))
}

another_program_goes_on_while_sums_are_made() {
	network_with_another beside true
	ping_from_w0 5
	(($(counted seen) >= 5))
	start_agent
	[[ $(ctl --json status | jq '.ports[] | select(.name == "w0").beside') == "$other" ]]
	ctl status | grep "^w0" | has "beside XDP program $other"
	create_job train 2
	other_goes_on
	end_agent KILL
	start_agent
	[[ $(ctl --json status | jq '.ports[] | select(.name == "w0").beside') == "$other" ]]
	other_goes_on
	end_agent TERM
	start_agent "$build/next/tallyd"
	other_goes_on
	[[ $(program_on w0) != "$other" ]]
}

another_program_is_alone_again_after_a_detach() {
	local tally
	network_with_another beside true
	start_agent "$build/tallyd" --detach
	[[ $(program_on w0) != "$other" ]]
	end_agent TERM
	[[ $(program_on w0) == "$other" && $(program_on w1) == null ]]
	on n0 ip -j link show dev w0 | jq -e '.[0].xdp.mode == 1' >/dev/null
	tally=$(counted seen_tally)
	send 31249
	until_true counted_is seen_tally $((tally + 1))
	[[ -z $(find "$pin-n0" -type f) ]]
}

without_share_it_is_an_error_that_says_what_to_do() {
	network_with_another beside
	refuses "w0: another XDP program (number $other" on n0 timeout 20 "$build/tallyd" --config "$work/tallyd.yaml"
	grep -F "share: true" "$work/words" || { cat "$work/words"; return 1; }
	# Nothing has changed, and nothing is left.
	[[ $(program_on w0) == "$other" && $(program_on w1) == null && ! -e $pin-n0/jobs ]]
	sed -i "s/^  - w0\$/  - {name: w0, share: true}/" "$work/tallyd.yaml"
	start_agent
}

a_program_that_cannot_be_called_is_refused_by_its_number() {
	network_with_another beside_frags true
	sed -i "s/share: true/share: true, mode: native/" "$work/tallyd.yaml"
	refuses "XDP program $other" on n0 timeout 20 "$build/tallyd" --config "$work/tallyd.yaml"
	grep -F "xdp.frags" "$work/words" || { cat "$work/words"; return 1; }
	[[ $(program_on w0) == "$other" && $(program_on w1) == null ]]
}

facts another_program_goes_on_while_sums_are_made \
	another_program_is_alone_again_after_a_detach \
	without_share_it_is_an_error_that_says_what_to_do \
	a_program_that_cannot_be_called_is_refused_by_its_number
