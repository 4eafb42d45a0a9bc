#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: whole networks, with the testbed's own losses. Not collectives.sh, which an
# emulator that interprets every instruction takes half an hour for; netem.sh and the
# allreduces of these have the same paths.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

code=0
for test in topologies faults; do
	echo "# $test"
	tests/e2e/$test.sh || code=$?
done
exit "$code"
