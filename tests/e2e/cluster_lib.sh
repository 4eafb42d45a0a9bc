# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the e2e tests of clusters share, over lib.sh: nodes, each with a real tallyd, and one real
# etcd that they share, on the host e0.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

declare -A daemon=() # process of each node's tallyd
etcd=0

at() { # NODE tallyctl-arguments...
	local name=$1
	shift
	"$build/tallyctl" --socket "$work/$name.control" "$@"
}
answers_at() { at "$1" status >/dev/null 2>&1; }

configure() { # NODE [STORE]: the configuration of its tallyd
	local name=$1 port rate
	local store=${2:-"etcd: [http://$(bed addr e0):2379]"}
	rm -f "$work/$name".{state,log,cluster}
	{
		echo "ports:"
		for port in $(interfaces "$name"); do
			rate=$(rate_of "$name" "$port")
			echo "  - {name: $port${rate:+, rate_mbps: $rate}}"
		done
		echo "slots: ${slots:-1024}"
		echo "pin: $pin-$name"
		echo "state: $work/$name.state"
		echo "service: [\"$(bed addr "$name" 4)\", \"$(bed addr "$name" 6)\"]"
		echo "control: {socket: $work/$name.control}"
		echo "join: {socket: $work/$name.join}"
		echo "metrics: {listen: \"127.0.0.1:9464\"}"
		echo "cluster: {node: $name, $store${steering:+, steering: $steering}${finds:+, finds_ways: $finds}}"
		[[ -z ${secret:-} ]] || echo "peers: {secret: $work/secret}"
	} >"$work/$name.yaml"
}

# Mbit/s of the cable behind a port, as the topology says.
rate_of() { # NODE PORT
	awk -v a="$1" -v b="$2" '$1 == "link" && (($2 == a && $3 == b) || ($2 == b && $3 == a)) {
		for (i = 4; i < NF; i++) if ($i == "rate") { sub(/mbit$/, "", $(i + 1)); print $(i + 1) } }' \
		"$work/topology"
}

start_at() { # NODE
	exec_on "$1" "$build/tallyd" --config "$work/$1.yaml" 2>>"$work/$1.log" &
	daemon[$1]=$!
	until_true answers_at "$1" || { cat "$work/$1.log"; return 1; }
}

end_at() { # NODE SIGNAL
	kill -s "$2" "${daemon[$1]}" || return 1
	wait "${daemon[$1]}" 2>/dev/null || true
	unset "daemon[$1]"
}

etcd_url() { echo "http://$(bed addr e0):${1:-2379}"; }
etcd_answers() { [[ $(on e0 curl -s -m 2 "$(etcd_url)/health") == *true* ]]; }
keys_of() { ETCDCTL_API=3 on e0 etcdctl --endpoints "$(etcd_url)" get --prefix "/tally/tally/$1" "${@:2}"; }

start_etcd() {
	exec_on e0 etcd --data-dir "$work/etcd" --listen-client-urls "$(etcd_url)" \
		--advertise-client-urls "$(etcd_url)" --initial-advertise-peer-urls "$(etcd_url 2380)" \
		--listen-peer-urls "$(etcd_url 2380)" --initial-cluster "default=$(etcd_url 2380)" \
		>>"$work/etcd.log" 2>&1 &
	etcd=$!
	until_true etcd_answers
}

kill_etcd() {
	kill -KILL "$etcd"
	wait "$etcd" 2>/dev/null || true
}

nodes() { awk '$1 == "node" { for (i = 2; i <= NF; i++) print $i }' "$work/topology"; }

# The network on standard input, with e0 in it; etcd and all agents run. $cluster_starts is a
# function that starts the store, and $cluster_store one that says where it is, if it is not that
# one etcd.
cluster() {
	local name
	cat >"$work/topology"
	bed up "$work/topology" || return 1
	rm -rf "$work"/etcd*
	(umask 077 && openssl rand -hex 32 >"$work/secret")
	"${cluster_starts:-start_etcd}" || return 1
	for name in $(nodes); do
		configure "$name" ${cluster_store:+"$($cluster_store)"} && start_at "$name" || return 1
	done
}

# Links of the picture, as one node knows it, in one order: each as "A B", the lesser name first.
# Hosts have the names of the topology again.
drawn() { # NODE
	local name names
	names=$(for name in $(awk '$1 == "host" { for (i = 2; i <= NF; i++) print $i }' \
		"$work/topology"); do
		echo "h$(bed addr "$name") $name"
	done)
	at "$1" topology --export | awk -v names="$names" '
		BEGIN { n = split(names, w, /[ \n]/); for (i = 1; i < n; i += 2) real[w[i]] = w[i + 1] }
		$1 == "link" { a = $2 in real ? real[$2] : $2; b = $3 in real ? real[$3] : $3
			print a < b ? a " " b : b " " a }' | sort
}

# The same of the topology's file.
meant() {
	awk '$1 == "link" { print $2 < $3 ? $2 " " $3 : $3 " " $2 }' "$work/topology" | sort
}

is_xml() { python3 -c 'import sys, xml.dom.minidom as d; d.parse(sys.argv[1])' "$1"; } # FILE

sees_all() { [[ $(drawn "$1") == "$(meant)" ]]; }
until_all_see_all() {
	local name
	for name in $(nodes); do
		until_true sees_all "$name" || { drawn "$name"; return 1; }
	done
}

# Neighbours become known when somebody talks.
greet() { # HOST...
	local host
	for host; do
		on "$host" ping -c 1 -W 2 "$(bed addr n0)" >/dev/null || return 1
	done
}

runs_at() { [[ $(at "$1" job show "$2" --json 2>/dev/null | jq -r '.[0].state') == running ]]; } # NODE JOB
patiently() { local slow=$((slow * 3)); until_true "$@"; } # a job rests for 30 s, a lease is 10

square() {
	cluster <<-END || return 1
		host e0 w0 w1 w2 w3 w4 w5
		node n0 n1 n2 n3
		link e0 n0 rate 200mbit
		link w0 n0 rate 100mbit
		link n0 n1 rate 100mbit
		link n0 n2 rate 100mbit
		link w1 n1 rate 100mbit
		link w2 n2 rate 100mbit
		link n1 n3 rate 100mbit
		link n2 n3 rate 100mbit
		link w3 n3 rate 100mbit
		link w4 n3 rate 100mbit
		link w5 n2 rate 100mbit
	END
	greet w0 w1 w2 w3 w4 w5 && until_all_see_all
}

# Routing takes the direct way from n0 to n3, which is slow.
triangle() {
	cluster <<-END || return 1
		host e0 w0 w1 w2 w3
		node n0 n1 n3
		link e0 n0 rate 200mbit
		link w0 n0 rate 100mbit
		link w1 n0 rate 100mbit
		link w2 n1 rate 100mbit
		link w3 n3 rate 100mbit
		link n0 n3 rate 8mbit
		link n0 n1 rate 40mbit
		link n1 n3 rate 40mbit
	END
	greet w0 w1 w2 w3 && until_all_see_all
}

# Rules and routes by which packets take ways of the cluster's own.
steered() { { on "$1" ip rule; on "$1" ip -6 rule; } | grep -c '^8400:.*proto 84'; } # NODE
routes() { { on "$1" ip route show table all proto 84; on "$1" ip -6 route show table all proto 84; } | grep -c 'table 20479344'; }
has_rules() { (($(steered "$1") == $2 && $(routes "$1") == $3)); } # NODE RULES ROUTES

create_at() { # NODE JOB WORKERS [tallyctl-options...]
	rm -f "$work/$2.token"
	at "$1" job create "$2" --workers "$3" --cluster --token-file "$work/$2.token" "${@:4}" >/dev/null
}

worker=()
join_at() { # HOST NODE JOB [tally-perf-arguments...]
	exec_on "$1" "$build/tally-perf" --join "$3" --agent "$(bed addr "$2")" --json --hash \
		--token-file "$work/$3.token" --timeout 10000 -e 256K "${@:4}" \
		>"$work/$1.$3" 2>"$work/$1.$3.errors" &
	worker+=($!)
}

# All end well, with the same bits.
finish() { # JOB HOST...
	local job=$1 host code=0 pid
	shift
	for pid in "${worker[@]}"; do
		wait "$pid" || code=1
	done
	worker=()
	for host; do
		jq -c 'select(.verb == "allreduce") | [.bytes, .hash]' "$work/$host.$job" >"$work/$host.hash"
		[[ -s $work/$host.hash ]] && cmp "$work/$1.hash" "$work/$host.hash" || code=1
	done
	((code == 0)) || { cat "$work"/*."$job".errors; tail -n 5 "$work"/n*.log; }
	return "$code"
}

shared() { at "$1" cluster "$2" --json | jq -r ".jobs[0].$3"; } # NODE JOB KEY
is_root() { [[ $(shared n0 "$1" root) == "$2" ]]; } # JOB NODE
leader() { at "$1" cluster --json | jq -r .leader; }
runs_somewhere() { [[ $(shared n0 train state) == running ]]; }
