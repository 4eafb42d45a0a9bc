#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The limits that benchmarks show.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

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

facts the_reflector_keeps_checksums
