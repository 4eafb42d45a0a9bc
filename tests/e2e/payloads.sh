#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A run's payload is what its ways carry, as workers and the node's agent find it out.
#
#   w0 ── 3500 ──┐
#   w1 ── 3500 ──┼── n0
#   w2 ── 1500 ──┤
#   w3 ── 3500 ── x1 ── x0 ──┘    x0 and x1 only route
# shellcheck source=tests/e2e/tree_lib.sh
source "$(dirname "$0")/tree_lib.sh"

short=(-d int32 --int-wild -b 64K -e 64K -n 20 -w 0)
long=(-d int32 -b 1M -e 1M --seconds 60 -n 10 -w 0)

star() { # MTU of the link between x1 and x0
	agent_network <<-END && start_agent
		host w0 w1 w2 w3
		node n0 x0 x1
		link w0 n0 mtu 3500
		link w1 n0 mtu 3500
		link w2 n0
		link w3 x1 mtu 3500
		link x1 x0 mtu $1
		link x0 n0 mtu 3500
	END
}

payload_of() { ctl --json job show "$1" | jq '.[0].payload'; }
has_payload() { # JOB BYTES
	[[ $(payload_of "$1") == "$2" ]] || { echo "job $1 has a payload of $(payload_of "$1"), not $2"; return 1; }
}

a_run_gets_what_all_of_its_ways_carry() {
	star 3500
	create_job train 2
	join_all train w0 w1 -- "${short[@]}"
	joined_end
	has_payload train 3392
	join_all train w0 w3 -- "${short[@]}"
	joined_end
	has_payload train 3392
	join_all train w0 w2 -- "${short[@]}"
	joined_end
	has_payload train 1408
	join_all train w1 w0 -- "${short[@]}"
	joined_end
	has_payload train 3392
	family=6 join_all train w0 w1 -- "${short[@]}" # a job of IPv4 refuses that
	! joined_end >/dev/null || return 1
	create_job six 2 --service "$(bed addr n0 6)"
	family=6 join_all six w0 w1 -- "${short[@]}"
	joined_end
	has_payload six 3328
}

a_payload_that_was_asked_for_stays_and_may_be_too_large() {
	star 3500
	create_job small 2 --payload 1408
	join_all small w0 w1 -- "${short[@]}"
	joined_end
	has_payload small 1408
	create_job large 2 --payload 3392
	join_all large w0 w2 -- "${short[@]}"
	! joined_end >/dev/null || return 1
	has -F 'payload 3392: makes packets of 3484 bytes, and w2 has an MTU of 1500' "$work/w0.large.errors" ||
		{ cat "$work"/w?.large.errors; return 1; }
}

# None of the two ends of the way has that MTU.
a_smaller_link_in_the_middle_is_found() {
	star 1500
	create_job train 2
	join_all train w0 w3 -- "${short[@]}"
	joined_end
	has_payload train 1408
	join_all train w0 w1 -- "${short[@]}"
	joined_end
	has_payload train 3392
}

a_way_that_shrinks_is_what_the_error_names() {
	star 3500
	create_job train 2
	join_all train w0 w3 -- "${long[@]}" --timeout 3000
	until_true state_is train running
	another train 1000
	on x1 ip link set x0 mtu 2000
	! joined_end >/dev/null || return 1
	has -F "packets of up to 3484 bytes are too large for the way to $(bed addr n0), which takes 2000" \
		"$work/w3.train.errors" || { cat "$work"/w?.train.errors; return 1; }
	has -F 'a payload of 1856' "$work/w3.train.errors"
	create_job again 2
	join_all again w0 w3 -- "${short[@]}"
	joined_end
	has_payload again 1856
}

# w2 and w3 come through a1, whose link is smaller.
a_tree_has_the_payload_that_its_links_carry() {
	local name
	agent_network <<-END || return 1
		host w0 w1 w2 w3
		node n0 a0 a1
		link w0 a0 mtu 3500
		link w1 a0 mtu 3500
		link w2 a1 mtu 3500
		link w3 a1 mtu 3500
		link a0 n0 mtu 3500
		link a1 n0 mtu 2000
	END
	for name in a0 a1; do configure_inner "$name" 1024; done
	peers_of a0 a1
	{
		echo "peers:"
		echo "  secret: $work/n0.secret"
		echo "  nodes: [{name: a0, address: $(bed addr a0)}, {name: a1, address: $(bed addr a1)}]"
	} >"$work/peers"
	sed -i '/^peers:/d' "$work/tallyd.yaml" && cat "$work/peers" >>"$work/tallyd.yaml"
	start_levels
	create_job near 2 --tree auto
	join_all near w0 w1 -- "${short[@]}"
	joined_end
	has_payload near 3392
	create_job train 4 --tree auto
	join_all train w0 w1 w2 w3 -- -d int32 --int-wild -b 1M -e 1M --seconds 5 -n 10 -w 0
	joined_end
	has_payload train 1856
	(($(at a1 --json stats | jq .SENT_UP.packets) > 100)) || { at a1 stats; return 1; }
}

# Beyond what native XDP takes; what runs there instead takes payloads as large all the same.
ports_of_9000_get_the_largest_payload() {
	local name
	agent_network <<-END || return 1
		host w0 w1
		node n0
		link w0 n0 plain
		link w1 n0 plain
	END
	for name in w0 w1; do
		on "$name" ip link set eth0 xdp off # of the testbed, which allows 3506
		on "$name" ip link set eth0 mtu 9000
		on n0 ip link set "$name" mtu 9000
	done
	start_agent
	create_job train 2
	join_all train w0 w1 -- "${short[@]}"
	joined_end
	has_payload train 3392
	[[ $(ctl --json status | jq -c '[.ports[].mode] | unique') == '["generic"]' ]] || { ctl status; return 1; }
}

facts a_run_gets_what_all_of_its_ways_carry a_payload_that_was_asked_for_stays_and_may_be_too_large \
	a_smaller_link_in_the_middle_is_found a_way_that_shrinks_is_what_the_error_names \
	a_tree_has_the_payload_that_its_links_carry ports_of_9000_get_the_largest_payload
