#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a tree, too, who has not a key cannot speak for a rank, nor for a node: neither a stranger, nor
# a worker for another one, nor whoever says that it is the root. (forgery.sh shows that such
# forgeries end a run without keys.)
#
#   w0 ──┐
#   w1 ──┼── a0 ──┐
#   x0 ──┘        │
#   w2 ──┬── a1 ──┴── n0      x0 has no part in the job
#   w3 ──┘
# shellcheck source=tests/e2e/tree_lib.sh
source "$(dirname "$0")/tree_lib.sh"

with_a_stranger() { # SLOTS: of each node
	local name
	agent_network <<-END || return 1
		host w0 w1 w2 w3 x0
		node n0 a0 a1
		link w0 a0 rate 400mbit
		link w1 a0 rate 400mbit
		link x0 a0 rate 400mbit
		link w2 a1 rate 400mbit
		link w3 a1 rate 400mbit
		link a0 n0 rate 400mbit
		link a1 n0 rate 400mbit
	END
	for name in a0 a1; do
		configure_inner "$name" "$1" || return 1
	done
	sed -i "s/^slots: .*/slots: $1/" "$work/tallyd.yaml"
	peers_of a0 a1
	tree "$(bed addr a0)" 0-1 "$(bed addr a1)" 2-3
}

# The keys of ranks, by number, and that of nodes, 256, by what the root's agent has on disk.
key_of() { # NUMBER
	python3 - "$work/state.json" "$1" <<-'END'
		import hashlib, hmac, json, sys
		job = json.load(open(sys.argv[1]))["jobs"][0]
		text = "tally key\njob {id}\nepoch {epoch}\nnonce {nonce}\nrank ".format(**job) + sys.argv[2] + "\n"
		print(hmac.new(bytes.fromhex(job["secret"]), text.encode(), hashlib.sha256).hexdigest()[:32])
	END
}
no_log_has() { # WORDS...
	local words
	for words; do
		[[ $words ]] || return 1
		if grep -F "$words" "$work"/*.log; then
			return 1
		fi
	done
}

# As if from where that one would say it.
forge_up() { # HOST RANK KEY WHAT...
	forge_as "$1" "$(bed addr "w$2" 4)" "$service:31249" 1 "$epoch" 4 "${@:2}"
}
forge_down() { # HOST NODE-OR-WORKER KEY WHAT...
	local to
	to=$(bed addr "$2" 4):31249
	[[ $2 != w* ]] || to=$(bed addr "$2" 4):40000
	forge_as "$1" "$service" "$to" 1 "$epoch" 4 0 "${@:3}"
}
run_begins() { # [tally-perf arguments...]
	local rank
	worker=() joined=(train w0 w1 w2 w3)
	for rank in 0 1 2 3; do
		TALLY_ADDRESS=$(bed addr "w$rank" 4):40000 join_from "w$rank" train --rank "$rank" "$@"
	done
	until_true state_is train running
	epoch=$(ctl --json job list train | jq '.[0].epoch')
	service=$(bed addr n0 4)
}

# Behind a0 a stranger, and rank 1 in the name of rank 0, and of rank 2, which comes by a1; what
# comes down is forged from below, and from the root's own machine.
all_forge() {
	local own
	own=$(key_of 1)
	forge_up x0 0 - repair call ahead flush several
	forge_up w1 0 "$own" repair call ahead flush several
	forge_up w1 1 "$own" several
	forge_up w1 2 "$own" repair call ahead flush several
	forge_down x0 a0 - result ask mismatch overtaken
	forge_down n0 a0 - result ask mismatch
	forge_down n0 a1 "$own" result ask mismatch
	forge_down w1 a0 "$own" result ask mismatch
	forge_down x0 w0 - result ask mismatch overtaken
	forge_down w1 w0 "$own" result ask mismatch overtaken
}
forged_at() { # NODE
	if [[ $1 == n0 ]]; then
		ctl --json stats
	else
		at "$1" --json stats
	fi | jq .FORGED.packets
}
forged_everywhere() { (($(forged_at a0) > 3000 && $(forged_at a1) > 500 && $(forged_at n0) > 500)); }
tally_of() { at "$1" --json stats --job train | jq ".$2.packets"; } # NODE OUTCOME

# All four take part until all has been forged: their sums are those of everybody, and the same.
no_forgery_harms_those_who_join() { # [tallyctl options...]
	local key all
	start_levels
	create_job train 4 --id 1 --window 32 --tree "$work/tree.json" "$@"
	run_begins -d int32 --int-wild -b 64K -e 64K -n 1500 -w 0
	until_true is_on_at a0 train
	until_true is_on_at a1 train
	all=("$(jq -r '.jobs[0].secret' "$work/state.json")")
	for key in 0 1 2 3 256; do
		all+=("$(key_of "$key")")
	done
	all_forge
	until_true forged_everywhere
	joined_end
	call_off
	echo "forged: $(forged_at a0) at a0, $(forged_at a1) at a1, $(forged_at n0) at n0"
	ctl --json stats --job train | jq -e '[.CONFLICT, .BEHIND] | all(.packets == 0)'
	jq -se 'map(.wrong) | add == 0' "$work"/w[0-3].train
	no_log_has "${all[@]}"
}

in_a_tree_no_forgery_does_any_harm() {
	with_a_stranger 1024
	no_forgery_harms_those_who_join
	echo "$(tally_of a0 SENT_UP) and $(tally_of a1 SENT_UP) sums went up"
	(($(tally_of a0 SENT_UP) > 1000 && $(tally_of a1 SENT_UP) > 1000))
}

facts in_a_tree_no_forgery_does_any_harm
