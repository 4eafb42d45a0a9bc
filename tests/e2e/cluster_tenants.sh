#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tenants and tokens that the agents of a cluster share: changed at any node, and the same at all.
#
#   e0 (etcd) ──┐      w1        w3
#   w0 ─────── n0 ──── n1 ────── n3 ── w4
#               └───── n2 ───────┘
#                     w2 w5
# shellcheck source=tests/e2e/cluster_lib.sh
source "$(dirname "$0")/cluster_lib.sh"

has_token() { [[ $(at "$1" job token train) == $(cat "$2") ]]; } # NODE FILE
is_waiting() { [[ $(shared n0 train waiting) == "$1" ]]; }

is_silent() { [[ $(shared n1 train state) == 'root is silent' ]]; }

# Whoever comes with the token of FILE to NODE is refused.
is_refused_at() { # NODE FILE
	local code=0
	cp "$2" "$work/train.token"
	join_at w0 "$1" train --join-timeout 5000
	wait "${worker[-1]}" || code=$?
	unset "worker[-1]"
	has 'wrong token' "$work/w0.train.errors" || code=0
	((code != 0)) || { echo "not refused at $1"; cat "$work/w0.train.errors"; return 1; }
}

a_token_is_rotated_at_any_node() {
	local name
	square
	create_at n0 train 2
	cp "$work/train.token" "$work/first"
	join_at w3 n0 train --seconds 15 -b 64K -e 64K
	join_at w4 n1 train --seconds 15 -b 64K -e 64K
	until_true runs_at n3 train
	at n1 job rotate train --token-file "$work/second" >/dev/null
	! cmp -s "$work/first" "$work/second" || return 1
	has_token n1 "$work/second"
	for name in n0 n2 n3; do
		until_true has_token "$name" "$work/second"
	done
	until_true has 'token changed: job=train' "$work/n3.log"
	for name in n0 n2 n3; do
		is_refused_at "$name" "$work/first"
	done
	# The run of before knows nothing of that.
	runs_at n3 train
	finish train w3 w4
	cp "$work/second" "$work/train.token"
	join_at w3 n2 train
	join_at w4 n0 train
	finish train w3 w4
	! grep -rF "$(cat "$work/second")" "$work"/n*.log || return 1
	{ at n0 job rotate other || true; } 2>&1 | has 'there is no job other'
}

# Who waits for a place waits with a token that opens nothing any more; and an agent that was away
# follows when it is back.
who_waits_or_was_away_follows_a_rotation() {
	local code=0
	square
	create_at n0 train 2
	rm -f "$work/second"
	cp "$work/train.token" "$work/first"
	join_at w3 n0 train
	join_at w4 n1 train
	finish train w3 w4
	is_root train n3
	end_at n3 TERM
	until_true is_silent
	join_at w1 n1 train --join-timeout 30000
	until_true is_waiting 1
	at n2 job rotate train --token-file "$work/second" >/dev/null
	wait "${worker[0]}" || code=$?
	worker=()
	((code != 0))
	has 'the job has a new token: join again' "$work/w1.train.errors" ||
		{ cat "$work/w1.train.errors"; return 1; }
	start_at n3
	until_true has 'token changed: job=train' "$work/n3.log"
	is_refused_at n3 "$work/first"
	cp "$work/second" "$work/train.token"
	join_at w3 n3 train
	join_at w4 n1 train
	finish train w3 w4
}

# --- tenants ---------------------------------------------------------------------------------------

slots_of() { at "$1" tenant list "$2" --json 2>/dev/null | jq -r '.[0] | "\(.from) \(.slots)"'; } # NODE TENANT
has_slots() { [[ $(slots_of "$1" "$2") == "$3 $4" ]]; } # NODE TENANT FROM SLOTS
has_none() { ! at "$1" tenant list "$2" >/dev/null 2>&1; } # NODE TENANT
held() { # NODE: what it knows of who holds red
	at "$1" quota --cluster --json | jq -c '[.[] | select(.name == "red").nodes[] | {(.node): .held}] | add'
}
holds() { [[ $(held "$1") == "$2" ]]; } # NODE {"n0":true,...}
all_hold='{"n0":true,"n1":true,"n2":true,"n3":true}'

a_tenant_is_of_all_nodes() {
	local name
	square
	at n1 tenant add red --slots 256 --packets-per-second 1M --cluster >"$work/shown"
	has -E '^red +256 ' "$work/shown"
	for name in n0 n1 n2 n3; do
		until_true has_slots "$name" red cluster 256
	done
	until_true holds n2 "$all_hold"
	at n3 quota red --slots 512 --cluster >/dev/null
	for name in n0 n1 n2 n3; do
		until_true has_slots "$name" red cluster 512
		at "$name" tenant list red --json | jq -e '.[0].packets_per_second == 1000000' >/dev/null
	done
	{ at n0 tenant add red --slots 4 --cluster || true; } 2>&1 | has 'the cluster has a tenant red already'
	{ at n0 quota red --slots 4 || true; } 2>&1 | has "tenant red is the cluster's"
	{ at n0 quota blue --slots 4 --cluster || true; } 2>&1 | has 'the cluster has no tenant blue'
	{ at n0 tenant set red --ingress n1 --cluster || true; } 2>&1 | has 'name that, too: NODE/n1'
	# The cluster names no ingress points, so they are the node's, and a change of the cluster leaves them.
	at n0 tenant set red --ingress "$(interfaces n0 | head -n 1)" >/dev/null
	# Its jobs run, wherever they are created.
	create_at n2 train 2 --tenant red
	join_at w3 n0 train
	join_at w4 n1 train
	finish train w3 w4
	at n3 job show train --json | jq -e '.[0].tenant == "red" and .[0].in_software == false' >/dev/null
	# An agent that was away follows when it is back, and has what it knew until then.
	end_at n1 TERM
	at n2 quota red --slots 128 --cluster >/dev/null
	start_at n1
	until_true has_slots n1 red cluster 128
	until_true has_slots n0 red cluster 128
	at n0 tenant list red --json | jq -e '.[0].ingress | length == 1' >/dev/null
	kill_etcd
	end_at n1 KILL
	start_at n1
	has_slots n1 red cluster 128
	start_etcd
	# It goes everywhere, as soon as no job of it is left.
	until_true is_busy
	at n0 job del train
	until_true is_deleted
	for name in n0 n1 n2 n3; do
		until_true has_none "$name" red
	done
	[[ -z $(keys_of tenant/) ]]
	at n2 quota --cluster | has 'no tenants of the cluster'
}
is_deleted() { at n3 tenant del red --cluster 2>/dev/null; } # when that node has heard of the job's end
is_busy() { { at n0 tenant del red --cluster || true; } 2>&1 | has 'tenant red has jobs of the cluster, such as train'; }

# Two workers are at n2, and so would the root be.
a_job_is_placed_where_its_tenants_slots_are_held() {
	square
	at n2 tenant add blue --slots 900 >/dev/null
	at n0 tenant add red --slots 256 --cluster >/dev/null
	until_true holds n1 '{"n0":true,"n1":true,"n2":false,"n3":true}'
	at n1 quota --cluster | has 'red is not held at n2, with 0 slots of 256: 256 slots: the node has 1024'
	at n3 cluster | has 'red is not held at n2'
	at n2 status | has 'tenant red of the cluster has not the slots or ingress points here'
	create_at n0 train 2 --tenant red
	join_at w2 n2 train
	join_at w5 n0 train
	finish train w2 w5
	! is_root train n2 || return 1
	[[ $(shared n0 train 'refused | length') == 0 ]] # nobody had to refuse it
	at n2 tenant del blue
	until_true holds n1 "$all_hold"
	at n0 job del train
	create_at n0 train 2 --tenant red
	join_at w2 n2 train
	join_at w5 n0 train
	finish train w2 w5
	is_root train n2
}

a_nodes_own_tenant_holds_there() {
	square
	at n0 tenant add red --slots 256 --cluster >/dev/null
	until_true holds n1 "$all_hold"
	# The configuration takes its place, and the cluster's comes back when it is out of there.
	cp "$work/n3.yaml" "$work/n3.before"
	echo 'tenants: [{name: red, slots: 64}]' >>"$work/n3.yaml"
	at n3 reload
	has_slots n3 red config 64
	until_true holds n1 '{"n0":true,"n1":true,"n2":true,"n3":false}'
	at n1 quota red --cluster | has 'red is not held at n3, with 64 slots of 256: the node has a tenant of that name of its own, in its configuration'
	at n1 quota red --slots 32 --cluster >/dev/null
	until_true has_slots n0 red cluster 32
	until_true holds n1 "$all_hold"
	at n1 quota red --cluster | has "red at n3 is the node's own, with 64 slots"
	end_at n3 TERM
	start_at n3
	has_slots n3 red config 64
	at n0 tenant del red --cluster
	until_true has_none n1 red
	has_slots n3 red config 64
	at n0 tenant add red --slots 16 --cluster >/dev/null
	cp "$work/n3.before" "$work/n3.yaml"
	at n3 reload
	until_true has_slots n3 red cluster 16
}

points_of() { at "$1" tenant list red --json 2>/dev/null | jq -c '.[0].ingress'; } # NODE
has_points() { [[ $(points_of "$1") == "$2" ]]; } # NODE ["PORT",...]

# Two workers are at n3. Who comes from elsewhere is refused, also by the root.
a_tenant_comes_in_where_the_cluster_says() {
	local code=0
	square
	at n1 tenant add red --slots 256 --cluster --ingress 'n3/w3' --ingress 'n3/w4 vlan 0' \
		--ingress 'n0/w0' >/dev/null
	until_true holds n2 '{"n0":true,"n1":false,"n2":false,"n3":true}'
	at n2 quota --cluster >"$work/shown"
	has -E '^red +256 +2 of 2 nodes .* n3/w3, n3/w4 vlan 0' "$work/shown" || { cat "$work/shown"; return 1; }
	! has 'not held' "$work/shown" || return 1
	until_true has_points n3 '["w3","w4 vlan 0"]'
	until_true has_points n0 '["w0"]'
	has_none n1 red && has_none n2 red
	! at n1 status | has 'tenant red' || return 1
	{ at n3 tenant set red --ingress any || true; } 2>&1 | has 'where the cluster does not name any'
	create_at n2 train 2 --tenant red
	join_at w3 n1 train
	join_at w4 n2 train
	finish train w3 w4
	is_root train n3
	at n3 job show train --json | jq -e '.[0].in_software == false' >/dev/null
	create_at n2 lone 1 --tenant red
	join_at w1 n1 lone
	wait "${worker[0]}" || code=$?
	worker=()
	((code != 0))
	has 'tenant red may not come in from there' "$work/w1.lone.errors" || { cat "$work"/w1.lone*; return 1; }
	[[ $(shared n1 lone root) == n[03] ]]
	at n1 job del lone
	# An agent knows it without the store, too.
	kill_etcd
	end_at n3 KILL
	start_at n3
	has_points n3 '["w3","w4 vlan 0"]'
	{ at n3 tenant set red --ingress any || true; } 2>&1 | has 'where the cluster does not name any'
	start_etcd
}

# The job leaves a node where its tenant may not come in any more, and then the tenant does.
a_tenants_ingress_points_move() {
	square
	at n1 tenant add red --slots 256 --cluster >/dev/null
	until_true holds n2 "$all_hold"
	at n0 tenant set red --ingress w0 >/dev/null
	create_at n2 train 2 --tenant red
	join_at w3 n1 train
	join_at w4 n2 train
	finish train w3 w4
	is_root train n3
	at n1 tenant set red --cluster --ingress n0/n1 --ingress n0/n2 --ingress n2/eth9 >/dev/null
	until_true has_points n0 '["n1","n2"]'
	until_true has 'job refused: job=train reason="its tenant may not come in at this node any more"' "$work/n3.log"
	until_true not_known_at_n2
	at n2 status | has "ingress: eth9 is not one of the node's ports"
	has_slots n2 red cluster 256 && has_points n2 '[]' # and so nowhere
	{ at n2 job create own --workers 1 --tenant red || true; } 2>&1 | has 'tenant red may come in nowhere at this node'
	join_at w3 n3 train
	join_at w4 n3 train
	finish train w3 w4
	is_root train n0
	until_true has_none n3 red
	at n1 tenant set red --cluster --ingress n0/n1 --ingress n0/n2 --ingress n2/w2 >/dev/null
	until_true has_points n2 '["w2"]'
	until_true holds n1 '{"n0":true,"n1":false,"n2":true,"n3":false}'
	# Where the cluster names none, it is the nodes' again.
	at n1 tenant set red --cluster --ingress any >/dev/null
	until_true holds n1 "$all_hold"
	for name in n0 n1 n2 n3; do
		until_true has_points "$name" '[]'
	done
	at n2 tenant set red --ingress w2 >/dev/null
	at n2 job create own --workers 1 --tenant red >/dev/null
}
not_known_at_n2() { at n1 quota --cluster | has "red is not held at n2, with 256 slots of 256: ingress: eth9 is not one of the node's ports"; }

as() { # GROUP NODE tallyctl-arguments...
	setpriv --reuid 65534 --regid 65534 --groups "$(getent group "$1" | cut -d : -f 3)" \
		"$work/tallyctl" --socket "$work/$2.control" "${@:3}"
}

a_tenants_group_may_what_is_of_its_jobs_at_any_node() {
	square
	chmod 711 "$work"
	cp "$build/tallyctl" "$work/tallyctl"
	at n0 tenant add red --slots 64 --group games --cluster >/dev/null
	at n0 tenant add blue --slots 64 --group audio --cluster >/dev/null
	until_true has_slots n2 red cluster 64
	until_true has_slots n2 blue cluster 64
	as games n2 job create train --workers 2 --tenant red --cluster >"$work/first" 2>/dev/null
	until_true has_token n1 "$work/first"
	[[ $(as games n1 job token train) == $(cat "$work/first") ]]
	[[ $(as games n1 cluster --json | jq -c '[.jobs[].name, .tenants[].name]') == '["train","red"]' ]]
	[[ $(as audio n1 cluster --json | jq -c '[.jobs[].name, .tenants[].name]') == '["blue"]' ]]
	for command in token rotate del; do
		{ as audio n1 job "$command" train || true; } 2>&1 | has "only root may do that, and the group of the job's tenant"
	done
	as games n3 job rotate train >"$work/second"
	until_true has_token n0 "$work/second"
	{ as games n3 tenant set red --slots 8 --cluster || true; } 2>&1 | has 'only root may do that'
	# A job of one node that has the name of another tenant's is not a way to that one's token.
	at n1 job create mine --workers 1 --tenant blue --token-file "$work/own" >/dev/null
	create_at n0 mine 1 --tenant red
	until_true knows_mine
	[[ $(as audio n1 job token mine) == $(cat "$work/own") ]]
	[[ $(as games n2 job token mine) == $(cat "$work/mine.token") ]]
	as games n2 job del train
}
knows_mine() { [[ $(shared n1 mine state) == forming ]]; }

# --- what nodes refuse --------------------------------------------------------------------------

refused_by_all() { [[ $(shared n1 train 'refused | length') == 4 ]]; }
refused_by_none() { [[ $(shared n1 train 'refused | length') == 0 ]]; }

# No node has that many slots. When they are fewer, each takes its refusal back by itself.
a_refusal_ends_with_its_reason() {
	square
	at n0 tenant add red --slots 100000 --cluster >/dev/null
	create_at n0 train 2 --tenant red
	join_at w3 n0 train
	join_at w4 n1 train
	until_true refused_by_all
	[[ $(shared n1 train state) == 'to be placed' ]]
	at n1 cluster train | has 'n2 refuses it: .*red'
	{ at n0 job place train --node n2 || true; } 2>&1 | has 'node n2 refuses it: .*red'
	at n2 quota red --slots 256 --cluster >/dev/null
	until_true refused_by_none
	finish train w3 w4
	(($(cat "$work"/n?.log | grep -c 'job refused: job=train') == 4)) || { grep refused "$work"/n?.log; return 1; }
}

# n1 keeps all but 64 slots for a tenant of its own.
a_run_is_not_placed_where_it_would_lose_its_slots() {
	square
	at n1 tenant add mine --slots 960 >/dev/null
	create_at n0 train 2
	join_at w3 n0 train --seconds 15 -b 64K -e 64K
	join_at w4 n1 train --seconds 15 -b 64K -e 64K
	until_true runs_somewhere
	[[ $(shared n0 train root) != n1 ]]
	{ at n0 job place train --node n1 || true; } 2>&1 | has 'it wants 256, and tenant default gets 64 of the 1024 of n1'
	[[ $(shared n0 train root) != n1 ]]
	at n0 job place train --node n2
	until_true is_root train n2
	finish train w3 w4
}

is_in_software() { [[ $(shared n2 train state) == 'in software' ]]; }

# It wants 2,048 slots, of nodes that have 1,024.
a_run_in_software_is_said_to_be() {
	square
	create_at n0 train 2 --window 1024
	join_at w3 n0 train --seconds 8 -b 64K -e 64K
	join_at w4 n1 train --seconds 8 -b 64K -e 64K
	until_true is_in_software
	at n1 cluster | has 'train .* in software '
	finish train w3 w4
}

# --- a store that lost its data --------------------------------------------------------------------

says_trouble() { at "$1" status | has "$2"; } # NODE WORDS
has_no_job() { [[ $(at "$1" job list --json | jq 'map(select(.name == "train")) | length') == 0 ]]; }
is_calm() { ! at "$1" status | has 'came back empty'; }
knows_nothing() { [[ $(at "$1" cluster --json | jq -c '[.jobs, .tenants | length]') == '[0,0]' ]]; }

# Its data directory is emptied: nobody has deleted what it does not know any more.
a_store_that_comes_back_empty_ends_nothing() {
	local name pid
	square
	at n0 tenant add red --slots 256 --cluster >/dev/null
	until_true holds n1 "$all_hold"
	create_at n0 train 2 --tenant red
	join_at w3 n0 train --seconds 25 -b 64K -e 64K
	join_at w4 n1 train --seconds 25 -b 64K -e 64K
	until_true runs_at n3 train
	kill_etcd
	rm -r "$work/etcd"
	start_etcd
	for name in n0 n1 n2 n3; do
		until_true knows_nothing "$name"
	done
	until_true says_trouble n3 'came back empty or older, and does not know job train and others any more'
	until_true says_trouble n1 'does not know tenant red any more'
	at n2 events --json | jq -e '.events | map(select(.kind == "deleted")) | length == 1 and
		.[0].why == "the store came back without it"' >/dev/null || { at n2 events; return 1; }
	(($(grep -c "store came back empty or older" "$work/n2.log") == 1))
	# Others can be created, and run beside it.
	until_true leads_again
	create_at n1 other 2 --tenant red
	join_at w1 n0 other --seconds 3 -b 64K -e 64K
	join_at w2 n2 other --seconds 3 -b 64K -e 64K
	for pid in "${worker[@]:2}"; do
		wait "$pid" || { cat "$work"/*.other.errors; return 1; }
	done
	worker=("${worker[@]:0:2}")
	runs_at n3 train
	for name in n0 n1 n2 n3; do
		has_slots "$name" red cluster 256
	done
	# The run ends as its workers want, with the same sums, and then the job goes.
	finish train w3 w4
	until_true has_no_job n3
	# Who sets the tenant again may change and delete it.
	at n2 tenant add red --slots 128 --cluster >/dev/null
	for name in n0 n1 n2 n3; do
		until_true has_slots "$name" red cluster 128
		until_true is_calm "$name"
	done
	at n0 job del other
	until_true deleted_red
	for name in n0 n1 n2 n3; do
		until_true has_none "$name" red
	done
	! grep -h 'tenant not held\|job refused' "$work"/n*.log || return 1
}
leads_again() { [[ $(leader n1) == n[0-3] ]]; }
deleted_red() { at n3 tenant del red --cluster; }

command -v etcd >/dev/null || { echo '1..0 # SKIP no etcd here: scripts/setup.sh'; exit 0; }
facts a_token_is_rotated_at_any_node who_waits_or_was_away_follows_a_rotation \
	a_tenant_is_of_all_nodes a_job_is_placed_where_its_tenants_slots_are_held \
	a_tenant_comes_in_where_the_cluster_says a_tenants_ingress_points_move \
	a_nodes_own_tenant_holds_there a_tenants_group_may_what_is_of_its_jobs_at_any_node \
	a_refusal_ends_with_its_reason a_run_is_not_placed_where_it_would_lose_its_slots \
	a_run_in_software_is_said_to_be \
	a_store_that_comes_back_empty_ends_nothing
