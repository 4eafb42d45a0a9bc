# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# What the tests of this folder in shell share: a folder for their work, and facts as TAP.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

# shellcheck disable=SC2034 # for those who read this file
build=${TALLY_BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0 failed=0

check() { # NAME COMMAND...: a fact; a command that prints "SKIP why" skips it
	local name=$1
	shift
	count=$((count + 1))
	if "$@" >"$work/said" 2>&1; then
		echo "ok $count - $name$(sed -n 's/^SKIP/ # SKIP/p' "$work/said")"
	else
		echo "not ok $count - $name"
		sed 's/^/# /; 60q' "$work/said"
		failed=1
	fi
}

finish() {
	echo "1..$count"
	exit "$failed"
}
