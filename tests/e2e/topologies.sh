#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Other ways to connect the same four workers.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

four_on() { # LINK-OPTIONS: a link to n0 for each worker
	network "${attach_options[@]}" <<-END
		host w0 w1 w2 w3
		node n0
		link w0 n0 $*
		link w1 n0 $*
		link w2 n0 $*
		link w3 n0 $*
	END
}
attach_options=()

short_check() {
	run_all -d float32 -b 4 -e 1M -f 64 -n 3
	run_all --verb reduce_scatter -d int32 -b 4 -e 64K -f 64 -n 3
	run_all --verb broadcast -d int64 -b 8 -e 64K -f 64 -n 3
}

#   w0 w1 w2 w3 n0      all on one ordinary switch; the node has a single port
#    └──┴─┬┴──┴──┘
#        s0
a_node_with_one_port_serves_all_workers_behind_it() {
	network <<-END
		host w0 w1 w2 w3
		node n0
		switch s0
		link w0 s0 rate 1gbit loss 0.1
		link w1 s0 rate 1gbit loss 0.1
		link w2 s0 rate 1gbit loss 0.1
		link w3 s0 rate 1gbit loss 0.1
		link n0 s0 rate 1gbit
	END
	describe_job 4 window=32 -- w0 w1 w2 w3
	short_check
	(($(count NO_CHILD) == 0))
}

several_ranks_of_one_host_are_served() {
	network <<-END
		host w0 w1
		node n0
		link w0 n0 rate 1gbit loss 0.1
		link w1 n0 rate 1gbit loss 0.1
	END
	describe_job 4 window=32 -- w0 w0 w1 w0
	short_check
}

#   w0 ─┐
#   w1 ─┴─ a0 ──┐      a0 sends up one packet where two came in;
#   w2 ─────────┼─ n0  results come down to a0, which hands them on
#   w3 ─────────┘
sums_are_made_at_two_levels() {
	network <<-END
		host w0 w1 w2 w3
		node n0 a0
		link w0 a0 rate 1gbit loss 0.5
		link w1 a0 rate 1gbit loss 0.5
		link w2 n0 rate 1gbit loss 0.5
		link w3 n0 rate 1gbit loss 0.5
		link a0 n0 rate 1gbit loss 0.5
	END
	add_job() {
		node a0 job add "$work/job" --below 0-1 &&
			node n0 job add "$work/job" --via 0-1="$(bed addr a0)"
	}
	describe_job 4 -- w0 w1 w2 w3
	short_check
	(($(count_on a0 SENT_UP) > 1000 && $(count_on a0 SENT_DOWN) > 1000))
	attach a0 --replace
	short_check
}

# The lines of docs/job-file.md's example that begin with these words, without their indentation.
example() { # PATTERN
	sed -n '/^## A tree of nodes/,$ s/^   //p' docs/job-file.md | grep -E "^$1"
}

# Each machine of the example has its own BPF file system; here they only have their own networks.
type_on() { # PROMPT COMMAND...
	local name=${1%?}
	shift
	# shellcheck disable=SC2016
	on "$name" env PATH="$PWD/$build:$PATH" unshare --mount bash -c '
		[[ ! -d $0 ]] || mount --bind "$0" /sys/fs/bpf || exit
		cd "$1" && eval "$2"' "$pin-$name" "$work" "$*"
}

the_tree_in_the_documents_works_as_it_stands() {
	local prompt command pids=()
	bed up tests/testbed/topologies/tree4.topo
	example '(job|service|worker) ' >"$work/job.conf"
	mkdir "$pin-a0" "$pin-r0"
	while read -r prompt command; do
		type_on "$prompt" "$command"
	done < <(example '[ar]0# tally-node (attach|job add)')
	while read -r prompt command; do
		type_on "$prompt" "$command" >"$work/${prompt%?}" 2>&1 &
		pids+=($!)
	done < <(example 'w[0-3][$] tally-perf')
	((${#pids[@]} == 4))
	for command in "${pids[@]}"; do
		wait "$command" || { cat "$work"/w[0-3]; return 1; }
	done
	grep -E '^ +32768 ' "$work/w0"
	grep 'rank 0 prints the table' "$work/w3"
	while read -r prompt command; do
		type_on "$prompt" "$command" >>"$work/after-${prompt%?}"
	done < <(example '[ar]0# tally-node (stats|job del)')
	grep -E '^ABSORBED ' "$work/after-a0" # two came in where one went up
	grep -E '^SENT_UP ' "$work/after-a0"
	grep -E '^COMPLETED ' "$work/after-r0"
}

#   w0 ── a0 ── n0     a0 says that rank 1 is behind a1, and a1 that rank 0 is behind a0: each
#   w1 ── a1 ─┘        hands the other what comes down, until its TTL is over
has_come_to_rest() {
	local before=$sent_down
	sent_down=$(count_on a0 SENT_DOWN)
	((sent_down == before))
}
nodes_that_name_each_other_do_not_keep_results_for_ever() {
	local sent_down=0 family
	network <<-END
		host w0 w1
		node n0 a0 a1
		link w0 a0 rate 1gbit
		link w1 a1 rate 1gbit
		link a1 a0 rate 1gbit
		link a0 n0 rate 1gbit
	END
	add_job() {
		node a0 job add "$work/job" --below 0-1 --via 1="$(bed addr a1 "$family")" &&
			node a1 job add "$work/job" --below 0-1 --via 0="$(bed addr a0 "$family")" &&
			node n0 job add "$work/job" --via 0-1="$(bed addr a0 "$family")"
	}
	for family in 4 6; do
		describe_job "$family" -- w0 w1
		run_all -d int32 -b 4K -e 4K -n 3
		until_true has_come_to_rest || { node a0 stats; return 1; }
	done
	# The two did hand things to and fro: more often than once each.
	((sent_down > 4 * $(count COMPLETED)))
}

it_works_over_ipv6() {
	four_on rate 1gbit loss 0.5
	describe_job 6 -- w0 w1 w2 w3
	short_check
	for host in "${hosts[@]}"; do
		on "$host" nstat -az Udp6InCsumErrors | has 'Udp6InCsumErrors *0 '
	done
}

large_packets_are_summed_at_an_mtu_of_3500() {
	four_on mtu 3500 rate 1gbit loss 0.5
	describe_job 4 payload=3392 -- w0 w1 w2 w3
	short_check
	describe_job 6 payload=3328 -- w0 w1 w2 w3
	short_check
}

# Senders' segmented frames arrive whole there: workers must notice, and send such no more but to
# try the path now and then.
generic_xdp_serves_where_there_is_no_native() {
	local host
	attach_options=(--mode generic)
	four_on plain
	for host in w0 w1 w2 w3; do
		on "$host" ethtool -K eth0 tx on tx-udp-segmentation on >/dev/null
	done
	describe_job 4 -- w0 w1 w2 w3
	short_check
	(($(count COALESCED) > 0))
	run_all -d int32 -b 1M -e 1M -n 20
	for rank in 0 1 2 3; do
		jq -e '.retransmitted * 5 < .chunks' "$work/rank$rank"
	done
}

#   w0 (8 ranks) ──┐
#   ...            ├── n0      each rank is a process of its own; TALLY_RANKS=256 is the most
#   w7 (8 ranks) ──┘
sixty_four_workers_get_their_sums() {
	local host all=()
	network <<-END
		host w0 w1 w2 w3 w4 w5 w6 w7
		node n0
		$(printf 'link w%d n0 rate 1gbit loss 0.1\n' {0..7})
	END
	for host in w{0..7}; do
		mapfile -t -O "${#all[@]}" all < <(yes "$host" | head -n $((${TALLY_RANKS:-64} / 8)))
	done
	describe_job 4 window=16 -- "${all[@]}"
	run_all -d int32 --int-wild -b 4 -e 64K -f 4096 -n 2 -w 0 --timeout 60000
	(($(count COMPLETED) > 0 && $(count NO_CHILD) == 0))
}

any_window_works() {
	four_on rate 1gbit loss 1
	for window in 1 2 1024; do
		describe_job 4 window="$window" -- w0 w1 w2 w3
		run_all -d int32 -b 4 -e 64K -f 64 -n 2
	done
}

two_testbeds_and_two_jobs_do_not_mix() {
	local first=$TALLY_TESTBED
	four_on rate 1gbit loss 0.1
	describe_job 4 -- w0 w1 w2 w3
	start_all -d int32 -b 1M -e 1M -n 20
	(
		export TALLY_TESTBED=${first}b
		pin=$pin-b work=$work/b
		mkdir "$work"
		owner=$BASHPID
		trap tear_down EXIT
		set -e
		four_on rate 1gbit loss 0.1
		describe_job 4 -- w0 w1 w2 w3
		short_check
	)
	finish_all
}

facts a_node_with_one_port_serves_all_workers_behind_it \
	several_ranks_of_one_host_are_served \
	sums_are_made_at_two_levels \
	the_tree_in_the_documents_works_as_it_stands \
	nodes_that_name_each_other_do_not_keep_results_for_ever \
	it_works_over_ipv6 \
	large_packets_are_summed_at_an_mtu_of_3500 \
	generic_xdp_serves_where_there_is_no_native \
	sixty_four_workers_get_their_sums \
	any_window_works \
	two_testbeds_and_two_jobs_do_not_mix
