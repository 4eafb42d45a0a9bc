#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# tallyctl with a real tallyd: what it shows is what is, and who may do what.
#
#   w0 ──┐
#        ├── n0 (tallyd, tallyctl)
#   w1 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

pair() { # [RATE]
	agent_network <<-END
		host w0 w1
		node n0
		link w0 n0 rate ${1-200mbit}
		link w1 n0 rate ${1-200mbit}
	END
}

load() { join_all train w0 w1 -- -d int32 -b 256K -e 256K -n 8 -w 0 -s "$1"; } # SECONDS
small=(-d int32 --int-wild -b 4 -e 16K -f 64 -n 3 -w 0)

# The process is tallyctl itself, so that a signal meets it.
exec_ctl() { exec "$build/tallyctl" --socket "$control" "$@"; }
doctor() { on n0 "$build/tallyctl" --socket "$control" doctor "$@"; }

tested=()

# What JSON says in these words, text says too.
agree() { # JQ-FILTER COMMAND...
	local filter=$1 words
	shift
	tested+=("$*")
	ctl --json "$@" >"$work/json" || return 1
	ctl "$@" | tr -d , | tr -s ' ' >"$work/text" || return 1
	(($(wc -l <"$work/json") == 1)) || return 1
	jq -r "$filter" "$work/json" >"$work/wanted" || return 1
	while read -r words; do
		grep -qF -- "$words" "$work/text" || { echo "$*: no '$words'"; cat "$work/text"; return 1; }
	done <"$work/wanted"
	[[ -s $work/wanted ]]
}

# Both ways of a command that changes something: the JSON is checked, then the text.
both() { # JQ-CONDITION COMMAND...: NAME in it is json, then text
	local condition=$1
	shift
	tested+=("$*")
	ctl --json "${@//NAME/json}" | jq -e "$condition" >/dev/null || return 1
	ctl "${@//NAME/text}" >"$work/text"
}

# Whatever is in the help was tried by the fact below, or needs workers: others, operators.sh and trees.sh.
all_were_tested() {
	local command
	while read -r command; do
		printf '%s\n' "${tested[@]}" doctor trace help "job rotate" "job restart" "job kick" "job place" "job documents" apply cluster events topology | has -E "^$command( |$)" ||
			{ echo "$command is not tested"; return 1; }
	done < <(ctl --help | sed -n 's/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p; s/^  \([a-z][a-z ]*[a-z]\) [[A-Z].*/\1/p')
}

each_command_tells_people_and_programs_the_same() {
	pair
	start_agent
	both '.name == "json" and .slots == 64' tenant add NAME --slots 64 --packets-per-second 2k
	both '.name == "json" and .slots == 96' tenant set NAME --slots 96
	both '.slots == 128' quota NAME --slots 128
	both '.name == "json" and (.token | length) > 0' job create NAME --workers 2 --tenant text --window 8
	both '.token | length > 0' job token NAME
	create_job train 2
	join_all train w0 w1 -- "${small[@]}"
	joined_end
	join_all train w1 -- --rank 1 "${small[@]}"
	until_true state_is train forming
	agree '.version, "process \(.pid)", .build, "\(.slots.used) of \(.slots.total) in use, \(.slots.reserved) reserved" |
		gsub(","; "")' status
	agree '"tenants \(.tenants)", "jobs \(.jobs)", .services[], .join[], .metrics, (.ports[] | "\(.name) \(.mode)")' status
	agree '.[] | "\(.name) \(.from) \(.slots_used) of \(.slots) "' tenant list
	agree '.[] | "\(.name) \(.from) \(.slots_used) of \(.slots) "' quota
	agree '.[] | "\(.name) \(.from) \(.slots_used) of \(.slots) "' quota text
	agree '.[] | "\(.name) \(.id) \(.tenant) \(.state) \(.workers) "' job list
	agree '.[0] | "\(.name) \(.id) \(.tenant) \(.state) \(.workers) \(.missing) ",
		(.members[] | "\(.rank) \(.state) \(.address)")' job show train
	[[ $(jq -r '.[0] | .state, .missing, .members[1].state' "$work/json") == $'forming\n0\njoined' ]]
	agree '.token' job token train
	agree 'to_entries[] | select(.key != "FOREIGN" and .value.packets > 0) |
		"\(.key) \(.value.packets) \(.value.bytes) "' stats
	agree 'keys[]' stats --all
	agree '.[] | "\(.name) 10 Gbit/s \(.mtu) "' links
	agree '(.jobs[] | "\(.name) \(.tenant) \(.state) \(.joined)/\(.workers) "), (.tenants[].name),
		"\(.slots.used) of \(.slots.total)", (.links[] | "\(.name) ")' top --once
	worker+=("${worker[0]}")
	both '. == {}' reload
	both '. == {}' cordon
	both '. == {}' drain --timeout 9
	grep -q '^drained: ' "$work/text"
	both '. == {}' uncordon
	both '. == {}' job del NAME
	both '. == {}' tenant del NAME
	[[ $(ctl --json tenant list | jq -c 'map(.name)') == '["default"]' ]]
	all_were_tested
	join_from w0 train "${small[@]}"
	joined=(train w1 w0)
	worker=("${worker[0]}" "${worker[-1]}")
	joined_end
}

counts() { ctl --json stats "$@" | jq -c '[.ABSORBED, .COMPLETED, .FANNED_OUT]'; }

stats_of_a_job_its_tenant_and_the_ports_add_up() {
	pair
	start_agent
	ctl tenant add red --slots 512 >/dev/null
	create_job train 2 --tenant red
	create_job other 2
	join_all train w0 w1 -- "${small[@]}"
	joined_end
	until_true state_is train waiting
	[[ $(counts --job train) == "$(counts --tenant red)" && $(counts --job train) == "$(counts)" ]]
	[[ $(counts --job other) == "$(counts --tenant default)" ]]
	[[ $(counts --job other | jq -c 'map(.packets) | add') == 0 ]]
	{ counts; counts --port w0; counts --port w1; } | jq -es '
		def packets(i): .[i] | map(.packets); def bytes(i): .[i] | map(.bytes);
		([packets(1), packets(2)] | transpose | map(add)) == packets(0) and
		([bytes(1), bytes(2)] | transpose | map(add)) == bytes(0) and
		(.[1][1].packets + .[2][1].packets) > 0'
	refuses "there is no job nobody" ctl stats --job nobody
	refuses "not one of the node's ports" ctl stats --port eth7
	refuses "one of job, tenant and port" ctl stats --job train --port w0
}

# Sums of the job, and bytes of the workers' link, in samples that are in order and of this run.
history_has_the_run() { # SECONDS: Unix time before it
	ctl --json stats --job train --history 600 | jq -e --argjson before "$1" '
		(map(.chunks_per_second) | max) > 0 and
		(map(.time_s) | . == sort and all(. >= $before and . <= now + 1))' &&
		ctl --json stats --port w0 --history 600 |
		jq -e '(map(.receive_bytes_per_second) | max) > 100000'
}

history_is_cut_to_two() { # of the three samples or more that there are by then
	(($(ctl --json stats --job train --history 600 | jq length) > 2 &&
		$(ctl --json stats --job train --history 2 | jq length) == 2))
}

a_history_shows_when_a_job_ran() {
	local before
	pair
	start_agent
	create_job train 2
	before=$(date +%s)
	load 10
	until_true history_has_the_run "$before"
	until_true history_is_cut_to_two
	ctl stats --job train --history 600 | has '^TIME *RECEIVES'
	refuses "there is no job nobody" ctl stats --job nobody --history 1
	refuses "name a job or a port" ctl stats --history 1
	refuses "name a job or a port" ctl stats --tenant default --history 1
}

link_is() { # NAME JQ-CONDITION
	ctl --json links | jq -e --arg name "$1" '.[] | select(.name == $name) | '"$2" >/dev/null
}

a_link_that_goes_down_and_comes_back_is_seen() {
	local cable=$TALLY_TESTBED-w0-n0
	pair
	start_agent
	until_true link_is w0 '.up and .carrier and .changes == 0'
	ip -n "$cable" link set n0 down
	until_true link_is w0 '.up and (.carrier | not) and .changes == 1'
	ctl links | grep '^w0' | has 'no carrier'
	on n0 ip link set w0 down
	until_true link_is w0 '.up == false and .changes == 2'
	on n0 ip link set w0 up
	ip -n "$cable" link set n0 up
	until_true link_is w0 '.up and .carrier and .changes >= 3'
	link_is w1 '.up and .carrier and .changes == 0'
	grep -q 'link changed: port=w0' "$work/tallyd.log"
}

# One frame of top, and what the counters said just before and after.
top_is_plausible() {
	local before began after ended
	began=$(date +%s%N)
	before=$(ctl --json stats --job train | jq -c '[.ABSORBED, .COMPLETED]')
	another train 4000
	after=$(ctl --json stats --job train | jq -c '[.ABSORBED, .COMPLETED]')
	ended=$(date +%s%N)
	ctl --json top --once | jq -e --argjson before "$before" --argjson after "$after" \
		--argjson seconds "$((ended - began))e-9" '
		def near(a; b): a > b / 2 and a < b * 2;
		def rate(key): (($after | map(key) | add) - ($before | map(key) | add)) / $seconds;
		(($after[1].packets - $before[1].packets) / $seconds) as $sums |
		.jobs[0] as $job | .tenants[0] as $tenant |
		near($job.packets_per_second; rate(.packets)) and
		near($job.bytes_per_second; rate(.bytes)) and
		near($job.chunks_per_second; $sums) and
		near($tenant.packets_per_second; $job.packets_per_second) and
		near([.links[].receive.packets_per_second] | add; rate(.packets)) and
		near([.links[].transmit.packets_per_second] | add; 2 * $sums) and
		$job.duplicate_percent < 50 and $job.refused_per_second == 0' >/dev/null
}

top_is_at_rest() { ctl --json top --once | jq -e '.jobs[0].packets_per_second < 10' >/dev/null; }

top_shows_the_rates_that_there_are() {
	pair 50mbit
	start_agent
	create_job train 2
	load 10
	another train 100
	until_true top_is_plausible
	joined_end
	until_true top_is_at_rest
}

is_off() {
	bpftool -j map dump pinned "$pin-n0/settings" |
		jq -e '.[0].formatted.value.trace_every == 0' >/dev/null
}
trace() { # FILE [options...]: in the background
	: >"$work/$1"
	exec_ctl trace "${@:2}" >"$work/$1" 2>"$work/$1.errors" &
	tracer=$!
}
end_trace() { kill "$1" && wait "$1"; } # PROCESS
traced() { (($(wc -l <"$work/$1") >= $2)); } # FILE LINES
came_in() { ctl --json stats --job train | jq '[.[] | .packets] | add - '"$(ctl --json stats --job train | jq .FANNED_OUT.packets)"; }

trace_tells_what_becomes_of_a_jobs_packets_and_is_off_afterwards() {
	local tracer before after
	pair
	start_agent
	create_job train 2
	create_job other 2
	is_off
	load 30
	another train 100
	before=$(came_in)
	trace packets --every 10 --job train --json
	until_true traced packets 500
	! is_off || return 1
	end_trace "$tracer"
	until_true is_off
	after=$(came_in)
	jq -es --argjson all "$((after - before))" '
		[.[] | select(.lost | not)] as $told | ([.[].lost // 0] | add) as $lost |
		($told | map(.name) | unique) == ["train"] and
		($told | map(.kind) | unique) == ["contribution"] and
		($told | map(.port) | unique) == ["w0", "w1"] and
		($told | map(.outcome) | unique) - ["DUPLICATE", "ANSWERED", "NO_ROOM", "STALE"] == ["ABSORBED", "COMPLETED"] and
		($told | map(.bytes) | min > 60 and max <= 1514) and
		# No more than one in ten, and most of those: it was on for a part of the time only.
		($told | length) + $lost <= $all / 10 + 2' "$work/packets" >"$work/words" || { cat "$work/words"; return 1; }
	trace other --job other
	until_true traced other 1
	another train 1000
	end_trace "$tracer"
	(($(wc -l <"$work/other") == 1)) # the heading
	# Its reader has enough.
	timeout 20 "$build/tallyctl" --socket "$control" trace --every 10 | head -n 3 >"$work/head"
	traced head 3
	until_true is_off
	kill "${worker[@]}"
	wait "${worker[@]}" || true
}

two_trace_at_once_and_the_end_of_one_is_not_that_of_the_other() {
	local first second lines
	pair
	start_agent
	create_job train 2
	load 30
	another train 100
	trace first --every 1000 --job train --json
	first=$tracer
	trace second --every 20 --json
	second=$tracer
	until_true traced first 20
	until_true traced second 20
	end_trace "$second"
	lines=$(wc -l <"$work/first")
	until_true traced first $((lines + 3))
	! is_off || return 1
	jq -es 'map(.name // "train") | unique == ["train"]' "$work/first" >/dev/null
	end_trace "$first"
	until_true is_off
	kill "${worker[@]}"
	wait "${worker[@]}" || true
}

trace_is_off_after_tallyd_was_killed() {
	local tracer code=0
	pair
	start_agent
	create_job train 2
	trace killed
	until_true traced killed 1
	! is_off || return 1
	end_agent KILL
	wait "$tracer" || code=$?
	((code == 1))
	grep -q 'tallyd closed the connection' "$work/killed.errors"
	start_agent
	is_off
}

exits() { # CODE ARGUMENTS...
	local code=0
	ctl "${@:2}" >"$work/words" 2>&1 || code=$?
	((code == $1)) || { echo "code $code: ${*:2}"; cat "$work/words"; return 1; }
}

exit_codes_are_zero_one_and_two() {
	pair
	start_agent
	exits 0 status
	exits 0 --help
	exits 0 --version
	exits 0 top --help
	exits 0 help
	exits 0 help job create
	exits 2 help no such command
	exits 1 tenant del nobody
	exits 1 job show nobody
	exits 1 job list nobody
	exits 1 job list --tenant nobody
	exits 1 tenant list nobody
	exits 1 quota nobody
	exits 1 tenant add red --slots 5000
	exits 1 job create train --workers 8 --window 4096
	exits 1 trace --job nobody
	exits 1 --socket "$work/nowhere" status
	exits 2
	exits 2 no such command
	exits 2 status more
	exits 2 status --slots 3
	exits 2 job create train
	exits 2 job create train --workers 0
	exits 2 job create train --workers 257
	exits 2 tenant add red --slots many
	exits 2 trace --every 0
	end_agent TERM
	exits 1 status
}

# What a user without rights gets; "tallyctl" is a copy that everybody may run.
as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups "$work/tallyctl" --socket "$control" "$@"
}
as_member() {
	setpriv --reuid 65534 --regid 65534 --groups "$(getent group adm | cut -d : -f 3)" \
		"$work/tallyctl" --socket "$control" "$@"
}

all_may_look_and_only_root_and_the_group_may_change() {
	local who command
	pair
	chmod 711 "$work"
	cp "$build/tallyctl" "$work/tallyctl"
	for who in "only root may" "only root and members of the group adm may"; do
		start_agent
		create_job train 2
		ctl tenant add red --slots 8 >/dev/null
		for command in status "tenant list" quota "job list" "job show train" stats links "top --once"; do
			# shellcheck disable=SC2086
			as_nobody $command >"$work/words" || return 1
		done
		for command in "tenant add x --slots 1" "tenant set red --slots 1" "quota red --slots 1" \
			"tenant del red" "job create x --workers 2" "job token train" "job del train" trace; do
			# shellcheck disable=SC2086
			refuses "$who" as_nobody $command
		done
		[[ $(ctl --json quota red | jq '.[0].slots') == 8 ]]
		[[ $who == *adm* ]] || refuses "$who" as_member tenant del red
		ctl job del train
		ctl tenant del red
		end_agent TERM
		sed -i "s|^control: .*|control: {socket: $control, group: adm}|" "$work/tallyd.yaml"
	done
	start_agent
	as_member tenant add red --slots 512 >/dev/null
	as_member job create train --workers 2 --tenant red >/dev/null
	as_member job token train >/dev/null
	as_member trace | head -n 1 >"$work/head"
	grep -q OUTCOME "$work/head"
	as_member job del train
	as_member tenant del red
}

# The finding of a check on a port ("": the node), as doctor has it now.
finding() { # CHECK PORT [doctor's arguments...]
	doctor --json "${@:3}" | jq -r --arg check "$1" --arg port "$2" \
		'.[] | select(.check == $check and .port == $port) | "\(.level) \(.text)"'
}
finds() { # WORDS CHECK PORT
	[[ $(finding "$2" "$3") == *$1* ]] || { finding "$2" "$3"; return 1; }
}

doctor_finds_nothing_wrong_with_a_healthy_node() {
	pair
	start_agent
	create_job train 2
	ctl tenant add red --slots 8 --ingress "w0 vlan 5" >/dev/null
	doctor >"$work/words" || { cat "$work/words"; return 1; }
	load 10
	another train 100
	doctor --json >"$work/words"
	# The switch of the compiler belongs to the first network namespace, which this is not.
	jq -e 'map(select(.level != "ok")) | map(.check) - ["jit"] == []' "$work/words" || { cat "$work/words"; return 1; }
	jq -e 'map(.check) | contains(["kernel", "bpf", "bpffs", "daemon", "service", "sockets", "xdp", "mtu", "peer"])' "$work/words"
	joined_end
}

doctor_finds_what_is_wrong_while_tallyd_runs() {
	pair
	sed -i 's/^  - w1$/  - {name: w1, mode: generic}/' "$work/tallyd.yaml"
	start_agent
	create_job train 2
	finds "warn driver veth, generic XDP (in the stack)" xdp w1
	finds "ok " xdp w0
	on n0 ip link set w0 mtu 1400
	finds "warn MTU 1400: job train with payload 1408 needs 1500" mtu w0
	on n0 ip link set w0 mtu 1500
	finds "ok MTU 1500" mtu w0
	on n0 ip link set w0 down
	finds "fail is down" link w0
	if doctor >"$work/words"; then
		return 1
	fi
	on n0 ip link set w0 up
	# shellcheck disable=SC2016
	on n0 unshare --mount bash -c 'umount --lazy /sys/fs/bpf && exec "$@"' - "$build/tallyctl" \
		--socket "$control" doctor --json >"$work/words" || true
	jq -e '.[] | select(.check == "bpffs") | .level == "fail" and (.mend | contains("mount -t bpf"))' "$work/words"
}

listens() { on n0 ss -Hltn "sport = :$1" | has .; }

doctor_finds_who_has_the_port_of_joins_also_when_tallyd_does_not_run() {
	local other
	pair
	exec_on n0 iperf3 --server --port 31249 >/dev/null 2>&1 &
	other=$!
	until_true listens 31249
	[[ $(finding sockets "" w0 w1) == "fail TCP port 31249 is in use by iperf3 (process $other)"* ]]
	kill "$other"
	wait "$other" || true
	[[ $(finding sockets "" w0 w1) == "ok "* ]]
	start_agent
}

facts each_command_tells_people_and_programs_the_same \
	stats_of_a_job_its_tenant_and_the_ports_add_up \
	a_history_shows_when_a_job_ran \
	a_link_that_goes_down_and_comes_back_is_seen \
	top_shows_the_rates_that_there_are \
	trace_tells_what_becomes_of_a_jobs_packets_and_is_off_afterwards \
	two_trace_at_once_and_the_end_of_one_is_not_that_of_the_other \
	trace_is_off_after_tallyd_was_killed \
	exit_codes_are_zero_one_and_two \
	all_may_look_and_only_root_and_the_group_may_change \
	doctor_finds_nothing_wrong_with_a_healthy_node \
	doctor_finds_what_is_wrong_while_tallyd_runs \
	doctor_finds_who_has_the_port_of_joins_also_when_tallyd_does_not_run
