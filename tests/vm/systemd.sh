#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest whose first process is systemd: the unit, as it is installed. Its node is in a
# network namespace, which is all that is added to it.
#
#   w0 ──┐
#   w1 ──┴── n0 (tallyd.service)
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/../e2e/agent_lib.sh"

control=/run/tally/control.sock
drop_ins=/run/systemd/system/tallyd.service.d

drop_in() { # NAME LINES: for [Service]
	mkdir -p "$drop_ins"
	printf '[Service]\n%s\n' "$2" >"$drop_ins/$1.conf"
	systemctl daemon-reload
}

in_state() { [[ $(systemctl show --property "$1" --value tallyd) == "$2" ]]; }
process() { systemctl show --property MainPID --value tallyd; }
journal() { journalctl --quiet --unit tallyd --output cat "$@"; }
said() { journal | has -F "$1"; }

# The machine goes on from fact to fact: what the last one left is removed by the next one.
fresh_node() { # [LINE-OF-CONFIGURATION...]
	systemctl stop tallyd
	systemctl reset-failed tallyd 2>/dev/null || true # "not loaded": it never was anything
	rm -rf "$drop_ins" /var/lib/tally/*
	[[ ! -e /sys/fs/bpf/tally ]] || tally-node detach
	bed up /dev/stdin <<-END
		host w0 w1
		node n0
		link w0 n0
		link w1 n0
	END
	{
		echo "ports: [w0, w1]"
		echo "service: $(bed addr n0 4)"
		(($# == 0)) || printf '%s\n' "$@"
	} >/etc/tally/tallyd.yaml
	drop_in namespace "NetworkNamespacePath=/run/netns/$TALLY_TESTBED-n0"
}

start_node() {
	fresh_node "$@"
	systemctl start tallyd || { journal; return 1; }
	create_job train 2
}

load() { join_all train w0 w1 -- -d int32 --int-wild -b 64K -e 64K -n 8 -w 0 -s "$1"; }

it_is_started_when_it_says_that_it_is_ready() {
	fresh_node
	systemctl start tallyd
	answers # at once
	in_state ActiveState active
	in_state Type notify
	create_job train 2
	load 1
	joined_end
}

# The bounding set stays the unit's, which does not let tallyd make it smaller.
has_three_capabilities() {
	grep -E '^Cap(Prm|Eff):.000000c000001000$' "/proc/$(process)/status" >"$work/words"
	(($(wc -l <"$work/words") == 2))
}

# No call is refused by the unit, and none is needed that it does not name.
it_may_what_the_unit_says_and_no_more() {
	start_node
	has_three_capabilities
	grep -E '^Uid:(.999){4}$' "/proc/$(process)/status"
	[[ $(stat -c %U /sys/fs/bpf/tally /var/lib/tally/state.json "$control" | sort -u) == tally ]]
	grep -x 'Seccomp:.2' "/proc/$(process)/status"
	grep -x 'NoNewPrivs:.1' "/proc/$(process)/status"
	if nsenter --mount --target "$(process)" touch /etc/mark /usr/mark; then return 1; fi
	if journal | grep -iE 'permitted|denied'; then return 1; fi
}

sums_go_on_while_it_is_reloaded_restarted_and_killed() {
	local before
	start_node
	load 60
	another train 50
	echo 'tenants: [{name: red, slots: 256}]' >>/etc/tally/tallyd.yaml
	systemctl reload tallyd
	until_true said "configuration reloaded"
	[[ $(ctl --json tenant list red | jq '.[0].slots') == 256 ]]
	systemctl restart tallyd
	another train 50
	before=$(process)
	systemctl kill --signal KILL tallyd
	until_true in_state NRestarts 1
	until_true answers
	(($(process) != before))
	another train 50
	joined_end
}

# A tallyd of root, as older units had it, leaves files that are root's.
what_root_has_left_is_taken_over() {
	start_node
	systemctl stop tallyd
	chown -R root:root /sys/fs/bpf/tally /var/lib/tally
	systemctl start tallyd || { journal; return 1; }
	until_true state_is train waiting
	load 1
	joined_end
}

# However often it fails: StartLimitIntervalSec=0.
it_is_started_again_after_more_failures_than_five() {
	local i
	start_node
	for i in 1 2 3 4 5 6 7; do
		systemctl kill --signal KILL tallyd
		until_true in_state NRestarts "$i"
		until_true answers
	done
}

# What it stops answering to is the watchdog, too.
one_that_hangs_is_ended_and_started_again() {
	start_node
	drop_in soon "WatchdogSec=5"
	systemctl restart tallyd
	kill -STOP "$(process)"
	until_true in_state NRestarts 1
	until_true answers
	journalctl --quiet --unit tallyd | grep -i watchdog
}

a_wrong_configuration_is_named_where_one_looks() {
	fresh_node "colour: blue"
	if systemctl start tallyd; then return 1; fi
	until_true said colour
	sed -i /colour/d /etc/tally/tallyd.yaml
	systemctl start tallyd
	answers
}

stopping_it_leaves_the_sums_and_their_state() {
	start_node
	load 20
	another train 50
	systemctl stop tallyd
	[[ -e /sys/fs/bpf/tally/jobs && -e /var/lib/tally/state.json && -d /run/tally ]]
	joined_end
	systemctl start tallyd
	until_true state_is train waiting
}

# As the unit says: it opens the other program by its number.
a_port_is_shared_with_the_capability_that_the_unit_names() {
	fresh_node
	sed -i 's/w0,/{name: w0, share: true},/' /etc/tally/tallyd.yaml
	mkdir -p /sys/fs/bpf/other
	bpftool prog loadall "$build/tests/bpf/beside.bpf.o" /sys/fs/bpf/other
	on n0 bpftool net attach xdpdrv pinned /sys/fs/bpf/other/beside dev w0
	drop_in share "CapabilityBoundingSet=CAP_SYS_ADMIN
AmbientCapabilities=CAP_SYS_ADMIN"
	systemctl start tallyd || { journal; return 1; }
	ctl status | grep "^w0" | has "beside XDP program"
	has_three_capabilities
	rm -r /sys/fs/bpf/other
}

members() { on n0 xdp-loader status w0 | awk '$1 == "=>" { printf "%s ", $3 }'; }
members_are() { [[ $(members) == "$1" ]] || { on n0 xdp-loader status w0; journal; return 1; }; }

# libxdp's dispatcher is root's: the unit says what else it needs, and without that tallyd does.
a_port_with_a_dispatcher_is_shared_by_the_drop_in_that_the_unit_names() {
	fresh_node
	sed -i 's/w0,/{name: w0, share: true},/' /etc/tally/tallyd.yaml
	on n0 xdp-loader load -m native w0 "$build/tests/bpf/beside.bpf.o"
	if systemctl start tallyd; then return 1; fi
	said "to share the port takes CAP_SYS_ADMIN"
	members_are "beside "
	drop_in share "$(sed -n "s/^#\t//p" /usr/lib/systemd/system/tallyd.service)
CapabilityBoundingSet=CAP_SYS_ADMIN
AmbientCapabilities=CAP_SYS_ADMIN"
	systemctl restart tallyd || { journal; return 1; }
	members_are "tally_port beside "
	create_job train 2
	load 40
	another train 20
	systemctl kill --signal KILL tallyd
	until_true in_state NRestarts 1
	until_true answers
	members_are "tally_port beside "
	on n0 xdp-loader unload w0 --all
	joined_end
}

facts it_is_started_when_it_says_that_it_is_ready \
	it_may_what_the_unit_says_and_no_more \
	sums_go_on_while_it_is_reloaded_restarted_and_killed \
	what_root_has_left_is_taken_over \
	it_is_started_again_after_more_failures_than_five \
	one_that_hangs_is_ended_and_started_again \
	a_wrong_configuration_is_named_where_one_looks \
	stopping_it_leaves_the_sums_and_their_state \
	a_port_is_shared_with_the_capability_that_the_unit_names \
	a_port_with_a_dispatcher_is_shared_by_the_drop_in_that_the_unit_names
