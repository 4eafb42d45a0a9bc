#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Read this file first: the smallest rung that runs in a guest.
#
# In a guest: does this kernel take the programs, and do they do there what they do elsewhere?
set -euo pipefail
cd "$(dirname "$0")/../.."

code=0
export CMOCKA_MESSAGE_OUTPUT=TAP
build/tests/vm/insns || code=$?
for test in build/tests/bpf/test_*; do
	echo "# ${test##*/}"
	if [[ $test == */test_limits ]]; then
		echo "ok # SKIP 1,024 jobs take minutes in an emulator"
	else
		"$test" || code=$?
	fi
done
exit "$code"
