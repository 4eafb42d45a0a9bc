#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# tallyd is killed at system calls that anybody could notice (kill_at.c) while it starts, reloads,
# is upgraded, creates, begins, ends and deletes a job, moves the slots of a run that sums, and takes
# the document of an inner node; or one of its allocations fails (starve.c). Afterwards it, or the
# one that is started then, must be well: it answers, has all its jobs and ports, and a run gets its
# sums.
#
#   w0 ──┬── n0 (tallyd)      w0: shared with another XDP program; w1: TC
#   w1 ──┤
#   w2 ──┘                    w2: XDP, and in one of two configurations only
#
#	TALLY_KILLS=N|all|places so many points of each action (2); all there are; of the allocations
#	                         the first one of each place in the program (starve.c), of kills all
#	TALLY_ACTIONS="start"    only of these actions
#	TALLY_PART=2/3           of all (places): the second of each three, for machines side by side
#	TALLY_SEED=N             which points, if not all (1)
#	TALLY_BESIDE=dispatcher  w0's other program is in libxdp's dispatcher (BPF_PROG_TYPE_EXT)
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

kills=${TALLY_KILLS:-2}
part=${TALLY_PART:-1/1}
RANDOM=${TALLY_SEED:-1}
killer='' # kill_at's process
declare -A idle=() # workers of runs that are there only

# The configuration number N of two that differ in slots, ports and tenants.
configure() { # N
	sed "s/^slots: .*/slots: $((4096 << $1))/" "$work/both.yaml" >"$work/tallyd.yaml"
	(($1)) && return
	sed -i '/^  - w2$/d; /^tenants:/d' "$work/tallyd.yaml"
}

beside() {
	if [[ ${TALLY_BESIDE-} == dispatcher ]]; then
		on n0 xdp-loader load -m native w0 "$build/tests/bpf/beside.bpf.o"
		return
	fi
	mkdir "$pin-other"
	bpftool prog loadall "$build/tests/bpf/beside.bpf.o" "$pin-other"
	on n0 bpftool net attach xdpdrv pinned "$pin-other/beside" dev w0
}

prepare() {
	agent_network <<-END
		host w0 w1 w2
		node n0
		link w0 n0 rate 1gbit
		link w1 n0 rate 1gbit
		link w2 n0 rate 1gbit
	END
	sed -i 's/^  - w1$/  - {name: w1, mode: tc}/; s/^  - w0$/  - {name: w0, share: true}/' \
		"$work/tallyd.yaml"
	echo 'tenants: [{name: red, slots: 256}]' >>"$work/tallyd.yaml"
	mv "$work/tallyd.yaml" "$work/both.yaml"
	beside
	configure 0
	launch
	create_job train 2
	jq -n --arg node "$(bed addr n0)" --arg root "$(bed addr w1)" --arg below "$(bed addr w0)" \
		'{job: "leaf", node: "n0", address: $node, root: $root, id: 77, epoch: 1, window: 32,
		  payload: 1408, workers: 3, ranks: [{rank: 0, address: "\($below):40000"},
		                                     {rank: 1, address: "\($below):40001"}]}' >"$work/leaf.json"
}

# Arms what goes wrong at tallyd's N-th call, allocation or place, from now on; 0: nothing.
arm() { # N
	local at=$1 place=0 byte bytes=''
	if (($1)) && [[ $kills == places ]]; then
		at=0 place=${places[$1 - 1]}
	fi
	for byte in {0..7}; do bytes+=$(printf '\\x%02x' $((at >> 8 * byte & 255))); done
	for byte in {0..7}; do bytes+=$(printf '\\x%02x' $((place >> 8 * byte & 255))); done
	# shellcheck disable=SC2059
	printf "$bytes\\0\\0\\0\\0\\0\\0\\0\\0" 1<>"$work/meter" # mapped by tallyd: no shorter file
}

watch() { # N
	: >"$work/killed"
	if [[ $way == memory ]]; then
		arm "$1"
		return
	fi
	"$build/tests/e2e/kill_at" "$1" -p "$daemon" >"$work/killed" &
	killer=$!
	until_true grep -q armed "$work/killed"
}

run() { # N COMMAND...: a tallyd that is watched from its first moment
	: >"$work/killed"
	if [[ $way == memory ]]; then
		arm "$1"
		exec_on n0 "${@:2}" --config "$work/tallyd.yaml" 2>>"$work/tallyd.log" &
		daemon=$!
	else
		exec_on n0 "$build/tests/e2e/kill_at" "$@" --config "$work/tallyd.yaml" \
			>"$work/killed" 2>>"$work/tallyd.log" &
		killer=$!
	fi
	until_true over_or answers
	watched
}

is_over() { ! kill -0 "$([[ $way == memory ]] && echo "$daemon" || echo "$killer")" 2>/dev/null; }
over_or() { is_over || "$@"; } # CONDITION...

# The action is over, or tallyd is. Sets how: killed, ended or passed; and at, call, code.
watched() {
	local failed new
	code=0
	if [[ $way == memory ]]; then
		read -r _ at _ _ failed new < <(od -An -tu4 -w24 -N24 "$work/meter")
		how=$( ((failed)) && echo starved || echo passed)
		((${#places[@]})) || mapfile -t places < <(od -An -td8 -w8 -v -j24 -N$((8 * new)) "$work/meter")
		arm 0
		! is_over || { wait "$daemon" || code=$?; daemon=''; }
		((code < 128)) || { echo "tallyd ended by signal $((code - 128))"; return 1; }
		return 0
	fi
	kill "$killer" 2>/dev/null || true
	wait "$killer" 2>/dev/null || true
	read -r how at call < <(tail -n 1 "$work/killed")
	[[ $how == passed ]] || { wait "$daemon" 2>/dev/null || true; daemon=''; }
}

# The agent as it is to be, and not watched.
launch() {
	[[ $way == memory ]] || { start_agent "$running"; return; }
	arm 0
	start_agent env LD_PRELOAD="$PWD/$build/tests/e2e/starve.so" TALLY_STARVE="$work/meter" "$running"
}

start() { # N
	[[ ! $daemon ]] || end_agent KILL
	node n0 detach >/dev/null
	run_new "$1"
}

upgrade() { # N
	end_agent KILL
	[[ $running == "$build/tallyd" ]] && running=$build/next/tallyd || running=$build/tallyd
	run_new "$1"
}

run_new() { # N
	if [[ $way == memory ]]; then
		run "$1" env LD_PRELOAD="$PWD/$build/tests/e2e/starve.so" TALLY_STARVE="$work/meter" "$running"
	else
		run "$1" "$running"
		daemon=''
	fi
}

reloads() { grep -c 'configuration \(not \)\?reloaded' "$work/tallyd.log"; }
reloads_beyond() { (($(reloads) > $1)); }

hup() {
	local before
	before=$(reloads)
	kill -HUP "$daemon"
	until_true over_or reloads_beyond "$before"
}

reload() { # N: if it was refused, once more
	number=$((1 - number))
	configure "$number"
	watch "$1"
	hup
	watched
	[[ $how != starved || ! $daemon ]] || hup
}

create() { # N
	ctl job del more >/dev/null 2>&1 || true
	watch "$1"
	ctl job create more --workers 2 >/dev/null 2>&1 && wanted='more'
	watched
}

delete() { # N
	ctl job create more --workers 2 >/dev/null 2>&1 || true
	watch "$1"
	ctl job del more >/dev/null 2>&1 && wanted='train'
	watched
}

begin() { # N: a run; its workers may fail, and who is left alone need not wait for the other
	watch "$1"
	join_all train w0 w1 -- "${short[@]}"
	end_together
	watched
}
end_together() {
	wait -n "${worker[@]}" 2>/dev/null || kill "${worker[@]}" 2>/dev/null || true
	wait "${worker[@]}" 2>/dev/null || true
}

apply() { # N
	ctl job del leaf >/dev/null 2>&1 || true
	ctl job del more >/dev/null 2>&1 || true # which delete() may have left
	watch "$1"
	ctl apply "$work/leaf.json" >/dev/null 2>&1 && wanted='leaf train'
	watched
}

# Every second ring becomes free; one that is as long as four needs others to move.
move() { # N
	local i
	((number == 0)) || { number=0; configure 0; ctl reload >/dev/null; }
	for i in 0 1 2; do idle_run "idle$i"; done
	create_job sums 2 --window 256
	join_all sums w0 w1 -- -d int32 --int-wild -b 256K -e 256K -n 8 -w 0 -s 3
	summing=("${worker[@]}")
	until_true state_is sums running
	for i in 4 5 6; do idle_run "idle$i"; done
	for i in 0 2 4 6; do idle_end "idle$i"; done
	create_job large 2 --window 1024
	another sums 100
	watch "$1"
	join_all large w0 w1 -- "${short[@]}"
	end_together
	watched || return 1
	[[ $how != passed ]] || grep -q 'runs moved: .* job=large ' "$work/tallyd.log" || { echo 'nothing moved'; return 1; }
}
settle_move() { # what was on while slots moved gets its sums
	local job
	worker=("${summing[@]}") joined=(sums w0 w1)
	loses_slots=1 joined_end || return 1
	for job in idle1 idle5; do idle_end "$job"; done
	for job in large sums; do ctl job del "$job" >/dev/null; done
}

idle_run() { # JOB: 512 slots, until idle_end()
	create_job "$1" 1 --window 256
	join_from w0 "$1" -d int32 -b 4 -e 4 -n 8 -w 0 -s 600
	idle[$1]=${worker[-1]}
	until_true state_is "$1" running
}
idle_end() { # JOB
	kill -KILL "${idle[$1]}"
	wait "${idle[$1]}" 2>/dev/null || true
	ctl job del "$1" >/dev/null
}

# --- what must hold --------------------------------------------------------------------------

short=(-d int32 --int-wild -b 64K -e 64K -n 2 -w 0 --timeout 3000)

ports_now() { ctl --json status | jq -r '[.ports[] | .name + ":" + .mode] | sort | join(" ")'; }
ports_are() { [[ $(ports_now) == "$1" ]]; } # what cannot be attached is tried again
job_names() { ctl --json job list | jq -r '[.[].name] | join(" ")'; }

is_well() {
	local names ports="w0:native w1:tc"
	names=$(job_names)
	[[ $names == train || $names == "more train" || $names == "leaf train" ]] || { echo "jobs: $names"; return 1; }
	[[ -z $wanted || $names == "$wanted"* ]] || { echo "jobs: $names"; return 1; }
	((number)) && ports+=" w2:native"
	until_true ports_are "$ports" || { echo "ports: $(ports_now), not $ports"; return 1; }
	! compgen -G "$pin-n0/*-new" || return 1
	[[ $(ctl --json status | jq .slots.total) == $((4096 << number)) ]] || return 1
	until_true state_is train waiting
	join_all train w0 w1 -- "${short[@]}"
	joined_end
}

tried() { # ACTION N
	wanted=''
	"$1" "$2" || return 1
	[[ $how == passed ]] || points=$((points + 1))
	[[ $daemon ]] || launch || return 1
	[[ $1 != move ]] || settle_move || { tail -n 20 "$work/tallyd.log"; return 1; }
	is_well || {
		echo "after $1 with $way $2: $how $at ${call-}"
		tail -n 20 "$work/tallyd.log"
		return 1
	}
}

# Counts first what can go wrong, then lets some of it go wrong.
try() { # WAY ACTION...
	local n i action what
	way=$1 what="$1 at" running=$build/tallyd number=0
	truncate -s 64K "$work/meter"
	prepare
	for action in "${@:2}"; do
		[[ " ${TALLY_ACTIONS:-$action} " == *" $action "* ]] || continue
		places=()
		tried "$action" 0
		n=$at points=0
		[[ $kills != places || $way != memory ]] || n=${#places[@]} what='memory at places'
		((n > 0)) || { echo "nothing of $action was counted"; return 1; }
		if [[ $kills == all || $kills == places ]]; then
			for ((i = ${part%/*}; i <= n; i += ${part#*/})); do
				tried "$action" "$i"
			done
		else
			for ((i = 0; i < kills; i++)); do
				tried "$action" $((1 + (i * n + (RANDOM << 15 | RANDOM) % n) / kills))
			done
		fi
		echo "$action: $what $points of $n, every later start ended well" >>"$said"
	done
}

tallyd_is_killed_at_system_calls() { try kill start reload upgrade create begin delete move apply; }
tallyd_finds_no_memory() { try memory start reload create begin delete move apply; }

said=$(mktemp)
trap 'sed "s/^/# /" "$said"; rm -rf "$work" "$said"' EXIT
facts tallyd_is_killed_at_system_calls tallyd_finds_no_memory
