#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What operators get wrong in a cluster: names that are there twice, or are not the same. Each is
# said, and nothing is done twice.
#
#   e0 (etcd) ──┐            w1
#   w0 ─────── n0 ─────────── n1 ─────────── n2 ── w2
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "$0")/cluster_lib.sh"

line() {
	cluster <<-END || return 1
		host e0 w0 w1 w2
		node n0 n1 n2
		link e0 n0 rate 200mbit
		link w0 n0 rate 100mbit
		link n0 n1 rate 100mbit
		link w1 n1 rate 100mbit
		link n1 n2 rate 100mbit
		link w2 n2 rate 100mbit
	END
	greet w0 w1 w2 && until_all_see_all
}

has_trouble() { at "$1" status --json | jq -r '.troubles[]' | has "$2"; } # NODE WORDS
has_no_trouble() { [[ $(at "$1" status --json | jq '.troubles | length') == 0 ]]; }
is_at() { at n0 topology --json | jq -e --arg node "$1" --arg address "$2" \
	'.machines[] | select(.name == $node) | .address == $address' >/dev/null; } # NODE ADDRESS
jobs_of() { at "$1" job list --json | jq length; } # NODE

restart_as() { # NODE KEYS-OF-CLUSTER
	end_at "$1" TERM || return 1
	sed -i "s|^cluster: {node: [^,]*,|cluster: {$2,|" "$work/$1.yaml"
	start_at "$1"
}

# n2 comes as n1, too: jobs that are placed at n1 are made there alone.
of_two_agents_with_one_name_the_first_one_has_it() {
	line
	restart_as n2 'node: n1'
	until_true has_trouble n2 "another agent reports as node n1 (at $(bed addr n1)): give this one another cluster.node"
	has_no_trouble n1
	create_at n0 train 2
	at n0 job place train --node n1 --stay || true # workers first
	join_at w0 n0 train --seconds 12
	join_at w2 n2 train --seconds 12
	until_true runs_somewhere
	at n0 job place train --node n1 --stay
	until_true is_root train n1
	until_true runs_at n1 train
	(($(jobs_of n2) == 0)) || { at n2 job list; return 1; }
	is_at n1 "$(bed addr n1)"
	finish train w0 w2
	(($(grep -c 'name taken' "$work/n2.log") == 1))
	! grep 'name taken' "$work/n1.log" || return 1
	# When that one ends, its name is free.
	end_at n1 KILL
	patiently has_no_trouble n2
	until_true is_at n1 "$(bed addr n2)"
}

# An agent that was restarted does not wait for the lease of the one before.
an_agent_that_was_killed_has_its_name_again_at_once() {
	line
	end_at n1 KILL
	start_at n1
	until_true is_reported n1
	! grep 'name taken' "$work/n1.log" || return 1
	until_true sees_all n1
}
# The other end of a link is of another cluster: each would have a leader, and nobody would wonder.
another_cluster_at_a_link_is_said() {
	line
	restart_as n2 'node: n2, name: tally2'
	until_true has_trouble n1 'n2 at port n2 is of cluster tally2, this one of tally'
	until_true has_trouble n2 'n1 at port n1 is of cluster tally, this one of tally2'
	finds n1 warn 'nodes of one cluster have the same cluster.name'
	(($(grep -c 'another cluster heard' "$work/n1.log") == 1))
	end_at n2 TERM
	until_true has_no_trouble n1
	finds n1 ok 'cluster tally of 2 nodes; 1 are heard' || finds n1 ok 'cluster tally of 3 nodes'
}
finds() { # NODE LEVEL WORDS: of doctor's check of the cluster
	{ on "$1" "$build/tallyctl" --socket "$work/$1.control" doctor --json || true; } |
		jq -r --arg level "$2" '.[] | select(.check == "cluster" and .level == $level).text' | has "$3"
}

# Each try takes other milliseconds, and says so.
a_store_that_is_gone_is_logged_once() {
	line
	kill_etcd
	until_true has_trouble n1 'store of the cluster has not been heard for'
	on w1 ping -f -q -w 15 "$(bed addr n0)" >/dev/null || true # loads are to be reported
	finds n1 fail 'Is etcd there'
	! at n1 doctor --json | jq -r '.[] | select(.check == "data plane").text' | has store || return 1
	(($(grep -c 'report not stored' "$work/n1.log") == 1)) || { grep 'not stored' "$work/n1.log"; return 1; }
}
# What an agent that was never told does not know is not nothing; and what was refused is not done.
what_the_store_has_not_said_is_not_known() {
	line
	create_at n1 train 2
	has -E 'result=done request=.*job-create.*"train"' "$work/n1.log"
	! at n1 job create train --workers 2 --cluster --token-file "$work/again" 2>/dev/null || return 1
	has -E 'result=EEXIST request=.*job-create.*"train"' "$work/n1.log"
	(($(grep -c 'result=done request=.*job-create' "$work/n1.log") == 1))
	end_at n1 TERM
	kill_etcd
	start_at n1
	until_true has_trouble n1 'store of the cluster was never heard'
	! at n1 quota --cluster >"$work/words" 2>&1 || return 1
	has 'which tenants the cluster has is not known' "$work/words"
	at n1 topology | has 'store of the cluster was never heard'
	at n1 events | has 'store of the cluster was never heard'
}
is_reported() { at "$1" status --json | jq -e .cluster.reported >/dev/null; }

command -v etcd >/dev/null || { echo '1..0 # SKIP no etcd here: scripts/setup.sh'; exit 0; }
facts of_two_agents_with_one_name_the_first_one_has_it \
	an_agent_that_was_killed_has_its_name_again_at_once another_cluster_at_a_link_is_said \
	a_store_that_is_gone_is_logged_once what_the_store_has_not_said_is_not_known
