#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What operators do to a node that is at work, with a real tallyd and real workers.
#
#   w0 ──┐
#        ├── n0 (tallyd, tallyctl)
#   w1 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

pair() { two_hosts 200mbit; }

load() { join_all train w0 w1 -- -d int32 -b 64K -e 64K -n 8 -w 0 -s "$1"; } # SECONDS
small=(-d int32 --int-wild -b 4 -e 16K -f 64 -n 3 -w 0)

fails() { # HOST JOB WORDS: the worker of this host, which has failed or does so
	local i
	for i in "${!worker[@]}"; do
		[[ ${joined[i + 1]} != "$1" ]] || ! wait "${worker[i]}" || { echo "$1 ends well"; return 1; }
	done
	grep -F "$3" "$work/$1.$2.errors" || { cat "$work/$1.$2.errors"; return 1; }
}

# A sweep whose lines go nowhere is none.
a_table_that_cannot_be_written_is_a_failure() {
	local format
	pair
	start_agent
	create_job one 1
	for format in --all-ranks --json; do
		# shellcheck disable=SC2016 # the inner shell's
		refuses "tally-perf: cannot write to standard output" \
			on w0 bash -c '"$0" "${@:2}" >"$1"' "$build/tally-perf" /dev/full --join one "${small[@]}" "$format" \
			--agent "$(bed addr n0 4)" --token-file "$work/one.token"
		until_true state_is one waiting
	done
}

value_of() { on n0 curl --silent --fail --max-time 10 http://127.0.0.1:9464/metrics | sed -n "s/^tally_$1 //p"; }

says_draining() { grep -q 'waiting for 1 runs: train' "$work/drain.errors"; }
cordoned_is() { [[ $(ctl --json status | jq .cordoned) == "$1" ]]; }

# Also the agent that comes after it.
a_cordoned_node_begins_no_run_and_drains() {
	local draining
	pair
	start_agent
	create_job train 2
	create_job other 2
	load 3
	another train 50
	ctl drain >"$work/drain" 2>"$work/drain.errors" &
	draining=$!
	until_true says_draining
	refuses "runs are still on: train" ctl drain --timeout 1
	cordoned_is true
	joined_end
	wait "$draining"
	grep '^drained: ' "$work/drain"
	ctl status | grep '^runs *0, cordoned'
	end_agent TERM
	start_agent
	cordoned_is true
	join_all other w0 -- "${small[@]}"
	fails w0 other "the node is cordoned: no run begins until tallyctl uncordon"
	(($(value_of 'joins_refused_total{reason="cordoned"}') == 1))
	ctl uncordon
	join_all other w0 w1 -- "${small[@]}"
	joined_end
}

a_drain_that_is_given_up_says_that_the_node_stays_cordoned() {
	local code=0 draining words='the node stays cordoned: no run begins until tallyctl uncordon'
	pair
	start_agent
	create_job train 2
	load 60
	another train 50
	# In the background bash has SIGINT ignored.
	env --default-signal=INT "$build/tallyctl" --socket "$control" drain 2>"$work/drain.errors" &
	draining=$!
	until_true says_draining
	kill -s INT "$draining"
	wait "$draining" || code=$?
	((code == 128 + 2))
	grep "$words" "$work/drain.errors"
	cordoned_is true
	another train 50
	# Also before the answer.
	kill -s STOP "$daemon"
	env --default-signal=INT "$build/tallyctl" --socket "$control" drain 2>"$work/drain.errors" &
	draining=$!
	until_true has_asked
	kill -s INT "$draining"
	code=0
	wait "$draining" || code=$?
	kill -s CONT "$daemon"
	((code == 128 + 2))
	grep "the node may be cordoned (tallyctl status)" "$work/drain.errors"
}
has_asked() { find "/proc/$draining/fd" -lname 'socket:*' | has .; }

a_job_that_is_restarted_ends_its_run_and_takes_its_workers_again() {
	local epoch
	pair
	start_agent
	create_job train 2
	refuses "has no run" ctl job restart train
	load 60
	another train 50
	epoch=$(ctl --json job list train | jq '.[0].epoch')
	ctl job restart train
	state_is train waiting
	fails w0 train "the job was restarted: join again"
	fails w1 train "the job was restarted: join again"
	join_all train w0 w1 -- "${small[@]}"
	joined_end
	(($(ctl --json job list train | jq '.[0].epoch') == epoch + 1))
}

# A run that is on does not notice; nor does who waits.
a_token_that_is_rotated_opens_nothing_any_more() {
	local old new
	pair
	start_agent
	create_job train 2
	old=$(cat "$work/train.token")
	load 60
	another train 50
	ctl job rotate train >"$work/new"
	new=$(cat "$work/new")
	[[ $new != "$old" && $(ctl job token train) == "$new" ]]
	has -F "result=done request={\"do\":\"job-rotate\",\"name\":\"train\"}" "$work/tallyd.log"
	(($(grep -c -e "$old" -e "$new" "$work/tallyd.log") == 0))
	another train 50
	kill -s TERM "${worker[@]}"
	wait "${worker[@]}" || true
	until_true state_is train waiting
	join_all train w0 -- "${small[@]}"
	fails w0 train "wrong token"
	end_agent KILL # the new one is on the disk
	start_agent
	ctl job rotate train --token-file "$work/train.token2"
	mv "$work/train.token2" "$work/train.token"
	[[ $(cat "$work/train.token") != "$new" ]]
	join_all train w0 -- --rank 0 "${small[@]}"
	until_true rank_state 0 joined
	ctl job rotate train --token-file "$work/train.token2"
	mv -f "$work/train.token2" "$work/train.token"
	join_from w1 train --rank 1 "${small[@]}"
	joined+=(w1)
	joined_end
	refuses "there is no job nope" ctl job rotate nope
}

# Over a new connection, by their places in the run: that is how they hear the new token, too.
who_is_in_a_run_comes_back_after_a_rotation() {
	pair
	start_agent
	create_job train 2
	load 60
	another train 50
	ctl job rotate train >"$work/new"
	until_true both 'was told the new token'
	end_agent KILL
	start_agent
	until_true both 'has come back'
	end_agent KILL
	kill -s TERM "${worker[@]}"
	start_agent
	wait "${worker[@]}" || true
	until_true state_is train waiting
	! has 'wrong tokens' "$work/tallyd.log" || return 1
}
both() { (($(grep -c "worker $1" "$work/tallyd.log") == 2)); } # WHAT-IS-SAID-OF-WORKERS

rank_state() { [[ $(ctl --json job list train | jq -r ".[0].members[$1].state") == "$2" ]]; }

a_rank_that_is_sent_away_goes_and_the_others_hear_which() {
	pair
	start_agent
	create_job train 2
	join_all train w0 -- --rank 0 "${small[@]}"
	until_true rank_state 0 joined
	refuses "nobody is rank 1" ctl job kick train --rank 1
	refuses "has ranks 0 to 1" ctl job kick train --rank 2
	ctl job kick train --rank 0 # while it waits
	fails w0 train "the operator has sent this rank away"
	rank_state 0 missing
	join_all train w0 -- --rank 0 -d int32 -b 64K -e 64K -n 8 -w 0 -s 60
	joined+=(w1)
	join_from w1 train --rank 1 -d int32 -b 64K -e 64K -n 8 -w 0 -s 60
	another train 50
	ctl job kick train --rank 1
	fails w1 train "the operator has sent this rank away"
	fails w0 train "rank 1 was sent away"
	until_true state_is train waiting
}

# For those who are there already, too: with jobs, in a reload, at the next start.
a_node_that_wants_ingress_points_has_no_job_without() {
	local words="tenant default has no ingress points, and so can have no jobs"
	pair
	start_agent
	create_job train 2
	cp "$work/tallyd.yaml" "$work/first.yaml"
	echo 'ingress: required' >>"$work/tallyd.yaml"
	refuses "$words" ctl reload
	join_all train w0 w1 -- "${small[@]}"
	joined_end # as nothing has changed
	end_agent TERM
	start_agent
	join_all train w0 -- "${small[@]}"
	fails w0 train "$words"
	refuses "$words" ctl job create other --workers 2
	ctl tenant set default --ingress w0 --ingress w1 >/dev/null
	create_job other 2
	join_all train w0 w1 -- "${small[@]}"
	joined_end
	sed -i 's/^ingress: required/ingress: optional/' "$work/tallyd.yaml"
	ctl reload
	sed -i 's/^ingress: optional/ingress: required/' "$work/tallyd.yaml"
	ctl reload
	ctl tenant add red --slots 8 >/dev/null # has no jobs, and may have none
	refuses "tenant red has no ingress points" ctl job create reds --workers 2 --window 2 --tenant red
	on_socket '{"do":"tenant-set","name":"default","ingress":[]}' | has -F "$words"
	ctl job del train
	ctl job del other
	on_socket '{"do":"tenant-set","name":"default","ingress":[]}' | has '"ok": true'
}

on_socket() { # LINE: what tallyctl has no option for
	python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\n")
print(s.makefile().readline())' "$control" "$1"
}

# --- the unit --------------------------------------------------------------------------------------

unit=packaging/tallyd.service
user=64999 # stands in for the one that installation makes
of_unit() { sed -n "s/^$1=//p" "$unit"; } # KEY: its values, a line each

# Starts tallyd as its unit does, but for what only systemd can do, in places of its own: /sys/fs/bpf
# is closed to all but root, as systemd leaves it; ExecStartPre= is the unit's. strace looks on.
start_unit() {
	local caps prepare
	caps=$(of_unit AmbientCapabilities | sed 's/CAP_/+/g; s/ /,/g; s/.*/\L&/')
	prepare=$(sed -n '/^ExecStartPre=/,/[^\\]$/p' "$unit" | sed 's/^ExecStartPre=-+//; s/\\$//' | tr -d '\n' |
		sed -E "s/tally:tally/$user:$user/; s/:tally/:$user/")
	chmod 711 "$work"
	mkdir -p "$work/run"
	chown "$user" "$work/run"
	control=$work/run/control.sock
	sed -i "s|^pin: .*|pin: /sys/fs/bpf/tally|; s|^state: .*|state: /var/lib/tally/state.json|
		s|^control: .*|control: {socket: $control}|; s|^join: .*|join: {socket: $work/run/join.sock}|" "$work/tallyd.yaml"
	# shellcheck disable=SC2016
	start_agent unshare --mount bash -c 'mount -t bpf -o mode=0700 none /sys/fs/bpf && mount -t tmpfs none /var/lib &&
		mkdir -m 700 /var/lib/tally && eval "$0" && exec "$@"' "$prepare" \
		strace -D -f -o "$work/calls" \
		setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs \
		--inh-caps "-all,$caps" --ambient-caps "-all,$caps" --bounding-set "-all,$caps" "$build/tallyd"
}

# The names behind a set of system calls, such as @system-service.
calls_of() {
	local name
	systemd-analyze syscall-filter --no-pager "$1" | sed -n '2,$s/^ *//p' | while read -r name; do
		case $name in @*) calls_of "$name" ;; [a-z]*) echo "$name" ;; esac
	done
}

# In the order of the unit's lines, as systemd reads them.
allowed_calls() {
	local line word
	while read -r line; do
		for word in ${line#\~}; do
			if [[ $word == @* ]]; then calls_of "$word"; else echo "$word"; fi
		done | sed "s/^/${line:0:1} /"
	done < <(of_unit SystemCallFilter) | awk '{ if ($1 == "~") delete may[$2]; else may[$2] } END { for (i in may) print i }' | sort
}

tallyd_needs_no_more_than_its_unit_gives() {
	pair
	start_unit
	grep -E "^Uid:.$user.$user.$user.$user$" "/proc/$daemon/status"
	grep -E '^Cap(Prm|Eff|Bnd):.000000c000001000$' "/proc/$daemon/status" >"$work/words"
	(($(wc -l <"$work/words") == 3))
	create_job train 2
	load 4
	another train 50
	timeout 20 "$build/tallyctl" --socket "$control" trace --every 10 | head -n 1 >"$work/head"
	value_of samples_total
	sed -i 's/^slots: .*/slots: 8192/' "$work/tallyd.yaml" # which loads all programs anew
	ctl reload
	ctl tenant add red --slots 8 --group games >/dev/null
	loses_slots=1 joined_end
	end_agent TERM
	# Those of tallyd alone, and not of what started it.
	sed -n '/execve("[^"]*tallyd"/,$p' "$work/calls" | grep -oP '^\d+ +\K[a-z]\w+(?=\()' | sort -u >"$work/made"
	allowed_calls >"$work/allowed"
	grep -qx bpf "$work/made" && grep -qx epoll_wait "$work/made" && (($(wc -l <"$work/allowed") > 100))
	comm -23 "$work/made" "$work/allowed" >"$work/words"
	[[ ! -s $work/words ]] || { echo "the unit does not allow $(cat "$work/words")"; return 1; }
	# The node's directory is root's to remove.
	if grep -E '= -1 E(PERM|ACCES)' "$work/calls" | grep -v ' rmdir("/sys/fs/bpf/tally'; then return 1; fi
}

a_tallyd_of_root_says_at_once_that_files_are_anothers() {
	pair
	mkdir "$work/state"
	chown "$user" "$work/state"
	sed -i "s|^state: .*|state: $work/state/state.json|" "$work/tallyd.yaml"
	refuses "$work/state belongs to user $user" on n0 timeout 20 "$build/tallyd" --config "$work/tallyd.yaml"
	[[ ! -e $pin-n0 ]]
}

gives_up() { # sends a request, and ends before it is answered
	python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\n")' "$control" "$1"
}

# tallyd hangs for longer than people wait: they take it for not done.
what_nobody_waits_for_any_more_is_not_done() {
	pair
	start_agent
	kill -s STOP "$daemon"
	gives_up '{"do": "job-create", "name": "y", "workers": 2}'
	gives_up '{"do": "cordon"}'
	kill -s CONT "$daemon"
	refuses "there is no job y" ctl job del y # changes are made in the order in which they came
	cordoned_is false
	logged 'request: uid=0 pid=[0-9]+ result=ECONNRESET request=.*job-create.*y'
	logged 'request: uid=0 pid=[0-9]+ result=ECONNRESET request=.*cordon'
	create_job y 2
	refuses "there is a job y already; its token: tallyctl job token y" create_job y 2
}

# Sixteen connections of somebody who may not, each of which asks as soon as it is answered.
refused_for_ever() {
	exec python3 -c 'import os, select, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
waits = select.poll()
all = {}
for i in range(16):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.send(b"{\"do\": \"cordon\"}\n" * 100)
    all[s.fileno()] = s
    waits.register(s, select.POLLIN)
while True:
    for fd, _ in waits.poll():
        answers = all[fd].recv(65536).count(b"\n")
        all[fd].send(b"{\"do\": \"cordon\"}\n" * answers)' "$control"
}

# They who may go before them; and who may only look has turns, too.
who_is_refused_again_and_again_holds_up_nobody() {
	local refused
	pair
	chmod 711 "$work"
	start_agent
	refused_for_ever &
	refused=$!
	until_true grep -qE 'request refused: uid=65534 .* times=[0-9]{2,}' "$work/tallyd.log"
	for _ in {1..10}; do
		timeout 5 "$build/tallyctl" --socket "$control" job list >/dev/null
		timeout 5 "$build/tallyctl" --socket "$control" uncordon
	done
	kill -0 "$refused"
	kill "$refused"
	cordoned_is false
}

wrong() { # WORDS SCRIPT: for sed, over the configuration
	sed "$2" "$work/tallyd.yaml" >"$work/wrong.yaml"
	refuses "$1" on n0 "$build/tallyd" --check --config "$work/wrong.yaml"
	refuses "$1" on n0 timeout 20 "$build/tallyd" --config "$work/wrong.yaml"
}

a_check_finds_what_a_start_refuses() {
	pair
	on n0 "$build/tallyd" --check --config "$work/tallyd.yaml"
	[[ ! -e $pin-n0 ]]
	# shellcheck disable=SC2016 # the last line, for sed
	wrong "tenants: group: there is no group nogroup-x" '$a tenants: [{name: red, slots: 8, group: nogroup-x}]'
	wrong "control.group: there is no group nogroup-x" 's|^control: {|&group: nogroup-x, |'
	wrong "pin /tmp/tally-x: must be a name in a BPF file system" 's|^pin: .*|pin: /tmp/tally-x|'
	wrong "lo: is not an Ethernet interface" 's|^ports:|&\n  - lo|'
	wrong "cannot listen on [fe80::1]:31249" 's|^service: .*|service: fe80::1|'
}

no_trouble() { [[ $(ctl --json status | jq '.troubles | length') == 0 ]]; }
says_link() { grep -q "link changed.*port=w1 state=\"$1\"" "$work/tallyd.log"; }

a_port_that_a_reload_takes_from_a_run_is_said_and_how_to_give_it_back() {
	pair
	start_agent
	create_job train 2
	load 60
	another train 50
	cp "$work/tallyd.yaml" "$work/both.yaml"
	sed -i '/- w1$/d' "$work/tallyd.yaml"
	ctl reload
	trouble_has "of its run is behind an interface that is none of tallyd's ports"
	grep 'workers of a run are behind no port.*job train.*add it to ports: in' "$work/tallyd.log"
	ctl job restart train
	no_trouble
	ctl job show train | grep "of its run is behind an interface that is none of tallyd's ports"
	create_job other 2
	join_all other w0 w1 -- "${small[@]}"
	fails w1 other "is behind w1, which is none of tallyd's ports, or has gone: add it to ports: in $work/tallyd.yaml"
	(($(value_of 'runs_refused_total{reason="no_way"}') == 1))
	cp "$work/both.yaml" "$work/tallyd.yaml"
	ctl reload
	no_trouble
	on n0 ip link set w1 down
	until_true says_link down
	until_true status_says 'w1 .*the link is down'
	on n0 ip link set w1 up
	until_true link_is_up
	on w1-n0 ip link set n0 down
	until_true status_says 'w1 .*the link is down, or has no carrier'
}
status_says() { ctl status | grep "$1"; }
link_is_up() { ! status_says 'w1 .*the link is down'; }

a_job_whose_tenant_is_gone_is_said() {
	pair
	printf 'tenants:\n- {name: red, slots: 512}\n' >>"$work/tallyd.yaml"
	start_agent
	create_job train 2 --tenant red
	end_agent TERM
	sed -i '/^tenants:/,$d' "$work/tallyd.yaml"
	start_agent
	until_true trouble_has "1 suspended, such as train: nobody can join until"
	ctl status | grep 'has tenant red again'
	doctor | has 'fail  data plane  1 suspended, such as train: nobody can join until'
}
doctor() { on n0 "$build/tallyctl" --socket "$control" doctor || true; }

facts tallyd_needs_no_more_than_its_unit_gives \
	a_tallyd_of_root_says_at_once_that_files_are_anothers \
	a_node_that_wants_ingress_points_has_no_job_without \
	a_cordoned_node_begins_no_run_and_drains \
	a_table_that_cannot_be_written_is_a_failure \
	a_drain_that_is_given_up_says_that_the_node_stays_cordoned \
	a_job_that_is_restarted_ends_its_run_and_takes_its_workers_again \
	a_token_that_is_rotated_opens_nothing_any_more who_is_in_a_run_comes_back_after_a_rotation \
	a_rank_that_is_sent_away_goes_and_the_others_hear_which \
	what_nobody_waits_for_any_more_is_not_done \
	who_is_refused_again_and_again_holds_up_nobody \
	a_check_finds_what_a_start_refuses \
	a_port_that_a_reload_takes_from_a_run_is_said_and_how_to_give_it_back \
	a_job_whose_tenant_is_gone_is_said
