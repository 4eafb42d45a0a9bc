# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the e2e tests of trees share, over agent_lib.sh: inner nodes, each with a real tallyd, and
# documents that are carried to them.
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/agent_lib.sh"

declare -A inner=() # process of each inner node's tallyd

at() { # NODE tallyctl-arguments...: at an inner node
	local name=$1
	shift
	"$build/tallyctl" --socket "$work/$name.control" "$@"
}
answers_at() { at "$1" status >/dev/null 2>&1; }

start_inner() { # NODE
	exec_on "$1" "$build/tallyd" --config "$work/$1.yaml" 2>>"$work/$1.log" &
	inner[$1]=$!
	until_true answers_at "$1" || { cat "$work/$1.log"; return 1; }
}

end_inner() { # NODE SIGNAL
	kill -s "$2" "${inner[$1]}" || return 1
	wait "${inner[$1]}" 2>/dev/null || true
	unset "inner[$1]"
}

configure_inner() { # NODE SLOTS
	local port
	rm -f "$work/$1".{state,log}
	{
		echo "ports:"
		for port in $(interfaces "$1"); do
			echo "  - $port"
		done
		echo "slots: $2"
		echo "pin: $pin-$1"
		echo "state: $work/$1.state"
		echo "service: [\"$(bed addr "$1" 4)\", \"$(bed addr "$1" 6)\"]"
		echo "control: {socket: $work/$1.control}"
		echo "join: {socket: $work/$1.join}"
		echo "metrics: {listen: \"127.0.0.1:9464\"}"
	} >"$work/$1.yaml"
}

#   w0 ──┐
#   w1 ──┴── a0 ──┐
#   w2 ──┬── a1 ──┴── n0
#   w3 ──┘
levels() { # SLOTS LINK-OPTIONS: of each inner node; nothing runs yet
	local slots=$1 name
	shift
	agent_network <<-END || return 1
		host w0 w1 w2 w3
		node n0 a0 a1
		link w0 a0 $*
		link w1 a0 $*
		link w2 a1 $*
		link w3 a1 $*
		link a0 n0 $*
		link a1 n0 $*
	END
	for name in a0 a1; do
		configure_inner "$name" "$slots"
	done
	tree "$(bed addr a0)" 0-1 "$(bed addr a1)" 2-3
}

#   w0 w1 ── b0 ──┐
#   w2 w3 ── b1 ──┴── a0 ──┐
#   w4 w5 ── b2 ──┬── a1 ──┴── n0
#   w6 w7 ── b3 ──┘
three_levels() { # LINK-OPTIONS: agents know one another; nothing runs yet
	local i
	agent_network <<-END || return 1
		host w0 w1 w2 w3 w4 w5 w6 w7
		node n0 a0 a1 b0 b1 b2 b3
		$(for i in 0 1 2 3 4 5 6 7; do echo "link w$i b$((i / 2)) $*"; done)
		$(for i in 0 1 2 3; do echo "link b$i a$((i / 2)) $*"; done)
		link a0 n0 $*
		link a1 n0 $*
	END
	for i in a0 a1 b0 b1 b2 b3; do
		configure_inner "$i" 1024 || return 1
	done
	peers_of a0 a1 b0 b1 b2 b3 || return 1
	jq -n '[$ARGS.positional | _nwise(3) | { name: .[0], address: .[1], ranks: .[2] }]' --args \
		a0 "$(bed addr a0)" 0-3 a1 "$(bed addr a1)" 4-7 \
		b0 "$(bed addr b0)" 0-1 b1 "$(bed addr b1)" 2-3 \
		b2 "$(bed addr b2)" 4-5 b3 "$(bed addr b3)" 6-7 >"$work/tree.json"
}

start_all_inner() {
	local file
	for file in "$work"/[ab][0-9].yaml; do
		file=${file##*/}
		start_inner "${file%.yaml}" || return 1
	done
}

start_levels() { start_agent && start_inner a0 && start_inner a1; }

tree() { # ADDRESS RANKS ADDRESS RANKS
	jq -n '[{ name: "a0", address: $ARGS.positional[0], ranks: $ARGS.positional[1] },
		{ name: "a1", address: $ARGS.positional[2], ranks: $ARGS.positional[3] }]' \
		--args "$@" >"$work/tree.json"
}

# One secret for the root's agent and those of these nodes, which take documents from it.
secret() { openssl rand -hex 32 >"$work/$1.secret" && chmod 600 "$work/$1.secret"; } # NODE
peers_of() { # NODE...
	local name
	secret n0 || return 1
	echo "peers: {secret: $work/n0.secret}" >>"$work/tallyd.yaml"
	for name; do
		cp -p "$work/n0.secret" "$work/$name.secret"
		echo "peers: {secret: $work/$name.secret, roots: [$(bed addr n0)]}" >>"$work/$name.yaml"
	done
}

asks() { # NODE...: n0 asks these
	local name list=''
	for name; do
		list+=", {name: $name, address: $(bed addr "$name")}"
	done
	sed -i "s|^peers: {|peers: {nodes: [${list:2}], |" "$work/tallyd.yaml"
}

# As levels; w1 has a second way, behind a1.
two_ways() { # [RATE]
	local rate=${1:-1gbit}
	agent_network <<-END || return 1
		host w0 w1 w2 w3
		node n0 a0 a1
		link w0 a0 rate $rate
		link w1 a0 rate $rate
		link w2 a1 rate $rate
		link w3 a1 rate $rate
		link a0 n0 rate $rate
		link a1 n0 rate $rate
		link w1 a1 rate $rate
	END
	configure_inner a0 1024 && configure_inner a1 1024 && peers_of a0 a1 && asks a0 a1
}

# HOST NEW-NODE [NODE...]: behind that one from now on, as all these nodes know.
moves() {
	local host=$1 to=$2 address at gateway node
	address=$(bed addr "$host")
	shift 2
	at=$(on "$host" ip -4 -j addr show dev eth1 | jq -r '.[0].addr_info[0].local')
	gateway=$(on "$to" ip -4 -j addr show dev "$host" | jq -r '.[0].addr_info[0].local')
	on "$to" ip route replace "$address/32" via "$at"
	for node; do
		on "$node" ip route replace "$address/32" \
			via "$(on "$node" ip -j route get "$(bed addr "$to")" | jq -r '.[0].gateway')"
	done
	on "$host" ip route replace default via "$gateway" dev eth1
}

has_documents() { ctl job documents "$1" >"$work/documents" 2>/dev/null; } # JOB
bring() { ctl job documents "$1" --node "$2" | at "$2" apply -; } # JOB NODE
bring_all() { # JOB
	until_true has_documents "$1" || return 1
	bring "$1" a0 && bring "$1" a1
}
# Ranks are given by who comes first: here each comes from where the tree has it.
join_ranks() { # JOB [tally-perf arguments...]
	local rank job=$1
	shift
	worker=() joined=("$job")
	for rank in $(seq 0 $(($(ctl --json job list "$job" | jq '.[0].workers') - 1))); do
		joined+=("w$rank")
		join_from "w$rank" "$job" --rank "$rank" "$@"
	done
}

is_on_at() { [[ $(at "$1" --json job list "$2" | jq -r '.[0].state') == running ]]; } # NODE JOB

sent_up() { at "$1" --json stats --job train | jq .SENT_UP.packets; } # NODE
sent_up_beyond() { (($(sent_up "$1") > $2)); }
goes_on_at() { # NODE: it takes part, from now on if not before
	until_true is_on_at "$1" train && until_true sent_up_beyond "$1" $(($(sent_up "$1") + 500))
}
is_clean_at() { # NODE
	[[ $(at "$1" --json job list | jq length) == 0 && $(at "$1" --json status | jq .slots.used) == 0 ]]
}
