#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Cables flip bits, both ways: no sum is wrong, no call fails, and all ranks have the same bits.
#
#   w0 ──┐
#   w1 ──┼── n0      1 Gbit/s, each cable flips one bit in some of its frames
#   w2 ──┤
#   w3 ──┘
#
# Open flips make the UDP checksum wrong. Kernels look at the checksum, so workers lose what is
# flipped on its way down; the node does not look, so what is flipped on its way up is summed
# unless the node finds the flip by other means. Hidden flips are covered by the checksum, so node
# and workers get all of them. scripts/testbed says where these come from.
#
# Two flips of payload in one sum can cancel in the check, which is linear: the same bit of two
# words, bit 63 always, bit 62 in half of the cases, and so on. So where payload is flipped often,
# it is flipped once at most: on the way of one contribution, or on the way down.
#
# Flips depend on the seed $TALLY_SEED, and on the order of the frames.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

export TALLY_SEED=${TALLY_SEED:-1}
exec 3>&1 # what is printed in any case

star() { # LINK-OPTIONS [LINK-OPTIONS-OF-OTHERS-THAN-W0]
	network <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0 rate 1gbit $1
		link w1 n0 rate 1gbit ${2-$1}
		link w2 n0 rate 1gbit ${2-$1}
		link w3 n0 rate 1gbit ${2-$1}
	END
}

corrupt=0 ran=0
run_calls() { # tally-perf-arguments...
	run_all -b "$size" -e "$size" -w 0 -n "$calls" "$@" || { echo "failed: $*"; return 1; }
	corrupt=$((corrupt + $(jq -s 'map(.corrupt) | add' "$work"/rank?)))
	ran=$((ran + calls))
}

flips() { bed status --json | jq -c '[.links[] | .up.flipped, .down.flipped]'; }
checksum_errors() { # what the workers' kernels have dropped
	local host
	for host in "${hosts[@]}"; do
		on "$host" nstat -az UdpInCsumErrors Udp6InCsumErrors | grep InCsum
	done | awk '{ sum += $2 } END { print sum }'
}

tell() { # LINK-OPTIONS
	echo "# $1: $(flips | jq add) flips in $ran calls of $size; workers found $corrupt," \
		"their kernels $(checksum_errors);" \
		"node: $(node n0 stats --json | jq -r '[to_entries[] | select(.key |
			test("CORRUPT|SPOILED|CONFLICT|OVERLAP|BAD_|MALFORMED|WRONG_EPOCH|UNKNOWN_JOB"))
			| select(.value.packets > 0) | "\(.key) \(.value.packets)"] | join(", ")')" >&3
}

all_is_right_with() { # FAMILY LINK-OPTIONS [LINK-OPTIONS-OF-OTHERS-THAN-W0]
	local family=$1 code=0
	star "${@:2}"
	describe_job "$family" -- w0 w1 w2 w3
	{
		run_calls -d int32 &&
			run_calls -d float32 &&
			run_calls -d int64 &&
			run_calls --verb reduce --root 1 -d int32 &&
			run_calls --verb broadcast --root 2 -d float32
	} || code=1
	tell "$2"
	((code == 0)) || return 1
	# Every cable has flipped, as it was told; and kernels have seen just what they were to see.
	if [[ $2 == *"flip "* ]]; then
		flips | jq -e 'min > 0' >/dev/null
	else
		flips | jq -e 'max > 100' >/dev/null
	fi
	[[ $2 == *any* ]] || (($(checksum_errors) == 0)) || [[ $2 != *hidden* ]]
}

size=1M calls=10
rare() { all_is_right_with "${2-4}" "flip 0.1 flip-in $1"; }
often() { all_is_right_with "${2-4}" "flip 1 flip-in $1"; }
up_often() { all_is_right_with 4 "flip-up 2 flip-in $1" ""; }
down_often() { all_is_right_with 4 "flip-down 1 flip-in $1"; }

open_flips_anywhere_in_1_of_1000_frames_do_no_harm() { rare any; }
open_flips_in_payloads_in_1_of_50_frames_of_a_worker_do_no_harm() { up_often payload; }
hidden_flips_anywhere_in_1_of_1000_frames_do_no_harm() { rare "any flip-hidden"; }
hidden_flips_in_headers_in_1_of_1000_frames_do_no_harm() { rare "header flip-hidden"; }
hidden_flips_in_headers_in_1_of_100_frames_do_no_harm() { often "header flip-hidden"; }
hidden_flips_in_payloads_in_1_of_1000_frames_do_no_harm() { rare "payload flip-hidden"; }
hidden_flips_in_payloads_in_1_of_50_frames_of_a_worker_do_no_harm() {
	up_often "payload flip-hidden"
}
hidden_flips_in_payloads_in_1_of_100_frames_on_their_way_down_do_no_harm() {
	down_often "payload flip-hidden"
}
hidden_flips_do_no_harm_over_ipv6() { often "header flip-hidden" 6; }

facts open_flips_anywhere_in_1_of_1000_frames_do_no_harm \
	open_flips_in_payloads_in_1_of_50_frames_of_a_worker_do_no_harm \
	hidden_flips_anywhere_in_1_of_1000_frames_do_no_harm \
	hidden_flips_in_headers_in_1_of_1000_frames_do_no_harm \
	hidden_flips_in_headers_in_1_of_100_frames_do_no_harm \
	hidden_flips_in_payloads_in_1_of_1000_frames_do_no_harm \
	hidden_flips_in_payloads_in_1_of_50_frames_of_a_worker_do_no_harm \
	hidden_flips_in_payloads_in_1_of_100_frames_on_their_way_down_do_no_harm \
	hidden_flips_do_no_harm_over_ipv6
