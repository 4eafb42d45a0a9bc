#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# scripts/bench-fair: what it says of samples that are known, and that it gets some by itself.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

folder=$work/fair

# Of phases of 4 seconds at 8 Mbit/s, which are 10,000 bytes for each percent and second.
round_of() { # NUMBER, then % of both jobs where they are two, and of job 1 and TCP beside it
	awk -v job1="$2" -v job2="$3" -v beside="$4" -v tcp="$5" 'BEGIN {
		for (at = 0; at <= 14; at += 0.5) {
			print at, a, b, c
			a += 5000 * (at < 1 ? 90 : at < 5 ? job1 : at < 9 ? 30 : at < 13 ? beside : 90)
			b += 5000 * (at < 1 ? 0 : at < 5 ? job2 : at < 9 ? 30 : 0)
			c += 5000 * (at < 5 ? 0 : at < 9 ? 30 : at < 13 ? tcp : 0)
		}
	}' >"$folder/8mbit-$1.samples"
}
say() { scripts/bench-fair -o "$folder" -t 4 "$@" 8mbit >"$work/printed" 2>&1; }
figure() { jq -s "map(select(.phase == \"$1\" and .round == $2))[0].$3 * 100 | round" "$folder/fair.json"; }
says_only() { # EXIT-CODE LINE: of one round, beside its table
	local code=0
	say -r 1 || code=$?
	((code == $1)) && [[ $(grep 8mbit: "$work/printed") == "$2" ]]
}
refuses() { # WORDS ARGUMENTS...
	local said
	said=$(scripts/bench-fair -o "$folder" "${@:2}" 2>&1) && return 1
	[[ $said == *"$1"* ]]
}
new_folder() { rm -rf "$folder" && mkdir "$folder"; }

samples_become_shares() {
	new_folder
	round_of 0 60 30 50 40
	round_of 1 45 45 45 45
	round_of 2 40 50 40 50
	say || { cat "$work/printed"; return 1; }
	cat "$work/printed"
	(($(figure jobs 0 job1) == 6000 && $(figure jobs 0 job2) == 3000))
	(($(figure jobs 0 jain) == 90 && $(figure jobs 1 jain) == 100 && $(figure three 0 jain) == 100))
	(($(figure tcp 0 cubic) == 4000 && $(figure after 0 all) == 9000))
	has -E '^jobs +45 \(40 to 60\) +45 \(30 to 50\) +- +90 \(90 to 90\) +0.988 \(0.9 to 1\)$' "$work/printed"
	has -E '^8mbit, window 512, 3 rounds' "$work/printed"
	(($(grep -c 8mbit: "$work/printed") == 0))
	# 140 columns of 0.1 s, and three curves beside the equal shares.
	grep -E '^memory ' "$folder/fair.curves" | awk '{ exit NF != 141 }'
	grep -E '^job-1 ' "$folder/fair.curves" | has -F ' 90.0 (90.0-90.0) 45.0 (40.0-60.0) 45.0 (40.0-60.0)'
	grep -E '^equal ' "$folder/fair.curves" | has -F ' 100.0 (100.0-100.0) 50.0 (50.0-50.0)'
	(($(grep -c '^<path d="M' "$folder/fair.svg") > 3 * 140))
}

unequal_shares_are_the_exit_code() {
	new_folder
	round_of 0 75 15 53 37
	says_only 1 "MISSED: 8mbit: Jain's index of two jobs is below 0.9"
	round_of 0 45 45 55 35
	says_only 1 'MISSED: 8mbit: the job leaves TCP less than 40 %'
	round_of 0 45 45 35 55
	says_only 1 'MISSED: 8mbit: TCP leaves the job less than 40 %'
	round_of 0 45 25 35 55
	says_only 0 '8mbit: no verdict, since a round filled only 70 %'
}

# What it measures depends on what else the machine does, so only that it does is looked at.
a_run_has_all_flows() {
	new_folder
	scripts/bench-fair -o "$folder" -r 1 -t 4 -w 64 20mbit >"$work/printed" 2>&1 ||
		has MISSED: "$work/printed" || { cat "$work/printed"; return 1; }
	cat "$work/printed"
	jq -es 'length == 5 and (map(.phase) == ["alone", "jobs", "three", "tcp", "after"]) and
		all(.all > 5) and all(.[1, 2]; .job1 > 1 and .job2 > 1) and all(.[2, 3]; .cubic > 1)' \
		"$folder/fair.json"
}

what_cannot_be_measured_is_refused() {
	new_folder
	refuses "no rate 'fast'" fast
	refuses 'SECONDS is a multiple of 4' -t 3 8mbit
}

facts samples_become_shares unequal_shares_are_the_exit_code a_run_has_all_flows \
	what_cannot_be_measured_is_refused
