#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# scripts/bench-peers where no peer is installed, and the limit that it shows.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

folder=$work/peers
new_folder() { rm -rf "$folder" && mkdir "$folder"; }

# All programs of this machine but Open MPI's, and nothing in ~/.cache. Gloo's library may be there.
without_peers() { # bench-peers-arguments...
	local programs=$work/programs
	if [[ ! -d $programs ]]; then
		mkdir "$programs"
		find /usr/sbin /usr/bin -mindepth 1 -maxdepth 1 ! -name '*openmpi*' \
			-exec ln -sf -t "$programs" {} +
	fi
	PATH=$programs XDG_CACHE_HOME=$work scripts/bench-peers "$@"
}
briefly() { without_peers --quick -s "tally gloo mpi mpi-ring" -r 1 -w 2 -b "1K 64K" -t 0.02 "$@"; }

the_quick_form_runs_with_tally_alone() {
	new_folder
	briefly -o "$folder" >"$work/printed" || { cat "$work/printed"; return 1; }
	cat "$work/printed"
	grep -F 'gloo: PyTorch is not installed: scripts/setup-peers.sh' "$work/printed"
	grep -F 'mpi-ring: Open MPI is not installed: scripts/setup-peers.sh' "$work/printed"
	grep -F 'no peer to compare with' "$work/printed"
	grep -E '^1gbit, MTU 1500, loss 0 %, cubic, 2 workers, 1 rounds$' "$work/printed"
	(($(grep -cE '^ +(1|64) KiB +tally( +[0-9.]+){2} to' "$work/printed") == 4))
	# What a wire of 1 Gbit/s needs for 64 KiB, with the headers of 1,408 bytes each.
	jq -es 'length == 4 and all(.median_ms > 0 and .calls >= 3 and .wrong == 0 and
			.slowest_ms >= .median_ms and .cpu_s_per_gb > 0 and .resent_per_gb >= 0) and
		(map(select(.row == "1gbit/1500/0/cubic" and .bytes == 65536))[0].limit_ms * 1e4 |
			floor) == 5637' "$folder/peers.json"
}

what_is_measured_is_not_measured_again() {
	local before
	new_folder
	briefly -o "$folder" bare >"$work/first"
	before=$(<"$folder/peers.json")
	briefly -o "$folder" bare >"$work/again"
	[[ $before == "$(<"$folder/peers.json")" ]]
	diff <(tail -n +5 "$work/first") <(tail -n +5 "$work/again")
}

row() { # SIDE ROUND MILLISECONDS
	printf '{"row":"1gbit/1500/0/cubic","workers":4,"bytes":4096,"side":"%s","round":%d,
		"median_ms":%s,"slowest_ms":%s,"limit_ms":1,"calls":10,"slow_calls":1,
		"resent_per_gb":0,"cpu_s_per_gb":1,"machine_s_per_gb":null,"wrong":0}' "$1" "$2" "$3" "$3"
}

who_is_behind_is_said() {
	new_folder
	for round in 0 1 2; do
		row tally "$round" "$((4 + round))"
		row gloo "$round" "$((1 + 2 * round))"
		row mpi "$round" "$((8 - round))"
	done >"$folder/peers.json"
	without_peers -s "tally mpi" -o "$folder" 1gbit/1500/0/cubic/4 >"$work/printed"
	cat "$work/printed"
	# The median of 4, 5, 6 beside those of 1, 3, 5 and of 8, 7, 6.
	grep -E '^ +4 KiB +tally +5 +4 to 6 +6 +1 +5 +3/30 .* behind gloo, 1.667 times$' "$work/printed"
	grep -Fx 'Tally is behind a peer in 1 of 1 cells' "$work/printed"
	sed -i 's/"median_ms":3/"median_ms":6/' "$folder/peers.json"
	without_peers -s "tally mpi" -o "$folder" -w 4 1gbit | grep ' ahead of gloo, 1 times$'
}

# A tally-perf that says of its results that they are wrong, when it looks at them at all.
a_wrong_sum_is_the_exit_code() {
	local code=0
	mkdir "$work/built"
	ln -s "$PWD/$build"/* "$work/built"
	rm "$work/built/tally-perf"
	# shellcheck disable=SC2016
	printf '#!/bin/sh\n"%s" "$@" && case $* in *--no-check*) ;; *) exit 1 ;; esac\n' \
		"$PWD/$build/tally-perf" >"$work/built/tally-perf"
	chmod +x "$work/built/tally-perf"
	TALLY_BUILD=$work/built briefly -o "$folder" 1gbit >"$work/printed" 2>&1 || code=$?
	cat "$work/printed"
	((code == 1))
	grep -F 'WRONG: tally: 65536 bytes, 2 workers, 1gbit/1500/0/cubic' "$work/printed"
}

what_is_no_row_is_refused() {
	local row said
	for row in 10km bare/9000 bare/1500/1 1gbit/1500/0/none 1gbit/1500/0/cubic/some bare/1500/0/cubic/2/more; do
		said=$(without_peers -s "tally mpi" -o "$folder" "$row" 2>&1) && return 1
		[[ $said == *"row '$row'"* ]] || { echo "$said"; return 1; }
	done
}

# Without a checksum, the kernel would not merge datagrams, and the limit would be too low.
the_reflector_keeps_checksums() {
	bed up tests/testbed/topologies/plain2.topo
	on n0 "$build/tests/bench/reflector" w0 w1
	on w0 python3 - "$(bed addr n0)" <<-'END'
		import socket, struct, sys
		frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
		frames.settimeout(10)
		words = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		words.bind(("", 40000))
		words.settimeout(10)
		words.sendto(b"as it is", (sys.argv[1], 31249))
		assert words.recv(99) == b"as it is"
		seen = {}
		while len(seen) < 2:
		    frame, where = frames.recvfrom(2048)
		    if frame[12:14] == b"\x08\x00" and frame[23] == 17:
		        seen[where[2] == socket.PACKET_OUTGOING] = struct.unpack("!H", frame[40:42])[0]
		print(seen)
		assert seen[False] == seen[True] != 0
	END
}

facts the_quick_form_runs_with_tally_alone what_is_measured_is_not_measured_again \
	who_is_behind_is_said a_wrong_sum_is_the_exit_code what_is_no_row_is_refused \
	the_reflector_keeps_checksums
