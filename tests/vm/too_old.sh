#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest whose kernel is too old: one line says what it lacks, and nothing is left behind.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/../e2e/lib.sh"

one_line_names_what_is_missing() {
	ip link add v0 type veth peer name v1
	ip link set v0 up
	"$build/tally-node" attach v0 2>"$work/refusal" && return 1
	cat "$work/refusal"
	(($(wc -l <"$work/refusal") == 1))
	grep -q 'this kernel (5.10.*) lacks .*, which Linux has since 5.13' "$work/refusal"
	[[ ! -e /sys/fs/bpf/tally ]]
	[[ $(ip link show v0) != *xdp* ]]
}

facts one_line_names_what_is_missing
