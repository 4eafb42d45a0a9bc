#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Demo and tour, as impatient people use them: whatever ends them, they leave no namespace, no
# process, no pin and no token.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

# Programs in the background of a script ignore ^C, and what is ignored stays so; not here. The
# process number is that of the program and of its group. Its directories are in $TMPDIR.
begin() { # PROGRAM...: output in $work/shown
	mkdir -p "$work/tmp"
	TMPDIR=$work/tmp env --default-signal setsid "$@" >"$work/shown" 2>&1 &
	begun=$!
}

has_shown() { grep -q "$1" "$work/shown"; }
is_there() { compgen -G "$1" >/dev/null; }

# The testbed's name ends with the number of the process that made it.
nothing_is_left() { # PROCESS
	local left
	left=$(compgen -G "/run/netns/*$1-*"; compgen -G "/run/tally-testbed/*$1"
		compgen -G "/sys/fs/bpf/tally-*$1*"; ls "$work/tmp"; pgrep -af "$work/tmp") || true
	[[ -z $left ]] || { echo "$1 has left: $left"; cat "$work/shown"; return 1; }
}

press() { # SIGNAL: again and again, at somebody's pace, until the whole group has ended
	while kill -s "$1" -- "-$begun" 2>/dev/null; do
		sleep 0.1
	done
	if wait "$begun"; then return 1; fi
}

n0_is_there() { is_there "/run/netns/demo$begun-n0"; }
a_signal_ends_the_demo_when() { # SIGNAL CONDITION...
	begin scripts/demo 1
	slow=$((5 * slow)) until_true "${@:2}" # training is work, and other tests may run beside it
	press "$1"
	nothing_is_left "$begun"
}

# While it builds, trains, and has trained.
signals_end_the_demo_at_each_step() {
	a_signal_ends_the_demo_when INT n0_is_there
	a_signal_ends_the_demo_when INT has_shown '^Training'
	a_signal_ends_the_demo_when TERM has_shown 'in one process'
}

# Nobody has its output any more, and its session has ended.
closing_its_terminal_ends_the_demo() {
	mkdir -p "$work/tmp"
	rm -f "$work/shown"
	TMPDIR=$work/tmp script -qfec "echo \$\$ >$work/pid; exec scripts/demo 1" "$work/shown" \
		>/dev/null 2>&1 </dev/null &
	begun=$!
	until_true is_there "$work/shown"
	until_true has_shown '^Training'
	kill -s KILL "$begun"
	wait "$begun" 2>/dev/null || true
	until_true nothing_is_left "$(<"$work/pid")" >/dev/null || nothing_is_left "$(<"$work/pid")"
}

# Also when it writes nothing but what went wrong.
a_reader_who_leaves_ends_the_demo() {
	local lines
	mkdir -p "$work/tmp"
	for lines in 0 2; do
		TMPDIR=$work/tmp bash -c 'echo $$ >"$0"; exec scripts/demo 1 2>&1' "$work/pid" |
			head -n "$lines" >"$work/shown" || true
		nothing_is_left "$(<"$work/pid")"
	done
}

the_demo_takes_nothing_from_the_environment() {
	begin env TALLY_ADDRESS=192.0.2.1 TALLY_AGENT=192.0.2.2 TALLY_JOB=other TALLY_RANK=9 \
		TALLY_TOKEN_FILE=/nowhere TALLY_SOCKET=/nowhere TALLY_TESTBED=other scripts/demo 1
	wait "$begun" || { cat "$work/shown"; return 1; }
	has_shown 'the same bits'
	nothing_is_left "$begun"
}

a_wrong_argument_is_answered_with_the_usage() {
	local code wrong
	for wrong in abc 0 -1 '1 2' 1000; do
		code=0
		# shellcheck disable=SC2086
		scripts/demo $wrong >"$work/shown" 2>&1 || code=$?
		has_shown '^usage: scripts/demo \[EPOCHS\]'
		((code == 2 && $(wc -l <"$work/shown") == 1))
	done
}

the_tour_can_be_interrupted() {
	begin scripts/tour
	until_true has_shown 'tally-perf'
	press INT
	nothing_is_left "$begun"
}

a_network_that_is_half_built_is_removed() {
	local name=half$$ seen
	for seen in w0 w3 n0 w1-n0; do
		TALLY_TESTBED=$name begin scripts/testbed up tests/testbed/topologies/star4.topo
		until_true is_there "/run/netns/$name-$seen"
		press INT
		nothing_is_left "$name"
	done
}

# Of the tests' words themselves.
a_test_can_be_interrupted() {
	TALLY_FACTS=collectives_are_exact_without_loss begin tests/e2e/collectives.sh
	until_true is_there "/sys/fs/bpf/tally-e2e$begun-n0"
	press INT
	nothing_is_left "$begun"
}

facts signals_end_the_demo_at_each_step \
	closing_its_terminal_ends_the_demo \
	a_reader_who_leaves_ends_the_demo \
	the_demo_takes_nothing_from_the_environment \
	a_wrong_argument_is_answered_with_the_usage \
	the_tour_can_be_interrupted \
	a_network_that_is_half_built_is_removed \
	a_test_can_be_interrupted
