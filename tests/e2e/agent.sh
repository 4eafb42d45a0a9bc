#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A node run by tallyd: workers join, tallyd comes and goes, quotas shrink and grow.
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
		link w0 n0 rate ${1-1gbit}
		link w1 n0 rate ${1-1gbit}
		link w2 n0 rate ${1-1gbit}
	END
}

small=(-d int32 --int-wild -b 4 -e 64K -f 256 -n 3 -w 0)

workers_join_and_get_sums_over_ipv4() {
	star
	start_agent
	create_job train 3
	join_all train w0 w1 w2 -- "${small[@]}"
	joined_end
	(($(completed_of train) > 0))
}

workers_join_and_get_sums_over_ipv6() {
	star
	start_agent
	create_job train 3 --service "$(bed addr n0 6)"
	family=6 join_all train w0 w1 w2 -- "${small[@]}"
	joined_end
}

# The socket is a file, which namespaces share; a worker finds out where it receives, or says so.
workers_join_through_a_unix_socket() {
	local host address
	star
	start_agent
	create_job train 3
	worker=() joined=(train w0 w1 w2)
	for host in w0 w1 w2; do
		address=''
		[[ $host != w1 ]] || address=$(bed addr w1 4)
		TALLY_ADDRESS=$address TALLY_AGENT=$join TALLY_JOB=train \
			TALLY_TOKEN_FILE=$work/train.token on "$host" "$build/tally-perf" --join \
			--json --hash "${small[@]}" >"$work/$host.train" 2>"$work/$host.train.errors" &
		worker+=($!)
	done
	joined_end
}

each_run_has_an_epoch_and_slots_of_its_own() {
	star
	start_agent
	create_job train 3
	local epoch
	for epoch in 1 2 3; do
		join_all train w0 w1 w2 -- "${small[@]}"
		joined_end
		until_true state_is train waiting
		epochs+=("$(ctl --json job list train | jq '.[0].epoch')")
	done
	((epochs[1] == (epochs[0] + 1) % 65536 && epochs[2] == (epochs[1] + 1) % 65536))
	[[ $(ctl --json status | jq .slots.used) == 0 ]]
}

refused() { # HOST JOB WORDS [arguments...]
	local host=$1 job=$2 words=$3 worker=()
	shift 3
	join_from "$host" "$job" "$@"
	wait "${worker[0]}" && return 1
	grep -F "$words" "$work/$host.$job.errors" || { cat "$work/$host.$job.errors"; return 1; }
}

# All come, and none gets a place.
refused_all() { # JOB WORDS
	local worker joined i
	join_all "$1" w0 w1 w2 -- "${small[@]}"
	for i in 0 1 2; do
		wait "${worker[i]}" && return 1
		grep -F "$2" "$work/w$i.$1.errors" || { cat "$work/w$i.$1.errors"; return 1; }
	done
}

who_may_not_join_is_told_why() {
	star
	start_agent
	create_job train 2
	echo 0123456789abcdef >"$work/other.token"
	chmod 600 "$work/other.token"
	refused w0 other "no such job, or a wrong token"
	mv "$work/train.token" "$work/right.token"
	cp -p "$work/other.token" "$work/train.token"
	refused w0 train "no such job, or a wrong token"
	mv "$work/right.token" "$work/train.token"
	refused w0 train "has ranks 0 to 1" --rank 2
	refused n0 train "is an address of this node itself: workers are on other machines" --agent "$join"
	join_all train w0 -- --rank 1 "${small[@]}"
	until_true state_is train forming
	refused w1 train "rank 1 of job train is taken" --rank 1
	join_from w1 train --rank 0 "${small[@]}"
	joined=(train w0 w1)
	joined_end
}

load() { join_all "$1" w0 w1 w2 -- -d float32 --float-wild -b 256K -e 256K -n 8 -w 0 -s $(($2 * slow)); }

sums_are_beyond() { (($(count COMPLETED) > $1)); }
sums_go_on() { until_true sums_are_beyond $(($(count COMPLETED) + 200)); } # without an agent

# The first half of thirty seconds and more: whatever becomes of tallyd, no call fails.
no_call_fails_while_tallyd_is_restarted_killed_and_upgraded() {
	star
	start_agent
	create_job train 3
	load train 30
	another train 500
	for signal in TERM KILL; do
		end_agent "$signal"
		sums_go_on
		start_agent
		another train 500
	done
	end_agent TERM
	start_agent "$build/next/tallyd"
	another train 500
	end_agent KILL
	start_agent
	another train 500
	[[ $(grep -c 'programs=upgraded' "$work/tallyd.log") == 2 ]]
	while state_is train running && kill -0 "${worker[0]}" 2>/dev/null; do
		end_agent KILL
		start_agent
		another train 100 || break
	done
	joined_end
	jq -es 'map(.wrong // 0) | add == 0' "$work/w0.train"
	# They left a tallyd that had never seen them come.
	until_true state_is train waiting
	[[ $(ctl --json status | jq .slots.used) == 0 ]]
}

held() { ctl --json tenant list "$1" | jq ".[0].$2"; }

# A worker's machine is another one, as after a failover, and the node hears of its new MAC.
move() { # HOST MAC
	on "$1" ip link set dev eth0 address "$2"
	on n0 ip neigh replace "$(bed addr "$1" 4)" lladdr "$2" nud permanent dev "$1"
}
followed() { (($(grep -c 'results readdressed.* job=train workers=1' "$work/tallyd.log") >= $1)); }

workers_that_get_another_mac_are_followed() {
	star
	start_agent
	create_job train 3
	load train 12
	another train 100
	move w1 02:00:00:00:07:01
	until_true followed 1
	another train 300
	# And while nobody is there to hear of it.
	end_agent KILL
	move w2 02:00:00:00:07:02
	start_agent
	until_true followed 2
	another train 300
	joined_end
}

nobody_leaves_in_the_name_of_one_who_is_there() {
	star
	start_agent
	create_job train 3
	load train 6
	another train 100
	on w0 python3 tests/e2e/joiner.py leave "$(bed addr n0 4)" train "$work/train.token" \
		"$(ctl --json job list train | jq '.[0].epoch')" 0 1 2 >"$work/words"
	[[ $(grep -cx left "$work/words") == 3 ]]
	[[ $(ctl --json job list train | jq -r '[.[0].members[].state] | unique[]') == running ]]
	another train 100
	joined_end
}

workers_that_end_while_there_is_no_tallyd_are_missed() {
	star
	start_agent
	create_job train 3
	load train 30
	another train 100
	end_agent KILL
	kill -KILL "${worker[@]}"
	wait "${worker[@]}" 2>/dev/null || true
	start_agent
	until_true state_is train waiting
	[[ $(ctl --json status | jq .slots.used) == 0 ]]
}

# Within a second from now these workers fail, and say why.
fail_within_a_second() { # WORDS WORKER...
	local words=$1 i took start=${EPOCHREALTIME/./}
	shift
	for i; do
		wait "${worker[i]}" && { echo "w$i did not fail"; return 1; }
		took=$(((${EPOCHREALTIME/./} - start) / 1000))
		cat "$work/w$i.train.errors"
		grep -qE "$words" "$work/w$i.train.errors" || return 1
		((took < 1000 * slow)) || { echo "w$i failed after $took ms"; return 1; }
	done
}

a_deleted_jobs_workers_hear_so_within_a_second() {
	star
	start_agent
	create_job train 3
	load train 30
	another train 100
	ctl job del train
	fail_within_a_second "the job was deleted" 0 1 2
	[[ $(ctl --json status | jq .slots.used) == 0 ]]
}

the_others_hear_within_a_second_that_a_rank_died() {
	star
	start_agent
	create_job train 3
	load train 30
	another train 100
	kill -KILL "${worker[2]}"
	fail_within_a_second "rank [0-2] is gone: its connection ended" 0 1
	wait "${worker[2]}" 2>/dev/null || true
	until_true state_is train waiting
	[[ $(ctl --json status | jq .slots.used) == 0 ]]
	join_all train w0 w1 w2 -- "${small[@]}"
	joined_end
}

ranks_run() { [[ $(ctl --json job show "$1" | jq -c '[.[0].members[].state] | unique') == '["running"]' ]]; } # JOB

# Which a restarted tallyd could not, as it did not know whose connection is whose. Who has just
# said that it stays is missed only if its machine says so.
a_restarted_agent_misses_who_has_died() {
	local back
	star
	start_agent
	create_job train 3
	load train 30
	another train 100
	end_agent KILL
	start_agent
	until_true ranks_run train
	back=$SECONDS
	while ((SECONDS <= back + 10)); do another train 100; done
	kill -KILL "${worker[2]}"
	fail_within_a_second "rank [0-2] is gone: its connection ended" 0 1
}

a_quota_shrinks_and_grows_under_load() {
	star
	echo "spill: {memory_mib: 0}" >>"$work/tallyd.yaml" # where what has no slots would go
	start_agent
	ctl tenant add red --slots 512 --packets-per-second 40k >/dev/null
	create_job train 3 --tenant red
	create_job later 3 --tenant red --window 64
	load train 10
	another train 500
	ctl quota red --slots 128 --packets-per-second 10k >/dev/null
	another train 500
	[[ $(held red draining) == true && $(held red slots_used) == 256 ]]
	# What drains is nobody else's yet, and no run may begin beside it.
	refuses "3840 are left" ctl tenant add blue --slots 3841
	refused_all later "has a quota of 128 slots"
	ctl quota red --slots 1024 --packets-per-second 80k >/dev/null
	another train 500
	[[ $(held red draining) == false ]]
	joined_end
	ctl quota red --slots 128 >/dev/null
	join_all train w0 w1 w2 -- "${small[@]}"
	joined_end
}

a_quota_that_is_too_small_is_refused_with_the_numbers() {
	star
	echo "spill: {memory_mib: 0}" >>"$work/tallyd.yaml"
	start_agent
	ctl tenant add red --slots 256 >/dev/null
	create_job train 3 --tenant red --window 64
	refuses "takes 256 slots (two a chunk): tenant red has a quota of 256, and its jobs want 128" ctl job create more --workers 3 --tenant red --window 128
	refuses "the node has 4096, and other tenants keep 256 of them" ctl tenant add blue --slots 4000
}

# From its very start, and also when it is upgraded.
three_capabilities_are_all_that_it_needs() {
	local few=(setpriv "--bounding-set=-all,+bpf,+net_admin,+perfmon" --inh-caps=-all)
	star
	start_agent "${few[@]}" "$build/tallyd"
	create_job train 3
	load train 4
	another train 100
	end_agent TERM
	start_agent "${few[@]}" "$build/next/tallyd"
	grep 'programs=upgraded' "$work/tallyd.log"
	grep -E '^Cap(Prm|Eff|Bnd):.000000c000001000$' "/proc/$daemon/status" >"$work/words"
	(($(wc -l <"$work/words") == 3))
	joined_end
}

reloaded() { (($(grep -c 'configuration reloaded' "$work/tallyd.log") == $1)); }
not_reloaded() { grep -q 'configuration not reloaded' "$work/tallyd.log"; }

a_configuration_is_reloaded_whole_or_not_at_all() {
	star
	start_agent
	create_job train 3
	load train 6
	another train 300
	cp "$work/tallyd.yaml" "$work/first.yaml"
	echo 'tenants: [{name: red, slots: 256}]' >>"$work/tallyd.yaml"
	kill -HUP "$daemon"
	until_true reloaded 1
	[[ $(held red slots) == 256 && $(ctl --json tenant list red | jq -r '.[0].from') == config ]]
	refuses "change it there" ctl tenant del red
	sed -i 's/slots: 256}/slots: 25600}/' "$work/tallyd.yaml"
	kill -HUP "$daemon"
	until_true not_reloaded
	[[ $(held red slots) == 256 ]]
	# The same is said to who waits for the answer.
	refuses "not reloaded, and all is as it was: $work/tallyd.yaml:" ctl reload
	[[ $(held red slots) == 256 ]]
	sed -e "s|^pin: .*|pin: $pin-other|" "$work/first.yaml" >"$work/tallyd.yaml"
	refuses "pin: only a restart changes this key" ctl reload
	sed -e 's|^service: .*|service: "10.77.0.9"|' "$work/first.yaml" >"$work/tallyd.yaml"
	refuses "service: only a restart changes this key" ctl reload
	[[ $(held red slots) == 256 ]]
	cp "$work/first.yaml" "$work/tallyd.yaml"
	ctl reload
	reloaded 2
	refuses "there is no tenant red" ctl tenant list red
	joined_end
}

the_data_plane_goes_with_tallyd_if_it_is_told_so() {
	star
	start_agent
	end_agent TERM
	[[ -e $pin-n0/jobs ]]
	start_agent "$build/tallyd" --detach
	end_agent TERM
	[[ ! -e $pin-n0 ]]
}

two_agents_do_not_run_one_node() {
	star
	start_agent
	refuses "process $daemon" on n0 "$build/tallyd" --config "$work/tallyd.yaml"
	refuses "process $daemon" node n0 detach
}

# Nanoseconds on a processor so far, as the kernel counts them.
used_ns() { cut -d' ' -f1 "/proc/$daemon/schedstat"; }

running_jobs() { [[ $(ctl --json job list | jq 'map(select(.state == "running")) | length') == "$1" ]]; }

sixty_four_jobs_are_watched_for_less_than_a_hundredth_of_a_core() {
	local n stay before used limit
	limit=$(awk "BEGIN { printf \"%d\", 100000000 * $(slower) }")
	star
	start_agent
	mkfifo "$work/stay"
	exec {stay}<>"$work/stay"
	for n in {1..64}; do
		create_job "j$n" 2 --window 16
		"$build/tests/e2e/cycles" "$join" "j$n" "$work/j$n.token" 2 "$(bed addr w0 4)" 0 \
			<"$work/stay" >/dev/null &
	done
	until_true running_jobs 64
	for n in 1 2 3; do # what others do here only adds
		before=$(used_ns)
		sleep 10 # what is measured
		used=$(($(used_ns) - before))
		echo "$used ns, limit $limit"
		((used >= limit)) || break
	done
	((used < limit))
	running_jobs 64
	ctl --json status | jq -e '.sampling_core_percent | ., . > 0 and . < 1'
	exec {stay}>&-
}

memory() { awk '$1 == "VmRSS:" { print $2 }' "/proc/$daemon/status"; }

# Half of them wait and go, the others have runs.
memory_is_flat_over_many_who_come_and_go() {
	local before
	star
	start_agent
	create_job train 3 --window 1
	cycle() { "$build/tests/e2e/cycles" "$join" train "$work/train.token" "$1" "$(bed addr w0 4)" "$2"; }
	cycle 2 2000
	cycle 3 400
	before=$(memory)
	cycle 2 50000
	cycle 3 200
	echo "memory: $before KiB before, $(memory) KiB after"
	(($(memory) <= before + 256))
}

facts workers_join_and_get_sums_over_ipv4 \
	workers_join_and_get_sums_over_ipv6 \
	workers_join_through_a_unix_socket \
	each_run_has_an_epoch_and_slots_of_its_own \
	who_may_not_join_is_told_why \
	no_call_fails_while_tallyd_is_restarted_killed_and_upgraded \
	workers_that_get_another_mac_are_followed \
	nobody_leaves_in_the_name_of_one_who_is_there \
	workers_that_end_while_there_is_no_tallyd_are_missed \
	a_deleted_jobs_workers_hear_so_within_a_second \
	the_others_hear_within_a_second_that_a_rank_died \
	a_restarted_agent_misses_who_has_died \
	a_quota_shrinks_and_grows_under_load \
	a_quota_that_is_too_small_is_refused_with_the_numbers \
	three_capabilities_are_all_that_it_needs \
	a_configuration_is_reloaded_whole_or_not_at_all \
	the_data_plane_goes_with_tallyd_if_it_is_told_so \
	two_agents_do_not_run_one_node \
	sixty_four_jobs_are_watched_for_less_than_a_hundredth_of_a_core \
	memory_is_flat_over_many_who_come_and_go
