#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Three levels by agents: eight workers, two levels of inner nodes below the root, and the root's
# agent tells all six. What is lost at one level costs time alone.
#
#   w0 w1 ── b0 ──┐
#   w2 w3 ── b1 ──┴── a0 ──┐
#   w4 w5 ── b2 ──┬── a1 ──┴── n0
#   w6 w7 ── b3 ──┘
# shellcheck source=tests/e2e/tree_lib.sh
source "$(dirname "$0")/tree_lib.sh"

large=(-d float32 -b 1M -e 4M -n 3 -w 0)
long=(-d int32 -b 1M -e 1M -n 120 -w 0)

three_levels_begin() { # LINK-OPTIONS: also the job, and its workers join with ranks
	three_levels "$@" || return 1
	start_agent || return 1
	start_all_inner || return 1
	create_job train 8 --tree "$work/tree.json"
}

sums_are_made_at_three_levels_with_loss() {
	local name
	three_levels_begin rate 1gbit loss 0.5
	join_ranks train "${large[@]}"
	joined_end
	for name in a0 a1 b0 b1 b2 b3; do
		echo "$name sent up $(sent_up "$name")"
		(($(sent_up "$name") > 1000))
	done
	ctl job del train
	for name in a0 a1 b0 b1 b2 b3; do
		until_true is_clean_at "$name"
	done
}

came_down() { # "MACHINE PORT": frames
	on "${1% *}" ip -j -s link show dev "${1#* }" | jq '.[0].stats64.rx.packets'
}

# Of each chunk one result leaves the root by each of its links, and so at each level below.
results_are_one_copy_on_each_link() {
	local link before=() i=0 links=("a0 n0" "a1 n0" "b0 a0" "b3 a1" "w0 eth0" "w7 eth0") chunks frames
	three_levels_begin rate 1gbit
	join_ranks train "${long[@]}"
	for link in a0 a1 b0 b1 b2 b3; do
		until_true is_on_at "$link" train
	done
	chunks=$(completed_of train)
	for link in "${links[@]}"; do
		before+=("$(came_down "$link")")
	done
	joined_end
	chunks=$(($(completed_of train) - chunks))
	((chunks > 10000))
	for link in "${links[@]}"; do
		frames=$(($(came_down "$link") - before[i++]))
		echo "$link: $frames frames of $chunks chunks"
		((frames > chunks / 2 && frames < chunks + chunks / 2))
	done
}

# At both levels: the agent alone, and then all that the node had, as after a reboot.
inner_nodes_are_killed_and_lose_their_maps() {
	local name loses_slots=yes
	three_levels_begin rate 1gbit loss 0.5
	join_ranks train "${long[@]}"
	for name in a0 b3; do
		goes_on_at "$name"
		end_inner "$name" KILL
		another train 500
		start_inner "$name"
		goes_on_at "$name"
	done
	for name in a1 b0; do
		end_inner "$name" KILL
		rm -rf "$pin-$name"
		another train 100
		start_inner "$name"
		goes_on_at "$name"
	done
	joined_end
}

facts sums_are_made_at_three_levels_with_loss \
	results_are_one_copy_on_each_link \
	inner_nodes_are_killed_and_lose_their_maps
