#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What others take away from a node that tallyd runs is put back while sums go on; what cannot be
# put back is said.
#
#   w0 ──┐
#   w1 ──┼── n0 (tallyd)
#   w2 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

star() {
	agent_network <<-END
		host w0 w1 w2
		node n0
		link w0 n0
		link w1 n0
		link w2 n0
	END
}

load() { join_all train w0 w1 w2 -- -d float32 --float-wild -b 256K -e 256K -n 8 -w 0 -s $((${1-6} * slow)); }
small=(-d int32 --int-wild -b 4 -e 64K -f 256 -n 3 -w 0)

says() { grep -qE "$1" "$work/tallyd.log"; } # WORDS of the log
mode_is() { [[ $(ctl --json status | jq -r ".ports[] | select(.name == \"$1\") | .mode") == "$2" ]]; }
attached() { on n0 curl -s http://127.0.0.1:9464/metrics | has "^tally_port_attached{port=\"$1\"} $2\$"; }
has_program() { on n0 ip link show dev "$1" | has 'prog/xdp'; }
pins() { find "$pin-n0" -mindepth 1 -maxdepth 1 -printf "%f\n" 2>/dev/null | sort; }
pins_are() { [[ $(pins) == "$1" ]]; }
no_reload() { jq -es 'map(.node_reloads // 0) | add == 0' "$work/w0.train" >/dev/null; }

pins_that_are_removed_are_put_back_while_sums_go_on() {
	local before
	star
	start_agent
	create_job train 3
	load 12 # it is looked every 3 s, and two times here
	another train 300
	before=$(pins)
	rm -r "$pin-n0"
	until_true pins_are "$before"
	another train 300
	rm "$pin-n0"/port-* "$pin-n0/jobs" "$pin-n0"/group-*
	until_true pins_are "$before"
	joined_end
	no_reload
	# Whoever comes next finds all of it.
	end_agent KILL
	start_agent
	mode_is w0 native
	join_all train w0 w1 w2 -- "${small[@]}"
	joined_end
}


detached() { on n0 bpftool link detach pinned "$pin-n0/port-$(index_of "$1")"; }
index_of() { on n0 ip -json link show dev "$1" | jq '.[0].ifindex'; }

a_program_that_somebody_takes_off_a_port_is_put_on_again() {
	star
	sed -i 's/- w1$/- {name: w1, mode: tc}/' "$work/tallyd.yaml"
	start_agent
	create_job train 3
	load 20
	another train 300
	detached w0
	on n0 tc filter del dev w1 ingress
	until_true says 'port not attached.*name=w0 .*not on it any more'
	until_true says 'port not attached.*name=w1 '
	until_true says 'port attached.*name=w0 mode=native'
	until_true says 'port attached.*name=w1 mode=tc'
	another train 300
	joined_end
	no_reload
	has_program w0
	attached w0 1
}

switched() {
	agent_network <<-END
		host w0 w1 w2
		switch sw
		node n0
		link w0 n0
		link w1 n0
		link w2 sw
		link sw n0 plain
	END
}

# As a driver that is loaded again does: the same name, with another number.
take_port() {
	on n0 ip address show dev sw >"$work/sw"
	on n0 ip link del sw
}
give_port() {
	ip link add sw netns "$TALLY_TESTBED-n0" \
		address "$(awk '$1 == "link/ether" { print $2 }' "$work/sw")" \
		type veth peer name n0 netns "$TALLY_TESTBED-sw"
	on sw "$build/testbed-cable" pass n0
	on sw ethtool -K n0 gro off tx off txvlan off >/dev/null
	on n0 ethtool -K sw tx off txvlan off >/dev/null
	on sw ip link set n0 master br-0 up
	on n0 ip link set sw up
	on n0 ip address add "$(awk '$1 == "inet" { print $2 }' "$work/sw")" dev sw
}

a_port_that_is_deleted_and_made_anew_is_taken_and_its_workers_get_results() {
	local loses_slots=1 # the run is written anew, and workers give back what it had
	switched
	start_agent
	create_job train 3
	load 8
	another train 300
	take_port
	until_true mode_is sw gone
	until_true attached sw 0
	ctl status | has "sw: no such interface"
	give_port
	until_true mode_is sw native
	until_true says 'results leave by other ports now.*job=train'
	another train 300
	joined_end
	attached sw 1
}


# tallyd in a mount namespace of its own, as under its unit: what is unmounted there stays here.
start_agent_apart() { start_agent unshare --mount --propagation private "$build/tallyd"; }
in_its_mounts() { nsenter --mount --target "$daemon" "$@"; }
its_pins_are() { [[ $(in_its_mounts find "$pin-n0" -mindepth 1 -maxdepth 1 -printf "%f\n" 2>/dev/null | sort) == "$1" ]]; }
trouble_is() { [[ $(ctl --json status | jq -r '.troubles | join(" ")') == *"$1"* ]]; }
no_trouble() { [[ $(ctl --json status | jq '.troubles | length') == 0 ]]; }

a_file_system_of_pins_that_is_unmounted_is_said_and_filled_again_when_mounted() {
	local before
	star
	start_agent_apart
	create_job train 3
	load 10
	another train 300
	before=$(pins)
	in_its_mounts umount --lazy /sys/fs/bpf
	until_true trouble_is "mount -t bpf bpf /sys/fs/bpf"
	another train 300
	in_its_mounts mount -t bpf bpf /sys/fs/bpf
	until_true its_pins_are "$before"
	until_true no_trouble
	(($(grep -c 'not whole' "$work/tallyd.log") == 1))
	another train 300
	joined_end
	no_reload
}

what_is_not_there_yet_is_named_and_taken_when_it_comes() {
	switched
	take_port
	sed -i 's/^service: .*/service: ["10.77.0.1", "10.77.0.9"]/' "$work/tallyd.yaml"
	start_agent
	mode_is w0 native
	mode_is sw gone
	attached sw 0
	ctl status | has "sw: no such interface"
	refuses "sw: no such interface" doctor
	until_true trouble_is "10.77.0.9"
	create_job train 3
	on n0 ip address add 10.77.0.9/32 dev lo
	until_true no_trouble
	on w0 timeout 5 bash -c "exec 3<>/dev/tcp/10.77.0.9/31249"
	give_port
	until_true mode_is sw native
	join_all train w0 w1 w2 -- "${small[@]}"
	joined_end
	# And so does a reload.
	take_port
	echo 'log: {level: info}' >>"$work/tallyd.yaml"
	until_true mode_is sw gone
	kill -HUP "$daemon"
	until_true says 'configuration reloaded'
	mode_is sw gone
	give_port
	until_true mode_is sw native
	join_all train w0 w1 w2 -- "${small[@]}"
	joined_end
}

# As after a reboot: maps are empty, and one port's driver is loaded late.
a_run_that_a_reboot_has_taken_waits_for_its_port() {
	local loses_slots=1
	switched
	start_agent
	create_job train 3
	join_all train w0 w1 w2 -- -d float32 --float-wild -b 256K -e 256K -n 8 -w 0 -s $((6 * slow)) --timeout 60000
	another train 300
	end_agent KILL
	node n0 detach
	take_port
	start_agent
	state_is train running
	until_true trouble_is "job train: its run is not in the data plane"
	give_port
	until_true says 'run restored.*job=train'
	another train 300
	joined_end
	until_true no_trouble
}

doctor() { on n0 "$build/tallyctl" --socket "$control" doctor "$@"; }

doctor_tells_a_hanging_tallyd_from_a_dead_one_and_fails() {
	star
	start_agent
	kill -STOP "$daemon"
	refuses "tallyd, process $daemon, hangs" doctor
	doctor >"$work/hanging" || true
	kill -CONT "$daemon"
	[[ $(<"$work/hanging") != *"is in use by"* ]]
	end_agent KILL
	refuses "tallyd is not running" doctor
}

# A rank in each place: behind a cable of its own, on a switch, and behind a router.
routed() {
	agent_network <<-END
		host w0 w1 w2
		switch sw
		node n0 router
		link w0 n0
		link w1 sw
		link sw n0
		link w2 router
		link router n0
	END
}

finding() { # CHECK PORT
	doctor --json | jq -c --arg check "$1" --arg port "$2" \
		'.[] | select(.check == $check and .port == $port)'
}
found() { # LEVEL WORDS CHECK PORT
	finding "$3" "$4" >"$work/found"
	[[ $(jq -r '"\(.level) \(.text)"' "$work/found") == "$1 $2" ]] || { cat "$work/found"; return 1; }
}
macs_are_right() { found ok "results go to the MACs that answer here (1 asked)" neighbours "$1"; } # PORT

# The kernel says so for good, and tallyd follows; what doctor says against that mends it.
wrong_mac_is_found_and_mended() { # ADDRESS PORT RIGHT-MAC WHOM
	local wrong=02:bb:00:00:00:01
	on n0 ip neigh replace "$1" lladdr "$wrong" dev "$2" nud permanent
	until_true found fail "results for $4 go to MAC $wrong, but MAC $3 answers for $1: they do not arrive" \
		neighbours "$2"
	on n0 bash -c "$(jq -r .mend "$work/found")"
	until_true macs_are_right "$2"
}

macs_are_asked_for() { # FAMILY ROUTER
	local port rank address
	routed
	start_agent
	create_job train 3 --service "$(bed addr n0 "$1")"
	family=$1
	worker=()
	for rank in 0 1 2; do
		join_from "w$rank" train --rank "$rank" -d int32 -b 256K -e 256K -n 8 -w 0 -s $((60 * slow))
	done
	until_true state_is train running
	for port in w0 sw router; do
		macs_are_right "$port"
	done
	address=$(bed addr w0 "$1")
	wrong_mac_is_found_and_mended "$address" w0 02:77:00:00:01:01 "rank 0 of job train ($address)"
	address=$(bed addr w2 "$1")
	wrong_mac_is_found_and_mended "$2" router 02:77:00:00:04:fe "rank 2 of job train ($address)"
}

doctor_asks_the_network_for_macs_and_believes_no_table() {
	macs_are_asked_for 4 10.77.4.254
	# Whom nobody hears, and who may not ask.
	on w1 sysctl -qw net.ipv4.conf.all.arp_ignore=8
	found warn "results for rank 1 of job train (10.77.2.1) go to MAC 02:77:00:00:02:01, and nobody answers for 10.77.2.1 when asked by ARP. Is that machine up, and its cable in?" \
		neighbours sw
	macs_are_right w0
	on n0 setpriv --bounding-set=-net_raw --inh-caps=-net_raw "$build/tallyctl" --socket "$control" doctor |
		has "?     neighbours  cannot ask the network which MACs workers have: Operation not permitted"
}

doctor_asks_for_macs_of_ipv6_workers_too() { macs_are_asked_for 6 fd77:4::fe; }

examined() { (doctor || true) | tr -s ' \n' ' ' >"$work/words"; } # without its line breaks
is_said() { grep -F "$1" "$work/words" || { cat "$work/words"; return 1; }; }

doctor_says_what_the_configuration_makes_wrong() {
	star
	sed -i 's/^service: .*/service: ["10.77.0.1", "127.0.0.1", "::1", "10.77.0.9"]/
		s/^metrics: .*/metrics: {listen: "[2001:db8::7]:9464"}/' "$work/tallyd.yaml"
	start_agent
	examined
	is_said "warn service service address 127.0.0.1 is this machine's own"
	is_said "warn service service address ::1 is this machine's own"
	is_said "fail service service address 10.77.0.9 is not an address of this machine"
	is_said "fail metrics metrics: 2001:db8::7 is not an address of this machine"
	if grep -E '10\.77\.0\.1 is|warn config' "$work/words"; then return 1; fi
	echo 'nonsense: 1' >>"$work/tallyd.yaml"
	examined
	is_said "warn config $work/tallyd.yaml:12: 'nonsense': no such key"
	is_said "The next start and the next reload fail; tallyd goes on meanwhile"
	rm "$work/tallyd.yaml"
	examined
	is_said "warn config $work/tallyd.yaml: No such file or directory. The next start"
}

a_start_that_fails_leaves_nothing_attached() {
	local option
	star
	echo mine >"$control"
	for option in --verbose --detach; do
		refuses "$control: the file exists and is not a socket: move it away" \
			on n0 timeout 20 "$build/tallyd" --config "$work/tallyd.yaml" "$option"
		[[ ! -e $pin-n0 ]]
		[[ $(on n0 ip link show dev w0) != *prog/xdp* ]]
	done
	rm "$control"
}

squat() { # udp|tcp [PORT]: somebody takes this port, or 31249
	exec_on n0 python3 -c 'import socket, sys, time
s = socket.socket(type=socket.SOCK_STREAM if sys.argv[1] == "tcp" else socket.SOCK_DGRAM)
s.bind(("", int(sys.argv[2])))
if sys.argv[1] == "tcp": s.listen()
time.sleep(1000)' "$1" "${2-31249}" &
	squatter=$!
	until_true has_port "$1" "${2-31249}"
}
has_port() { on n0 ss -ln "--$1" | has ":$2"; }
end_squatter() {
	kill "$squatter"
	wait "$squatter" 2>/dev/null || true
}

a_port_of_joins_that_others_have_is_said_and_taken_when_it_is_free() {
	star
	squat tcp
	start_agent
	until_true trouble_is "another program listens at 10.77.0.1:31249"
	refuses "TCP port 31249 is in use by python3 (process $squatter)" doctor
	refuses "another program listens at 10.77.0.1:31249" doctor
	on w0 timeout 5 bash -c "exec 3<>/dev/tcp/$(bed addr n0 6)/31249" # the squatter has not all
	create_job train 3
	end_squatter
	until_true no_trouble
	(($(grep -c 'workers cannot join everywhere' "$work/tallyd.log") == 1))
	join_all train w0 w1 w2 -- "${small[@]}"
	joined_end
	doctor | has 'no other program uses UDP or TCP port 31249'
}

a_port_of_metrics_that_others_have_is_said_and_taken_when_it_is_free() {
	star
	squat tcp 9464
	start_agent
	until_true trouble_is "another program listens at 127.0.0.1:9464"
	refuses "another program listens at 127.0.0.1:9464" doctor
	create_job train 3
	join_all train w0 w1 w2 -- "${small[@]}"
	joined_end
	end_squatter
	until_true no_trouble
	(($(grep -c 'metrics cannot be read' "$work/tallyd.log") == 1))
	on n0 curl --silent --show-error --fail http://127.0.0.1:9464/metrics | has tally_jobs
}

a_port_of_roll_calls_that_others_have_is_said() {
	star
	start_agent
	create_job train 3
	load 60
	another train 300
	end_agent KILL
	kill -KILL "${worker[@]}"
	wait "${worker[@]}" || true
	squat udp
	start_agent
	until_true trouble_is "UDP port 31249 is in use"
	state_is train running
	end_squatter
	until_true state_is train waiting
	until_true no_trouble
	(($(grep -c 'cannot ask for detached workers' "$work/tallyd.log") == 1))
}

mode_wanted() { # PORT MODE
	sed -i "s/^  - w1\$/  - {name: w1}/; s/^  - {name: $1.*/  - {name: $1, mode: $2}/" "$work/tallyd.yaml"
}

# By a reload and by a restart; the others' sums stay, and the port's workers wait for a moment.
a_port_whose_mode_is_changed_gets_it_while_sums_go_on() {
	star
	start_agent
	create_job train 3
	load 5
	another train 300
	mode_wanted w1 tc
	ctl reload
	mode_is w1 tc
	another train 300
	end_agent KILL
	mode_wanted w1 native
	start_agent
	mode_is w1 native
	another train 300
	joined_end
	no_reload
	[[ $(on n0 tc filter show dev w1 ingress) == "" ]]
}

files_are() { prlimit --pid "$daemon" --nofile="$1:16384"; } # LIMIT
# shellcheck disable=SC2016 # for awk
files_left() { # N: so many more may be opened
	files_are "$(find "/proc/$daemon/fd" -mindepth 1 -printf '%f\n' |
		awk -v n="$1" '{ used[$1] } END { while (used_or_left()) i++; print i }
			function used_or_left() { return i in used || n-- > 0 }')"
}

a_reload_that_finds_no_files_leaves_all_as_it_was() {
	local more
	star
	start_agent
	create_job train 3
	load 60
	another train 300
	sed -i 's/^slots: .*/slots: 8192/' "$work/tallyd.yaml"
	for more in 1 3 30 100; do
		files_left "$more"
		refuses "" ctl reload
		files_are 16384
		has_program w0
		[[ $(ctl --json status | jq .slots.total) == 4096 ]]
	done
	until_true no_trouble
	files_left 3 # nothing is taken for gone
	until_true says 'cannot look at the data plane.*Too many open files'
	files_are 16384
	until_true no_trouble
	if says 'port not attached'; then return 1; fi
	another train 300
	ctl reload
	another train 300
}

loses_results() { says "results are lost behind a port: name=$1 reason=\"the other end, eth0 .*has no XDP program"; }

a_start_says_behind_which_port_results_are_lost() {
	agent_network <<-END
		host w0 w1
		node n0
		link w0 n0 plain
		link w1 n0 plain
	END
	on w0 ip link set dev eth0 xdp off
	start_agent
	until_true loses_results w0
	loses_results w1 && return 1
	end_agent TERM
	on w0 "$build/testbed-cable" pass eth0
	rm "$work/tallyd.log"
	start_agent
	loses_results w0 && return 1
	create_job train 2
	join_all train w0 w1 -- "${small[@]}"
	joined_end
}

facts pins_that_are_removed_are_put_back_while_sums_go_on \
	a_program_that_somebody_takes_off_a_port_is_put_on_again \
	a_port_that_is_deleted_and_made_anew_is_taken_and_its_workers_get_results \
	a_file_system_of_pins_that_is_unmounted_is_said_and_filled_again_when_mounted \
	what_is_not_there_yet_is_named_and_taken_when_it_comes \
	a_run_that_a_reboot_has_taken_waits_for_its_port \
	doctor_tells_a_hanging_tallyd_from_a_dead_one_and_fails \
	doctor_asks_the_network_for_macs_and_believes_no_table \
	doctor_asks_for_macs_of_ipv6_workers_too \
	doctor_says_what_the_configuration_makes_wrong \
	a_start_that_fails_leaves_nothing_attached \
	a_reload_that_finds_no_files_leaves_all_as_it_was \
	a_port_of_joins_that_others_have_is_said_and_taken_when_it_is_free \
	a_port_of_metrics_that_others_have_is_said_and_taken_when_it_is_free \
	a_port_of_roll_calls_that_others_have_is_said \
	a_start_says_behind_which_port_results_are_lost \
	a_port_whose_mode_is_changed_gets_it_while_sums_go_on
