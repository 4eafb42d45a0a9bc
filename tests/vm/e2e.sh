#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: the host's own networks. Of losses there is netem.sh, by the kernel's own emulator; what
# faults.sh and collectives.sh wait for would take an emulator that interprets every instruction
# a quarter of an hour each.
cd "$(dirname "$0")/../.." || exit 1
exec tests/e2e/topologies.sh
