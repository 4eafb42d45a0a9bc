#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest whose kernel loads BPF_PROG_TYPE_EXT: ports that Tally shares by libxdp's dispatcher.
# xdp-loader brings and takes away tests/bpf/beside.bpf.o, which counts frames and drops UDP to
# port 9.
#
#   w0 ──┐ (beside, then tallyd)
#        ├── n0
#   w1 ──┘ (tallyd, then beside)
#
#	TALLY_KILLS=N|all        kills at so many points of each action (3), or at all there are
#	TALLY_PART=2/3           of all there are: the second of each three, for guests side by side
#
# tallyd is killed there by TALLY_BESIDE=dispatcher tests/e2e/kills.sh.
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/../e2e/agent_lib.sh"

slow=${TALLY_SLOW:-4}

network_that_is_shared() {
	agent_network <<-END
		host w0 w1
		node n0
		link w0 n0 rate 200mbit
		link w1 n0 rate 200mbit
	END
	sed -i "s/^  - \(w.\)\$/  - {name: \1, share: true}/" "$work/tallyd.yaml"
}

loader() { on n0 xdp-loader "$@" >"$work/loader" 2>&1 || { cat "$work/loader"; return 1; }; }
beside_comes() { loader load -m native "$1" "$build/tests/bpf/beside.bpf.o"; } # PORT
beside_goes() { loader unload "$1" --id "$(member "$1" beside)"; } # PORT

# Who is in a port's dispatcher, by name, in the order in which they run; the number of one.
members() { on n0 xdp-loader status "$1" | awk '$1 == "=>" { printf "%s ", $3 }'; } # PORT
member() { on n0 xdp-loader status "$1" | awk -v name="$2" '$3 == name { print $4 }'; } # PORT NAME
are() { [[ $(members "$1") == "$2" ]] || { on n0 xdp-loader status "$1"; return 1; }; } # PORT "NAME..."

# What beside counts: seen, seen_tally or dropped.
counted() { # PORT WHAT
	bpftool -j map dump id "$(bpftool -j prog show id "$(member "$1" beside)" | jq '.map_ids[0]')" |
		jq "[.. | .\"$2\"? // empty] | add"
}
sees_more() { (($(counted "$1" seen) > $2)); } # PORT NUMBER

# It sees all frames that are not Tally's.
beside_goes_on() { # PORT HOST PEER
	local seen
	seen=$(counted "$1" seen)
	on "$2" ping -q -i 0.01 -c 20 -W 5 "$(bed addr "$3" 4)" >/dev/null
	until_true sees_more "$1" $((seen + 19))
}

# That of links, which no port has here, and that which all places call: the former ones are gone.
two_programs_are_loaded() { (($(bpftool -j prog show name tally_ingress | jq -s 'flatten | length') == 2)); }

upgraded() { end_agent TERM && start_agent "$build/next/tallyd" && until_true two_programs_are_loaded; }
killed() { end_agent KILL && start_agent; }

# The program beside sees what Tally passes of the run, which is little: what comes too late.
sums_are_right_while() { # COMMAND...
	join_all train w0 w1 -- -d int32 --int-wild -b 64K -e 64K -n 8 -w 0 -s $((4 * slow))
	another train 20
	"$@" || { echo "failed: $*"; return 1; }
	joined_end
}

sees_few_of_tally() { # PORT
	local tally completed
	tally=$(counted "$1" seen_tally) completed=$(completed_of train)
	((tally < completed / 4)) || { echo "$1: beside saw $tally messages of $completed chunks"; return 1; }
}

programs_come_and_go_while_sums_are_made() {
	network_that_is_shared
	beside_comes w0
	start_agent
	are w0 "tally_port beside "
	are w1 "tally_port "
	[[ $(ctl --json status | jq -c '[.ports[].mode]') == '["native","native"]' ]]
	ctl status | grep "^w0" | has "beside XDP program $(member w0 beside)"
	create_job train 2
	sums_are_right_while beside_comes w1
	are w1 "tally_port beside "
	sums_are_right_while beside_goes_on w0 w0 w1
	beside_goes_on w1 w1 w0
	sums_are_right_while upgraded
	sums_are_right_while killed
	sees_few_of_tally w0
	sums_are_right_while beside_goes w0
	are w0 "tally_port "
	are w1 "tally_port beside "
	end_agent TERM
	node n0 detach
	are w0 ""
	are w1 "beside "
	beside_goes_on w1 w1 w0
}

# With what is left to it, tallyd cannot change the dispatcher: its place there is idle then.
tallyd_that_detaches_leaves_a_place_that_passes_all_and_is_taken_again() {
	network_that_is_shared
	beside_comes w0
	start_agent "$build/tallyd" --detach
	end_agent TERM
	[[ -z $(find "$pin-n0" -type f) ]]
	are w0 "tally_port beside "
	beside_goes_on w0 w0 w1
	start_agent
	are w0 "tally_port beside "
	are w1 "tally_port "
	create_job train 2
	join_all train w0 w1 -- -d int32 -b 64K -e 64K -n 8 -w 0
	joined_end
	(($(completed_of train) > 0))
}

filtered() { on n0 xdp-filter status | awk '$1 == 9 { print $NF }'; } # to UDP port 9

# xdp-filter drops what is sent to port 9, and nothing else.
filter_goes_on() {
	local before
	before=$(filtered)
	on w0 bash -c "echo >/dev/udp/$(bed addr n0 4)/9"
	until_true filtered_more "$before"
	on w0 ping -q -i 0.01 -c 20 -W 5 "$(bed addr n0 4)" >/dev/null
}
filtered_more() { (($(filtered) == $1 + 1)); } # NUMBER
filter_comes() { on n0 xdp-filter load -m native w0 >"$work/filter" && on n0 xdp-filter port -p udp -m dst 9; }
filter_goes() { on n0 xdp-filter unload w0; }

# A program that its own users bring, change by their own maps, and take away.
xdp_filter_and_tally_share_a_port() {
	network_that_is_shared
	filter_comes
	start_agent
	are w0 "tally_port xdpfilt_alw_all "
	filter_goes_on
	create_job train 2
	sums_are_right_while filter_goes_on
	sums_are_right_while filter_goes
	are w0 "tally_port "
	sums_are_right_while filter_comes
	are w0 "tally_port xdpfilt_alw_all "
	sums_are_right_while killed
	filter_goes_on
	end_agent TERM
	node n0 detach
	are w0 "xdpfilt_alw_all "
	filter_goes_on
}

put_in() { on n0 bpftool net attach xdpdrv pinned "$pin-other/beside" dev w0 "$@"; } # [overwrite]
says_of_w0() { ctl status | grep "^w0" | has -F "$1"; } # WORDS

# A program that knows no dispatcher: by netlink it may take the whole port, by a link it may not.
what_takes_the_place_of_the_dispatcher_is_named_and_shared_with_at_a_start() {
	network_that_is_shared
	mkdir "$pin-other"
	bpftool prog loadall "$build/tests/bpf/beside.bpf.o" "$pin-other"
	start_agent
	refuses "busy" put_in
	refuses "another XDP program" on n0 "$build/tally-node" attach w0 --pin "$pin-third"
	are w0 "tally_port "
	put_in overwrite
	until_true says_of_w0 "another XDP program is there"
	end_agent TERM
	start_agent
	says_of_w0 "beside XDP program"
	create_job train 2
	join_all train w0 w1 -- -d int32 -b 64K -e 64K -n 8 -w 0
	joined_end
	(($(completed_of train) > 0))
}

three_capabilities=(setpriv --bounding-set "-all,+bpf,+net_admin,+perfmon" --inh-caps=-all)

# Where nothing is on the port, a link does.
without_cap_sys_admin_it_says_so() {
	network_that_is_shared
	start_agent "${three_capabilities[@]}" "$build/tallyd" --detach
	ctl status | grep "^w0" | has "native"
	end_agent TERM
	beside_comes w0
	refuses "libxdp takes CAP_SYS_ADMIN" on n0 "${three_capabilities[@]}" \
		timeout 60 "$build/tallyd" --config "$work/tallyd.yaml"
	are w0 "beside "
}

# Ends tally-node at its N-th call that anybody could notice; 0: says how many there are.
kill_at() { on n0 "$build/tests/e2e/kill_at" "$1" "$build/tally-node" "${@:2}" --pin "$pin-n0"; }

as_before() { # ACTION: there is no node, or there is
	node n0 detach >/dev/null 2>&1 || true
	[[ $1 == "attach w0"* ]] || node n0 attach w0 --share >/dev/null
}

killed_and_well() { # N ACTION
	as_before "$2"
	# shellcheck disable=SC2086
	kill_at "$1" $2 >"$work/killed" 2>&1 || true
	grep -q '^killed' "$work/killed" || { cat "$work/killed"; return 1; }
	node n0 detach >/dev/null 2>&1 || true
	node n0 attach w0 --share >/dev/null
	are w0 "tally_port beside " || { echo "after $2: $(<"$work/killed")"; return 1; }
}

# The last calls, many of them, take away pins of jobs, one by one.
points() { # CALLS: which are tried
	local calls=$(($1 < 100 ? $1 : 100)) part=${TALLY_PART:-1/1}
	if [[ ${TALLY_KILLS-} == all ]]; then
		seq "${part%/*}" "${part#*/}" "$1" | awk -v last="$1" "\$1 <= 100 || \$1 > last - 10"
	else
		shuf -i "1-$calls" -n "${TALLY_KILLS:-3}"
	fi
}

wherever_it_is_killed_the_next_one_ends_well() {
	local action calls point tried=0
	network_that_is_shared
	beside_comes w0
	for action in "attach w0 --share" "attach --replace" detach; do
		as_before "$action"
		# shellcheck disable=SC2086
		calls=$(kill_at 0 $action | sed -n 's/^passed //p')
		((calls > 20))
		for point in $(points "$calls"); do
			killed_and_well "$point" "$action"
			tried=$((tried + 1))
		done
		echo "# $action: of $calls calls killed at ${TALLY_KILLS:-3}, part ${TALLY_PART:-1/1}" >&3
	done
	beside_goes_on w0 w0 w1
	echo "# killed at $tried points; libxdp's folders: $(find /sys/fs/bpf/xdp -name 'dispatch-*' | wc -l)" >&3
	node n0 detach >/dev/null
	are w0 "beside "
}

exec 3>&1
facts programs_come_and_go_while_sums_are_made \
	tallyd_that_detaches_leaves_a_place_that_passes_all_and_is_taken_again \
	xdp_filter_and_tally_share_a_port \
	what_takes_the_place_of_the_dispatcher_is_named_and_shared_with_at_a_start \
	without_cap_sys_admin_it_says_so \
	wherever_it_is_killed_the_next_one_ends_well
