#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Forges ICMP packets of one kind for some seconds: KIND SERVICE WORKER-ADDRESS:PORT SECONDS.

gone      to the service address: "port unreachable", about a datagram to the worker
too-big   to the worker: "fragmentation needed", about a datagram of the worker's
"""
import socket
import struct
import sys
import time

TALLY_UDP_PORT = 31249
UNREACHABLE, PORT, FRAGMENTATION = 3, 3, 4
MTU = 552  # the smallest that Linux takes from such a packet


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def datagram(source, target, words):
    """As ICMP quotes it. Both: (address, port)."""
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(words), 0, 0x4000, 64, 17, 0,
                     socket.inet_aton(source[0]), socket.inet_aton(target[0]))
    return ip + struct.pack("!HHHH", source[1], target[1], 8 + len(words), 0) + words


def unreachable(code, mtu, quoted):
    body = struct.pack("!BBHHH", UNREACHABLE, code, 0, 0, mtu) + quoted
    return body[:2] + struct.pack("!H", checksum(body)) + body[4:]


def main():
    kind, address, worker, seconds = sys.argv[1:]
    service = (address, TALLY_UDP_PORT)
    worker = (worker.split(":")[0], int(worker.split(":")[1]))
    if kind == "gone":  # whatever a probe may have said
        target = service[0]
        packets = [unreachable(PORT, 0, datagram(service, worker, words))
                   for words in (b"", b"\0", bytes(17))]
    else:
        target = worker[0]
        packets = [unreachable(FRAGMENTATION, MTU, datagram(worker, service, bytes(1472)))]
    end = time.monotonic() + float(seconds)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
        while time.monotonic() < end:
            for packet in packets:
                icmp.sendto(packet, (target, 0))
            time.sleep(0.05)


main()
