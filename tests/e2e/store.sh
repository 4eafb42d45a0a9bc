#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What agents share (agent/store/store.h): the same facts of a file and of a real etcd; and what
# becomes of them when etcd is killed, compacts, forgets a lease, or asks who we are.
#
#	TALLY_ETCD_KILLS=N    how often etcd is killed under load (20)
#
#   w0 (etcd, and those who use it) ── w1 (nobody)
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

exec 3>&1
kills=${TALLY_ETCD_KILLS:-20}
url=http://127.0.0.1:2379
etcd=0

store() { exec_on w0 "$build/tests/e2e/store" "$@"; } # in the background
ask_store() { on w0 "$build/tests/e2e/store" "$@"; }
# What it says where it fails.
refusal() {
	ask_store "$@" >"$work/refusal" 2>&1 && return 1
	cat "$work/refusal"
}

admin() { ETCDCTL_API=3 on w0 etcdctl --endpoints "${endpoint:-$url}" "${as[@]}" "$@"; }
as=()

place() {
	network <<-END
		host w0 w1
		link w0 w1 rate 1gbit
	END
	on w0 ip link set lo up
}

# Nobody is there yet who could be asked.
etcd_answers() { [[ $(on w0 curl -sk -m 2 --cacert "$work/ca.pem" "${endpoint:-$url}/health") == *true* ]]; }

start_etcd() { # ETCD-OPTIONS...
	exec_on w0 etcd --data-dir "$work/etcd" --listen-client-urls "${endpoint:-$url}" \
		--advertise-client-urls "${endpoint:-$url}" \
		--initial-advertise-peer-urls http://127.0.0.1:2380 --listen-peer-urls http://127.0.0.1:2380 \
		--initial-cluster default=http://127.0.0.1:2380 "$@" >>"$work/etcd.log" 2>&1 &
	etcd=$!
	until_true etcd_answers
}

kill_etcd() {
	kill -KILL "$etcd"
	wait "$etcd" 2>/dev/null || true
}

a_file_of_this_machine_is_a_store() {
	place
	ask_store facts local "$work/store.json" >"$work/suite" || return 1
	has -x '1\.\.22' <"$work/suite"
	# What was written is there for the next process; what was leased is not.
	store watch a local "$work/store.json" >"$work/next" &
	until_true has -E '^[0-9]+ a 4$' "$work/next"
	[[ $(refusal put x 1 local "$work/store.json") == *"is another process's" ]]
	kill $!
	wait $!
	! grep leased "$work/store.json" || return 1
	[[ $(stat -c %a "$work/store.json") == 600 ]]
}

what_is_no_store_is_said() {
	place
	echo '{"format": 1' >"$work/broken.json"
	refusal put x 1 local "$work/broken.json" | has 'broken.json:2: .*no store of tallyd'
	echo '{"format": 9, "revision": 1, "keys": []}' >"$work/later.json"
	refusal put x 1 local "$work/later.json" | has 'one of a later tallyd'
	[[ $(cat "$work/later.json") == *9* ]]
	refusal put x 1 etcd ftp://w0 /t/ | has 'a URL that begins with https://'
	refusal put x 1 etcd http://192.0.2.1:2379 /t/ user password | has 'over https:// only'
}

an_etcd_cluster_is_a_store() {
	place
	start_etcd
	ask_store facts etcd "$url" /tally/facts/ >"$work/suite" || return 1
	has -x '1\.\.22' <"$work/suite"
	! admin get --prefix --keys-only / | grep -v '^$\|^/tally/facts/' || return 1
}

# Each counts its own part in the same write: what was told of a write does not matter.
etcd_is_killed_under_load_and_nothing_is_lost() {
	local i pids=() sum=0 own name all did perhaps late away
	place
	start_etcd
	store watch count etcd "$url" /tally/load/ >"$work/watched" &
	local watcher=$!
	for i in 1 2 3; do
		store count "w$i" etcd "$url" /tally/load/ >"$work/w$i" &
		pids+=($!)
	done
	for ((i = 0; i < kills; i++)); do
		all=$(wc -l <"$work/watched")
		until_true more_lines "$work/watched" $((all + 10))
		kill_etcd
		start_etcd
	done
	all=$(wc -l <"$work/watched")
	until_true more_lines "$work/watched" $((all + 10))
	kill "${pids[@]}"
	wait "${pids[@]}"
	all=$(admin get --print-value-only /tally/load/count)
	until_true has -E " count $all\$" "$work/watched"
	kill "$watcher"
	wait "$watcher"
	for i in 1 2 3; do
		own=$(admin get --print-value-only "/tally/load/w$i")
		read -r name _ did _ perhaps _ late _ away <"$work/w$i"
		echo "# $name: $did done, $perhaps perhaps, $late too late, $away not possible; it made $own" >&3
		((own >= did && own <= did + perhaps))
		sum=$((sum + own))
	done
	((sum == all))
	# Who watches has seen each number, in its order, and none twice.
	awk '$2 == "count" { if ($3 != ++n) { print "# " $3 " is not " n; exit 1 } } END { exit !n }' \
		"$work/watched"
	echo "# killed $kills times: $all writes, and each was seen" >&3
}

more_lines() { (($(wc -l <"$1") > $2)); }

# While nobody reads what it says, the watch is ended and its revisions are compacted.
compaction_is_survived() {
	local i
	place
	start_etcd
	ask_store put k1 old etcd "$url" /t/ >/dev/null
	ask_store put k2 stays etcd "$url" /t/ >/dev/null
	ask_store put k3 goes etcd "$url" /t/ >/dev/null
	store watch k etcd "$url" /t/ >"$work/watched" &
	local watcher=$!
	until_true has ' k3 goes' "$work/watched"
	kill -STOP "$watcher"
	kill_etcd
	start_etcd
	for i in 1 2 3; do admin put /t/k1 "new$i"; done
	admin del /t/k3
	admin put /t/k4 comes
	admin compact "$(admin get /t/k4 -w json | jq .header.revision)"
	kill -CONT "$watcher"
	until_true has ' k4 comes' "$work/watched"
	kill "$watcher"
	wait "$watcher"
	has ' k1 new3' <"$work/watched"
	has ' k3 -' <"$work/watched"
	(($(grep -c ' k2 ' "$work/watched") == 1))
	! grep ' new1' "$work/watched"
}

# Its data directory is emptied, or is what it once was: what is there then is told, as another
# store's; and what comes then.
a_store_that_lost_its_data_is_told_apart() {
	local i
	place
	start_etcd
	admin put /t/k1 old
	admin put /t/k2 goes
	admin snapshot save "$work/snapshot"
	for i in 1 2 3 4 5; do admin put /t/k1 "new$i"; done
	admin put /t/k3 later
	store watch k etcd "$url" /t/ >"$work/watched" &
	local watcher=$!
	until_true has ' k3 later' "$work/watched"
	kill_etcd
	rm -r "$work/etcd"
	ETCDCTL_API=3 etcdctl snapshot restore "$work/snapshot" --data-dir "$work/etcd" \
		--initial-cluster default=http://127.0.0.1:2380 \
		--initial-advertise-peer-urls http://127.0.0.1:2380
	start_etcd
	until_true has ' k3 -' "$work/watched"
	(($(grep -cx reset "$work/watched") == 1)) && has ' k1 old' <"$work/watched"
	! grep ' k2 -' "$work/watched" || return 1
	kill_etcd
	rm -r "$work/etcd"
	start_etcd
	until_true has ' k2 -' "$work/watched"
	admin put /t/k4 comes
	until_true has ' k4 comes' "$work/watched"
	kill "$watcher"
	wait "$watcher"
	(($(grep -cx reset "$work/watched") == 2))
}

hold_lease() { # by process $holder
	place
	start_etcd
	store watch l etcd "$url" /t/ >"$work/watched" &
	store lease l1 here etcd "$url" /t/ >"$work/held" &
	holder=$!
	until_true has ' l1 here' "$work/watched"
}

what_is_leased_goes_with_its_process() {
	hold_lease
	kill -KILL "$holder"
	until_true has ' l1 -' "$work/watched"
}

# A process that stood still for longer than its lease hears of it, and writes it again.
who_loses_its_lease_is_told() {
	hold_lease
	kill -STOP "$holder"
	until_true has ' l1 -' "$work/watched"
	kill -CONT "$holder"
	until_true has lost "$work/held"
	until_true here_again
}

here_again() { (($(grep -c ' l1 here' "$work/watched") == 2)); }

# Of three one leads. Who is killed, and who stands still for longer than its lease, is followed by
# another; what a leader of before writes is not done, whatever it believes.
one_leads_and_nobody_else_writes() {
	local i pid=() first second
	place
	start_etcd
	store watch leader etcd "$url" /t/ >"$work/leaders" &
	store watch b etcd "$url" /t/ >"$work/written" &
	for i in 1 2 3; do
		store lead "a$i" etcd "$url" /t/ >"$work/a$i" &
		pid[i]=$!
	done
	until_true is_led
	first=$(leader_now)
	until_true has " by $first" "$work/written"
	kill -STOP "${pid[${first#a}]}"
	until_true is_led_by_another "$first"
	second=$(leader_now)
	until_true has " by $second" "$work/written"
	kill -CONT "${pid[${first#a}]}"
	until_true has "^leader $second\$" "$work/$first"
	kill -KILL "${pid[${second#a}]}"
	until_true is_led_by_another "$second"
	until_true has " by $(leader_now)" "$work/written"
	kill "${pid[1]}" "${pid[2]}" "${pid[3]}" || true # one of them has gone
	wait "${pid[1]}" "${pid[2]}" "${pid[3]}" || true
	tail -n 1 "$work/a1" "$work/a2" "$work/a3"
	# Revision after revision: who writes is who led then.
	sort -n "$work/leaders" "$work/written" | awk '
		$2 == "leader" { leads = $3 }
		$2 == "by" { n++; if ($3 != leads) { print $0 ", and " leads " leads"; bad = 1 } }
		END { print n " writes"; exit bad || n < 3 }'
}

leader_now() { awk '$2 == "leader" { leads = $3 } END { print leads }' "$work/leaders"; }
is_led() { [[ $(leader_now) == a* ]]; }
is_led_by_another() {
	local now
	now=$(leader_now)
	[[ $now == a[1-3] && $now != "$1" ]]
}

received() { on w0 cat /proc/net/dev | awk '$1 == "lo:" { print $2 }'; }

# Each has a lease, connections and a follower of its own, and reports. TALLY_AGENTS: how many.
many_agents_share_one_store() {
	local agents=${TALLY_AGENTS:-200} seconds=${TALLY_SECONDS:-20} before
	place
	start_etcd
	before=$(received)
	ulimit -n 20000
	ask_store crowd "$agents" "$seconds" etcd "$url" /t/ | tee "$work/crowd"
	sed "s/^/# /" "$work/crowd" >&3
	echo "# $((($(received) - before) / (seconds + 5) / agents)) bytes a second and agent, at most" >&3
	has -E '^[0-9]+ changes came to all after [0-9]+ ms, [0-9]{1,4} at most; [0-9]+ reports, 0 failed' "$work/crowd"
}

certificates() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=ca \
		-keyout "$work/ca.key" -out "$work/ca.pem"
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=etcd \
		-keyout "$work/server.key" -out "$work/server.csr"
	openssl x509 -req -in "$work/server.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -days 1 \
		-extfile <(echo subjectAltName=IP:127.0.0.1) -out "$work/server.pem"
} 2>/dev/null

# Over TLS, as a user who may write below one prefix.
a_user_writes_where_it_may() {
	place
	certificates
	endpoint=https://127.0.0.1:2379
	start_etcd --cert-file "$work/server.pem" --key-file "$work/server.key"
	as=(--cacert "$work/ca.pem")
	admin role add tally
	admin role grant-permission tally --prefix=true readwrite /tally/
	admin user add root:root-password
	admin user grant-role root root
	admin user add tally:tally-password
	admin user grant-role tally tally
	admin auth enable
	ask_store facts etcd "$endpoint" /tally/facts/ tally tally-password "$work/ca.pem" >"$work/suite" ||
		cat "$work/suite"
	has -x '1\.\.22' <"$work/suite"
	ask_store put x 1 etcd "$endpoint" /other/ tally tally-password "$work/ca.pem" | has '^EACCES .*permission denied'
	ask_store put x 1 etcd "$endpoint" /tally/ tally wrong "$work/ca.pem" | has '^ENOTCONN .*authentication failed'
	# Whom we do not know we tell no password.
	ask_store put x 1 etcd "$endpoint" /tally/ tally tally-password /etc/ssl/certs/ca-certificates.crt |
		has -i '^ENOTCONN .*certificate'
	! grep -r tally-password "$work/etcd.log" "$work/suite" || return 1
}

command -v etcd >/dev/null || { echo '1..0 # SKIP no etcd here: scripts/setup.sh'; exit 0; }
facts a_file_of_this_machine_is_a_store what_is_no_store_is_said an_etcd_cluster_is_a_store \
	etcd_is_killed_under_load_and_nothing_is_lost compaction_is_survived \
	a_store_that_lost_its_data_is_told_apart \
	what_is_leased_goes_with_its_process who_loses_its_lease_is_told one_leads_and_nobody_else_writes \
	many_agents_share_one_store a_user_writes_where_it_may
