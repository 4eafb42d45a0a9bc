#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A tallyd with AddressSanitizer and UBSan through all that it does: no error while it runs, and
# no memory left at its end.
#
#   w0 ──┐
#        ├── n0 (tallyd)
#   w1 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

sanitized=$build/sanitized/tallyd
export UBSAN_OPTIONS=print_stacktrace=1

# A leak or an error of memory is exit code 23, whatever else there was.
start_watched() {
	export ASAN_OPTIONS=exitcode=23:detect_leaks=1:detect_stack_use_after_return=1
	start_agent "$sanitized"
}
end_watched() {
	end_agent TERM && ! grep -E 'Sanitizer|runtime error' "$work/tallyd.log"
}

pair() {
	agent_network <<-END
		host w0 w1
		node n0
		link w0 n0 rate 200mbit
		link w1 n0 rate 200mbit
	END
	start_watched
	create_job train 2
	create_job small 2 --window 1
}

small=(-d int32 --int-wild -b 4 -e 16K -f 64 -n 3 -w 0)
cycle() { # WORKERS CYCLES
	"$build/tests/e2e/cycles" "$join" small "$work/small.token" "$1" "$(bed addr w0 4)" "$2"
}
run() { # JOB
	join_all "$1" w0 w1 -- "${small[@]}"
	joined_end
}

workers_come_and_go_two_thousand_times() {
	pair
	cycle 1 1750
	cycle 2 250
	run train
	end_watched
}

many_tenants_and_jobs_come_and_go() {
	local i
	pair
	for i in {1..20}; do
		ctl tenant add "t$i" --slots 8 --ingress "w0 vlan $i source 10.77.1.0/24" >/dev/null
		create_job "j$i" 2 --tenant "t$i" --window 2
		ctl quota "t$i" --slots "$((i + 4))" --packets-per-second 1k >/dev/null
		refuses "" ctl tenant add "t$i" --slots 8
	done
	ctl --json job list | jq -e 'length == 22' >/dev/null
	for i in {1..20}; do
		refuses "" ctl tenant del "t$i"
		ctl job del "j$i"
		ctl tenant del "t$i"
	done
	run train
	end_watched
}

reloaded() { (($(grep -c 'configuration reloaded' "$work/tallyd.log") == $1)); }
refused() { (($(grep -c 'configuration not reloaded' "$work/tallyd.log") == $1)); }
reload() { # CONDITION... TEXT: the configuration with this line
	cp "$work/first.yaml" "$work/tallyd.yaml"
	echo "${*: -1}" >>"$work/tallyd.yaml"
	kill -HUP "$daemon"
	until_true "${@:1:$#-1}"
}

has_more() { (($(wc -l <"$work/trace") > $1)); }

configurations_are_read_again_and_again_while_a_run_goes_on() {
	local i tracer
	local loses_slots=1 # their number changes
	pair
	cp "$work/tallyd.yaml" "$work/first.yaml"
	join_all train w0 w1 -- -d int32 -b 64K -e 64K -n 8 -w 0 -s 10
	another train 100
	"$build/tallyctl" --socket "$control" trace --every 10 >"$work/trace" &
	tracer=$!
	for i in 1 2 3; do
		reload reloaded $((2 * i - 1)) "tenants: [{name: red, slots: $((i * 16)), ingress: [w0]}]"
		reload refused $((2 * i - 1)) "tenants: [{name: red, slots: many}]"
		reload refused $((2 * i)) "tenants: [{name: red, slots: 200000}]"
		sed -i "s/^slots: .*/slots: $((4096 << i))/" "$work/first.yaml"
		reload reloaded $((2 * i)) ""
		another train 100
		until_true has_more "$(wc -l <"$work/trace")"
	done
	kill "$tracer"
	joined_end
	end_watched
}

one_tallyd_follows_another() {
	local i
	pair
	for i in 1 2 3; do
		join_all train w0 w1 -- -d int32 -b 64K -e 64K -n 8 -w 0 -s 3
		another train 100
		end_watched
		start_watched
		another train 100
		end_agent KILL
		start_watched
		joined_end
		until_true state_is train waiting
	done
	end_watched
}

everybody_asks_for_everything_at_once() {
	local i pids=() command
	pair
	join_all train w0 w1 -- -d int32 -b 64K -e 64K -n 8 -w 0 -s 6
	another train 100
	for i in 1 2 3; do
		"$build/tests/e2e/hostile" "$control" 20 garbage >/dev/null &
		pids+=($!)
		"$build/tests/e2e/hostile" "$join" 20 garbage >/dev/null &
		pids+=($!)
		"$build/tests/e2e/hostile" "$control" 5 say $'{"do": "trace"}\n' >/dev/null &
		pids+=($!)
	done
	for i in {1..10}; do
		for command in status "tenant list" "job list" "job show train" stats links "top --once" "job token train"; do
			# shellcheck disable=SC2086
			ctl $command >/dev/null
		done
		on n0 curl --silent --fail http://127.0.0.1:9464/metrics | promtool check metrics
	done
	kill "${pids[@]}" 2>/dev/null || true
	joined_end
	end_watched
}

facts workers_come_and_go_two_thousand_times \
	many_tenants_and_jobs_come_and_go \
	configurations_are_read_again_and_again_while_a_run_goes_on \
	one_tallyd_follows_another \
	everybody_asks_for_everything_at_once
