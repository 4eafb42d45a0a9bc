#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What scripts/run-tests says of test programs, which is all that people and CI see of a run.
# shellcheck source=tests/ctl/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

program() { # NAME LINE...
	printf '#!/bin/bash\n' >"$work/$1"
	printf 'echo "%s"\n' "${@:2}" >>"$work/$1"
	chmod +x "$work/$1"
}

# Far more names than who writes them hands over at once.
many_programs_are_counted_to_the_end() {
	local i long
	long=$(printf '%0200d' 0)
	for i in {1..400}; do program "a_program_$long$i" "ok 1 - fact"; done
	scripts/run-tests --lanes 3 "$work"/a_program_* -- >"$work/log" || return 1
	[[ $(tail -n 1 "$work/log") == "400 passed, 0 failed, 0 skipped" ]]
}

what_failed_is_named_at_the_end() {
	program good "ok 1 - one" "not ok 2 - two # SKIP why"
	program bad "ok 1 - three" "not ok 2 - four"
	program silent
	if scripts/run-tests --lanes 2 "$work/good" "$work/bad" -- "$work/silent" >"$work/log"; then
		return 1
	fi
	grep -q "^failed: $work/bad: 2 - four$" "$work/log" || return 1
	grep -q "^failed: $work/silent: - .* ended with code 0 after 0 good tests$" "$work/log" || return 1
	[[ $(tail -n 1 "$work/log") == "2 passed, 2 failed, 1 skipped" ]]
}

check "many programs are counted to the end" many_programs_are_counted_to_the_end
check "what failed is named at the end" what_failed_is_named_at_the_end
finish
